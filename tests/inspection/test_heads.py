import numpy as np
import pytest
import torch

from core.inspection.heads import Importance, distances, effects, entropies, heads, importance, off
from core.inspection.reading import read
from core.inspection.subject import log_odds, subject

TEXT = "The film is good, not bad"


@pytest.mark.parametrize("how", ["zero", "mean"])
def test_the_effect_of_a_head_is_what_its_switch_does(models, how):
    model = models["imdb-encoder"]
    asked = subject(model, TEXT)
    ids = torch.from_numpy(asked.ids).long()[None]
    found = effects(asked, how)
    for layer, head in np.ndindex(2, 3):
        gain, mean = torch.ones(2, 3), torch.zeros(2, 3, dtype=torch.bool)
        gain[layer, head], mean[layer, head] = 0, True
        switched = {"head_gain": gain} if how == "zero" else {"head_mean": mean}
        before, after = (log_odds(model.network(ids, **given).logits, asked.target) for given in ({}, switched))
        assert found[layer, head] == pytest.approx(float(before - after), abs=1e-5)
    assert len({round(effect, 6) for effect in found.flatten()}) == 6


def test_a_reading_with_heads_off_is_another_answer_and_other_maps(models):
    model = models["imdb-encoder"]
    before, after = read(model, TEXT), read(model, TEXT, **off((2, 3), [(0, 1), (0, 2)]))
    assert before.prediction.logits != after.prediction.logits
    np.testing.assert_array_equal(before.windows[0].weights[0], after.windows[0].weights[0])
    assert np.abs(before.windows[0].weights[1] - after.windows[0].weights[1]).max() > 1e-6
    assert read(model, TEXT, **off((2, 3), [])).prediction == before.prediction


def test_entropy_and_distance_by_hand():
    weights = np.array([[[[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.25, 0.25, 0.5]]]])
    assert entropies(weights)[0, 0] == pytest.approx((0 + np.log(2) + 1.5 * np.log(2)) / 3)
    assert distances(weights)[0, 0] == pytest.approx((0 + 0.5 + 0.75) / 3)


def test_shares_are_of_kinds_of_tokens(models):
    weights = read(models["cls"], TEXT).windows[0].weights
    tokens = ["[CLS]", "the", "film", "is", "good", ",", "not", "bad"]
    assert list(read(models["cls"], TEXT).windows[0].tokens) == tokens
    received = weights.mean(2)
    for one in heads(models["cls"], TEXT):
        row = received[one.layer, one.head]
        assert one.added == pytest.approx(row[0], abs=1e-6)
        assert one.first == pytest.approx(row[1], abs=1e-6)
        assert one.signs == pytest.approx(row[5], abs=1e-6)
        assert one.stop_words == pytest.approx(row[[1, 3, 6]].sum(), abs=1e-6)


def test_every_head_is_there_once(models):
    found = heads(models["imdb-encoder"], TEXT)
    assert [(one.layer, one.head) for one in found] == [(layer, head) for layer in range(2) for head in range(3)]
    assert all(one.added == 0 for one in found)


def test_importance_over_a_sample_by_brute_force(models):
    model = models["cls"]
    texts, labels = ["good film", "the plot is not bad at all", "dull"], [0, 1, 1]
    heard = []
    found = importance(model, texts, labels, progress=heard.append)

    def logits(text: str, **given) -> torch.Tensor:
        return model.network(torch.from_numpy(subject(model, text).ids).long()[None], **given).logits[0].double()

    whole = [logits(text) for text in texts]
    assert found.accuracy == np.mean([int(one.argmax()) == label for one, label in zip(whole, labels, strict=True)])
    for head in range(2):
        gain = torch.ones(1, 2)
        gain[0, head] = 0
        without = [logits(text, head_gain=gain) for text in texts]
        right = [int(one.argmax()) == label for one, label in zip(without, labels, strict=True)]
        moved = [abs(float((a[0] - a[1]) - (b[0] - b[1]))) for a, b in zip(whole, without, strict=True)]
        assert found.without[0, head] == np.mean(right)
        assert found.effect[0, head] == pytest.approx(np.mean(moved), abs=1e-5)
    assert found.n == 3 and sum(heard) == 3 * (1 + 2)


def test_a_head_that_is_missed_is_told_from_one_that_is_not():
    labels = np.arange(200) % 2
    answers_without = np.stack([labels, np.where(np.arange(200) < 20, 1 - labels, labels)])[None]
    found = Importance(labels=labels, answers=labels, answers_without=answers_without, effect=np.zeros((1, 2)), n_classes=2)
    idle, missed = found.differences()
    assert (idle.value, idle.p, idle.is_shown) == (0, 1, False)
    assert missed.value == pytest.approx(-0.1) and missed.low < -0.1 < missed.high < 0
    assert missed.p == pytest.approx(2 * 2 * 0.5**20)  # 20 to 0, two-sided, and the smaller of two
    np.testing.assert_allclose(found.without, [[1.0, 0.9]])


def test_what_has_no_heads_and_a_sample_of_nothing_are_refused(models):
    for text in (TEXT, "good"):
        with pytest.raises(ValueError, match="imdb-bilstm: it has no self-attention, and so no heads"):
            heads(models["imdb-bilstm"], text)
    with pytest.raises(ValueError, match="got no review"):
        importance(models["cls"], [], [])
