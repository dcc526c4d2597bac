"""Limits of the attention kernels on this machine's CPU: `python -m benchmarks.attention_cpu`.

Times are ratios of interleaved pairs in one process, since a machine may be busy; memory is measured by `core.measure`, each
cell in a process of its own. Writes benchmarks/RESULTS_attention_<cpu>_<date>.json and .md.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from benchmarks.pairs import Spread, in_turns, ratio, timed
from benchmarks.suite import HERE, recorded
from core.attention import chunked, eager, sdpa
from core.attention.masks import AttentionMask
from core.config import EncoderArchitecture
from core.measure.predict import peak_bytes
from core.measure.process import in_process
from core.networks.blocks import SelfAttention
from core.positional.base import PositionalEncoding
from core.recorded import Column, Table, file_name, markdown, write
from core.records import Cell

HEADS, D_HEAD = 8, 32
PAIRS = 5
TCMALLOC = "libtcmalloc*.so*"


def compared(slower: Callable[..., Any], faster: Callable[..., Any], batch: int, length: int, mask: AttentionMask) -> Spread:
    """Seconds of one forward and backward pass over those of the other, of each pair."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(batch, HEADS, length, D_HEAD, requires_grad=True) for _ in range(3))
    above = torch.randn_like(q)

    def run(attend: Callable[..., Any]) -> None:
        torch.autograd.grad(attend(q, k, v, mask)[0], (q, k, v), above)

    found = in_turns({"slower": timed(partial(run, slower)), "faster": timed(partial(run, faster))}, PAIRS)
    return ratio(found["slower"], found["faster"])


def cell(backend: str) -> Cell:
    """One encoder layer at B 2, T 4096, forward and backward, in float32."""
    return Cell(
        backend=backend, what="backward", batch=2, length=4096, n_heads=HEADS, d_head=D_HEAD, n_layers=1, dtype="float32",
        device="cpu",
    )  # fmt: skip


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


def measured() -> tuple[Table, ...]:
    """All figures."""
    mask = AttentionMask(torch.arange(1024) < torch.tensor([[1024], *[[700]] * 7]))
    cells = {backend: cell(backend) for backend in ("eager", "chunked")}
    return (
        times(
            compared(eager.attend, sdpa.attend, 8, 1024, mask),
            compared(chunked.attend, eager.attend, 2, 4096, AttentionMask()),
        ),
        peaks({name: (in_process("memory", each)["peak_bytes"], peak_bytes(each) or 0) for name, each in cells.items()}),
        operators(block_operations()),
    )


def times(eager_over_sdpa: Spread, chunked_over_eager: Spread) -> Table:
    """Ratios of pairs."""
    return Table(
        name="time",
        caption=f"Forward and backward in float32, {HEADS} heads of {D_HEAD}: {PAIRS} interleaved pairs in one process.",
        columns=(Column(name="of"), Column(name="limit"), *(Column(name=name) for name in ("median", "lowest", "highest"))),
        rows=(
            ("eager over sdpa, with a mask, B 8, T 1024", "at least 2.5", *eager_over_sdpa.cells),
            ("chunked over eager, B 2, T 4096", "at most 1.5", *chunked_over_eager.cells),
        ),
    )


def peaks(found: dict[str, tuple[int, int]]) -> Table:
    """Bytes measured and predicted, by backend."""
    return Table(
        name="memory",
        caption="Peak of one encoder layer at B 2, T 4096, forward and backward in float32, each in a process of its own "
        "(VmHWM above baseline). Limit: chunked takes at most 0.1 of what eager takes.",
        columns=(
            Column(name="backend"), Column(name="measured", unit="MiB"), Column(name="predicted", unit="MiB"),
            Column(name="over eager"),
        ),
        rows=tuple((name, n / 2**20, said / 2**20, n / found["eager"][0]) for name, (n, said) in found.items()),
    )  # fmt: skip


def operators(found: dict[str, int]) -> Table:
    """Ours and by hand."""
    return Table(
        name="operators",
        caption="PyTorch's operators in one call of SelfAttention, and of the same written by hand for one case. Limit: equal.",
        columns=(Column(name="ours"), Column(name="by hand")),
        rows=((found["ours"], found["by_hand"]),),
    )


def allocator() -> str:
    """Which one the figures are of."""
    preloaded = Path(os.environ.get("LD_PRELOAD") or "glibc").name
    there = any(Path("/usr/lib").rglob(TCMALLOC))
    return f"Allocator: {preloaded}{'' if there else ' (tcmalloc is not installed here, so nothing was measured under it)'}."


def main() -> None:
    """Measures, and writes both files."""
    results = recorded("Attention on a CPU", "python -m benchmarks.attention_cpu", seed=0)
    results = replace(results, tables=measured(), notes=(*results.notes, allocator()))
    write(results, HERE / file_name(results, "attention"))
    print(markdown(results))


if __name__ == "__main__":
    main()
