"""Contestants take turns, so that what a busy machine does to one it does to the others; ratios are taken within a round."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Some figures of one kind."""

    median: float
    low: float
    high: float

    @property
    def cells(self) -> tuple[float, float, float]:
        """As a table has them."""
        return self.median, self.low, self.high


def spread(values: Sequence[float]) -> Spread:
    """Of at least one value."""
    return Spread(median=statistics.median(values), low=min(values), high=max(values))


def ratio(above: Sequence[float], below: Sequence[float]) -> Spread:
    """Of each round."""
    return spread([a / b for a, b in zip(above, below, strict=True)])


def in_turns(contestants: Mapping[str, Callable[[], T]], rounds: int) -> dict[str, list[T]]:
    """What each gives in each round, after one to warm up."""
    for run in contestants.values():
        run()
    found: dict[str, list[T]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, run in contestants.items():
            found[name].append(run())
    return found


def seconds(run: Callable[[], object]) -> float:
    """Of one run, to the end of what it gave a GPU to do."""
    _wait()
    start = time.perf_counter()
    run()
    _wait()
    return time.perf_counter() - start


def timed(run: Callable[[], object]) -> Callable[[], float]:
    """The same, to be run later."""
    return lambda: seconds(run)


def _wait() -> None:
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
