import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

from core.evaluation.answers import arrange
from core.evaluation.behind import OF_ONE, OF_TWO, Wanted, answered, confusion, wanted_places
from tests.evaluation.conftest import made

LABELS = [0, 0, 1, 1, 0, 1]
FIRST = made(LABELS, np.eye(2)[[0, 1, 1, 0, 1, 1]])  # right at 0, 2 and 5
SECOND = made(LABELS, 3 * np.eye(2)[[0, 0, 0, 0, 1, 1]])  # right at 0, 1 and 5


@pytest.mark.parametrize(
    ("which", "places"),
    [("every review", [0, 1, 2, 3, 4, 5]), ("wrong answers", [1, 3, 4]), ("right answers", [0, 2, 5])],
)
def test_answers_of_one_model_by_hand(which, places):
    assert which in OF_ONE and wanted_places([FIRST], Wanted(which=which)).tolist() == places


@pytest.mark.parametrize(
    ("which", "places"),
    [
        ("every review", [0, 1, 2, 3, 4, 5]),
        ("the models disagree", [1, 2]),
        ("only the first is right", [2]),
        ("only the second is right", [1]),
        ("both are wrong", [3, 4]),
        ("both are right", [0, 5]),
    ],
)
def test_answers_of_two_models_by_hand(which, places):
    assert which in OF_TWO and wanted_places([FIRST, SECOND], Wanted(which=which)).tolist() == places


@pytest.mark.parametrize(
    ("wanted", "places"),
    [
        (Wanted(label=1), [2, 3, 5]),
        (Wanted(label=0, answers=(1,)), [1, 4]),
        (Wanted(answers=(None, 0)), [0, 1, 2, 3]),
        (Wanted(answers=(1, 0)), [1, 2]),
        (Wanted(shortest=2, longest=4), [1, 2, 3]),  # the first review has one word, the next two
        (Wanted(shortest=7), []),
        (Wanted(longest=0), []),
        (Wanted(which="both are wrong", label=0, answers=(1, 1), shortest=5, longest=5), [4]),
    ],
)
def test_all_that_is_asked_for_holds(wanted, places):
    assert wanted_places([FIRST, SECOND], wanted).tolist() == places


@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_confusion_is_scikit_learns_and_each_cell_leads_to_its_reviews(n_classes):
    rng = np.random.default_rng(0)
    found = made(rng.integers(n_classes, size=90).tolist(), rng.normal(size=(90, n_classes)))
    counts = confusion(found)
    assert (counts == confusion_matrix(found.labels, found.answers, labels=range(n_classes))).all()
    for label, answer in np.ndindex(n_classes, n_classes):
        assert len(wanted_places([found], Wanted(label=label, answers=(answer,)))) == counts[label, answer]


def test_the_table_by_hand():
    texts = ["a", None, "c", "d", "e", "f"]
    table = answered([FIRST, SECOND], ["m", "k"], ["bad", "good"], texts)
    assert table["row"].tolist() == [1, 2, 3, 4, 5, 6] and table["words"].tolist() == [1, 2, 3, 4, 5, 6]
    assert table["label"].tolist() == ["bad", "bad", "good", "good", "bad", "good"]
    assert table["label (k)"].tolist() == ["bad"] * 4 + ["good"] * 2
    assert table["disagree"].tolist() == [False, True, True, False, False, False]
    p, q = np.e / (1 + np.e), np.e**3 / (1 + np.e**3)
    assert table["probability (m)"].tolist() == pytest.approx([p] * 6)
    assert table["difference"][0] == pytest.approx(q - p) and table["difference"][1] == pytest.approx(p + q - 1)
    assert (table[["read (m)", "read (k)"]] == 1).all(axis=None)
    assert arrange(table, "largest difference first")["row"].tolist()[:2] == [2, 3]
    assert "difference" not in answered([FIRST], ["m"], ["bad", "good"], texts)
