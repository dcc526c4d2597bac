"""A linear model has no attention, and its evidence is exact."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from core.__main__ import main
from core.artifact import Model, write_network
from core.config import LinearArchitecture, RunConfig
from core.data.tokenizer import encode
from core.evaluation.table import table_logits
from core.inspection.evidence import evidence
from core.inspection.reading import read
from core.inspection.subject import log_odds
from core.training.linear import untrained
from core.training.loop import Examples
from tests.small_models import TEXTS

TEXT = "the film's plot is good , bad , not good"


def drawn(models: dict[str, Model], n_classes: int, **knobs) -> Model:
    """A model of random weights on the runs of some texts."""
    base = models["imdb-encoder"]
    ids = [encode(base.tokenizer, text).ids for text in TEXTS]
    architecture = LinearArchitecture(vocab_size=base.tokenizer.get_vocab_size(), min_reviews=1, **knobs)
    network = untrained(architecture, ("bad", "good", "mixed")[:n_classes], Examples(ids, np.zeros(len(ids), dtype=np.int64)))
    draw = torch.Generator().manual_seed(2)
    for parameter in network.parameters():
        parameter.data = torch.randn(parameter.shape, generator=draw)
    return replace(base, name="linear", network=network.eval().requires_grad_(False))


def test_it_reads_without_a_map(models):
    reading = read(drawn(models, 2), TEXT)
    assert reading.windows[0].weights.size == 0 and reading.windows[0].largest_row_error == 0
    assert len(reading.windows[0].tokens) == reading.prediction.tokens_read
    assert sum(reading.prediction.probabilities.values()) == pytest.approx(1)


@pytest.mark.parametrize("features", ["naive-bayes", "tfidf"])
def test_its_weights_add_up_to_its_log_odds(models, features):
    model = drawn(models, 2, features=features)
    found = evidence(model, TEXT)
    assert list(found.found) == ["occlusion", "weights"]
    target = model.label_names.index(found.prediction.label)
    bias = model.network.network.bias
    whole = log_odds(torch.tensor([found.prediction.logits]), target).item()
    assert found.found["weights"].values.sum() + (bias[target] - bias[1 - target]).item() == pytest.approx(whole, abs=1e-4)
    assert f"{(bias[target] - bias[1 - target]).item():+.3f}" in (found.found["weights"].note or "")


def test_of_three_classes_a_word_adds_to_the_score_of_the_predicted_one(models):
    model = drawn(models, 3)
    found = evidence(model, TEXT, ["weights"])
    target = model.label_names.index(found.prediction.label)
    expected = found.prediction.logits[target] - model.network.network.bias[target].item()
    assert found.found["weights"].values.sum() == pytest.approx(expected, abs=1e-4)
    assert (found.found["weights"].note or "").endswith("which every review has, they are the logit")  # no log-odds of three


def test_what_is_of_networks_is_refused_and_what_is_of_it_is_refused_of_networks(models):
    with pytest.raises(ValueError, match="rollout: linear is a linear model, which attends to nothing and has no layers"):
        evidence(drawn(models, 2), TEXT, ["rollout"])
    with pytest.raises(ValueError, match="weights: it is of linear models, and imdb-bilstm is a network"):
        evidence(models["imdb-bilstm"], TEXT, ["weights"])


def test_windows_of_a_review_are_averaged(models):
    model = drawn(models, 2, max_len=4)
    whole = table_logits(model, [TEXT], windows=True, progress=lambda n, total: None)
    np.testing.assert_allclose(read(model, TEXT, windows=True).prediction.logits, whole[0], rtol=1e-5)


def test_the_command_line_says_that_it_attends_to_nothing(models, tmp_path, capsys):
    model = drawn(models, 2)
    write_network(tmp_path / "linear", model.network, model.tokenizer, RunConfig(model=model.architecture))
    (tmp_path / "linear" / "run.json").write_text("{}")
    assert main(["attend", "--model", str(tmp_path / "linear"), "--text", TEXT]) == 2
    assert "linear is a linear model, which attends to nothing; `explain` tells what each word adds" in capsys.readouterr().err
    assert main(["predict", "--model", str(tmp_path / "linear"), "--text", TEXT]) == 0
