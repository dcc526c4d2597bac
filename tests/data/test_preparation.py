import numpy as np
import pandas as pd
import pytest

from core.data import preparation
from core.data.preparation import Dropped, prepare
from core.data.reviews import Reviews
from core.data.splits import split
from core.data.table import Table, read_upload


def table(**columns):
    frame = pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in columns.items()})
    return Table(name="toy.csv", frame=frame, assumed=("UTF-8",))


def test_a_table_without_fault_is_taken_whole():
    prepared = prepare(table(text=["a  ", "b", "c"], label=["1", "0", "1"]), ["text"], "label")
    assert prepared.reviews == Reviews(
        name="toy.csv", texts=["a  ", "b", "c"], labels=[1, 0, 1], label_names=("negative", "positive"), notes=("UTF-8",)
    )
    assert (prepared.rows, prepared.dropped) == ([1, 2, 3], [])


def test_bad_rows_are_listed_with_their_reason():
    texts = ["good", " ", "bad", "fair", "<br /> GOOD", 7, "fine", "Good", None, "\u200b", "good"]
    cells = ["pos", "pos", "neg", float("nan"), "neg", "pos", "Pos", "pos", "neg", "neg", " Neg"]
    prepared = prepare(table(text=texts, label=cells), ["text"], "label")
    assert prepared.reviews.texts == ["good", "bad", "fine"]
    assert (prepared.reviews.labels, prepared.reviews.label_names) == ([1, 0, 1], ("neg", "pos"))
    assert prepared.rows == [1, 3, 7]
    assert prepared.dropped == [
        Dropped(row=2, reason="no text"),
        Dropped(row=4, reason="no label"),
        Dropped(row=5, reason="duplicate text"),
        Dropped(row=6, reason="not text"),
        Dropped(row=8, reason="duplicate text"),
        Dropped(row=9, reason="no text"),
        Dropped(row=10, reason="no text"),
        Dropped(row=11, reason="duplicate text"),
    ]
    assert prepared.reviews.notes == (
        "UTF-8",
        "the labels 'pos', 'Pos' are one class, 'pos'",
        "left out 3 of 11 rows, without text: rows 2, 9, 10",
        "left out 1 of 11 rows, with a number or a list for a text: row 6",
        "left out 1 of 11 rows, without a label: row 4",
        "left out 3 of 11 rows, with the text of an earlier row: rows 5, 8, 11",
        "2 of the repeated texts had another label than the first of its kind, whose label counts",
    )


def test_the_first_rows_stand_for_many():
    prepared = prepare(table(text=["a", "b", *["a"] * 1200], label=[0, 1, *[0] * 1200]), ["text"], "label")
    assert (
        prepared.reviews.notes[-1] == "left out 1,200 of 1,202 rows, with the text of an earlier row: rows 3, 4, 5, 6, 7, ..."
    )


def test_several_columns_are_joined_in_the_order_chosen():
    columns = table(title=["T1", "", None, "T4"], body=["b1", "b2", " ", 4], stars=[1, 2, 3, 4])
    prepared = prepare(columns, ["body", "title"], "stars")
    assert prepared.reviews.texts == ["b1\nT1", "b2"]
    assert [(drop.row, drop.reason) for drop in prepared.dropped] == [(3, "no text"), (4, "not text")]
    assert prepare(columns, ["title", "body"], "stars").reviews.texts == ["T1\nb1", "b2"]


def test_a_class_that_stands_on_no_usable_row_is_none():
    prepared = prepare(table(text=["a", "b", "", "a"], label=["x", "y", "z", "w"]), ["text"], "label")
    assert prepared.reviews.label_names == ("x", "y")


