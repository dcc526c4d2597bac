"""Training as curves."""

import math
from collections.abc import Mapping

import plotly.graph_objects as go

from core.curves import Curve
from core.figures.colors import CATEGORICAL
from core.figures.frame import framed
from core.figures.labels import literal

AXES = {
    "loss": ("training loss (nats)", ".2f"),
    "val_loss": ("validation loss (nats)", ".2f"),
    "val_accuracy": ("validation accuracy", ".1%"),
    "lr": ("learning rate", ".2~g"),
    "gradient_norm": ("gradient norm", ".2f"),
    "largest_logit": ("largest attention logit", ".1f"),
    "non_finite": ("gradients not finite", ",d"),
}
"""Title of the axis and format of each curve of `core.curves` that is drawn."""
DASHES = ("solid", "dash", "dot")
"""Lines beyond the colours are told apart by these."""
MARKED = 30
"""A curve of at most so many points shows them."""
SHARES = (-0.02, 1.02)
"""The widest axis of a fraction: a point at 0% or 100% is drawn whole."""
MARK = "#808890"
"""Of what is no curve."""
WILD, WILD_FORMAT = 1_000.0, ".3~g"
"""No training in its senses reaches so much; beyond it values are drawn on a logarithmic axis, and read in this format."""


def overlaid(
    found: Mapping[str, Curve], y_title: str, y_format: str, steps: tuple[int, int] | None = None, step_name: str = "step"
) -> go.Figure:
    """A line for each name, over the step or what else `step_name` says, and a mark where another process went on.

    `y_format`, of a value that is pointed at, is d3's, such as ".1%"; ticks have as many digits as tell them apart. `steps`:
    the range that is shown. Of values that went wild the axis is logarithmic, if none is 0, and says so.
    """
    values = [value for curve in found.values() for value in curve.values if math.isfinite(value)]
    wild = max(values, default=0.0) > WILD
    y_format = WILD_FORMAT if wild else y_format
    figure = go.Figure([_line(number, name, curve, y_format, step_name) for number, (name, curve) in enumerate(found.items())])
    figure.update_xaxes(title=step_name, tickformat=",d", rangemode="tozero", range=steps)
    figure.update_yaxes(title=y_title, exponentformat="power", minexponent=5, range=_around_one_value(found))
    if wild and min(values) > 0:
        figure.update_yaxes(title=f"{y_title}, log scale", type="log", nticks=6)
    if y_format.endswith("%"):
        figure.update_yaxes(tickformat=y_format, minallowed=SHARES[0], maxallowed=SHARES[1])
    _mark(figure, found)
    return framed(figure, 280, legend=len(found) > 1)


def _around_one_value(found: Mapping[str, Curve]) -> tuple[float, float] | None:
    """From 0 to twice the value, where there is but one: Plotly would show it between one less and one more."""
    values = {value for curve in found.values() for value in curve.values}
    if len(values) != 1:
        return None
    value = values.pop()
    return (0.0, 2 * value or 1.0) if 0 <= value < math.inf else None


def _mark(figure: go.Figure, found: Mapping[str, Curve]) -> None:
    """Where runs went on: a line in the colour of its curve, or in that of none where it is of all of them."""
    colors: dict[int, list[str]] = {}
    for number, curve in enumerate(found.values()):
        for step in curve.resumed:
            colors.setdefault(step, []).append(_color(number))
    for step, own in colors.items():
        color = own[0] if len(own) == 1 < len(found) else MARK
        word = dict(text="resumed", textposition="end", xanchor="right", yanchor="top", font=dict(size=11, color=color))
        figure.add_vline(step, line=dict(color=color, width=1, dash="dot"), layer="below", label=word)


def _color(number: int) -> str:
    return CATEGORICAL[number % len(CATEGORICAL)]


def _line(number: int, name: str, curve: Curve, y_format: str, step_name: str) -> go.Scatter:
    color = _color(number)
    return go.Scatter(
        x=curve.steps,
        y=curve.values,
        name=literal(name),
        mode="lines+markers" if len(curve.steps) <= MARKED else "lines",
        line=dict(color=color, width=2, dash=DASHES[number // len(CATEGORICAL) % len(DASHES)]),
        marker=dict(color=color, size=6),
        hovertemplate=f"{step_name} %{{x:,d}}: %{{y:{y_format}}}<extra>%{{fullData.name}}</extra>",
    )
