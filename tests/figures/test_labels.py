import numpy as np
import pytest

from core.figures.labels import LONGEST, count, literal, percent, shorten, token_labels, visible
from core.records import AttentionMap


def attention(tokens: list[str], spans: list[tuple[int, int]]) -> AttentionMap:
    n = len(tokens)
    return AttentionMap(tokens=tuple(tokens), spans=tuple(spans), weights=np.full((1, 1, n, n), 1 / n, dtype=np.float32))


def test_equal_tokens_have_labels_of_their_own():
    text = "very very very good"
    labels = token_labels(text, attention(["very"] * 3 + ["good"], [(0, 4), (5, 9), (10, 14), (15, 19)]))
    assert labels == ["1 very", "2 very", "3 very", "4 good"]


def test_labels_show_the_typed_text_rather_than_the_token():
    labels = token_labels("GOOD ⭢", attention(["[CLS]", "good", "[UNK]"], [(0, 0), (0, 4), (5, 6)]))
    assert labels == ["1 [CLS]", "2 GOOD", "3 ⭢"]


def test_long_words_that_begin_alike_stay_two_labels():
    word = "a" * 50
    labels = token_labels(word + " " + word, attention(["[UNK]"] * 2, [(0, 50), (51, 101)]))
    assert labels[0] != labels[1]
    assert all(len(label) <= LONGEST + len("1 ") for label in labels)


@pytest.mark.parametrize(
    ("piece", "drawn"),
    [
        (" ", "␣"),
        ("\n", "⏎"),
        ("\t", "⇥"),
        (" good", "␣good"),
        ("\u00a0", "⍽"),
        ("\u200d", "U+200D"),
        ("👩\u200d🚀", "👩\u200d🚀"),
        ("", "(empty)"),
    ],
)
def test_what_cannot_be_seen_is_drawn(piece, drawn):
    assert visible(piece) == drawn


def test_labels_are_neither_markup_nor_formulas():
    assert literal("<b>x</b> &lt; $x$") == "&lt;b&gt;x&lt;/b&gt; &amp;lt; &#36;x&#36;"


def test_a_piece_that_fits_is_not_shortened():
    assert shorten("a" * LONGEST) == "a" * LONGEST
    assert shorten("a" * (LONGEST + 1)) == "a" * (LONGEST - 1) + "…"
    assert shorten("four", 4) == "four" and shorten("fives", 4) == "fiv…"


def test_one_is_no_plural():
    assert [count(n, "row") for n in (0, 1, 2, 1234.0)] == ["0 rows", "1 row", "2 rows", "1,234 rows"]


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0.0, "0.0%"),
        (0.0004, "under 0.1%"),
        (0.0005, "0.1%"),
        (0.9994, "99.9%"),
        (0.9996, "over 99.9%"),
        (1.0, "100.0%"),
    ],
)
def test_what_is_not_certain_is_not_called_certain(share, said):
    assert percent(share) == said
