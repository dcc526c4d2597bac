"""What the log-odds of a class lose when a word is hidden."""

import numpy as np
import torch
from jaxtyping import Float

from core.artifact import Reader
from core.inspection.edits import Weighed
from core.inspection.subject import Subject, log_odds, subject

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


def weighed(model: Reader, text: str, label: str | None = None) -> Weighed:
    """The text and what each of its words speaks for a class, by default the predicted one. ValueError as from `subject`."""
    asked = subject(model, text, label)
    answer, (values, together) = asked.reading.prediction, occluded(asked)
    return Weighed(
        text=text, prediction=answer, label=asked.label, words=asked.words, values=values, together=together,
        log_odds=float(log_odds(torch.tensor([answer.logits]), asked.target)),
    )  # fmt: skip
