"""How good a model is at each length of a review, in words."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Int

from core import statistics
from core.evaluation.calibration import calibration_error
from core.evaluation.predictions import Predictions, aligned
from core.records import Bucket, Estimate, LengthRange, ReadingLimit
from core.statistics import Difference, share

ARTICLE_EDGES = (32, 96, 224)
"""Last length of each bucket but the last, in words."""
MOST_EDGES = 11
QUANTILES = 4
ENOUGH = 100
"""Reviews in a range from which something is said: with fewer an interval is ten points wide and more."""


def typed_edges(text: str) -> tuple[int, ...]:
    """The edges that a person typed, such as "32, 96, 224". ValueError for what is no list of whole numbers that rise."""
    pieces = re.split(r"[\s,;]+", text.strip(" \t\n,;"))
    edges = tuple(int(piece) for piece in pieces if re.fullmatch("[0-9]{1,7}", piece))
    rises = all(a < b for a, b in zip((0, *edges), edges, strict=False))
    if len(edges) < len(pieces) or not rises or len(edges) > MOST_EDGES:
        raise ValueError(
            f"edges: got {text.strip()[:60]!r}, expected one to {MOST_EDGES} whole numbers that rise, such as 32, 96, 224"
        )
    return edges


def quantile_edges(words: Int[np.ndarray, "n"], n: int = QUANTILES) -> tuple[int, ...]:
    """Edges of `n` ranges that hold about as many reviews each, fewer where many reviews are of one length."""
    edges = np.unique(np.quantile(words, np.arange(1, n) / n, method="inverted_cdf"))
    inner = edges[(edges > 0) & (edges < words.max())]
    return tuple(inner.astype(int).tolist()) or (max(1, int(words.max())),)


def bucket_names(edges: Sequence[int] = ARTICLE_EDGES) -> list[str]:
    """What the buckets between `edges` are called: "1-32", "33-96", ..., "over 224"."""
    starts = [1, *(edge + 1 for edge in edges)]
    inner = [str(end) if start == end else f"{start}-{end}" for start, end in zip(starts, edges, strict=False)]
    return [*inner, f"over {edges[-1]}"]


def buckets(words: Int[np.ndarray, "n"], correct: Bool[np.ndarray, "n"], edges: Sequence[int] = ARTICLE_EDGES) -> list[Bucket]:
    """Accuracy of the reviews in each range of `words`; a review without a word counts to the first."""
    return [_bucket(name, correct[places]) for name, places in zip(bucket_names(edges), members(words, edges), strict=True)]


def members(words: Int[np.ndarray, "n"], edges: Sequence[int]) -> list[Int[np.ndarray, "_"]]:
    """Places of the reviews in each range."""
    which = np.searchsorted(edges, words)
    return [np.flatnonzero(which == i) for i in range(len(edges) + 1)]


def _bucket(name: str, correct: Bool[np.ndarray, "_"]) -> Bucket:
    found = share(int(correct.sum()), len(correct))
    if found is None:
        return Bucket(name=name, n=0, accuracy=None, low=None, high=None)
    return Bucket(name=name, n=len(correct), accuracy=found.value, low=found.low, high=found.high)


def ranges(found: Predictions, edges: Sequence[int] = ARTICLE_EDGES) -> list[LengthRange]:
    """Accuracy, F1 and calibration error of the reviews in each range, and how many of them were not read to their end."""
    parts = zip(bucket_names(edges), members(found.words, edges), strict=True)
    return [_range(name, found.take(places)) for name, places in parts]


def _range(name: str, found: Predictions) -> LengthRange:
    n = len(found)
    return LengthRange(
        name=name,
        n=n,
        accuracy=share(int(found.correct.sum()), n),
        f1=_f1(found) if n else None,
        calibration=calibration_error(found) if n else None,
        cut=float(found.cut.mean()) if n else None,
    )


def _f1(found: Predictions) -> Estimate | None:
    if found.n_classes == 2 and not (found.labels | found.answers).any():
        return None
    return statistics.estimate(found.labels, found.answers, found.n_classes, statistics.f1)


@dataclass(frozen=True, kw_only=True)
class Ends:
    """The shortest reviews and the longest of which there are `ENOUGH`."""

    short: LengthRange
    long: LengthRange
    gain: Difference
    """Accuracy on the long ones minus that on the short ones; these are other reviews, so that nothing is paired."""


def ends(found: Sequence[LengthRange]) -> Ends | None:
    """How accuracy changes from one end of the ranges to the other; None where fewer than two hold `ENOUGH` reviews."""
    enough = [(row, (round(row.accuracy.value * row.n), row.n)) for row in found if row.accuracy and row.n >= ENOUGH]
    if len(enough) < 2:
        return None
    (short, before), (long, after) = enough[0], enough[-1]
    return Ends(short=short, long=long, gain=statistics.apart(before, after))


def differences(base: Predictions, variant: Predictions, edges: Sequence[int] = ARTICLE_EDGES) -> list[Difference | None]:
    """How much more accurate `variant` is in each range, p by McNemar; None where no review is.

    ValueError for what `predictions.aligned` refuses. Several of them are to be corrected by `holm`.
    """
    variant = aligned(base, variant)
    return [
        _difference(base.take(places), variant.take(places)) if len(places) else None for places in members(base.words, edges)
    ]


def _difference(base: Predictions, variant: Predictions) -> Difference:
    return statistics.accuracy_gain(base.labels, base.answers, variant.answers)


def holm(found: Sequence[Sequence[Difference | None]]) -> list[list[Difference | None]]:
    """The same with p corrected for all of them together (Holm 1979)."""
    corrected = iter(statistics.holm([one.p for row in found for one in row if one is not None]))
    return [[None if one is None else replace(one, p=next(corrected)) for one in row] for row in found]


def reading_limit(found: Predictions, edges: Sequence[int] = ARTICLE_EDGES) -> ReadingLimit | None:
    """How many words of a review a model reads at its most: the median over those that it cut; None if it cut none."""
    cut = found.take(np.flatnonzero(found.cut))
    if not len(cut):
        return None
    words = float(np.median(cut.words * cut.tokens_read / cut.tokens))
    ends = np.array([0, *edges, max(edges[-1] + 1, int(found.words.max()))])
    return ReadingLimit(words=words, place=float(np.interp(words, ends, np.arange(len(ends)) - 0.5)))
