"""What models answer for many reviews, row by row and side by side. Torch is imported when a review is read, not before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd
from jaxtyping import Float

from core.data.labels import known_classes, label_key
from core.evaluation.writing import free_name, inert
from core.statistics import softmax, wilson
from core.words import count_words, words_read

if TYPE_CHECKING:
    from core.artifact import Reader

Order = Literal["as given", "least confident first", "most confident first", "largest difference first"]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a model answers for one of many reviews."""

    probabilities: tuple[float, ...]
    """In the order of the model's classes."""
    words: int
    words_read: int
    """The rest was left out."""


@dataclass(frozen=True, kw_only=True)
class Scored:
    """The answers of one model; None for a row without text."""

    model: str
    label_names: tuple[str, ...]
    answers: Sequence[Answer | None]

    def labels(self) -> list[str | None]:
        """The most probable class of each row."""
        return [None if answer is None else self.label_names[int(np.argmax(answer.probabilities))] for answer in self.answers]

    def probabilities(self) -> np.ndarray:
        """(n, C); rows without text are not numbers."""
        rows = [answer.probabilities if answer else (np.nan,) * len(self.label_names) for answer in self.answers]
        return np.array(rows, dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """How many of the labels that a table brings a model gives, too."""

    n: int
    """Rows with text and a label that the model knows."""
    right: int
    interval: tuple[float, float] | None
    """Wilson's at 95%; None where n is 0."""
    unlabelled: int
    unknown: int
    """Rows whose label is none of the model's classes."""


def answer(model: Reader, texts: Sequence[str]) -> list[Answer]:
    """The answers for texts of which each has something to read; a long one is cut to what the model reads."""
    from core.data.tokenizer import encode
    from core.evaluation.scoring import score

    cut = model.cut
    encoded = [encode(model.tokenizer, text) for text in texts]
    kept = [cut.kept(len(review.ids)) for review in encoded]
    logits = score(model.network, [cut.ids(review.ids, places) for review, places in zip(encoded, kept, strict=True)])
    read = [[review.spans[i] for i in places] for review, places in zip(encoded, kept, strict=True)]
    return [
        Answer(probabilities=tuple(row), words=count_words(text), words_read=words_read(text, spans))
        for row, text, spans in zip(softmax(logits).tolist(), texts, read, strict=True)
    ]


def difference(a: Scored, b: Scored) -> np.ndarray | None:
    """The `distance` of the answers of two models. None where their classes have other names."""
    if set(a.label_names) != set(b.label_names):
        return None
    order = [b.label_names.index(name) for name in a.label_names]
    return distance(a.probabilities(), b.probabilities()[:, order])


def distance(p: Float[np.ndarray, "n C"], q: Float[np.ndarray, "n C"]) -> Float[np.ndarray, "n"]:
    """How far apart two rows of probabilities are: half the sum of the differences over all classes, which of two classes is
    the difference of either (total variation)."""
    return np.abs(p - q).sum(-1) / 2


def side_by_side(texts: Sequence[str | None], scored: Sequence[Scored]) -> pd.DataFrame:
    """A row for each text, by its number from 1, with the answers of one model or two.

    Columns: row, review, then of each model `label (...)`, `probability (...)` and `left out (...)`, words, and of two models
    with classes of the same names `disagree` and `difference`.
    """
    columns: dict[str, object] = {"row": range(1, len(texts) + 1), "review": list(texts)}
    for one in scored:
        columns[f"label ({one.model})"] = one.labels()
        columns[f"probability ({one.model})"] = one.probabilities().max(-1)
    apart = difference(*scored) if len(scored) == 2 else None
    if apart is not None:
        first, second = (one.labels() for one in scored)
        columns["disagree"] = [a != b for a, b in zip(first, second, strict=True)]
        columns["difference"] = apart
    columns["words"] = [answer.words if answer else 0 for answer in scored[0].answers]
    for one in scored:
        columns[f"left out ({one.model})"] = [answer.words - answer.words_read if answer else 0 for answer in one.answers]
    return pd.DataFrame(columns)


def arrange(table: pd.DataFrame, order: Order, *, only_disagreeing: bool = False) -> pd.DataFrame:
    """The rows of `side_by_side` in another order, those without text last.

    Of two models the confidence in a row is that of the less confident one.
    """
    if only_disagreeing and "disagree" in table:
        table = table.loc[table["disagree"].tolist()]
    confidence = table[[name for name in table.columns if name.startswith("probability (")]].min(axis=1)
    keys = {"least confident first": confidence, "most confident first": -confidence}
    if "difference" in table:
        keys["largest difference first"] = -table["difference"]
    if order in keys:
        table = table.loc[keys[order].sort_values(kind="stable", na_position="last").index]
    return table.reset_index(drop=True)


def accuracy(scored: Scored, cells: Sequence[object]) -> Accuracy:
    """How a model's labels agree with those that a table brings in `cells`; rows without text do not count."""
    rows = [(cell, label) for cell, label in zip(cells, scored.labels(), strict=True) if label is not None]
    known = known_classes([cell for cell, _ in rows], scored.label_names)
    pairs = [(scored.label_names[place], label) for place, (_, label) in zip(known, rows, strict=True) if place is not None]
    right = sum(truth == label for truth, label in pairs)
    unlabelled = sum(label_key(cell) is None for cell, _ in rows)
    return Accuracy(
        n=len(pairs),
        right=right,
        interval=wilson(right, len(pairs)) if pairs else None,
        unlabelled=unlabelled,
        unknown=len(rows) - len(pairs) - unlabelled,
    )


def with_answers(original: pd.DataFrame, scored: Sequence[Scored], *, for_spreadsheets: bool = False) -> pd.DataFrame:
    """A person's table with the answers added, under names that it does not have: see `writing.free_name`.

    One model adds `label`, `probability` (of that label), `words_left_out` and `words`; each of two adds the first three with
    its name behind, and together they add `difference`. `for_spreadsheets`: labels are made `writing.inert`.
    """
    table = original.copy(deep=False)

    def add(name: str, values: Sequence[object] | np.ndarray, model: str = "", dtype: str | None = None) -> None:
        behind = f" ({model})" if len(scored) > 1 and model else ""
        table[free_name(name + behind, table)] = pd.Series(values, index=table.index, dtype=dtype)

    for one in scored:
        labels = one.labels()
        add("label", inert(labels) if for_spreadsheets else labels, one.model)
        add("probability", one.probabilities().max(-1), one.model)
        add("words_left_out", [answer and answer.words - answer.words_read for answer in one.answers], one.model, "Int64")
    add("words", [answer and answer.words for answer in scored[0].answers], dtype="Int64")
    apart = difference(*scored) if len(scored) == 2 else None
    if apart is not None:
        add("difference", apart)
    return table
