"""Who may attend to whom, independent of the kernel that has to respect it."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

Rule = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(review, query, key) -> whether it may attend: indices that broadcast, places of queries and keys counted alike."""


@dataclass(frozen=True)
class AttentionMask:
    """Which keys a query may attend to; each backend renders it as its kernel wants it. True = may attend.

    All conditions hold at once. ValueError for a window or a number of global tokens that is too small.
    """

    token_mask: Bool[Tensor, "B T"] | None = None
    """True on real tokens; None when there is no padding."""
    causal: bool = False
    """Whether query i sees no key after its own place."""
    window: int | None = None
    """Query i sees the keys with |i - j| <= window."""
    n_global: int = 0
    """So many first tokens of each review see beyond the window, and are seen from beyond it (arXiv:2004.05150)."""
    segments: Int[Tensor, "n_cumulative"] | None = None
    """Cumulative lengths, from 0, of reviews packed one after the other (B = 1): no token sees another review."""
    max_seqlen: int | None = None
    """Tokens of the longest packed review, or more; None: asked of `segments`, and a GPU is waited for."""
    _dense: dict[tuple[int, int, torch.device], Tensor | None] = field(
        init=False, default_factory=dict, compare=False, repr=False
    )

    def __post_init__(self) -> None:
        if self.window is not None and self.window < 1:
            raise ValueError(f"window: got {self.window}, expected at least 1, or none to see everything")
        if self.n_global < 0:
            raise ValueError(f"n_global: got {self.n_global}, expected at least 0")
        assert self.segments is None or self.token_mask is None, "packed reviews have no padding"

    @property
    def by_place(self) -> bool:
        """Whether it matters where the query stands; else all queries of a review see the same keys."""
        return self.causal or self.window is not None or self.segments is not None

    @property
    def by_order_alone(self) -> bool:
        """Whether being later is all that hides a key, for which kernels need no mask written out."""
        return self == AttentionMask(causal=True)

    @cached_property
    def longest(self) -> int:
        """`max_seqlen`, or the very length, asked once for all layers."""
        assert self.segments is not None
        return int(self.segments.diff().max()) if self.max_seqlen is None else self.max_seqlen

    def among(self, n_queries: int, n_keys: int) -> "AttentionMask":
        """The same without what hides nothing there: a window over all keys, and order before the last query alone."""
        window = None if self.window is None or self.window >= n_keys - 1 else self.window
        return replace(
            self, causal=self.causal and n_queries > 1, window=window, n_global=0 if window is None else self.n_global
        )

    def dense(self, q: Float[Tensor, "B H Q K"], k: Float[Tensor, "B H T K"]) -> Bool[Tensor, "#B 1 #Q T"] | None:
        """The mask as it broadcasts over (B, H, Q, T), without an empty row; None when nothing is hidden.

        It is written out once for all layers. With fewer queries than keys, the queries are the last ones. ValueError with
        more, where places matter.
        """
        sizes = q.shape[-2], k.shape[-2], q.device
        if sizes not in self._dense:
            self._dense[sizes] = self.tiles(q, k)(slice(None), slice(None))
        return self._dense[sizes]

    def tiles(self, q: Float[Tensor, "B H Q K"], k: Float[Tensor, "B H T K"]) -> Callable[[slice, slice], Tensor | None]:
        """`dense` of some queries and keys alone, so that the whole is never there."""
        mask = self.among(q.shape[-2], k.shape[-2])
        if not mask.by_place:
            seen = None if self.token_mask is None else without_empty_rows(self.token_mask)[:, None, None, :]
            return lambda queries, keys: None if seen is None else seen[..., keys]
        rule, (query, key) = mask.rule(q, k), places(q, k)
        review = torch.arange(1 if self.token_mask is None else q.shape[0], device=q.device)[:, None, None, None]
        return lambda queries, keys: rule(review, query[queries][None, None, :, None], key[keys][None, None, None, :])

    def rule(self, q: Float[Tensor, "B H Q K"], k: Float[Tensor, "B H T K"]) -> Rule:
        """The mask as a function of indices, for kernels that ask it pair by pair."""
        real = None if self.token_mask is None else without_empty_rows(self.token_mask)
        segment = None if self.segments is None else _segment(self.segments, k.shape[-2])
        leading = self._leading(k, segment) if self.window is not None and self.n_global else None

        def may_attend(review: Tensor, query: Tensor, key: Tensor) -> Tensor:
            seen = key >= 0 if real is None else real[review, key]
            if self.causal:
                seen = seen & (key <= query)
            if self.window is not None:
                near = (query - key).abs() <= self.window
                seen = seen & (near if leading is None else near | leading[review, query] | leading[review, key])
            if segment is not None:
                seen = seen & (segment[query] == segment[key])
            return seen | (query == key) if self.by_place else seen  # padding sees itself: its softmax is not of nothing

        return may_attend

    def _leading(self, k: Tensor, segment: Tensor | None) -> Bool[Tensor, "B T"]:
        """True on the first `n_global` real tokens of each review."""
        if self.token_mask is not None:
            return self.token_mask & (self.token_mask.cumsum(-1) <= self.n_global)
        place = torch.arange(k.shape[-2], device=k.device)
        if segment is not None and self.segments is not None:
            place = place - self.segments[segment]
        return (place < self.n_global).expand(k.shape[0], -1)


def places(q: Float[Tensor, "B H Q K"], k: Float[Tensor, "B H T K"]) -> tuple[Int[Tensor, "Q"], Int[Tensor, "T"]]:
    """Places of queries and of keys, counted alike: fewer queries than keys are the last ones. ValueError for more."""
    n_queries, n_keys = q.shape[-2], k.shape[-2]
    if n_queries > n_keys:
        raise ValueError(f"got {n_queries} queries for {n_keys} keys, expected at most as many: each query has its own key")
    key = torch.arange(n_keys, device=q.device)
    return key[n_keys - n_queries :], key


def without_empty_rows(token_mask: Bool[Tensor, "B T"]) -> Bool[Tensor, "B T"]:
    """The same, but all True for a review without one real token: the softmax of nothing is NaN, and travels through V."""
    return token_mask | ~token_mask.any(-1, keepdim=True)


def _segment(cumulative: Tensor, n_keys: int) -> Int[Tensor, "T"]:
    """Which review each of the packed tokens belongs to."""
    place = torch.arange(n_keys, device=cumulative.device, dtype=cumulative.dtype)
    return torch.searchsorted(cumulative, place, right=True) - 1
