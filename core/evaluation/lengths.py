"""Accuracy by length of the review."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Int

from core.records import Bucket
from core.statistics import wilson

ARTICLE_EDGES = (32, 96, 224)
"""Last length of each bucket but the last, in words."""


def bucket_names(edges: Sequence[int] = ARTICLE_EDGES) -> list[str]:
    """What the buckets between `edges` are called: "1-32", "33-96", ..., "over 224"."""
    starts = [1, *(edge + 1 for edge in edges)]
    return [f"{start}-{edge}" for start, edge in zip(starts, edges, strict=False)] + [f"over {edges[-1]}"]


def buckets(words: Int[np.ndarray, "n"], correct: Bool[np.ndarray, "n"], edges: Sequence[int] = ARTICLE_EDGES) -> list[Bucket]:
    """Accuracy of the reviews in each range of `words`; a review without a word counts to the first."""
    which = np.searchsorted(edges, words)
    return [_bucket(name, correct[which == index]) for index, name in enumerate(bucket_names(edges))]


def _bucket(name: str, correct: Bool[np.ndarray, "_"]) -> Bucket:
    n = len(correct)
    if n == 0:
        return Bucket(name=name, n=0, accuracy=None, low=None, high=None)
    low, high = wilson(int(correct.sum()), n)
    return Bucket(name=name, n=n, accuracy=float(correct.mean()), low=low, high=high)
