from itertools import combinations

import numpy as np
import pytest
import torch

from core.inspection import deletions
from core.inspection.deletions import least_deletions
from core.inspection.subject import subject
from tests.inspection.linear import bag_of_words

WEIGHTS = {"good": 2.0, "not": 0.5, "plot": 1.0, "film": 0.8, "bad": -1.5, "dull": -1.0, "terrible": -1.6}
TEXTS = ["good film bad", "good plot film , not bad", "good good good terrible", "plot bad film not dull film not", "terrible"]


def turns(asked, gone) -> bool:
    """Whether the answer is another without these words: one pass through the network, of what is left."""
    hidden = np.isin(asked.word_of, gone)
    ids = asked.ids[~hidden] if not hidden.all() else [asked.model.tokenizer.token_to_id("[MASK]")]
    with torch.no_grad():
        logits = asked.model.network(torch.as_tensor(np.array(ids))[None].long()).logits[0]
    return int(logits.argmax()) != asked.target


def smallest(asked, most: int) -> int | None:
    """The size of the smallest set of words that turns the answer, of all that there are."""
    words = range(len(asked.words))
    sizes = (n for n in range(1, most + 1) if any(turns(asked, gone) for gone in combinations(words, n)))
    return next(sizes, None)


@pytest.mark.parametrize("text", TEXTS)
def test_of_a_bag_of_words_the_set_is_the_smallest_there_is(models, text):
    asked = subject(bag_of_words(models["one-head"], WEIGHTS), text)
    found = least_deletions(asked)
    expected = smallest(asked, len(asked.words))
    assert (len(found.words) or None) == expected
    assert found.flips == (expected is not None) and (found.label != asked.label) == found.flips


@pytest.mark.parametrize("remove", [True, False])
def test_no_word_of_a_set_can_be_put_back(model, remove):
    """Of random networks, for whatever they turn at."""
    turned = 0
    for text in ("good film , not bad", "a dull and terrible film", "the plot is good and the film is not bad at all"):
        asked = subject(model, text)
        found = least_deletions(asked, remove=remove)
        turned += found.flips
        everything = [list(found.words), *([w for w in found.words if w != back] for back in found.words if found.words[1:])]
        answers = [asked.logits([asked.without(gone, remove=remove)]).argmax() for gone in everything]
        assert (answers[0] != asked.target) == found.flips and all(answer == asked.target for answer in answers[1:])
    assert turned or model.name != "imdb-encoder"  # or nothing was tried


def test_what_need_not_have_gone_is_put_back(models):
    asked = subject(
        bag_of_words(models["one-head"], {"good": 2.0, "plot": 1.9, "film": 1.9, "bad": -3.0}), "good plot film bad"
    )
    assert least_deletions(asked).words == (0, 1)
    search = deletions._Search(asked, True)
    assert search.without_the_superfluous([0, 1, 2]) == [0, 2]  # 2.8 - 3.9 without these; with either of them back above 0


def test_a_tie_is_what_the_model_answers(models):
    """Of equal logits the first class counts."""
    for text, flips in (("good", True), ("bad", False)):
        found = least_deletions(subject(bag_of_words(models["one-head"], WEIGHTS), text))
        assert (found.flips, found.label) == (flips, "negative")


def test_beyond_the_cap_none_are_found(models, monkeypatch):
    asked = subject(bag_of_words(models["one-head"], WEIGHTS), "good good good terrible")
    assert len(least_deletions(asked).words) == 3
    monkeypatch.setattr(deletions, "MOST_DELETED", 2)
    found = least_deletions(asked)
    assert not found.flips and found.words == () and found.label == asked.label and len(found.probabilities) == 1


def test_only_candidates_are_tried(models, monkeypatch):
    asked = subject(bag_of_words(models["one-head"], WEIGHTS), "good plot film bad")
    monkeypatch.setattr(deletions, "MOST_CANDIDATES", 1)
    assert least_deletions(asked).words == ()  # without "good" it is 1 + 0.8 - 1.5
    monkeypatch.setattr(deletions, "MOST_CANDIDATES", 2)
    assert least_deletions(asked).words == (0, 1)


def test_probabilities_are_of_the_way_there(models):
    found = least_deletions(subject(bag_of_words(models["one-head"], WEIGHTS), "good plot film bad"))
    odds = np.array([2.3, 0.3, -0.7])
    np.testing.assert_allclose(found.probabilities, 1 / (1 + np.exp(-odds)), rtol=1e-5)
    assert found.words == (0, 1)


def test_words_that_were_not_read_are_no_candidates(model):
    asked = subject(model, "good film " * 40)
    assert set(least_deletions(asked).words) <= set(asked.read.tolist())
