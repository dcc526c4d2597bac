"""Memory and time against the number of tokens, or of reviews at once.

Dotted lines are predicted, points are measured here, and dashed lines were recorded, here or elsewhere.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Literal

import plotly.graph_objects as go

from core.events import CellMeasured
from core.figures.colors import CATEGORICAL, SYMBOLS, ink
from core.figures.frame import framed
from core.figures.labels import literal

MIB = 2**20
GIB = 2**30
Over = Literal["length", "batch"]
"""What a chart goes along, by the name that a cell has for it."""
UNITS = {"length": "tokens", "batch": "reviews at once"}
Bytes = Mapping[str, Mapping[int, int]]
"""By kernel, bytes at each place along the chart."""
Kept = Mapping[tuple[str, str], Mapping[int, float]]
"""By kernel and where and when it was recorded, bytes or seconds at each place."""
NONE: Kept = MappingProxyType({})
ATTENTION = "attention weights kept"
"""The part of a breakdown that flash attention does without."""


def memory_along(over: Over, predicted: Bytes, measured: Sequence[CellMeasured], kept: Kept = NONE, *, log: bool) -> go.Figure:
    """A dotted line for what was predicted of each kernel, and a point for each peak that was measured, in MiB."""
    figure = go.Figure()
    for number, (label, values) in enumerate(predicted.items()):
        if values:
            figure.add_trace(_predicted(number, label, values, over, MIB, "MiB"))
    for number, label in enumerate(predicted):
        cells = [cell for cell in measured if cell.label == label and cell.peak_bytes is not None]
        if cells:
            values = [(cell.peak_bytes or 0) / MIB for cell in cells]
            figure.add_trace(_points(number, label, over, cells, values, "MiB", ",.1f"))
    figure.add_traces([*_recorded(list(predicted), kept, over, MIB, "MiB")])
    return _axes(figure, over, _places(over, predicted, measured, kept), "peak memory (MiB)", log)


def time_along(
    over: Over,
    labels: Sequence[str],
    measured: Sequence[CellMeasured],
    kept: Kept = NONE,
    *,
    unsure: Collection[tuple[str, int]] = (),
    log: bool,
) -> go.Figure:
    """A point for the median of each cell, in milliseconds; bars reach as far as the runs of the cell were apart.

    `unsure`: kernels and places without a verdict; their points stand in a ring.
    """
    figure = go.Figure()
    for number, label in enumerate(labels):
        cells = [cell for cell in measured if cell.label == label and cell.median_s is not None]
        if cells:
            trace = _points(number, label, over, cells, [1e3 * (cell.median_s or 0) for cell in cells], "ms", ",.2f")
            above = [1e3 * (cell.spread_s or 0) / 2 for cell in cells]
            below = [min(half, 0.9 * median) for half, median in zip(above, trace.y, strict=True)]  # no time is below 0
            bars = dict(type="data", array=above, arrayminus=below, symmetric=False, thickness=1.5)
            trace.update(mode="lines+markers", line=dict(width=1.5), error_y=bars)
            figure.add_trace(trace)
    ringed = [cell for cell in measured if (cell.label, getattr(cell, over)) in unsure]
    if ringed:
        figure.add_trace(_rings([getattr(cell, over) for cell in ringed], [1e3 * (cell.median_s or 0) for cell in ringed]))
    figure.add_traces([*_recorded(labels, kept, over, 1e-3, "ms")])
    return _axes(figure, over, _places(over, {}, measured, kept), "time of one run (ms)", log)


def memory_on_cards(predicted: Bytes, cards: Mapping[str, int]) -> go.Figure:
    """Predicted memory over lengths in GiB, on logarithmic axes, and a level line for what each card has."""
    figure = go.Figure(
        [_predicted(number, label, values, "length", GIB, "GiB") for number, (label, values) in enumerate(predicted.items())]
    )
    lengths = _places("length", predicted, [], {})
    for number, (name, n_bytes) in enumerate(cards.items()):
        figure.add_trace(_level(name, n_bytes / GIB, lengths, number / len(cards)))
    return _axes(figure, "length", lengths, "peak memory (GiB)", log=True)


def score_matrices(lengths: Sequence[int], tile: int) -> go.Figure:
    """The weights of one head over one review, to scale: a square for each length, of which naive attention keeps all.

    Beside the largest, what flash attention keeps: one number for each row. The filled square is a tile, which it works on.
    """
    largest = max(lengths)
    figure = go.Figure([_square(length, largest, tile) for length in sorted(lengths, reverse=True)])
    edge = min(tile, largest)
    figure.add_trace(_outline([0, edge, edge, 0, 0], [0, 0, edge, edge, 0], f"a tile of {edge:,} × {edge:,}", ink(0.8)))
    row_sums = go.Scatter(
        x=[1.08 * largest] * 2, y=[0, largest], mode="lines", line=dict(color=CATEGORICAL[0], width=2), showlegend=False,
        name=f"{largest:,} × 1", hovertemplate=f"flash keeps {largest:,} × 1: {_size(4 * largest)}<extra></extra>",
    )  # fmt: skip
    figure.add_trace(row_sums)
    figure.add_annotation(
        x=1.1 * largest, y=largest / 2, showarrow=False, xanchor="left", align="left",
        text=f"flash keeps<br>{largest:,} × 1<br>{_size(4 * largest)}",
    )  # fmt: skip
    figure.update_xaxes(visible=False, range=[-0.01 * largest, 1.5 * largest], constrain="domain")
    figure.update_yaxes(visible=False, range=[1.01 * largest, -0.01 * largest], scaleanchor="x", constrain="domain")
    return framed(figure, 380, legend=False)


def _square(length: int, largest: int, tile: int) -> go.Scatter:
    n_bytes = 4 * length**2
    trace = _outline(
        [0, length, length, 0, 0], [0, 0, length, length, 0], f"{length:,} × {length:,}: {_size(n_bytes)}", ink(0.12)
    )
    if 4 * length >= largest and length > tile:  # in a smaller one there is no room to write
        trace.update(mode="lines+text", text=["", "", f"{length:,}² <br>{_size(n_bytes)} ", "", ""], textposition="top left")
    return trace


def _outline(x: list[int], y: list[int], name: str, fill: str) -> go.Scatter:
    return go.Scatter(
        x=x, y=y, mode="lines", fill="toself", fillcolor=fill, line=dict(color=ink(1.0), width=1), name=name, showlegend=False,
        hoveron="fills", hoverinfo="name", hoverlabel=dict(namelength=-1),
    )  # fmt: skip


def _size(n_bytes: int) -> str:
    return f"{n_bytes / MIB:,.0f} MiB" if n_bytes >= MIB else f"{n_bytes / 1024:,.0f} KiB"


def breakdown(parts: Mapping[str, Mapping[str, int]]) -> go.Figure:
    """A bar for each kernel, of the parts that its predicted peak consists of, in MiB; attention's own in the colour of it."""
    names = list(dict.fromkeys(name for own in parts.values() for name in own))
    others = [name for name in names if name != ATTENTION]
    figure = go.Figure()
    for name in names:
        color = ink(0.9) if name == ATTENTION else CATEGORICAL[others.index(name) % len(CATEGORICAL)]
        figure.add_trace(
            go.Bar(
                y=[literal(label) for label in parts],
                x=[own.get(name, 0) / MIB for own in parts.values()],
                name=literal(name),
                orientation="h",
                marker=dict(color=color, pattern=dict(shape="/" if name in others[len(CATEGORICAL) :] else "")),
                hovertemplate="%{fullData.name}: %{x:,.1f} MiB<extra>%{y}</extra>",
            )
        )
    figure.update_layout(barmode="stack").update_yaxes(autorange="reversed")
    figure.update_xaxes(title="peak memory, predicted (MiB)", tickformat=",~r")
    return framed(figure, 170 + 50 * len(parts)).update_layout(legend_traceorder="normal")


