"""Operations and bytes by hand, and what a machine reaches."""

import pytest

from core.events import Ceilings
from core.measure.kernels import TILE
from core.measure.roofline import Work, attainable_s, attention_work

CEILINGS = Ceilings(device="cpu", dtype="float32", operations_per_s=1e6, bytes_per_s=1e4, hardware="h", date="2026-11-30")


def test_written_out_attention_by_hand(cell):
    """B 3, H 2, T 40, K 8: two products of 2 B H T^2 K; q, k, v, o once, scores and weights written and read."""
    work = attention_work(cell(what="forward", n_layers=1))
    x, scores = 3 * 2 * 40 * 8 * 4, 3 * 2 * 40 * 40 * 4
    assert work == Work(operations=2.0 * 2 * 3 * 2 * 40 * 40 * 8, bytes_moved=4.0 * x + 4 * scores)


def test_operations_of_training_and_of_layers_add_up(cell):
    forward = attention_work(cell(what="forward", n_layers=1)).operations
    for backend, passes in (("eager", 3), ("sdpa", 3.5), ("chunked", 3.5)):
        for what in ("backward", "step"):
            assert attention_work(cell(backend=backend, what=what, n_layers=4)).operations == 4 * passes * forward
    assert attention_work(cell(checkpointing=True, n_layers=1)).operations == 4 * forward


def test_flash_moves_bytes_with_tiles_times_tokens_and_written_out_with_tokens_squared(cell):
    def moved(backend: str, length: int) -> float:
        return attention_work(cell(backend=backend, length=length)).bytes_moved

    long = 64 * TILE
    assert moved("eager", 2 * long) / moved("eager", long) == pytest.approx(4, rel=0.01)
    assert moved("sdpa", TILE) == 2 * moved("sdpa", TILE // 2)  # within a tile, by the token
    assert moved("eager", long) > 25 * moved("sdpa", long)


def test_half_as_many_bytes_in_half_precision(cell):
    for dtype in ("bfloat16", "mixed"):
        assert 2 * attention_work(cell(dtype=dtype)).bytes_moved == attention_work(cell()).bytes_moved


def test_a_bilstm_has_no_attention_to_speak_of(cell):
    assert attention_work(cell(network="bilstm", backend=None)) == Work(operations=0.0, bytes_moved=0.0)


@pytest.mark.parametrize(("operations", "bytes_moved", "seconds"), [(2e6, 1e4, 2.0), (1e6, 5e4, 5.0)])
def test_the_slower_of_both_decides(operations, bytes_moved, seconds):
    assert attainable_s(Work(operations=operations, bytes_moved=bytes_moved), CEILINGS) == seconds
