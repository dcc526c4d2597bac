"""Experiments on time: CPU seconds of the same work in two ways, in turns, which a busy machine changes least."""

import statistics
import time
from collections.abc import Callable
from dataclasses import replace

from core.claims.figures import Figures
from core.measure.cells import prepare
from core.records import Cell

PAIRS = 9
LAYERS = Cell(
    backend="sdpa", what="backward", batch=8, length=256, n_heads=8, d_head=32, n_layers=4, dtype="float32", device="cpu"
)


def checkpointing() -> Figures:
    """Forward and backward of encoder layers, with activations computed again over with activations kept."""
    ways = {again: prepare(replace(LAYERS, checkpointing=again)) for again in (False, True)}
    for run in ways.values():
        run()
    ratios = [_cpu_s(ways[True]) / _cpu_s(ways[False]) for _ in range(PAIRS)]
    return {"time with over without": statistics.median(ratios), "lowest": min(ratios), "highest": max(ratios), "pairs": PAIRS}


def _cpu_s(run: Callable[[], None]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start
