"""Experiments on memory and size: bytes that are counted or predicted, the same on every machine."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from math import log2

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from core.attention import chunked, eager, sdpa
from core.attention.masks import AttentionMask
from core.catalog import CARDS
from core.claims.figures import Figures, Found
from core.config import BiLSTMArchitecture, EncoderArchitecture
from core.measure.kernels import ATTENTION
from core.measure.live_bytes import peak_of
from core.measure.planner import largest_batch, rule_of_thumb
from core.measure.predict import breakdown, peak_bytes
from core.measure.roofline import attention_work
from core.networks.bilstm import BiLSTM
from core.networks.encoder import Encoder
from core.records import Cell
from core.training.machine import n_parameters

GIB = 2**30
ARTICLE_D = Cell(
    backend="eager", what="step", batch=32, length=512, n_heads=12, d_head=64, n_layers=6, dtype="float32", device="cpu"
)
"""The encoder of article D in training."""
LENGTHS = (128, 256, 512, 1024, 2048)
FORMATS = {"8 bits": torch.int8, "16 bits": torch.float16, "32 bits": torch.float32}


def _scores(batch: int, n_heads: int, length: int, dtype: torch.dtype = torch.float32) -> float:
    """GiB of q k^T of all heads."""
    return torch.empty(batch, n_heads, length, length, dtype=dtype, device="meta").nbytes / GIB


def scores_of_d() -> Figures:
    """Scores of 32 reviews of 1,024 tokens in 12 heads."""
    return {"scores, GiB": _scores(32, 12, 1024)}


def scores_of_a() -> Figures:
    """Scores of 32 reviews of 1,024 tokens in 8 heads, and what a layer keeps of them."""
    layer = replace(ARTICLE_D, what="backward", length=1024, n_heads=8, d_head=32, n_layers=1)
    kept = (breakdown(layer) or {}).get(ATTENTION, 0)
    return {
        "one matrix of scores, GiB": _scores(32, 8, 1024),
        "kept by a layer for backward, GiB": kept / GIB,
        "whole layer at its peak, GiB": (peak_bytes(layer) or 0) / GIB,
    }


def one_long_matrix() -> Figures:
    """One matrix of 65,536 x 65,536, by the format of its numbers."""
    return {f"{name}, GiB": _scores(1, 1, 65_536, dtype) for name, dtype in FORMATS.items()}


def flash_saves() -> Figures:
    """Bytes alive at once in attention alone, written out and flash, by length; q, k and v are counted."""
    figures: Found = {}
    for length in LENGTHS[2:]:
        for what, backward in (("forward", False), ("training", True)):
            written_out, flash = (
                peak_of(partial(_attention, attend, length, backward)) for attend in (eager.attend_unseen, sdpa.attend)
            )
            figures[f"{what} at {length}, eager over sdpa"] = written_out / flash
    return figures


def _attention(attend: Callable[..., tuple[Tensor, object]], length: int, backward: bool, d_head: int = 64) -> None:
    q, k, v = (torch.randn(2, 2, length, d_head, requires_grad=backward) for _ in range(3))
    out = attend(q, k, v, AttentionMask())[0]
    if backward:
        out.backward(torch.ones_like(out))


def share_of_attention() -> Figures:
    """What of the peak of a training step is there for written-out attention alone: what flash attention would not take."""
    figures: Found = {}
    for length in LENGTHS:
        cell = replace(ARTICLE_D, length=length)
        written_out, flash = peak_bytes(cell), peak_bytes(replace(cell, backend="sdpa"))
        assert written_out and flash
        figures[f"share at {length} tokens, %"] = 100 * (1 - flash / written_out)
    return figures


def reads_of_flash() -> Figures:
    """By how much memory held, bytes moved and operations grow when the text is twice as long; and operations over eager's."""
    flash = replace(ARTICLE_D, backend="sdpa", what="forward", n_layers=1)
    moved = [attention_work(replace(flash, length=length)).bytes_moved for length in (2048, 4096)]
    held = [peak_of(partial(_attention, chunked.attend, length, False)) for length in (1024, 2048)]
    counted = {name: [_operations(attend, backward) for backward in (False, True)]
               for name, attend in (("flash", chunked.attend), ("eager", eager.attend_unseen))}  # fmt: skip
    return {
        "memory held grows by length to the power of": log2(held[1] / held[0]),
        "bytes moved grow by length to the power of": log2(moved[1] / moved[0]),
        "operations over eager's, forward": counted["flash"][0] / counted["eager"][0],
        "operations over eager's, training": counted["flash"][1] / counted["eager"][1],
    }


def _operations(attend: Callable[..., tuple[Tensor, object]], backward: bool) -> int:
    with FlopCounterMode(display=False) as counter:
        _attention(attend, 512, backward)
    return counter.get_total_flops()


def batch_rule() -> Figures:
    """The batch that article C's rule allows over the largest that is predicted to fit, for a card of 16 GB."""
    memory = CARDS["v100"].memory_bytes
    return {
        f"{cell.n_layers} layers, {cell.length} tokens, {cell.backend}": rule_of_thumb(cell.length, 256, memory)
        / max(1, largest_batch(cell, memory) or 0)
        for cell in _training_cells()
    }


def _training_cells() -> Iterator[Cell]:
    base = replace(ARTICLE_D, n_heads=8, d_head=32, batch=1)
    for n_layers in (1, 3, 6):
        for length in (128, 512, 1024):
            for backend in ("eager", "sdpa"):
                yield replace(base, n_layers=n_layers, length=length, backend=backend)


def parameters() -> Figures:
    """Of article A's configurations, as they are told."""
    with torch.device("meta"):
        networks: dict[str, nn.Module] = {
            "transformer": Encoder(EncoderArchitecture()), "bilstm": BiLSTM(BiLSTMArchitecture())
        }  # fmt: skip
    return {f"{name}, million": n_parameters(network) / 1e6 for name, network in networks.items()}
