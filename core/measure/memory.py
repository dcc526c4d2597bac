"""Peak memory of one cell, measured in this process, which does nothing else: `python -m core.measure.memory CELL`."""

import gc
import json
import sys
from dataclasses import replace
from pathlib import Path

import torch

from core.measure.cells import circumstances, prepare, synchronize
from core.records import Cell

WARM_UP_LENGTH = 32
STATUS = Path("/proc/self/status")
SMALLEST = 2**20
"""Bytes on a CPU below which a figure would be mostly noise: such a cell finds room in what the process holds anyhow."""


def measure(cell: Cell) -> dict[str, int | str]:
    """Bytes that making and running the cell adds at its most, what they were read from, which kernel ran and on what.

    On a CPU these are resident bytes, and the process must have been started with the `ALLOCATOR` of `core.measure.process`:
    glibc else keeps what was freed, and a training step reads 20 to 41 % high. ValueError where there is no /proc, and
    for a cell of less than a MiB.
    """
    prepare(replace(cell, length=min(WARM_UP_LENGTH, cell.length)))()  # libraries and workspaces stay, and are not the cell's
    gc.collect()
    peak, source = _on_cuda(cell) if cell.device == "cuda" else _on_cpu(cell)
    return {"peak_bytes": peak, "source": source} | circumstances(cell, prepare(cell))


def _on_cpu(cell: Cell) -> tuple[int, str]:
    if not STATUS.is_file():
        raise ValueError("peak memory on a CPU is read from /proc, which only Linux has")
    Path("/proc/self/clear_refs").write_text("5")  # sets the high-water mark back to what is resident now
    before = _resident("VmRSS")
    prepare(cell)()
    if (peak := _resident("VmHWM") - before) < SMALLEST:
        raise ValueError("too small to be told from the process's own memory; measure more tokens or a larger batch")
    return peak, "VmHWM above baseline"


def _resident(mark: str) -> int:
    (line,) = (line for line in STATUS.read_text().splitlines() if line.startswith(f"{mark}:"))
    return int(line.split()[1]) * 1024


def _on_cuda(cell: Cell) -> tuple[int, str]:
    synchronize(cell)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    prepare(cell)()
    synchronize(cell)
    return torch.cuda.max_memory_allocated() - before, "CUDA max allocated above baseline"


if __name__ == "__main__":
    print(json.dumps(measure(Cell(**json.loads(sys.argv[1])))))
