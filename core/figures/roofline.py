"""What a kernel could reach and reached: its operations for each byte, under what a machine computes and copies."""

from collections.abc import Mapping
from types import MappingProxyType

import plotly.graph_objects as go

from core.events import Ceilings
from core.figures.colors import CATEGORICAL, SYMBOLS
from core.figures.frame import framed
from core.figures.labels import literal

GIGA = 1e9


def roofline(
    work: Mapping[str, tuple[float, float]], ceilings: Ceilings, seconds: Mapping[str, float] = MappingProxyType({})
) -> go.Figure:
    """The machine's two lines (doi:10.1145/1498765.1498785), and on them each kernel by its operations and bytes moved.

    Left of the edge a kernel waits for memory, right of it for arithmetic. Below the line an open sign stands where the
    kernel came to in its `seconds`.
    """
    edge = ceilings.operations_per_s / ceilings.bytes_per_s
    places = {label: operations / n_bytes for label, (operations, n_bytes) in work.items() if n_bytes}
    ends = [min([edge, *places.values()]) / 4, edge, max([edge, *places.values()]) * 4]
    figure = go.Figure(
        go.Scatter(
            x=ends,
            y=[_reached(place, ceilings) for place in ends],
            mode="lines",
            line=dict(color="gray", width=2),
            name="this machine, measured",
            hovertemplate="%{x:,.1f} operations a byte: %{y:,.1f} billion a second<extra>%{fullData.name}</extra>",
        )
    )
    for number, (label, place) in enumerate(places.items()):
        figure.add_trace(_sign(number, f"{label}, at best", place, _reached(place, ceilings), ""))
        if label in seconds:
            figure.add_trace(_sign(number, f"{label}, measured", place, work[label][0] / seconds[label] / GIGA, "-open"))
    figure.update_xaxes(title="operations for each byte moved", type="log", tickformat=",~r", dtick=1)
    figure.update_yaxes(title="billion operations a second", type="log", tickformat=",~r", dtick="D2")
    return framed(figure, 340)


def _sign(number: int, name: str, place: float, rate: float, look: str) -> go.Scatter:
    symbol = SYMBOLS[number % len(SYMBOLS)] + look
    return go.Scatter(
        x=[place],
        y=[rate],
        mode="markers",
        marker=dict(size=13, color=CATEGORICAL[number % len(CATEGORICAL)], symbol=symbol, line=dict(width=2)),
        name=literal(name),
        hovertemplate="%{x:,.1f} operations a byte: %{y:,.1f} billion a second<extra>%{fullData.name}</extra>",
    )


def _reached(intensity: float, ceilings: Ceilings) -> float:
    return min(ceilings.operations_per_s, intensity * ceilings.bytes_per_s) / GIGA
