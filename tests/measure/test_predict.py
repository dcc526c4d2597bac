"""Predicted bytes against counted ones, which are the same on every machine."""

import itertools

import pytest

from core.attention import chunked
from core.measure import cells, operators, predict
from core.measure.cells import prepare
from core.measure.live_bytes import peak_of
from core.measure.predict import breakdown, peak_bytes

SHAPES = {  # reviews, tokens, heads, size of a head, layers
    "scores matter": (2, 200, 3, 8, 2),
    "one layer": (3, 150, 2, 16, 1),
    "one review": (1, 170, 4, 8, 2),
    "one head": (5, 130, 1, 16, 2),
    "weights matter": (2, 7, 4, 16, 4),
    "activations matter": (5, 33, 4, 24, 3),
    "several tiles": (2, 600, 3, 8, 2),
}
BACKENDS = ("eager", "sdpa", "chunked")
DTYPES = ("float32", "bfloat16", "mixed")


@pytest.fixture(autouse=True)
def small_vocabulary(monkeypatch):
    """Or a step would be all embedding."""
    for module in (cells, predict):
        monkeypatch.setattr(module, "STEP_VOCABULARY", 50)


def shaped(cell, shape: str, **knobs):
    batch, length, n_heads, d_head, n_layers = SHAPES[shape]
    return cell(batch=batch, length=length, n_heads=n_heads, d_head=d_head, n_layers=n_layers, **knobs)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("what", ["forward", "backward", "step"])
@pytest.mark.parametrize(("backend", "dtype"), [*itertools.product(BACKENDS, DTYPES)])
def test_prediction_is_what_is_counted(cell, backend, dtype, what, shape):
    asked = shaped(cell, shape, backend=backend, dtype=dtype, what=what)
    assert peak_bytes(asked) == pytest.approx(peak_of(lambda: prepare(asked)()), rel=0.01)


@pytest.mark.parametrize("shape", ["one review", "activations matter", "several tiles"])
@pytest.mark.parametrize("what", ["backward", "step"])
@pytest.mark.parametrize(("backend", "dtype"), [*itertools.product(BACKENDS, DTYPES)])
def test_prediction_is_what_is_counted_when_activations_are_computed_again(cell, backend, dtype, what, shape):
    kept, again = (shaped(cell, shape, backend=backend, dtype=dtype, what=what, checkpointing=on) for on in (False, True))
    assert peak_bytes(again) == pytest.approx(peak_of(lambda: prepare(again)()), rel=0.01)
    assert peak_bytes(again) < peak_bytes(kept)


@pytest.mark.parametrize("what", ["forward", "backward", "step"])
def test_parts_are_named_and_sum_to_the_whole(cell, what):
    parts = breakdown(cell(what=what, length=200))
    expected = {"weights", "input", "working memory"}
    if what != "forward":
        expected |= {"activations kept", "attention weights kept"}
    if what == "step":
        expected |= {"optimiser", "gradients"}
    assert expected <= set(parts) and sum(parts.values()) == peak_bytes(cell(what=what, length=200))
    assert min(parts.values()) > 0


def test_parts_by_hand(cell):
    """Written-out attention at its peak keeps the weights of both layers; AdamW has two moments for each weight."""
    parts = breakdown(cell(what="step", length=200))
    assert parts["attention weights kept"] == 2 * (3 * 2 * 200 * 200 * 4)
    assert parts["optimiser"] == 2 * parts["weights"] == 2 * 4 * (2 * (12 * 16**2 + 13 * 16) + 50 * 16 + 2 * 17)
    assert parts["input"] == 3 * 200 * 8
    assert "attention weights kept" not in breakdown(cell(what="step", length=200, backend="sdpa"))


def test_a_bilstm_is_predicted_on_a_cpu_alone(cell):
    bilstm = dict(network="bilstm", backend=None)
    assert peak_bytes(cell(**bilstm)) > 0 and peak_bytes(cell(**bilstm, device="cuda")) is None


def test_written_out_attention_keeps_a_weight_for_each_pair_and_flash_a_number_for_each_row(cell):
    """Per further layer in training: B H T T float32 weights against B H T row sums; all else is alike."""
    kept = {
        name: peak_bytes(cell(backend=name, n_layers=8)) - peak_bytes(cell(backend=name, n_layers=7))
        for name in ("eager", "sdpa")
    }
    rows = 3 * 2 * 40
    assert kept["eager"] - kept["sdpa"] == rows * 40 * 4 - rows * 4


def test_tiles_are_as_large_as_they_are_taken_for():
    assert operators.TILE == chunked.TILE


def test_a_backend_that_is_not_understood_has_no_prediction(cell):
    assert peak_bytes(cell(backend="flex")) is None
