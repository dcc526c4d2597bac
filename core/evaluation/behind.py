"""The reviews behind a figure: which ones one model, or two, answer in which way."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import pandas as pd
from jaxtyping import Bool, Int

from core.evaluation.answers import distance
from core.evaluation.predictions import Predictions

OfOne = Literal["every review", "wrong answers", "right answers"]
OfTwo = Literal[
    "every review",
    "the models disagree",
    "only the first is right",
    "only the second is right",
    "both are wrong",
    "both are right",
]
Which = OfOne | OfTwo
OF_ONE: tuple[OfOne, ...] = get_args(OfOne)
OF_TWO: tuple[OfTwo, ...] = get_args(OfTwo)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which reviews a person wants to see."""

    which: Which = "every review"
    label: int | None = None
    """Class; None for any."""
    answers: tuple[int | None, ...] = ()
    """The class that each model answers; None, or no place here, for any."""
    shortest: int = 0
    longest: int | None = None
    """In words; None for no limit."""


def wanted_places(found: Sequence[Predictions], wanted: Wanted) -> Int[np.ndarray, "k"]:
    """Places of the wanted reviews among those that one model, or two in the same order, have answered."""
    chosen = _which(found, wanted.which) & (found[0].words >= wanted.shortest)
    if wanted.longest is not None:
        chosen &= found[0].words <= wanted.longest
    if wanted.label is not None:
        chosen &= found[0].labels == wanted.label
    for one, answer in zip(found, wanted.answers, strict=False):
        if answer is not None:
            chosen &= one.answers == answer
    return np.flatnonzero(chosen)


def _which(found: Sequence[Predictions], which: Which) -> Bool[np.ndarray, "n"]:
    first, second = found[0], found[-1]
    match which:
        case "every review":
            return np.ones(len(first), dtype=bool)
        case "wrong answers" | "both are wrong":
            return ~first.correct & ~second.correct
        case "right answers" | "both are right":
            return first.correct & second.correct
        case "the models disagree":
            return first.answers != second.answers
        case "only the first is right":
            return first.correct & ~second.correct
        case "only the second is right":
            return ~first.correct & second.correct


def confusion(found: Predictions) -> Int[np.ndarray, "C C"]:
    """How many reviews of each class, a row, are answered to be of each, a column."""
    pairs = found.labels * found.n_classes + found.answers
    return np.bincount(pairs, minlength=found.n_classes**2).reshape(found.n_classes, found.n_classes)


def answered(
    found: Sequence[Predictions], models: Sequence[str], label_names: Sequence[str], texts: Sequence[str | None]
) -> pd.DataFrame:
    """A row for each review with its text and the answers of one model, or of two in the same order, as
    `answers.arrange` puts them into another order.

    Columns: row, review, label, then of each model `label (...)`, `probability (...)` and `read (...)`, the share of its tokens
    that the model read, words, and of two models `disagree` and `difference`.
    """
    names = np.array(label_names, dtype=object)
    columns: dict[str, object] = {"row": range(1, len(texts) + 1), "review": list(texts), "label": names[found[0].labels]}
    for one, model in zip(found, models, strict=True):
        columns[f"label ({model})"] = names[one.answers]
        columns[f"probability ({model})"] = one.confidence
        columns[f"read ({model})"] = one.tokens_read / np.maximum(one.tokens, 1)
    if len(found) == 2:
        first, second = found
        columns["disagree"] = first.answers != second.answers
        columns["difference"] = distance(first.probabilities, second.probabilities)
    columns["words"] = found[0].words
    return pd.DataFrame(columns)
