"""Gradients over distance as a chart."""

from core.figures.claims import FLOOR, gradients_by_distance


def test_a_line_for_each_network_on_a_logarithm():
    figure = gradients_by_distance({"<b>a</b>": {0: 1.0, 20: 0.0}, "b": {0: 1.0, 20: 0.5}}, "tokens between")
    first, second = figure.data
    assert (first.name, tuple(first.x), tuple(first.y)) == ("&lt;b&gt;a&lt;/b&gt;", (0, 20), (1.0, FLOOR))
    assert tuple(second.y) == (1.0, 0.5) and second.marker.symbol != first.marker.symbol
    assert figure.layout.yaxis.type == "log" and figure.layout.xaxis.title.text == "tokens between"
