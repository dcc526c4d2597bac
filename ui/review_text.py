"""A review, word by word: its typed characters and nothing else, shaded by what each word has of attention or evidence."""

import html
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter

import numpy as np

from core.figures.colors import AGAINST, INK, ink
from core.inspection.parts import Parts
from core.records import Span, Word

STRONGEST = 0.45
"""Opacity behind the most attended word: above it, letters on either theme would lose their contrast."""
UNREAD = 0.68
"""Opacity of what was not read: plainly paler, and still 4.5 to 1 against either background."""

_CHOSEN = ";outline:2px solid currentColor;outline-offset:1px"
_BLOCK = (
    "white-space:pre-wrap;overflow-wrap:anywhere;tab-size:4;line-height:1.7;"
    "border:1px solid rgba(128,128,128,.3);border-radius:.4rem;padding:.5rem .75rem"
)
_SCROLLING = ";max-height:30rem;overflow-y:auto"


@dataclass(frozen=True, kw_only=True)
class Unit:
    """What is shaded as one: a word with all its tokens, or a sign outside of words."""

    span: Span
    share: float
    """Of the attention in view, all units and the added tokens together having 1; or of evidence, below 0 against a class."""
    unknown: bool


@dataclass(frozen=True, kw_only=True)
class Piece:
    """Characters of the text that look alike."""

    text: str
    style: str = ""
    """As CSS writes it."""
    title: str = ""
    """What is said where the pointer rests."""
    unit: int | None = None
    """Index of the unit that it belongs to."""


def units(parts: Parts, shares: np.ndarray) -> list[Unit]:
    """The parts that were typed, each with its share."""
    return [Unit(span=parts.spans[i], share=float(shares[i]), unknown=parts.unknown[i]) for i in parts.typed]


def units_of_words(words: Sequence[Word], shares: np.ndarray) -> list[Unit]:
    """The words that were read, each with its share; `shares` has a place for every word, read or not."""
    return [
        Unit(span=word.span, share=float(share), unknown=word.unknown)
        for word, share in zip(words, shares, strict=True)
        if word.read
    ]


def as_html(text: str, shaded: Sequence[Unit], read: Sequence[Span], *, of: str = "attention") -> str:
    """`text`, letter for letter, as HTML; what the arguments are is said at `pieces`."""
    return drawn(pieces(text, shaded, read, of=of))


def drawn(found: Iterable[Piece]) -> str:
    """The pieces of a text as HTML."""
    spans = "".join(map(_span, found))
    return f'<div dir="auto" tabindex="0" role="group" aria-label="The review" style="{block()}">{spans}</div>'


def block(*, scrolling: bool = True) -> str:
    """The look of the box around a review, as CSS; `scrolling`: it is as high as the page can bear, and scrolls inside."""
    return _BLOCK + (_SCROLLING if scrolling else "")


def pieces(
    text: str,
    shaded: Sequence[Unit],
    read: Sequence[Span],
    *,
    of: str = "attention",
    chosen: int | None = None,
    largest: float | None = None,
) -> list[Piece]:
    """All of `text`: what is outside `read` is paler, unknown words are underlined with dots, and one unit may be `chosen`.

    `of`: what the shares are of. `largest`: the share of the strongest colour, by default the largest there is.
    """
    if largest is None:
        largest = max((abs(unit.share) for unit in shaded), default=0.0)
    edges = {0, len(text), *(edge for unit in shaded for edge in unit.span), *(edge for span in read for edge in span)}
    spans = [unit.span for unit in shaded]
    found = []
    for start, end in pairwise(sorted(edges)):
        index, piece = _containing(spans, start), text[start:end]
        if piece.isspace():
            found.append(Piece(text=piece))
        elif _containing(read, start) is None:
            found.append(Piece(text=piece, style=f"opacity:{UNREAD}", title="not read"))
        elif index is None:
            found.append(Piece(text=piece))
        else:
            found.append(_shaded(piece, index, shaded[index], largest, of, _CHOSEN if index == chosen else ""))
    return found


def _containing(spans: Sequence[Span], position: int) -> int | None:
    """Index of the one of `spans`, which are in order, that holds `position`."""
    index = bisect_right(spans, position, key=itemgetter(0)) - 1
    return index if index >= 0 and position < spans[index][1] else None


def _shaded(piece: str, index: int, unit: Unit, largest: float, of: str, look: str) -> Piece:
    color = INK if unit.share >= 0 else AGAINST
    style = f"border-radius:3px;background:{ink(STRONGEST * abs(unit.share) / largest if largest > 0 else 0.0, color)}"
    title = f"{unit.share:.2%} of the {of}"
    if unit.unknown:
        style += ";text-decoration:underline dotted 2px;text-underline-offset:4px"
        title += "; unknown to the model"
    return Piece(text=piece, style=style + look, title=title, unit=index)


def _span(piece: Piece) -> str:
    if not piece.style:
        return _escaped(piece.text)
    return f'<span style="{piece.style}" title="{html.escape(piece.title)}">{_escaped(piece.text)}</span>'


def _escaped(piece: str) -> str:
    """Line ends as references: as characters they would be tidied on the way to the page."""
    return html.escape(piece).replace("\r", "&#13;").replace("\n", "&#10;")
