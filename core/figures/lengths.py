"""Accuracy against the length of a review."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from core.figures.colors import CATEGORICAL, SYMBOLS
from core.figures.frame import framed
from core.figures.labels import literal
from core.records import Bucket


def accuracy_by_length(buckets: Mapping[str, Sequence[Bucket]]) -> go.Figure:
    """One point for each model and range of lengths, with its 95 % interval; a range without reviews says so.

    `buckets` holds the same ranges in the same order for each model's name.
    """
    names = [bucket.name for bucket in next(iter(buckets.values()))]
    figure = go.Figure([_points(number, model, rows) for number, (model, rows) in enumerate(buckets.items())])
    for name in names:
        empty = [literal(model) for model, rows in buckets.items() if any(row.name == name and row.n == 0 for row in rows)]
        if empty:
            text = "no data" if len(empty) == len(buckets) else f"no data: {', '.join(empty)}"
            figure.add_annotation(x=name, y=0.04, yref="paper", text=text, showarrow=False)
    figure.update_xaxes(type="category", categoryarray=names, range=[-0.5, len(names) - 0.5], title="words in the review")
    figure.update_yaxes(tickformat=".0%", range=[_floor(buckets), 1.005], title="accuracy")
    return framed(figure, 420).update_layout(scattermode="group", scattergap=0.6)


def _points(number: int, model: str, rows: Sequence[Bucket]) -> go.Scatter:
    known = [row for row in rows if row.n]
    accuracy, low, high = (np.array([getattr(row, end) for row in known]) for end in ("accuracy", "low", "high"))
    return go.Scatter(
        x=[row.name for row in known],
        y=accuracy,
        error_y=dict(type="data", array=high - accuracy, arrayminus=accuracy - low, thickness=2, width=7),
        customdata=[[row.n, row.low, row.high] for row in known],
        mode="markers",
        marker=dict(size=11, color=CATEGORICAL[number % len(CATEGORICAL)], symbol=SYMBOLS[number % len(SYMBOLS)]),
        name=literal(model),
        hovertemplate="%{x} words: %{y:.1%}<br>95% interval %{customdata[1]:.1%} to %{customdata[2]:.1%}<br>"
        "n = %{customdata[0]:,}<extra>%{fullData.name}</extra>",
    )


def _floor(buckets: Mapping[str, Sequence[Bucket]]) -> float:
    """The axis begins at the last tenth below every interval: these are points, which need no zero to stand on."""
    lows = [row.low for rows in buckets.values() for row in rows if row.low is not None]
    return math.floor(10 * min(lows, default=0.0)) / 10
