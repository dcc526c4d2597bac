"""Measured and predicted cells as tables and sentences."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

import pandas as pd

from core.catalog import CARDS
from core.config import LONGEST, SweepConfig
from core.events import CellMeasured
from core.figures.memory import UNITS, Over
from core.measure.others import disturbance
from core.measure.predict import not_understood, peak_bytes
from core.measure.sweep import cell, cells, contenders, remarks
from core.measure.tables import Point, shape
from core.records import Cell

NAIVE = "eager"
"""The kernel that the others are held against."""
PER_OCTAVE = 4
"""Points of a predicted line between a length and its double."""
MIB = 2**20
EVEN = 0.05
"""Shares of memory less apart than this are as much."""
Found = TypeVar("Found", CellMeasured, Point)
Pair = tuple[CellMeasured, CellMeasured]
"""Naive attention and another kernel at one place."""


@dataclass(frozen=True, kw_only=True)
class Along:
    """What is looked at of a sweep: its lengths at one batch, or its batches at one length."""

    over: Over
    at: int

    def here(self, found: Sequence[Found]) -> list[Found]:
        """The cells that lie along it."""
        return [event for event in found if getattr(event, "batch" if self.over == "length" else "length") == self.at]

    def places(self, config: SweepConfig) -> list[int]:
        """Of the sweep, in order."""
        return sorted(config.lengths if self.over == "length" else config.batches)

    def cell(self, config: SweepConfig, backend: str | None, place: int) -> Cell:
        """The one at that place."""
        length, batch = (place, self.at) if self.over == "length" else (self.at, place)
        return cell(config, backend, length, batch)

    def named(self, place: int) -> str:
        """A place for sentences."""
        return f"{place:,} {UNITS[self.over]}"


def title(config: SweepConfig) -> str:
    """What a sweep measures, in a line."""
    return f"{config.what}, batch {_range(config.batches)}, {shape(config)}, {_range(config.lengths)} tokens"


def _range(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def labels(config: SweepConfig) -> list[str]:
    """What a sweep compares, as a legend says it."""
    return [cell(config, backend, 1).label for backend in contenders(config)]


def predicted(config: SweepConfig, along: Along, furthest: int | None = None) -> dict[str, dict[int, int]]:
    """Predicted bytes of each kernel, from the first place to the last (of the sweep, or another one)."""
    places = along.places(config)
    drawn = between(places[0], furthest or places[-1])
    found = {}
    for backend in contenders(config):
        at = {place: along.cell(config, backend, place) for place in drawn}
        found[at[drawn[0]].label] = {place: n for place, each in at.items() if (n := peak_bytes(each)) is not None}
    return found


def kept(config: SweepConfig, along: Along, points: Sequence[Point]) -> dict[tuple[str, str], dict[int, float]]:
    """What was recorded of the sweep's kernels and shape between its first place and its last, by kernel, machine and day."""
    places = along.places(config)
    found: dict[tuple[str, str], dict[int, float]] = {}
    for point in along.here([point for point in points if (point.what, point.shape) == (config.what, shape(config))]):
        place = getattr(point, along.over)
        if point.label in labels(config) and places[0] <= place <= places[-1]:
            found.setdefault((point.label, f"{point.hardware}, {point.date}"), {})[place] = point.value
    return {of: dict(sorted(values.items())) for of, values in found.items()}


def between(first: int, last: int) -> list[int]:
    """Numbers from first to last, evenly on a logarithmic axis."""
    steps = range(16 * PER_OCTAVE + 1)
    return sorted({min(round(first * 2 ** (step / PER_OCTAVE)), last) for step in steps} | {last})


# Sentences


def headline(config: SweepConfig, along: Along, measured: Sequence[CellMeasured]) -> str:
    """How much memory the first other kernel saves where there is most to save: measured, or else predicted."""
    others = _others(config)
    for other in others:
        for naive, flash in reversed(_pairs(config, along, other, measured)):
            if naive.peak_bytes and flash.peak_bytes:
                at = along.named(getattr(naive, along.over))
                return f"Measured at {at}: {memory_sentence(NAIVE, other, naive.peak_bytes, flash.peak_bytes)}"
    place = along.places(config)[-1]
    found = {each.label: peak_bytes(each) for name in contenders(config) if (each := along.cell(config, name, place))}
    naive_bytes = found.get(NAIVE)
    for other in others:
        if naive_bytes and (other_bytes := found[other]):
            return f"Predicted at {along.named(place)}: {memory_sentence(NAIVE, other, naive_bytes, other_bytes)}"
    return f"Choose {NAIVE} and another kernel to compare them."


