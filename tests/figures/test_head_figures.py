import pytest

from core.figures.heads import accuracy_without, scatter
from core.records import Estimate


def test_each_head_stands_at_its_two_numbers_in_the_sign_of_its_layer():
    figure = scatter([(0, 0), (1, 0), (0, 1)], [1.0, 2.0, 3.0], [-1.0, -2.0, -3.0], ("across", "upward"))
    first, second = figure.data
    assert (first.name, second.name) == ("layer 1", "layer 2")
    assert (tuple(first.text), tuple(first.x), tuple(first.y)) == (("1.1", "1.2"), (1.0, 3.0), (-1.0, -3.0))
    assert (tuple(second.text), tuple(second.x), tuple(second.y)) == (("2.1",), (2.0,), (-2.0,))
    assert first.marker.symbol != second.marker.symbol and first.marker.color != second.marker.color
    assert (figure.layout.xaxis.title.text, figure.layout.yaxis.title.text) == ("across", "upward")


def test_bars_reach_from_end_to_end_and_the_band_is_of_all_heads():
    without = [Estimate(value=0.8, low=0.7, high=0.85), Estimate(value=0.6, low=0.5, high=0.7)]
    figure = accuracy_without(["1.1", "1.2"], without, Estimate(value=0.9, low=0.88, high=0.93))
    (points,) = figure.data
    assert (tuple(points.x), tuple(points.y)) == (("1.1", "1.2"), (0.8, 0.6))
    assert tuple(points.error_y.array) == pytest.approx((0.05, 0.1))
    assert tuple(points.error_y.arrayminus) == pytest.approx((0.1, 0.1))
    band, line = figure.layout.shapes
    assert (band.y0, band.y1, line.y0) == (0.88, 0.93, 0.9)
