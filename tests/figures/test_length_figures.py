import pytest

from core.figures.lengths import Gains, Series, by_length, difference_by_length
from core.records import CalibrationError, Estimate, LengthRange, ReadingLimit
from core.statistics import Difference

EMPTY = LengthRange(name="1-32", n=0, accuracy=None, f1=None, calibration=None, cut=None)
FULL = LengthRange(
    name="1-32",
    n=50,
    accuracy=Estimate(value=0.9, low=0.79, high=0.96),
    f1=Estimate(value=0.5, low=0.31, high=0.71),
    calibration=CalibrationError(value=0.08, by_chance=0.1),
    cut=0.0,
)
LONG = LengthRange(
    name="over 32",
    n=1200,
    accuracy=Estimate(value=0.85, low=0.79, high=0.89),
    f1=None,
    calibration=CalibrationError(value=0.04, by_chance=0.02),
    cut=0.5,
)
MARKUP = "<b>a</b>"


def series(*rows: LengthRange, name: str = "model", **more) -> Series:
    return Series(name=name, model=0, rows=rows, **more)


def test_points_carry_their_intervals_and_numbers():
    (points,) = by_length([series(FULL, LONG)], "accuracy").data
    assert list(points.x) == [0, 1] and list(points.y) == [0.9, 0.85]
    assert points.error_y.array == pytest.approx([0.06, 0.04])
    assert points.error_y.arrayminus == pytest.approx([0.11, 0.06])
    assert [list(row) for row in points.customdata] == [["1-32", 50, 0.79, 0.96], ["over 32", 1200, 0.79, 0.89]]


def test_a_figure_that_is_not_known_is_not_drawn():
    (points,) = by_length([series(FULL, LONG)], "F1").data
    assert list(points.x) == [0] and list(points.y) == [0.5]
    assert points.error_y.array == pytest.approx([0.21])


def test_a_range_says_how_many_reviews_it_holds_or_that_there_are_none():
    axis = by_length([series(EMPTY, LONG), series(EMPTY, LONG)], "accuracy").layout.xaxis
    assert list(axis.ticktext) == ["1-32<br>no data", "over 32<br>n = 1,200"]
    assert list(axis.tickvals) == [0, 1] and list(axis.range) == [-0.5, 1.5]
    axis = by_length([series(EMPTY, LONG), series(FULL, LONG)], "accuracy").layout.xaxis
    assert list(axis.ticktext) == ["1-32<br>no data<br>n = 50", "over 32<br>n = 1,200"]


def test_models_stand_beside_each_other_within_their_range():
    chart = by_length([series(FULL, LONG, name=str(i)) for i in range(3)], "accuracy")
    places = [trace.x[0] for trace in chart.data]
    assert places == sorted(set(places)) and -0.5 < places[0] and places[-1] < 0.5 and sum(places) == pytest.approx(0)


def test_beside_a_calibration_error_stands_what_chance_makes_of_one():
    chance, errors = by_length([series(FULL, LONG)], "calibration error").data
    assert list(errors.y) == [0.08, 0.04] and errors.error_y.array is None
    assert list(chance.y) == [0.1, 0.02] and list(chance.error_y.arrayminus) == [0.1, 0.02]
    assert list(chance.error_y.array) == [0, 0] and chance.showlegend is False


def test_a_line_marks_what_a_model_reads_at_most():
    limit = ReadingLimit(words=189.3, place=0.8)
    chart = by_length([series(FULL, LONG, limit=limit), series(FULL, LONG)], "accuracy")
    (line,) = [trace for trace in chart.data if trace.mode == "lines"]
    assert list(line.x) == [0.8, 0.8] and list(line.y) == list(chart.layout.yaxis.range)
    assert line.name == "model reads up to about 189 words" and line.line.color == chart.data[0].marker.color


def test_another_set_of_reviews_is_hollow_and_names_are_text():
    chart = by_length([series(FULL, LONG, name=MARKUP), series(FULL, LONG, hollow=True)], "accuracy")
    assert [trace.marker.symbol for trace in chart.data] == ["circle", "circle-open"]
    assert chart.data[0].name == "&lt;b&gt;a&lt;/b&gt;"


@pytest.mark.parametrize(
    ("figure", "low", "form"), [("accuracy", 0.7, ".0%"), ("F1", 0.3, ".2f"), ("calibration error", 0, ".0%")]
)
def test_the_axis_holds_every_interval(figure, low, form):
    axis = by_length([series(FULL, LONG)], figure).layout.yaxis
    assert axis.tickformat == form and axis.range[0] == pytest.approx(low)
    assert axis.range[1] >= (1 if figure != "calibration error" else 0.1)


def test_without_any_review_there_is_an_empty_chart():
    for figure in ("accuracy", "F1", "calibration error"):
        chart = by_length([series(EMPTY)], figure)
        assert not any(trace.x for trace in chart.data) and list(chart.layout.xaxis.ticktext) == ["1-32<br>no data"]


def test_differences_are_in_points_and_filled_where_they_are_shown():
    shown = Difference(value=0.02, low=0.01, high=0.035, p=0.01, n=50)
    not_shown = Difference(value=-0.01, low=-0.03, high=0.01, p=0.4, n=1200)
    gains = [Gains(name=MARKUP, model=1, rows=[shown, not_shown, None])]
    chart = difference_by_length(["1-32", "33-96", "over 96"], gains, MARKUP)
    (points,) = chart.data
    assert points.y == pytest.approx((2, -1)) and points.error_y.array == pytest.approx([1.5, 2])
    assert points.error_y.arrayminus == pytest.approx([1, 2])
    assert list(points.marker.symbol) == ["diamond", "diamond-open"]
    assert list(chart.layout.xaxis.ticktext) == ["1-32<br>n = 50", "33-96<br>n = 1,200", "over 96<br>no data"]
    assert chart.layout.yaxis.title.text == "points above &lt;b&gt;a&lt;/b&gt;"
