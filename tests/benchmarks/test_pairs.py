"""Contestants in turns, and in processes of their own."""

import os

import pytest

from benchmarks.pairs import in_turns, ratio, spread
from benchmarks.suite import Setting
from benchmarks.worker import Worker


def test_ratios_are_taken_within_rounds():
    found = ratio([4.0, 30.0, 8.0], [2.0, 10.0, 8.0])
    assert found.cells == (2.0, 1.0, 3.0)
    assert spread([3.0, 1.0, 2.0, 9.0]).cells == (2.5, 1.0, 9.0)


def test_each_round_asks_each_contestant_after_one_to_warm_up():
    asked = []

    def contestant(name):
        return lambda: asked.append(name) or len(asked)

    found = in_turns({"a": contestant("a"), "b": contestant("b")}, 2)
    assert asked == ["a", "b"] * 3 and found == {"a": [3, 5], "b": [4, 6]}


def counter(setting: Setting, start: int):
    print("a library that prints")
    values = iter(range(start, start + 2))
    return lambda: [next(values), os.getpid(), setting.device]


def test_a_worker_keeps_its_state_in_a_process_of_its_own():
    with Worker("tests.benchmarks.test_pairs:counter", Setting(), start=5) as worker:
        (first, process, device), (second, same, _) = worker(), worker()
        assert (first, second, device) == (5, 6, "cpu") and process == same != os.getpid()
        with pytest.raises(ValueError, match="test_pairs:counter ended: StopIteration"):
            worker()
    assert worker.process.returncode is not None


def test_a_worker_that_cannot_begin_says_why():
    with Worker("tests.benchmarks.test_pairs:missing", Setting()) as worker:
        with pytest.raises(ValueError, match="missing ended: AttributeError"):
            worker()
