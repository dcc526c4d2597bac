"""Two models on the same test reviews: which is better, and is it more than chance?"""

from dataclasses import dataclass

from core import statistics
from core.evaluation.predictions import Predictions, aligned
from core.statistics import Difference


@dataclass(frozen=True, kw_only=True)
class Paired:
    """How much better a variant is than its base on the same reviews."""

    accuracy: Difference
    """Its p is McNemar's."""
    f1: Difference


def compare(base: Predictions, variant: Predictions) -> Paired:
    """Holds two models against each other. ValueError for what `predictions.aligned` refuses."""
    variant = aligned(base, variant)
    answers = (base.labels, base.answers, variant.answers)
    return Paired(
        accuracy=statistics.accuracy_gain(*answers),
        f1=statistics.difference(*answers, base.n_classes, statistics.f1),
    )