def _others(config: SweepConfig) -> list[str]:
    return [label for label in labels(config) if label != NAIVE]


def _pairs(config: SweepConfig, along: Along, other: str, measured: Sequence[CellMeasured]) -> list[Pair]:
    found = {(event.label, getattr(event, along.over)): event for event in along.here(measured)}
    both = [(found.get((NAIVE, place)), found.get((other, place))) for place in along.places(config)]
    return [(naive, flash) for naive, flash in both if naive and flash]


def findings(config: SweepConfig, along: Along, measured: Sequence[CellMeasured]) -> list[str]:
    """What each other kernel costs in time, where it overtakes naive attention, and where only one of them ran."""
    said = []
    for other in _others(config):
        both = _pairs(config, along, other, measured)
        said += _time_findings(along, other, both) + _memory_findings(along, other, both)
    return said


def _memory_findings(along: Along, other: str, both: Sequence[Pair]) -> list[str]:
    known = [(getattr(naive, along.over), naive.peak_bytes / flash.peak_bytes) for naive, flash in both
             if naive.peak_bytes and flash.peak_bytes]  # fmt: skip
    saves = [place for place, ratio in known if ratio > 1 + EVEN]
    said = []
    if saves and saves[0] > known[0][0]:
        said.append(f"In memory, {other} saves from {along.named(saves[0])} on; below, the two take as much.")
    alone = [flash for naive, flash in both if naive.why_not and flash.peak_bytes]
    if alone:
        at = along.named(getattr(alone[0], along.over))
        said.append(f"At {at} {NAIVE} was not to be measured, {other} took {mib(alone[0].peak_bytes or 0)}.")
    return said


def memory_sentence(naive: str, other: str, naive_bytes: int, other_bytes: int) -> str:
    """How two peaks compare."""
    ratio = naive_bytes / other_bytes
    sizes = f"{mib(naive_bytes)} against {mib(other_bytes)}"
    if abs(ratio - 1) < EVEN:
        return f"{naive} and {other} take as much memory: {sizes}."
    if ratio < 1:
        return f"{other} takes {1 / ratio:.1f} times the memory of {naive}: {mib(other_bytes)} against {mib(naive_bytes)}."
    return f"{naive} takes {ratio:.1f} times the memory of {other}: {sizes}."


def _time_findings(along: Along, other: str, both: Sequence[Pair]) -> list[str]:
    known = [(naive, flash) for naive, flash in both if naive.median_s and flash.median_s]
    if not known:
        return []
    ends = [known[-1]] if len(known) == 1 else [known[0], known[-1]]
    verdicts = [f"at {along.named(getattr(naive, along.over))} {_faster(other, naive, flash)}" for naive, flash in ends]
    quiet = [pair for pair in known if disturbance(*pair) is None]
    return [f"In time, {', and '.join(verdicts)}{_crossing(along, quiet)}."]


def _crossing(along: Along, known: Sequence[Pair]) -> str:
    """Between which places the other kernel becomes the faster one, to stay so."""
    for (before, after), rest in zip(pairwise(known), range(1, len(known)), strict=True):
        if verdict(*before) < 1 and all(verdict(*pair) == 1 for pair in known[rest:]):
            first, last = (getattr(pair[0], along.over) for pair in (before, after))
            return f"; it becomes the faster one between {first:,} and {along.named(last)}"
    return ""


def verdict(naive: CellMeasured, other: CellMeasured) -> int:
    """1 if the other kernel is faster, -1 if it is slower; 0 where their bars touch, and from a busy machine."""
    ours, theirs = other.median_s or 0.0, naive.median_s or 0.0
    touch = abs(ours - theirs) <= ((other.spread_s or 0.0) + (naive.spread_s or 0.0)) / 2
    if touch or disturbance(naive, other) is not None:
        return 0
    return 1 if ours < theirs else -1


def unsure(config: SweepConfig, along: Along, measured: Sequence[CellMeasured]) -> set[tuple[str, int]]:
    """Kernels and places where there is no verdict on the time beside that of naive attention."""
    return {
        (other, getattr(naive, along.over))
        for other in _others(config)
        for naive, flash in _pairs(config, along, other, measured)
        if naive.median_s and flash.median_s and verdict(naive, flash) == 0
    }


