"""What a model answered for labelled reviews: predictions.parquet as arrays."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int, Shaped

from core.artifact import read_predictions
from core.runs import read_model
from core.statistics import softmax


@dataclass(frozen=True, kw_only=True, eq=False)
class Predictions:
    """Answers for labelled reviews, a place for each."""

    hashes: Shaped[np.ndarray, "n"]
    """Of the normalised texts, no two alike; see `splits.text_hash`."""
    labels: Int[np.ndarray, "n"]
    logits: Float[np.ndarray, "n C"]
    words: Int[np.ndarray, "n"]
    tokens: Int[np.ndarray, "n"]
    tokens_read: Int[np.ndarray, "n"]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def n_classes(self) -> int:
        """How many classes the model tells apart."""
        return self.logits.shape[1]

    @cached_property
    def answers(self) -> Int[np.ndarray, "n"]:
        """The most probable class of each review."""
        return self.logits.argmax(1)

    @cached_property
    def correct(self) -> Bool[np.ndarray, "n"]:
        """Whether that is its label."""
        return self.answers == self.labels

    @cached_property
    def probabilities(self) -> Float[np.ndarray, "n C"]:
        """Of each class, for each review."""
        return softmax(self.logits)

    @cached_property
    def confidence(self) -> Float[np.ndarray, "n"]:
        """The probability of each answer."""
        return self.probabilities.max(1)

    @property
    def cut(self) -> Bool[np.ndarray, "n"]:
        """Whether a review was longer than what the model reads of it."""
        return self.tokens > self.tokens_read

    def take(self, places: Int[np.ndarray, "k"]) -> "Predictions":
        """Those reviews, in that order."""
        return Predictions(
            hashes=self.hashes[places],
            labels=self.labels[places],
            logits=self.logits[places],
            words=self.words[places],
            tokens=self.tokens[places],
            tokens_read=self.tokens_read[places],
        )


def read(folder: Path, side: str = "test") -> Predictions:
    """The stored answers of a model for one side. ValueError where they are missing, damaged or fewer than its record says."""
    if folder.is_dir() and not (folder / "predictions.parquet").exists():
        raise ValueError(
            f"{folder}: it has no predictions.parquet, which `python -m core train` writes, so that its {side} answers are not "
            f"on record; measure it on a labelled table, with `python -m core evaluate` or on the page Score"
        )
    frame = read_predictions(folder)
    try:
        found = of(frame, side)
    except ValueError as error:
        raise ValueError(f"{folder}: {error}") from error
    recorded = read_model(folder).figure("metrics", side, "n")
    if recorded not in (None, len(found)):
        raise ValueError(
            f"{folder}: predictions.parquet holds {len(found):,} {side} reviews, and run.json tells of {recorded:,.0f}; "
            f"restore both files, or train the model again"
        )
    return found


def label_names(folder: Path, n_classes: int) -> tuple[str, ...]:
    """What a model calls its classes, by its record; their numbers where it does not say."""
    recorded = read_model(folder).recorded("label_names")
    if isinstance(recorded, list) and len(recorded) == n_classes:
        return tuple(map(str, recorded))
    return tuple(map(str, range(n_classes)))


def of(frame: pd.DataFrame, side: str = "test") -> Predictions:
    """The rows of one side. ValueError where there is none, and for what no model answers."""
    rows = frame.loc[frame["split"] == side]
    if rows.empty:
        raise ValueError(f"got no {side} review, expected at least one; train the model again")
    try:
        found = Predictions(
            hashes=rows["text_hash"].to_numpy(dtype=str),
            labels=rows["label"].astype("int64").to_numpy(),
            logits=np.stack([np.asarray(logits, dtype=np.float64) for logits in rows["logits"]]),
            **{name: rows[name].astype("int64").to_numpy() for name in ("words", "tokens", "tokens_read")},
        )
    except (ValueError, TypeError) as error:
        raise ValueError(f"the stored predictions are damaged ({error}); train the model again") from error
    _refuse_impossible(found)
    return found


def _refuse_impossible(found: Predictions) -> None:
    faults = {
        "logits that are no finite numbers": not np.isfinite(found.logits).all(),
        "labels that are none of its classes": not np.isin(found.labels, np.arange(found.n_classes)).all(),
        "the same review twice": len(np.unique(found.hashes)) < len(found),
    }
    said = [fault for fault, there in faults.items() if there]
    if said:
        raise ValueError(f"the stored predictions are damaged (they hold {' and '.join(said)}); train the model again")


def aligned(base: Predictions, other: Predictions) -> Predictions:
    """`other` in the order of `base`. ValueError if they are not of the same reviews, with the same labels and classes."""
    place = {hash: i for i, hash in enumerate(other.hashes.tolist())}
    both = [place[hash] for hash in base.hashes.tolist() if hash in place]
    if not len(both) == len(base) == len(other):
        raise ValueError(
            f"the test reviews are not the same: {len(base):,} and {len(other):,}, {len(both):,} of them in both; "
            f"train both on the same data with the same limit and seed"
        )
    if base.n_classes != other.n_classes:
        raise ValueError(f"got models of {base.n_classes} and {other.n_classes} classes, expected the same classes")
    other = other.take(np.array(both))
    if (base.labels != other.labels).any():
        raise ValueError("the same test reviews have different labels; train both on the same data")
    return other
