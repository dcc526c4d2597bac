"""PyTorch's attention over packed reviews: no padding, no mask, no wasted product."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.attention import varlen

from core.attention.bias import Bias
from core.attention.masks import AttentionMask
from core.attention.refusal import refuse_impossible

LARGEST_HEAD = 256
"""Numbers of a head that the kernel takes (arXiv:2307.08691, section 3)."""


def attend(
    q: Float[Tensor, "B H Q K"],
    k: Float[Tensor, "B H T K"],
    v: Float[Tensor, "B H T K"],
    mask: AttentionMask,
    bias: Bias | None = None,
    scale: float | None = None,
    dropout_p: float = 0.0,
) -> tuple[Float[Tensor, "B H Q K"], None]:
    """The same as `eager.attend` without the weights, for reviews that are packed, or of one length (arXiv:2307.08691).

    The kernel takes heads whose size is a multiple of 8: others are filled up with zeros.
    """
    refuse_impossible("varlen", q, k, v, mask, bias, dropout_p)
    (queries, most_queries), (keys, most_keys) = _lengths(q, mask), _lengths(k, mask)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    out = varlen.varlen_attn(
        _packed(q), _packed(k), _packed(v), queries, keys, most_queries, most_keys, scale=scale, window_size=_window(mask)
    )
    assert isinstance(out, Tensor)
    return out[..., : q.shape[-1]].unflatten(0, (q.shape[0], -1)).transpose(1, 2), None


def _packed(x: Float[Tensor, "B H T K"]) -> Float[Tensor, "n H K8"]:
    """All tokens in a row."""
    row = x.transpose(1, 2).flatten(0, 1)
    return F.pad(row, (0, -x.shape[-1] % 8)) if x.shape[-1] % 8 else row


def _lengths(x: Float[Tensor, "B H T K"], mask: AttentionMask) -> tuple[Int[Tensor, "n_cumulative"], int]:
    """Cumulative lengths of the reviews, as the kernel reads them, and the largest length."""
    if mask.segments is not None:
        return mask.segments.to(torch.int32), mask.longest
    return torch.arange(x.shape[0] + 1, dtype=torch.int32, device=x.device) * x.shape[2], x.shape[2]


def _window(mask: AttentionMask) -> tuple[int, int]:
    """Tokens seen before and after a query; -1 is all of them."""
    before = -1 if mask.window is None else mask.window
    return before, 0 if mask.causal else before
