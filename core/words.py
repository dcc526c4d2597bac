"""What a word is, everywhere in the lab: a Unicode word (UAX 29).

Chinese and Japanese characters count one by one, as do those of Thai and its like, whose words only a dictionary could tell.
"""

import functools
from bisect import bisect_left
from collections.abc import Iterable
from itertools import pairwise

import regex

_BOUNDARY = regex.compile(r"(?w)\b")
_CJK = r"\p{Han}\p{Hiragana}\p{Katakana}ーｰ"  # Unicode gives the long vowel marks to no script
_CHARACTER = regex.compile(rf"[{_CJK}]\p{{M}}*|[^{_CJK}]+")
_LETTER_OR_DIGIT = regex.compile(r"[\p{L}\p{N}]")
_BREAK_TAG = regex.compile(r"<br\s*/?>", regex.IGNORECASE)
_CLOSING = r"[\p{Pe}\p{Pf}\"']*"
_SENTENCE_END = regex.compile(rf"(?:[.!?…؟۔।]+{_CLOSING}(?=\s+[^\s\p{{Ll}}])|[。！？｡]+{_CLOSING}|\n|(?i:<br\s*/?>))\s*")


@functools.lru_cache(maxsize=8)
def word_spans(text: str) -> tuple[tuple[int, int], ...]:
    """Start and end of each word in `text`, in characters. Punctuation, spaces and the tag `<br />` are no words."""
    text = _BREAK_TAG.sub(lambda tag: " " * len(tag[0]), text)
    edges = [0, *(match.start() for match in _BOUNDARY.finditer(text)), len(text)]
    spans = []
    for start, end in zip(edges, edges[1:], strict=False):
        for piece in _CHARACTER.finditer(text, start, end):
            if _LETTER_OR_DIGIT.search(piece[0]):
                spans.append(piece.span())
    return tuple(spans)


def count_words(text: str) -> int:
    """Number of words of a text."""
    return len(word_spans(text))


def sentence_spans(text: str, most_words: int) -> tuple[tuple[int, int], ...]:
    """Start and end of each sentence in `text`; together they are all of it.

    A sentence ends with its signs, a line or `<br />`; a full stop before a small letter ends none (UAX 29). One after an
    abbreviation, which only a dictionary could tell, does. More than `most_words` words are several sentences.
    """
    words = [start for start, _ in word_spans(text)]
    edges = [0, *(end.end() for end in _SENTENCE_END.finditer(text)), len(text)]
    starts: list[int] = []
    for start, end in pairwise(edges):
        inside = words[bisect_left(words, start) : bisect_left(words, end)]
        starts += [start, *inside[most_words::most_words]] if start < end else []
    return tuple(pairwise([*starts, len(text)]))


def joined(spans: Iterable[tuple[int, int]], *, touching: bool = False) -> list[tuple[int, int]]:
    """Spans in order, of which those that overlap, or with `touching` meet, have become one."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start < found[-1][1] + touching:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def words_read(text: str, read: Iterable[tuple[int, int]]) -> int:
    """Number of words of `text` that begin inside one of the spans `read`, which do not overlap."""
    starts = [start for start, _ in word_spans(text)]
    return sum(bisect_left(starts, end) - bisect_left(starts, start) for start, end in read)