def _level(name: str, value: float, lengths: Sequence[int], place: float) -> go.Scatter:
    """Its name stands at that share of the line, so that levels that are close do not write over one another."""
    written = int(place * len(lengths))
    return go.Scatter(
        x=lengths,
        y=[value] * len(lengths),
        mode="lines+text",
        line=dict(color="gray", width=1),
        text=["" if i != written else literal(name) for i in range(len(lengths))],
        textposition="top right",
        textfont=dict(size=11),
        showlegend=False,
        hovertemplate=f"{literal(name)}: %{{y:,.1f}} GiB<extra></extra>",
    )


def _predicted(number: int, label: str, values: Mapping[int, int], over: Over, unit: int, unit_name: str) -> go.Scatter:
    return go.Scatter(
        x=list(values),
        y=[n_bytes / unit for n_bytes in values.values()],
        mode="lines",
        line=dict(color=CATEGORICAL[number % len(CATEGORICAL)], width=2, dash="dot"),
        name=f"{literal(label)}, predicted",
        hovertemplate=f"%{{x:,}} {UNITS[over]}: %{{y:,.2f}} {unit_name}<extra>%{{fullData.name}}</extra>",
    )


def _points(
    number: int, label: str, over: Over, cells: Sequence[CellMeasured], values: list[float], unit: str, form: str
) -> go.Scatter:
    return go.Scatter(
        x=[getattr(cell, over) for cell in cells],
        y=values,
        mode="markers",
        marker=dict(color=CATEGORICAL[number % len(CATEGORICAL)], size=10, symbol=SYMBOLS[number % len(SYMBOLS)]),
        name=f"{literal(label)}, measured",
        customdata=[[literal(cell.kernel or ""), cell.n_repeats] for cell in cells],
        hovertemplate=f"%{{x:,}} {UNITS[over]}: %{{y:{form}}} {unit}<br>%{{customdata[0]}}<extra>%{{fullData.name}}</extra>",
    )


