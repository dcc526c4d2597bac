"""Small models of random weights, a cache of their own, and made answers."""

from pathlib import Path

import numpy as np
import pytest

from core.artifact import Model, open_model
from core.evaluation.predictions import Predictions
from tests import small_models


@pytest.fixture(scope="session")
def models_root(tmp_path_factory) -> Path:
    return small_models.write(tmp_path_factory.mktemp("models"))


@pytest.fixture(params=small_models.MODELS)
def model(models_root, request) -> Model:
    return open_model(models_root / request.param)


@pytest.fixture
def opened(models_root):
    return lambda name: open_model(models_root / name)


@pytest.fixture(autouse=True)
def cache_of_its_own(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_CACHE", str(tmp_path_factory.mktemp("cache")))


def predictions(n: int, right: float, seed: int, n_classes: int = 2) -> Predictions:
    """Of `n` reviews of 1 to `n` words, of which about that share is right; labels do not depend on the seed."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % n_classes
    guesses = np.where(rng.random(n) < right, labels, (labels + 1) % n_classes)
    return made(labels.tolist(), np.eye(n_classes)[guesses])


def made(labels: list[int], logits: np.ndarray, words: list[int] | None = None) -> Predictions:
    """Answers to reviews of which the first has one word, the next two and so on, and as many tokens, all read."""
    lengths = np.arange(1, len(labels) + 1) if words is None else np.array(words)
    hashes = np.array([f"{i:04}" for i in range(len(labels))])
    return Predictions(
        hashes=hashes, labels=np.array(labels), logits=logits.astype(float), words=lengths, tokens=lengths, tokens_read=lengths
    )
