"""A training that goes on in another process as if nothing had been."""

import copy
import errno
import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors import safe_open
from torch import nn

from core.config import RunConfig
from core.networks.auto import build
from core.training import checkpoint
from core.training.checkpoint import Checkpoints
from core.training.loop import Examples, Trainer
from core.training.machine import Execution
from tests.small_runs import ARCHITECTURES, TRAINING

RNG = np.random.default_rng(5)
REVIEWS = Examples([RNG.integers(4, 150, n) for n in RNG.integers(3, 12, 40)], RNG.integers(0, 2, 40))
KNOBS = dict(epochs=20, batch_size=8, lr=0.01)


def trainer(name: str, precision: str = "float32", seed: int = 0, **knobs) -> Trainer:
    torch.manual_seed(seed)
    architecture = replace(ARCHITECTURES[name], token_dropout=0.1, embedding_dropout=0.2)
    config = RunConfig(model=architecture, training=replace(TRAINING, **KNOBS | knobs))
    network = build(architecture, ("negative", "positive"))
    backend = "sdpa" if architecture.kind == "encoder" else None
    return Trainer(network, config, REVIEWS, REVIEWS, Execution(device="cpu", precision=precision, backend=backend))


def losses(running: Trainer, n: int) -> list[tuple]:
    """What the next `n` steps and the epochs that end with them say, but for what is a matter of time."""
    said = []
    for _ in range(n):
        step = running.advance()
        said.append((step.epoch, step.step, step.loss, step.lr, step.gradient_norm, step.largest_logit))
        if running.is_last_of_epoch:
            epoch = running.validate()
            said.append((epoch.epoch, epoch.train_loss, epoch.val_loss, epoch.val_accuracy))
    return said


def weights(network: nn.Module) -> torch.Tensor:
    return nn.utils.parameters_to_vector(network.parameters()).detach()


@pytest.mark.parametrize(("name", "precision"), [("mean", "bfloat16"), ("bilstm", "float32")])
@pytest.mark.parametrize("done", [49, 50], ids=["after an epoch", "within one"])
def test_a_hundred_steps_are_fifty_and_fifty_loss_for_loss(tmp_path, name, precision, done):
    whole = trainer(name, precision)
    expected = losses(whole, 100)
    first = trainer(name, precision)
    said = losses(first, done)
    Checkpoints(tmp_path).write(first.state_dict())
    second = trainer(name, precision, seed=7)  # other weights and random numbers
    second.load_state_dict(Checkpoints(tmp_path).read())
    assert second.step == done and second.rates.reviews == first.rates.reviews
    assert (second.best.epoch, second.best.rank) == (first.best.epoch, first.best.rank)
    for name, kept in first.best.weights.items():
        assert torch.equal(second.best.weights[name], kept)
    assert said + losses(second, 100 - done) == expected
    assert [epoch.epoch for epoch in second.epochs] == list(range(1, 15))  # of seven steps each
    assert torch.equal(weights(second.network), weights(whole.network))
    second.best.restore(), whole.best.restore()
    assert second.best.epoch == whole.best.epoch and torch.equal(weights(second.network), weights(whole.network))
    assert second.elapsed_s > first.epochs[-1].elapsed_s


@pytest.mark.parametrize("part", ["random", "optimizer", "network"])
def test_every_part_of_the_state_is_needed(part):
    whole, other = trainer("mean"), trainer("mean", seed=7)
    losses(whole, 6)
    losses(other, 6)
    state = copy.deepcopy(whole.state_dict())
    torch.manual_seed(11)
    without = copy.deepcopy(state | {part: other.state_dict()[part]})

    def goes_on(state) -> list[tuple]:
        resumed = trainer("mean", seed=3)
        resumed.load_state_dict(state)
        return losses(resumed, 3)

    assert goes_on(state) != goes_on(without)


def test_a_checkpoint_is_plain_tensors_and_json(tmp_path):
    running = trainer("mean")
    losses(running, 8)  # more than an epoch
    Checkpoints(tmp_path, {"reviews": "a"}).write(running.state_dict())
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.safetensors"]
    with safe_open(tmp_path / "checkpoint.safetensors", "pt") as file:
        assert {"random/cpu", "optimizer/state/0/exp_avg", "best/weights/network.embedding.weight"} <= set(file.keys())
        assert json.loads(file.metadata()["of"]) == {"reviews": "a"}
    size = (tmp_path / "checkpoint.safetensors").stat().st_size
    assert size < 1.5 * 16 * weights(running.network).numel() + 30_000  # weights, best weights and two moments


def test_values_of_every_kind_come_back(tmp_path):
    state = {
        "step": 3,
        "a": torch.arange(3),
        "b": {0: {"x": torch.tensor(1.5)}, 1: None},
        "c": [1, 0.1, "é", (True, torch.ones(0))],
    }
    Checkpoints(tmp_path).write(state)
    found = Checkpoints(tmp_path).read()
    assert torch.equal(found["a"], torch.arange(3)) and found["b"][0]["x"].item() == 1.5 and found["b"][1] is None
    assert found["c"][:3] == [1, 0.1, "é"] and found["c"][3][0] is True and found["c"][3][1].numel() == 0


def test_without_a_checkpoint_there_is_nothing_to_go_on_from(tmp_path):
    assert Checkpoints(tmp_path).read() is None and Checkpoints().read() is None
    Checkpoints().write({"step": 1})
    Checkpoints(tmp_path).remove()


@pytest.mark.parametrize("damage", [lambda content: content[:-8], lambda content: b"", lambda content: b"\0" * len(content)])
def test_a_damaged_one_is_refused(tmp_path, damage):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.write({"step": 1, "a": torch.ones(8)})
    checkpoints.path.write_bytes(damage(checkpoints.path.read_bytes()))
    with pytest.raises(ValueError, match="the checkpoint is damaged; delete it"):
        checkpoints.read()


def test_one_of_another_training_is_refused(tmp_path):
    Checkpoints(tmp_path, {"configuration": {"lr": 1}, "reviews": "a"}).write({"step": 3})
    assert Checkpoints(tmp_path, {"reviews": "a"}).read() == {"step": 3}
    with pytest.raises(ValueError, match=r"of another training \(other reviews\)"):
        Checkpoints(tmp_path, {"configuration": {"lr": 1}, "reviews": "b"}).read()


def test_one_that_cannot_be_written_leaves_the_last_one_whole(tmp_path, monkeypatch):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.write({"step": 1})

    def full(tensors, path, metadata):
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(checkpoint, "save_file", full)
    with pytest.raises(OSError, match=r"MiB cannot be written \(No space left on device, [\d,.]+ MiB are free\)") as caught:
        checkpoints.write({"step": 2})
    assert caught.value.errno == errno.ENOSPC
    assert checkpoints.read() == {"step": 1} and len(list(tmp_path.iterdir())) == 1


def test_writing_takes_a_small_share_of_the_time(tmp_path, monkeypatch):
    clock = iter([0.0, 29.0, 30.0, 40.0, 43.0, 72.9, 102.9, 103.0])
    monkeypatch.setattr(checkpoint.time, "perf_counter", lambda: next(clock))
    checkpoints = Checkpoints(tmp_path, every_s=30.0)
    assert not checkpoints.due() and checkpoints.due()
    checkpoints.write({"step": 1})  # three seconds: one minute is to pass
    assert not checkpoints.due() and not checkpoints.due() and checkpoints.due()
