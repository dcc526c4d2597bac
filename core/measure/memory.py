"""Peak memory of one cell, measured in this process, which does nothing else: `python -m core.measure.memory CELL`."""

import gc
import json
from collections.abc import Callable
from pathlib import Path

import torch

from core.catalog import BACKENDS
from core.measure.cells import asked, circumstances, prepare
from core.measure.live_bytes import peak_of
from core.records import Cell

STATUS = Path("/proc/self/status")
SMALLEST = 2**20
"""Bytes on a CPU below which a figure would be mostly noise: such a cell finds room in what the process holds anyhow."""


def measure(cell: Cell) -> dict[str, int | str | None]:
    """Bytes that making and running the cell adds at its most, what they were read from, which kernel ran and on what.

    On a CPU these are resident bytes, and the process must have been started with the `ALLOCATOR` of `core.measure.process`:
    glibc else keeps what was freed, and a training step reads 20 to 41% high. ValueError where there is no /proc, and
    for a cell of less than a MiB.
    """
    prepare(cell)()  # libraries stay, and kernels that are made for this very shape: neither is the cell's
    gc.collect()
    found = _on_cuda(cell) if cell.device == "cuda" else _on_cpu(cell)
    return found | circumstances(cell.device, prepare(cell))


def resident_peak(run: Callable[[], None]) -> int:
    """Bytes that running adds to what is resident, at its most. ValueError where there is no /proc."""
    if not STATUS.is_file():
        raise ValueError("peak memory on a CPU is read from /proc, which only Linux has")
    Path("/proc/self/clear_refs").write_text("5")  # sets the high-water mark back to what is resident now
    before = _resident("VmRSS")
    run()
    return _resident("VmHWM") - before


def _on_cpu(cell: Cell) -> dict[str, int | str | None]:
    if (peak := resident_peak(lambda: prepare(cell)())) < SMALLEST:
        raise ValueError("too small to be told from the process's own memory; measure more tokens or a larger batch")
    compiled = cell.backend is not None and BACKENDS[cell.backend].compiles  # in which no operator can be seen
    live = None if compiled else peak_of(lambda: prepare(cell)())
    return {"peak_bytes": peak, "source": "VmHWM above baseline", "live_bytes": live}


def _resident(mark: str) -> int:
    (line,) = (line for line in STATUS.read_text().splitlines() if line.startswith(f"{mark}:"))
    return int(line.split()[1]) * 1024


def _on_cuda(cell: Cell) -> dict[str, int | str | None]:
    allocated, reserved = allocated_peak(lambda: prepare(cell)())
    return {"peak_bytes": allocated, "source": "CUDA max allocated above baseline", "reserved_bytes": reserved}


def allocated_peak(run: Callable[[], None]) -> tuple[int, int]:
    """Bytes that running adds on a GPU at its most: of tensors, and of what PyTorch's allocator takes for them."""
    torch.cuda.synchronize()
    torch.cuda.empty_cache()  # of the warm-up, or what is reserved would not show
    torch.cuda.reset_peak_memory_stats()
    allocated, reserved = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    run()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - allocated, torch.cuda.max_memory_reserved() - reserved


if __name__ == "__main__":
    print(json.dumps(measure(asked())))
