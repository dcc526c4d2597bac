"""Predicted bytes against counted ones, which are the same on every machine."""

import itertools

import pytest
from torch.profiler import ProfilerActivity, profile

from core.attention import chunked
from core.catalog import BACKENDS as CATALOGUE
from core.measure import cells, kernels, predict
from core.measure.cells import prepare
from core.measure.live_bytes import peak_of
from core.measure.predict import Network, breakdown, not_understood, peak_bytes
from core.measure.sizes import Sizes

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


def allocated(run) -> int:
    """The most bytes that PyTorch's allocator had given out at once while `run` ran, also to what kernels make inside."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as found:
        run()
    events = [event for event in found.profiler.kineto_results.events() if event.name() == "[memory]"]
    changes = [event.nbytes() for event in sorted(events, key=lambda event: event.start_ns())]
    return max(itertools.accumulate(changes))


@pytest.mark.parametrize("shape", ["scores matter", "one review", "activations matter"])
@pytest.mark.parametrize("what", ["forward", "backward", "step"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_pytorch_composes_itself_is_predicted_with_what_its_softmax_makes_inside(cell, dtype, what, shape):
    asked = shaped(cell, shape, backend="sdpa-math", dtype=dtype, what=what)
    assert peak_bytes(asked) == pytest.approx(allocated(lambda: prepare(asked)()), rel=0.01)


BY_HAND = {  # of 3 reviews of 200 tokens with 2 heads of 40: tiles of 128 or 64 tokens, heads of whole 32 or 64 numbers
    ("sdpa-flash", "bfloat16"): 4 * 6 * 256 * (64 + 1),
    ("varlen", "bfloat16"): 4 * 6 * (200 + 128) * (64 + 1),
    ("sdpa-efficient", "bfloat16"): 4 * 6 * (200 + 256 * 64),
    ("sdpa-efficient", "float32"): 4 * 6 * (200 + 256 * 64),
    ("flex", "bfloat16"): 4 * 6 * 200,
}


@pytest.mark.parametrize(("backend", "dtype"), BY_HAND)
def test_what_a_fused_kernel_asks_for_on_a_gpu_by_hand(cell, backend, dtype):
    s = Sizes.of(cell(length=200, d_head=40, dtype=dtype, device="cuda"), None, dropout=False)
    assert kernels.WORKING_MEMORY[backend](s) == BY_HAND[backend, dtype]


def test_large_heads_add_up_keys_and_values_too_and_a_product_may_be_larger_than_what_is_added_up(cell):
    wide = dict(length=200, d_head=160, device="cuda")
    half, full = (Sizes.of(cell(dtype=dtype, **wide), None, dropout=False) for dtype in ("bfloat16", "float32"))
    efficient = kernels.WORKING_MEMORY["sdpa-efficient"]
    assert efficient(half) == 4 * 6 * (200 + 256 * 192 + 2 * 4 * 64 * 256)  # keys in 4 splits of 64
    assert efficient(full) == 4 * 6 * (200 + 256 * 192)
    even = Sizes.of(cell(length=256, d_head=64, device="cuda"), None, dropout=False)
    assert efficient(even) == 4 * 6 * 256 + even.x == 4 * 6 * (256 + 256 * 64)


@pytest.mark.parametrize(
    ("dtype", "kernel"), [("float32", "sdpa-efficient"), ("bfloat16", "sdpa-flash"), ("mixed", "sdpa-flash")]
)
def test_pytorchs_own_choice_on_a_gpu_is_predicted_as_the_kernel_that_it_takes(cell, dtype, kernel):
    chosen, named = (peak_bytes(cell(backend=name, dtype=dtype, device="cuda")) for name in ("sdpa", kernel))
    assert chosen == named


@pytest.mark.parametrize("backend", ["sdpa", "sdpa-flash", "varlen", "flex"])
def test_a_gpu_works_in_more_than_a_cpu_where_its_kernel_says_so(cell, backend):
    """With no feed-forward to speak of, attention's backward is where a layer needs most."""
    shape, narrow = dict(backend=backend, dtype="bfloat16", n_layers=1, d_head=32, length=256), Network(d_ff=8)
    there, here = (peak_bytes(cell(device=device, **shape), narrow) for device in ("cuda", "cpu"))
    assert there - here == kernels.WORKING_MEMORY[kernels.fused_kernel(backend, sizes(cell, shape))](sizes(cell, shape))


def sizes(cell, shape: dict) -> Sizes:
    return Sizes.of(cell(device="cuda", **shape), 8, dropout=False)


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
    assert kernels.TILE == chunked.TILE


@pytest.mark.parametrize(
    ("knobs", "reason"),
    [
        (dict(backend="cudnn"), "no prediction: cudnn says only when it runs how much working memory it takes"),
        (dict(network="bilstm", backend=None), "no prediction: cuDNN says only when it runs what it keeps of an LSTM"),
        (dict(backend="sdpa", d_head=12), "no prediction: sdpa copies heads of 12 to make their size a multiple of 8"),
    ],
)
def test_what_cannot_be_predicted_on_a_gpu_is_said_by_name(cell, knobs, reason):
    asked = cell(device="cuda", **knobs)
    assert peak_bytes(asked) is None and not_understood(asked).startswith(reason)


@pytest.mark.parametrize("backend", [name for name in CATALOGUE if name != "cudnn"])
def test_every_other_kernel_is_predicted_where_it_runs(cell, backend):
    for device in CATALOGUE[backend].dtypes:
        assert peak_bytes(cell(backend=backend, device=device, dtype="bfloat16")) > 0
