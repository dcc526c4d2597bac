"""Whether models are right as often as they say, and what a threshold finds."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Bool, Float

from core.figures.colors import CATEGORICAL, SYMBOLS
from core.figures.frame import framed
from core.figures.labels import literal
from core.records import CalibrationBin

HEIGHT = 440


def calibration_curve(found: Mapping[str, Sequence[CalibrationBin]]) -> go.Figure:
    """For each bin of confidence, how often its answers are right; on the dotted line a model is right as often as it says."""
    least = min(bins[0].low for bins in found.values())
    line = dict(color="gray", width=1.5, dash="dot")
    chart = go.Figure(
        [go.Scatter(x=[least, 1], y=[least, 1], mode="lines", line=line, name="as often as it says", hoverinfo="skip")]
    )
    chart.add_traces([_curve(number, model, bins) for number, (model, bins) in enumerate(found.items())])
    chart.update_xaxes(title="confidence in the answer", tickformat=".0%", range=[least - 0.01, 1.01])
    chart.update_yaxes(title="accuracy", tickformat=".0%", range=[0, 1.02])
    return framed(chart, HEIGHT)


def _curve(number: int, model: str, bins: Sequence[CalibrationBin]) -> go.Scatter:
    known = [(one, one.accuracy) for one in bins if one.accuracy is not None]
    color = CATEGORICAL[number % len(CATEGORICAL)]
    return go.Scatter(
        x=[one.confidence for one, _ in known],
        y=[right.value for _, right in known],
        error_y=dict(
            type="data",
            symmetric=False,
            array=[right.high - right.value for _, right in known],
            arrayminus=[right.value - right.low for _, right in known],
            thickness=1.5,
            width=4,
        ),
        customdata=[[one.n, one.low, one.high, right.low, right.high] for one, right in known],
        mode="lines+markers",
        line=dict(color=color, width=1.5),
        marker=dict(size=9, symbol=SYMBOLS[number % len(SYMBOLS)]),
        name=literal(model),
        hovertemplate="sure by %{customdata[1]:.0%} to %{customdata[2]:.0%}, %{x:.1%} on average<br>right: %{y:.1%} "
        "(%{customdata[3]:.1%} to %{customdata[4]:.1%})<br>n = %{customdata[0]:,}<extra>%{fullData.name}</extra>",
    )


def confidence_histogram(confidence: Float[np.ndarray, "n"], correct: Bool[np.ndarray, "n"], n_classes: int) -> go.Figure:
    """How many answers were given with which confidence, the wrong ones on top of the right ones."""
    edges = np.linspace(1 / n_classes, 1, 21)
    middle, width = (edges[:-1] + edges[1:]) / 2, edges[1] - edges[0]
    chart = go.Figure()
    for name, color, chosen in (("right", CATEGORICAL[0], correct), ("wrong", CATEGORICAL[3], ~correct)):
        counts, _ = np.histogram(confidence[chosen], edges)
        chart.add_trace(
            go.Bar(
                x=middle, y=counts, width=width, name=name, marker=dict(color=color, line=dict(width=0)),
                customdata=np.stack([edges[:-1], edges[1:]], 1),
                hovertemplate="sure by %{customdata[0]:.1%} to %{customdata[1]:.1%}: %{y:,} %{fullData.name}<extra></extra>",
            )
        )  # fmt: skip
    chart.update_xaxes(title="confidence in the answer", tickformat=".0%")
    chart.update_yaxes(title="reviews", tickformat=",d")
    return framed(chart, HEIGHT).update_layout(barmode="stack", bargap=0)


def threshold_curve(
    thresholds: Float[np.ndarray, "n"], found: Mapping[str, Sequence[float | None]], chosen: float, class_name: str
) -> go.Figure:
    """Figures such as precision and recall at each threshold; a line stands where one is chosen. None is a gap."""
    chart = go.Figure(
        [
            go.Scatter(
                x=thresholds,
                y=list(values),
                mode="lines",
                line=dict(color=CATEGORICAL[number], width=2, dash=("solid", "dash", "dot")[number]),
                name=name,
                hovertemplate="from %{x:.0%} on: %{y:.1%}<extra>%{fullData.name}</extra>",
            )
            for number, (name, values) in enumerate(found.items())
        ]
    )
    chart.add_vline(chosen, line=dict(width=1, color="gray"))
    chart.update_xaxes(title=f"probability of {literal(class_name)} asked for", tickformat=".0%", range=[0, 1])
    chart.update_yaxes(tickformat=".0%", range=[0, 1.02])
    return framed(chart, HEIGHT)
