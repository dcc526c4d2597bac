"""Ablations against their bases."""

from collections.abc import Mapping

import plotly.graph_objects as go

from core.figures.colors import CATEGORICAL
from core.figures.frame import framed
from core.figures.labels import literal
from core.statistics import Difference

ROW = 30
"""Pixels of an ablation."""
AROUND = 110
"""Pixels of axis, title and tools."""
SHOWN, OTHER = CATEGORICAL[3], CATEGORICAL[0]


def differences(found: Mapping[str, Difference]) -> go.Figure:
    """The difference of each ablation to its base in points of accuracy, with its 95% interval: a filled point where it is
    more than chance, a hollow one where none is shown. The first is on top."""
    traces = [_points({name: one for name, one in found.items() if one.is_shown == shown}, shown) for shown in (True, False)]
    figure = go.Figure([trace for trace in traces if trace.x])
    figure.add_vline(0, line=dict(color="gray", width=1), layer="below")
    figure.update_yaxes(
        type="category", categoryorder="array", categoryarray=[literal(name) for name in found], autorange="reversed",
        tickmode="linear", dtick=1,
    )  # fmt: skip
    figure.update_xaxes(title="points against the base", tickformat="+,.1~f", zeroline=False)
    return framed(figure, AROUND + ROW * len(found))


def _points(found: Mapping[str, Difference], shown: bool) -> go.Scatter:
    values = [100 * one.value for one in found.values()]
    color = SHOWN if shown else OTHER
    return go.Scatter(
        x=values,
        y=[literal(name) for name in found],
        name="more than chance" if shown else "no difference shown",
        mode="markers",
        marker=dict(color=color, size=10, symbol="circle" if shown else "circle-open", line=dict(color=color, width=2)),
        error_x=dict(
            array=[100 * one.high - value for one, value in zip(found.values(), values, strict=True)],
            arrayminus=[value - 100 * one.low for one, value in zip(found.values(), values, strict=True)],
            color=color, thickness=2, width=5,
        ),
        customdata=[[100 * one.low, 100 * one.high, one.p, one.n] for one in found.values()],
        hovertemplate="%{y}: %{x:+.1f} points, 95% between %{customdata[0]:+.1f} and %{customdata[1]:+.1f}, "
        "p = %{customdata[2]:.3f}, %{customdata[3]} seeds<extra></extra>",
    )  # fmt: skip
