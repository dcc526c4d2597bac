"""The fewest words without which an answer is another: a counterfactual of deletions (SEDC, Martens and Provost 2014)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from core.inspection.occlusion import occluded
from core.inspection.subject import Subject
from core.statistics import softmax

MOST_DELETED = 20
"""Words that are taken away before it is said that none were found."""
MOST_CANDIDATES = 64
"""Words that are tried: those that speak most for the answer when each is hidden alone."""


@dataclass(frozen=True, kw_only=True)
class Deletions:
    """Words without which the answer is another, and with any one of them back is what it was."""

    words: tuple[int, ...]
    """Indices of words of the text, in the order in which they were taken; empty if none were found."""
    probabilities: Float[np.ndarray, "D"]
    """Of the class that the whole text is predicted to be of: of the whole, then without the first word, the first two..."""
    label: str
    """The answer without all of these words."""

    @property
    def flips(self) -> bool:
        """Whether any were found."""
        return bool(self.words)


def least_deletions(asked: Subject, *, remove: bool = True) -> Deletions:
    """A minimal set of words to turn the predicted answer: none can be put back, though a smaller set may be elsewhere.

    The word without which the answer is weakest goes first, then the one without which what is left is, and so on, up to
    `MOST_DELETED` of `MOST_CANDIDATES`; then those are put back that can be. Words are cut out, or without `remove` masked.
    """
    search = _Search(asked, remove)
    found = search.without_the_superfluous(search.greedily())
    steps = search.logits([found[:n] for n in range(len(found) + 1)])
    return Deletions(
        words=tuple(found), probabilities=softmax(steps)[:, asked.target],
        label=asked.model.label_names[int(steps[-1].argmax())],
    )  # fmt: skip


@dataclass(frozen=True)
class _Search:
    """What a review is worth without some of its words."""

    asked: Subject
    remove: bool

    def logits(self, sets: Sequence[Sequence[int]]) -> Float[np.ndarray, "n C"]:
        return self.asked.logits([self.asked.without(gone, remove=self.remove) for gone in sets])

    def margins(self, sets: Sequence[Sequence[int]]) -> Float[np.ndarray, "n"]:
        """How far the predicted class is ahead without each of these sets; below 0 where another is answered, in a tie, too."""
        logits, target = self.logits(sets), self.asked.target
        ahead = logits[:, target] - np.delete(logits, target, axis=1).max(1)
        return np.where(logits.argmax(1) == target, ahead, np.minimum(ahead, -np.finfo(np.float32).tiny))

    def greedily(self) -> list[int]:
        """Words, one after the other, until the answer is another; none if it never is."""
        left, gone = self.candidates(), []
        while left and len(gone) < MOST_DELETED:
            margins = self.margins([[*gone, word] for word in left])
            gone.append(left.pop(int(margins.argmin())))
            if margins.min() < 0:
                return gone
        return []

    def candidates(self) -> list[int]:
        values, _ = occluded(self.asked)
        return sorted(self.asked.read.tolist(), key=lambda word: -values[word])[:MOST_CANDIDATES]

    def without_the_superfluous(self, gone: list[int]) -> list[int]:
        """Put back, one by one, the word that is missed least, while the answer is another all the same."""
        while len(gone) > 1:
            margins = self.margins([[word for word in gone if word != back] for back in gone])
            if margins.min() >= 0:
                break
            del gone[int(margins.argmin())]
        return gone
