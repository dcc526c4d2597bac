import numpy as np
import pytest

from core.evaluation.lengths import bucket_names, buckets
from core.records import Bucket
from core.statistics import wilson


def test_names_say_both_ends():
    assert bucket_names() == ["1-32", "33-96", "97-224", "over 224"]
    assert bucket_names([5]) == ["1-5", "over 5"]


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (0, "1-32"), (1, "1-32"), (32, "1-32"),
        (33, "33-96"), (96, "33-96"),
        (97, "97-224"), (224, "97-224"),
        (225, "over 224"), (100_000, "over 224"),
    ],
)  # fmt: skip
def test_each_edge_belongs_to_the_bucket_that_names_it(words, name):
    found = buckets(np.array([words]), np.array([True]))
    assert {bucket.name: bucket.n for bucket in found} == {other: int(other == name) for other in bucket_names()}


def test_accuracy_by_hand():
    words = np.array([225, 1, 40, 0, 300, 32, 41])
    correct = np.array([True, True, False, False, False, True, False])
    first, second, third, last = buckets(words, correct)
    assert first == Bucket(name="1-32", n=3, accuracy=2 / 3, low=wilson(2, 3)[0], high=wilson(2, 3)[1])
    assert second == Bucket(name="33-96", n=2, accuracy=0.0, low=wilson(0, 2)[0], high=wilson(0, 2)[1])
    assert third == Bucket(name="97-224", n=0, accuracy=None, low=None, high=None)
    assert last == Bucket(name="over 224", n=2, accuracy=0.5, low=wilson(1, 2)[0], high=wilson(1, 2)[1])


def test_no_review_is_no_figure():
    found = buckets(np.zeros(0, dtype=int), np.zeros(0, dtype=bool))
    assert [(bucket.n, bucket.accuracy, bucket.low, bucket.high) for bucket in found] == [(0, None, None, None)] * 4


def test_other_edges():
    found = buckets(np.array([5, 6, 7]), np.array([True, False, False]), edges=[5])
    assert [(bucket.n, bucket.accuracy) for bucket in found] == [(1, 1.0), (2, 0.0)]
