import pytest

from core.figures.memory import memory_by_length, memory_on_cards, time_by_length
from core.records import CellMeasured

MIB = 2**20
PREDICTED = {"eager": {128: 4 * MIB, 512: 64 * MIB}, "sdpa": {128: 3 * MIB, 512: 12 * MIB}}


def measured(backend: str, length: int, **figures) -> CellMeasured:
    found = dict(peak_bytes=5 * MIB, source="s", median_s=0.02, spread_s=0.004, n_repeats=5, kernel="<b>k</b>", hardware="h")
    return CellMeasured(
        backend=backend, what="backward", batch=2, length=length, n_heads=2, d_head=8, n_layers=1, dtype="float32",
        device="cpu", why_not=None, **(found | figures),
    )  # fmt: skip


def test_what_is_predicted_is_told_from_what_is_measured():
    figure = memory_by_length(PREDICTED, [measured("sdpa", 128)], log=True)
    assert [(trace.name, trace.mode) for trace in figure.data] == [
        ("eager, predicted", "lines"), ("sdpa, predicted", "lines"), ("sdpa, measured", "markers"),
    ]  # fmt: skip
    eager, sdpa, points = figure.data
    assert eager.line.dash == sdpa.line.dash == "dot"
    assert (list(eager.x), list(eager.y)) == ([128, 512], [4, 64])
    assert (list(points.x), list(points.y)) == ([128], [5])
    assert points.marker.color == sdpa.line.color != eager.line.color
    assert points.customdata[0][0] == "&lt;b&gt;k&lt;/b&gt;"


def test_a_cell_without_a_figure_has_no_point():
    cells = [measured("eager", 128), measured("eager", 512, peak_bytes=None, median_s=None, spread_s=None)]
    assert list(memory_by_length(PREDICTED, cells, log=True).data[-1].x) == [128]
    assert list(time_by_length(["eager", "sdpa"], cells, log=True).data[0].x) == [128]
    assert len(time_by_length(["eager"], cells[1:], log=True).data) == 0


def test_bars_of_a_time_reach_from_its_fastest_run_to_its_slowest():
    (points,) = time_by_length(["eager"], [measured("eager", 128)], log=False).data
    assert points.y[0] == pytest.approx(20) and 2 * points.error_y.array[0] == pytest.approx(4)


@pytest.mark.parametrize("log", [True, False])
def test_axes_hold_every_length(log):
    figure = memory_by_length(PREDICTED, [], log=log)
    low, high = figure.layout.xaxis.range
    assert (10**low, 10**high) == pytest.approx((128 / 1.15, 512 * 1.15)) if log else (low, high) == (0, 512 * 1.05)
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == ("log" if log else "linear")
    if log:
        assert list(figure.layout.xaxis.tickvals) == [128, 256, 512]


def test_a_card_is_a_level_line_under_its_name():
    figure = memory_on_cards(PREDICTED, {"A <b>card</b>": 16 * 10**9, "another": 32 * 10**9})
    one, other = figure.data[2:]
    assert set(one.y) == {16e9 / 2**30} and set(other.y) == {32e9 / 2**30}
    assert [text for text in one.text if text] == ["A &lt;b&gt;card&lt;/b&gt;"]
    assert one.text.index("A &lt;b&gt;card&lt;/b&gt;") != other.text.index("another")
    assert not one.showlegend
