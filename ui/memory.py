"""Measured and predicted cells as tables and sentences."""

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from core.catalog import CARDS
from core.config import LONGEST, SweepConfig
from core.measure.predict import peak_bytes
from core.measure.sweep import cell, cells
from core.records import Cell, CellMeasured

NAIVE = "eager"
"""The backend that the others are held against."""
PER_OCTAVE = 4
"""Points of a predicted line between a length and its double."""
MIB = 2**20


def title(config: SweepConfig) -> str:
    """What a sweep measures, in a line."""
    layers = f"{config.n_layers} layer{'s' if config.n_layers > 1 else ''}"
    return (
        f"{config.what}, batch {config.batches[0]}, {config.n_heads} × {config.d_head}, {layers}, {config.dtype}, "
        f"{min(config.lengths):,} to {max(config.lengths):,} tokens"
    )


def predicted(config: SweepConfig, longest: int | None = None) -> dict[str, dict[int, int]]:
    """Predicted bytes of each backend, from the shortest length to the longest (of the sweep, or another one)."""
    lengths = between(min(config.lengths), longest or max(config.lengths))
    found = {name: {length: peak_bytes(cell(config, name, length)) for length in lengths} for name in config.backends}
    return {
        name: {length: n for length, n in values.items() if n is not None}
        for name, values in found.items()
    }  # fmt: skip


def between(first: int, last: int) -> list[int]:
    """Lengths from first to last, evenly on a logarithmic axis."""
    steps = range(16 * PER_OCTAVE + 1)
    return sorted({min(round(first * 2 ** (step / PER_OCTAVE)), last) for step in steps} | {last})


def findings(config: SweepConfig, measured: Sequence[CellMeasured]) -> list[str]:
    """What flash saves and what it costs at the longest length where both were measured, and where only one of them ran."""
    by_cell = {(event.backend, event.length): event for event in measured}
    said = []
    for other in (name for name in config.backends if name != NAIVE):
        both = [
            (by_cell[NAIVE, length], by_cell[other, length])
            for length in sorted(config.lengths)
            if (NAIVE, length) in by_cell and (other, length) in by_cell
        ]
        said += _memory_findings(other, both) + _time_findings(other, both)
    return said


def _memory_findings(other: str, both: Sequence[tuple[CellMeasured, CellMeasured]]) -> list[str]:
    known = [(naive, flash) for naive, flash in both if naive.peak_bytes and flash.peak_bytes]
    said = []
    if known:
        naive, flash = known[-1]
        said.append(
            f"At {naive.length:,} tokens " + memory_sentence(NAIVE, other, naive.peak_bytes or 0, flash.peak_bytes or 1)
        )
    alone = [flash for naive, flash in both if naive.why_not and flash.peak_bytes]
    if alone:
        said.append(
            f"At {alone[0].length:,} tokens {NAIVE} was not to be measured, {other} took {mib(alone[0].peak_bytes or 0)}."
        )
    return said


def memory_sentence(naive: str, other: str, naive_bytes: int, other_bytes: int) -> str:
    """How two peaks compare."""
    ratio = naive_bytes / other_bytes
    sizes = f"{mib(naive_bytes)} against {mib(other_bytes)}"
    if 0.95 < ratio < 1.05:
        return f"{naive} and {other} take as much memory: {sizes}."
    return f"{naive} takes {ratio:.1f} times the memory of {other}: {sizes}."


def _time_findings(other: str, both: Sequence[tuple[CellMeasured, CellMeasured]]) -> list[str]:
    known = [(naive, flash) for naive, flash in both if naive.median_s and flash.median_s]
    if not known:
        return []
    ends = [known[-1]] if len(known) == 1 else [known[0], known[-1]]
    verdicts = [f"at {naive.length:,} tokens {_faster(other, naive, flash)}" for naive, flash in ends]
    return [f"In time, {' and '.join(verdicts)}."]


def _faster(other: str, naive: CellMeasured, flash: CellMeasured) -> str:
    ours, theirs = flash.median_s or 0.0, naive.median_s or 0.0
    times = f"{milliseconds(ours)} against {milliseconds(theirs)}"
    if abs(ours - theirs) <= ((flash.spread_s or 0.0) + (naive.spread_s or 0.0)) / 2:
        return f"{other} and {NAIVE} cannot be told apart ({times}, less than their runs vary)"
    ratio = theirs / ours if ours < theirs else ours / theirs
    return f"{other} is {ratio:.1f} times {'faster' if ours < theirs else 'slower'} than {NAIVE} here ({times})"


