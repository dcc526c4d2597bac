"""Time of one cell, measured in this process, which does nothing else: `python -m core.measure.speed CELL`."""

import json
import statistics
import time
from collections.abc import Callable

from core.measure.cells import asked, circumstances, prepare, prepare_attention, synchronize
from core.measure.others import watch
from core.records import Cell

WARM_UPS = 2
REPEATS = (5, 50)
"""At least, and at most."""
ENOUGH_S = 0.5
"""Short runs are repeated until so many seconds are measured, or at least gone by: others are told from ticks of a clock."""


def measure(cell: Cell) -> dict[str, float | int | str | None]:
    """Median, spread and number of the runs in seconds, and the median of attention alone; what others used meanwhile, the
    operator that ran, and on what."""
    run, attention = prepare(cell), prepare_attention(cell)
    others, start = watch(), time.perf_counter()
    seconds = times(cell.device, run)
    attention_s = None if attention is None else statistics.median(times(cell.device, attention))
    while time.perf_counter() - start < ENOUGH_S:
        run()
    return {
        "median_s": statistics.median(seconds),
        "spread_s": max(seconds) - min(seconds),
        "attention_s": attention_s,
        "others": others(),
        "n_repeats": len(seconds),
    } | circumstances(cell.device, run)


def times(device: str, run: Callable[[], None]) -> list[float]:
    """Seconds of each of several runs, after warming up."""
    for _ in range(WARM_UPS):
        run()
    seconds: list[float] = []
    while len(seconds) < REPEATS[0] or (len(seconds) < REPEATS[1] and sum(seconds) < ENOUGH_S):
        seconds.append(_timed(device, run))
    return seconds


def _timed(device: str, run: Callable[[], None]) -> float:
    synchronize(device)  # a GPU works on after the call has returned
    start = time.perf_counter()
    run()
    synchronize(device)
    return time.perf_counter() - start


if __name__ == "__main__":
    print(json.dumps(measure(asked())))
