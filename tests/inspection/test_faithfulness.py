import numpy as np
import pytest

from core.inspection.evidence import evidence
from core.inspection.faithfulness import RANDOM_ORDERS, Areas, areas, faithfulness, verdict
from core.inspection.reading import read
from core.inspection.subject import subject
from core.records import Faithfulness
from tests.inspection.linear import bag_of_words

WEIGHTS = {"good": 3.0, "like": 2.0, "film": 1.0, "bad": -1.0, "dull": -2.0}
TEXT = "bad film dull good the like plot cast"


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


@pytest.fixture
def bag(models):
    return bag_of_words(models["one-head"], WEIGHTS)


@pytest.mark.parametrize("remove", [False, True])
def test_the_curves_of_a_bag_of_words_follow_its_weights(bag, remove):
    found = faithfulness(bag, evidence(bag, TEXT, ["gradient", "occlusion"]), remove=remove)
    weights = np.array([WEIGHTS.get(word, 0.0) for word in TEXT.split()])
    order = np.argsort(-weights, kind="stable")
    falling = sigmoid(weights.sum() - np.r_[0, np.cumsum(weights[order])])
    rising = sigmoid(weights.sum() - np.r_[0, np.cumsum(weights[order[::-1]])])
    np.testing.assert_allclose(found.shares, np.arange(9) / 8)
    for method in ("gradient", "occlusion"):
        np.testing.assert_allclose(found.deletion[method], falling, atol=1e-6)
        np.testing.assert_allclose(found.reversed[method], rising, atol=1e-6)
        assert areas(found, method).verdict == "better than random"
    assert found.removed == remove


def test_evidence_without_a_difference_between_words_is_no_better_than_random(bag):
    found = faithfulness(bag, evidence(bag, TEXT, ["attention"]))
    assert areas(found, "attention").verdict == "no better than random"


def test_random_orders_are_many_and_the_same_again(bag):
    asked = evidence(bag, TEXT, ["gradient"])
    found, again = faithfulness(bag, asked), faithfulness(bag, asked)
    assert found.random.shape == (RANDOM_ORDERS, 9)
    np.testing.assert_array_equal(found.random, again.random)
    assert len({tuple(curve) for curve in found.random.tolist()}) == RANDOM_ORDERS
    worst, best = found.reversed["gradient"], found.deletion["gradient"]
    assert (found.random <= worst + 1e-9).all() and (found.random >= best - 1e-9).all()


def test_curves_go_from_the_whole_review_to_nothing_of_it(model):
    text = "the film is good , not unwatchable " * 6
    found = faithfulness(model, evidence(model, text, ["attention"]))
    asked, answer = subject(model, text), read(model, text).prediction
    nothing = asked.log_odds([asked.without(asked.read)])
    assert len(found.shares) == 11 and (found.shares[0], found.shares[-1]) == (0, 1)
    for curve in (found.deletion["attention"], found.reversed["attention"], *found.random):
        assert curve[0] == pytest.approx(answer.probabilities[answer.label], abs=1e-6)
        assert curve[-1] == pytest.approx(sigmoid(nothing)[0], abs=1e-6)


def test_one_word_has_two_ends(models):
    for name in ("one-head", "imdb-bilstm"):
        for remove in (False, True):
            found = faithfulness(models[name], evidence(models[name], "good", ["attention"]), remove=remove)
            assert found.shares.tolist() == [0, 1]
            assert areas(found, "attention").verdict == "cannot be told: every order does the same"


def test_areas_by_hand():
    shares = np.array([0.0, 0.25, 1.0])
    found = Faithfulness(
        shares=shares, deletion={"x": np.array([1.0, 0.2, 0.0])}, reversed={"x": np.array([1.0, 1.0, 0.0])},
        random=np.array([[1.0, 0.6, 0.0], [1.0, 0.4, 0.0]]), removed=False,
    )  # fmt: skip
    one = areas(found, "x")
    assert (one.deletion, one.insertion) == pytest.approx((0.15 + 0.075, 0.25 + 0.375))
    assert (one.random_low, one.random_high) == pytest.approx((0.175 + 0.15, 0.2 + 0.225))
    assert one.faithful


@pytest.mark.parametrize(
    ("deletion", "insertion", "expected"),
    [
        (0.1, 0.9, "better than random"),
        (0.1, 0.6, "better than random in deletion alone"),
        (0.5, 0.9, "better than random in insertion alone"),
        (0.5, 0.5, "no better than random"),
        (0.9, 0.1, "no better than random"),
    ],
)
def test_verdicts(deletion, insertion, expected):
    one = Areas(deletion=deletion, insertion=insertion, random=np.array([0.4, 0.7]))
    assert one.verdict == expected and one.faithful == (expected == "better than random")
    assert verdict(deletion=deletion < 0.4, insertion=insertion > 0.7) == expected
