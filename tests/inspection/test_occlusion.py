import numpy as np
import torch

from core.inspection import occlusion
from core.inspection.occlusion import occluded
from core.inspection.subject import subject
from tests.inspection.linear import bag_of_words

TEXT = "the unwatchable film is good , not bad " + "dull " * 20 + "plot"


def by_brute_force(model, asked) -> list[float]:
    """One pass for each word, straight through the network."""
    mask, target = model.tokenizer.token_to_id("[MASK]"), asked.target

    def odds(ids: list[int]) -> float:
        with torch.no_grad():
            p = model.network(torch.tensor([ids])).logits[0].double().softmax(-1)[target]
        return float(torch.log(p / (1 - p)))

    ids, found = asked.ids.tolist(), []
    for word in range(len(asked.words)):
        hidden = [mask if own == word else id for id, own in zip(ids, asked.word_of.tolist(), strict=True)]
        found.append(odds(ids) - odds(hidden))
    return found


def test_occlusion_is_that_of_brute_force(model):
    asked = subject(model, TEXT)
    found, together = occluded(asked)
    assert together == 1 and any(not word.read for word in asked.words)
    np.testing.assert_allclose(found, by_brute_force(model, asked), atol=2e-5)


def test_of_a_linear_network_it_is_the_weight(models):
    weights = {"good": 2.0, "bad": -1.5, "[MASK]": 0.5}
    asked = subject(bag_of_words(models["one-head"], weights), "good , bad , film")
    np.testing.assert_allclose(occluded(asked)[0], [1.5, -0.5, -2.0, -0.5, -0.5], atol=1e-5)


def test_beyond_the_cap_neighbours_are_hidden_together(models, monkeypatch):
    asked = subject(bag_of_words(models["one-head"], {"good": 3.0, "bad": -1.0}), "good bad film plot good")
    monkeypatch.setattr(occlusion, "MOST_VARIANTS", 3)
    found, together = occluded(asked)
    assert together == 2
    np.testing.assert_allclose(found, [1.0, 1.0, 0.0, 0.0, 3.0], atol=1e-6)
