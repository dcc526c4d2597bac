"""What the networks are built of. Imports torch alone, so that a measured process stays small."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from core.attention import eager
from core.attention.masks import AttentionMask
from core.catalog import BACKENDS, resolve
from core.config import SPECIAL_TOKENS, TransformerArchitecture
from core.networks import pooling
from core.networks.dropout import Dropout
from core.positional.base import PositionalEncoding

MASK_ID = SPECIAL_TOKENS.index("[MASK]")
ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {"relu": nn.ReLU, "gelu": nn.GELU}
ATTENTION_SCALES: dict[str, Callable[[TransformerArchitecture], float]] = {
    "sqrt_d_head": lambda a: (a.d_model // a.n_heads) ** -0.5,
    "sqrt_d_model": lambda a: a.d_model**-0.5,
    "none": lambda a: 1.0,
}


def attention_function(backend: str, *, weights: bool) -> Callable[..., tuple[Tensor, Tensor | None]]:
    """The `attend` of a backend, with `weights` or without. ValueError if it is unknown, or computes none and is asked."""
    attend = resolve(BACKENDS, "backend", backend)
    if (reason := BACKENDS[backend].why_not(weights=weights)) is not None:
        raise ValueError(f"backend {backend!r}: {reason}")
    return eager.attend_unseen if backend == "eager" and not weights else attend


def split_heads(qkv: Float[Tensor, "B T D3"], n_heads: int) -> Float[Tensor, "3 B H T K"]:
    """q, k and v of each head, from one vector of each token."""
    return qkv.unflatten(-1, (3, n_heads, -1)).permute(2, 0, 3, 1, 4)


def merge_heads(heads: Float[Tensor, "B H T K"]) -> Float[Tensor, "B T D"]:
    """The heads of each token side by side."""
    return heads.transpose(1, 2).flatten(-2)


def mean_over_text(heads: Float[Tensor, "B H T K"], mask: AttentionMask) -> Float[Tensor, "B H #T K"]:
    """Each head's mean over the real tokens of its text: what it gives, whichever token asks."""
    means = pooling.mean(merge_heads(heads), mask).unflatten(-1, (heads.shape[1], -1))
    if mask.segments is None:
        return means[:, :, None]
    spread = means.repeat_interleave(mask.segments.diff(), dim=0, output_size=heads.shape[2])
    return spread.transpose(0, 1)[None]


def switched(
    heads: Float[Tensor, "B H T K"], mask: AttentionMask, gain: Float[Tensor, "H"] | None, mean: Bool[Tensor, "H"] | None
) -> Float[Tensor, "B H T K"]:
    """Heads replaced by their `mean_over_text` where `mean` is True, and then scaled by their `gain`."""
    if mean is not None:
        heads = torch.where(mean.to(heads.device)[:, None, None], mean_over_text(heads, mask), heads)
    return heads if gain is None else heads * gain.to(heads)[:, None, None]


def of_layer(name: str, given: Shaped[Tensor, "..."] | None, layer: int, n_layers: int, n_heads: int) -> Tensor | None:
    """One layer's part of the argument called `name`. ValueError unless it holds a value for each layer and head."""
    if given is not None and given.shape != (n_layers, n_heads):
        expected = f"expected a value for each layer and head, {(n_layers, n_heads)}"
        raise ValueError(f"{name}: got {tuple(given.shape)}, {expected}")
    return None if given is None else given[layer]


def refuse_no_batch(input_ids: Int[Tensor, "B T"], token_mask: Bool[Tensor, "..."] | None) -> None:
    """ValueError for texts without a token, and for a mask of other texts."""
    if input_ids.shape[1] == 0:
        raise ValueError("got a text without a token, expected at least one word or sign")
    if token_mask is not None and token_mask.shape != input_ids.shape:
        raise ValueError(f"token_mask: got {tuple(token_mask.shape)}, expected that of the ids, {tuple(input_ids.shape)}")


