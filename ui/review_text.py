"""A review, word by word: its typed characters and nothing else, shaded by what each word has of attention or evidence."""

import html
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from core.figures.colors import AGAINST, INK, ink
from core.records import AttentionMap, Span
from core.words import joined, word_spans

STRONGEST = 0.45
"""Opacity behind the most attended word: above it, letters on either theme would lose their contrast."""
UNREAD = 0.68
"""Opacity of what was not read: plainly paler, and still 4.5 to 1 against either background."""
UNKNOWN = "[UNK]"
"""The token that stands for whatever the vocabulary cannot spell."""

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


def units(text: str, attention: AttentionMap, received: np.ndarray) -> list[Unit]:
    """What the tokens of `attention` stand for in `text`, in order; `received` is the attention of each token."""
    typed = [i for i, (start, end) in enumerate(attention.spans) if start < end]
    spans = _joined(text, [attention.spans[i] for i in typed])
    unit_of = np.searchsorted([start for start, _ in spans], [attention.spans[i][0] for i in typed], side="right") - 1
    shares = np.bincount(unit_of, received[typed], minlength=len(spans))
    unknown = np.bincount(unit_of, [attention.tokens[i] == UNKNOWN for i in typed], minlength=len(spans))
    return [Unit(span=span, share=float(share), unknown=bool(n)) for span, share, n in zip(spans, shares, unknown, strict=True)]


def _joined(text: str, tokens: Iterable[Span]) -> list[Span]:
    """Tokens and the words that they touch, as one where they overlap."""
    words = word_spans(text)
    pieces = set(tokens)
    for start, end in tuple(pieces):
        first, last = bisect_right(words, start, key=_end), bisect_left(words, end, key=_start)
        pieces.update(words[first:last])
    return joined(pieces)


def _start(span: Span) -> int:
    return span[0]


def _end(span: Span) -> int:
    return span[1]


def as_html(text: str, shaded: Sequence[Unit], read: Sequence[Span], *, scrolling: bool = True, of: str = "attention") -> str:
    """`text`, letter for letter, as HTML: what is outside `read` is paler, unknown words are underlined with dots.

    `scrolling`: a long text scrolls in a box of its own, which opens at its beginning. `of`: what the shares are of.
    """
    largest = max((abs(unit.share) for unit in shaded), default=0.0)
    edges = {0, len(text), *(edge for unit in shaded for edge in unit.span), *(edge for span in read for edge in span)}
    spans = [unit.span for unit in shaded]
    pieces = []
    for start, end in pairwise(sorted(edges)):
        index = _containing(spans, start)
        if text[start:end].isspace():
            pieces.append(_escaped(text[start:end]))
        elif _containing(read, start) is None:
            pieces.append(_span(text[start:end], f"opacity:{UNREAD}", "not read"))
        elif index is None:
            pieces.append(_escaped(text[start:end]))
        else:
            pieces.append(_shaded(text[start:end], shaded[index], largest, of))
    style = _BLOCK + (_SCROLLING if scrolling else "")
    return f'<div dir="auto" tabindex="0" role="group" aria-label="The review" style="{style}">{"".join(pieces)}</div>'


def _containing(spans: Sequence[Span], position: int) -> int | None:
    """Index of the one of `spans`, which are in order, that holds `position`."""
    index = bisect_right(spans, position, key=_start) - 1
    return index if index >= 0 and position < spans[index][1] else None


def _shaded(piece: str, unit: Unit, largest: float, of: str) -> str:
    color = INK if unit.share >= 0 else AGAINST
    style = f"border-radius:3px;background:{ink(STRONGEST * abs(unit.share) / largest if largest > 0 else 0.0, color)}"
    title = f"{unit.share:.2%} of the {html.escape(of)}"
    if unit.unknown:
        style += ";text-decoration:underline dotted 2px;text-underline-offset:4px"
        title += "; unknown to the model"
    return _span(piece, style, title)


def _span(piece: str, style: str, title: str) -> str:
    return f'<span style="{style}" title="{title}">{_escaped(piece)}</span>'


def _escaped(piece: str) -> str:
    """Line ends as references: as characters they would be tidied on the way to the page."""
    return html.escape(piece).replace("\r", "&#13;").replace("\n", "&#10;")
