"""Labelled reviews: where they come from and what they hold."""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from core.catalog import SOURCES
from core.config import DataConfig


@dataclass(frozen=True, kw_only=True)
class Reviews:
    """Texts with their classes; review `i` is of class `labels[i]`, called `label_names[labels[i]]`."""

    name: str
    texts: list[str]
    labels: list[int]
    label_names: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """Sentences without full stop on how a person's table was read and on what was left out of it."""

    def __post_init__(self) -> None:
        assert len(self.texts) == len(self.labels)

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, rows: list[int]) -> "Reviews":
        """Those reviews, in that order."""
        return replace(self, texts=[self.texts[i] for i in rows], labels=[self.labels[i] for i in rows])

    def spread(self, n: int) -> "Reviews":
        """At most `n` of them: see `spread`."""
        return self.take(spread(len(self), n))


def spread(n: int, most: int) -> list[int]:
    """Places of at most `most` of `n`, at equal distances from the first to the last: neighbours may all be of one class."""
    return np.linspace(0, n - 1, min(n, most)).round().astype(int).tolist()


def load(config: DataConfig, seed: int) -> Reviews:
    """The reviews that `config` names, at most `limit` of them, drawn by `seed`.

    A smaller limit draws the beginning of a larger one. A name that is neither of the catalogue nor a table, and a table
    that cannot be used, is a ValueError.
    """
    reviews = _all_of(config)
    if config.limit is None:
        return reviews
    return reviews.take(np.random.default_rng(seed).permutation(len(reviews))[: config.limit].tolist())


def stamp(config: DataConfig) -> str | None:
    """SHA-256 of a table's file, to be told when it changes; None for a set that is known by name, and without a file."""
    path = Path(config.data)
    if config.data in SOURCES or not path.is_file():
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _all_of(config: DataConfig) -> Reviews:
    from core.data import preparation, table  # which make Reviews, and so need this module first

    if config.data in SOURCES:
        return SOURCES[config.data].resolve()()
    path = Path(config.data)
    if path.suffix.lower() not in table.READERS:
        raise ValueError(
            f"data: got {config.data!r}, expected one of {', '.join(SOURCES)}, or the path of a CSV, TSV, JSON lines or "
            f"Parquet file ({', '.join(table.READERS)})"
        )
    columns = (config.text_column,) if isinstance(config.text_column, str) else config.text_column
    return preparation.prepare(table.open_table(path), columns, config.label_column).reviews
