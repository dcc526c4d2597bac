"""Softmax attention written out."""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, float32

from core.attention.bias import Bias
from core.attention.masks import AttentionMask


def attend(
    q: Float[Tensor, "B H Q K"],
    k: Float[Tensor, "B H T K"],
    v: Float[Tensor, "B H T K"],
    mask: AttentionMask,
    bias: Bias | None = None,
    scale: float | None = None,
    dropout_p: float = 0.0,
) -> tuple[Float[Tensor, "B H Q K"], Float[Tensor, "B H Q T"]]:
    """softmax(q k^T * scale + bias) v: the reference that every other backend must match (arXiv:1706.03762, eq. 1).

    `scale` defaults to 1/sqrt(K). The weights are float32, from before dropout; memory grows with Q x T. Logits have the format
    of q: in float16 those beyond 65,504 overflow, which the other backends hold in float32.
    """
    weights = _logits(q, k, mask, bias, scale).softmax(dim=-1, dtype=float32)
    return F.dropout(weights.to(v.dtype), dropout_p) @ v, weights


def attend_unseen(
    q: Float[Tensor, "B H Q K"],
    k: Float[Tensor, "B H T K"],
    v: Float[Tensor, "B H T K"],
    mask: AttentionMask,
    bias: Bias | None = None,
    scale: float | None = None,
    dropout_p: float = 0.0,
) -> tuple[Float[Tensor, "B H Q K"], None]:
    """The same where nobody looks at the weights: in half precision they are never there in float32, though summed in it."""
    weights = _logits(q, k, mask, bias, scale).softmax(dim=-1)
    return F.dropout(weights.to(v.dtype), dropout_p) @ v, None  # a bias may have brought them to float32


def scores(q: Tensor, k: Tensor, bias: Bias | None, scale: float | None) -> Float[Tensor, "B H Q T"]:
    """q k^T * scale + bias, before any mask."""
    factor = q.shape[-1] ** -0.5 if scale is None else scale
    logits = (q * factor) @ k.transpose(-2, -1)  # scaling q takes Q x K products, scaling the logits Q x T
    return logits if bias is None else logits + bias.dense(q, k)


def _logits(q: Tensor, k: Tensor, mask: AttentionMask, bias: Bias | None, scale: float | None) -> Float[Tensor, "B H Q T"]:
    logits, allowed = scores(q, k, bias, scale), mask.dense(q, k)
    return logits if allowed is None else logits.masked_fill(~allowed, float("-inf"))
