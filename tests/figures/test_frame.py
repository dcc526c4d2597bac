import plotly.graph_objects as go

from core.figures.frame import TOOLS, framed


def test_a_legend_lies_below_its_chart_and_nothing_under_the_tools_above():
    layout = framed(go.Figure(go.Scatter(y=[1, 2], name="a")), 300).layout
    assert (layout.legend.yref, layout.legend.y, layout.legend.yanchor) == ("container", 0, "bottom")
    assert layout.margin.t == TOOLS and layout.height == 300 and layout.showlegend
    assert not framed(go.Figure(), 300, legend=False).layout.showlegend