class SelfAttention(nn.Module):
    """Multi-head self-attention with one product for queries, keys and values (arXiv:1706.03762, section 3.2)."""

    def __init__(self, architecture: TransformerArchitecture) -> None:
        super().__init__()
        self.n_heads = architecture.n_heads
        self.scale = ATTENTION_SCALES[architecture.attention_scale](architecture)
        self.dropout = Dropout(architecture.attention_dropout)  # of attention weights: the kernel does it
        self.split, self.merge = split_heads, merge_heads
        self.qkv = nn.Linear(architecture.d_model, 3 * architecture.d_model)
        self.out = nn.Linear(architecture.d_model, architecture.d_model)

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        codes: Shaped[Tensor, "#B T *code"],
        mask: AttentionMask,
        positional: PositionalEncoding,
        attend: Callable[..., tuple[Tensor, Tensor | None]],
        head_gain: Float[Tensor, "H"] | None = None,
        cached: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] | None = None,
        head_mean: Bool[Tensor, "H"] | None = None,
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B H T S"] | None]:
        """The sublayer's output, and the weights where `attend` computes them.

        `codes` are those of the tokens' places, as `positional` makes them; `head_gain` and `head_mean` are as in `switched`.
        `cached` takes the keys and values of these tokens, and gives those of all tokens to attend to, of which they are last.
        """
        q, k, v = self._projected(x, codes, positional)
        if cached is not None:
            k, v = cached(k, v)
        dropout_p = self.dropout.p if self.dropout.training else 0.0
        heads, weights = attend(q, k, v, mask, positional.bias(x.device), self.scale, dropout_p)
        return self.out(self.merge(switched(heads, mask, head_gain, head_mean))), weights

    def logits(
        self,
        x: Float[Tensor, "B T D"],
        codes: Shaped[Tensor, "#B T *code"],
        mask: AttentionMask,
        positional: PositionalEncoding,
    ) -> Float[Tensor, "B H T T"]:
        """What the softmax is taken of, in float32: scaled, with bias, 0 where a query may not attend."""
        q, k, _ = self._projected(x, codes, positional)
        logits = (q.float() * self.scale) @ k.float().transpose(-2, -1)
        if (bias := positional.bias(x.device)) is not None:
            logits = logits + bias.dense(q, k)
        allowed = mask.dense(q, k)
        return logits if allowed is None else logits.masked_fill(~allowed, 0.0)

    def _projected(self, x: Tensor, codes: Tensor, positional: PositionalEncoding) -> tuple[Tensor, Tensor, Tensor]:
        """q, k and v of each head, each (B, H, T, K)."""
        q, k, v = self.split(self.qkv(x), self.n_heads)
        return positional.rotate(q, codes), positional.rotate(k, codes), v


class EncoderLayer(nn.Module):
    """Attention, then a feed-forward network for each token, each with residual sum and layer norm."""

    def __init__(self, architecture: TransformerArchitecture) -> None:
        super().__init__()
        self.pre_norm = architecture.norm == "pre"
        self.residual = architecture.residual
        self.attention = SelfAttention(architecture)
        self.feed_forward = nn.Sequential(
            nn.Linear(architecture.d_model, architecture.d_ff),
            ACTIVATIONS[architecture.activation](),
            Dropout(architecture.dropout),
            nn.Linear(architecture.d_ff, architecture.d_model),
        )
        self.attention_norm = nn.LayerNorm(architecture.d_model)
        self.feed_forward_norm = nn.LayerNorm(architecture.d_model)
        self.dropout = Dropout(architecture.dropout)

    def forward(
        self, x: Float[Tensor, "B T D"], *context: Any, **named: Any
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B H T S"] | None]:
        """`context` and `named` are what `SelfAttention.forward` takes after x."""
        attended, weights = self.attention(self.attention_norm(x) if self.pre_norm else x, *context, **named)
        x = self._joined(x, attended, self.attention_norm)
        return self._joined(
            x, self.feed_forward(self.feed_forward_norm(x) if self.pre_norm else x), self.feed_forward_norm
        ), weights

    def _joined(self, x: Tensor, sublayer: Tensor, norm: nn.Module) -> Tensor:
        x = x + self.dropout(sublayer) if self.residual else self.dropout(sublayer)
        return x if self.pre_norm else norm(x)


def drop_tokens(input_ids: Int[Tensor, "B T"], p: float, kept: Bool[Tensor, "B T"] | None = None) -> Int[Tensor, "B T"]:
    """Each id replaced by [MASK] with probability p, except where `kept`."""
    dropped = torch.rand(input_ids.shape, device=input_ids.device) < p
    return input_ids.masked_fill(dropped if kept is None else dropped & ~kept, MASK_ID)


def xavier_(module: nn.Module) -> None:
    """Linear layers drawn as by Glorot and Bengio (2010), their biases zero."""
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        nn.init.zeros_(module.bias)
