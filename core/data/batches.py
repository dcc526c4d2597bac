"""From encoded reviews to the tensors that a network reads."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Int
from torch import Tensor

from core.config import SPECIAL_TOKENS, Architecture, EncoderArchitecture

CLS_ID, PAD_ID = SPECIAL_TOKENS.index("[CLS]"), SPECIAL_TOKENS.index("[PAD]")
POOL_STEPS = 50  # whose reviews are sorted together: little padding, and still another mixture in each epoch
PADDED_TO, PACKED_TO = 64, 256
"""Where few shapes are wanted: tokens of which the length of a padded review, and of a row of packed ones, is a multiple."""


@dataclass(frozen=True, kw_only=True)
class Cut:
    """Which tokens of a review a network reads."""

    room: int
    """Tokens of the review itself that fit."""
    truncation: str
    prefix: tuple[int, ...]
    """Ids put before them: [CLS] or nothing."""
    suffix: tuple[int, ...] = ()
    """Ids put after them, such as a foreign network's [SEP]."""

    @classmethod
    def of(cls, architecture: Architecture) -> "Cut":
        """The cut that an architecture asks for. ValueError if no token of the review would fit."""
        prefix = (CLS_ID,) if isinstance(architecture, EncoderArchitecture) and architecture.pooling == "cls" else ()
        if architecture.max_len <= len(prefix):
            raise ValueError(f"max_len: got {architecture.max_len}, expected room for a token beside [CLS]")
        return cls(room=architecture.max_len - len(prefix), truncation=architecture.truncation, prefix=prefix)

    def kept(self, n_tokens: int) -> Int[np.ndarray, "kept"]:
        """Places of the tokens that are read, in order."""
        if n_tokens <= self.room or self.truncation == "head":
            return np.arange(min(n_tokens, self.room))
        tail = self.room // 2
        return np.r_[0 : self.room - tail, n_tokens - tail : n_tokens]

    def windows(self, n_tokens: int) -> list[Int[np.ndarray, "kept"]]:
        """Places of all tokens, in as few windows of about equal size as fit."""
        return np.array_split(np.arange(n_tokens), max(1, math.ceil(n_tokens / self.room)))

    def ids(self, ids: Int[np.ndarray, "n"], kept: Int[np.ndarray, "kept"] | None = None) -> Int[np.ndarray, "T"]:
        """What the network is given of a review's ids, by default those that `kept` names."""
        kept = self.kept(len(ids)) if kept is None else kept
        prefix, suffix = (np.array(added, dtype=ids.dtype) for added in (self.prefix, self.suffix))
        return np.r_[prefix, ids[kept], suffix]


@dataclass(frozen=True)
class Batch:
    """Reviews side by side."""

    input_ids: Int[Tensor, "B T"]
    token_mask: Bool[Tensor, "B T"] | None
    """True on real tokens; None when nothing is padded, so that kernels need no mask."""

    @property
    def arguments(self) -> dict[str, Any]:
        """What a network of `core.networks.auto` is called with."""
        return {"input_ids": self.input_ids, "attention_mask": None if self.token_mask is None else self.token_mask.long()}


@dataclass(frozen=True)
class Packed:
    """Reviews one after the other, without padding: for kernels that know where each ends."""

    input_ids: Int[Tensor, "total"]
    cu_seqlens: Int[Tensor, "n_cumulative"]
    """Cumulative lengths from 0, in int32 as kernels want them: review i begins at cu_seqlens[i] and ends before the next."""
    max_seqlen: int
    """No review has more tokens."""

    def __post_init__(self) -> None:
        assert self.cu_seqlens.is_cuda or self._is_whole, "a GPU is not waited for"

    @property
    def _is_whole(self) -> bool:
        ends, lengths = self.cu_seqlens[[0, -1]].tolist(), self.cu_seqlens.diff()
        return ends == [0, len(self.input_ids)] and bool(((lengths > 0) & (lengths <= self.max_seqlen)).all())

    @property
    def arguments(self) -> dict[str, Any]:
        """What the encoder of `core.networks.auto` is called with."""
        return {"input_ids": self.input_ids[None], "cu_seqlens": self.cu_seqlens, "max_seqlen": self.max_seqlen}


