"""Real processes for tests: a `python -m core` of their own in runs/ of their own, and waiting for what they do."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core import jobs, run_folder

ROOT = Path(__file__).resolve().parent.parent
WORKER = """
import os, sys, time
from pathlib import Path
from core import jobs
from core.config import RunConfig
from core.events import Cancelled

verb, *_, out = sys.argv[1:]
out = Path(out)
with (out.parent / "starts").open("a") as starts:
    starts.write(f"{os.getpid()} {out.name}\\n")
if verb == "refuse":
    sys.exit("error: there is no such knob")
with jobs.hold(out, "cpu", RunConfig()) as job:
    print("at work", flush=True)
    if verb == "fail":
        raise ValueError("epochs: got 0, expected at least 1\\nand more")
    while verb != "quick":
        if verb == "work" and job.stopped():
            job.emit(Cancelled())
            break
        time.sleep(0.02)
"""
"""A `python -m core` that does no work: it waits to be stopped, or does not listen, fails, or refuses its arguments."""


def runs_of(main: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty runs/, where `python -m core` is the text `main`; what a test leaves running is ended."""
    code = tmp_path / "code" / "core"
    code.mkdir(parents=True)
    (code / "__init__.py").write_text(f"__path__.append({str(ROOT / 'core')!r})")
    (code / "__main__.py").write_text(main)
    monkeypatch.setattr(jobs, "ROOT", code.parent)
    runs = tmp_path / "runs"
    runs.mkdir()
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(runs))
    yield runs
    for folder in runs.iterdir():
        jobs.stop(folder, grace_s=0.0)


def eventually(condition: Callable[[], bool], timeout_s: float = 15) -> None:
    """Waits until it is so."""
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.02)


def reaches(folder: Path, wanted: run_folder.State, timeout_s: float = 15) -> None:
    """Waits until a run is in that state."""
    eventually(lambda: run_folder.state(folder) == wanted, timeout_s)


def is_over(folder: Path, timeout_s: float = 300) -> run_folder.State:
    """Waits until a run's process is gone, and says what has become of it."""
    eventually(lambda: not run_folder.is_alive(folder), timeout_s)
    return run_folder.state(folder)


def starts(root: Path) -> list[list[str]]:
    """Process and folder of each start that the worker wrote down."""
    return [line.split() for line in (root / "starts").read_text().splitlines()]


def events(folder: Path) -> list:
    """All that a run has said."""
    return run_folder.read_events(folder)[0]


def pid(folder: Path) -> int:
    """The process that a run is, or was."""
    return int((folder / "pid").read_text())


def is_gone(pid: int) -> bool:
    """Whether a process has ended; a dead child that nobody waited for has, too."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def interrupted(folder: Path) -> Path:
    """A run of the `WORKER` whose process was killed."""
    jobs.launch(["work"], folder)
    reaches(folder, "running")
    os.kill(pid(folder), signal.SIGKILL)
    reaches(folder, "interrupted")
    return folder
