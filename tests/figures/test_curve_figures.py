import pytest

from core.curves import Curve
from core.figures.colors import CATEGORICAL
from core.figures.curves import MARKED, overlaid

SHORT = Curve(steps=(1, 5, 9), values=(0.7, 0.5, 0.4))
LONG = Curve(steps=tuple(range(MARKED + 1)), values=(0.1,) * (MARKED + 1))


def test_each_run_is_a_line_with_its_own_points():
    figure = overlaid({"a": SHORT, "b": LONG}, "loss", ".3f")
    assert [list(line.y) for line in figure.data] == [list(SHORT.values), list(LONG.values)]
    assert [line.mode for line in figure.data] == ["lines+markers", "lines"]
    assert figure.layout.xaxis.range is None and figure.layout.showlegend


def test_a_chosen_range_of_steps_is_the_axis():
    assert list(overlaid({"a": SHORT}, "loss", ".3f", steps=(2, 7)).layout.xaxis.range) == [2, 7]


def test_names_are_text():
    assert overlaid({"<b>a</b> $x$": SHORT}, "loss", ".3f").data[0].name == "&lt;b&gt;a&lt;/b&gt; &#36;x&#36;"


def test_more_runs_than_colours_are_told_apart():
    n = 2 * len(CATEGORICAL) + 1
    figure = overlaid({str(i): SHORT for i in range(n)}, "loss", ".3f")
    assert len({(line.line.color, line.line.dash) for line in figure.data}) == n


@pytest.mark.parametrize("y_format", [".1%", ".3f"])
def test_figures_are_plain_numbers(y_format):
    figure = overlaid({"a": SHORT}, "accuracy", y_format)
    assert figure.layout.yaxis.tickformat == y_format and y_format in figure.data[0].hovertemplate


@pytest.mark.parametrize(("values", "axis"), [((0.001, 0.001), (0, 0.002)), ((0.7,), (0, 1.4)), ((0.0, 0.0), (0, 1))])
def test_one_value_stands_in_the_middle_of_an_axis_from_zero(values, axis):
    figure = overlaid({"a": Curve(steps=tuple(range(len(values))), values=values)}, "learning rate", ".1e")
    assert tuple(figure.layout.yaxis.range) == axis
    assert overlaid({"a": SHORT}, "loss", ".3f").layout.yaxis.range is None


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_a_value_that_is_no_number_has_no_axis_of_its_own(value):
    assert overlaid({"a": Curve(steps=(1,), values=(value,))}, "loss", ".3f").layout.yaxis.range is None


def test_a_point_at_a_hundred_percent_is_within_the_axis():
    axis = overlaid({"a": Curve(steps=(1, 2), values=(0.0, 1.0))}, "accuracy", ".1%").layout.yaxis
    assert axis.minallowed < 0 and 1 < axis.maxallowed < 1.1


def test_where_a_run_went_on_is_marked():
    marks = overlaid({"a": SHORT}, "loss", ".3f", resumed=(3, 7)).layout.shapes
    assert [(mark.x0, mark.x1, mark.yref, mark.label.text) for mark in marks] == [
        (3, 3, "y domain", "resumed"),
        (7, 7, "y domain", "resumed"),
    ]
