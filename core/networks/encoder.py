"""A small Transformer encoder that classifies reviews. Imports torch alone."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from core.attention.masks import AttentionMask, without_empty_rows
from core.catalog import POSITIONAL, resolve
from core.config import EncoderArchitecture
from core.networks.blocks import EncoderLayer, attention_function, drop_tokens, xavier_
from core.networks.dropout import Dropout


class Encoder(nn.Module):
    """Embedding, positions, layers, pooling, classifier (arXiv:1706.03762; arXiv:2002.04745 for norm="pre")."""

    def __init__(self, architecture: EncoderArchitecture) -> None:
        super().__init__()
        self.architecture = architecture
        self.embedding = nn.Embedding(architecture.vocab_size, architecture.d_model, padding_idx=0)
        self.positional = resolve(POSITIONAL, "positional", architecture.positional)(architecture)
        self.embedding_dropout = Dropout(architecture.embedding_dropout)
        self.layers = nn.ModuleList(EncoderLayer(architecture) for _ in range(architecture.n_layers))
        self.final_norm = nn.LayerNorm(architecture.d_model) if architecture.norm == "pre" else nn.Identity()
        self.dropout = Dropout(architecture.dropout)
        self.classifier = nn.Linear(len(architecture.pooling.split("+")) * architecture.d_model, architecture.n_classes)
        self.checkpointing = False
        self.apply(xavier_)
        if architecture.embedding_scale:  # so that the scaled embedding starts with variance 1, like the positions
            nn.init.normal_(self.embedding.weight, std=architecture.d_model**-0.5)

    def forward(
        self,
        input_ids: Int[Tensor, "B T"],
        token_mask: Bool[Tensor, "B T"] | None = None,
        *,
        backend: str = "sdpa",
        output_attentions: bool = False,
        head_gain: Float[Tensor, "L H"] | None = None,
    ) -> tuple[Float[Tensor, "B C"], tuple[Float[Tensor, "B H T T"], ...] | None]:
        """Logits, and each layer's attention weights if asked. `token_mask` is True on real tokens; None: all are real.

        Reviews may be padded on either side. ValueError if weights are asked of a backend that computes none.
        """
        attend = attention_function(backend, weights=output_attentions)
        mask = AttentionMask(token_mask, window=self.architecture.window, n_global=self.architecture.n_global)
        positions = _positions(input_ids, token_mask)
        x = self._embed(input_ids, positions)
        attentions = []
        for index, layer in enumerate(self.layers):
            context = (positions, mask, self.positional, attend, None if head_gain is None else head_gain[index])
            if self.checkpointing and self.training:
                x, weights = checkpoint(layer, x, *context, use_reentrant=False)
            else:
                x, weights = layer(x, *context)
            if output_attentions:
                attentions.append(weights)
        pooled = pool(self.final_norm(x), token_mask, self.architecture.pooling)
        return self.classifier(self.dropout(pooled)), tuple(attentions) if output_attentions else None

    def _embed(self, input_ids: Tensor, positions: Tensor) -> Tensor:
        if self.training and self.architecture.token_dropout:
            first = positions == 0 if self.architecture.pooling == "cls" else None
            input_ids = drop_tokens(input_ids, self.architecture.token_dropout, kept=first)
        x = self.embedding(input_ids)
        if self.architecture.embedding_scale:
            x = x * self.architecture.d_model**0.5
        return self.embedding_dropout(self.positional.embed(x, positions))


def _positions(input_ids: Tensor, token_mask: Tensor | None) -> Int[Tensor, "#B T"]:
    """Each token's place in its review, from 0; padding counts for nothing."""
    if token_mask is None:
        return torch.arange(input_ids.shape[1], device=input_ids.device)[None]
    return (token_mask.cumsum(-1) - 1).clamp(min=0)


def pool(x: Float[Tensor, "B T D"], token_mask: Bool[Tensor, "B T"] | None, pooling: str) -> Float[Tensor, "B P"]:
    """One vector for each review, from its real tokens alone (if it has any); P is D, or 2 D for "mean+max"."""
    if token_mask is None:
        token_mask = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
    token_mask = without_empty_rows(token_mask)
    return torch.cat([POOLINGS[name](x, token_mask) for name in pooling.split("+")], dim=-1)


def _first(x: Tensor, token_mask: Tensor) -> Tensor:
    return x[torch.arange(len(x), device=x.device), token_mask.int().argmax(-1)]


def _mean(x: Tensor, token_mask: Tensor) -> Tensor:
    total = torch.where(token_mask[..., None], x, 0).sum(1, dtype=torch.float32)
    return (total / token_mask.sum(-1, keepdim=True)).to(x.dtype)


def _max(x: Tensor, token_mask: Tensor) -> Tensor:
    return x.masked_fill(~token_mask[..., None], torch.finfo(x.dtype).min).amax(1)


POOLINGS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"cls": _first, "mean": _mean, "max": _max}
