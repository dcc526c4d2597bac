"""What a kernel could reach at best: its operations for each byte, under what a machine computes and copies."""

from collections.abc import Mapping

import plotly.graph_objects as go

from core.figures.colors import CATEGORICAL, SYMBOLS
from core.figures.frame import framed
from core.figures.labels import literal
from core.records import Ceilings

GIGA = 1e9


def roofline(work: Mapping[str, tuple[float, float]], ceilings: Ceilings) -> go.Figure:
    """The machine's two lines (doi:10.1145/1498765.1498785), and on them each kernel by its operations and bytes moved.

    Left of the edge a kernel waits for memory, right of it for arithmetic.
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
        figure.add_trace(
            go.Scatter(
                x=[place],
                y=[_reached(place, ceilings)],
                mode="markers",
                marker=dict(size=13, color=CATEGORICAL[number % len(CATEGORICAL)], symbol=SYMBOLS[number % len(SYMBOLS)]),
                name=f"{literal(label)}, at best",
                hovertemplate="%{x:,.1f} operations a byte: %{y:,.1f} billion a second at best<extra>%{fullData.name}</extra>",
            )
        )
    figure.update_xaxes(title="operations for each byte moved", type="log", tickformat=",~r", dtick=1)
    figure.update_yaxes(title="billion operations a second", type="log", tickformat=",~r", dtick="D2")
    return framed(figure, 340)


def _reached(intensity: float, ceilings: Ceilings) -> float:
    return min(ceilings.operations_per_s, intensity * ceilings.bytes_per_s) / GIGA
