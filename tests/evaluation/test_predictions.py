import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from core.evaluation.predictions import aligned, of, read
from tests import small_models
from tests.evaluation.conftest import predictions


def stored(n: int = 6) -> pd.DataFrame:
    frame = small_models.predictions(n)
    return pd.concat([frame, frame.head(2).assign(split="validation")], ignore_index=True)


def test_one_side_is_read_in_its_order():
    found = of(stored())
    assert len(found) == 6 and found.n_classes == 2
    assert found.words.tolist() == [33, 34, 35, 36, 37, 38] and found.labels.tolist() == [0, 1] * 3
    assert found.cut.all() and found.correct.all()
    assert len(of(stored(), "validation")) == 2


def test_probabilities_by_hand():
    found = replace(predictions(2, 1.0, 0), logits=np.array([[0.0, np.log(3)], [2.0, 2.0]]))
    np.testing.assert_allclose(found.probabilities, [[0.25, 0.75], [0.5, 0.5]])
    np.testing.assert_allclose(found.confidence, [0.75, 0.5])
    assert found.answers.tolist() == [1, 0] and found.correct.tolist() == [False, False]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda frame: frame[frame["split"] == "validation"], "got no test review, expected at least one"),
        (lambda frame: frame.assign(logits=[[0.0, 1.0]] * 7 + [[0.0]]).iloc[::-1].assign(split="test"), "are damaged"),
        (lambda frame: frame.assign(logits=[[np.nan, 1.0]] * 8), "they hold logits that are no finite numbers"),
        (lambda frame: frame.assign(logits=None), "are damaged"),
        (lambda frame: frame.assign(label=2), "they hold labels that are none of its classes"),
        (lambda frame: frame.assign(label="good"), "are damaged"),
        (lambda frame: frame.assign(label=np.nan), "are damaged"),
        (lambda frame: frame.assign(text_hash="a"), "they hold the same review twice"),
    ],
)
def test_what_no_model_answers_is_refused(damage, said):
    with pytest.raises(ValueError, match=said):
        of(damage(stored()))


def test_a_model_from_elsewhere_says_what_to_do_and_a_missing_side_whose_it_is(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ValueError, match=r"no predictions.parquet, .* with `python -m core evaluate` or on the page Score"):
        read(tmp_path)
    stored().to_parquet(tmp_path / "predictions.parquet")
    with pytest.raises(ValueError, match=f"^{tmp_path}: got no train review, expected at least one"):
        read(tmp_path, "train")


def test_fewer_reviews_than_were_measured_are_refused(models_root, tmp_path):
    stored().to_parquet(tmp_path / "predictions.parquet")
    (tmp_path / "run.json").write_text("{}")
    assert len(read(tmp_path)) == 6
    (tmp_path / "run.json").write_text(json.dumps({"metrics": {"test": {"n": 2401}}}))
    with pytest.raises(ValueError, match="holds 6 test reviews, and run.json tells of 2,401"):
        read(tmp_path)
    content = (tmp_path / "predictions.parquet").read_bytes()
    (tmp_path / "predictions.parquet").write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="predictions.parquet is damaged"):
        read(tmp_path)


def test_the_same_reviews_are_put_into_the_order_of_the_base():
    base = predictions(30, 0.5, 1)
    found = aligned(base, predictions(30, 0.8, 2).take(np.random.default_rng(0).permutation(30)))
    assert found.hashes.tolist() == base.hashes.tolist()
    assert found.answers.tolist() == predictions(30, 0.8, 2).answers.tolist()
