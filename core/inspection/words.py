"""Tokens as words: what is found of tokens, told of the words of the typed text.

To a word goes the sum of its tokens, from a word the mean of its tokens: what one word attends to still sums to 1, but for what
goes to tokens that nobody typed.
"""

from collections.abc import Iterable

import numpy as np
from jaxtyping import Bool, Float, Int

from core.records import AttentionMap, Span, Word
from core.words import joined, word_spans

ADDED = -1
"""In the place of a word, for a token that nobody typed."""
UNKNOWN = ("[UNK]", "<unk>")
"""Tokens that stand for what a vocabulary cannot spell."""


def words(text: str, everything: Iterable[Span], attention: AttentionMap) -> tuple[tuple[Word, ...], Int[np.ndarray, "T"]]:
    """All words and signs of a text, and for each token of the map which of them it belongs to.

    `everything` are the spans of all tokens of the text, read or not: a token that reaches over several words makes them one.
    """
    spans = joined([*everything, *word_spans(text)])
    starts = [start for start, _ in spans]
    typed = np.array([start < end for start, end in attention.spans])
    word_of = np.searchsorted(starts, [start for start, _ in attention.spans], side="right") - 1
    word_of = np.where(typed, word_of, ADDED)
    unknown = np.array([token in UNKNOWN for token in attention.tokens]) & typed
    read, not_known = set(word_of.tolist()), set(word_of[unknown].tolist())
    found = tuple(Word(span=span, read=i in read, unknown=i in not_known) for i, span in enumerate(spans))
    return found, word_of


def members(word_of: Int[np.ndarray, "T"], n_words: int) -> Bool[np.ndarray, "W T"]:
    """Which tokens each word has."""
    return word_of == np.arange(n_words)[:, None]


def to_words(values: Float[np.ndarray, "*rows T"], word_of: Int[np.ndarray, "T"], n_words: int) -> Float[np.ndarray, "*rows W"]:
    """The sum over the tokens of each word; 0 for a word without tokens."""
    return values @ members(word_of, n_words).T.astype(np.float64)


def between_words(weights: Float[np.ndarray, "T T"], word_of: Int[np.ndarray, "T"], n_words: int) -> Float[np.ndarray, "W W"]:
    """Attention from words to words: the mean over the tokens that attend, the sum over those that are attended to."""
    own = members(word_of, n_words).astype(np.float64)
    return own / np.maximum(own.sum(1, keepdims=True), 1) @ to_words(weights, word_of, n_words)
