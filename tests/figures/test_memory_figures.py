from dataclasses import replace

import pytest

from core.events import CellMeasured
from core.figures.frame import projected
from core.figures.memory import ATTENTION, breakdown, memory_along, memory_on_cards, score_matrices, time_along

MIB = 2**20
PREDICTED = {"eager": {128: 4 * MIB, 512: 64 * MIB}, "sdpa": {128: 3 * MIB, 512: 12 * MIB}}


def measured(backend: str, length: int, **figures) -> CellMeasured:
    found = dict(peak_bytes=5 * MIB, source="s", median_s=0.02, spread_s=0.004, n_repeats=5, kernel="<b>k</b>", hardware="h")
    return CellMeasured(
        backend=backend, what="backward", batch=2, length=length, n_heads=2, d_head=8, n_layers=1, dtype="float32",
        device="cpu", why_not=None, **(found | figures),
    )  # fmt: skip


def test_what_is_predicted_is_told_from_what_is_measured():
    figure = memory_along("length", PREDICTED, [measured("sdpa", 128)], log=True)
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
    assert list(memory_along("length", PREDICTED, cells, log=True).data[-1].x) == [128]
    assert list(time_along("length", ["eager", "sdpa"], cells, log=True).data[0].x) == [128]
    assert len(time_along("length", ["eager"], cells[1:], log=True).data) == 0


def test_bars_of_a_time_reach_from_its_fastest_run_to_its_slowest():
    (points,) = time_along("length", ["eager"], [measured("eager", 128)], log=False).data
    assert points.y[0] == pytest.approx(20)
    assert points.error_y.array[0] == points.error_y.arrayminus[0] == pytest.approx(2)
    (wild,) = time_along("length", ["eager"], [measured("eager", 128, spread_s=0.2)], log=True).data
    assert wild.error_y.array[0] == pytest.approx(100) and wild.error_y.arrayminus[0] == pytest.approx(18)  # above 0


@pytest.mark.parametrize("log", [True, False])
def test_axes_hold_every_length(log):
    figure = memory_along("length", PREDICTED, [], log=log)
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


def test_a_chart_goes_along_batches_as_well():
    cells = [replace(measured("sdpa", 128), batch=batch) for batch in (1, 4)]
    figure = memory_along("batch", {"sdpa": {1: MIB, 4: 4 * MIB}}, cells, log=True)
    assert list(figure.data[1].x) == [1, 4] and figure.layout.xaxis.title.text == "reviews at once"
    assert list(time_along("batch", ["sdpa"], cells, log=True).data[0].x) == [1, 4]


KEPT = {
    ("sdpa", "<i>H200</i>, 2026-11-29"): {128: 3.0 * MIB, 1024: 6.0 * MIB},
    ("sdpa", "EPYC, 2026-11-30"): {256: 1.0 * MIB},
    ("eager", "EPYC, 2026-11-30"): {256: 8.0 * MIB},
}


def test_what_was_recorded_is_dashed_and_named_by_machine_and_day():
    figure = memory_along("length", PREDICTED, [measured("sdpa", 128)], KEPT, log=True)
    eager, sdpa, _, there, here, other = figure.data
    assert [trace.name for trace in figure.data[3:]] == [
        "sdpa, recorded,<br>&lt;i&gt;H200&lt;/i&gt;, 2026-11-29", "sdpa, recorded,<br>EPYC, 2026-11-30",
        "eager, recorded,<br>EPYC, 2026-11-30",
    ]  # fmt: skip
    assert (list(there.x), list(there.y)) == ([128, 1024], [3, 6]) and {there.line.dash, here.line.dash} == {"dash"}
    assert there.line.color == here.line.color == sdpa.line.color and other.line.color == eager.line.color
    assert figure.layout.xaxis.range[1] > 3  # 1,024 tokens are on it
    seconds = {("sdpa", "EPYC, 2026-11-30"): {128: 0.25}}
    (line,) = time_along("length", ["eager", "sdpa"], [], seconds, log=False).data
    assert list(line.y) == [250] and figure.layout.xaxis.range[1] > 0


def test_a_difference_within_the_spread_stands_in_a_ring():
    cells = [measured("sdpa", 128), measured("sdpa", 512, median_s=0.05)]
    *_, rings = time_along("length", ["sdpa"], cells, unsure={("sdpa", 512)}, log=True).data
    assert (list(rings.x), list(rings.y)) == ([512], [50]) and rings.name == "no verdict"
    assert len(time_along("length", ["sdpa"], cells, log=True).data) == 1


def test_squares_are_to_scale_and_one_number_a_row_stands_beside():
    figure = score_matrices([512, 1024, 128], tile=256)
    squares, tile, rows = figure.data[:3], figure.data[3], figure.data[4]
    assert [max(square.x) - min(square.x) for square in squares] == [1024, 512, 128]
    assert all(max(square.y) - min(square.y) == max(square.x) for square in squares)
    assert max(tile.x) == max(tile.y) == 256 and max(rows.y) == 1024 and len(set(rows.x)) == 1
    assert figure.layout.yaxis.scaleanchor == "x"
    assert squares[0].text[2] == "1,024² <br>4 MiB "  # in two lines there is room on a narrow page, too
    assert "1,024 × 1,024: 4 MiB" == squares[0].name and "4 KiB" in figure.layout.annotations[0].text


def test_parts_are_stacked_and_attention_has_its_colour():
    own = {"weights": MIB, ATTENTION: 6 * MIB}
    weights, attention, more = breakdown({"eager": own, "sdpa": {"weights": MIB, "more": 2 * MIB}}).data
    assert list(weights.x) == [1, 1] and list(attention.x) == [6, 0] and list(more.x) == [0, 2]
    assert attention.marker.color not in (weights.marker.color, more.marker.color) and attention.name == ATTENTION


def test_a_projector_gets_larger_signs():
    figure = projected(memory_along("length", PREDICTED, [measured("eager", 128)], log=True))
    assert figure.data[0].line.width == 4 and figure.data[2].marker.size == 16
    assert figure.layout.legend.font.size == figure.layout.xaxis.tickfont.size == 20
