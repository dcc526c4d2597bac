"""The README's table of what was proved is that of the committed figures, and these are of what the catalogue offers."""

import math

from benchmarks.proof import FIGURES, MARKERS, README, combinations, largest_errors, table, with_table
from core.catalog import BACKENDS
from core.recorded import read_file
from tests.attention.proof import TOLERANCE, offered

FOUND = read_file(FIGURES)


def test_the_table_is_that_of_the_figures():
    text = README.read_text(encoding="utf-8")
    assert with_table(text, table(FOUND)) == text


def test_a_new_table_is_put_between_its_markers_and_nowhere_else():
    text = "\n".join(["Really?", MARKERS[0], "?", MARKERS[1], "Yes?"])
    assert with_table(text, "| a |") == "\n".join(["Really?", MARKERS[0], "| a |", MARKERS[1], "Yes?"])


def test_what_was_proved_is_what_is_offered():
    errors, counts = largest_errors(FOUND), combinations(FOUND)
    for name in BACKENDS:
        what = offered(name)
        assert counts.get(name, 0) == len(what), f"{name}: run python -m benchmarks.proof"
        kinds = {(dtype, "gradients" if gradients else "values") for dtype, *_, gradients in what}
        proved = {dtype: found for (backend, dtype), found in errors.items() if backend == name}
        assert {(dtype, kind) for dtype, found in proved.items() for kind in found} == kinds
        for dtype, found in proved.items():
            assert all(math.isfinite(error) and error <= TOLERANCE[dtype] for error in found.values())
