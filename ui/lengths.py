"""Accuracy by length, from stored predictions to a sentence."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from core.evaluation.lengths import buckets
from core.records import Bucket

ENOUGH = 100
"""Reviews in a range from which a sentence is made: with fewer an interval is ten points wide and more."""


def on_test(predictions: pd.DataFrame) -> list[Bucket]:
    """Accuracy on the test reviews in each range of lengths."""
    test = predictions.loc[predictions["split"] == "test"]
    answers = np.array([np.argmax(logits) for logits in test["logits"]], dtype=np.int64)
    return buckets(test["words"].to_numpy(dtype=np.int64), answers == test["label"].to_numpy())


def table(found: Mapping[str, Sequence[Bucket]]) -> pd.DataFrame:
    """All figures of the chart, shares in percent; where n is 0 there are none."""
    rows = [
        {"words": row.name, "model": model, "n": row.n}
        | {name: 100 * share for name, share in zip(("accuracy", "from", "to"), _shares(row), strict=True)}
        for same_range in zip(*found.values(), strict=True)
        for model, row in zip(found, same_range, strict=True)
    ]
    return pd.DataFrame(rows)


def finding(model: str, rows: Sequence[Bucket]) -> str:
    """How accuracy on the longest reviews compares with that on the shortest, and whether the intervals tell them apart."""
    enough = [row for row in rows if row.n >= ENOUGH]
    if len(enough) < 2:
        return f"{model}: fewer than two ranges hold {ENOUGH} test reviews, too few to compare."
    short, long = enough[0], enough[-1]
    (before, before_low, before_high), (after, after_low, after_high) = _shares(short), _shares(long)
    apart = after_high < before_low or before_high < after_low
    return (
        f"{model}: {before:.1%} at {short.name} words (n = {short.n:,}) and {after:.1%} at {long.name} (n = {long.n:,}), "
        f"{_change(100 * (after - before))}; the intervals "
        + ("do not overlap, so length matters here." if apart else "overlap, which shows no difference.")
    )


def _shares(row: Bucket) -> tuple[float, float, float]:
    """Accuracy and both ends of its interval, not a number where there is none."""
    if row.accuracy is None or row.low is None or row.high is None:
        return np.nan, np.nan, np.nan
    return row.accuracy, row.low, row.high


def _change(points: float) -> str:
    if abs(points) < 0.05:
        return "no change"
    return f"{abs(points):.1f} points {'higher' if points > 0 else 'lower'}"
