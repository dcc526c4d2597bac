"""From encoded reviews to the tensors that a network reads."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from core.config import SPECIAL_TOKENS, Architecture, EncoderArchitecture

CLS_ID = SPECIAL_TOKENS.index("[CLS]")
POOL_STEPS = 50  # whose reviews are sorted together: little padding, and still another mixture in each epoch


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
    def n_tokens(self) -> int:
        """Real tokens."""
        return self.input_ids.numel() if self.token_mask is None else int(self.token_mask.sum())


@dataclass(frozen=True)
class Packed:
    """Reviews one after the other, without padding: for kernels that know where each ends."""

    input_ids: Int[Tensor, "total"]
    cu_seqlens: Int[Tensor, "n_cumulative"]
    """Cumulative lengths from 0, in int32 as kernels want them: review i begins at cu_seqlens[i] and ends before the next."""

    def __post_init__(self) -> None:
        ends = self.cu_seqlens.tolist()
        assert ends[0] == 0 and ends[-1] == len(self.input_ids) and all(a < b for a, b in zip(ends, ends[1:], strict=False))

    @property
    def n_tokens(self) -> int:
        """Tokens, which are all real."""
        return len(self.input_ids)


def pack(reviews: Sequence[Int[np.ndarray, "_"]]) -> Packed:
    """Reviews in their order, to be read as `network(packed.input_ids[None], cu_seqlens=packed.cu_seqlens)`.

    For kernels that skip what two reviews have to do with each other; those that mask it take total x total for each head.
    ValueError as from `collate`.
    """
    cu_seqlens = torch.cat([torch.zeros(1, dtype=torch.int32), _lengths(reviews).cumsum(0, dtype=torch.int32)])
    return Packed(torch.from_numpy(np.concatenate(reviews)).long(), cu_seqlens)


def _lengths(reviews: Sequence[np.ndarray]) -> Int[Tensor, "n"]:
    lengths = torch.tensor([len(ids) for ids in reviews])
    if len(lengths) == 0 or not lengths.all():
        raise ValueError("got no review, or a review without a token, expected at least one word or sign")
    return lengths


def collate(reviews: Sequence[Int[np.ndarray, "_"]]) -> Batch:
    """Reviews padded on the right to the longest. ValueError for a review without a token: there is nothing to read."""
    lengths = _lengths(reviews)
    longest = int(lengths.max())
    input_ids = torch.zeros(len(reviews), longest, dtype=torch.long)
    for row, ids in zip(input_ids, reviews, strict=True):
        row[: len(ids)] = torch.from_numpy(ids)
    padded = bool((lengths < longest).any())
    return Batch(input_ids, torch.arange(longest) < lengths[:, None] if padded else None)


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
