"""Fits of a linear model: the ratios by hand, scikit-learn's own answers, and a whole run."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB
from transformers import AutoModelForSequenceClassification

from core import run_folder
from core.artifact import open_model, read_predictions, read_run
from core.card import card
from core.checked import from_json
from core.config import DataConfig, LinearArchitecture, RunConfig, TrainingConfig
from core.data.batches import collate
from core.evaluation.scoring import score
from core.events import Cancelled, EpochFinished, TrainingFinished, TrainingStarted
from core.networks.auto import LinearForSequenceClassification
from core.training import linear
from core.training.loop import Examples
from core.training.run import train
from tests import small_runs

SMALL = LinearArchitecture(vocab_size=150, c_values=(0.1, 1.0))


def config(table, **knobs) -> RunConfig:
    return RunConfig(
        model=replace(SMALL, **knobs), reviews=DataConfig(data=str(table)), training=TrainingConfig(device="cpu", seed=3)
    )


@pytest.fixture(scope="module", params=["naive-bayes", "tfidf"])
def made(request, tmp_path_factory):
    """A run on a small table: its configuration, its folder and its events."""
    folder = tmp_path_factory.mktemp("linear")
    asked = config(small_runs.write_table(folder / "reviews.csv"), features=request.param)
    events: list = []
    train(asked, folder / "run", events.append, ["train"])
    return asked, folder / "run", events


def test_a_run_tells_of_its_fits_and_of_no_steps(made):
    asked, out, events = made
    begun, *fits, finished = [
        event for event in events if isinstance(event, TrainingStarted | EpochFinished | TrainingFinished)
    ]
    assert isinstance(begun, TrainingStarted) and isinstance(finished, TrainingFinished)
    assert (begun.epochs, begun.device, begun.precision, begun.backend) == (2, "cpu", "float32", None)
    assert [(type(fit), fit.epoch) for fit in fits] == [(EpochFinished, 1), (EpochFinished, 2)]
    assert finished.best_epoch == max(fits, key=lambda fit: fit.val_accuracy).epoch
    assert finished.reviews_per_s == pytest.approx(2 * begun.n_train / finished.train_s)


def test_its_model_is_a_folder_like_others(made):
    asked, out, _ = made
    model, record, predictions = open_model(out / "model"), read_run(out / "model"), read_predictions(out / "model")
    settled = model.architecture
    assert (model.kind, model.label_names) == ("linear", ("negative", "positive"))
    assert from_json(RunConfig, record["config"]) == replace(asked, model=settled) and settled.n_features < 150**2
    assert record["n_parameters"] == 2 * settled.n_features + 2
    assert record["metrics"]["test"]["accuracy"] > 0.9
    assert predictions["split"].value_counts()["test"] == record["data"]["n"]["test"]
    names = {file.name for file in (out / "model").iterdir()}
    assert {"model.safetensors", "tokenizer.json", "run.json", "predictions.parquet", "README.md"} <= names
    text = card(json.loads((out / "model" / "run.json").read_text()))
    assert "# A linear model that labels" in text and "the weights with C = " in text and "It attends to nothing" in text


def test_transformers_opens_it(made):
    _, out, _ = made
    again = AutoModelForSequenceClassification.from_pretrained(out / "model")
    assert isinstance(again, LinearForSequenceClassification)
    ids = np.array([5, 6, 7, 6, 5], dtype=np.int32)
    np.testing.assert_allclose(score(again, [ids]), score(open_model(out / "model").network, [ids]))


def test_it_answers_for_the_reviews_that_a_network_answers_for(made, tmp_path):
    asked, out, _ = made
    network = small_runs.config(asked.reviews.data, seed=3, epochs=1)
    train(network, tmp_path / "network", lambda event: None, ["train"])
    columns = ["text_hash", "split", "label", "words"]
    theirs, own = (read_predictions(folder / "model")[columns] for folder in (tmp_path / "network", out))
    pd.testing.assert_frame_equal(own, theirs)


def test_it_stops_between_two_fits(tmp_path):
    asked, events = config(small_runs.write_table(tmp_path / "reviews.csv")), []
    last = train(asked, tmp_path / "a", events.append, ["train"], lambda: any(isinstance(e, EpochFinished) for e in events))
    assert isinstance(last, Cancelled) and last.best_epoch == 1 and read_run(tmp_path / "a" / "model")["best_epoch"] == 1
    assert train(asked, tmp_path / "b", events.append, ["train"], lambda: True) == Cancelled()
    assert not (tmp_path / "b" / "model").exists()


# The arithmetic


def cells(draw: np.random.Generator, n: int = 40, width: int = 11) -> sparse.csr_array:
    x = sparse.csr_array((draw.random((n, width)) < 0.3).astype(np.float32))
    x.indices, x.indptr = x.indices.astype(np.int32), x.indptr.astype(np.int32)
    return x


def test_the_ratio_is_that_of_multinomial_naive_bayes():
    draw = np.random.default_rng(0)
    x, positive = cells(draw), np.arange(40) % 3 == 0
    counts = [1 + x.toarray()[side].sum(0) for side in (positive, ~positive)]
    expected = np.log((counts[0] / counts[0].sum()) / (counts[1] / counts[1].sum()))
    np.testing.assert_allclose(linear.log_ratio(x, positive), expected, rtol=1e-5)
    assert not np.allclose(expected, np.diff(BernoulliNB().fit(x, positive).feature_log_prob_, axis=0)[0])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_are_scikit_learn_s_on_the_weighed_runs(n_classes):
    draw = np.random.default_rng(1)
    x, labels = cells(draw), np.arange(40) % n_classes
    architecture = LinearArchitecture(n_classes=n_classes, n_features=11)
    weight, bias = linear.solved(architecture, x, labels, 0.5, 0)
    logits = x @ weight + bias
    for k in range(1, n_classes):
        weighed = np.c_[x.toarray() * linear.log_ratio(x, labels == k), np.ones(40)]  # liblinear holds the intercept down, too
        reference = LogisticRegression(C=0.5, tol=1e-8, max_iter=10_000, fit_intercept=False).fit(weighed, labels == k)
        ours = logits[:, 1] - logits[:, 0] if n_classes == 2 else logits[:, k]
        np.testing.assert_allclose(ours, reference.decision_function(weighed), atol=0.01)


def test_a_class_without_a_review_to_train_on_is_never_chosen():
    draw = np.random.default_rng(2)
    weight, bias = linear.solved(LinearArchitecture(n_classes=3, n_features=11), cells(draw), np.arange(40) % 2, 1.0, 0)
    assert not weight[:, 2].any() and bias[2] == pytest.approx(-np.log(40))


def test_a_class_more_than_two_are_told_apart():
    draw = np.random.default_rng(4)
    ids = [np.r_[draw.integers(4, 9, 5), 9 + i % 3].astype(np.int32) for i in range(60)]
    examples = Examples(ids, np.arange(60) % 3)
    network = linear.untrained(LinearArchitecture(vocab_size=12), ("a", "b", "c"), examples)
    fitted = linear.fit(network, examples, examples, seed=0, emit=lambda event: None, stopped=lambda: False)
    batch = collate(ids)
    mask = None if batch.token_mask is None else batch.token_mask.long()
    assert fitted.epochs[fitted.best_epoch - 1].val_accuracy == 1
    assert (network(batch.input_ids, mask).logits.argmax(1).numpy() == examples.labels).all()


def test_events_are_written_and_read(tmp_path):
    table = small_runs.write_table(tmp_path / "reviews.csv")
    out = tmp_path / "run"
    train(config(table), out, lambda event: run_folder.append_event(out, event), ["train"])
    events, _ = run_folder.read_events(out)
    assert isinstance(events[-1], TrainingFinished)
