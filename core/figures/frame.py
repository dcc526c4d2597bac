"""What stands around a chart."""

import plotly.graph_objects as go

TOOLS = 32
"""Pixels above a chart for Plotly's tools, which a touch screen always shows: nothing lies under them."""


def framed(figure: go.Figure, height: int, *, legend: bool = True) -> go.Figure:
    """The figure with its legend below it, where it may take as many lines as it needs."""
    below = dict(orientation="h", yref="container", y=0, yanchor="bottom", x=0, title=None)
    return figure.update_layout(legend=below, showlegend=legend, height=height, margin=dict(l=8, r=8, t=TOOLS, b=8))
