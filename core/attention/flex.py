"""PyTorch's FlexAttention: mask and bias are functions of indices, compiled into the kernel (arXiv:2412.05496)."""

import functools
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor
from torch._dynamo import config
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from core.attention.bias import Bias
from core.attention.masks import AttentionMask
from core.attention.refusal import refuse_impossible

GRAPHS = 256
"""Compiled kernels at most in a process: one for each kind of mask and bias, on a CPU also for each size."""


def attend(
    q: Float[Tensor, "B H Q K"],
    k: Float[Tensor, "B H T K"],
    v: Float[Tensor, "B H T K"],
    mask: AttentionMask,
    bias: Bias | None = None,
    scale: float | None = None,
    dropout_p: float = 0.0,
) -> tuple[Float[Tensor, "B H Q K"], None]:
    """The same as `eager.attend` without the weights; memory grows with T, but for the mask, once written out in bools.

    The first call compiles, which takes about 20 s, and so does each new kind of mask or bias. ValueError without a compiler:
    uncompiled, FlexAttention holds all scores, and would not be what its name says.
    """
    refuse_impossible("flex", q, k, v, mask, bias, dropout_p)
    if not torch.is_grad_enabled():
        q, k, v = q.detach(), k.detach(), v.detach()  # on a CPU, leaves that have gradients elsewhere are refused, too
    with config.patch(recompile_limit=GRAPHS):
        out = _compiled(q.is_cuda)(
            q, k, v, score_mod=_score_mod(bias, q, k), block_mask=_block_mask(mask, q, k), scale=scale
        )  # fmt: skip
    return out, None


def _block_mask(mask: AttentionMask, q: Tensor, k: Tensor) -> BlockMask | None:
    """Which blocks of 128 by 128 are seen whole, in part or not at all; None where nothing is hidden."""
    mask = mask.among(q.shape[-2], k.shape[-2])
    if mask.token_mask is None and not mask.by_place:
        return None
    rule, first = mask.rule(q, k), k.shape[-2] - q.shape[-2]  # the place of the first query
    sizes = q.shape[0], None, q.shape[-2], k.shape[-2]
    return create_block_mask(lambda b, h, i, j: rule(b, i + first, j), *sizes, device=q.device)


def _score_mod(bias: Bias | None, q: Tensor, k: Tensor) -> Callable[..., Tensor] | None:
    """The bias as a function of a score and its indices."""
    if bias is None:
        return None
    here, first = bias.to(q.device), k.shape[-2] - q.shape[-2]
    return lambda score, b, h, i, j: score + here.at(h, i + first, j)


@functools.cache
def _compiled(dynamic: bool) -> Callable[..., Tensor]:
    # on a CPU each size has a graph: one for all is no valid C++ in PyTorch 2.13 where the mask reads a tensor
    return torch.compile(flex_attention, dynamic=dynamic, fullgraph=True)  # fullgraph: an error where it would fall back
