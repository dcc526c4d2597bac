"""Small models of random weights, and a cache of their own."""

from pathlib import Path

import pytest

from core.artifact import Model, open_model
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
