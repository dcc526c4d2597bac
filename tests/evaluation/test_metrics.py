import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score
from statsmodels.stats.proportion import proportion_confint

from core.evaluation.lengths import buckets
from core.evaluation.metrics import metrics


def one_hot(predicted: list[int], n_classes: int) -> np.ndarray:
    return np.eye(n_classes, dtype=np.float32)[predicted] * 3 - 1


@pytest.mark.parametrize(("n_classes", "average"), [(2, "binary"), (3, "macro")])
def test_figures_are_those_of_scikit_learn_and_statsmodels(n_classes, average):
    rng = np.random.default_rng(n_classes)
    labels, words = rng.integers(n_classes, size=101), rng.integers(400, size=101)
    logits = rng.normal(size=(101, n_classes)).astype(np.float32) + 0.8 * one_hot(labels.tolist(), n_classes)
    predicted = logits.argmax(-1)
    found = metrics(logits, labels, words)
    assert found.n == 101
    assert found.accuracy == pytest.approx(accuracy_score(labels, predicted))
    assert 0.5 < found.accuracy < 1
    assert found.f1 == pytest.approx(f1_score(labels, predicted, average=average))
    right = int(accuracy_score(labels, predicted, normalize=False))
    assert (found.low, found.high) == pytest.approx(proportion_confint(right, 101, method="wilson"))
    assert found.buckets == tuple(buckets(words, predicted == labels))


def test_two_classes_by_hand():
    labels, predicted = [1, 1, 1, 0, 0], [1, 1, 0, 1, 0]  # two true positives, a false one, a missed one
    found = metrics(one_hot(predicted, 2), np.array(labels), np.array([1, 40, 100, 300, 300]))
    assert (found.accuracy, found.f1) == pytest.approx((3 / 5, 2 * 2 / (2 * 2 + 1 + 1)))
    assert [(bucket.n, bucket.accuracy) for bucket in found.buckets] == [(1, 1.0), (1, 1.0), (1, 0.0), (2, 0.5)]


def test_three_classes_by_hand():
    labels, predicted = [0, 0, 1, 2, 2, 2], [0, 1, 1, 2, 2, 0]
    found = metrics(one_hot(predicted, 3), np.array(labels), np.full(6, 10))
    assert found.f1 == pytest.approx((2 / 4 + 2 / 3 + 4 / 5) / 3)


def test_a_class_that_is_never_found_counts_as_zero():
    assert metrics(one_hot([0, 0], 2), np.array([1, 0]), np.array([1, 1])).f1 == 0.0
    assert metrics(one_hot([0, 1], 3), np.array([0, 2]), np.array([1, 1])).f1 == pytest.approx(1 / 3)


def test_no_review_is_refused():
    with pytest.raises(ValueError, match="got no observation"):
        metrics(np.zeros((0, 2), np.float32), np.zeros(0, int), np.zeros(0, int))
