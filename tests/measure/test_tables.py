"""Cells as tables of recorded results, and what is read of such tables again."""

from dataclasses import replace

import pytest

from core.events import CellMeasured
from core.measure.sweep import NOTHING
from core.measure.tables import MEMORY, TIME, memory_table, points, shape, time_table
from core.recorded import Column, Recorded, Table


def recorded(*tables: Table, hardware: str = "AMD EPYC, 2 of 2 cores", date: str = "2026-11-30") -> Recorded:
    return Recorded(title="t", hardware=hardware, date=date, command="c", versions=(), tables=tables)


@pytest.fixture
def measured(cell) -> list[CellMeasured]:
    """Two cells of 5 and 6 MiB, 20 ms, on a quiet machine."""
    figures = NOTHING | {"median_s": 0.02, "spread_s": 0.001, "attention_s": 0.005, "others": 0.02, "kernel": "k"}
    of = {"eager": cell(batch=7), "sdpa": cell(batch=7, backend="sdpa")}
    return [
        CellMeasured(**vars(each), **figures | {"peak_bytes": n * 2**20}, why_not=None)
        for n, each in zip((5, 6), of.values(), strict=True)
    ]


def test_a_shape_says_all_that_a_sweep_keeps_alike(cell):
    assert shape(cell(n_layers=1)) == "2 × 8, 1 layer, float32"
    assert shape(cell(dtype="mixed", checkpointing=True)) == "2 × 8, 2 layers, mixed, checkpointing"
    assert len({shape(cell(**knob)) for knob in ({}, {"n_heads": 3}, {"d_head": 9}, {"n_layers": 3}, {"dtype": "mixed"})}) == 5


def test_what_is_written_is_read_in_bytes_and_seconds(measured):
    results = [recorded(memory_table(measured), time_table(measured))]
    memory, time = points(results, MEMORY), points(results, TIME)
    assert [(point.label, point.value) for point in memory] == [("eager", 5 * 2**20), ("sdpa", 6 * 2**20)]
    assert [point.value for point in time] == pytest.approx([0.02, 0.02])
    about = dict(what="backward", length=40, batch=7, shape="2 × 8, 2 layers, float32", hardware="AMD EPYC, 2 of 2 cores")
    assert vars(memory[0]) == about | {"label": "eager", "value": 5 * 2**20, "date": "2026-11-30"}


def test_of_one_machine_the_first_counts_and_of_another_all(measured):
    newer, older = memory_table(measured[:1]), memory_table([replace(measured[0], peak_bytes=2**20), measured[1]])
    found = points([recorded(newer), recorded(older, date="2026-11-01"), recorded(older, hardware="H200")], MEMORY)
    assert [(point.label, point.value // 2**20, point.hardware, point.date) for point in found] == [
        ("eager", 5, "AMD EPYC, 2 of 2 cores", "2026-11-30"), ("sdpa", 6, "AMD EPYC, 2 of 2 cores", "2026-11-01"),
        ("eager", 1, "H200", "2026-11-30"), ("sdpa", 6, "H200", "2026-11-30"),
    ]  # fmt: skip


def test_a_time_from_a_busy_machine_is_no_point_and_its_memory_is(measured):
    busy = [replace(each, others=0.4) for each in measured]
    results = [recorded(memory_table(busy), time_table(busy))]
    assert len(points(results, MEMORY)) == 2 and points(results, TIME) == []


@pytest.mark.parametrize(
    ("column", "value"),
    [("kernel", 3), ("what", None), ("length", "40"), ("length", 0), ("batch", 10**9), ("shape", None),
     ("measured peak", None), ("measured peak", -1.0), ("measured peak", "5")],
)  # fmt: skip
def test_a_row_that_is_no_cell_is_passed_over(measured, column, value):
    table = memory_table(measured)
    names = [each.name for each in table.columns]
    row = tuple(value if name == column else old for name, old in zip(names, table.rows[0], strict=True))
    assert [point.label for point in points([recorded(replace(table, rows=(row, table.rows[1])))], MEMORY)] == ["sdpa"]


def test_a_table_of_other_columns_is_passed_over():
    other = Table(name=MEMORY, caption="", columns=(Column(name="backend"), Column(name="length")), rows=(("eager", 128),))
    assert points([recorded(other)], MEMORY) == []
