"""A measurement as a process of its own, and what may become of it. No torch here: it is the child that needs it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from core.jobs import ROOT, Stopped
from core.measure.predict import peak_bytes
from core.records import Cell

ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
"""glibc then returns what is freed at once, so that resident bytes are live bytes; no times are taken under it."""
POLL_S = 0.2
MARGIN = 0.1
"""Share of a prediction that is kept free beside it."""
PROCESS_BYTES = 2**29
"""What Python and PyTorch take themselves, at most."""
NO_MEMORY = ("can't allocate memory", "out of memory", "MemoryError")


def too_large(cell: Cell) -> str | None:
    """Why a cell is not to be tried on this machine's CPU: it would push it into swap. A GPU refuses by itself.

    A tenth of the prediction and half a GiB for the process are kept free beside it.
    """
    free, predicted = available_bytes(), peak_bytes(cell)
    if cell.device != "cpu" or predicted is None or free is None or predicted * (1 + MARGIN) + PROCESS_BYTES <= free:
        return None
    return (
        f"does not fit: needs about {gib(predicted)} beside {gib(PROCESS_BYTES)} for the process, "
        f"the machine has {gib(free)} free"
    )


def gib(n_bytes: int) -> str:
    """For sentences."""
    return f"{n_bytes / 2**30:.1f} GiB"


def available_bytes() -> int | None:
    """Memory that a new process can have without swapping; None where the system does not say."""
    with suppress(OSError, ValueError):
        (line,) = (line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemAvailable:"))
        return min(int(line.split()[1]) * 1024, _allowed_bytes())
    with suppress(AttributeError, OSError, ValueError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def _allowed_bytes() -> int:
    """What a container's limit leaves (cgroup v2)."""
    group = Path("/sys/fs/cgroup")
    with suppress(OSError, ValueError):
        return int((group / "memory.max").read_text()) - int((group / "memory.current").read_text())
    return sys.maxsize


def in_process(kind: str, cell: Cell, stopped: Callable[[], bool] = lambda: False) -> dict[str, Any]:
    """What `core.measure.memory` or `core.measure.speed` says of a cell; refusals as from `answer`."""
    return answer(f"core.measure.{kind}", asdict(cell), stopped, ALLOCATOR if kind == "memory" else {})


def answer(module: str, asked: dict[str, Any], stopped: Callable[[], bool], environment: dict[str, str]) -> dict[str, Any]:
    """What a module says when it is asked in a process that does nothing else.

    MemoryError if it did not fit, ValueError if it could not be measured, each with a sentence; Stopped if `stopped` says so
    meanwhile.
    """
    command = [sys.executable, "-m", module, json.dumps(asked)]
    environment = os.environ | environment
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        with suppress(OSError):  # where memory ends after all, it is this process that ends
            Path(f"/proc/{process.pid}/oom_score_adj").write_text("1000")
        try:
            out, errors = _answer(process, stopped)
        finally:
            process.kill()
    if process.returncode == 0:
        return json.loads(out.splitlines()[-1])
    raise _refusal(process.returncode, errors)


def _answer(process: subprocess.Popen[str], stopped: Callable[[], bool]) -> tuple[str, str]:
    while True:
        with suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=POLL_S)
        if stopped():
            raise Stopped


def _refusal(returncode: int, errors: str) -> Exception:
    last = errors.strip().splitlines()[-1:] or [f"the process ended with exit code {returncode}"]
    if returncode == -9:
        return MemoryError("does not fit: the system ended the process, most likely for want of memory")
    if any(sign in errors for sign in NO_MEMORY):
        return MemoryError("does not fit: the memory ended")
    return ValueError(last[0].removeprefix("ValueError: "))