def mib(n_bytes: int) -> str:
    """Memory for sentences."""
    return f"{n_bytes / MIB:,.0f} MiB" if n_bytes >= 10 * MIB else f"{n_bytes / MIB:.1f} MiB"


def milliseconds(seconds: float) -> str:
    """A time for sentences."""
    return f"{1e3 * seconds:,.0f} ms" if seconds >= 0.1 else f"{1e3 * seconds:.1f} ms"


def prediction_finding(config: SweepConfig) -> str | None:
    """The same of what was predicted, at the longest length; None where there are not two backends to compare."""
    length = max(config.lengths)
    found = {name: peak_bytes(cell(config, name, length)) for name in config.backends}
    others = [name for name in config.backends if name != NAIVE]
    if not others or found.get(NAIVE) is None or found[others[0]] is None:
        return None
    return f"Predicted at {length:,} tokens: " + memory_sentence(NAIVE, others[0], found[NAIVE] or 0, found[others[0]] or 1)


def table(config: SweepConfig, measured: Sequence[CellMeasured], missing: str) -> pd.DataFrame:
    """A row for each cell; `missing` says why one that has not been measured has no figures. Errors in percent."""
    by_cell = {event.cell: event for event in measured}
    return pd.DataFrame([_row(each, by_cell.get(each), missing) for each in cells(_where(config, measured))])


def _where(config: SweepConfig, measured: Sequence[CellMeasured]) -> SweepConfig:
    """The sweep on the device it was measured on, which need not be the one that this machine would take."""
    device = measured[0].device if measured else config.device
    return replace(config, device=device)


def _row(each: Cell, event: CellMeasured | None, missing: str) -> dict[str, object]:
    expected = peak_bytes(each)
    peak = None if event is None else event.peak_bytes
    return {
        "backend": each.backend,
        "tokens": each.length,
        "predicted MiB": None if expected is None else expected / MIB,
        "measured MiB": None if peak is None else peak / MIB,
        "prediction is off by": None if expected is None or not peak else 100 * (expected / peak - 1),
        "median ms": None if event is None or event.median_s is None else 1e3 * event.median_s,
        "spread ms": None if event is None or event.spread_s is None else 1e3 * event.spread_s,
        "runs": None if event is None else event.n_repeats or None,
        "why not": missing if event is None else event.why_not,
        "kernel": None if event is None else event.kernel,
        "memory read from": None if event is None else event.source,
    }


def cards(config: SweepConfig) -> pd.DataFrame:
    """The longest length that fits on each card, as predicted; nothing where a card lacks what a backend needs."""
    on_card = replace(config, device="cuda")
    rows = []
    for card in CARDS.values():
        row: dict[str, object] = {"card": card.name}
        for name in config.backends:
            able = card.bfloat16 or config.dtype != "bfloat16" or name == NAIVE
            row[name] = fits(on_card, name, card.memory_bytes) if able else "n/a: no fused kernel for bfloat16"
        rows.append(row)
    return pd.DataFrame(rows)


def fits(config: SweepConfig, backend: str, n_bytes: int) -> str:
    """The longest length whose predicted peak is within `n_bytes`."""
    if peak_bytes(cell(config, backend, 1)) is None:
        return "n/a: not predicted"
    low, high = 0, LONGEST + 1
    while high - low > 1:
        middle = (low + high) // 2
        expected = peak_bytes(cell(config, backend, middle))
        low, high = (middle, high) if expected is not None and expected <= n_bytes else (low, middle)
    return "none" if low == 0 else f"{LONGEST:,} and more" if low == LONGEST else f"up to {low:,}"


def card_lines() -> dict[str, int]:
    """What each card has, those of one size under one name."""
    by_size: dict[int, list[str]] = {}
    for card in CARDS.values():
        by_size.setdefault(card.memory_bytes, []).append(card.name)
    return {" and ".join(names): size for size, names in by_size.items()}