@dataclass(frozen=True, kw_only=True)
class Store:
    """Reviews end to end on the device that reads them: a batch is cut there, and nothing is waited for.

    `few_shapes`: lengths are rounded up, so that the memory and the products of a GPU are of few sizes.
    """

    tokens: Int[Tensor, "total"]
    starts: Int[Tensor, "n"]
    """Of each review, the place of its first token."""
    sizes: Int[Tensor, "n"]
    lengths: Int[np.ndarray, "n"]
    """Tokens of each review: as `sizes`, for whoever plans batches."""
    few_shapes: bool = False

    @classmethod
    def of(
        cls, reviews: Sequence[Int[np.ndarray, "_"]], device: torch.device | str = "cpu", few_shapes: bool = False
    ) -> "Store":
        """All reviews, put there once. ValueError for none, and for one without a token: there is nothing to read."""
        lengths = np.array([len(ids) for ids in reviews], dtype=np.int64)
        if not len(lengths) or not lengths.all():
            raise ValueError("got no review, or a review without a token, expected at least one word or sign")
        tokens, starts, sizes = (
            torch.from_numpy(array).to(device) for array in (np.concatenate(reviews), lengths.cumsum() - lengths, lengths)
        )
        return cls(tokens=tokens, starts=starts, sizes=sizes, lengths=lengths, few_shapes=few_shapes)

    @cached_property
    def longest(self) -> int:
        """Tokens of the longest review."""
        return int(self.lengths.max())

    def padded(self, indices: Int[np.ndarray, "B"]) -> Batch:
        """These reviews, padded on the right to the longest of them."""
        lengths, (starts, sizes) = self.lengths[indices], self._chosen(indices)
        longest = min(self._rounded(int(lengths.max()), PADDED_TO), self.longest)
        places = torch.arange(longest, device=self.tokens.device)
        real = places < sizes[:, None]
        ids = self.tokens[(starts[:, None] + places).clamp(max=len(self.tokens) - 1)].long()
        if (lengths == longest).all():
            return Batch(ids, None)
        return Batch(ids.masked_fill(~real, PAD_ID), real)

    def packed(self, indices: Int[np.ndarray, "B"]) -> Packed:
        """These reviews without padding; the row is filled up to its rounded length by one more review, of [PAD]."""
        (starts, sizes), total = self._chosen(indices), int(self.lengths[indices].sum())
        ends = F.pad(sizes.cumsum(0, dtype=torch.int32), (1, 0))
        shifts = (starts - ends[:-1]).repeat_interleave(sizes, output_size=total)
        ids = self.tokens[shifts + torch.arange(total, device=self.tokens.device)].long()
        filled = self._rounded(total, min(PACKED_TO, self.longest))
        if filled > total:
            ids, ends = F.pad(ids, (0, filled - total), value=PAD_ID), F.pad(ends, (0, 1), value=filled)
        return Packed(ids, ends, self.longest)

    def _chosen(self, indices: np.ndarray) -> tuple[Tensor, Tensor]:
        """Where these reviews begin, and their lengths."""
        there = torch.from_numpy(indices).to(self.tokens.device, non_blocking=True)
        return self.starts[there], self.sizes[there]

    def _rounded(self, n: int, multiple: int) -> int:
        return math.ceil(n / multiple) * multiple if self.few_shapes else n


def pack(reviews: Sequence[Int[np.ndarray, "_"]]) -> Packed:
    """Reviews in their order, to be read as `network(**packed.arguments)`.

    For kernels that skip what two reviews have to do with each other; those that mask it take total x total for each head.
    ValueError as from `Store.of`.
    """
    return Store.of(reviews).packed(np.arange(len(reviews)))


def collate(reviews: Sequence[Int[np.ndarray, "_"]]) -> Batch:
    """Reviews padded on the right to the longest. ValueError as from `Store.of`."""
    return Store.of(reviews).padded(np.arange(len(reviews)))


def token_budget_batches(lengths: Int[np.ndarray, "n"], tokens_per_batch: int) -> list[Int[np.ndarray, "_"]]:
    """Indices of reviews by length, each group at most `tokens_per_batch` with its padding (or a single review)."""
    return list(_cut_by_budget(np.argsort(lengths, kind="stable"), lengths, tokens_per_batch))


def shuffled_steps(
    lengths: Int[np.ndarray, "n"], tokens_per_step: int, rng: np.random.Generator, tokens_at_once: int | None = None
) -> list[list[Int[np.ndarray, "_"]]]:
    """The steps of an epoch, each of about `tokens_per_step`, in parts of at most `tokens_at_once` (or a single review).

    A part is of reviews of similar length: all are shuffled, sorted within pools of about fifty steps, cut, and the parts
    shuffled again, so that a step is of several lengths.
    """
    n_parts = 1 if tokens_at_once is None else math.ceil(tokens_per_step / tokens_at_once)
    order = rng.permutation(len(lengths))
    pool_size = max(1, int(POOL_STEPS * tokens_per_step / max(lengths.mean(), 1)))
    parts = []
    for start in range(0, len(order), pool_size):
        pool = order[start : start + pool_size]
        parts += _cut_by_budget(pool[np.argsort(lengths[pool], kind="stable")], lengths, round(tokens_per_step / n_parts))
    parts = [parts[i] for i in rng.permutation(len(parts))]
    n_steps = max(1, round(len(parts) / n_parts))
    return [parts[step::n_steps] for step in range(n_steps)]


def _cut_by_budget(order: np.ndarray, lengths: np.ndarray, tokens_per_batch: int) -> Iterator[np.ndarray]:
    start = 0
    for end in range(1, len(order) + 1):  # in rising order of length, the newest review is the longest
        if end == len(order) or lengths[order[end]] * (end + 1 - start) > tokens_per_batch:
            yield order[start:end]
            start = end
