import math
from statistics import NormalDist

import numpy as np
import pytest
from scipy.special import softmax as scipy_softmax
from scipy.stats import bootstrap, chi2, ttest_1samp, ttest_rel
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint
from statsmodels.stats.proportion import test_proportions_2indep as score_test

from core.records import Estimate
from core.statistics import (
    Difference,
    Z,
    accuracy_gain,
    apart,
    difference,
    estimate,
    f1,
    holm,
    mcnemar,
    mean_of_seeds,
    over_seeds,
    share,
    softmax,
    tango,
    verdict,
    wilson,
)

COUNTS = [(0, 1), (1, 1), (0, 7), (3, 7), (7, 7), (50, 100), (891, 1001), (22_500, 25_000)]


def accuracy(right: np.ndarray, there: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Share of predictions that are right: the plainest score that a bootstrap can be asked for."""
    return right.sum(1) / there.sum(1)


def closed_form(successes: int, n: int) -> tuple[float, float]:
    """Wilson 1927: both roots p of (share - p)^2 = z^2 p (1 - p) / n."""
    z = NormalDist().inv_cdf(0.975)
    share = successes / n
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * (share * (1 - share) / n + z**2 / (4 * n**2)) ** 0.5
    return centre - half, centre + half


def test_softmax_is_that_of_scipy_and_overflows_for_no_logit():
    logits = np.array([[0.0, np.log(3), -1.0], [-500.0, 800.0, 799.0]], dtype=np.float32)
    np.testing.assert_allclose(softmax(logits), scipy_softmax(logits.astype(np.float64), axis=-1), rtol=1e-12)
    np.testing.assert_array_equal(softmax(logits[0]), softmax(logits)[0])


@pytest.mark.parametrize(("successes", "n"), COUNTS)
def test_wilson_is_the_closed_formula(successes, n):
    assert wilson(successes, n) == pytest.approx(closed_form(successes, n), abs=1e-9)
    assert wilson(successes, n) == pytest.approx(proportion_confint(successes, n, method="wilson"), abs=1e-12)


@pytest.mark.parametrize(("successes", "n"), COUNTS)
def test_wilson_mirrors_failures_and_holds_the_share(successes, n):
    low, high = wilson(successes, n)
    assert (1 - high, 1 - low) == pytest.approx(wilson(n - successes, n), abs=1e-12)
    assert -1e-12 <= low <= successes / n + 1e-12 and successes / n - 1e-12 <= high <= 1 + 1e-12


def test_nothing_observed_says_nothing():
    with pytest.raises(ValueError, match="got no observation, expected at least one"):
        wilson(0, 0)


@pytest.mark.parametrize(
    ("variant", "base", "low", "high"),
    [((56, 70), (48, 80), 0.0524, 0.3339), ((9, 10), (3, 10), 0.1705, 0.8090), ((5, 56), (0, 29), -0.0381, 0.1926)],
)
def test_shares_of_other_reviews_differ_as_newcombe_has_it(variant, base, low, high):
    """Newcombe 1998, table II, method 10."""
    found = apart(base, variant)
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)
    assert found.value == variant[0] / variant[1] - base[0] / base[1] and found.n == variant[1] + base[1]
    turned = apart(variant, base)
    assert (turned.value, turned.low, turned.high) == pytest.approx((-found.value, -found.high, -found.low))
    assert turned.p == pytest.approx(found.p)


def test_the_chance_of_shares_of_other_reviews_is_that_of_one_share_for_both():
    """Miettinen and Nurminen's score statistic is Pearson's by (N - 1) / N."""
    score = score_test(255, 300, 180, 200, method="score").statistic
    assert apart((180, 200), (255, 300)).p == pytest.approx(chi2.sf(score**2 * 500 / 499, 1))


@pytest.mark.parametrize("k", [0, 1])
def test_shares_that_do_not_vary_do_not_differ(k):
    found = apart((200 * k, 200), (300 * k, 300))
    assert found.value == 0 and found.p == 1 and found.low < 0 < found.high and not found.is_shown
    with pytest.raises(ValueError, match="got shares of 0 and 300 reviews, expected at least one in each"):
        apart((0, 0), (0, 300))


def right(n11: int, n10: int, n01: int, n00: int) -> tuple[np.ndarray, np.ndarray]:
    """Where base and variant are right: both, base alone, variant alone, neither."""
    counts = [n11, n10, n01, n00]
    return np.repeat([True, True, False, False], counts), np.repeat([True, False, True, False], counts)


@pytest.mark.parametrize("counts", [(50, 12, 30, 8), (0, 1, 0, 0), (5, 7, 7, 0), (900, 40, 62, 50), (10, 0, 9, 1)])
def test_mcnemar_is_the_exact_one_of_statsmodels_and_of_the_binomial(counts):
    both, base_alone, variant_alone, neither = counts
    expected = statsmodels_mcnemar([[both, base_alone], [variant_alone, neither]], exact=True).pvalue
    n, few = base_alone + variant_alone, min(base_alone, variant_alone)
    by_hand = min(1.0, 2 * sum(math.comb(n, i) for i in range(few + 1)) / 2**n)
    assert mcnemar(*right(*counts)) == pytest.approx(expected, rel=1e-9) == pytest.approx(by_hand, rel=1e-9)


def test_two_that_are_right_and_wrong_together_do_not_differ():
    assert mcnemar(*right(40, 0, 0, 3)) == 1.0
    labels, same = np.array([0, 1, 1, 0]), np.array([0, 1, 0, 0])
    assert difference(labels, same, same, 2, accuracy) == Difference(value=0.0, low=0.0, high=0.0, p=1.0, n=4)


@pytest.mark.parametrize(
    ("gained", "lost", "n", "z", "low", "high"),
    [
        (9, 3, 32, Z, -0.027, 0.390),  # Tango 1998, of cross-over trials, and of lenses at 90%
        (0, 1, 44, 1.6448536269514722, -0.096, 0.037),
        (1, 7, 21, Z, -0.517, -0.026),  # Fagerland, Lydersen and Laake 2014
        (20, 60, 1000, Z, -0.0584, -0.0231),  # PropCIs::scoreci.mp of R
    ],
)
def test_shares_of_the_same_reviews_differ_as_tango_has_it(gained, lost, n, z, low, high, monkeypatch):
    monkeypatch.setattr("core.statistics.Z", z)
    assert tango(gained, lost, n) == pytest.approx((low, high), abs=5e-4 if n < 100 else 5e-5)
    assert tango(lost, gained, n) == pytest.approx((-high, -low), abs=5e-4)


def likelihood_score(gained: int, lost: int, n: int, share: float) -> float:
    """Squared, with the likeliest shares that differ by `share` looked for one by one."""
    q = np.linspace(max(0.0, -share), (1 - share) / 2, 200_001)[1:-1]
    likely = q[np.argmax(gained * np.log(q + share) + lost * np.log(q) + (n - gained - lost) * np.log1p(-2 * q - share))]
    return (gained - lost - n * share) ** 2 / (n * (2 * likely + share - share**2))


@pytest.mark.parametrize(("gained", "lost", "n"), [(5, 2, 12), (7, 0, 30), (0, 0, 15), (40, 62, 1052)])
def test_both_ends_of_the_interval_are_where_the_score_says_so(gained, lost, n):
    for end in tango(gained, lost, n):
        assert likelihood_score(gained, lost, n, end) == pytest.approx(Z**2, rel=2e-3)


@pytest.mark.parametrize("n", [1, 12, 5_000])
def test_two_that_agree_on_every_review_may_yet_differ(n):
    low, high = tango(0, 0, n)
    assert (low, high) == pytest.approx((-(Z**2) / (n + Z**2), Z**2 / (n + Z**2)))
    assert tango(n, 0, n)[1] == 1 and tango(0, n, n)[0] == -1


def test_a_gain_in_accuracy_has_the_interval_of_the_score_and_the_p_of_mcnemar():
    labels, base, variant = reviews(300, 3, 1)
    before, after = base == labels, variant == labels
    found = accuracy_gain(labels, base, variant)
    assert found.value == pytest.approx(accuracy_score(labels, variant) - accuracy_score(labels, base)) and found.n == 300
    assert (found.low, found.high) == tango(int((after & ~before).sum()), int((before & ~after).sum()), 300)
    assert found.p == mcnemar(before, after)


def reviews(n: int, n_classes: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels, and two predictions that are right in about 60 and 70%."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_classes, size=n)
    return labels, *(np.where(rng.random(n) < share, labels, rng.integers(n_classes, size=n)) for share in (0.6, 0.7))


def scored(score, labels, predicted, classes) -> float:
    """`score` of one confusion matrix."""
    confusion = confusion_matrix(labels, predicted, labels=classes).astype(float)
    return score(np.diag(confusion)[None], confusion.sum(1)[None], confusion.sum(0)[None])[0]


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_scores_of_confusions_are_those_of_scikit_learn(n_classes):
    labels, predicted, _ = reviews(200, n_classes, 3)
    classes = list(range(n_classes))
    average = {"average": "binary"} if n_classes == 2 else {"average": "macro", "labels": classes}
    assert scored(accuracy, labels, predicted, classes) == pytest.approx(accuracy_score(labels, predicted))
    assert scored(f1, labels, predicted, classes) == pytest.approx(f1_score(labels, predicted, zero_division=0.0, **average))


def test_a_class_that_nobody_names_has_no_f1():
    labels, predicted = [0, 0, 1], [0, 1, 1]
    expected = f1_score(labels, predicted, average="macro", labels=[0, 1, 2], zero_division=0.0)
    assert scored(f1, labels, predicted, [0, 1, 2]) == pytest.approx(expected)


@pytest.mark.parametrize(("n_classes", "score"), [(2, accuracy), (2, f1), (5, accuracy), (5, f1)])
def test_the_bootstrap_is_that_of_scipy(n_classes, score):
    labels, base, variant = reviews(300, n_classes, 1)
    classes = list(range(n_classes))

    def gain(rows):
        rows = rows.astype(int)
        before, after = (scored(score, labels[rows], guess[rows], classes) for guess in (base, variant))
        return after - before

    expected = bootstrap((np.arange(300),), gain, n_resamples=300, vectorized=False, method="percentile", rng=0)
    found = difference(labels, base, variant, n_classes, score)
    assert found.value == pytest.approx(gain(np.arange(300)))
    assert found.is_shown == (not found.low <= 0 <= found.high)
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval), abs=0.02)


@pytest.mark.parametrize(("n_classes", "score"), [(2, accuracy), (2, f1), (5, f1)])
def test_the_interval_of_one_figure_is_scipys(n_classes, score):
    labels, predicted, _ = reviews(300, n_classes, 1)
    classes = list(range(n_classes))

    def figure(rows):
        return scored(score, labels[rows.astype(int)], predicted[rows.astype(int)], classes)

    expected = bootstrap((np.arange(300),), figure, n_resamples=300, vectorized=False, method="percentile", rng=0)
    found = estimate(labels, predicted, n_classes, score)
    assert found.value == pytest.approx(figure(np.arange(300)))
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval), abs=0.02)


def test_a_share_of_nothing_is_none():
    assert share(0, 0) is None
    assert share(3, 7) == Estimate(value=3 / 7, low=wilson(3, 7)[0], high=wilson(3, 7)[1])


FIGURES = [
    lambda none: difference(none, none, none, 2, f1),
    lambda none: accuracy_gain(none, none, none),
    lambda none: estimate(none, none, 2, f1),
]


@pytest.mark.parametrize("figure", FIGURES)
def test_no_review_has_no_figure(figure):
    with pytest.raises(ValueError, match="got no review, expected at least one"):
        figure(np.zeros(0, dtype=int))


def test_the_bootstrap_holds_pairs_together():
    labels, base, _ = reviews(1000, 2, 2)
    variant = base.copy()
    variant[np.flatnonzero(base != labels)[:10]] = labels[np.flatnonzero(base != labels)[:10]]
    found = difference(labels, base, variant, 2, accuracy)
    spread = math.sqrt(10) / 1000  # ten reviews of a thousand, a Poisson count
    assert found.value == pytest.approx(0.01)
    assert (found.high - found.low) / (2 * 1.96) == pytest.approx(spread, rel=0.1)  # apart, either would spread by 0.015


def test_over_seeds_is_students_paired_test():
    base, variant = [0.81, 0.83, 0.82, 0.80], [0.84, 0.85, 0.83, 0.84]
    expected = ttest_rel(variant, base)
    found = over_seeds(base, variant)
    assert found.p == pytest.approx(expected.pvalue)
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval(0.95)))
    assert found.value == pytest.approx(0.025) and found.n == 4 and found.is_shown


def test_the_mean_of_seeds_has_students_interval():
    values = [0.81, 0.83, 0.82]
    expected = ttest_1samp(values, 0.0).confidence_interval(0.95)
    found = mean_of_seeds(values)
    assert (found.value, found.n) == (pytest.approx(0.82), 3)
    assert (found.low, found.high) == pytest.approx(tuple(expected))
    with pytest.raises(ValueError, match="expected at least two"):
        mean_of_seeds([0.8])


def test_seeds_without_spread():
    assert over_seeds([0.8, 0.8], [0.8, 0.8]) == Difference(value=0.0, low=0.0, high=0.0, p=1.0, n=2)
    assert over_seeds([0.5, 0.5], [0.75, 0.75]) == Difference(value=0.25, low=0.25, high=0.25, p=0.0, n=2)


@pytest.mark.parametrize(("base", "variant"), [([0.8], [0.9]), ([], []), ([0.8, 0.8], [0.9, 0.9, 0.9])])
def test_too_few_seeds_say_so(base, variant):
    with pytest.raises(ValueError, match="expected the same seeds and at least two"):
        over_seeds(base, variant)


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.2]) == pytest.approx([0.2]) and holm([]) == []


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_holm_is_that_of_statsmodels(n):
    p_values = np.random.default_rng(n).uniform(0, 4 / n, n).round(2).clip(max=1).tolist()  # some are equal
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1])


@pytest.mark.parametrize(
    ("values", "seeds", "said"),
    [
        ((0.008, 0.001, 0.015, 0.02, 2500), None, "0.8 points better, 95% between +0.1 and +1.5, n = 2,500"),
        ((-0.021, -0.03, -0.01, 0.001, 3), 3, "2.1 points worse, 95% between -3.0 and -1.0, 3 seeds"),
        ((0.002, -0.0004, 0.009, 0.4, 2500), None, "no difference shown: +0.2 points, 95% between +0.0 and +0.9, n = 2,500"),
    ],
)
def test_a_verdict_is_a_sentence(values, seeds, said):
    value, low, high, p, n = values
    assert verdict(Difference(value=value, low=low, high=high, p=p, n=n), seeds=seeds) == said
