"""Budgets beside what was found."""

from dataclasses import replace

import pytest

from benchmarks.budgets import BUDGETS, table
from core.recorded import Column, Recorded, Table


def results(*tables: Table, hardware: str = "AMD EPYC") -> Recorded:
    return Recorded(title="t", hardware=hardware, date="2026-11-30", command="c", versions=(), tables=tables)


def test_of_several_rivals_the_best_counts():
    columns = tuple(
        Column(name=name) for name in ("way", "ours over it, median", "ours over it, lowest", "ours over it, highest")
    )
    rivals = (("this lab", 1.0, 1.0, 1.0), ("transformers pipeline, batch 1", 9.0, 8.0, 10.0))
    scoring = Table(name="scoring", caption="", columns=columns, rows=rivals)
    (row,) = table(results(scoring)).rows
    assert row[2:] == ("at least 3", 9.0, 8.0, 10.0, "yes")
    better = ("transformers pipeline, batch 32", 2.9, 2.0, 3.1)
    columns, both = (*columns, Column(name="products")), ((*rivals[0], 90.0), (*rivals[1], 10.0), (*better, 31.0))
    missed = replace(scoring, columns=columns, rows=both)
    ((row,), said) = (table(results(missed)).rows, table(results(missed)).caption)
    assert row[2:] == ("at least 3", 2.9, 2.0, 3.1, "missed")
    assert said.endswith("ours comes to 90 billion operations a second; three times the pipeline's would be 93.")
    names = tuple(Column(name=name) for name in ("numbers", "matrix product", "copy"))
    ceilings = Table(name="ceilings", caption="", columns=names, rows=(("float32", 91.0, 1.0), ("bfloat16", 900.0, 1.0)))
    assert "a second, and a product of large matrices 91; three" in table(results(missed, ceilings)).caption
    assert "Batch scoring" not in table(results(replace(scoring, rows=rivals))).caption


def test_the_worst_prediction_of_memory_counts_and_small_cells_do_not():
    columns = (Column(name="backend"), Column(name="prediction off by", unit="%"))
    memory = Table(name="memory", caption="", columns=columns, rows=(("eager", None), ("sdpa", 3.0), ("chunked", 11.0)))
    (row,) = table(results(memory)).rows
    assert row[2:] == ("at most 10", 11.0, None, None, "missed")


@pytest.mark.parametrize("hardware, n", [("NVIDIA H200", 1), ("AMD EPYC", 0)])
def test_what_is_promised_of_a_gpu_is_held_against_that_gpu(hardware, n):
    epoch = Table(
        name="epoch", caption="", columns=(Column(name="reviews"), Column(name="epoch", unit="s")), rows=((25_000, 1.5),)
    )
    assert len(table(results(epoch, hardware=hardware)).rows) == n


def test_without_figures_there_is_no_row():
    assert table(results()).rows == () and len({budget.what for budget in BUDGETS}) == len(BUDGETS)
