"""What a training will take: what can be counted is counted exactly, what is timed is scaled by the right numbers."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from core.config import LinearArchitecture, RunConfig, TrainingConfig
from core.networks.auto import build
from core.presets import PRESETS, preset
from core.training import estimate as estimates
from core.training.estimate import BYTES_PER_PARAMETER, Sample, estimate, sample
from core.training.machine import Execution, n_parameters
from tests.small_runs import ARCHITECTURES, TRAINING

REVIEWS = Sample(n=1000, n_classes=3, tokens=np.array([4, 8, 12, 40]))  # of which 12 are read
THREE = replace(ARCHITECTURES["mean"], n_layers=3)


def config(model=THREE, **knobs) -> RunConfig:
    return RunConfig(model=model, training=replace(TRAINING, **knobs))


@pytest.mark.parametrize("model", [THREE, ARCHITECTURES["bilstm"], ARCHITECTURES["cls"]], ids=["mean", "bilstm", "cls"])
def test_parameters_are_those_of_the_network(model):
    expected = n_parameters(build(replace(model, n_classes=3), ("a", "b", "c")))
    assert estimate(config(model), REVIEWS).n_parameters == expected


@pytest.mark.parametrize("backend", ["eager", "sdpa"])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_memory_is_what_the_whole_network_keeps(backend, precision):
    found = estimate(config(backend=backend, precision=precision), REVIEWS)
    network = build(replace(THREE, n_classes=3), ("a", "b", "c")).train()

    def kept(n: int) -> int:
        """Bytes that a forward pass of all three layers over `n` reviews of 12 tokens leaves for its backward pass."""
        storages = {}
        with torch.autograd.graph.saved_tensors_hooks(
            lambda t: storages.update({t.untyped_storage().data_ptr(): t.untyped_storage().nbytes()}) or t, lambda t: t
        ):
            with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
                logits = network(torch.randint(4, 150, (n, 12)), backend=backend).logits
            F.cross_entropy(logits.float(), torch.zeros(n, dtype=torch.long))
        return sum(storages.values())

    batch = 16 * np.mean([4, 8, 12, 12]) / 12  # reviews of 12 tokens
    expected = BYTES_PER_PARAMETER * found.n_parameters + batch * (kept(5) - kept(3)) / 2
    assert found.memory_bytes == pytest.approx(expected, rel=0.01)


def test_time_is_scaled_to_all_steps_and_scorings(monkeypatch):
    monkeypatch.setattr(estimates, "_of_all_layers", lambda *_: np.array([0.2, 1e-4, 0.0, 1_000.0]))
    monkeypatch.setattr(estimates, "_parameter_s", lambda *_: 1e-6)
    found = estimate(config(epochs=2), REVIEWS)
    mean, steps = 9.0, 2 * round(0.85 * 1000 / 16)
    assert found.steps == steps
    scored = (2 * 0.05 + 0.05 + 0.10) * 1000 * mean  # validation after each epoch, then validation and test
    assert found.seconds == pytest.approx(steps * (0.2 + 1e-6 * (found.n_parameters - 1_000)) + scored * 1e-4)


@pytest.mark.parametrize("batch_size", [1, 16, 10_000])
def test_a_batch_is_tried_as_it_is_unless_it_is_large(batch_size, monkeypatch):
    tried = []
    monkeypatch.setattr(estimates, "_ids", lambda n, length, *_: tried.append(n) or torch.full((n, length), 5))
    monkeypatch.setattr(estimates, "_seconds", lambda run, device: run() and 1.0 or 1.0)
    costs = estimates._costs(config(batch_size=batch_size), THREE, Execution.of(config()), np.array([9, 9]))
    assert tried[0] == min(batch_size, round(estimates.TOKENS / 9))
    assert costs[0] == pytest.approx(batch_size / tried[0])  # seconds of a whole step, each of which took one
    assert costs[3] == n_parameters(estimates.network(THREE, "meta"))


def test_every_further_layer_costs_what_the_second_one_did(monkeypatch):
    costs = {1: np.array([3.0, 2.0, 10.0, 7.0]), 2: np.array([4.0, 2.5, 9.0, 9.0])}
    monkeypatch.setattr(estimates, "_costs", lambda config, tried, *_: costs[tried.n_layers])
    found = estimates._of_all_layers(config(), THREE, Execution.of(config()), np.array([1]))
    assert found.tolist() == [5.0, 3.0, 10.0, 11.0]  # a layer cannot cost less than nothing


def test_checkpointing_keeps_less():
    kept = estimate(config(), REVIEWS).memory_bytes
    assert estimate(config(checkpointing="on"), REVIEWS).memory_bytes < kept


def test_a_knob_that_this_machine_lacks_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="device: got 'cuda'"):
        estimate(config(device="cuda"), REVIEWS)


@pytest.mark.parametrize(
    "knobs",
    [
        {"d_model": 10**6, "n_heads": 1},
        {"d_ff": 10**6},
        {"max_len": 10**6, "positional": "learned"},
        {"n_heads": THREE.d_model, "max_len": 10**5},
    ],
    ids=["wide", "hidden", "positions", "long reviews"],
)
def test_what_would_take_the_memory_of_the_page_is_not_tried(knobs, monkeypatch):
    monkeypatch.setattr(estimates, "_costs", lambda *_: pytest.fail("tried"))
    long = replace(REVIEWS, tokens=np.array([20_000]))
    with pytest.raises(ValueError, match="too large to be tried beside the page: .* GiB"):
        estimate(config(replace(THREE, **knobs), backend="eager"), long)


def test_a_network_of_a_thousand_layers_is_counted_from_two():
    one, two = (n_parameters(build(replace(THREE, n_layers=n, n_classes=3), ("a", "b", "c"))) for n in (1, 2))
    assert estimate(config(replace(THREE, n_layers=1000)), REVIEWS).n_parameters == one + 999 * (two - one)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_small_enough_to_be_tried(name, monkeypatch):
    monkeypatch.setattr(estimates, "_costs", lambda *_: np.ones(4))
    found = estimate(preset(name), replace(REVIEWS, tokens=np.array([600, 2000])))
    assert found.seconds > 0 and found.memory_bytes > 0 and found.steps > 0


def test_what_was_tried_is_freed():
    """An exponential keeps its output for the backward pass, and so would keep itself."""
    weight, kept = torch.ones(1000, requires_grad=True), []

    def loss(ids):
        output = weight.exp()
        kept.append(output.untyped_storage()._weak_ref())
        return output.sum()

    assert estimates._kept_bytes(loss, torch.zeros(1, 1, dtype=torch.long)) == 4000
    assert torch.UntypedStorage._expired(kept[0])


def test_a_sample_counts_tokens_of_reviews_spread_evenly():
    texts = [" ".join(["film"] * (1 + i % 7)) for i in range(3 * estimates.SAMPLE)]
    found = sample(texts, 2, 50)
    assert (found.n, found.n_classes, len(found.tokens)) == (len(texts), 2, estimates.SAMPLE)
    assert set(found.tokens) == set(range(1, 8))


def test_a_linear_model_s_fits_are_tried_and_scaled_to_all_reviews(monkeypatch):
    config = RunConfig(model=LinearArchitecture(vocab_size=500, c_values=(0.1, 1.0)), training=TrainingConfig(device="cpu"))
    monkeypatch.setattr(estimates.time, "perf_counter", iter([10.0, 13.0]).__next__)
    monkeypatch.setattr(estimates.linear, "fit", lambda *asked, **how: None)
    few, many = (replace(REVIEWS, n=n, tokens=np.array([7])) for n in (1_000, 3_000))
    found = estimate(config, few)
    assert found.seconds == pytest.approx(3.0 * 0.85 * 1_000 / estimates.DRAWN)
    assert (found.steps, found.execution) == (2, Execution(device="cpu", precision="float32", backend=None))
    cells = found.memory_bytes / estimates.BYTES_PER_CELL / (0.85 * 1_000)
    assert 7 < cells <= 13  # of a review: 7 tokens and 6 pairs, of which some are the same
    monkeypatch.setattr(estimates.time, "perf_counter", iter([10.0, 13.0]).__next__)
    assert estimate(config, many).memory_bytes == pytest.approx(3 * found.memory_bytes, rel=1e-6)
