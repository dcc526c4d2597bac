import math

import pandas as pd
import pytest

from core.data.labels import MAX_CLASSES, find_classes, known_classes, label_key


def classes(cells):
    found = find_classes(cells, "label")
    return found.labels, found.names


@pytest.mark.parametrize(
    "cells", [[1, 0, 1], ["1", " 0", "1 "], [1.0, 0.0, 1.0], ["1.0", "0.", "+1"], [1, "0", 1.0], ["01", "-0", 1]]
)
def test_zero_and_one_are_negative_and_positive(cells):
    assert classes(cells) == ([1, 0, 1], ("negative", "positive"))


@pytest.mark.parametrize(
    ("cells", "labels", "names"),
    [
        (["10", "9", "-1", 9.0], [2, 1, 0, 1], ("-1", "9", "10")),
        ([3.5, "3.50", "4"], [0, 0, 1], ("3.5", "4")),
        (["2", "0", "1"], [2, 0, 1], ("0", "1", "2")),
        ([100, 20], [1, 0], ("20", "100")),
        (["pos", "Neg", "pos"], [1, 0, 1], ("Neg", "pos")),
        (["1", "0", "unsure"], [1, 0, 2], ("0", "1", "unsure")),
        ([True, False], [1, 0], ("False", "True")),
        (["差", "好"], [1, 0], ("好", "差")),
    ],
)
def test_classes_keep_their_names_numbers_in_order_words_by_name(cells, labels, names):
    assert classes(cells) == (labels, names)


def test_the_most_frequent_spelling_is_the_name_and_it_is_said():
    found = find_classes([" Pos", "pos", "POS", "pos ", "neg", "POS", "POS"], "label")
    assert (found.labels, found.names) == ([1, 1, 1, 1, 0, 1, 1], ("neg", "POS"))
    assert found.said == ["the labels 'POS', ' Pos', 'pos', 'pos ' are one class, 'POS'"]


def test_spaces_do_not_split_the_votes_for_a_spelling():
    assert classes(["pos", " pos", "Pos", "Pos", "  pos", "neg"])[1] == ("neg", "pos")


def test_numbers_written_in_several_ways_are_said():
    assert find_classes([1, "1.0", 2], "label").said == ["the labels '1', '1.0' are one class, '1'"]
    assert find_classes([1, 2, 1], "label").said == []


def test_the_order_of_rows_does_not_change_the_order_of_classes():
    assert classes(["b", "a", "c"])[1] == classes(["c", "b", "a"])[1] == ("a", "b", "c")


@pytest.mark.parametrize("cell", [None, math.nan, pd.NA, "", "  ", "NaN", "null", "#N/A"])
def test_a_cell_without_a_label(cell):
    assert label_key(cell) is None


@pytest.mark.parametrize("cell", ["NA", "none", "0", 0, False, "9" * 5000, "1e5", "٣", "½", "inf"])
def test_a_cell_with_a_label(cell):
    assert label_key(cell) == str(cell).casefold()


def test_as_many_classes_as_allowed_and_one_more():
    assert len(classes(list(range(MAX_CLASSES)) * 2)[1]) == MAX_CLASSES == 100
    with pytest.raises(ValueError, match="column 'label': got 101 different labels in 101 rows, expected 2 to 100 classes"):
        classes(list(range(MAX_CLASSES + 1)))


@pytest.mark.parametrize(
    ("cells", "sentence"),
    [(["1", 1.0], "it holds only '1'"), (["good", "Good "], "it holds only 'good'"), ([], "holds no label")],
)
def test_one_class_is_refused(cells, sentence):
    with pytest.raises(ValueError, match=f"column 'label': .*{sentence}, expected at least two classes"):
        classes(cells)


@pytest.mark.parametrize(
    ("cells", "names", "labels"),
    [
        (["Positive ", "negative", "1", 0.0], ("negative", "positive"), [1, 0, 1, 0]),
        (["2", "great", None, "-1"], ("bad", "good"), [None] * 4),
        ([1, "5.0", "0", 2], ("1", "2", "5"), [0, 2, None, 1]),  # stars, not places
        ([2, 2], ("bad", "fair", "good"), [2, 2]),
    ],
)
def test_labels_a_model_knows(cells, names, labels):
    assert known_classes(cells, names) == labels