def test_what_is_prepared_loses_nothing_more_when_split():
    texts = [f"{'Review' if i % 3 else ' REVIEW'} {i // 2}" for i in range(900)]
    prepared = prepare(table(text=texts, label=[i // 2 % 2 for i in range(900)]), ["text"], "label")
    assert len(prepared.reviews) == 450 and split(prepared.reviews).duplicates_dropped == 0


def test_balance_and_lengths():
    words = [1, 2, 3, 4, 40]
    texts = ["w " * n for n in words]
    prepared = prepare(table(text=texts, label=["a", "b", "b", "b", "b"]), ["text"], "label")
    assert prepared.balance() == {"a": 1, "b": 4}
    assert prepared.words() == {0.0: 1, 0.25: 2, 0.5: 3, 0.75: 4, 0.95: 40, 1.0: 40}
    assert prepared.sentences() == [
        "UTF-8",
        "5 reviews: 1 a (20%), 4 b (80%)",
        "half of them have up to 3 words, 95% up to 40, the longest 40",
    ]


def test_lengths_of_many_reviews_are_those_of_an_even_share(monkeypatch):
    monkeypatch.setattr(preparation, "COUNTED", 50)
    lengths = np.random.default_rng(0).permutation(np.arange(1, 201))
    prepared = prepare(
        table(text=[chr(0x4E00 + i) + " w" * (n - 1) for i, n in enumerate(lengths)], label=[i % 2 for i in range(200)]),
        ["text"],
        "label",
    )
    np.testing.assert_allclose(list(prepared.words().values()), [1, 50, 100, 150, 190, 200], atol=4)
    assert prepared.sentences()[-1].endswith("the longest 200, counted in 50 of them")


def test_a_hundred_classes():
    prepared = prepare(table(text=[f"t{i}" for i in range(300)], label=[i % 100 for i in range(300)]), ["text"], "label")
    assert prepared.reviews.label_names == tuple(map(str, range(100)))
    assert set(prepared.balance().values()) == {3}


@pytest.mark.parametrize(
    ("texts", "labels", "sentence"),
    [
        (["a"], [1], "toy.csv: got 1 usable of 1 rows; expected many reviews"),
        (["", "b", "b"], [1, 0, 0], "got 1 usable of 3 rows; left out 1 of 3 rows, without text: row 1; left out"),
        (["a", "b"], [None, ""], "got 0 usable of 2 rows; left out 2 of 2 rows, without a label: rows 1, 2; expected"),
        ([1, 2], [0, 1], "got 0 usable of 2 rows; left out 2 of 2 rows, with a number or a list for a text"),
        (["a", "b"], ["pos", "Pos"], "column 'label': it holds only 'pos', expected at least two classes"),
        ([f"t{i}" for i in range(101)], list(range(101)), "column 'label': got 101 different labels in 101 rows"),
    ],
)
def test_what_cannot_be_trained_on_says_why(texts, labels, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        prepare(table(text=texts, label=labels), ["text"], "label")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text_columns", "label_column", "sentence"),
    [
        ([], "label", "columns: got none for the text and label for the label, expected at least one of text"),
        (["text", "label"], "label", "and each column once"),
        (["text", "text"], "label", "and each column once"),
        (["text", "gone"], "label", "column 'gone': there is no such column; the table has 'text', 'label'"),
        (["text"], "gone", "column 'gone': there is no such column"),
    ],
)
def test_columns_must_be_there_and_be_chosen_once(text_columns, label_column, sentence):
    with pytest.raises(ValueError, match=sentence):
        prepare(table(text=["a", "b"], label=[0, 1]), text_columns, label_column)


def test_a_table_of_equal_names_is_read_by_the_numbered_ones():
    uploaded = read_upload("a.csv", b"text,text,label\na,b,1\nc,d,0\n")
    assert prepare(uploaded, ["text (2)"], "label").reviews.texts == ["b", "d"]
    with pytest.raises(ValueError, match=r"column 'text': there is no such column; the table has 'text \(1\)', 'text \(2\)'"):
        prepare(uploaded, ["text"], "label")


def test_notes_travel_with_a_draw():
    prepared = prepare(table(text=["a", "", "b"], label=[0, 1, 1]), ["text"], "label").reviews
    assert prepared.take([1]).notes == prepared.notes != ()