def _faster(other: str, naive: CellMeasured, flash: CellMeasured) -> str:
    ours, theirs = flash.median_s or 0.0, naive.median_s or 0.0
    times = f"{milliseconds(ours)} against {milliseconds(theirs)}"
    if (disturbed := disturbance(naive, flash)) is not None:
        return f"there is no verdict on {other} and {NAIVE}, since {disturbed}"
    if verdict(naive, flash) == 0:
        return f"{other} and {NAIVE} cannot be told apart ({times}: as far apart as their own runs are, or less)"
    ratio = theirs / ours if ours < theirs else ours / theirs
    return f"{other} is {ratio:.1f} times {'faster' if ours < theirs else 'slower'} than {NAIVE} here ({times})"


def mib(n_bytes: int) -> str:
    """Memory for sentences."""
    return f"{n_bytes / MIB:,.0f} MiB" if n_bytes >= 10 * MIB else f"{n_bytes / MIB:.1f} MiB"


def milliseconds(seconds: float) -> str:
    """A time for sentences."""
    return f"{1e3 * seconds:,.0f} ms" if seconds >= 0.1 else f"{1e3 * seconds:.1f} ms"


# Tables


def table(config: SweepConfig, measured: Sequence[CellMeasured], missing: str) -> pd.DataFrame:
    """A row for each cell; `missing` says why one that has not been measured has no figures. Errors and shares in percent."""
    by_cell = {event.cell: event for event in measured}
    return pd.DataFrame([_row(each, by_cell.get(each), missing) for each in cells(_where(config, measured))])


def _where(config: SweepConfig, measured: Sequence[CellMeasured]) -> SweepConfig:
    """The sweep on the device it was measured on, which need not be the one that this machine would take."""
    device = measured[0].device if measured else config.device
    return replace(config, device=device)


def _row(each: Cell, event: CellMeasured | None, missing: str) -> dict[str, object]:
    expected = peak_bytes(each)
    peak = None if event is None else event.peak_bytes
    said = [missing, not_understood(each)] if event is None else remarks(event)
    return {
        "kernel": each.label,
        "tokens": each.length,
        "batch": each.batch,
        "predicted MiB": _mib(expected),
        "measured MiB": _mib(peak),
        "prediction is off by": None if expected is None or not peak else 100 * (expected / peak - 1),
        "median ms": None if event is None or event.median_s is None else 1e3 * event.median_s,
        "spread ms": None if event is None or event.spread_s is None else 1e3 * event.spread_s,
        "attention alone ms": None if event is None or event.attention_s is None else 1e3 * event.attention_s,
        "runs": None if event is None else event.n_repeats or None,
        "others used": None if event is None or event.others is None else 100 * event.others,
        "remarks": "; ".join(filter(None, said)) or None,
        "operator": None if event is None else event.kernel,
        "memory read from": None if event is None else event.source,
        "live tensors MiB": None if event is None else _mib(event.live_bytes),
        "reserved MiB": None if event is None else _mib(event.reserved_bytes),
    }


def _mib(n_bytes: int | None) -> float | None:
    return None if n_bytes is None else n_bytes / MIB


def cards(config: SweepConfig, along: Along) -> pd.DataFrame:
    """The longest length that fits on each card, as predicted; nothing where a card lacks what a backend needs."""
    on_card = replace(config, device="cuda")
    rows = []
    for card in CARDS.values():
        row: dict[str, object] = {"card": card.name}
        for backend in contenders(config):
            able = card.bfloat16 or config.dtype == "float32" or backend in (NAIVE, None)
            label = cell(on_card, backend, 1).label
            row[label] = fits(on_card, backend, along, card.memory_bytes) if able else "n/a: no fused kernel for bfloat16"
        rows.append(row)
    return pd.DataFrame(rows)


def fits(config: SweepConfig, backend: str | None, along: Along, n_bytes: int) -> str:
    """The longest length whose predicted peak is within `n_bytes`, at the batch that is looked at."""
    batch = along.at if along.over == "length" else max(config.batches)
    if peak_bytes(cell(config, backend, 1, batch)) is None:
        return "n/a: not predicted"
    low, high = 0, LONGEST + 1
    while high - low > 1:
        middle = (low + high) // 2
        expected = peak_bytes(cell(config, backend, middle, batch))
        low, high = (middle, high) if expected is not None and expected <= n_bytes else (low, middle)
    return "none" if low == 0 else f"{LONGEST:,} and more" if low == LONGEST else f"up to {low:,}"


def card_lines() -> dict[str, int]:
    """What each card has, those of one size under one name."""
    by_size: dict[int, list[str]] = {}
    for card in CARDS.values():
        by_size.setdefault(card.memory_bytes, []).append(card.name)
    return {" and ".join(names): size for size, names in by_size.items()}
