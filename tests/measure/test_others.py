"""What others did of a machine's work, from counters of our own."""

from dataclasses import asdict
from pathlib import Path

import pytest

from core import run_folder
from core.events import CellMeasured
from core.measure import others

NOTHING = dict(peak_bytes=None, source=None, median_s=1.0, spread_s=0.1, n_repeats=5, kernel=None, hardware=None, why_not=None)


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Sets the counters: a machine's ticks of 10 ms as in the first line of /proc/stat, and this process's own seconds."""
    monkeypatch.setattr(others, "STAT", tmp_path / "stat")
    monkeypatch.setattr(others.os, "sysconf", lambda name: 100, raising=False)

    def at(ticks: str, own_s: float) -> None:
        (tmp_path / "stat").write_text(f"cpu  {ticks}\ncpu0 1 2 3 4 5 6 7 8 9 10\n")
        monkeypatch.setattr(others.time, "process_time", lambda: own_s)

    return at


@pytest.mark.parametrize(
    ("later", "own_s", "share"),
    [
        ("1100 0 0 5100 0 0 0 0 1000 0", 1.0, 0.0),  # all that ran was ours, if for a guest, whose time is in that of users
        ("1100 0 0 5100 0 0 0 0 900 0", 0.5, 0.25),
        ("1000 20 30 5100 0 0 40 10 900 0", 0.0, 0.5),  # nice, the kernel, its interrupts, and a hypervisor's other guests
        ("1000 0 0 5100 100 0 0 0 900 0", 0.0, 0.0),  # waiting for a disk is no work
        ("1010 0 0 5190 0 0 0 0 990 0", 9.0, 0.0),  # clocks that differ make no share below 0
        ("1000 0 0 5000 0 0 0 0 900 0", 0.0, None),  # too soon to be told
    ],
)
def test_what_was_busy_and_not_ours_is_others(machine, later, own_s, share):
    machine("1000 0 0 5000 0 0 0 0 900 0", 0.0)
    seen = others.watch()
    machine(later, own_s)
    assert seen() == (None if share is None else pytest.approx(share))


@pytest.mark.parametrize("text", ["", "cpu\n", "cpu  many\n"])
def test_a_system_that_does_not_say_is_no_quiet_one(monkeypatch, tmp_path, text):
    monkeypatch.setattr(others, "STAT", tmp_path / "stat")
    assert others.watch()() is None
    (tmp_path / "stat").write_text(text)
    assert others.watch()() is None


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="a machine's CPU time is read from Linux's /proc")
def test_this_machine_has_cpus():
    seen = others._machine_s()
    assert seen is not None and 0 < seen[0] < seen[1]


def test_the_busier_of_two_measurements_counts(cell):
    quiet, busy, unknown = (CellMeasured(**asdict(cell()), **NOTHING, others=share) for share in (0.1, 0.43, None))
    assert others.disturbance(quiet, unknown) is None
    assert others.disturbance(quiet, busy, unknown) == "others used 43% of the machine while this was measured"


def test_a_cell_of_an_older_run_is_read(cell, tmp_path):
    event = CellMeasured(**asdict(cell()), **NOTHING)
    run_folder.append_event(tmp_path, event)
    events = tmp_path / "events.jsonl"
    events.write_text(events.read_text().replace(', "others": null, "elapsed_s": null', ""))
    assert "others" not in events.read_text() and run_folder.read_events(tmp_path)[0] == [event]
