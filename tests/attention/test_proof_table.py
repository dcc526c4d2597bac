"""The README's table of what was proved is that of the committed figures, and these are of what the catalogue offers."""

import json
import math

from benchmarks.proof import FIGURES, MARKERS, README, between_markers, table, with_table
from core.catalog import BACKENDS
from tests.attention.proof import TOLERANCE, offered

FOUND = json.loads(FIGURES.read_text(encoding="utf-8"))


def test_the_table_is_that_of_the_figures():
    assert between_markers(README.read_text(encoding="utf-8")) == table(FOUND)


def test_a_new_table_is_put_between_its_markers_and_nowhere_else():
    text = "\n".join(["Really?", MARKERS[0], "?", MARKERS[1], "Yes?"])
    assert with_table(text, "| a |") == "\n".join(["Really?", MARKERS[0], "| a |", MARKERS[1], "Yes?"])
    assert between_markers(with_table(text, "| a |")) == "| a |"


def test_what_was_proved_is_what_is_offered():
    for name in BACKENDS:
        what = offered(name)
        assert FOUND["combinations"].get(name, 0) == len(what), f"{name}: run python -m benchmarks.proof"
        kinds = {(dtype, "gradients" if gradients else "values") for dtype, *_, gradients in what}
        proved = FOUND["errors"].get(name, {})
        assert {(dtype, kind) for dtype, errors in proved.items() for kind in errors} == kinds
        for dtype, errors in proved.items():
            assert all(math.isfinite(error) and error <= TOLERANCE[dtype] for error in errors.values())
