"""How sure one may be of a figure."""


def wilson(successes: int, n: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927). ValueError where n is 0: there is nothing to say."""
    if n == 0:
        raise ValueError("got no observation, expected at least one")
    from statsmodels.stats.proportion import proportion_confint  # a second to import

    low, high = proportion_confint(successes, n, method="wilson")
    return float(low), float(high)
