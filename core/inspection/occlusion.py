"""What the log-odds of the predicted class lose when a word is hidden."""

import numpy as np
from jaxtyping import Float

from core.inspection.subject import Subject

MOST_VARIANTS = 512
"""Of a review, each of which is read whole."""


def occluded(subject: Subject) -> tuple[Float[np.ndarray, "W"], int]:
    """Log-odds of the review minus those with a mask in the place of each word (arXiv:1612.08220), and words hidden at once.

    Of a review of more than `MOST_VARIANTS` words neighbours are hidden together, and each has its part of what that does.
    """
    together = -(-len(subject.read) // MOST_VARIANTS)
    groups = [subject.read[i : i + together] for i in range(0, len(subject.read), together)]
    whole, *without = subject.log_odds([subject.ids, *(subject.without(group) for group in groups)])
    values = np.zeros(len(subject.words))
    for group, odds in zip(groups, without, strict=True):
        values[group] = (whole - odds) / len(group)
    return values, together
