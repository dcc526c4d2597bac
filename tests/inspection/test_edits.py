from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.inspection import edits
from core.inspection.edits import ABSENT, aligned, contrast
from core.inspection.occlusion import occluded, weighed
from core.inspection.subject import subject
from tests.inspection.linear import bag_of_words

WEIGHTS = {"good": 2.0, "bad": -1.5, "film": 0.25}
FEW = st.lists(st.sampled_from("abc"), max_size=12)


def in_words(first: str, second: str) -> list[tuple[str, str]]:
    """The pairs of two texts of single words; a dash beside what is in one alone."""
    a, b = first.split(), second.split()
    return [("-" if i == ABSENT else a[i], "-" if j == ABSENT else b[j]) for i, j in aligned(a, b).tolist()]


@pytest.mark.parametrize(("first", "second", "expected"), [
    ("a good film", "a good film", ["aa", "good good", "film film"]),
    ("a good film", "a very good film", ["aa", "- very", "good good", "film film"]),
    ("a good film", "a film", ["aa", "good -", "film film"]),
    ("a good film", "a bad film", ["aa", "good -", "- bad", "film film"]),
    ("very very good", "very good", ["very very", "very -", "good good"]),
    ("", "a", ["- a"]),
    ("a", "", ["a -"]),
])  # fmt: skip
def test_words_stand_beside_their_like(first, second, expected):
    pairs = [tuple(pair.split()) if " " in pair else tuple(pair) for pair in expected]
    assert in_words(first, second) == pairs


@settings(max_examples=200, deadline=None)
@given(first=FEW, second=FEW, most=st.sampled_from([2, 2_000]))
def test_both_texts_are_there_whole_and_in_order(first, second, most):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edits, "MOST_COMPARED", most)
        pairs = aligned(first, second)
    for column, words in zip(pairs.T, (first, second), strict=True):
        assert column[column != ABSENT].tolist() == list(range(len(words)))
    assert all(first[i] == second[j] for i, j in pairs.tolist() if ABSENT not in (i, j))
    assert not (pairs == ABSENT).all(-1).any()


@settings(max_examples=100, deadline=None)
@given(first=FEW, second=FEW)
def test_as_many_words_as_can_be_stand_beside_their_like(first, second):
    @cache
    def longest(i: int, j: int) -> int:
        if i == len(first) or j == len(second):
            return 0
        return max(longest(i + 1, j), longest(i, j + 1), longest(i + 1, j + 1) + (first[i] == second[j]))

    assert sum(ABSENT not in pair for pair in aligned(first, second).tolist()) == longest(0, 0)


def test_a_text_of_one_word_many_times_is_no_trouble():
    pairs = aligned(["very"] * 50_000, ["very"] * 49_999)
    assert len(pairs) == 50_000 and (pairs == ABSENT).sum() == 1
    apart = aligned(["x", *["very"] * 5_000, "y"], ["u", *["very"] * 5_000, "v"])
    assert len(apart) == 2 * 5_002  # too long to compare, and so wholly different


def test_every_probe_is_put_together_again(models, probe):
    """From the words of both texts and what stands between them."""
    first = weighed(models["one-head"], probe)
    both = contrast(first, weighed(models["one-head"], f"{probe} indeed", first.label))
    for one, column in zip((both.first, both.second), both.pairs.T, strict=True):
        spans = [one.words[place].span for place in column.tolist() if place != ABSENT]
        edges = [0, *(edge for span in spans for edge in span), len(one.text)]
        assert edges == sorted(edges)
        pieces = [one.text[start:end] for start, end in zip(edges, edges[1:], strict=False)]
        assert "".join(pieces) == one.text and pieces[1::2] == one.typed
    assert both.words[-1] == "indeed" and not both.gone and both.new == [len(both.second.words) - 1]


def test_a_text_against_itself_is_exactly_nothing(model):
    text = "the unwatchable film is good , not bad at all , and the plot is dull " * 3
    label = weighed(model, text).label
    both = contrast(weighed(model, text), weighed(model, text, label))
    assert any(not word.read for word in both.first.words) and np.abs(both.values[~np.isnan(both.values)]).max() > 0
    np.testing.assert_array_equal(np.isnan(both.difference), [not word.read for word in both.first.words])
    assert (both.difference[~np.isnan(both.difference)] == 0).all()  # bit for bit
    assert both.first.log_odds == both.second.log_odds and not both.gone and not both.new


def test_the_difference_is_that_of_a_bag_of_words(models):
    bag = bag_of_words(models["one-head"], WEIGHTS)
    first, second = weighed(bag, "good film bad", "positive"), weighed(bag, "really good bad", "positive")
    both = contrast(first, second)
    assert both.words == ["really", "good", "film", "bad"]
    np.testing.assert_allclose(both.values, [[np.nan, 2, 0.25, -1.5], [0, 2, np.nan, -1.5]], atol=1e-6)
    np.testing.assert_allclose(both.difference, [0, 0, -0.25, 0], atol=1e-6)
    assert (first.log_odds, second.log_odds) == pytest.approx((0.75, 0.5))
    assert both.gone == [1] and both.new == [0]


def test_evidence_may_be_towards_a_class_that_is_not_predicted(models):
    bag = bag_of_words(models["one-head"], WEIGHTS)
    found, other = weighed(bag, "good film"), weighed(bag, "good film", "negative")
    assert (found.label, other.label) == ("positive", "negative")
    np.testing.assert_allclose(other.values, -found.values, atol=1e-6)
    assert other.log_odds == pytest.approx(-found.log_odds) and other.probability == pytest.approx(1 - found.probability)


def test_what_is_weighed_is_occlusion(model):
    asked = subject(model, "a dull and terrible film")
    np.testing.assert_array_equal(weighed(model, "a dull and terrible film").values, occluded(asked)[0])


def test_other_classes_are_refused(models):
    bag = bag_of_words(models["one-head"], WEIGHTS)
    with pytest.raises(ValueError, match="bag knows no class 'neutral', only negative, positive"):
        weighed(bag, "good", "neutral")
    with pytest.raises(ValueError, match="expected it for one class"):
        contrast(weighed(bag, "good", "negative"), weighed(bag, "good", "positive"))
