import pytest

from core.figures.lengths import accuracy_by_length
from core.records import Bucket

EMPTY = Bucket(name="1-32", n=0, accuracy=None, low=None, high=None)
FULL = Bucket(name="1-32", n=50, accuracy=0.9, low=0.79, high=0.96)
LONG = Bucket(name="over 32", n=200, accuracy=0.85, low=0.79, high=0.89)


def test_points_carry_their_intervals_and_numbers():
    (points,) = accuracy_by_length({"model": [FULL, LONG]}).data
    assert list(points.x) == ["1-32", "over 32"]
    assert list(points.y) == [0.9, 0.85]
    assert points.error_y.array == pytest.approx([0.06, 0.04])
    assert points.error_y.arrayminus == pytest.approx([0.11, 0.06])
    assert [row[0] for row in points.customdata] == [50, 200]


def test_a_range_without_reviews_is_named_and_not_drawn_as_zero():
    figure = accuracy_by_length({"model": [EMPTY, LONG]})
    assert list(figure.data[0].x) == ["over 32"]
    assert [(note.x, note.text) for note in figure.layout.annotations] == [("1-32", "no data")]
    assert list(figure.layout.xaxis.categoryarray) == ["1-32", "over 32"]
    assert list(figure.layout.xaxis.range) == [-0.5, 1.5]


def test_the_model_that_lacks_data_is_named_as_text():
    figure = accuracy_by_length({"<b>a</b>": [EMPTY, LONG], "other": [FULL, LONG]})
    assert figure.layout.annotations[0].text == "no data: &lt;b&gt;a&lt;/b&gt;"
    assert figure.data[0].name == "&lt;b&gt;a&lt;/b&gt;"


def test_axis_says_percent_and_holds_every_interval():
    axis = accuracy_by_length({"model": [FULL, LONG]}).layout.yaxis
    assert axis.tickformat == ".0%"
    assert axis.range[0] <= 0.79
    assert axis.range[1] >= 1
