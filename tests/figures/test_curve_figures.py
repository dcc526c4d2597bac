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
