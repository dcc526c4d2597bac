"""Mistakes of tutorials and bug reports, made on purpose and under their own names, to be measured against what is right.

`EncoderArchitecture.mistake` names one. What is right knows nothing of them: a mistake takes the place of one part.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from core.attention.bias import Bias
from core.attention.eager import scores
from core.attention.masks import AttentionMask
from core.config import EncoderArchitecture
from core.networks.blocks import SelfAttention
from core.networks.dropout import Dropout
from core.networks.pooling import POOLINGS, Pooling
from core.positional.learned import Learned
from core.positional.sinusoidal import Sinusoidal, table

Attend = Callable[..., tuple[Tensor, Tensor | None]]

# Attention: weights from logits, and from what should be hidden

WEIGHINGS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "mask_after_softmax": lambda logits, hidden: _softmax(logits).masked_fill(hidden, 0.0),
    "no_mask": lambda logits, hidden: _softmax(logits),
    "fill_-1e9": lambda logits, hidden: _softmax(logits.masked_fill(hidden, -1e9)),
    "fill_-inf": lambda logits, hidden: _softmax(logits.masked_fill(hidden, float("-inf"))),
    "fill_finfo_min": lambda logits, hidden: _softmax(logits.masked_fill(hidden, torch.finfo(logits.dtype).min)),
}
"""The first two are wrong wherever something is hidden, a fill only where a query has nothing left to see."""


def _softmax(logits: Tensor) -> Tensor:
    return logits.softmax(dim=-1, dtype=torch.float32)


def attention(mistake: str, backend: str, right: Attend) -> Attend:
    """What attends in the place of `right`, the backend's own. ValueError if only written-out attention makes the mistake."""
    if mistake not in WEIGHINGS:
        return right
    if backend != "eager":
        raise ValueError(
            f"backend: got {backend!r}, expected 'eager': mistake {mistake!r} is made in written-out attention alone"
        )
    weigh = WEIGHINGS[mistake]

    def attend(
        q: Float[Tensor, "B H Q K"],
        k: Float[Tensor, "B H T K"],
        v: Float[Tensor, "B H T K"],
        mask: AttentionMask,
        bias: Bias | None = None,
        scale: float | None = None,
        dropout_p: float = 0.0,
    ) -> tuple[Float[Tensor, "B H Q K"], Float[Tensor, "B H Q T"]]:
        weights = weigh(scores(q, k, bias, scale), hidden(mask, q, k))
        return F.dropout(weights.to(v.dtype), dropout_p) @ v, weights

    return attend


def hidden(mask: AttentionMask, q: Float[Tensor, "B H Q K"], k: Float[Tensor, "B H T K"]) -> Bool[Tensor, "#B 1 #Q #T"]:
    """Where a query may not attend; unlike in `mask.dense`, padding is hidden from padding, too, so that a row may be empty."""
    allowed = mask.dense(q, k)
    if allowed is None:
        return torch.zeros(1, 1, 1, 1, dtype=torch.bool, device=q.device)
    return ~allowed if mask.token_mask is None else ~(allowed & mask.token_mask[:, None, None, :])


# Packed reviews

OF_PADDED_REVIEWS = {
    "mean_over_padding": "which have no padding",
    "reshape_without_transpose": "of which a head would be given tokens of several",
    "layer_norm_over_text": "of which all would be normalised as one",
}


def refuse_packed(mistake: str) -> None:
    """ValueError for a mistake that is another one, or none, where reviews lie in one row."""
    if mistake in OF_PADDED_REVIEWS:
        raise ValueError(f"mistake {mistake!r}: got packed reviews, {OF_PADDED_REVIEWS[mistake]}; expected padded ones")


# Pooling


def mean_over_padding(x: Float[Tensor, "B T D"], mask: AttentionMask) -> Float[Tensor, "B D"]:
    """The mean over all tokens, padding too."""
    return x.mean(1, dtype=torch.float32).to(x.dtype)


def poolings(mistake: str) -> dict[str, Pooling]:
    """What pools under each name."""
    return POOLINGS | {"mean": mean_over_padding} if mistake == "mean_over_padding" else POOLINGS


# Parts of the network


class BatchNorm(nn.BatchNorm1d):
    """Each component normalised over all tokens of all reviews, in place of each token over its components."""

    def forward(self, input: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """In training by the batch's own mean and variance; in evaluation by the running ones."""
        return super().forward(input.flatten(0, 1)).view_as(input)


class LayerNormOverText(nn.LayerNorm):
    """Mean and variance of all numbers of a text, padding too, in place of those of each token."""

    def forward(self, input: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Scaled and shifted by component, as in layer norm: shapes fit, and nothing is said."""
        return F.layer_norm(input, input.shape[1:], eps=self.eps) * self.weight + self.bias


class DropoutInEvaluation(Dropout):
    """What `F.dropout(x, p)` without `training=self.training` does."""

    def train(self, mode: bool = True) -> "DropoutInEvaluation":
        """Stays in training."""
        return super().train(True)


def sines_as_parameter(architecture: EncoderArchitecture) -> Learned:
    """Positions that start as sines and cosines, and are trained: `nn.Parameter` in place of a buffer."""
    positional = Learned(architecture)
    weight = positional.table.weight
    with torch.no_grad():
        weight.copy_(table(architecture.max_len, architecture.d_model, weight.device))
    return positional


def split_by_reshape(qkv: Float[Tensor, "B T D3"], n_heads: int) -> Float[Tensor, "3 B H T K"]:
    """(T, D) read as if it were (H, T, K): a head is a block of whole tokens, each of them cut into n_heads."""
    batch, length = qkv.shape[:2]
    return torch.stack([part.reshape(batch, n_heads, length, -1) for part in qkv.chunk(3, dim=-1)])


def merge_by_reshape(heads: Float[Tensor, "B H T K"]) -> Float[Tensor, "B T D"]:
    """The way back."""
    return heads.reshape(heads.shape[0], heads.shape[2], -1)


def _reshaping(attention: SelfAttention) -> SelfAttention:
    attention.split, attention.merge = split_by_reshape, merge_by_reshape
    return attention


PARTS: dict[str, tuple[type[nn.Module], Callable[[Any, EncoderArchitecture], nn.Module]]] = {
    "reshape_without_transpose": (SelfAttention, lambda right, architecture: _reshaping(right)),
    "batch_norm": (nn.LayerNorm, lambda right, architecture: BatchNorm(architecture.d_model)),
    "layer_norm_over_text": (nn.LayerNorm, lambda right, architecture: LayerNormOverText(architecture.d_model)),
    "positions_as_parameter": (Sinusoidal, lambda right, architecture: sines_as_parameter(architecture)),
    "dropout_in_evaluation": (Dropout, lambda right, architecture: DropoutInEvaluation(right.p)),
}
"""Which modules of a network are replaced, and by what."""


def put_into(network: nn.Module, architecture: EncoderArchitecture) -> None:
    """Replaces the parts of a right network that its `mistake` concerns; all other weights stay as they were drawn."""
    if architecture.mistake not in PARTS:
        return
    kind, wrong = PARTS[architecture.mistake]
    for parent in list(network.modules()):
        for name, child in parent.named_children():
            if type(child) is kind:
                setattr(parent, name, wrong(child, architecture))
