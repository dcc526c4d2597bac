"""Two texts word by word, or one through two models: what was added and removed, and what each word is worth in either."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from core.records import Prediction, Word

ABSENT = -1
"""In the place of a word, where a text does not have it."""
MOST_COMPARED = 2_000
"""Words between the first that differ and the last; longer stretches are taken for wholly different."""


@dataclass(frozen=True, kw_only=True)
class Weighed:
    """A text as a model reads it, and what each word speaks for one class."""

    text: str
    prediction: Prediction
    label: str
    """The class that all is towards, predicted or not."""
    log_odds: float
    """Of that class, in nats."""
    words: tuple[Word, ...]
    """All of the typed text, in order, read or not."""
    values: Float[np.ndarray, "W"]
    """What the log-odds lose without the word; 0 for one that was not read."""
    together: int
    """Neighbours that were hidden at once: more than 1 in a very long text."""

    @property
    def probability(self) -> float:
        """Of that class."""
        return self.prediction.probabilities[self.label]

    @property
    def typed(self) -> list[str]:
        """Each word as it was typed."""
        return [self.text[slice(*word.span)] for word in self.words]


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """Two weighed texts of which each word stands beside the same word of the other."""

    first: Weighed
    second: Weighed
    pairs: Int[np.ndarray, "P 2"]
    """Places of each word in both, as from `aligned`."""

    @property
    def words(self) -> list[str]:
        """The word of each pair."""
        first, second = self.first.typed, self.second.typed
        return [second[j] if i == ABSENT else first[i] for i, j in self.pairs.tolist()]

    @property
    def gone(self) -> list[int]:
        """Places of the first text's words that the second lacks."""
        return self.pairs[self.pairs[:, 1] == ABSENT, 0].tolist()

    @property
    def new(self) -> list[int]:
        """Places of the second text's words that the first lacks."""
        return self.pairs[self.pairs[:, 0] == ABSENT, 1].tolist()

    @cached_property
    def values(self) -> Float[np.ndarray, "2 P"]:
        """What each word is worth in either; not a number where there is no such word, or it was not read."""
        return np.array([_at(one, places) for one, places in zip((self.first, self.second), self.pairs.T, strict=True)])

    @property
    def difference(self) -> Float[np.ndarray, "P"]:
        """The second less the first. A word that one lacks or has not read counts nothing there; without both, not a number."""
        first, second = np.nan_to_num(self.values)
        return np.where(np.isnan(self.values).all(0), np.nan, second - first)


def contrast(first: Weighed, second: Weighed) -> Contrast:
    """The two side by side. ValueError if they are not towards the same class."""
    if first.label != second.label:
        raise ValueError(f"got evidence for {first.label!r} and for {second.label!r}, expected it for one class")
    return Contrast(first=first, second=second, pairs=aligned(first.typed, second.typed))


def aligned(first: Sequence[str], second: Sequence[str]) -> Int[np.ndarray, "P 2"]:
    """Places of words that stand for each other, in order, and alone, beside `ABSENT`, of those that have no like in the other.

    Each place is there once, and as many as can be stand beside their like.
    """
    n = min(len(first), len(second))
    head = next((i for i in range(n) if first[i] != second[i]), n)
    tail = next((i for i in range(n - head) if first[-1 - i] != second[-1 - i]), n - head)
    middle = _common(first[head : len(first) - tail], second[head : len(second) - tail])
    alike = [(i, i) for i in range(head)] + [(head + i, head + j) for i, j in middle]
    alike += [(len(first) - i, len(second) - i) for i in range(tail, -1, -1)]  # the last stands for both ends
    pairs, i, j = [], 0, 0
    for place, other in alike:
        pairs += [(gone, ABSENT) for gone in range(i, place)] + [(ABSENT, new) for new in range(j, other)] + [(place, other)]
        i, j = place + 1, other + 1
    return np.array(pairs[:-1], dtype=np.int64).reshape(-1, 2)


def _common(first: Sequence[str], second: Sequence[str]) -> list[tuple[int, int]]:
    """Places of a longest common subsequence (Wagner and Fischer 1974); of none in longer stretches than `MOST_COMPARED`."""
    if max(len(first), len(second)) > MOST_COMPARED:
        return []
    others = np.array(second, dtype=object)
    lengths = np.zeros((len(first) + 1, len(second) + 1), dtype=np.int16)
    for i, word in enumerate(first):
        longer = lengths[i, :-1] + (others == word)
        lengths[i + 1, 1:] = np.maximum.accumulate(np.maximum(lengths[i, 1:], longer))
    found, i, j = [], len(first), len(second)
    while i and j:
        if first[i - 1] == second[j - 1]:
            i, j = i - 1, j - 1
            found.append((i, j))
        elif lengths[i - 1, j] >= lengths[i, j - 1]:
            i -= 1
        else:
            j -= 1
    return found[::-1]


def _at(one: Weighed, places: Int[np.ndarray, "P"]) -> Float[np.ndarray, "P"]:
    """The value at each place; not a number where it is `ABSENT` or was not read."""
    read = np.array([word.read for word in one.words] + [False])  # the last stands for what is absent
    return np.where(read[places], np.append(one.values, 0.0)[places], np.nan)
