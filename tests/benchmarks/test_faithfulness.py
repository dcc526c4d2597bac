import hashlib

import numpy as np
import pytest

from benchmarks.faithfulness import Asked, models, tables
from core.inspection.faithfulness import Areas
from core.inspection.summary import Agreement
from core.recorded import shown
from tests import small_models


def asked(model: str, deletion: float, insertion: float, gap: float, tau: float | None) -> Asked:
    areas = Areas(deletion=deletion, insertion=insertion, random=np.array([0.4, 0.6]))
    pair = Agreement(first="attention", second="occlusion", tau=tau, overlap=2, n_top=5)
    return Asked(model=model, areas={"occlusion": areas}, completeness_gap=gap, agreements=[pair])


FOUND = [
    asked("imdb-encoder", 0.1, 0.9, 0.01, 0.5), asked("imdb-bilstm", 0.1, 0.5, 0.5, None),
    asked("imdb-encoder", 0.2, 0.8, 0.03, 0.3), asked("imdb-bilstm", 0.2, 0.5, 0.05, 0.2),
    asked("imdb-encoder", 0.45, 0.7, 0.02, 0.1), asked("imdb-bilstm", 0.15, 0.5, 0.7, 0.4),
]  # fmt: skip


def test_what_is_recorded_of_made_up_reviews():
    faithfulness, agreement, completeness = tables(FOUND)
    encoder, bilstm = faithfulness.rows
    assert encoder[:3] == ("imdb-encoder", "Occlusion", 3)
    assert encoder[3:6] == pytest.approx((0.25, 0.8, 0.5))
    gain, low, high = encoder[6:9]
    half = 4.302653 * np.std([0.4, 0.3, 0.05], ddof=1) / 3**0.5  # Student's t of two degrees of freedom
    assert (gain, low, high) == pytest.approx((0.25, 0.25 - half, 0.25 + half), abs=1e-6)
    assert (encoder[12], bilstm[12]) == ("better than random in insertion alone", "better than random in deletion alone")
    assert (encoder[13], bilstm[13]) == pytest.approx((200 / 3, 0))
    assert [row[3:] for row in agreement.rows] == [(3, pytest.approx(0.3), 2), (2, pytest.approx(0.3), 2)]
    assert [shown(value) for value in completeness.rows[0][1:]] == ["3", "2.00", "3.00", "100"]
    assert completeness.rows[1][1:] == pytest.approx((3, 50, 70, 100 / 3))


def test_a_model_of_which_one_review_was_asked_has_no_interval_yet():
    assert [row[0] for row in tables(FOUND[:3])[0].rows] == ["imdb-encoder"]


def test_a_model_is_recorded_with_its_weights(tmp_path):
    path = small_models.write(tmp_path) / "cls"
    ((name, weights),) = models([str(path)]).rows
    assert name == "cls" and weights == hashlib.sha256((path / "model.safetensors").read_bytes()).hexdigest()[:16]
