import pytest

from core.figures.ablations import differences
from core.statistics import Difference


def one(value: float, low: float, high: float, p: float) -> Difference:
    return Difference(value=value, low=low, high=high, p=p, n=3)


FOUND = {"b<b>": one(-0.05, -0.07, -0.02, 0.01), "a": one(0.01, -0.02, 0.05, 0.3), "c": one(0.02, 0.01, 0.03, 0.06)}


def test_whiskers_end_where_the_interval_ends_and_what_is_shown_is_filled():
    shown, other = differences(FOUND).data
    assert (shown.name, list(shown.x), list(shown.y)) == ("more than chance", [-5.0], ["b&lt;b&gt;"])
    assert shown.x[0] + shown.error_x.array[0] == pytest.approx(-2) and shown.x[0] - shown.error_x.arrayminus[
        0
    ] == pytest.approx(-7)
    assert (other.name, list(other.x), other.marker.symbol) == ("no difference shown", [1.0, 2.0], "circle-open")


def test_the_first_is_on_top_whatever_it_shows():
    axis = differences(FOUND).layout.yaxis
    assert list(axis.categoryarray) == ["b&lt;b&gt;", "a", "c"] and axis.autorange == "reversed"


def test_each_has_room():
    assert differences(FOUND).layout.height < differences(FOUND | {f"{i}": FOUND["a"] for i in range(9)}).layout.height


def test_a_legend_names_what_is_there_alone():
    assert [trace.name for trace in differences({"a": FOUND["a"]}).data] == ["no difference shown"]
