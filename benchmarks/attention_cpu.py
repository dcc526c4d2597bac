"""Limits of the attention kernels on this machine's CPU: `python -m benchmarks.attention_cpu`.

Times are ratios of interleaved pairs in one process, since a machine may be busy; memory is measured by `core.measure`, each
cell in a process of its own. Writes benchmarks/RESULTS_attention_<cpu>_<date>.json and .md.
"""

import datetime
import json
import os
import re
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from core.attention import chunked, eager, sdpa
from core.attention.masks import AttentionMask
from core.config import EncoderArchitecture
from core.measure.predict import peak_bytes
from core.measure.process import in_process
from core.networks.blocks import SelfAttention
from core.positional.base import PositionalEncoding
from core.records import Cell
from core.training.machine import hardware

HEADS, D_HEAD = 8, 32
PAIRS = 5
TCMALLOC = "libtcmalloc*.so*"
HERE = Path(__file__).parent
HEADING = """\
# Attention on a CPU, {date}

{cpu}, threads: {threads} of {cores} cores, which other processes used, too; PyTorch {torch}; allocator: {allocator}{lacking}.
Float32, forward and backward, {heads} heads of {d_head}. Times are the median of {pairs} interleaved pairs in one process, and
their range; peaks are of one encoder layer, each in a process of its own (VmHWM above baseline).

| what | limit | found |
|---|---|---|
{rows}
"""


def ratio(slower: Callable[..., Any], faster: Callable[..., Any], batch: int, length: int, mask: AttentionMask) -> list[float]:
    """Seconds of one forward and backward pass over those of the other, of each pair."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(batch, HEADS, length, D_HEAD, requires_grad=True) for _ in range(3))
    above = torch.randn_like(q)

    def seconds(attend: Callable[..., Any]) -> float:
        start = time.perf_counter()
        torch.autograd.grad(attend(q, k, v, mask)[0], (q, k, v), above)
        return time.perf_counter() - start

    seconds(slower), seconds(faster)  # warm up
    return [seconds(slower) / seconds(faster) for _ in range(PAIRS)]


def peak(backend: str) -> dict[str, int | None]:
    """Bytes of one encoder layer at B 2, T 4096, forward and backward, in float32."""
    cell = Cell(
        backend=backend, what="backward", batch=2, length=4096, n_heads=HEADS, d_head=D_HEAD, n_layers=1, dtype="float32",
        device="cpu",
    )  # fmt: skip
    return {"measured": in_process("memory", cell)["peak_bytes"], "predicted": peak_bytes(cell)}


def by_hand(block: SelfAttention, x: Tensor) -> Tensor:
    """Self-attention as one would write it for one case alone."""
    q, k, v = block.qkv(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
    heads = F.scaled_dot_product_attention(q, k, v, scale=block.scale)
    return block.out(heads.transpose(1, 2).flatten(-2))


def operations(run: Callable[[], object]) -> int:
    """Calls of PyTorch's operators, as its profiler counts them."""
    with profile(activities=[ProfilerActivity.CPU]) as found:
        run()
    return sum(event.count for event in found.key_averages() if event.key.startswith("aten::"))


def block_operations() -> dict[str, int]:
    """Of our block, and of one written by hand with the same weights."""
    architecture = EncoderArchitecture(d_model=HEADS * D_HEAD, n_heads=HEADS, positional="none")
    block, x = SelfAttention(architecture).eval(), torch.randn(2, 64, HEADS * D_HEAD)
    context = (torch.arange(64)[None], AttentionMask(), PositionalEncoding(architecture), sdpa.attend)
    torch.testing.assert_close(block(x, *context)[0], by_hand(block, x))
    return {"ours": operations(lambda: block(x, *context)), "by_hand": operations(lambda: by_hand(block, x))}


def measured() -> dict[str, Any]:
    """All figures, and what they were measured on."""
    real = torch.arange(1024) < torch.tensor([[1024], *[[700]] * 7])
    memory = {name: peak(name) for name in ("eager", "chunked")}
    return {
        "date": str(datetime.date.today()),
        "torch": torch.__version__,
        "hardware": hardware("cpu"),
        "allocator": os.environ.get("LD_PRELOAD") or "glibc",
        "tcmalloc": bool([*Path("/usr/lib").rglob(TCMALLOC)]),
        "eager over sdpa": ratio(eager.attend, sdpa.attend, 8, 1024, AttentionMask(real)),
        "chunked over eager": ratio(chunked.attend, eager.attend, 2, 4096, AttentionMask()),
        "peak": memory,
        "operations": block_operations(),
    }


def told(found: dict[str, Any]) -> str:
    """The same as Markdown."""
    machine, peaks, counted = found["hardware"], found["peak"], found["operations"]
    rows = []
    for name, what, limit in (
        ("eager over sdpa", "time of `eager` over `sdpa`, with a mask, B 8, T 1024", "at least 2.5"),
        ("chunked over eager", "time of `chunked` over `eager`, B 2, T 4096", "at most 1.5"),
    ):
        low, high = min(found[name]), max(found[name])
        rows.append(f"| {what} | {limit} | {statistics.median(found[name]):.2f} ({low:.2f} to {high:.2f}) |")
    share = peaks["chunked"]["measured"] / peaks["eager"]["measured"]
    sizes = ", ".join(f"{values['measured'] / 2**20:,.0f} MiB" for values in reversed(peaks.values()))
    rows.append(f"| peak of a layer, `chunked` over `eager`, B 2, T 4096 | at most 0.1 | {share:.3f} ({sizes}) |")
    rows.append(f"| operators of `SelfAttention`, and by hand | equal | {counted['ours']}, {counted['by_hand']} |")
    lacking = "" if found["tcmalloc"] else " (tcmalloc is not installed here, so nothing was measured under it)"
    return HEADING.format(**machine, **found, lacking=lacking, pairs=PAIRS, heads=HEADS, d_head=D_HEAD, rows="\n".join(rows))


def main() -> None:
    """Measures, and writes both files."""
    found = measured()
    cpu = re.sub(r"\W+", "-", found["hardware"]["cpu"]).strip("-")
    path = HERE / f"RESULTS_attention_{cpu}_{found['date']}"
    path.with_suffix(".json").write_text(json.dumps(found, indent=1) + "\n")
    path.with_suffix(".md").write_text(told(found))
    print(told(found))


if __name__ == "__main__":
    main()
