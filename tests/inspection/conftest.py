"""Small models of random weights, and the texts that people try."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from core.artifact import Model, open_model
from core.networks.auto import build
from tests import small_models

PROBES = json.loads((Path(__file__).parent.parent / "probes.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def models(tmp_path_factory) -> dict[str, Model]:
    root = small_models.write(tmp_path_factory.mktemp("models"))
    return {name: open_model(root / name) for name in small_models.MODELS}


@pytest.fixture(params=small_models.MODELS)
def model(models, request) -> Model:
    return models[request.param]


@pytest.fixture
def with_knobs(models):
    """A model of the same tokeniser whose network has other knobs."""

    def change(name: str, **knobs) -> Model:
        torch.manual_seed(1)
        network = build(replace(models[name].architecture, **knobs), models[name].label_names)
        return replace(models[name], network=network.eval().requires_grad_(False))

    return change


@pytest.fixture(params=[name for name, text in PROBES.items() if text.strip()])
def probe(request) -> str:
    return PROBES[request.param]
