import pandas as pd
import pytest

from core.data.columns import distinct_names, guess

LONG, SHORT = ["a long review of many words", "another long review", "a third one, long", "and a fourth"], ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("columns", "text", "label"),
    [
        ({"text": SHORT, "summary": LONG, "label": [0, 1, 0, 1]}, "text", "label"),  # a name counts more than length
        ({"Title": SHORT, "opinion": LONG, "verdict": ["+", "-", "+", "-"]}, "opinion", "verdict"),
        ({"id": [1, 2, 3, 4], " Review ": LONG, "stars": [1, 5, 3, 2]}, " Review ", "stars"),
        ({"评分": ["1", "5", "1", "5"], "内容": LONG}, "内容", "评分"),
        ({"review": LONG, "rating": [4, 9, 4, 9], "sentiment": ["p", "n", "p", "n"]}, "review", "sentiment"),
        ({"comment": SHORT, "text": LONG, "y": [0, 1, 0, 1]}, "text", "y"),
        ({"review": LONG, "label": [1, 1, 1, 1], "kind": [1, 1, 2, 2]}, "review", "kind"),  # one class labels nothing
        ({"text": LONG, "id": ["a", "b", "c", "d"]}, "text", None),
        ({"text": LONG}, "text", None),
    ],
)
def test_texts_and_labels_are_guessed(columns, text, label):
    assert guess(pd.DataFrame(columns)) == ([text], label)


def test_a_table_of_numbers_has_no_text():
    assert guess(pd.DataFrame({"text": [1, 2, 3, 4], "label": [0, 1, 0, 1]})) == ([], "label")


def test_labels_are_looked_for_in_all_rows():
    sorted_by_label = {"text": [f"review {i}" for i in range(4000)], "label": [0] * 3990 + [1] * 10}
    assert guess(pd.DataFrame(sorted_by_label)) == (["text"], "label")


@pytest.mark.parametrize(
    ("names", "distinct", "said"),
    [
        (["text", "label"], ["text", "label"], []),
        (["a", "b", "a"], ["a (1)", "b", "a (2)"], ["2 columns called 'a' are numbered"]),
        (["a", "a (1)", "a"], ["a (2)", "a (1)", "a (3)"], ["2 columns called 'a' are numbered"]),
        (["", "text", " "], ["column 1", "text", "column 3"], None),
        (["column 2", ""], ["column 2 (1)", "column 2 (2)"], None),
    ],
)
def test_names_are_made_distinct_and_it_is_said(names, distinct, said):
    found, sentences = distinct_names(names)
    assert found == distinct
    assert len(sentences) > 0 if said is None else sentences == said
