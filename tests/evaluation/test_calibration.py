import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score, precision_score, recall_score

from core.evaluation.calibration import N_BINS, asked, best_threshold, calibration_bins, calibration_error
from core.records import Estimate
from core.statistics import wilson
from tests.evaluation.conftest import made


def answers(labels: list[int], confidence: list[float]):
    """Of two classes, answers "1" of those confidences."""
    p = np.array(confidence)
    return made(labels, np.stack([np.log(1 - p), np.log(p)], 1))


def test_bins_by_hand():
    found = calibration_bins(answers([1, 1, 0, 1], [0.52, 0.54, 0.545, 0.97]))
    assert [(one.low, one.high) for one in found] == [pytest.approx((0.5 + i / 20, 0.55 + i / 20)) for i in range(10)]
    assert [one.n for one in found] == [3, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    low, high = wilson(2, 3)
    assert found[0].confidence == pytest.approx(0.535) and found[0].accuracy == Estimate(value=2 / 3, low=low, high=high)
    assert (found[1].confidence, found[1].accuracy) == (None, None)


def test_the_error_by_hand():
    found = calibration_error(answers([1, 0, 1, 1], [0.6, 0.6, 0.9, 0.9]))
    assert found.value == pytest.approx((abs(1 - 1.2) + abs(2 - 1.8)) / 4)


def test_the_error_is_the_mean_gap_over_the_bins():
    rng = np.random.default_rng(0)
    found = made(rng.integers(3, size=500).tolist(), rng.normal(size=(500, 3)))
    gaps = [one.n * abs(one.accuracy.value - one.confidence) for one in calibration_bins(found) if one.n]
    assert len(gaps) > 6 and calibration_error(found).value == pytest.approx(sum(gaps) / 500)
    assert sum(one.n for one in calibration_bins(found)) == 500


def test_a_model_that_is_right_as_often_as_it_says_stays_within_chance_19_times_in_20():
    rng = np.random.default_rng(0)
    within = []
    for _ in range(60):
        confidence = rng.uniform(0.5, 1, 80)
        error = calibration_error(answers((rng.random(80) < confidence).astype(int).tolist(), confidence.tolist()))
        within.append(error.value <= error.by_chance)
    assert 0.85 <= np.mean(within) <= 1


def test_one_that_is_too_sure_is_found_out():
    error = calibration_error(answers([0] * 120 + [1] * 280, [0.95] * 400))
    assert error.value == pytest.approx(0.95 - 0.7) and error.value > 3 * error.by_chance


def test_chance_alone_makes_much_of_few_reviews():
    few, many = (calibration_error(answers([1, 0] * n, [0.8, 0.6] * n)).by_chance for n in (4, 400))
    assert few > 5 * many


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("class_id", [0, 1, 2])
def test_what_a_threshold_brings_is_scikit_learns(class_id, threshold):
    rng = np.random.default_rng(1)
    found = made(rng.integers(3, size=200).tolist(), 2 * rng.normal(size=(200, 3)))
    there, said = found.labels == class_id, found.probabilities[:, class_id] >= threshold
    got = asked(found, class_id, threshold)
    assert got.precision.value == pytest.approx(precision_score(there, said))
    assert got.recall.value == pytest.approx(recall_score(there, said))
    assert got.f1 == pytest.approx(f1_score(there, said))
    assert got.accuracy.value == pytest.approx(accuracy_score(there, said))
    assert (got.recall.low, got.recall.high) == wilson(int((there & said).sum()), int(there.sum()))


def test_what_is_never_said_or_never_there_has_no_figure():
    found = answers([0, 0], [0.6, 0.7])
    assert (asked(found, 1, 0.9).precision, asked(found, 1, 0.9).recall, asked(found, 1, 0.9).f1) == (None, None, None)
    assert asked(found, 1, 0.5).precision.value == 0.0 and asked(found, 1, 0.5).recall is None


def test_the_best_threshold_parts_the_classes():
    found = answers([0, 0, 1, 1], [0.51, 0.6, 0.7, 0.9])
    assert 0.6 < best_threshold(found, 1) <= 0.7 and asked(found, 1, best_threshold(found, 1)).f1 == 1.0


def test_bins_reach_from_the_least_confidence_of_three_classes():
    found = calibration_bins(made([0], np.zeros((1, 3))))
    assert len(found) == N_BINS and found[0].low == pytest.approx(1 / 3) and found[0].n == 1
