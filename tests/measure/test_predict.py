"""Predicted bytes against counted ones, which are the same on every machine."""

import itertools

import pytest

from core.attention import chunked
from core.measure import predict
from core.measure.cells import prepare
from core.measure.predict import peak_bytes
from tests.measure.live_bytes import peak_of

SHAPES = {  # reviews, tokens, heads, size of a head, layers
    "scores matter": (2, 200, 3, 8, 2),
    "one layer": (3, 150, 2, 16, 1),
    "one review": (1, 170, 4, 8, 2),
    "one head": (5, 130, 1, 16, 2),
    "weights matter": (2, 7, 4, 16, 4),
    "activations matter": (5, 33, 4, 24, 3),
    "several tiles": (2, 600, 3, 8, 2),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("what", ["forward", "backward"])
@pytest.mark.parametrize(
    ("backend", "dtype"), [*itertools.product(["eager", "sdpa", "sdpa-flash", "chunked"], ["float32", "bfloat16"])]
)
def test_prediction_is_what_is_counted(cell, backend, dtype, what, shape):
    batch, length, n_heads, d_head, n_layers = SHAPES[shape]
    asked = cell(
        backend=backend, dtype=dtype, what=what, batch=batch, length=length, n_heads=n_heads, d_head=d_head, n_layers=n_layers
    )
    assert peak_bytes(asked) == pytest.approx(peak_of(lambda: prepare(asked)()), rel=0.02)


def test_written_out_attention_keeps_a_weight_for_each_pair_and_flash_a_number_for_each_row(cell):
    """Per further layer in training: B H T T float32 weights against B H T row sums; all else is alike."""
    kept = {
        name: peak_bytes(cell(backend=name, n_layers=8)) - peak_bytes(cell(backend=name, n_layers=7))
        for name in ("eager", "sdpa")
    }
    rows = 3 * 2 * 40
    assert kept["eager"] - kept["sdpa"] == rows * 40 * 4 - rows * 4


def test_tiles_are_as_large_as_they_are_taken_for():
    assert predict.TILE == chunked.TILE


def test_a_gpu_reads_bfloat16_without_a_copy(cell):
    long = dict(dtype="bfloat16", length=400)
    assert peak_bytes(cell(device="cuda", **long)) < peak_bytes(cell(device="cpu", **long))
    assert peak_bytes(cell(device="cuda")) == peak_bytes(cell(device="cpu"))


def test_a_backend_that_is_not_understood_has_no_prediction(cell):
    assert peak_bytes(cell(backend="flex")) is None
