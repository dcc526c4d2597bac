"""One fit: what it learns, keeps and refuses, and that every knob is read."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from accelerate.state import AcceleratorState
from torch import nn

from core.catalog import POSITIONAL
from core.config import Architecture, RunConfig
from core.data import batches
from core.data.batches import Packed, Store
from core.evaluation.scoring import score
from core.events import EpochFinished, Event, StepFinished
from core.networks.auto import build
from core.training import loop
from core.training.loop import Examples, Fitted, Trainer, TrainingDiverged, adamw, fit
from core.training.machine import Execution
from tests import backends
from tests.small_runs import ARCHITECTURES, TRAINING

RNG = np.random.default_rng(5)
EIGHT = Examples([RNG.integers(4, 150, n) for n in (3, 5, 7, 7, 9, 10, 11, 4)], np.array([0, 1, 1, 0, 1, 0, 0, 1]))
OPPOSITE = Examples(EIGHT.ids, 1 - EIGHT.labels)
EAGER = Execution(device="cpu", precision="float32", backend="eager")
QUIET = dict(dropout=0.0, embedding_dropout=0.0)


def network_of(architecture: Architecture, **knobs) -> nn.Module:
    torch.manual_seed(0)
    return build(replace(architecture, **knobs), ("negative", "positive"))


def run(network: nn.Module, validation: Examples = EIGHT, precision: str = "float32", **knobs) -> tuple[Fitted, list[Event]]:
    """A fit to the eight reviews; `knobs` are those of the training."""
    config = RunConfig(model=ARCHITECTURES["mean"], training=replace(TRAINING, **{"epochs": 2, "batch_size": 4} | knobs))
    events: list[Event] = []
    backend = "sdpa" if network.config.architecture.kind == "encoder" else None
    execution = Execution(device="cpu", precision=precision, backend=backend)
    fitted = fit(network, config, EIGHT, validation, execution=execution, emit=events.append)
    return fitted, events


def weights_after(precision: str = "float32", **knobs) -> torch.Tensor:
    network = network_of(ARCHITECTURES["mean"], **QUIET)
    run(network, precision=precision, **knobs)
    return nn.utils.parameters_to_vector(network.parameters()).detach()


@pytest.mark.parametrize("architecture", ARCHITECTURES.values(), ids=ARCHITECTURES)
def test_eight_reviews_can_be_memorised(architecture):
    fitted, _ = run(network_of(architecture, **QUIET), epochs=40, lr=0.02)
    assert fitted.epochs[-1].val_accuracy == 1.0 and fitted.epochs[-1].train_loss < 0.05
    assert fitted.rates.reviews == 40 * 8 and fitted.rates.tokens == 40 * sum(map(len, EIGHT.ids))


# The best epoch


@pytest.mark.parametrize("lr", [0.02, 1e-4], ids=["the more accurate", "of equal accuracy that of lower loss"])
def test_the_best_epoch_is_kept_and_not_the_last(lr):
    network = network_of(ARCHITECTURES["mean"], **QUIET)
    fitted, events = run(network, OPPOSITE, epochs=12, lr=lr, schedule="constant", warmup_ratio=0.0)
    best, last = fitted.epochs[fitted.best_epoch - 1], fitted.epochs[-1]
    assert best == max(fitted.epochs, key=lambda epoch: (epoch.val_accuracy, -epoch.val_loss))
    assert best.epoch < last.epoch and best.val_loss < last.val_loss
    assert (best.val_accuracy > last.val_accuracy) == (lr == 0.02)
    logits = score(network, OPPOSITE.ids)
    assert (logits.argmax(-1) == OPPOSITE.labels).mean() == pytest.approx(best.val_accuracy)
    loss = F.cross_entropy(torch.from_numpy(logits), torch.from_numpy(OPPOSITE.labels))
    assert loss.item() == pytest.approx(best.val_loss, rel=1e-5)
    assert [event for event in events if isinstance(event, EpochFinished)] == fitted.epochs


def test_as_long_as_it_gets_better_the_last_epoch_is_the_best():
    fitted, _ = run(network_of(ARCHITECTURES["mean"], **QUIET), epochs=12, lr=0.02)
    assert fitted.best_epoch == 12


# What it says


def test_it_trains_with_dropout_and_is_validated_without():
    network, modes = network_of(ARCHITECTURES["mean"]).eval(), []
    network.register_forward_pre_hook(lambda module, _: modes.append(module.training))
    fitted, events = run(network, epochs=2)
    steps = max(event.total_steps for event in events if isinstance(event, StepFinished)) // 2
    assert modes == ([True] * steps + [False]) * 2


def test_the_loss_of_an_epoch_and_the_norm_of_a_gradient_are_those_before_the_step():
    network = network_of(ARCHITECTURES["mean"], **QUIET)
    twin = network_of(ARCHITECTURES["mean"], **QUIET)
    fitted, events = run(network, epochs=1, batch_size=20)
    (step,) = [event for event in events if isinstance(event, StepFinished)]
    loss = _loss(twin)
    loss.backward()
    norm = math.sqrt(sum(float((p.grad**2).sum()) for p in twin.parameters()))
    assert step.loss == pytest.approx(loss.item(), rel=1e-5) == fitted.epochs[0].train_loss
    assert step.gradient_norm == pytest.approx(norm, rel=1e-4)
    assert (step.step, step.total_steps) == (1, 1)


def _loss(network: nn.Module) -> torch.Tensor:
    """Mean cross-entropy over the eight, one review at a time."""
    logits = torch.cat([network(torch.from_numpy(ids)[None]).logits for ids in EIGHT.ids])
    return F.cross_entropy(logits, torch.from_numpy(EIGHT.labels))


# What it refuses


@pytest.mark.parametrize(("value", "loss"), [(math.nan, "nan"), (-math.inf, "inf")])
def test_a_loss_that_is_no_number_ends_the_fit_at_once(value, loss):
    network = network_of(ARCHITECTURES["mean"])
    with torch.no_grad():
        network.network.classifier.bias[0] = value
    events = []
    with pytest.raises(TrainingDiverged) as caught:
        config = RunConfig(training=replace(TRAINING, warmup_ratio=0.0))
        fit(network, config, EIGHT, EIGHT, execution=EAGER, emit=events.append)
    sentence = str(caught.value)
    assert sentence.startswith(f"the loss became {loss} at step 1 with learning rate ")
    assert sentence.endswith(", most likely since there is no warm-up; use a warm-up") and caught.value.kind == "diverged"
    assert [type(event) for event in events] == [StepFinished] and events[0].step == 1


def test_a_gradient_that_is_no_number_ends_the_fit_before_it_touches_a_weight():
    network, events = network_of(ARCHITECTURES["mean"], **QUIET), []
    before = nn.utils.parameters_to_vector(network.parameters()).clone()
    network.network.classifier.weight.register_hook(lambda gradient: gradient * math.inf)
    with pytest.raises(TrainingDiverged, match="the gradient became inf at step 1 with learning rate "):
        fit(network, RunConfig(training=TRAINING), EIGHT, EIGHT, execution=EAGER, emit=events.append)
    assert torch.equal(nn.utils.parameters_to_vector(network.parameters()), before)
    (step,) = events
    assert step.non_finite == network.network.classifier.weight.numel() and step.gradient_norm == math.inf


@pytest.mark.parametrize("epochs", [1, 6])
def test_weights_far_worse_than_guessing_are_not_kept_though_all_is_finite(epochs):
    with pytest.raises(
        TrainingDiverged, match=r"loss is .* after epoch \d, step \d+, where guessing costs 0.69, most"
    ) as caught:
        run(network_of(ARCHITECTURES["mean"], **QUIET), epochs=epochs, lr=10.0, schedule="constant", warmup_ratio=0.0)
    assert str(caught.value).endswith("since a learning rate of 10 is too high; use a learning rate of 0.003")


def test_weights_that_make_no_numbers_after_the_last_step_are_not_kept():
    network = network_of(ARCHITECTURES["mean"], **QUIET)
    network.register_forward_hook(lambda module, _, output: output if module.training else _infinite(output))
    with pytest.raises(TrainingDiverged, match="the loss became nan at step 1 with learning rate "):
        run(network, epochs=1, batch_size=20)


def _infinite(output):
    output.logits = output.logits * math.inf
    return output


# Every knob is read


@pytest.mark.parametrize(
    "knobs",
    [
        dict(label_smoothing=0.1),
        dict(clip_norm=0.01),
        dict(clip_norm=None),
        dict(betas=(0.8, 0.999)),
        dict(betas=(0.9, 0.9)),
        dict(weight_decay=0.5),
        dict(schedule="linear"),
        dict(schedule="constant"),
        dict(schedule="inverse-sqrt"),
        dict(warmup_ratio=0.5),
        dict(lr=0.005),
        dict(batch_size=2),
        dict(epochs=3),
        dict(seed=1),
        dict(precision="bfloat16"),
    ],
    ids=str,
)
def test_a_knob_changes_the_weights(knobs):
    base = dict(clip_norm=0.5, schedule="one-cycle")
    assert torch.equal(weights_after(**base), weights_after(**base))
    assert not torch.equal(weights_after(**base), weights_after(**base | knobs))


def test_precision_is_the_runs_own_whatever_the_environment_says(monkeypatch):
    exact = weights_after()
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "bf16")
    AcceleratorState._reset_state(reset_partial_state=True)  # as in a process of its own
    assert torch.equal(weights_after(), exact)


def test_bfloat16_leaves_the_weights_in_float32():
    weights = weights_after(precision="bfloat16")
    assert weights.dtype == torch.float32 and not torch.equal(weights, weights.bfloat16().float())


def test_only_matrices_decay():
    network = network_of(ARCHITECTURES["cls"])
    decayed, others = adamw(network, replace(TRAINING, weight_decay=0.3, betas=(0.7, 0.8))).param_groups
    names = {id(parameter): name for name, parameter in network.named_parameters()}
    assert (decayed["weight_decay"], others["weight_decay"]) == (0.3, 0.0)
    assert decayed["betas"] == others["betas"] == (0.7, 0.8)
    assert all(parameter.ndim == 2 for parameter in decayed["params"])
    assert {names[id(p)] for p in others["params"] if p.ndim > 1} == {"network.embedding.weight"}
    assert len(decayed["params"]) + len(others["params"]) == len(names)


@pytest.mark.parametrize("backend", ["eager", "sdpa"])
def test_the_backend_is_the_one_asked_for(backend, monkeypatch):
    network, asked = network_of(ARCHITECTURES["mean"]), []
    network.register_forward_pre_hook(lambda module, _, knobs: asked.append(knobs.get("backend")), with_kwargs=True)
    fit(
        network, RunConfig(training=replace(TRAINING, epochs=1, batch_size=20)), EIGHT, EIGHT,
        execution=replace(EAGER, backend=backend), emit=lambda event: None,
    )  # fmt: skip
    assert asked == [backend, None]


# In parts


@pytest.mark.parametrize("name", ["mean", "bilstm"])
@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
def test_a_batch_in_parts_is_the_same_step(name, label_smoothing, monkeypatch):
    def step(at_once: int | None) -> tuple[StepFinished, torch.Tensor, int]:
        monkeypatch.setattr(loop, "tokens_at_once", lambda model, device: at_once)
        network = network_of(ARCHITECTURES[name], **QUIET)
        training = replace(TRAINING, epochs=1, batch_size=20, label_smoothing=label_smoothing)
        config = RunConfig(model=ARCHITECTURES[name], training=training)
        backend = "sdpa" if name == "mean" else None
        trainer = Trainer(network, config, EIGHT, EIGHT, replace(EAGER, backend=backend))
        finished = trainer.advance()
        return finished, torch.cat([p.grad.flatten() for p in network.parameters()]), len(trainer.plan[0][1])

    (whole, gradient, one), (parted, summed, several) = step(None), step(20)
    assert (one, several) == (1, 4) and whole.total_steps == parted.total_steps == 1
    torch.testing.assert_close(summed, gradient, atol=1e-6, rtol=1e-4)
    assert parted.loss == pytest.approx(whole.loss, rel=1e-5)
    assert parted.gradient_norm == pytest.approx(whole.gradient_norm, rel=1e-4)


# As on a GPU: where reviews lie, and what is waited for


def trainer(backend: str = "sdpa", **knobs) -> Trainer:
    """Of steps of two reviews or so, which hardly move a weight: what differs does so in its own step."""
    model = replace(ARCHITECTURES["mean"], **QUIET | knobs)
    config = RunConfig(model=model, training=replace(TRAINING, epochs=2, batch_size=2, lr=1e-4))
    return Trainer(network_of(model), config, EIGHT, EIGHT, replace(EAGER, backend=backend))


def parameters(running: Trainer) -> torch.Tensor:
    return nn.utils.parameters_to_vector(running.network.parameters()).detach()


@pytest.mark.parametrize("positional", POSITIONAL)
@pytest.mark.parametrize("few_shapes", [False, True], ids=["as they are", "few shapes"])
def test_packed_reviews_take_the_steps_of_padded_ones(positional, few_shapes, monkeypatch):
    name, masks = backends.packing(monkeypatch)
    monkeypatch.setattr(batches, "PACKED_TO", 8)
    padded, packed = trainer(positional=positional), trainer(name, positional=positional)
    packed.batch = Store.of(EIGHT.ids, few_shapes=few_shapes).packed
    for _ in padded.plan:
        known, mine = padded.advance(), packed.advance()
        assert mine.loss == pytest.approx(known.loss, rel=1e-4)
        assert mine.gradient_norm == pytest.approx(known.gradient_norm, rel=1e-3)
        assert mine.largest_logit == pytest.approx(known.largest_logit, rel=1e-3)
    totals = [int(mask.segments[-1]) for mask in masks]
    assert all(total % 8 == 0 for total in totals) == few_shapes


def test_a_few_lengths_of_padded_reviews_change_no_step(monkeypatch):
    monkeypatch.setattr(batches, "PADDED_TO", 4)
    plain, filled = trainer(), trainer()
    filled.batch = Store.of(EIGHT.ids, few_shapes=True).padded
    for _ in plain.plan:
        known, mine = plain.advance(), filled.advance()
        assert mine.loss == pytest.approx(known.loss, rel=1e-4)


def test_steps_that_nobody_was_told_of_are_read_with_the_next_one():
    at_once, later = trainer(), trainer()
    told = [at_once.advance(watched=False) for _ in range(4)]
    for _ in range(3):
        later.take(watched=False)
    assert later.losses == []
    last = later.advance()
    assert (last.step, last.loss, last.lr, last.gradient_norm) == (4, told[3].loss, told[3].lr, told[3].gradient_norm)
    assert later.losses == at_once.losses == [step.loss for step in told] and not later.unread
    assert torch.equal(parameters(later), parameters(at_once))


def test_a_divergence_that_is_read_late_is_told_as_it_was_and_no_weight_has_changed_since():
    running = trainer()
    running.take(watched=False)
    before = parameters(running)
    hook = running.network.network.classifier.weight.register_hook(lambda gradient: gradient * math.inf)
    running.take(watched=False)
    hook.remove()
    running.take(watched=False)
    assert torch.equal(parameters(running), before)
    told = running.tell(watched=False)
    assert (told.step, told.epoch, told.gradient_norm) == (2, 1, math.inf) and math.isfinite(told.loss)


def test_a_fit_that_is_stopped_says_that_it_had_diverged(monkeypatch):
    monkeypatch.setattr(loop, "SECONDS_BETWEEN_EVENTS", math.inf)
    monkeypatch.setattr(loop, "Trainer", lambda *given: _waiting(Trainer(*given)))
    network, asked = network_of(ARCHITECTURES["mean"], **QUIET), iter([False, False, True])
    network.network.classifier.weight.register_hook(lambda gradient: gradient * math.nan)
    config = RunConfig(training=replace(TRAINING, batch_size=2))
    with pytest.raises(TrainingDiverged, match="the gradient became nan at step 1 "):
        fit(network, config, EIGHT, EIGHT, execution=EAGER, emit=lambda event: None, stopped=lambda: next(asked))


def _waiting(running: Trainer) -> Trainer:
    running.waits = True
    return running


READS = ["item", "tolist", "numpy", "cpu", "nonzero", "__bool__", "__int__", "__float__", "__index__"]
"""What reads a number from a tensor, and on a GPU waits until it is there."""


@pytest.mark.parametrize("positional", POSITIONAL)
@pytest.mark.parametrize("pooling", ["cls", "mean+max"])
@pytest.mark.parametrize("packs", [True, False], ids=["packed", "padded"])
def test_a_step_reads_nothing_from_the_device(positional, pooling, packs, monkeypatch):
    name = backends.packing(monkeypatch)[0] if packs else "sdpa"
    monkeypatch.setattr(Packed, "__post_init__", lambda self: None)  # which reads on a CPU alone
    running = trainer(name, positional=positional, pooling=pooling, token_dropout=0.1, n_layers=1)
    with monkeypatch.context() as patch:
        for name in READS:
            patch.setattr(torch.Tensor, name, lambda *_, name=name: pytest.fail(f"{name} was asked of a tensor"))
        running.take(watched=False)
    assert math.isfinite(running.tell(watched=False).loss)
