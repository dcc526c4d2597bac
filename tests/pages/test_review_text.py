import re
from html import unescape

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.figures.colors import AGAINST, ink
from core.inspection.parts import word_parts
from core.records import AttentionMap
from ui.review_text import STRONGEST, Unit, as_html, units


def attention(tokens: list[str], spans: list[tuple[int, int]]) -> AttentionMap:
    weights = np.zeros((1, 1, 1, len(tokens)), dtype=np.float32)  # the shares are given apart
    return AttentionMap(tokens=tuple(tokens), spans=tuple(spans), weights=weights)


def shaded_units(text: str, tokens: list[str], spans: list[tuple[int, int]], received: list[float]) -> list[Unit]:
    parts = word_parts(text, attention(tokens, spans))
    return units(parts, parts.received(np.array(received)))


def found(text: str, tokens: list[str], spans: list[tuple[int, int]], received: list[float]) -> list[tuple[str, float, bool]]:
    shaded = shaded_units(text, tokens, spans, received)
    return [(text[slice(*unit.span)], round(unit.share, 3), unit.unknown) for unit in shaded]


def test_a_word_has_the_sum_of_its_tokens_and_a_sign_its_own():
    text = "unwatchable film!"
    tokens, spans = ["un", "##watch", "##able", "film", "!"], [(0, 2), (2, 7), (7, 11), (12, 16), (16, 17)]
    shares = found(text, tokens, spans, [0.1, 0.2, 0.3, 0.15, 0.25])
    assert shares == [("unwatchable", 0.6, False), ("film", 0.15, False), ("!", 0.25, False)]


def test_signs_inside_a_word_belong_to_it():
    assert found("don't", ["don", "'", "t"], [(0, 3), (3, 4), (4, 5)], [0.5, 0.3, 0.2]) == [("don't", 1.0, False)]


def test_a_token_of_several_words_is_one_with_them():
    assert found("这部 ok", ["[UNK]", "ok"], [(0, 2), (3, 5)], [0.4, 0.6]) == [("这部", 0.4, True), ("ok", 0.6, False)]


def test_equal_words_stay_apart_and_added_tokens_are_no_words():
    shares = found("good good", ["[CLS]", "good", "good"], [(0, 0), (0, 4), (5, 9)], [0.5, 0.2, 0.3])
    assert shares == [("good", 0.2, False), ("good", 0.3, False)]


def test_a_typed_unk_is_not_an_unknown_word():
    tokens = ["[", "un", "##k", "]"]
    assert found("[UNK]", tokens, [(0, 1), (1, 3), (3, 4), (4, 5)], [0.25] * 4) == [
        ("[", 0.25, False),
        ("UNK", 0.5, False),
        ("]", 0.25, False),
    ]


def test_words_beyond_the_tokens_are_not_shaded():
    assert found("one two three", ["one", "three"], [(0, 3), (8, 13)], [0.5, 0.5]) == [
        ("one", 0.5, False),
        ("three", 0.5, False),
    ]


def body(text: str, tokens: list[str], spans: list[tuple[int, int]], received: list[float], read) -> str:
    return as_html(text, shaded_units(text, tokens, spans, received) if tokens else [], read)


def test_shade_is_in_proportion_and_capped():
    drawn = body("a b c", ["a", "b", "c"], [(0, 1), (2, 3), (4, 5)], [0.8, 0.2, 0.0], ((0, 1), (2, 3), (4, 5)))
    for alpha in (STRONGEST, STRONGEST / 4, 0.0):
        assert f"background:{ink(alpha)}" in drawn
    assert 'title="80.00% of the attention">a' in drawn


def test_a_map_of_zeros_is_neutral():
    assert f"background:{ink(0.0)}" in body("a", ["a"], [(0, 1)], [0.0], ((0, 1),))


def test_unread_text_is_paler_and_says_so_also_within_a_word():
    drawn = body("absolutely bad", ["absol"], [(0, 5)], [1.0], ((0, 5),))
    assert drawn.count('title="not read"') == 2
    assert ">absol</span>" in drawn and ">utely</span>" in drawn


def test_unknown_words_are_marked_and_markup_is_text():
    drawn = body('<b>"x', ["[UNK]"], [(0, 5)], [1.0], ((0, 5),))
    assert "underline dotted" in drawn
    assert "unknown to the model" in drawn
    assert "&lt;b&gt;&quot;x" in drawn


@pytest.mark.parametrize("text", ["a\n   \n\tb  ", "a\r\nb", "\n\na"])
def test_line_ends_survive_the_way_to_the_page(text):
    drawn = body(text, [], [], [], ())
    assert "\n" not in drawn and "\r" not in drawn
    assert _text(drawn) == text


@settings(max_examples=60)
@given(text=st.text(max_size=40), cuts=st.lists(st.integers(0, 40), max_size=8), limit=st.integers(0, 40))
def test_any_text_with_any_tokens_is_shown_whole(text, cuts, limit):
    edges = sorted({min(cut, len(text)) for cut in cuts})
    spans = list(zip(edges, edges[1:], strict=False))
    drawn = body(text, ["x"] * len(spans), spans, [1.0] * len(spans), ((0, min(limit, len(text))),))
    assert _text(drawn) == text


def _text(drawn: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", drawn))


def test_what_speaks_against_a_class_has_the_other_colour():
    units = [Unit(span=(0, 4), share=0.5, unknown=False), Unit(span=(5, 8), share=-1.0, unknown=False)]
    found = as_html("good bad", units, [(0, 8)], of='evi"dence')
    first, second = re.findall(r"background:(rgba\([^)]*\))", found)
    assert first == ink(STRONGEST / 2) and second == ink(STRONGEST, AGAINST)
    assert 'title="50.00% of the evi&quot;dence"' in found and 'title="-100.00% of the evi&quot;dence"' in found
