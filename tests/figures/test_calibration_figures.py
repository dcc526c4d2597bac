import numpy as np
import pytest

from core.figures.calibration import calibration_curve, confidence_histogram, threshold_curve
from core.records import CalibrationBin, Estimate

BINS = [
    CalibrationBin(low=0.5, high=0.75, n=0, confidence=None, accuracy=None),
    CalibrationBin(low=0.75, high=1.0, n=1200, confidence=0.9, accuracy=Estimate(value=0.8, low=0.7, high=0.85)),
]


def test_only_bins_with_answers_are_on_the_curve():
    diagonal, curve = calibration_curve({"<i>m</i>": BINS}).data
    assert list(curve.x) == [0.9] and list(curve.y) == [0.8] and curve.name == "&lt;i&gt;m&lt;/i&gt;"
    assert curve.error_y.array == pytest.approx([0.05]) and curve.error_y.arrayminus == pytest.approx([0.1])
    assert curve.customdata[0][0] == 1200
    assert list(diagonal.x) == list(diagonal.y) == [0.5, 1]


def test_models_of_more_classes_begin_lower():
    thirds = [CalibrationBin(low=1 / 3, high=1.0, n=1, confidence=0.5, accuracy=Estimate(value=1.0, low=0.2, high=1.0))]
    assert calibration_curve({"a": BINS, "b": thirds}).data[0].x[0] == pytest.approx(1 / 3)


def test_the_histogram_counts_every_answer_once():
    confidence = np.array([0.5, 0.51, 0.74, 0.9999, 1.0, 1.0])
    correct = np.array([True, False, True, True, False, True])
    right, wrong = confidence_histogram(confidence, correct, 2).data
    assert (right.name, sum(right.y), wrong.name, sum(wrong.y)) == ("right", 4, "wrong", 2)
    assert right.y[0] == 1 and wrong.y[0] == 1 and right.y[-1] == 2 and wrong.y[-1] == 1
    assert right.x[0] == pytest.approx(0.5125)


def test_a_threshold_without_an_answer_is_a_gap():
    chart = threshold_curve(np.array([0.0, 0.5, 1.0]), {"precision": [0.4, 0.8, None], "recall": [1, 0.5, 0]}, 0.4, "<b>")
    assert [trace.name for trace in chart.data] == ["precision", "recall"] and chart.data[0].y[2] is None
    assert chart.layout.shapes[0].x0 == 0.4
    assert chart.layout.xaxis.title.text == "probability of &lt;b&gt; asked for"