def _recorded(labels: Sequence[str], kept: Kept, over: Over, unit: float | int, unit_name: str) -> Iterator[go.Scatter]:
    """A dashed line, in the colour of its kernel, for each machine and day."""
    for (label, origin), values in kept.items():
        number = labels.index(label)
        color, symbol = CATEGORICAL[number % len(CATEGORICAL)], SYMBOLS[number % len(SYMBOLS)]
        yield go.Scatter(
            x=list(values),
            y=[value / unit for value in values.values()],
            mode="lines+markers",
            line=dict(color=color, width=1, dash="dash"),
            marker=dict(color=color, size=5, symbol=f"{symbol}-open"),
            name=f"{literal(label)}, recorded,<br>{literal(origin)}",  # in one line it would be wider than a telephone
            hovertemplate=f"%{{x:,}} {UNITS[over]}: %{{y:,.2f}} {unit_name}<extra>%{{fullData.name}}</extra>",
            hoverlabel=dict(namelength=-1),
        )


def _rings(x: list[int], y: list[float]) -> go.Scatter:
    marker = dict(symbol="circle-open", size=20, color="gray", line=dict(width=2))
    return go.Scatter(x=x, y=y, mode="markers", marker=marker, name="no verdict", hoverinfo="skip")


def _places(over: Over, predicted: Bytes, measured: Sequence[CellMeasured], kept: Kept) -> list[int]:
    drawn = {place for values in (*predicted.values(), *kept.values()) for place in values}
    return sorted(drawn | {getattr(cell, over) for cell in measured})


def _axes(figure: go.Figure, over: Over, places: Sequence[int], y_title: str, log: bool) -> go.Figure:
    last = places[-1] if places else 1
    if log:
        first = places[0] if places else 1
        doubled = [2**power for power in range(17) if first <= 2**power <= last]
        edges = [math.log10(first / 1.15), math.log10(last * 1.15)]
        ticks = dict(type="log", range=edges, tickvals=doubled if len(doubled) > 1 else list(places))
        decades = _decades(figure)
        values = dict(type="log", dtick="D1" if decades < 0.7 else "D2" if decades < 2.5 else 1)
    else:
        ticks = dict(type="linear", range=[0, last * 1.05])
        values = dict(type="linear", rangemode="tozero")
    figure.update_xaxes(title=UNITS[over], tickformat=",d", **ticks).update_yaxes(title=y_title, tickformat=",~r", **values)
    return framed(figure, 340 + 12 * len(figure.data))  # on a narrow page each name has a line of the legend


def _decades(figure: go.Figure) -> float:
    """How many powers of ten the values span: few leave room for ticks at 2 and 5, or at each digit."""
    values = [value for trace in figure.to_dict()["data"] for value in trace["y"]]
    return math.log10(max(values) / min(values)) if values else 0.0
