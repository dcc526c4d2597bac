import numpy as np
import pytest
import torch

from core.catalog import EVIDENCE
from core.inspection import gradients, occlusion
from core.inspection.evidence import applicable, evidence
from core.inspection.reading import read
from core.inspection.rollout import rollout
from core.inspection.subject import subject
from core.networks.pretrained import ARCHITECTURES, NAME, Pretrained, _number_layers
from core.words import word_spans

OF_A_TRANSFORMER = ["attention", "rollout", "value_norm", "gradient", "integrated_gradients", "occlusion"]
OF_A_BILSTM = ["attention", "gradient", "integrated_gradients", "occlusion"]
CHEAP = OF_A_TRANSFORMER[:4]
TEXT = "the film's plot is good , bad"


def test_every_method_resolves_and_says_what_it_is():
    for name, method in EVIDENCE.items():
        assert callable(method.resolve()) and method.title and method.summary.endswith("."), name


def test_every_probe_has_a_figure_for_each_word(model, probe):
    methods = [name for name in CHEAP if name in applicable(model)]
    found = evidence(model, probe, methods)
    assert list(found.found) == methods and found.prediction == read(model, probe).prediction
    assert len(found.words) >= len(word_spans(probe))
    unread = np.array([not word.read for word in found.words])
    for one in found.found.values():
        assert one.values.shape == (len(found.words),) and np.isfinite(one.values).all()
        assert not one.values[unread].any()
        total = np.abs(one.shares).sum()
        assert total == pytest.approx(1) or (total == 0 and not one.values.any())
    for name in {"attention", "rollout"} & set(methods):
        one = found.found[name]
        assert one.values.sum() + one.elsewhere == pytest.approx(1, abs=1e-5)
        assert (one.elsewhere > 0) == bool(model.cut.prefix)


def test_all_methods_are_found_by_default_and_heard_one_by_one(model):
    heard = []
    found = evidence(model, TEXT, heard=heard.append)
    assert list(found.found) == heard == (OF_A_BILSTM if model.kind == "bilstm" else OF_A_TRANSFORMER)
    assert found.completeness_gap == found.found["integrated_gradients"].completeness_gap is not None


def test_a_word_has_what_its_tokens_have_together(model):
    asked = subject(model, TEXT)
    found = evidence(model, TEXT, ["gradient"]).found["gradient"]
    of_tokens = gradients.input_x_gradient(asked)
    for word in range(len(asked.words)):
        assert found.values[word] == pytest.approx(of_tokens[asked.word_of == word].sum())
    assert max(np.bincount(asked.word_of[asked.word_of >= 0])) > 1
    assert found.values.sum() + found.elsewhere == pytest.approx(of_tokens.sum())


def test_attention_is_what_the_last_layer_pools(models):
    weights = read(models["imdb-encoder"], "not good , good").windows[0].weights
    mean = evidence(models["imdb-encoder"], "not good , good", ["attention"]).found["attention"]
    np.testing.assert_allclose(mean.values, weights[1].mean((0, 1)), atol=1e-7)
    weights = read(models["cls"], "not good , good").windows[0].weights
    first = evidence(models["cls"], "not good , good", ["attention"]).found["attention"]
    np.testing.assert_allclose(first.values, weights[0, :, 0, 1:].mean(0), atol=1e-7)
    assert first.elsewhere == pytest.approx(weights[0, :, 0, 0].mean(), abs=1e-7)
    strip = evidence(models["imdb-bilstm"], "not good , good", ["attention"]).found["attention"]
    np.testing.assert_allclose(strip.values, read(models["imdb-bilstm"], "not good , good").windows[0].weights[0, 0, 0])


def test_a_network_without_residual_sums_is_rolled_out_without(with_knobs):
    model = with_knobs("imdb-encoder", residual=False)
    weights = read(model, "not good , good").windows[0].weights
    found = evidence(model, "not good , good", ["rollout"]).found["rollout"]
    np.testing.assert_allclose(found.values, rollout(weights, residual=False).mean(0), atol=1e-6)
    assert np.abs(found.values - rollout(weights).mean(0)).max() > 1e-4


def test_what_does_not_apply_and_what_is_unknown_are_refused(models):
    with pytest.raises(ValueError, match="rollout: it is of self-attention, which imdb-bilstm does not have"):
        evidence(models["imdb-bilstm"], TEXT, ["rollout"])
    with pytest.raises(ValueError, match="evidence: got 'lime', expected one of attention, rollout"):
        evidence(models["imdb-bilstm"], TEXT, ["lime"])
    with pytest.raises(ValueError, match="expected a review of at least one word"):
        evidence(models["imdb-bilstm"], " ")


def test_one_word_is_all_the_evidence(models):
    for name in ("one-head", "imdb-bilstm"):
        for method in ("attention", "occlusion"):
            assert np.abs(evidence(models[name], "good", [method]).found[method].shares).tolist() == [1.0]


def test_notes_say_what_the_figures_do_not(models, monkeypatch):
    monkeypatch.setattr(occlusion, "MOST_VARIANTS", 4)
    monkeypatch.setattr(gradients, "MOST_GAP", 0.0)
    monkeypatch.setattr(gradients, "MOST_STEPS", 32)
    found = evidence(models["one-head"], TEXT, ["occlusion", "integrated_gradients", "attention"]).found
    assert found["occlusion"].note == "words were hidden 2 at a time, since there are 7"
    assert found["integrated_gradients"].note.startswith("32 steps, whose sum misses what it explains by ")
    assert found["integrated_gradients"].note.endswith("more than the 0% that it should")
    assert found["attention"].note is None


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_classifiers_of_others_have_evidence(models, kind, tmp_path):
    from transformers import AutoModelForSequenceClassification

    from tests.networks.test_pretrained import CONFIGS

    torch.manual_seed(0)
    network = AutoModelForSequenceClassification.from_config(CONFIGS[kind], attn_implementation=NAME)
    _number_layers(network)
    tokenizer, vocab_size = models["cls"].tokenizer, network.config.vocab_size
    network.resize_token_embeddings(max(tokenizer.get_vocab_size(), vocab_size), mean_resizing=False)
    model = Pretrained(
        name=kind, folder=tmp_path, network=network.eval().requires_grad_(False), tokenizer=tokenizer,
        label_names=("a", "b", "c"), cut=models["cls"].cut,
    )  # fmt: skip
    found = evidence(model, "good film , not bad")
    assert list(found.found) == OF_A_TRANSFORMER and found.completeness_gap < gradients.MOST_GAP
    assert all(np.isfinite(one.values).all() and one.values.any() for one in found.found.values())
