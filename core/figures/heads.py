"""Attention heads beside one another: two measures of each, and what a model is without it. Names count from 1."""

from collections.abc import Sequence

import plotly.graph_objects as go

from core.figures.colors import CATEGORICAL, SYMBOLS
from core.figures.frame import framed
from core.records import Estimate

HEIGHT = 420


def scatter(places: Sequence[tuple[int, int]], x: Sequence[float], y: Sequence[float], titles: tuple[str, str]) -> go.Figure:
    """A sign for each head, its layer and head beside it; a colour and a symbol for each layer. `titles` name the axes."""
    figure = go.Figure()
    for layer in sorted({layer for layer, _ in places}):
        of_layer = [i for i, place in enumerate(places) if place[0] == layer]
        figure.add_scatter(
            x=[x[i] for i in of_layer], y=[y[i] for i in of_layer], mode="markers+text", name=f"layer {layer + 1}",
            text=[f"{layer + 1}.{places[i][1] + 1}" for i in of_layer], textposition="top center",
            marker=dict(size=10, color=CATEGORICAL[layer % len(CATEGORICAL)], symbol=SYMBOLS[layer % len(SYMBOLS)]),
            customdata=[f"layer {layer + 1}, head {places[i][1] + 1}" for i in of_layer],
            hovertemplate=f"%{{customdata}}<br>{titles[0]}: %{{x:.3~g}}<br>{titles[1]}: %{{y:.3~g}}<extra></extra>",
        )  # fmt: skip
    figure.update_xaxes(title=titles[0], zeroline=False)
    figure.update_yaxes(title=titles[1], zeroline=False)
    return framed(figure, HEIGHT)


def accuracy_without(names: Sequence[str], without: Sequence[Estimate], whole: Estimate) -> go.Figure:
    """Accuracy without each head, with its interval, beside that with all of them, whose interval is a band."""
    values = [one.value for one in without]
    bars = dict(
        type="data", symmetric=False, thickness=2, width=5,
        array=[one.high - one.value for one in without], arrayminus=[one.value - one.low for one in without],
    )  # fmt: skip
    figure = go.Figure(go.Scatter(
        x=list(names), y=values, error_y=bars, mode="markers", name="without this head",
        marker=dict(size=9, color=CATEGORICAL[0]), customdata=[[one.low, one.high] for one in without],
        hovertemplate="without %{x}: %{y:.1%}<br>95% interval %{customdata[0]:.1%} to %{customdata[1]:.1%}<extra></extra>",
    ))  # fmt: skip
    figure.add_hrect(whole.low, whole.high, fillcolor="gray", opacity=0.18, line_width=0)
    figure.add_hline(whole.value, line=dict(width=1, color="gray"))
    figure.update_xaxes(type="category", title="head that is switched off: layer.head")
    figure.update_yaxes(tickformat=".0%", title="accuracy")
    return framed(figure, HEIGHT, legend=False)
