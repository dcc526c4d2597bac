"""What stands around a chart."""

import plotly.graph_objects as go

TOOLS = 32
"""Pixels above a chart for Plotly's tools, which a touch screen always shows: nothing lies under them."""


def framed(figure: go.Figure, height: int, *, legend: bool = True) -> go.Figure:
    """The figure with its legend below it, where it may take as many lines as it needs."""
    below = dict(orientation="h", yref="container", y=0, yanchor="bottom", x=0, title=None)
    return figure.update_layout(legend=below, showlegend=legend, height=height, margin=dict(l=8, r=8, t=TOOLS, b=8))


def projected(figure: go.Figure) -> go.Figure:
    """The same for a projector: large signs and thick lines, to be read from the last row."""
    for trace in figure.data:
        if "lines" in (trace.mode or ""):
            trace.update(line_width=4)
        if trace.marker.size:
            trace.update(marker_size=1.6 * trace.marker.size)
    axis = dict(tickfont_size=20, title_font_size=22)
    return figure.update_xaxes(**axis).update_yaxes(**axis).update_layout(legend_font_size=20, height=680)
