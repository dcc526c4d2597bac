"""The models that come along are what their records say, and never saw the reviews that they are measured on."""

import json
from dataclasses import asdict
from functools import cache

import numpy as np
import pytest
from safetensors import safe_open

from core.artifact import ROOT, load_network, model_folders, open_model, read_predictions, read_run
from core.card import card
from core.data.batches import Cut
from core.data.sources.bundled import imdb
from core.data.splits import Splits, fingerprint, split
from core.data.tokenizer import encode
from core.evaluation.metrics import metrics
from core.evaluation.scoring import score
from core.inspection.reading import read

FOLDERS = model_folders(ROOT / "models")


@cache
def splits() -> Splits:
    return split(imdb())


def test_both_models_come_along():
    assert list(FOLDERS) == ["imdb-bilstm", "imdb-encoder"]


@pytest.fixture(params=FOLDERS)
def folder(request):
    return FOLDERS[request.param]


def test_a_model_is_small_and_holds_half_precision(folder):
    assert sum(file.stat().st_size for file in folder.iterdir()) <= 12e6
    with safe_open(folder / "model.safetensors", framework="pt") as weights:
        assert {weights.get_slice(name).get_dtype() for name in weights.keys()} == {"F16"}  # noqa: SIM118


def test_it_was_trained_on_the_training_side_alone(folder):
    hashes, predictions = splits().hashes, read_predictions(folder)
    measured = {side: frame["text_hash"].tolist() for side, frame in predictions.groupby("split")}
    assert measured == {side: hashes[side] for side in ("validation", "test")}
    assert not set(hashes["train"]) & {*measured["validation"], *measured["test"]}
    assert read_run(folder)["data"]["fingerprint"] == {side: fingerprint(found) for side, found in hashes.items()}


def test_its_figures_follow_from_its_predictions(folder):
    run = read_run(folder)
    for side, frame in read_predictions(folder).groupby("split"):
        logits = np.stack(frame["logits"])
        found = metrics(logits, frame["label"].to_numpy(), frame["words"].to_numpy())
        assert json.loads(json.dumps(asdict(found))) == run["metrics"][side]


def test_its_predictions_can_be_made_again(folder):
    model, test = open_model(folder), splits().test
    cut = Cut.of(model.architecture)
    stored = read_predictions(folder).query("split == 'test'")[:100]
    ids = [encode(model.tokenizer, text).ids for text in test.texts[:100]]
    np.testing.assert_allclose(score(model.network, [cut.ids(i) for i in ids]), np.stack(stored["logits"]), atol=1e-4)
    assert stored["label"].tolist() == test.labels[:100]
    assert stored["tokens"].tolist() == [len(i) for i in ids]


def test_its_card_is_made_of_its_record(folder):
    assert (folder / "README.md").read_text(encoding="utf-8") == card(read_run(folder))


def test_it_is_sure_of_plain_words(folder):
    model = open_model(folder)
    assert read(model, "A wonderful film, superbly acted.").prediction.label == "positive"
    assert read(model, "An awful film, badly acted.").prediction.label == "negative"
    assert not any(parameter.requires_grad for parameter in load_network(folder).parameters())
