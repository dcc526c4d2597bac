"""Whether a model is right as often as it says, and what it finds where another probability is asked of it."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from core.evaluation.predictions import Predictions
from core.records import CalibrationBin, CalibrationError, Estimate
from core.statistics import RESAMPLED, share

N_BINS = 10
"""Of equal width, from the least confidence that an answer can have, 1 / C, to 1."""
DRAWS = 1000
THRESHOLDS = np.linspace(0, 1, 101)


def calibration_bins(found: Predictions) -> list[CalibrationBin]:
    """The calibration curve: how sure a model was of its answers, and how often they were right (arXiv:1706.04599)."""
    edges, which = _edges(found.n_classes), _bin(found.confidence, found.n_classes)
    return [
        _one_bin(low, high, found.confidence[which == i], found.correct[which == i])
        for i, (low, high) in enumerate(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
    ]


def _one_bin(low: float, high: float, confidence: Float[np.ndarray, "k"], correct: Bool[np.ndarray, "k"]) -> CalibrationBin:
    n = len(correct)
    return CalibrationBin(
        low=low, high=high, n=n, confidence=float(confidence.mean()) if n else None, accuracy=share(int(correct.sum()), n)
    )


def calibration_error(found: Predictions) -> CalibrationError:
    """The expected calibration error over `N_BINS` (arXiv:1706.04599), and how large chance alone makes it.

    It is never negative, so that few reviews make it large. `by_chance` is therefore of answers to the same reviews that are
    right with just the probability that the model gives them (consistency resampling; Bröcker and Smith 2007).
    """
    in_bin = np.eye(N_BINS)[_bin(found.confidence, found.n_classes)]

    def error(correct: Bool[np.ndarray, "draws n"]) -> Float[np.ndarray, "draws"]:
        return np.abs((correct - found.confidence) @ in_bin).sum(1) / len(found)

    rng, at_once = np.random.default_rng(0), max(1, RESAMPLED // len(found))
    sizes = [min(at_once, DRAWS - done) for done in range(0, DRAWS, at_once)]
    by_chance = np.concatenate([error(rng.random((size, len(found))) < found.confidence) for size in sizes])
    return CalibrationError(value=float(error(found.correct[None])[0]), by_chance=float(np.percentile(by_chance, 95)))


def _edges(n_classes: int) -> Float[np.ndarray, "edges"]:
    return np.linspace(1 / n_classes, 1, N_BINS + 1)


def _bin(confidence: Float[np.ndarray, "n"], n_classes: int) -> Int[np.ndarray, "n"]:
    return np.searchsorted(_edges(n_classes)[1:-1], confidence)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What becomes of a class if a review is said to be of it from a probability on."""

    precision: Estimate | None
    """Share of those said to be of it that are; None where none is."""
    recall: Estimate | None
    """Share of those of it that are said to be; None where there is none."""
    f1: float | None
    accuracy: Estimate | None
    """Share of the reviews for which it is rightly said that they are, or are not, of the class."""


def asked(found: Predictions, class_id: int, threshold: float) -> Asked:
    """What a threshold on the probability of a class brings."""
    there, said = found.labels == class_id, found.probabilities[:, class_id] >= threshold
    both, either = int((there & said).sum()), int(there.sum() + said.sum())
    return Asked(
        precision=share(both, int(said.sum())),
        recall=share(both, int(there.sum())),
        f1=2 * both / either if either else None,
        accuracy=share(int((there == said).sum()), len(found)),
    )


def best_threshold(found: Predictions, class_id: int) -> float:
    """The one of `THRESHOLDS` with the largest F1, of several alike the middle one.

    One that is chosen on reviews is too good on them: choose on the validation side, and measure on test.
    """
    scores = np.array([asked(found, class_id, threshold).f1 or 0.0 for threshold in THRESHOLDS.tolist()])
    best = np.flatnonzero(scores == scores.max())
    return float(THRESHOLDS[best[len(best) // 2]])
