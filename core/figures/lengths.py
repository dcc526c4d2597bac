"""How good models are against the length of a review. Range of lengths number i, from 0, is the place i on the axis."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import plotly.graph_objects as go

from core.figures.colors import CATEGORICAL, SYMBOLS
from core.figures.frame import framed
from core.figures.labels import literal
from core.records import Estimate, LengthRange, ReadingLimit
from core.statistics import Difference

Figure = Literal["accuracy", "F1", "calibration error"]
FIGURES: tuple[Figure, ...] = get_args(Figure)
FORMS = {"accuracy": ".1%", "F1": ".3f", "calibration error": ".1%"}
SPREAD = 0.6
"""Of the width of a range on the axis, what the points of all series take together."""
HEIGHT = 440


@dataclass(frozen=True, kw_only=True)
class Series:
    """A model on a set of reviews."""

    name: str
    model: int
    """Its place among the models, of which colour and symbol are."""
    rows: Sequence[LengthRange]
    limit: ReadingLimit | None = None
    hollow: bool = False
    """For another set of reviews than that of the other series."""


@dataclass(frozen=True, kw_only=True)
class Gains:
    """How much more accurate a model is than the baseline in each range; None where there is no review."""

    name: str
    model: int
    rows: Sequence[Difference | None]


def by_length(series: Sequence[Series], figure: Figure) -> go.Figure:
    """One point for each series and range of lengths, all of the same ranges; below a range stands how many reviews it holds.

    Bars are 95% intervals; beside a calibration error, the bar is what chance alone makes of one. A dotted line is the
    length beyond which a model does not read a review to its end.
    """
    chart = go.Figure()
    for place, one in enumerate(series):
        chart.add_traces(_errors(one, _offset(place, series)) if figure == "calibration error" else
                         [_estimates(one, _offset(place, series), figure)])  # fmt: skip
    span = _span(series, figure)
    chart.add_traces([_limit(one, one.limit, span) for one in series if one.limit is not None])
    chart.update_xaxes(**_ticks([row.name for row in series[0].rows], [[row.n for row in one.rows] for one in series]))
    chart.update_yaxes(tickformat=".2f" if figure == "F1" else ".0%", range=span, title=figure)
    return framed(chart, HEIGHT)


def difference_by_length(names: Sequence[str], gains: Sequence[Gains], baseline: str) -> go.Figure:
    """How much more accurate models are than the baseline, in points; a point is hollow where it may be chance."""
    chart = go.Figure([_gains(one, _offset(place, gains), names) for place, one in enumerate(gains)])
    chart.add_hline(0, line=dict(width=1, color="gray"))
    chart.update_xaxes(**_ticks(names, [[0 if row is None else row.n for row in one.rows] for one in gains]))
    chart.update_yaxes(tickformat="+.0f", title=f"points above {literal(baseline)}", zeroline=False)
    return framed(chart, HEIGHT)


def _estimates(series: Series, offset: float, figure: Figure) -> go.Scatter:
    known = [(i, row, at) for i, row in enumerate(series.rows) if (at := _estimate(row, figure)) is not None]
    low, high = ([getattr(at, end) for _, _, at in known] for end in ("low", "high"))
    form = FORMS[figure]
    return _points(
        series,
        [i + offset for i, _, _ in known],
        [at.value for _, _, at in known],
        error_y=_bars([at.value for _, _, at in known], low, high),
        customdata=[[row.name, row.n, at.low, at.high] for _, row, at in known],
        hovertemplate=f"%{{customdata[0]}} words: %{{y:{form}}}<br>95% interval %{{customdata[2]:{form}}} to "
        f"%{{customdata[3]:{form}}}<br>n = %{{customdata[1]:,}}<extra>%{{fullData.name}}</extra>",
    )


def _estimate(row: LengthRange, figure: Figure) -> Estimate | None:
    return row.accuracy if figure == "accuracy" else row.f1


def _errors(series: Series, offset: float) -> list[go.Scatter]:
    """The calibration errors, and a bar to the left of each as high as chance alone reaches."""
    known = [(i, row, row.calibration) for i, row in enumerate(series.rows) if row.calibration is not None]
    x = [i + offset for i, _, _ in known]
    chance = [error.by_chance for _, _, error in known]
    bars = go.Scatter(
        x=x, y=chance, error_y=_bars(chance, [0.0] * len(x), chance) | dict(width=0, thickness=9), mode="markers",
        marker=dict(color=_color(series.model), size=0.1), opacity=0.3, hoverinfo="skip", showlegend=False,
        name=f"{literal(series.name)} by chance",
    )  # fmt: skip
    points = _points(
        series,
        x,
        [error.value for _, _, error in known],
        customdata=[[row.name, row.n, error.by_chance] for _, row, error in known],
        hovertemplate="%{customdata[0]} words: %{y:.1%}<br>by chance up to %{customdata[2]:.1%}<br>n = %{customdata[1]:,}"
        "<extra>%{fullData.name}</extra>",
    )
    return [bars, points]


def _gains(gains: Gains, offset: float, names: Sequence[str]) -> go.Scatter:
    known = [(i, row) for i, row in enumerate(gains.rows) if row is not None]
    value, low, high = ([100 * getattr(row, end) for _, row in known] for end in ("value", "low", "high"))
    trace = _points(
        gains,
        [i + offset for i, _ in known],
        value,
        error_y=_bars(value, low, high),
        customdata=[[names[i], row.n, 100 * row.low, 100 * row.high, row.p] for i, row in known],
        hovertemplate="%{customdata[0]} words: %{y:+.1f} points<br>95% interval %{customdata[2]:+.1f} to %{customdata[3]:+.1f}"
        "<br>p = %{customdata[4]:.3f}, n = %{customdata[1]:,}<extra>%{fullData.name}</extra>",
    )
    return trace.update(marker_symbol=[_symbol(gains.model, hollow=not row.is_shown) for _, row in known])


def _points(series: Series | Gains, x: Sequence[float], y: Sequence[float], **more: Any) -> go.Scatter:
    hollow = isinstance(series, Series) and series.hollow
    marker = dict(size=11, color=_color(series.model), symbol=_symbol(series.model, hollow=hollow), line=dict(width=2))
    return go.Scatter(x=x, y=y, mode="markers", marker=marker, name=literal(series.name), **more)


def _bars(value: Sequence[float], low: Sequence[float], high: Sequence[float]) -> dict[str, Any]:
    return dict(
        type="data",
        symmetric=False,
        array=[top - middle for middle, top in zip(value, high, strict=True)],
        arrayminus=[middle - bottom for middle, bottom in zip(value, low, strict=True)],
        thickness=2,
        width=6,
    )


def _limit(series: Series, limit: ReadingLimit, span: Sequence[float]) -> go.Scatter:
    name = f"{literal(series.name)} reads up to about {limit.words:,.0f} words"
    line = dict(color=_color(series.model), width=2, dash="dot")
    return go.Scatter(x=[limit.place] * 2, y=list(span), mode="lines", line=line, name=name, hoverinfo="name")


def _color(model: int) -> str:
    return CATEGORICAL[model % len(CATEGORICAL)]


def _symbol(model: int, *, hollow: bool) -> str:
    return SYMBOLS[model % len(SYMBOLS)] + ("-open" if hollow else "")


def _offset(place: int, series: Sequence[object]) -> float:
    """Where the points of a series stand beside the middle of a range, so that they do not hide those of another."""
    return SPREAD * ((place + 0.5) / len(series) - 0.5)


def _ticks(names: Sequence[str], counts: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Each range with the numbers of reviews that it holds, of which series of the same reviews have one together."""
    held = [list(dict.fromkeys(own)) for own in zip(*counts, strict=True)]
    texts = ["<br>".join([name, *(f"n = {n:,}" if n else "no data" for n in ns)]) for name, ns in zip(names, held, strict=True)]
    return dict(
        tickvals=list(range(len(names))), ticktext=texts, range=[-0.5, len(names) - 0.5], title="words in the review",
        zeroline=False, showgrid=False,
    )  # fmt: skip


def _span(series: Sequence[Series], figure: Figure) -> list[float]:
    """The axis of a share begins at the last tenth below every interval: these are points, which need no zero to stand on."""
    rows = [row for one in series for row in one.rows]
    if figure == "calibration error":
        ends = [max(row.calibration.value, row.calibration.by_chance) for row in rows if row.calibration is not None]
        return [0.0, 1.1 * max(ends, default=1.0)]
    lows = [at.low for row in rows if (at := _estimate(row, figure)) is not None]
    return [math.floor(10 * min(lows, default=0.0)) / 10, 1.005]
