"""What this machine reaches at its best: the rate of a product of large matrices, and of a copy of a large tensor."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from benchmarks.suite import Setting
from core.config import SweepConfig
from core.measure import sweep
from core.measure.process import in_process
from core.recorded import Column, Table

DTYPES = ("float32", "bfloat16")


@cache
def ceilings(device: str, dtype: str) -> dict[str, Any]:
    """`core.events.Ceilings`, from a process of its own. ValueError if that ends."""
    shape = SweepConfig(dtype=dtype, device=device)
    return in_process("ceilings", sweep.cells(shape)[0])


def gemm_rate(device: str) -> float:
    """Operations per second of a product of large matrices, in the format of numbers that is fastest here."""
    return max(ceilings(device, dtype)["operations_per_s"] for dtype in DTYPES)


def part(setting: Setting) -> Iterator[Table]:
    """Table "ceilings"."""
    found = [(dtype, ceilings(setting.device, dtype)) for dtype in DTYPES[: 1 if setting.quick else None]]
    yield Table(
        name="ceilings",
        caption="The fastest of a few: a product of two large square matrices, and a copy of 256 MiB, each byte read and "
        "written. Shares of a ceiling in other tables are of the product in the faster format.",
        columns=(
            Column(name="numbers"),
            Column(name="matrix product", unit="GFLOP/s"),
            Column(name="copy", unit="GB/s"),
        ),
        rows=tuple((dtype, each["operations_per_s"] / 1e9, each["bytes_per_s"] / 1e9) for dtype, each in found),
    )
