"""Training, validation and test reviews, told apart by a hash of their text alone.

A review so stays on its side when others join, and equal texts cannot stand on two sides.
"""

import hashlib
import re
import unicodedata
from bisect import bisect
from collections.abc import Collection
from dataclasses import dataclass
from itertools import accumulate

from core.data.reviews import Reviews

SHARES = {"train": 0.85, "validation": 0.05, "test": 0.10}

_BREAK_TAG = re.compile(r"<br\s*/?>")


def normalise(text: str) -> str:
    """The text as it counts for being equal: compatible characters (NFKC), case, `<br />` and white space do not matter."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(_BREAK_TAG.sub(" ", folded).split())


def text_hash(text: str) -> str:
    """First 16 hexadecimal digits of the SHA-256 of the normalised text."""
    return hashlib.sha256(normalise(text).encode()).hexdigest()[:16]


def side(hash: str) -> str:
    """The side a text of that hash falls to: a key of `SHARES`."""
    edges = list(accumulate(SHARES.values()))[:-1]
    return list(SHARES)[bisect(edges, int(hash, 16) / 16**16)]


@dataclass(frozen=True, kw_only=True)
class Splits:
    """The three sides and the text hashes of each, in the order of its reviews."""

    train: Reviews
    validation: Reviews
    test: Reviews
    hashes: dict[str, list[str]]
    duplicates_dropped: int

    def side(self, name: str) -> Reviews:
        """The reviews of a key of `SHARES`."""
        return {"train": self.train, "validation": self.validation, "test": self.test}[name]

    def texts(self, name: str) -> dict[str, str]:
        """Those, by their hashes."""
        return dict(zip(self.hashes[name], self.side(name).texts, strict=True))


def split(reviews: Reviews) -> Splits:
    """Shares 85/5/10 by text hash. Of equal texts only the first is kept.

    Too few reviews to fill each side, or fewer than two classes to train on, is a ValueError.
    """
    first: dict[str, int] = {}
    for i, text in enumerate(reviews.texts):
        first.setdefault(text_hash(text), i)
    hashes = {name: [hash for hash in first if side(hash) == name] for name in SHARES}
    sides = {name: reviews.take([first[hash] for hash in hashes[name]]) for name in SHARES}
    _refuse_too_few(sides, len(first))
    return Splits(**sides, hashes=hashes, duplicates_dropped=len(reviews) - len(first))


def _refuse_too_few(sides: dict[str, Reviews], n: int) -> None:
    empty = [name for name, reviews in sides.items() if not reviews]
    if empty:
        raise ValueError(f"got {n} different reviews, too few for a {' and a '.join(empty)} side: use 200 or more")
    if len(set(sides["train"].labels)) < 2:
        raise ValueError(
            f"got {n} different reviews, of which the {len(sides['train'])} to train on are all of one class: "
            f"use more of them, of at least two classes"
        )


def fingerprint(hashes: Collection[str]) -> str:
    """SHA-256 of a collection of hashes, whatever their order."""
    return hashlib.sha256("\n".join(sorted(hashes)).encode()).hexdigest()
