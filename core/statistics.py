"""How sure one may be of a figure, and of the difference of two."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from core.records import Estimate

RESAMPLES = 10_000
"""Of a bootstrap: its interval then moves by a hundredth of its width from seed to seed."""
RESAMPLED = 2**22
"""Counts that are drawn at once."""
SURE = 0.05
"""A difference is shown where chance alone would make one so large less often than this."""

Z = 1.959963984540054
"""Of the normal distribution, 95% lie no further than this from its mean, in standard deviations."""
NEAR = 1e-9
"""The ends of a score interval of a difference are looked for beyond this distance from it."""

PerClass = Float[np.ndarray, "draws C"]
Score = Callable[[PerClass, PerClass, PerClass], Float[np.ndarray, "draws"]]
"""A figure from counts by class: of reviews that are rightly predicted to be of it, that are, that are predicted to be."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A variant's figure minus its base's, with what chance makes of it."""

    value: float
    low: float
    high: float
    """Of the 95% interval."""
    p: float
    """Share of the cases in which chance alone would make a difference as large, were there none."""
    n: int
    """Reviews, or seeds."""

    @property
    def is_shown(self) -> bool:
        """Whether it is more than chance."""
        return self.p < SURE


def softmax(logits: Float[np.ndarray, "*n C"]) -> Float[np.ndarray, "*n C"]:
    """The probability that logits give each class, in float64."""
    exponentials = np.exp(logits.astype(np.float64) - logits.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


def wilson(successes: int, n: int) -> tuple[float, float]:
    """The 95% interval of a share (Wilson 1927). ValueError where n is 0: there is nothing to say."""
    if n == 0:
        raise ValueError("got no observation, expected at least one")
    from statsmodels.stats.proportion import proportion_confint  # a second to import

    low, high = proportion_confint(successes, n, method="wilson")
    return float(low), float(high)


def share(k: int, n: int) -> Estimate | None:
    """`k` of `n` with Wilson's interval; None where n is 0."""
    if n == 0:
        return None
    low, high = wilson(k, n)
    return Estimate(value=k / n, low=low, high=high)


def apart(base: tuple[int, int], variant: tuple[int, int]) -> Difference:
    """How much larger the share of `variant` is than that of `base`, each so many of so many other reviews.

    The interval is Newcombe's hybrid of two Wilson intervals (1998, method 10), p that of Pearson's chi-squared test (1900), by
    which both have one share. ValueError where either is of no review.
    """
    (before, n_before), (after, n_after) = base, variant
    if not n_before or not n_after:
        raise ValueError(f"got shares of {n_before} and {n_after} reviews, expected at least one in each")
    from scipy.stats import chi2_contingency
    from statsmodels.stats.proportion import confint_proportions_2indep

    low, high = confint_proportions_2indep(after, n_after, before, n_before, method="newcomb")
    table, n = [[before, n_before - before], [after, n_after - after]], n_before + n_after
    p = chi2_contingency(table, correction=False)[1] if 0 < before + after < n else 1.0  # it knows no empty column
    return Difference(value=after / n_after - before / n_before, low=float(low), high=float(high), p=float(p), n=n)


def mcnemar(base: Bool[np.ndarray, "n"], variant: Bool[np.ndarray, "n"]) -> float:
    """The exact p of two classifiers that were right and wrong on the same reviews (McNemar 1947).

    It counts only the reviews on which one alone is right: were both as good, either would be as often. 1 where there is none.
    """
    from scipy.stats import binomtest

    only_base, only_variant = int((base & ~variant).sum()), int((~base & variant).sum())
    n = only_base + only_variant
    return float(binomtest(only_variant, n).pvalue) if n else 1.0


def difference(
    labels: Int[np.ndarray, "n"], base: Int[np.ndarray, "n"], variant: Int[np.ndarray, "n"], n_classes: int, score: Score
) -> Difference:
    """How much better `variant` scores than `base` on the same reviews, by the paired bootstrap (Efron 1979; percentiles).

    Reviews are drawn anew with both predictions, so that what is hard for both moves neither. Those that agree in label and
    predictions are one kind, of which only the count is drawn. ValueError where there is no review.
    """
    kinds, counts = np.unique(np.stack([labels, base, variant], 1), axis=0, return_counts=True)
    label, *predicted = (np.eye(n_classes)[kind] for kind in kinds.T)

    def gain(drawn: Float[np.ndarray, "draws kinds"]) -> Float[np.ndarray, "draws"]:
        before, after = (score(drawn @ (label * guess), drawn @ label, drawn @ guess) for guess in predicted)
        return after - before

    value, gains = _bootstrap(counts, gain)
    low, high = np.percentile(gains, [2.5, 97.5])
    p = 2 * min(np.mean(gains <= 0), np.mean(gains >= 0))
    return Difference(value=value, low=float(low), high=float(high), p=min(1.0, float(p)), n=len(labels))


def accuracy_gain(labels: Int[np.ndarray, "n"], base: Int[np.ndarray, "n"], variant: Int[np.ndarray, "n"]) -> Difference:
    """How much more accurate `variant` is than `base` on the same reviews: the interval by `tango`, p by `mcnemar`.

    ValueError where there is no review.
    """
    before, after = base == labels, variant == labels
    gained, lost = int((after & ~before).sum()), int((before & ~after).sum())
    low, high = tango(gained, lost, len(labels))
    return Difference(value=(gained - lost) / len(labels), low=low, high=high, p=mcnemar(before, after), n=len(labels))


def tango(gained: int, lost: int, n: int) -> tuple[float, float]:
    """The 95% interval of a difference of two shares of the same `n`, by the score (Tango 1998): what is so `gained`, but for
    what is `lost`. Where neither is, it has a width, too: a rare difference may not have been met yet.

    ValueError where n is 0: there is nothing to say.
    """
    if n == 0:
        raise ValueError("got no review, expected at least one")
    from scipy.optimize import brentq

    def excess(share: float) -> float:
        """Of the squared score of a true difference over Z squared, with the likeliest share `q` of what is lost."""
        b = (2 * n - gained + lost) * share - gained - lost
        q = (max(b**2 + 8 * n * lost * share * (1 - share), 0.0) ** 0.5 - b) / (4 * n)  # rounding alone can pass below 0
        return (gained - lost - n * share) ** 2 - Z**2 * n * (2 * q + share * (1 - share))

    value = (gained - lost) / n
    ends = [(-1.0, max(value - NEAR, -1.0)), (min(value + NEAR, 1.0), 1.0)]  # at the value itself chance may have no room
    low, high = (float(brentq(excess, *end)) for end in ends)
    return low, high


def estimate(labels: Int[np.ndarray, "n"], predicted: Int[np.ndarray, "n"], n_classes: int, score: Score) -> Estimate:
    """A figure with its interval by the bootstrap (Efron 1979; percentiles). ValueError where there is no review."""
    kinds, counts = np.unique(np.stack([labels, predicted], 1), axis=0, return_counts=True)
    label, guess = (np.eye(n_classes)[kind] for kind in kinds.T)
    value, figures = _bootstrap(counts, lambda drawn: score(drawn @ (label * guess), drawn @ label, drawn @ guess))
    low, high = np.percentile(figures, [2.5, 97.5])
    return Estimate(value=value, low=float(low), high=float(high))


def _bootstrap(
    counts: Int[np.ndarray, "kinds"], figure: Callable[[Float[np.ndarray, "draws kinds"]], Float[np.ndarray, "draws"]]
) -> tuple[float, Float[np.ndarray, "draws"]]:
    """The figure of reviews of which there are `counts` of each kind, and that of each of `RESAMPLES` new drawings of them."""
    n = int(counts.sum())
    if not n:
        raise ValueError("got no review, expected at least one")
    rng, at_once = np.random.default_rng(0), max(1, RESAMPLED // len(counts))
    sizes = [min(at_once, RESAMPLES - done) for done in range(0, RESAMPLES, at_once)]
    drawn = (rng.multinomial(n, counts / n, size).astype(float) for size in sizes)  # products of whole numbers are slow
    return float(figure(counts[None].astype(float))[0]), np.concatenate([figure(draws) for draws in drawn])


def f1(right: PerClass, there: PerClass, predicted: PerClass) -> Float[np.ndarray, "draws"]:
    """F1 of the second of two classes; of more, the mean over all. 0 for a class that is neither there nor predicted."""
    each = 2 * right / np.maximum(there + predicted, 1)
    return each[:, 1] if each.shape[1] == 2 else each.mean(1)


def over_seeds(base: Sequence[float], variant: Sequence[float]) -> Difference:
    """The mean difference of two configurations trained with the same seeds, and its t interval (Student 1908).

    ValueError where it is not the same number of seeds, or less than two.
    """
    if len(base) != len(variant) or len(base) < 2:
        raise ValueError(f"got figures of {len(base)} and {len(variant)} seeds, expected the same seeds and at least two")
    return mean_of_seeds([after - before for before, after in zip(base, variant, strict=True)])


def mean_of_seeds(values: Sequence[float]) -> Difference:
    """The mean of a figure over seeds, as its difference to 0, and its t interval (Student 1908).

    ValueError for less than two seeds.
    """
    if len(values) < 2:
        raise ValueError(f"got a figure of {len(values)} seeds, expected at least two")
    from scipy.stats import t

    mean, error, free = float(np.mean(values)), float(np.std(values, ddof=1) / len(values) ** 0.5), len(values) - 1
    if error == 0:
        return Difference(value=mean, low=mean, high=mean, p=float(mean == 0), n=len(values))
    half = float(t.ppf(0.975, free)) * error
    p = 2 * float(t.sf(abs(mean) / error, free))
    return Difference(value=mean, low=mean - half, high=mean + half, p=p, n=len(values))


def holm(p_values: Sequence[float]) -> list[float]:
    """The p of each of several comparisons, made larger for there being several (Holm 1979)."""
    # not by statsmodels, which collects the garbage of the whole process at each call: 0.4 s while a page is drawn
    order = np.argsort(p_values)
    stepped = np.asarray(p_values)[order] * np.arange(len(order), 0, -1)
    corrected = np.empty(len(order))
    corrected[order] = np.maximum.accumulate(stepped).clip(max=1)
    return corrected.tolist()


def verdict(found: Difference, *, seeds: int | None = None) -> str:
    """A difference of two shares in a sentence, in percentage points, without full stop."""
    value, low, high = (round(100 * share, 1) + 0.0 for share in (found.value, found.low, found.high))  # no -0.0
    n = f"n = {found.n:,}" if seeds is None else f"{seeds} seeds"
    interval = f"95% between {low:+.1f} and {high:+.1f}, {n}"
    if not found.is_shown:
        return f"no difference shown: {value:+.1f} points, {interval}"
    return f"{abs(value):.1f} points {'better' if value > 0 else 'worse'}, {interval}"
