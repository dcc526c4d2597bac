"""Gradients over distance, of what claims about memory of networks are made."""

import plotly.graph_objects as go

from core.figures.colors import CATEGORICAL, SYMBOLS
from core.figures.frame import framed
from core.figures.labels import literal

FLOOR = 1e-8
"""Shares below this are drawn here: a logarithm has no zero."""


def gradients_by_distance(found: dict[str, dict[int, float]], x_title: str) -> go.Figure:
    """A line for each network: how much of the gradient at the nearest token is left, by tokens between."""
    figure = go.Figure([_line(number, name, shares) for number, (name, shares) in enumerate(found.items())])
    figure.add_hline(y=0.01, line=dict(dash="dot", width=1, color="#808080"))
    figure.update_xaxes(title=x_title)
    figure.update_yaxes(title="share of the nearest token's", type="log", exponentformat="power", dtick=1)
    return framed(figure, 360)


def _line(number: int, name: str, shares: dict[int, float]) -> go.Scatter:
    color = CATEGORICAL[number % len(CATEGORICAL)]
    return go.Scatter(
        x=list(shares),
        y=[max(share, FLOOR) for share in shares.values()],
        name=literal(name),
        mode="lines+markers",
        line=dict(color=color, width=2),
        marker=dict(color=color, size=7, symbol=SYMBOLS[number % len(SYMBOLS)]),
        hovertemplate="%{x} tokens: %{y:.2g}<extra>%{fullData.name}</extra>",
    )
