"""Tables of cells and of the articles, from figures that are known."""

from itertools import product

import pytest

from benchmarks import cells, tables
from benchmarks.suite import Setting
from core.events import CellMeasured
from core.measure import sweep
from core.measure.predict import peak_bytes


@pytest.fixture
def measured(monkeypatch) -> list:
    """The cells that were asked; each takes 2 s for its batch, and what was predicted and a twentieth more."""
    asked = []

    def measure(cell, kinds=sweep.KINDS):
        asked.append((cell, kinds))
        found = sweep.NOTHING | {
            "peak_bytes": round(1.05 * (peak_bytes(cell) or 2**26)),
            "median_s": 2.0,
            "spread_s": 0.5,
            "others": 0.25,
        }
        found["attention_s"] = 0.5 if cell.backend else None
        return CellMeasured(**vars(cell), **found, why_not=None)

    monkeypatch.setattr(sweep, "measured", measure)
    return asked


def test_steps_are_of_each_kernel_and_batch_and_the_bilstm(measured):
    *_, table = cells.steps(Setting())
    assert len(table.rows) == len(measured) == 3 * 4 and all(kinds == ("speed",) for _, kinds in measured)
    by_batch = {row[2]: row[6] for row in table.rows}
    assert by_batch == {1: 1024.0, 16: 64.0, 32: 32.0}
    assert {row[:2] for row in table.rows} == {("encoder", name) for name in ("eager", "sdpa", "chunked")} | {("bilstm", None)}


def test_memory_is_of_each_kernel_length_and_way_to_run_it_and_takes_no_time(measured):
    *_, table = cells.memory(Setting())
    assert all(kinds == ("memory",) for _, kinds in measured) and len(table.rows) == 3 * 6 * 4
    assert set(zip(table.column("kernel"), table.column("what"), table.column("length"), strict=True)) == set(
        product(("eager", "sdpa", "chunked", "bilstm"), ("forward", "backward", "step"), (128, 256, 512, 1024, 2048, 4096))
    )
    *_, there = cells.memory(Setting(device="cuda"))
    assert set(there.column("length")) == {1024, 4096}


def test_times_are_a_table_of_their_own(measured):
    *_, table = cells.times(Setting())
    assert all(kinds == ("speed",) for _, kinds in measured) and set(table.column("what")) == {"backward"}
    assert table.column("time") == [2000.0] * 5 * 4 and table.column("others used") == [25.0] * 5 * 4
    assert {row[0]: row[7] for row in table.rows} == {"eager": 500.0, "sdpa": 500.0, "chunked": 500.0, "bilstm": None}


def test_predictions_are_held_to_large_peaks_alone(measured):
    *_, table = cells.memory(Setting())
    peaks, off = table.column("measured peak"), table.column("prediction off by")
    assert {peak >= 64 for peak in peaks} == {True, False}
    for peak, share in zip(peaks, off, strict=True):
        assert share == (pytest.approx(100 * (1 - 1 / 1.05), rel=1e-3) if peak >= 64 else None)


def test_table_a_has_the_articles_figures_beside_ours(measured, setting):
    (table,) = tables.article_a(setting)
    assert table.column("BiLSTM, article") == [8.6, 467, 38.9, 87.2, 18.3, 3420]
    assert table.column("Transformer, article") == [9.2, 132, 11.0, 91.6, 9.6, 5870]
    epoch, five = table.column("Transformer, here")[1:3]
    assert epoch > 0 and five == pytest.approx(5 * epoch / 60)
    assert "on 4 reviews" in table.caption and "scaled by 6250" in table.caption
    assert [cell.network for cell, _ in measured] == ["bilstm", "encoder"]


def test_table_d_has_no_figure_for_a_cache_that_does_nothing(measured, setting):
    training, prediction = tables.article_d(setting)
    assert training.column("epoch, article") == [532.0, 384.0, 257.0] and all(s > 0 for s in training.column("epoch, here"))
    assert training.column("F1, here") == [None] * 3
    assert [cell.backend for cell, _ in measured] == [None, "eager", "sdpa"]
    here = dict(
        zip(
            zip(prediction.column("attention"), prediction.column("batch"), strict=True), prediction.column("here"), strict=True
        )
    )
    assert all((s is None) == (name == "flash with KV cache") for (name, _), s in here.items()) and len(here) == 9
    assert "does nothing for a classifier" in prediction.caption
