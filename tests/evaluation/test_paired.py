from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score

from core.evaluation.paired import compare
from core.evaluation.predictions import read
from core.statistics import mcnemar
from tests.evaluation.conftest import predictions

ROOT = Path(__file__).parents[2]


def test_the_same_reviews_meet_in_whatever_order_they_are_stored():
    base, variant = predictions(400, 0.7, 1), predictions(400, 0.8, 2)
    found = compare(base, variant.take(np.random.default_rng(3).permutation(400)))
    labels, before, after = base.labels, base.answers, variant.answers
    assert found.accuracy.value == pytest.approx(accuracy_score(labels, after) - accuracy_score(labels, before))
    assert found.f1.value == pytest.approx(f1_score(labels, after) - f1_score(labels, before))
    assert found.accuracy.p == mcnemar(before == labels, after == labels)
    assert found.accuracy.n == 400 and found.accuracy.is_shown


def test_two_that_agree_everywhere_compare_without_an_error():
    found = compare(predictions(50, 0.7, 1), predictions(50, 0.7, 1))
    assert (found.accuracy.value, found.accuracy.p) == (0.0, 1.0) and not found.accuracy.is_shown
    assert (found.f1.value, found.f1.low, found.f1.high) == (0.0, 0.0, 0.0)


def test_the_models_that_come_along_were_tested_on_the_same_reviews():
    encoder, bilstm = (read(ROOT / "models" / name) for name in ("imdb-encoder", "imdb-bilstm"))
    found = compare(encoder, bilstm)
    assert found.accuracy.n == 2401 and found.accuracy.low <= found.accuracy.value <= found.accuracy.high


@pytest.mark.parametrize(
    ("variant", "said"),
    [
        (lambda found: found.take(np.arange(10, 40)), "the test reviews are not the same: 40 and 30, 30 of them in both"),
        (lambda found: replace(found, labels=1 - found.labels), "the same test reviews have different labels"),
        (lambda found: replace(found, logits=np.zeros((40, 3))), "got models of 2 and 3 classes"),
        (lambda found: replace(found, hashes=np.array([f"x{i}" for i in range(40)])), "0 of them in both"),
    ],
)
def test_what_cannot_be_compared_says_why(variant, said):
    with pytest.raises(ValueError, match=said):
        compare(predictions(40, 0.7, 1), variant(predictions(40, 0.7, 2)))
