from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, f1_score

from core.artifact import read_predictions
from core.evaluation.paired import compare
from core.statistics import mcnemar

ROOT = Path(__file__).parents[2]


def predictions(n: int, right: float, seed: int, n_classes: int = 2) -> pd.DataFrame:
    """Of `n` test reviews, of which about that share is right; labels do not depend on the seed."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % n_classes
    guesses = np.where(rng.random(n) < right, labels, (labels + 1) % n_classes)
    logits = list(np.eye(n_classes)[guesses])
    frame = pd.DataFrame({"text_hash": [f"{i:04}" for i in range(n)], "split": "test", "label": labels, "logits": logits})
    return pd.concat([frame, frame.head(5).assign(split="validation", text_hash="other")], ignore_index=True)


def guesses(frame: pd.DataFrame) -> np.ndarray:
    return np.stack(frame["logits"].to_numpy()).argmax(1)


def test_the_same_reviews_meet_in_whatever_order_they_are_stored():
    base, variant = predictions(400, 0.7, 1), predictions(400, 0.8, 2)
    found = compare(base, variant.sample(frac=1, random_state=3))
    test = base[base["split"] == "test"], variant[variant["split"] == "test"]
    labels, before, after = test[0]["label"], *map(guesses, test)
    assert found.accuracy.value == pytest.approx(accuracy_score(labels, after) - accuracy_score(labels, before))
    assert found.f1.value == pytest.approx(f1_score(labels, after) - f1_score(labels, before))
    assert found.accuracy.p == mcnemar(before == labels.to_numpy(), after == labels.to_numpy())
    assert found.accuracy.n == 400 and found.accuracy.is_shown


def test_two_that_agree_everywhere_compare_without_an_error():
    found = compare(predictions(50, 0.7, 1), predictions(50, 0.7, 1))
    assert (found.accuracy.value, found.accuracy.p) == (0.0, 1.0) and not found.accuracy.is_shown


def test_the_models_that_come_along_were_tested_on_the_same_reviews():
    encoder, bilstm = (read_predictions(ROOT / "models" / name) for name in ("imdb-encoder", "imdb-bilstm"))
    found = compare(encoder, bilstm)
    assert found.accuracy.n == 2401 and found.accuracy.low <= found.accuracy.value <= found.accuracy.high


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (lambda frame: frame.iloc[10:], "the test reviews are not the same: 40 and 30, of which both have 30"),
        (lambda frame: frame.assign(label=1 - frame["label"]), "the same test reviews have other labels"),
        (lambda frame: frame.assign(logits=[np.zeros(3)] * len(frame)), "got models of 2 and 3 classes"),
        (lambda frame: frame[frame["split"] != "test"], "of which both have 0"),
    ],
)
def test_what_cannot_be_compared_says_why(changed, said):
    with pytest.raises(ValueError, match=said):
        compare(predictions(40, 0.7, 1), changed(predictions(40, 0.7, 2)))


def test_no_review_says_so():
    none = predictions(40, 0.7, 1).query("split != 'test'")
    with pytest.raises(ValueError, match="got no test review"):
        compare(none, none)
