from typing import get_args

import numpy as np
import pandas as pd
import pytest

from core.evaluation.answers import (
    Accuracy,
    Answer,
    Order,
    Scored,
    accuracy,
    answer,
    arrange,
    difference,
    side_by_side,
    with_answers,
)
from core.evaluation.pasted import split_pasted
from core.inspection.reading import read
from core.statistics import wilson
from core.words import count_words, words_read
from tests.small_models import TEXTS

LONG = " ".join(TEXTS * 5)
NAMES = ("negative", "positive")


def given(*probabilities: float | None, model="m", names=NAMES) -> Scored:
    """A model that gives its second class these probabilities, and read five of ten words."""
    answers = [None if p is None else Answer(probabilities=(1 - p, p), words=10, words_read=5) for p in probabilities]
    return Scored(model=model, label_names=names, answers=answers)


def test_each_answer_is_that_of_the_review_alone(model):
    texts = [*TEXTS, LONG, "good", 'not, a "good" film\nat all']
    for text, found in zip(texts, answer(model, texts), strict=True):
        reading = read(model, text)
        assert found.probabilities == pytest.approx(tuple(reading.prediction.probabilities.values()), abs=1e-5)
        assert (found.words, found.words_read) == (count_words(text), words_read(text, reading.read))
    assert answer(model, [LONG])[0].words_read < count_words(LONG)


def test_rows_without_text_have_no_answer():
    one = given(0.9, None, 0.2)
    assert one.labels() == ["positive", None, "negative"]
    np.testing.assert_array_equal(one.probabilities(), [[1 - 0.9, 0.9], [np.nan] * 2, [0.8, 0.2]])


def test_the_difference_of_two_classes_is_that_of_either():
    np.testing.assert_allclose(difference(given(0.9, 0.2, None), given(0.4, 0.3, None)), [0.5, 0.1, np.nan])


def test_the_difference_of_more_classes_by_hand_whatever_their_order():
    """|0.5 - 0.1| + |0.3 - 0.3| + |0.2 - 0.6| = 0.8, of which half."""
    a = Scored(model="a", label_names=("x", "y", "z"), answers=[Answer(probabilities=(0.5, 0.3, 0.2), words=1, words_read=1)])
    b = Scored(model="b", label_names=("z", "y", "x"), answers=[Answer(probabilities=(0.6, 0.3, 0.1), words=1, words_read=1)])
    np.testing.assert_allclose(difference(a, b), [0.4])


def test_models_with_other_classes_cannot_be_compared():
    a, b = given(0.9), given(0.9, model="n", names=("bad", "good"))
    assert difference(a, b) is None
    table = side_by_side(["x"], [a, b])
    assert "disagree" not in table and "difference" not in table
    assert table[["label (m)", "label (n)"]].to_numpy().tolist() == [["positive", "good"]]


def test_labels_of_one_name_agree_whatever_their_place():
    table = side_by_side(["x", "y"], [given(0.9, 0.1), given(0.1, 0.2, model="n", names=("positive", "negative"))])
    assert table["disagree"].tolist() == [False, True]


TABLE = side_by_side(list("abcde"), [given(0.6, 0.99, None, 0.2, 0.55, model="m"), given(0.7, 0.8, None, 0.9, 0.4, model="n")])


@pytest.mark.parametrize(
    ("order", "rows", "disagreeing"),
    [
        ("as given", [1, 2, 3, 4, 5], [4, 5]),
        ("least confident first", [5, 1, 2, 4, 3], [5, 4]),
        ("most confident first", [2, 4, 1, 5, 3], [4, 5]),
        ("largest difference first", [4, 2, 5, 1, 3], [4, 5]),
    ],
)
def test_orders_by_hand(order, rows, disagreeing):
    """The less confident answers are of 0.6, 0.8, none, 0.8 and 0.55; the differences 0.1, 0.19, none, 0.7 and 0.15."""
    assert arrange(TABLE, order)["row"].tolist() == rows
    assert arrange(TABLE, order, only_disagreeing=True)["row"].tolist() == disagreeing
    assert set(get_args(Order)) >= {order}


def test_one_model_has_nothing_to_disagree_with():
    table = side_by_side(list("ab"), [given(0.9, 0.6)])
    assert arrange(table, "largest difference first", only_disagreeing=True)["row"].tolist() == [1, 2]
    assert table.columns.tolist() == ["row", "review", "label (m)", "probability (m)", "words", "left out (m)"]


def test_accuracy_counts_what_it_cannot_use():
    one = given(0.9, 0.9, 0.1, 0.9, None, 0.9, 0.2)
    cells = ["Positive ", 0, "0", "unsure", "positive", None, "negative"]
    assert accuracy(one, cells) == Accuracy(n=4, right=3, interval=wilson(3, 4), unlabelled=1, unknown=1)


def test_without_a_known_label_there_is_no_interval():
    assert accuracy(given(0.9), ["great"]) == Accuracy(n=0, right=0, interval=None, unlabelled=0, unknown=1)


def test_a_table_keeps_its_columns_and_gains_ours():
    original = pd.DataFrame({"text": ["=1+1", "", "c"], "label": ["+1", "b", "c"], "words": 1}, index=[7, 8, 9])
    found = with_answers(original, [given(0.9, None, 0.25)])
    assert found.columns.tolist() == [
        *("text", "label", "words", "predicted_label", "probability", "words_left_out", "predicted_words")
    ]  # fmt: skip
    pd.testing.assert_frame_equal(found[["text", "label", "words"]], original)
    assert original.columns.tolist() == ["text", "label", "words"]
    assert found["predicted_label"].isna().tolist() == [False, True, False]
    assert found["probability"].tolist()[::2] == [0.9, 0.75]
    assert found["predicted_words"].tolist() == [10, pd.NA, 10] and found["words_left_out"].tolist() == [5, pd.NA, 5]


def test_two_models_have_columns_each():
    found = with_answers(pd.DataFrame({"text": ["a"]}), [given(0.9), given(0.2, model="=n")])
    assert found.columns.tolist() == [
        *("text", "label (m)", "probability (m)", "words_left_out (m)"),
        *("label (=n)", "probability (=n)", "words_left_out (=n)", "words", "difference"),
    ]
    assert found["difference"].tolist() == pytest.approx([0.7])


def test_our_labels_are_no_formulas_in_a_spreadsheet():
    one = given(0.9, 0.1, names=("-1", "=good"))
    assert with_answers(pd.DataFrame({"text": ["=a", "b"]}), [one], for_spreadsheets=True)["label"].tolist() == ["'=good", "-1"]
    assert with_answers(pd.DataFrame({"text": ["=a", "b"]}), [one])["label"].tolist() == ["=good", "-1"]


@pytest.mark.parametrize(
    ("text", "lines", "blocks"),
    [
        ("", [], []),
        (" \n\t\n", [], []),
        ("a", ["a"], ["a"]),
        ("a\nb\n", ["a", "b"], ["a\nb"]),
        ("a\r\nb\rc", ["a", "b", "c"], ["a\nb\nc"]),
        ("\n\na\nb\n \n\n\nc\n\n", ["a", "b", "c"], ["a\nb", "c"]),
        ("a\r\n\r\nb", ["a", "b"], ["a", "b"]),
        ("a\u2028b\x0cc", ["a\u2028b\x0cc"], ["a\u2028b\x0cc"]),
        ("=1\n- a", ["=1", "- a"], ["=1\n- a"]),
    ],
)
def test_pasted_reviews_by_hand(text, lines, blocks):
    assert split_pasted(text, by_blank_lines=False) == lines
    assert split_pasted(text, by_blank_lines=True) == blocks
