"""Who attends to whom in a review, told of its words or its sentences instead of its tokens."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
from jaxtyping import Float, Int

from core.figures.labels import piece, shorten, visible
from core.inspection.words import ADDED, UNKNOWN, between_words, members, to_words
from core.records import AttentionMap, Span
from core.words import joined, sentence_spans, word_spans

LONGEST_SENTENCE = 50
"""Words; a longer one is told as several."""


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What the tokens of a map stand for, in order: words or sentences, and each token that nobody typed."""

    labels: tuple[str, ...]
    """A number, counted from 1, and the first characters: unique where words repeat, too. Data, never markup."""
    spans: tuple[Span, ...]
    """Of the typed text; empty for a token that nobody typed."""
    unknown: tuple[bool, ...]
    """Whether a token of it stands for what the vocabulary cannot spell."""
    part_of: Int[np.ndarray, "T"]
    """Index of each token's part."""

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def typed(self) -> list[int]:
        """Indices of the parts that were typed."""
        return [i for i, (start, end) in enumerate(self.spans) if start < end]

    def received(self, values: Float[np.ndarray, "T"]) -> Float[np.ndarray, "P"]:
        """The sum over the tokens of each part."""
        return to_words(values, self.part_of, len(self))

    def between(self, weights: Float[np.ndarray, "T T"]) -> Float[np.ndarray, "P P"]:
        """From part to part: the mean over the tokens that attend, the sum over those that are attended to; rows sum to 1."""
        return between_words(weights, self.part_of, len(self))

    def blocks(self, weights: Float[np.ndarray, "*heads T T"]) -> Float[np.ndarray, "*heads P P"]:
        """From part to part: the mean weight of a token for a token, each row divided by its sum.

        A long sentence gets no more than a short one, as it would if weights were added up.
        """
        own = members(self.part_of, len(self)).astype(np.float32)
        mean = own / own.sum(1, keepdims=True)
        found = mean @ weights @ mean.T
        return found / found.sum(-1, keepdims=True)


def word_parts(text: str, attention: AttentionMap) -> Parts:
    """The words that were read and the signs outside of them, each with the number of its first token."""
    spans, first, part_of = _grouped(attention, _with_words(text, attention))
    names = (visible(piece(text, attention.tokens[i], span)) for i, span in zip(first, spans, strict=True))
    labels = [f"{i + 1} {shorten(name)}" for i, name in zip(first, names, strict=True)]
    return _parts(attention, spans, labels, part_of)


def sentence_parts(text: str, attention: AttentionMap) -> Parts:
    """The sentences of which something was read, numbered one after another."""
    spans, first, part_of = _grouped(attention, sentence_spans(text, LONGEST_SENTENCE))
    names = (" ".join(piece(text, attention.tokens[i], span).split()) for i, span in zip(first, spans, strict=True))
    return _parts(attention, spans, [f"{number} {shorten(name)}" for number, name in enumerate(names, 1)], part_of)


def strongest(weights: Float[np.ndarray, "Q P"], n: int) -> list[tuple[int, int]]:
    """The `n` pairs of parts with the largest weights, from whom and to whom, the largest first."""
    order = np.argsort(-weights, axis=None, kind="stable")[:n]
    return [(int(i), int(j)) for i, j in zip(*np.unravel_index(order, weights.shape), strict=True)]


def _grouped(attention: AttentionMap, pieces: Sequence[Span]) -> tuple[list[Span], list[int], Int[np.ndarray, "T"]]:
    """Of each part, a piece of the text or an added token, its span and its first token; and the part of each token."""
    places = np.searchsorted([start for start, _ in pieces], [start for start, _ in attention.spans], side="right") - 1
    places = np.where([start < end for start, end in attention.spans], places, ADDED)
    begins = np.append(True, (places[1:] != places[:-1]) | (places[1:] == ADDED))
    first = np.flatnonzero(begins).tolist()
    spans = [(0, 0) if places[i] == ADDED else pieces[places[i]] for i in first]
    return spans, first, np.cumsum(begins) - 1


def _parts(attention: AttentionMap, spans: Sequence[Span], labels: Sequence[str], part_of: Int[np.ndarray, "T"]) -> Parts:
    not_known = {int(part) for part, token in zip(part_of, attention.tokens, strict=True) if token in UNKNOWN}
    unknown = tuple(start < end and i in not_known for i, (start, end) in enumerate(spans))
    return Parts(labels=tuple(labels), spans=tuple(spans), unknown=unknown, part_of=part_of)


def _with_words(text: str, attention: AttentionMap) -> list[Span]:
    """The spans of the tokens and of the words that they touch, as one where they overlap."""
    words, pieces = word_spans(text), {(start, end) for start, end in attention.spans if start < end}
    for start, end in tuple(pieces):
        first = bisect_right(words, start, key=itemgetter(1))
        pieces.update(words[first : bisect_left(words, end, key=itemgetter(0))])
    return joined(pieces)
