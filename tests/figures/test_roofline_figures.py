from dataclasses import replace

import pytest

from core.events import Ceilings
from core.figures.roofline import roofline

CEILINGS = Ceilings(device="cpu", dtype="float32", operations_per_s=100e9, bytes_per_s=10e9, hardware="h", date="2026-11-30")


def test_a_kernel_stands_under_the_line_that_it_waits_for():
    machine, naive, flash = roofline({"<b>naive</b>": (4e9, 2e9), "flash": (4e9, 1e8)}, CEILINGS).data
    assert (naive.x[0], naive.y[0]) == pytest.approx((2, 20))  # 2 operations a byte: memory alone
    assert (flash.x[0], flash.y[0]) == pytest.approx((40, 100))  # beyond 10: arithmetic alone
    assert list(machine.y)[1:] == pytest.approx([100, 100]) and machine.x[1] == pytest.approx(10)
    assert machine.x[0] < naive.x[0] and machine.x[-1] > flash.x[0]
    assert naive.name == "&lt;b&gt;naive&lt;/b&gt;, at best" and machine.name == "this machine, measured"


def test_what_was_reached_stands_open_below_what_could_be():
    _, best, reached, other = roofline({"a": (4e9, 1e8), "b": (4e9, 2e9)}, CEILINGS, {"a": 0.1}).data
    assert (reached.x[0], reached.y[0]) == pytest.approx((40, 40)) and reached.x == best.x and reached.y[0] < best.y[0]
    assert reached.marker.symbol == f"{best.marker.symbol}-open" and reached.marker.color == best.marker.color
    assert [trace.name for trace in (best, reached, other)] == ["a, at best", "a, measured", "b, at best"]


def test_a_faster_memory_moves_the_edge_to_the_left():
    slow, fast = (roofline({"a": (1.0, 1.0)}, replace(CEILINGS, bytes_per_s=rate)).data[0].x[1] for rate in (1e9, 1e11))
    assert slow == pytest.approx(100) and fast == pytest.approx(1)


def test_what_moves_nothing_has_no_place():
    assert len(roofline({"bilstm": (0.0, 0.0)}, CEILINGS).data) == 1
