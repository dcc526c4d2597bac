from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import f1_score

from core.evaluation.calibration import calibration_error
from core.evaluation.lengths import (
    bucket_names,
    buckets,
    differences,
    holm,
    quantile_edges,
    ranges,
    reading_limit,
    typed_edges,
)
from core.records import Bucket, LengthRange
from core.statistics import mcnemar, wilson
from tests.evaluation.conftest import made, predictions


def test_names_say_both_ends():
    assert bucket_names() == ["1-32", "33-96", "97-224", "over 224"]
    assert bucket_names([5]) == ["1-5", "over 5"]
    assert bucket_names([1, 2, 9]) == ["1", "2", "3-9", "over 9"]


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


@pytest.mark.parametrize("text", ["32, 96, 224", " 32 96\t224 ", "32;96;224,", "32,\n96,224"])
def test_edges_are_read_as_people_type_them(text):
    assert typed_edges(text) == (32, 96, 224)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " , ",
        "0",
        "5, 5",
        "96, 32",
        "-1",
        "1.5",
        "ten",
        "1e3",
        "٣",
        "99999999",
        "<b>1</b>",
        ",".join(map(str, range(1, 13))),
    ],
)
def test_what_are_no_edges_is_refused(text):
    with pytest.raises(ValueError, match="expected one to 11 whole numbers that rise, such as 32, 96, 224"):
        typed_edges(text)


def test_quantiles_hold_as_many_reviews_each():
    words = np.random.default_rng(0).permutation(np.arange(1, 101))
    assert quantile_edges(words) == (25, 50, 75)
    assert [bucket.n for bucket in buckets(words, words > 0, quantile_edges(words))] == [25] * 4


@pytest.mark.parametrize(("words", "edges"), [([7] * 9, (7,)), ([0, 0, 0, 4], (4,)), ([1, 1, 1, 9], (1,)), ([0], (1,))])
def test_quantiles_of_equal_lengths_are_fewer(words, edges):
    assert quantile_edges(np.array(words)) == edges


def test_figures_of_each_range_are_those_of_its_reviews():
    found = predictions(200, 0.7, 1)
    short, long = ranges(found, [60])
    for row, places in ((short, slice(0, 60)), (long, slice(60, None))):
        part = found.take(np.arange(200)[places])
        assert row.n == len(part) and row.accuracy.value == pytest.approx(part.correct.mean())
        assert (row.accuracy.low, row.accuracy.high) == wilson(int(part.correct.sum()), len(part))
        assert row.f1.value == pytest.approx(f1_score(part.labels, part.answers))
        assert row.f1.low < row.f1.value < row.f1.high
        assert row.calibration == calibration_error(part)
        assert row.cut == 0.0


def test_no_review_has_no_figure():
    _, empty = ranges(predictions(5, 0.7, 1), [9])
    assert empty == LengthRange(name="over 9", n=0, accuracy=None, f1=None, calibration=None, cut=None)


def test_f1_is_none_where_there_is_nothing_to_find():
    (row, _) = ranges(made([0, 0], np.eye(2)[[0, 0]]), [9])
    assert row.f1 is None and row.accuracy.value == 1.0
    (row, _) = ranges(made([0, 0], np.eye(2)[[0, 1]]), [9])
    assert row.f1.value == 0.0


def test_differences_by_hand():
    base, variant = (made([1] * 8, np.eye(2)[answers]) for answers in ([1, 0, 0, 0, 1, 1, 1, 1], [1, 1, 1, 0, 1, 1, 1, 0]))
    first, second, none = differences(base, variant.take(np.arange(8)[::-1]), [4, 8])
    assert (first.value, first.n, second.value, none) == (0.5, 4, -0.25, None)
    assert first.p == mcnemar(base.correct[:4], variant.correct[:4])
    assert first.low <= 0.5 <= first.high


def test_differences_are_corrected_together():
    rows = [differences(predictions(300, 0.6, 1), predictions(300, share, 2), [150, 300]) for share in (0.7, 0.75)]
    corrected = holm(rows)
    before, after = ([one.p for row in of for one in row if one] for of in (rows, corrected))
    assert len(after) == 4 and after[np.argmin(before)] == pytest.approx(4 * min(before))
    assert [row[2] for row in corrected] == [None, None]


def test_ranges_of_other_reviews_are_not_held_against_each_other():
    with pytest.raises(ValueError, match="the test reviews are not the same"):
        differences(predictions(10, 0.7, 1), predictions(9, 0.7, 1))


def test_the_limit_of_reading_in_words():
    found = made([0] * 5, np.eye(2)[[0] * 5], words=[10, 50, 100, 150, 300])
    assert reading_limit(found, [100, 200]) is None
    found = replace(found, tokens=2 * found.words, tokens_read=np.minimum(2 * found.words, 120))
    limit = reading_limit(found, [100, 200])
    assert limit.words == 60 and limit.place == pytest.approx(0.1)  # 60 of the 100 words of a range around 0
    assert reading_limit(found, [20, 40]).place == pytest.approx(1.5 + 20 / 260)  # of the last one, up to the longest review
