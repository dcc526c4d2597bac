import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.words import count_words, joined, sentence_spans, word_spans, words_read


def words(text):
    return [text[start:end] for start, end in word_spans(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n\t", []),
        ("... !? — $", []),
        ("isn't it, don’t", ["isn't", "it", "don’t"]),
        ("3.5/10 for U.S.A.", ["3.5", "10", "for", "U.S.A"]),
        ("well-acted snake_case", ["well", "acted", "snake_case"]),
        ("cafe\u0301 naïve", ["cafe\u0301", "naïve"]),
        ("Good.<br /><br />Bad<BR>bad<br/>", ["Good", "Bad", "bad"]),
        ("<b>x</b> a<b", ["b", "x", "b", "a", "b"]),
        ("<br is typed", ["br", "is", "typed"]),
        ("I ❤️ this 🤗 film 👨\u200d👩\u200d👧", ["I", "this", "film"]),
        ("这部电影，太棒了。", list("这部电影太棒了")),
        ("DVD版 a漢b", ["DVD", "版", "a", "漢", "b"]),
        ("𠮷野", ["𠮷", "野"]),
        ("ひらカタ漢々", list("ひらカタ漢々")),
        ("すごーーい ｺｰﾋｰ", ["す", "ご", "ー", "ー", "い", "ｺ", "ｰ", "ﾋ", "ｰ"]),
        ("か\u3099き", ["か\u3099", "き"]),
        ("한국어 영화", ["한국어", "영화"]),
        ("الفيلم رائع", ["الفيلم", "رائع"]),
        ("ที่นี่", ["ที่", "นี่"]),
    ],
)
def test_words_by_hand(text, expected):
    assert words(text) == expected
    assert count_words(text) == len(expected)


@given(st.text(st.sampled_from("ab' .1<br/>漢カー\u0301\u200d🤗é\n-_") | st.characters(codec="utf-8")))
def test_spans_are_ordered_pieces_that_hold_all_letters(text):
    place, outside = 0, ""
    for start, end in word_spans(text):
        assert place <= start < end <= len(text)
        outside += text[place:start] + "|"
        place = end
    outside += text[place:]
    assert not any(character.isalpha() for character in outside.casefold().replace("<br", ""))


def test_a_tag_leaves_the_places_of_other_words():
    assert word_spans("a<br />b") == ((0, 1), (7, 8))


def test_words_are_counted_where_they_begin():
    assert words_read("one two three", ((0, 3), (4, 6))) == 2
    assert words_read("one two three", ()) == 0


def test_spans_that_overlap_or_meet_are_joined():
    spans = ((4, 6), (0, 2), (1, 3), (3, 4), (4, 6))
    assert joined(spans) == [(0, 3), (3, 4), (4, 6)]
    assert joined(spans, touching=True) == [(0, 6)]
    assert joined(()) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n", [" \n"]),
        ('Good. "Really?" Yes... no, 3.5 of 5! e.g. this', ["Good. ", '"Really?" ', "Yes... no, 3.5 of 5! e.g. this"]),
        ("a<br /><br>b\n\nc", ["a<br />", "<br>", "b\n\n", "c"]),
        ("太棒了。剧情“紧凑！”好", ["太棒了。", "剧情“紧凑！”", "好"]),
        ("رائع؟ نعم", ["رائع؟ ", "نعم"]),
        ("one two three four five", ["one two three ", "four five"]),
    ],
)
def test_sentences_by_hand(text, expected):
    assert [text[start:end] for start, end in sentence_spans(text, most_words=3 if text.startswith("one") else 50)] == expected


@given(st.text(st.sampled_from('aB .!?\n<br/>。”"é漢')), st.integers(1, 5))
def test_sentences_are_all_of_a_text_and_cut_no_word(text, most):
    spans = sentence_spans(text, most)
    assert "".join(text[start:end] for start, end in spans) == text and all(start < end for start, end in spans)
    inside = [sum(start <= word < end for word, _ in word_spans(text)) for start, end in spans]
    assert max(inside, default=0) <= most and sum(inside) == count_words(text)
