"""Memory and time against the number of tokens: lines are predicted, points are measured."""

import math
from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from core.figures.colors import CATEGORICAL, SYMBOLS
from core.figures.frame import framed
from core.figures.labels import literal
from core.records import CellMeasured

MIB = 2**20
GIB = 2**30
Bytes = Mapping[str, Mapping[int, int]]
"""By backend, bytes at each length."""


def memory_by_length(predicted: Bytes, measured: Sequence[CellMeasured], *, log: bool) -> go.Figure:
    """A dotted line for what was predicted of each backend, and a point for each peak that was measured, in MiB."""
    figure = go.Figure()
    for number, (backend, values) in enumerate(predicted.items()):
        figure.add_trace(_predicted(number, backend, values, MIB, "MiB"))
    for number, backend in enumerate(predicted):
        cells = [cell for cell in measured if cell.backend == backend and cell.peak_bytes is not None]
        if cells:
            figure.add_trace(_points(number, backend, cells, [(cell.peak_bytes or 0) / MIB for cell in cells], "MiB", ",.1f"))
    return _axes(figure, _lengths(predicted, measured), "peak memory (MiB)", log)


def time_by_length(backends: Sequence[str], measured: Sequence[CellMeasured], *, log: bool) -> go.Figure:
    """A point for the median of each cell, in milliseconds; bars reach as far as the runs of the cell were apart."""
    figure = go.Figure()
    for number, backend in enumerate(backends):
        cells = [cell for cell in measured if cell.backend == backend and cell.median_s is not None]
        if cells:
            trace = _points(number, backend, cells, [1e3 * (cell.median_s or 0) for cell in cells], "ms", ",.2f")
            spread = [1e3 * (cell.spread_s or 0) / 2 for cell in cells]
            trace.update(mode="lines+markers", line=dict(width=1.5), error_y=dict(type="data", array=spread, thickness=1.5))
            figure.add_trace(trace)
    return _axes(figure, _lengths({}, measured), "time of one run (ms)", log)


def memory_on_cards(predicted: Bytes, cards: Mapping[str, int]) -> go.Figure:
    """Predicted memory over lengths in GiB, on logarithmic axes, and a level line for what each card has."""
    figure = go.Figure(
        [_predicted(number, backend, values, GIB, "GiB") for number, (backend, values) in enumerate(predicted.items())]
    )
    lengths = _lengths(predicted, [])
    for number, (name, n_bytes) in enumerate(cards.items()):
        figure.add_trace(_level(name, n_bytes / GIB, lengths, number / len(cards)))
    return _axes(figure, lengths, "peak memory (GiB)", log=True)


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


def _predicted(number: int, backend: str, values: Mapping[int, int], unit: int, unit_name: str) -> go.Scatter:
    return go.Scatter(
        x=list(values),
        y=[n_bytes / unit for n_bytes in values.values()],
        mode="lines",
        line=dict(color=CATEGORICAL[number % len(CATEGORICAL)], width=2, dash="dot"),
        name=f"{literal(backend)}, predicted",
        hovertemplate=f"%{{x:,}} tokens: %{{y:,.2f}} {unit_name}<extra>%{{fullData.name}}</extra>",
    )


def _points(number: int, backend: str, cells: Sequence[CellMeasured], values: list[float], unit: str, form: str) -> go.Scatter:
    return go.Scatter(
        x=[cell.length for cell in cells],
        y=values,
        mode="markers",
        marker=dict(color=CATEGORICAL[number % len(CATEGORICAL)], size=10, symbol=SYMBOLS[number % len(SYMBOLS)]),
        name=f"{literal(backend)}, measured",
        customdata=[[literal(cell.kernel or ""), cell.n_repeats] for cell in cells],
        hovertemplate=f"%{{x:,}} tokens: %{{y:{form}}} {unit}<br>%{{customdata[0]}}<extra>%{{fullData.name}}</extra>",
    )


def _lengths(predicted: Bytes, measured: Sequence[CellMeasured]) -> list[int]:
    return sorted({length for values in predicted.values() for length in values} | {cell.length for cell in measured})


def _axes(figure: go.Figure, lengths: Sequence[int], y_title: str, log: bool) -> go.Figure:
    last = lengths[-1] if lengths else 1
    if log:
        first = lengths[0] if lengths else 1
        doubled = [2**power for power in range(17) if first <= 2**power <= last]
        edges = [math.log10(first / 1.15), math.log10(last * 1.15)]
        ticks = dict(type="log", range=edges, tickvals=doubled if len(doubled) > 1 else list(lengths))
        values = dict(type="log", dtick="D2" if _decades(figure) < 2.5 else 1)
    else:
        ticks = dict(type="linear", range=[0, last * 1.05])
        values = dict(type="linear", rangemode="tozero")
    figure.update_xaxes(title="tokens", tickformat=",d", **ticks).update_yaxes(title=y_title, tickformat=",~r", **values)
    return framed(figure, 380)


def _decades(figure: go.Figure) -> float:
    """How many powers of ten the values span: few leave room for ticks at 2 and 5."""
    values = [value for trace in figure.to_dict()["data"] for value in trace["y"]]
    return math.log10(max(values) / min(values)) if values else 0.0
