"""A small Transformer encoder that classifies reviews. Imports torch alone."""

from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from core.attention.masks import AttentionMask, without_empty_rows
from core.catalog import BACKENDS, POSITIONAL, resolve
from core.config import MISTAKES_OF_ATTENTION, EncoderArchitecture
from core.networks import mistakes
from core.networks.blocks import EncoderLayer, attention_function, drop_tokens, of_layer, refuse_no_batch, xavier_
from core.networks.dropout import Dropout
from core.networks.pooling import pool


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
        self.poolings = mistakes.poolings(architecture.mistake)
        mistakes.put_into(self, architecture)

    def forward(
        self,
        input_ids: Int[Tensor, "B T"],
        token_mask: Bool[Tensor, "B T"] | None = None,
        *,
        cu_seqlens: Int[Tensor, "n_cumulative"] | None = None,
        max_seqlen: int | None = None,
        backend: str | None = None,
        output_attentions: bool = False,
        head_gain: Float[Tensor, "L H"] | None = None,
        head_mean: Bool[Tensor, "L H"] | None = None,
    ) -> tuple[Float[Tensor, "n C"], tuple[Float[Tensor, "B H T T"], ...] | None]:
        """Logits of each review, and each layer's attention weights if asked.

        Reviews lie side by side, padded on either side, with `token_mask` True on real tokens (None: all are real); or packed
        into one row without padding, with their cumulative lengths in `cu_seqlens` (`core.data.batches.pack`), as padded ones
        are here for a backend that hides no padding. Where `max_seqlen` says how long they are at most, the lengths are taken
        as they are: to check them, a GPU would be waited for. A head is scaled by its `head_gain`; where `head_mean` is True,
        it gives its mean over the text instead, whichever token asks. Without a `backend`: eager if weights are asked or
        attention is mistaken on purpose, else sdpa. ValueError if weights are asked of a backend that computes none, or such a
        mistake of another than eager; for arguments that do not belong together; for no token.
        """
        refuse_no_batch(input_ids, token_mask)
        if cu_seqlens is not None and max_seqlen is None:
            _refuse_other_packing(input_ids, token_mask, cu_seqlens)
        mistake = self.architecture.mistake
        backend = backend or ("eager" if output_attentions or mistake in MISTAKES_OF_ATTENTION else "sdpa")
        attend = mistakes.attention(mistake, backend, attention_function(backend, weights=output_attentions))
        if token_mask is not None and BACKENDS[backend].packs(input_ids.device.type):
            max_seqlen = input_ids.shape[1]
            input_ids, cu_seqlens = unpad(input_ids, token_mask)
            token_mask = None
        if cu_seqlens is not None:
            mistakes.refuse_packed(mistake)
        mask = AttentionMask(
            token_mask, window=self.architecture.window, n_global=self.architecture.n_global, segments=cu_seqlens,
            max_seqlen=max_seqlen,
        )  # fmt: skip
        positions = _positions(input_ids, mask)
        codes = self.positional.codes(positions, input_ids.shape[1] if mask.segments is None else mask.longest)
        x = self._embed(input_ids, positions, codes)
        own = partial(of_layer, n_layers=self.architecture.n_layers, n_heads=self.architecture.n_heads)
        attentions = []
        for index, layer in enumerate(self.layers):
            run = partial(checkpoint, layer, use_reentrant=False) if self.checkpointing and self.training else layer
            gain, mean = own("head_gain", head_gain, index), own("head_mean", head_mean, index)
            x, weights = run(x, codes, mask, self.positional, attend, head_gain=gain, head_mean=mean)
            if output_attentions:
                attentions.append(weights)
            del weights  # or they would be there beside the next layer's
        pooled = pool(self.final_norm(x), mask, self.architecture.pooling, self.poolings)
        return self.classifier(self.dropout(pooled)), tuple(attentions) if output_attentions else None

    def _embed(self, input_ids: Tensor, positions: Tensor, codes: Tensor) -> Tensor:
        if self.training and self.architecture.token_dropout:
            first = positions == 0 if self.architecture.pooling == "cls" else None
            input_ids = drop_tokens(input_ids, self.architecture.token_dropout, kept=first)
        x = self.embedding(input_ids)
        if self.architecture.embedding_scale:
            x = x * self.architecture.d_model**0.5
        return self.embedding_dropout(self.positional.embed(x, codes))


def _refuse_other_packing(input_ids: Tensor, token_mask: Tensor | None, cu_seqlens: Tensor) -> None:
    ends = cu_seqlens.tolist()
    rising = all(before < after for before, after in zip(ends, ends[1:], strict=False))
    if token_mask is not None or len(input_ids) != 1 or not rising or (ends[0], ends[-1]) != (0, input_ids.shape[1]):
        raise ValueError(
            f"cu_seqlens: got {ends} for ids of {tuple(input_ids.shape)}{'' if token_mask is None else ' and a token_mask'}, "
            "expected rising ends, from 0 to all tokens of one row without padding; see core.data.batches.pack"
        )


def unpad(
    input_ids: Int[Tensor, "B T"], token_mask: Bool[Tensor, "B T"]
) -> tuple[Int[Tensor, "1 total"], Int[Tensor, "n_cumulative"]]:
    """Padded reviews packed: their real tokens in one row, and their cumulative lengths from 0."""
    real = without_empty_rows(token_mask)
    return input_ids[real][None], F.pad(real.sum(-1).cumsum(0, dtype=torch.int32), (1, 0))


def _positions(input_ids: Tensor, mask: AttentionMask) -> Int[Tensor, "#B T"]:
    """Each token's place in its review, from 0; padding counts for nothing."""
    if mask.token_mask is not None:
        return (mask.token_mask.cumsum(-1) - 1).clamp(min=0)
    places = torch.arange(input_ids.shape[1], device=input_ids.device)[None]
    if mask.segments is None:
        return places
    return places - mask.segments[:-1].repeat_interleave(mask.segments.diff(), output_size=places.shape[1])
