"""Measurements in processes of their own, as they are made; small cells, but for two of 64 MiB and more."""

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import pytest

from core.events import Ceilings
from core.jobs import Stopped
from core.measure import process
from core.measure.predict import peak_bytes
from core.measure.process import available_bytes, in_process, too_large

LINUX = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peak memory on a CPU is read from Linux's /proc")


BILSTM = dict(network="bilstm", backend=None)


@LINUX
@pytest.mark.parametrize(
    "knobs",
    [
        dict(backend="eager"),
        dict(backend="chunked"),
        dict(backend="sdpa", what="step", dtype="mixed", n_layers=2),
        BILSTM | dict(what="step"),
        BILSTM | dict(dtype="bfloat16"),
        BILSTM | dict(what="forward", dtype="mixed", batch=64),
    ],
)
def test_predicted_memory_is_within_ten_percent_of_what_is_resident(cell, knobs):
    asked = cell(**(dict(batch=8, length=512, n_heads=8, d_head=32, n_layers=1) | knobs))
    found = in_process("memory", asked)
    assert found["peak_bytes"] > 64 * 2**20 and found["source"] == "VmHWM above baseline"
    assert peak_bytes(asked) == pytest.approx(found["peak_bytes"], rel=0.1)
    unseen = 1.6 if asked.network == "bilstm" else 1.05  # of an LSTM's workspace, most is never written to
    assert 0.75 * found["peak_bytes"] < found["live_bytes"] < unseen * found["peak_bytes"]


def test_what_a_machine_reaches_is_measured(cell):
    found = Ceilings(**in_process("ceilings", cell(dtype="mixed")))
    assert (found.device, found.dtype) == ("cpu", "mixed") and "thread" in found.hardware
    assert 1e8 < found.operations_per_s < 1e16 and 1e7 < found.bytes_per_s < 1e14
    assert found.date[:2] == "20" and len(found.date) == 10


@LINUX
def test_a_cell_too_small_to_be_seen_has_no_figure(cell):
    with pytest.raises(ValueError, match="too small to be told from the process's own memory"):
        in_process("memory", cell(length=8))


def test_time_is_a_median_of_at_least_five_runs(cell):
    found = in_process("speed", cell(backend="sdpa"))
    assert found["attention_s"] > 0
    assert 0 < found["median_s"] < 5 and found["spread_s"] >= 0 and 5 <= found["n_repeats"] <= 50
    assert "flash" in found["kernel"] and (found["others"] is None or 0 <= found["others"] <= 1)


def test_times_are_not_taken_under_the_allocator_of_memory_cells(cell, monkeypatch):
    """The child says what its environment is."""
    seen = {}
    monkeypatch.setattr(process.subprocess, "Popen", lambda command, env, **_: seen.update({command[2]: env}) or pytest.skip())
    for kind in ("memory", "speed"):
        with pytest.raises(pytest.skip.Exception):
            in_process(kind, cell())
    assert seen["core.measure.memory"]["MALLOC_MMAP_THRESHOLD_"] == "65536"
    assert "MALLOC_MMAP_THRESHOLD_" not in seen["core.measure.speed"]


def fake(monkeypatch, tmp_path, code: str) -> None:
    """A measurement that does what `code` does."""
    package = tmp_path / "core" / "measure"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").touch()
    (package / "memory.py").write_text(code)
    monkeypatch.setattr(process, "ROOT", tmp_path)


@pytest.mark.parametrize(
    ("code", "error", "said"),
    [
        ("import os; os.kill(os.getpid(), 9)", MemoryError, "the system ended the process"),
        ('raise RuntimeError("DefaultCPUAllocator: can\'t allocate memory")', MemoryError, "does not fit: the memory ended"),
        ("raise RuntimeError('CUDA out of memory. Tried to allocate')", MemoryError, "does not fit: the memory ended"),
        ("raise ValueError('device: got cuda')", ValueError, "^device: got cuda$"),
        ("import sys; sys.exit(3)", ValueError, "exit code 3"),
    ],
)
def test_what_a_measurement_dies_of_is_said(cell, monkeypatch, tmp_path, code, error, said):
    fake(monkeypatch, tmp_path, code)
    with pytest.raises(error, match=said):
        in_process("memory", cell())


def test_a_measurement_that_is_stopped_ends_at_once(cell, monkeypatch, tmp_path):
    fake(
        monkeypatch,
        tmp_path,
        f"import os, time, pathlib; pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid()))\ntime.sleep(60)",
    )
    start = time.monotonic()
    with pytest.raises(Stopped):
        in_process("memory", cell(), stopped=(tmp_path / "pid").exists)
    assert time.monotonic() - start < 20
    if sys.platform == "linux":
        assert not Path(f"/proc/{(tmp_path / 'pid').read_text()}").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows gives an orphan no other parent")
def test_a_measurement_ends_with_whoever_asked_for_it(cell):
    child = "import sys, time; from core.measure.cells import asked; asked(); print('up', flush=True); time.sleep(300)"
    start = f"import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-c', {child!r}, sys.argv[1]]); "
    command = [sys.executable, "-c", start + "print(p.pid, flush=True); time.sleep(300)", json.dumps(asdict(cell()))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=process.ROOT) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert parent.stdout.readline() == "up\n"
        parent.kill()
    assert gone_within(pid, 60)


def gone_within(pid: int, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if Path(f"/proc/{pid}/stat").exists() and Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
            return True
        time.sleep(0.1)
    return False


def test_what_cannot_fit_is_not_tried(cell, monkeypatch):
    huge = cell(batch=64, length=65_536, n_heads=16)
    assert "does not fit: needs about" in (too_large(huge) or "")
    assert too_large(cell()) is None
    assert too_large(cell(device="cuda", batch=64, length=65_536)) is None  # a GPU says so itself
    needed = int(1.1 * (peak_bytes(cell()) or 0)) + process.PROCESS_BYTES
    for free, fits in ((needed + 1, True), (needed - 1, False), (None, True)):
        monkeypatch.setattr(process, "available_bytes", lambda free=free: free)
        assert (too_large(cell()) is None) == fits


def test_a_machine_has_some_memory():
    free = available_bytes()
    assert free is None or 2**20 < free < 2**50
