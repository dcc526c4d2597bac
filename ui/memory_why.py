"""Why kernels differ: what attention moves and keeps, where the bytes are, and what fits where."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd

from core.catalog import CARDS
from core.config import SweepConfig
from core.events import Ceilings, CellMeasured
from core.jobs import device_of
from core.measure import predict
from core.measure.others import disturbance
from core.measure.planner import device_memory, largest_batch, rule_of_thumb
from core.measure.process import gib
from core.measure.roofline import Work, attainable_s, attention_work
from core.measure.sweep import cell, contenders
from ui.memory import NAIVE, Along, mib

GIGA = 1e9


def matrix_sentence(config: SweepConfig, chosen: Along) -> str:
    """How large all matrices of a cell are together."""
    length = max(config.lengths) if chosen.over == "length" else chosen.at
    batch = chosen.at if chosen.over == "length" else max(config.batches)
    n = batch * config.n_heads * config.n_layers
    return (
        f"a weight for each pair of tokens, {length:,} × {length:,}. There are {n:,} such matrices here ({batch} reviews, "
        f"{config.n_heads} heads, layers: {config.n_layers}): {mib(4 * n * length**2)}."
    )


def work(config: SweepConfig, chosen: Along, place: int) -> dict[str, Work]:
    """What attention has to do at one place, by kernel."""
    every = [chosen.cell(config, backend, place) for backend in contenders(config) if backend is not None]
    return {each.label: attention_work(each) for each in every}


def work_sentence(work: Mapping[str, Work]) -> str:
    """How the bytes of naive attention compare to those of the first other kernel."""
    other = next((label for label in work if label != NAIVE), None)
    if NAIVE not in work or other is None:
        return "operations and bytes of each kernel."
    ratio = work[NAIVE].bytes_moved / work[other].bytes_moved
    share = work[other].operations / work[NAIVE].operations
    moves = f"{NAIVE} moves {ratio:.1f} times the bytes of {other}."
    if share == 1:
        return f"{moves} Both compute as much."
    return (
        f"{moves} {other} computes {share:.2f} times as much as {NAIVE}, since {other} keeps no weights and makes them again."
    )


def attention_s(chosen: Along, place: int, measured: Sequence[CellMeasured]) -> dict[str, float]:
    """Seconds of attention alone at one place, by kernel, where they were measured."""
    return {label: event.attention_s for label, event in _at(chosen, place, measured).items() if event.attention_s}


def _at(chosen: Along, place: int, measured: Sequence[CellMeasured]) -> dict[str, CellMeasured]:
    return {event.label: event for event in chosen.here(measured) if getattr(event, chosen.over) == place}


def work_table(
    work: Mapping[str, Work], ceilings: Ceilings | None, chosen: Along, place: int, measured: Sequence[CellMeasured]
) -> pd.DataFrame:
    """A row for each kernel: what attention alone has to do, could take at best and took, and what the whole cell took."""
    found, alone = _at(chosen, place, measured), attention_s(chosen, place, measured)
    rows = []
    for label, one in work.items():
        row = {
            "kernel": label,
            "billion operations": f"{one.operations / GIGA:,.2f}",
            "moved": mib(round(one.bytes_moved)),
            "operations a byte": f"{one.operations / one.bytes_moved:,.1f}",
        }
        if ceilings is not None:
            bound = one.operations / ceilings.operations_per_s > one.bytes_moved / ceilings.bytes_per_s
            row["waits for"] = "arithmetic" if bound else "memory"
            row["attention at best, ms"] = _ms(attainable_s(one, ceilings))
        event = found.get(label)
        row["attention measured, ms"] = _ms(alone.get(label))
        row["whole cell measured, ms"] = _ms(event and event.median_s)
        row["remarks"] = (event and disturbance(event)) or ""
        rows.append(row)
    return pd.DataFrame(rows)


def _ms(seconds: float | None) -> str:
    return f"{1e3 * seconds:,.2f}" if seconds else "n/a"


def work_note(ceilings: Ceilings | None, chosen: Along, place: int, measured: Sequence[CellMeasured]) -> str:
    """Where operations, bytes and ceilings come from, and whether the machine was quiet."""
    counted = "Operations and bytes are counted from the algorithms (arXiv:2205.14135), for memory without caches."
    if ceilings is None:
        return f"{counted} What the machine reaches at best is measured at the start of a sweep."
    disturbed = disturbance(*_at(chosen, place, measured).values())
    verdict = "" if disturbed is None else f" No verdict on what attention reached: {disturbed}."
    return (
        f"{counted}{verdict} The machine's two lines are measured: {ceilings.operations_per_s / GIGA:,.0f} billion operations "
        f"a second in a product of large matrices ({ceilings.dtype}), {ceilings.bytes_per_s / GIGA:,.1f} GB a second in a "
        f"copy; {ceilings.hardware}, {ceilings.date}."
    )


def parts(config: SweepConfig, chosen: Along, place: int) -> dict[str, dict[str, int]]:
    """What the predicted peak of each kernel consists of; without those that are not understood."""
    found = {each.label: predict.breakdown(each) for name in contenders(config) if (each := chosen.cell(config, name, place))}
    return {label: own for label, own in found.items() if own is not None}


def largest_batches(config: SweepConfig, length: int) -> pd.DataFrame:
    """A row for this machine and each card: the largest batch by prediction and by article C's rule."""
    here = device_of(config.device)
    devices = [("this machine's memory" if here == "cpu" else "this machine's GPU", here, device_memory(here))]
    devices += [(card.name, "cuda", card.memory_bytes) for card in CARDS.values()]
    rows = []
    for name, device, n_bytes in devices:
        if n_bytes is None:
            continue
        row: dict[str, object] = {"device": name, "memory": gib(n_bytes)}
        for backend in contenders(config):
            each = replace(cell(config, backend, length), device=device)
            row[f"{each.label}, predicted"] = _written(largest_batch(each, n_bytes))
        row["rule of thumb"] = _written(rule_of_thumb(length, config.n_heads * config.d_head, n_bytes))
        rows.append(row)
    return pd.DataFrame(rows)


def _written(batch: int | None) -> str:
    return "not predicted" if batch is None else f"{batch:,}" if batch else "none"


def batches_measured(config: SweepConfig, length: int, measured: Sequence[CellMeasured]) -> list[str]:
    """What this machine showed of it: the largest batch that was measured, and the smallest that did not fit."""
    said = []
    for backend in contenders(config):
        label = cell(config, backend, length).label
        own = [event for event in measured if (event.label, event.length) == (label, length)]
        ran = [event for event in own if event.peak_bytes is not None]
        refused = [event for event in own if event.why_not and event.why_not.startswith("does not fit")]
        if ran:
            largest = max(ran, key=lambda event: event.batch)
            expected = predict.peak_bytes(largest.cell)
            beside = "" if expected is None else f", predicted {mib(expected)}"
            said.append(f"Measured here: {label} ran at batch {largest.batch:,} with {mib(largest.peak_bytes or 0)}{beside}.")
        if refused:
            smallest = min(refused, key=lambda event: event.batch)
            said.append(f"{label} at batch {smallest.batch:,} {smallest.why_not}.")
    return said
