"""A map told by words and sentences, by hand."""

import numpy as np
import pytest

from core.inspection.parts import LONGEST_SENTENCE, sentence_parts, strongest, word_parts
from core.inspection.reading import read
from core.records import AttentionMap
from tests.inspection.test_words_of_tokens import a_map

TEXT = "Good unwatch. No <b>!"
TOKENS = ["[CLS]", "Good", "un", "##watch", ".", "No", "[UNK]", "[SEP]", "[SEP]"]
SPANS = [(0, 0), (0, 4), (5, 7), (7, 12), (12, 13), (14, 16), (17, 21), (0, 0), (0, 0)]


def test_words_signs_and_each_added_token_are_parts_with_the_number_of_their_first_token():
    parts = word_parts(TEXT, a_map(TOKENS, SPANS))
    assert parts.labels == ("1 [CLS]", "2 Good", "3 unwatch", "5 .", "6 No", "7 <b>!", "8 [SEP]", "9 [SEP]")
    assert parts.part_of.tolist() == [0, 1, 2, 2, 3, 4, 5, 6, 7]
    assert parts.typed == [1, 2, 3, 4, 5] and parts.unknown == (False,) * 5 + (True, False, False)


def test_sentences_are_numbered_and_what_was_not_read_is_none_of_them():
    parts = sentence_parts(TEXT + " and\nmore.", a_map(TOKENS, SPANS))
    assert parts.labels == ("1 [CLS]", "2 Good unwatch.", "3 No <b>! and", "4 [SEP]", "5 [SEP]")
    assert parts.part_of.tolist() == [0, 1, 1, 1, 1, 2, 2, 3, 4]


def test_a_sentence_without_end_is_several():
    words = ["word"] * (2 * LONGEST_SENTENCE + 1)
    spans = [(5 * i, 5 * i + 4) for i in range(len(words))]
    parts = sentence_parts(" ".join(words), a_map(words, spans))
    assert np.bincount(parts.part_of).tolist() == [LONGEST_SENTENCE, LONGEST_SENTENCE, 1]


WEIGHTS = np.array([[0.1, 0.2, 0.7], [0.4, 0.3, 0.3], [0.6, 0.2, 0.2]])  # rows sum to 1
PARTS = word_parts("un.a", a_map(["u", "##n", "."], [(0, 1), (1, 2), (2, 3)]))


def test_between_words_and_blocks_by_hand():
    assert PARTS.labels == ("1 un.a",)  # no space, no end of a word
    parts = word_parts("un a", a_map(["u", "##n", "a"], [(0, 1), (1, 2), (3, 4)]))
    np.testing.assert_allclose(parts.received(np.array([0.5, 0.2, 0.3])), [0.7, 0.3])
    np.testing.assert_allclose(parts.between(WEIGHTS), [[0.5, 0.5], [0.8, 0.2]])
    np.testing.assert_allclose(parts.blocks(WEIGHTS), [[1 / 3, 2 / 3], [2 / 3, 1 / 3]], rtol=1e-6)  # 0.25 : 0.5 and 0.4 : 0.2
    both = parts.blocks(np.stack([[WEIGHTS, WEIGHTS[::-1]]]))
    assert both.shape == (1, 2, 2, 2)
    np.testing.assert_allclose(both[0, 0], parts.blocks(WEIGHTS))


def test_even_weights_are_even_blocks_however_long_the_sentences():
    parts = sentence_parts("one two three. One.", a_map(["one", "two", "three", ".", "One", "."],
                           [(0, 3), (4, 7), (8, 13), (13, 14), (15, 18), (18, 19)]))  # fmt: skip
    np.testing.assert_allclose(parts.blocks(np.full((6, 6), 1 / 6)), np.full((2, 2), 1 / 2), rtol=1e-6)


def test_the_strongest_pairs_come_first_and_equal_ones_in_order():
    assert strongest(np.array([[0.1, 0.5], [0.9, 0.1]]), 3) == [(1, 0), (0, 1), (0, 0)]
    assert strongest(np.ones((2, 1)), 9) == [(0, 0), (1, 0)]


@pytest.mark.parametrize("by", [word_parts, sentence_parts])
def test_the_parts_of_every_probe_are_in_order_and_their_rows_sum_to_one(model, probe, by):
    attention: AttentionMap = read(model, probe).windows[0]
    parts = by(probe, attention)
    assert parts.part_of[0] == 0 and set(np.diff(parts.part_of)) <= {0, 1} and parts.part_of[-1] == len(parts) - 1
    assert len(set(parts.labels)) == len(parts.spans) == len(parts.unknown) == len(parts)
    if attention.weights.shape[2] > 1:
        np.testing.assert_allclose(parts.between(attention.averaged()).sum(1), 1, atol=1e-5)
        np.testing.assert_allclose(parts.blocks(attention.averaged()).sum(1), 1, atol=1e-5)
