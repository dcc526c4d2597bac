from dataclasses import replace

import numpy as np
import pytest
import torch

from core.inspection import gradients
from core.inspection.gradients import input_x_gradient, integrated
from core.inspection.reading import read
from core.inspection.subject import special_id, subject
from tests.inspection.linear import bag_of_words

WEIGHTS = {"good": 2.0, "bad": -1.5, "film": 0.25, "[PAD]": 0.5}
TEXT = "the film is good , not bad"


def test_of_a_linear_network_gradients_are_exact(models):
    asked = subject(bag_of_words(models["one-head"], WEIGHTS), TEXT)
    assert asked.reading.prediction.label == "positive"
    tokens = asked.reading.windows[0].tokens
    found = integrated(asked)
    np.testing.assert_allclose(input_x_gradient(asked), [WEIGHTS.get(token, 0.0) for token in tokens], atol=1e-6)
    np.testing.assert_allclose(found.values, [WEIGHTS.get(token, 0.0) - 0.5 for token in tokens], atol=1e-6)
    assert found.gap < 1e-5 and found.steps == gradients.FEWEST_STEPS


def test_signs_are_towards_the_predicted_class(models):
    asked = subject(bag_of_words(models["one-head"], {"good": -2.0, "bad": -1.5}), TEXT)
    assert asked.reading.prediction.label == "negative"
    expected = [{"good": 2.0, "bad": 1.5}.get(token, 0.0) for token in asked.reading.windows[0].tokens]
    np.testing.assert_allclose(input_x_gradient(asked), expected, atol=1e-6)


def test_what_is_integrated_adds_up(models, with_knobs):
    cliff = with_knobs("imdb-encoder", positional="alibi", norm="pre")  # from nothing on, a first norm jumps at once
    for model in (*models.values(), cliff):
        asked = subject(model, TEXT)
        nothing = np.where(asked.word_of < 0, asked.ids, special_id(model, "pad")).astype(asked.ids.dtype)
        whole, empty = asked.log_odds([asked.ids, nothing])
        found = integrated(asked)
        assert abs(found.values.sum() - (whole - empty)) == pytest.approx(found.gap * abs(whole - empty), abs=1e-5)
        assert (found.gap < gradients.MOST_GAP) == (model is not cliff)


def test_an_added_token_is_part_of_the_baseline(models):
    asked = subject(models["cls"], TEXT)
    assert asked.reading.windows[0].tokens[0] == "[CLS]" and integrated(asked).values[0] == 0
    assert input_x_gradient(asked)[0] != 0


def test_steps_are_doubled_until_it_adds_up_or_there_are_most(models, monkeypatch):
    asked = subject(models["imdb-encoder"], TEXT)
    monkeypatch.setattr(gradients, "FEWEST_STEPS", 1)
    monkeypatch.setattr(gradients, "MOST_GAP", 2e-3)
    fine = integrated(asked)
    assert fine.gap < 2e-3 and fine.steps in (4, 8, 16, 32, 64, 128, 256)
    monkeypatch.setattr(gradients, "MOST_STEPS", 2)
    coarse = integrated(asked)
    assert coarse.gap > 2e-3 and coarse.steps == 2


def test_steps_computed_a_few_at_a_time_are_the_same(models, monkeypatch):
    for name in ("imdb-encoder", "imdb-bilstm"):
        asked = subject(models[name], TEXT)
        together = integrated(asked)
        monkeypatch.setattr(gradients, "TOKENS_AT_ONCE", 3 * len(asked.ids))
        np.testing.assert_allclose(integrated(asked).values, together.values, atol=1e-6)


def test_the_gradient_is_that_of_differences(models):
    for model in models.values():
        asked = subject(model, TEXT)
        function = gradients.OfEmbeddings(asked)
        x, _ = function.embedded()
        found, step = input_x_gradient(asked), 1e-2
        for place in (0, 3):
            moved = torch.zeros_like(x)
            moved[0, place] = x[0, place]
            slope = (function(x + step * moved) - function(x - step * moved)) / (2 * step)
            assert found[place] == pytest.approx(float(slope), abs=2e-3)


def test_the_shared_network_is_left_as_it_is(models):
    for name in ("imdb-encoder", "imdb-bilstm"):
        model, before = models[name], read(models[name], TEXT).prediction
        integrated(subject(model, TEXT))
        assert not any(module.training or module._forward_hooks for module in model.network.modules())
        assert not any(weights.requires_grad or weights.grad is not None for weights in model.network.parameters())
        assert read(model, TEXT).prediction == before


def test_an_lstm_is_asked_in_training_mode_which_changes_no_number(with_knobs):
    model = with_knobs("imdb-bilstm", dropout=0.5, embedding_dropout=0.5, token_dropout=0.5)
    asked = subject(model, TEXT)
    function = gradients.OfEmbeddings(asked)
    training = {type(module).__name__ for module in function.network.modules() if module.training}
    assert training == {"LSTM"}
    x, _ = function.embedded()
    with torch.no_grad():
        assert float(function(x)) == pytest.approx(float(asked.log_odds([asked.ids])[0]), abs=1e-6)


def test_a_tokeniser_without_padding_is_refused(models):
    class Bare:
        def token_to_id(self, name: str) -> None:
            return None

    with pytest.raises(ValueError, match=r"bare: its tokeniser has no \[PAD\] or <pad>"):
        special_id(replace(models["one-head"], name="bare", tokenizer=Bare()), "pad")  # type: ignore[arg-type]
