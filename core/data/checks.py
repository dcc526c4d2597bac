"""Whether reviews are fit to measure a model on: texts on two sides, the balance of the classes, words that it cannot read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from core.config import SPECIAL_TOKENS
from core.data.reviews import spread
from core.data.splits import SHARES, Splits, normalise

if TYPE_CHECKING:
    from tokenizers import Tokenizer

UNKNOWN = SPECIAL_TOKENS.index("[UNK]")
COUNTED = 2000
"""Reviews at most in which words are counted, spread evenly."""


@dataclass(frozen=True, kw_only=True)
class SideCheck:
    """The reviews of one side."""

    n: int
    balance: dict[str, float]
    """Share of each class."""
    exactly: int
    """Reviews that the training side has, too, after `splits.normalise`: a model may know their answers by heart."""
    word_for_word: int
    """The same with other signs between the words."""


def side_checks(splits: Splits) -> dict[str, SideCheck]:
    """How each side is made up, and how much of it was there to be learnt by heart: of the training side, all."""
    learnt, learnt_words = set(splits.hashes["train"]), {_words(text) for text in splits.train.texts}
    return {
        name: SideCheck(
            n=len(splits.hashes[name]),
            balance=_balance(splits, name),
            exactly=sum(hash in learnt for hash in splits.hashes[name]),
            word_for_word=sum(_words(text) in learnt_words for text in splits.side(name).texts),
        )
        for name in SHARES
    }


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", normalise(text)))


def _balance(splits: Splits, name: str) -> dict[str, float]:
    reviews = splits.side(name)
    counts = np.bincount(reviews.labels, minlength=len(reviews.label_names))
    return dict(zip(reviews.label_names, (counts / counts.sum()).tolist(), strict=True))


def unknown_words(tokenizer: Tokenizer, texts: Sequence[str]) -> float:
    """Share of the words and signs that a tokeniser of ours cannot spell: each becomes one [UNK], whatever it says.

    Of at most `COUNTED` texts; 0 where there is no word.
    """
    from core.data.corpus import encode_corpus  # and with it the tokenizers library

    ids = encode_corpus(tokenizer, [texts[i] for i in spread(len(texts), COUNTED)]).ids
    going_on = [id for piece, id in tokenizer.get_vocab().items() if piece.startswith("##")]
    words = ids[~np.isin(ids, going_on)]
    return float((words == UNKNOWN).mean()) if len(words) else 0.0
