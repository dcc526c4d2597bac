from dataclasses import replace

import pytest

from core.curves import Curve
from core.figures.colors import CATEGORICAL
from core.figures.curves import MARK, MARKED, overlaid

SHORT = Curve(steps=(1, 5, 9), values=(0.7, 0.5, 0.4))
LONG = Curve(steps=tuple(range(MARKED + 1)), values=(0.1,) * (MARKED + 1))


def test_each_run_is_a_line_with_its_own_points():
    figure = overlaid({"a": SHORT, "b": LONG}, "loss", ".3f")
    assert [list(line.y) for line in figure.data] == [list(SHORT.values), list(LONG.values)]
    assert [line.mode for line in figure.data] == ["lines+markers", "lines"]
    assert figure.layout.xaxis.range is None and figure.layout.showlegend


def test_a_chosen_range_of_steps_is_the_axis():
    assert list(overlaid({"a": SHORT}, "loss", ".3f", steps=(2, 7)).layout.xaxis.range) == [2, 7]


def test_a_linear_model_has_fits_for_steps():
    figure = overlaid({"a": SHORT}, "accuracy", ".1%", step_name="fit")
    assert figure.layout.xaxis.title.text == "fit" and figure.data[0].hovertemplate.startswith("fit ")
    assert overlaid({"a": SHORT}, "accuracy", ".1%").layout.xaxis.title.text == "step"


def test_names_are_text():
    assert overlaid({"<b>a</b> $x$": SHORT}, "loss", ".3f").data[0].name == "&lt;b&gt;a&lt;/b&gt; &#36;x&#36;"


def test_more_runs_than_colours_are_told_apart():
    n = 2 * len(CATEGORICAL) + 1
    figure = overlaid({str(i): SHORT for i in range(n)}, "loss", ".3f")
    assert len({(line.line.color, line.line.dash) for line in figure.data}) == n


@pytest.mark.parametrize(("y_format", "ticks"), [(".1%", ".1%"), (".3f", None)])
def test_figures_are_plain_numbers(y_format, ticks):
    figure = overlaid({"a": SHORT}, "accuracy", y_format)
    axis = figure.layout.yaxis
    assert y_format in figure.data[0].hovertemplate
    assert (axis.tickformat, axis.exponentformat) == (ticks, "power")  # 0.1 is no "100m"


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


def marks(found: dict[str, Curve]) -> list[tuple]:
    shapes = overlaid(found, "loss", ".3f").layout.shapes
    assert all(shape.x0 == shape.x1 and (shape.yref, shape.label.text) == ("y domain", "resumed") for shape in shapes)
    return [(shape.x0, shape.line.color) for shape in shapes]


def test_where_a_run_went_on_is_marked():
    run = replace(SHORT, resumed=(3, 7))
    assert marks({"a": run}) == marks({"training": run, "validation": run}) == [(3, MARK), (7, MARK)]
    assert marks({"a": SHORT, "b": run, "c": replace(SHORT, resumed=(7,))}) == [(3, CATEGORICAL[1]), (7, MARK)]


def test_values_that_went_wild_are_on_a_logarithmic_axis():
    leapt = Curve(steps=(1, 2, 3, 4), values=(0.7, 0.6, 1e6, float("nan")))
    axis = overlaid({"a": leapt}, "loss", ".3f").layout.yaxis
    assert (axis.type, axis.title.text) == ("log", "loss, log scale")
    assert overlaid({"a": SHORT, "b": leapt}, "loss", ".3f").layout.yaxis.type == "log"


@pytest.mark.parametrize(
    ("values", "y_format"), [((0.7, 0.001, 40.0), ".3f"), ((0.0, 0.7, 2e10), ".3~g"), ((float("nan"),), ".3f")]
)
def test_values_that_a_straight_axis_shows_or_a_logarithmic_one_cannot_are_on_a_straight_one(values, y_format):
    figure = overlaid({"a": Curve(steps=tuple(range(len(values))), values=values)}, "loss", ".3f")
    assert figure.layout.yaxis.type is None and f"%{{y:{y_format}}}" in figure.data[0].hovertemplate
