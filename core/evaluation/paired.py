"""Two models on the same test reviews: which is better, and is it more than chance?"""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from jaxtyping import Int

from core import statistics
from core.statistics import Difference


@dataclass(frozen=True, kw_only=True)
class Paired:
    """How much better a variant is than its base on the same reviews."""

    accuracy: Difference
    """Its p is McNemar's."""
    f1: Difference


def compare(base: pd.DataFrame, variant: pd.DataFrame) -> Paired:
    """Holds the test reviews of two predictions.parquet against each other.

    ValueError if they are not of the same reviews, not with the same labels, or of other classes.
    """
    labels, before, after, n_classes = _aligned(_test(base), _test(variant))
    accuracy = statistics.difference(labels, before, after, n_classes, statistics.accuracy)
    return Paired(
        accuracy=replace(accuracy, p=statistics.mcnemar(before == labels, after == labels)),
        f1=statistics.difference(labels, before, after, n_classes, statistics.f1),
    )


def _test(predictions: pd.DataFrame) -> pd.DataFrame:
    return predictions.loc[predictions["split"] == "test"].set_index("text_hash").sort_index()


def _aligned(
    base: pd.DataFrame, variant: pd.DataFrame
) -> tuple[Int[np.ndarray, "n"], Int[np.ndarray, "n"], Int[np.ndarray, "n"], int]:
    """Labels, both predictions, and the number of classes."""
    if not base.index.equals(variant.index):
        both = len(base.index.intersection(variant.index))
        raise ValueError(
            f"the test reviews are not the same: {len(base):,} and {len(variant):,}, of which both have {both:,}; "
            "train both on the same data with the same limit and seed"
        )
    if not len(base):
        raise ValueError("got no test review, expected at least one")
    if (base["label"].to_numpy() != variant["label"].to_numpy()).any():
        raise ValueError("the same test reviews have other labels; train both on the same data")
    before, after = (np.stack(frame["logits"].to_numpy()) for frame in (base, variant))
    if before.shape != after.shape:
        raise ValueError(f"got models of {before.shape[1]} and {after.shape[1]} classes, expected the same classes")
    return base["label"].to_numpy(np.int64), before.argmax(1), after.argmax(1), before.shape[1]
