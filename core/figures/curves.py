"""Training as curves."""

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
    "lr": ("learning rate", ".1e"),
    "gradient_norm": ("gradient norm", ".2f"),
    "largest_logit": ("largest attention logit", ".1f"),
    "non_finite": ("numbers of the gradient that are not finite", ",d"),
}
"""Title of the axis and format of each curve of `core.curves` that is drawn."""
DASHES = ("solid", "dash", "dot")
"""Lines beyond the colours are told apart by these."""
MARKED = 30
"""A curve of at most so many points shows them."""


def overlaid(
    found: Mapping[str, Curve], y_title: str, y_format: str, steps: tuple[int, int] | None = None, *, log: bool = False
) -> go.Figure:
    """A line for each name, over the step; `y_format` is d3's, such as ".1%". `steps`: the range that is shown."""
    figure = go.Figure([_line(number, name, curve, y_format) for number, (name, curve) in enumerate(found.items())])
    figure.update_xaxes(title="step", tickformat=",d", rangemode="tozero", range=steps)
    figure.update_yaxes(title=y_title, tickformat=y_format, type="log" if log else "linear", exponentformat="power")
    if y_format.endswith("%"):
        figure.update_yaxes(minallowed=0, maxallowed=1)
    return framed(figure, 280, legend=len(found) > 1)


def _line(number: int, name: str, curve: Curve, y_format: str) -> go.Scatter:
    color = CATEGORICAL[number % len(CATEGORICAL)]
    return go.Scatter(
        x=curve.steps,
        y=curve.values,
        name=literal(name),
        mode="lines+markers" if len(curve.steps) <= MARKED else "lines",
        line=dict(color=color, width=2, dash=DASHES[number // len(CATEGORICAL) % len(DASHES)]),
        marker=dict(color=color, size=6),
        hovertemplate=f"step %{{x:,d}}: %{{y:{y_format}}}<extra>%{{fullData.name}}</extra>",
    )
