"""Whether a model is better than a guess that reads nothing."""

import numpy as np

from core.evaluation.predictions import Predictions
from core.statistics import wilson


def unlearned(found: Predictions) -> str | None:
    """What a model has not learned, a sentence without full stop; None for one that is better than a guess.

    To guess is to answer every review with the most frequent of their classes: nothing that reads no review is right more
    often. A model is better where its accuracy's 95% interval (Wilson) lies above that, so that chance does not explain it.
    """
    n = len(found)
    guessed = int(np.bincount(found.labels).max())
    alike = len(np.unique(found.answers)) == 1
    low, _ = wilson(int(found.correct.sum()), n)
    if low > guessed / n and not alike:
        return None
    how = "it answers every review alike" if alike else "its answers could be chance"
    return f"it has learned nothing that shows: {how}, and one class for all {n:,} test reviews is right in {guessed / n:.1%}"
