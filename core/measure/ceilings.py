"""How fast this machine multiplies and copies, measured in this process, which does nothing else."""

import json
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime

import torch

from core.events import Ceilings
from core.measure.cells import asked, hardware_of, multiplied, synchronize
from core.records import Cell

GEMM_SIZE = {"cpu": 2048, "cuda": 8192}
"""Rows and columns of the matrices whose product stands for all products: as many as keep a device busy."""
COPIED_BYTES = 2**28
"""More than a cache holds."""
REPEATS = 9


def measure(cell: Cell) -> Ceilings:
    """The rates that a cell's device reaches in products of its format, and in copying. ValueError without the device."""
    if cell.device == "cuda" and not torch.cuda.is_available():
        raise ValueError("device: got 'cuda', but PyTorch finds no GPU here; use 'cpu'")
    size = GEMM_SIZE[cell.device]
    a, b = (torch.ones(size, size, dtype=multiplied(cell), device=cell.device) for _ in range(2))
    source = torch.ones(COPIED_BYTES, dtype=torch.uint8, device=cell.device)
    target = torch.ones_like(source)
    return Ceilings(
        device=cell.device,
        dtype=cell.dtype,
        operations_per_s=2 * size**3 / _seconds(cell, lambda: a @ b),
        bytes_per_s=2 * COPIED_BYTES / _seconds(cell, lambda: target.copy_(source)),
        hardware=hardware_of(cell.device),
        date=f"{datetime.now(UTC):%Y-%m-%d}",
    )


def _seconds(cell: Cell, run: Callable[[], object]) -> float:
    """The fastest of a few runs: what else the machine does makes none faster."""
    found = []
    for _ in range(REPEATS):
        synchronize(cell.device)
        start = time.perf_counter()
        run()
        synchronize(cell.device)
        found.append(time.perf_counter() - start)
    return min(found)


if __name__ == "__main__":
    print(json.dumps(asdict(measure(asked()))))
