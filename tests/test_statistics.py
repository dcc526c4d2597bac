from statistics import NormalDist

import pytest
from statsmodels.stats.proportion import proportion_confint

from core.statistics import wilson

COUNTS = [(0, 1), (1, 1), (0, 7), (3, 7), (7, 7), (50, 100), (891, 1001), (22_500, 25_000)]


def closed_form(successes: int, n: int) -> tuple[float, float]:
    """Wilson 1927: both roots p of (share - p)^2 = z^2 p (1 - p) / n."""
    z = NormalDist().inv_cdf(0.975)
    share = successes / n
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * (share * (1 - share) / n + z**2 / (4 * n**2)) ** 0.5
    return centre - half, centre + half


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
