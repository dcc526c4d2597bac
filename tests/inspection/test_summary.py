import numpy as np
import pytest
from scipy.stats import kendalltau

from core.inspection.summary import agreement, agreements, rests_on
from core.records import Attribution, Evidence, Prediction, Word

TEXT = "Superb, never dull but the end drags"
SPANS = [(0, 6), (6, 7), (8, 13), (14, 18), (19, 22), (23, 26), (27, 30), (31, 36)]


def evidence(unread: int = 0, **values: list[float]) -> Evidence:
    probabilities, n = {"negative": 0.032, "positive": 0.968}, len(SPANS)
    prediction = Prediction(label="positive", probabilities=probabilities, logits=(0.0, 3.4), tokens_read=8, tokens_left_out=0)
    words = tuple(Word(span=span, read=i < n - unread, unknown=False) for i, span in enumerate(SPANS))
    found = {name: Attribution(values=np.array(row, dtype=float)) for name, row in values.items()}
    return Evidence(text=TEXT, prediction=prediction, words=words, found=found)


def test_the_strongest_words_are_named_and_neighbours_together():
    found = evidence(occlusion=[3.0, 0.1, 1.0, 0.9, 0.1, 0, 0.2, -2.0])
    assert rests_on(found) == "positive, 96.8%; rests mostly on 'Superb'"
    found = evidence(occlusion=[1.5, 0.1, 1.0, 0.9, 0.1, 0, 0.2, -2.0])
    assert rests_on(found) == "positive, 96.8%; rests mostly on 'Superb' and 'never'"
    found = evidence(occlusion=[1.2, 0.1, 1.0, 0.9, 0.5, 0.5, 0.5, -2.0])
    assert rests_on(found) == "positive, 96.8%; rests mostly on 'Superb' and 'never dull'"


def test_what_rests_on_many_words_is_said_to():
    found = evidence(occlusion=[1.0, 0.9, 0.9, 1.1, 0.9, 0.9, 0.9, 0.9])
    assert rests_on(found) == "positive, 96.8%; rests on many words, most of all on 'dull' and 'Superb,'"


def test_equal_words_are_named_once():
    found = evidence(occlusion=[0.0] * 8)
    words = tuple(Word(span=span, read=True, unknown=False) for span in ((0, 3), (4, 7), (8, 11)))
    found = Evidence(
        text="not a, not", prediction=found.prediction, found={"gradient": Attribution(values=np.array([1.0, 0.0, 1.0]))},
        words=(words[0], Word(span=(4, 5), read=True, unknown=False), Word(span=(7, 10), read=True, unknown=False)),
    )  # fmt: skip
    assert rests_on(found) == "positive, 96.8%; rests mostly on 'not'"


def test_without_a_word_for_it_and_without_signs_no_word_is_named():
    assert rests_on(evidence(gradient=[-1.0] * 8)) == "positive, 96.8%; no word speaks for it"
    assert rests_on(evidence(attention=[0.125] * 8)) == "positive, 96.8%"


def test_the_first_of_the_methods_tells():
    low, high = [0.0] * 7 + [1.0], [1.0] + [0.0] * 7
    assert rests_on(evidence(gradient=high, integrated_gradients=high, occlusion=low)).endswith("mostly on 'drags'")
    assert rests_on(evidence(gradient=high, attention=low)).endswith("mostly on 'Superb'")
    assert rests_on(evidence(occlusion=low, weights=high)).endswith("mostly on 'Superb'")


def test_agreement_by_scipy_and_by_hand():
    falling, signed = [8.0, 7, 6, 5, 4, 3, 2, 1], [-8.0, 1, 6, -5, 4, 3, 2, 7]
    found = evidence(attention=falling, gradient=signed, occlusion=falling[::-1])
    pairs = {(pair.first, pair.second): pair for pair in agreements(found)}
    assert list(pairs) == [("attention", "gradient"), ("attention", "occlusion"), ("gradient", "occlusion")]
    expected = kendalltau(falling, np.abs(signed)).statistic
    assert pairs["attention", "gradient"].tau == pytest.approx(expected)
    assert pairs["attention", "gradient"].overlap == 4  # all but "," of the five
    assert pairs["attention", "occlusion"].tau == pytest.approx(-1) and pairs["attention", "occlusion"].overlap == 2
    assert agreement(found).endswith("; attention and occlusion agree least, at -1.00")
    assert agreement(found).startswith("The methods hardly agree on which words matter: Kendall's tau is ")


def test_two_methods_that_agree_have_no_least():
    row = [8.0, 7, 6, 5, 4, 3, 2, 1]
    assert agreement(evidence(attention=row, gradient=row)) == (
        "The methods agree on which words matter: Kendall's tau is 1.00 on average, and of the 5 strongest words of one, "
        "5.0 are among those of another"
    )
    few = evidence(unread=3, attention=row, gradient=row)  # all five that were read are the strongest of either
    assert agreement(few) == "The methods agree on which words matter: Kendall's tau is 1.00 on average"


def test_words_that_were_not_read_count_for_nothing():
    found = evidence(unread=6, attention=[2, 1, 0, 0, 0, 0, 0, 0], gradient=[1, 2, 0, 0, 0, 0, 0, 0])
    (pair,) = agreements(found)
    assert (pair.tau, pair.n_top, pair.overlap) == (pytest.approx(-1), 2, 2)


def test_a_method_that_tells_no_words_apart_has_no_tau():
    assert agreement(evidence(attention=[0.125] * 8, gradient=[1.0] + [0.0] * 7)) == ""
    assert agreement(evidence(gradient=[1.0] + [0.0] * 7)) == ""
