import json
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from core.artifact import open_model
from core.catalog import SOURCES
from core.checked import to_json
from core.config import DataConfig, RunConfig
from core.data.reviews import Reviews
from core.evaluation.elsewhere import elsewhere
from core.inspection.reading import read

TEXTS = ["good film", "a dull and terrible film , not good at all", "Good  film", "the film " * 20]
HERE = Reviews(name="here", texts=TEXTS, labels=[0, 1, 0, 0], label_names=("Positive", "negative "))


@pytest.fixture
def here(monkeypatch):
    monkeypatch.setitem(SOURCES, "rotten-tomatoes", SimpleNamespace(resolve=lambda: lambda: HERE))


def test_each_different_review_is_answered_as_the_model_answers_it(opened, here):
    model = opened("cls")
    found = elsewhere(model, "rotten-tomatoes")
    order = sorted([0, 1, 3], key=lambda i: len(TEXTS[i]))
    by_words = np.argsort(found.words)
    assert found.words[by_words].tolist() == [2, 9, 40]
    assert found.labels[by_words].tolist() == [1, 0, 1]  # by name, whatever their order
    expected = [read(model, TEXTS[i]).prediction for i in order]
    np.testing.assert_allclose(found.logits[by_words], [answer.logits for answer in expected], atol=1e-5)
    assert found.tokens_read[by_words].tolist() == [answer.tokens_read for answer in expected]
    assert found.tokens[by_words].tolist() == [answer.tokens_read + answer.tokens_left_out for answer in expected]


def test_other_classes_are_refused(opened, monkeypatch):
    stars = Reviews(name="stars", texts=["a"], labels=[0], label_names=("1", "2"))
    monkeypatch.setitem(SOURCES, "rotten-tomatoes", SimpleNamespace(resolve=lambda: lambda: stars))
    with pytest.raises(ValueError, match="tells negative, positive apart, and the reviews of rotten-tomatoes are 1 or 2"):
        elsewhere(opened("cls"), "rotten-tomatoes")


def test_a_model_is_not_measured_on_what_it_was_trained_on(opened, here, models_root, tmp_path):
    shutil.copytree(models_root / "cls", tmp_path / "cls")
    config = RunConfig(reviews=DataConfig(data="rotten-tomatoes"))
    (tmp_path / "cls" / "run.json").write_text(json.dumps({"config": to_json(config)}))
    with pytest.raises(ValueError, match="cls was trained on a part of rotten-tomatoes"):
        elsewhere(open_model(tmp_path / "cls"), "rotten-tomatoes")
