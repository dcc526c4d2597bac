"""What each attention backend takes for the same reviews, as bars."""

from collections.abc import Sequence
from typing import Literal

import plotly.graph_objects as go

from core.events import BackendMeasured
from core.figures.colors import CATEGORICAL
from core.figures.frame import framed
from core.figures.labels import literal

Cost = Literal["time", "peak memory"]
UNITS: dict[Cost, tuple[str, str, float, str]] = {
    "time": ("ms", "for all reviews, median", 1e3, "median_s"),
    "peak memory": ("MiB", "above what the process holds", 1 / 2**20, "peak_bytes"),
}
"""Unit, what it is of, the factor to it, and the field of `BackendMeasured`."""


def bars(found: Sequence[BackendMeasured], cost: Cost) -> go.Figure:
    """A bar for each backend that was measured; of times with half of the spread to each side."""
    unit, of, factor, field = UNITS[cost]
    known = [event for event in found if getattr(event, field) is not None]
    spread = [1e3 * (event.spread_s or 0.0) / 2 for event in known] if cost == "time" else None
    figure = go.Figure(go.Bar(
        y=[literal(event.backend) for event in known], x=[factor * getattr(event, field) for event in known], orientation="h",
        marker=dict(color=CATEGORICAL[list(UNITS).index(cost)]), hovertemplate=f"%{{y}}: %{{x:,.1f}} {unit}<extra></extra>",
        error_x=None if spread is None else dict(type="data", array=spread, thickness=2, width=6, color="gray"),
    ))  # fmt: skip
    figure.update_yaxes(autorange="reversed").update_xaxes(title=f"{unit} {of}", rangemode="tozero", tickformat=",~r")
    return framed(figure, 120 + 44 * len(known), legend=False)
