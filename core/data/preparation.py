"""From a table to reviews that can be trained on: rows left out with their reasons, classes and lengths."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from core.data.labels import find_classes, label_key
from core.data.reviews import Reviews, spread
from core.data.splits import text_hash
from core.data.table import Table, column, is_blank
from core.words import count_words

Reason = Literal["no text", "not text", "no label", "duplicate text"]
QUANTILES = (0.0, 0.25, 0.5, 0.75, 0.95, 1.0)
COUNTED = 1000
_ROWS_SHOWN = 5
_REASONS: dict[Reason, str] = {
    "no text": "without text",
    "not text": "with a number or a list for a text",
    "no label": "without a label",
    "duplicate text": "with the text of an earlier row",
}


@dataclass(frozen=True, kw_only=True)
class Dropped:
    """A row that was left out; rows count from 1, the line of column names left aside."""

    row: int
    reason: Reason


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """The usable reviews of a table with the row of each, the rows left out, and sentences on all that was changed."""

    reviews: Reviews
    rows: list[int]
    dropped: list[Dropped]
    changed: tuple[str, ...]
    """Sentences without full stop on labels taken for one and on rows left out."""

    def balance(self) -> dict[str, int]:
        """Number of reviews of each class."""
        counts = np.bincount(self.reviews.labels, minlength=len(self.reviews.label_names))
        return dict(zip(self.reviews.label_names, counts.tolist(), strict=True))

    def words(self) -> dict[float, int]:
        """Lengths in words at each of `QUANTILES`, of up to `COUNTED` reviews spread evenly from shortest to longest."""
        texts = sorted(self.reviews.texts, key=len)  # by characters, since counting the words of 25,000 reviews takes 14 s
        counted = [count_words(texts[i]) for i in spread(len(texts), COUNTED)]
        values = np.quantile(counted, QUANTILES, method="inverted_cdf")
        return {quantile: int(value) for quantile, value in zip(QUANTILES, values, strict=True)}

    def sentences(self) -> list[str]:
        """What was assumed and left out, how many reviews each class has, and how long they are."""
        shares = [f"{n:,} {name} ({n / len(self.reviews):.0%})" for name, n in self.balance().items()]
        words = self.words()
        counted = f", counted in {COUNTED:,} of them" if len(self.reviews) > COUNTED else ""
        return [
            *self.reviews.notes,
            f"{len(self.reviews):,} reviews: {', '.join(shares)}",
            f"half of them have up to {words[0.5]:,} words, 95% up to {words[0.95]:,}, the longest {words[1.0]:,}{counted}",
        ]


def prepare(table: Table, text_columns: Sequence[str], label_column: str) -> Prepared:
    """The reviews of a table, ready to be split.

    Several columns of text are joined by a line break, in the order given. Rows without text, without a label or with the
    text of an earlier one (see `splits.normalise`) are left out and listed. A column that is not there or is named twice, a
    table of one usable row, and labels of one class or of more than `labels.MAX_CLASSES` are a ValueError.
    """
    if not text_columns or len({*text_columns, label_column}) <= len(text_columns):
        raise ValueError(
            f"columns: got {', '.join(text_columns) or 'none'} for the text and {label_column} for the label, "
            f"expected at least one of text, and each column once"
        )
    joined = join_texts(table.frame, text_columns)
    cells = column(table.frame, label_column)
    dropped, contradictions = _unusable(joined, [label_key(cell) for cell in cells])
    out = {drop.row for drop in dropped}
    rows = [row for row in range(1, len(cells) + 1) if row not in out]
    said = _said(dropped, contradictions, len(cells))
    if len(rows) < 2:
        got = "; ".join([f"{len(rows)} usable of {len(cells):,} rows", *said])
        raise ValueError(f"{table.name}: got {got}; expected many reviews with text and label")
    classes = find_classes([cells[row - 1] for row in rows], label_column)
    reviews = Reviews(
        name=table.name,
        texts=[text for row in rows if isinstance(text := joined[row - 1], str)],
        labels=classes.labels,
        label_names=classes.names,
        notes=(*table.assumed, *classes.said, *said),
    )
    return Prepared(reviews=reviews, rows=rows, dropped=dropped, changed=(*classes.said, *said))


def join_texts(frame: pd.DataFrame, text_columns: Sequence[str]) -> list[str | None]:
    """The text of each row, its columns joined by a line break; empty if it has none, None if a cell is no text."""
    return [_joined(cells) for cells in zip(*(column(frame, name) for name in text_columns), strict=True)]


def _joined(cells: Sequence[object]) -> str | None:
    filled = [cell for cell in cells if not is_blank(cell)]
    texts = [cell for cell in filled if isinstance(cell, str)]
    return "\n".join(texts) if len(texts) == len(filled) else None


def _unusable(texts: Sequence[str | None], keys: Sequence[str | None]) -> tuple[list[Dropped], int]:
    """The rows to leave out, and how many of them repeat a text under another label."""
    dropped, contradictions = [], 0
    first: dict[str, str] = {}
    for row, (text, key) in enumerate(zip(texts, keys, strict=True), 1):
        if not text or key is None:
            dropped.append(Dropped(row=row, reason="not text" if text is None else "no text" if not text else "no label"))
            continue
        hash = text_hash(text)
        if hash in first:
            dropped.append(Dropped(row=row, reason="duplicate text"))
            contradictions += key != first[hash]
        first.setdefault(hash, key)
    return dropped, contradictions


def _said(dropped: Sequence[Dropped], contradictions: int, n: int) -> list[str]:
    said = []
    for reason, words in _REASONS.items():
        rows = [drop.row for drop in dropped if drop.reason == reason]
        if rows:
            shown = ", ".join(map(str, rows[:_ROWS_SHOWN])) + (", ..." if len(rows) > _ROWS_SHOWN else "")
            said.append(f"left out {len(rows):,} of {n:,} rows, {words}: {'row' if len(rows) == 1 else 'rows'} {shown}")
    if contradictions:
        said.append(
            f"{contradictions:,} of the repeated texts had another label than the first of its kind, whose label counts"
        )
    return said
