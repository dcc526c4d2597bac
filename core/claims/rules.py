"""What several rules do alike: a ratio that is told, a difference that is told, on a device or another."""

from collections.abc import Callable, Mapping

from core.claims.claim import ENOUGH_SEEDS, Verdict, fails, holds, not_shown, only_when
from core.claims.figures import Figures
from core.recorded import shown

DEVICES = {"cpu": "a CPU", "cuda": "a GPU"}
NO_GPU = "not measured on a GPU: run python -m benchmarks.gpu on one"
NEAR = 0.25
"""A ratio counts as told if it is off by no more than this share of it: machines differ."""
LEARNED = 70.0
"""Percent of right answers below which a network has learned too little to lose some of it; guessing has 50."""
A_POINT = 1.0
"""Differences within a percentage point are none for a claim that something matters."""


def number(figures: Figures, name: str) -> float:
    """A figure that is a number. ValueError if it is none: the figures are of another version of the experiment."""
    value = figures.get(name)
    if isinstance(value, str) or value is None:
        raise ValueError(f"figure {name!r}: got {value!r}, expected a number; measure the claim again")
    return float(value)


def known(figures: Figures, name: str) -> bool:
    """Whether there is such a number."""
    return isinstance(figures.get(name), int | float)


def on_each_device(figures: Figures, name: str, rule: Callable[[float, str], Verdict]) -> Verdict:
    """The verdict on `name` of each device that it was measured on; where they differ, it depends on the device.

    Without one of a GPU, it says how to get one.
    """
    found = {device: rule(number(figures, f"{name}, {device}"), DEVICES[device])
             for device in DEVICES if known(figures, f"{name}, {device}")}  # fmt: skip
    if not found:
        return not_shown("nothing has been measured")
    whys = "; ".join(verdict.why for verdict in found.values())
    if len({verdict.outcome for verdict in found.values()}) > 1:
        where = [DEVICES[device] for device, verdict in found.items() if verdict.outcome == "holds here"]
        return only_when(f"it runs on {' or '.join(where)}: {whys}") if where else not_shown(whys)
    missing = "" if "cuda" in found else f"; {NO_GPU}"
    return Verdict(next(iter(found.values())).outcome, whys + missing)


def at_least(told: float, what: str) -> Callable[[float, str], Verdict]:
    """Holds for a ratio of `told` or more, within `NEAR` of it; `what` has a place for it."""

    def rule(ratio: float, where: str) -> Verdict:
        said = f"{what.format(shown(ratio))} on {where} (claimed: {told:g})"
        return holds(said) if ratio >= told * (1 - NEAR) else fails(said)

    return rule


def about(told: float, what: str) -> Callable[[float, str], Verdict]:
    """Holds for a ratio within `NEAR` of `told`; `what` has a place for it."""

    def rule(ratio: float, where: str) -> Verdict:
        said = f"{what.format(shown(ratio))} on {where} (claimed: {told:g})"
        return holds(said) if abs(ratio / told - 1) <= NEAR else fails(said)

    return rule


def by_as_much(figures: Figures, name: str, told: float, unit: str = "points") -> Verdict:
    """Of a difference over seeds, told to be `told`: holds if its interval has that and not 0, fails if it ends before it.

    Not shown where fewer than three seeds were trained, or where chance could make all of it.
    """
    if (few := too_few(figures)) is not None:
        return few
    low, high, said = measured(figures, name, unit)
    said = f"{said} (claimed: {told:g})"
    if high < told:
        return fails(said)
    return holds(said) if low > 0 else not_shown(said)


def at_all(figures: Figures, name: str, margin: float = A_POINT, unit: str = "points") -> Verdict:
    """Of a difference over seeds, told to be there: holds if its interval is above 0, fails if it is below `margin`.

    Not shown where fewer than three seeds were trained, or where the interval leaves both open.
    """
    if (few := too_few(figures)) is not None:
        return few
    low, high, said = measured(figures, name, unit)
    if low > 0:
        return holds(said)
    return fails(said) if high < margin else not_shown(said)


def if_learned(figures: Figures, verdict: Verdict, *names: str) -> Verdict:
    """The verdict, unless it is that a loss is none and one of these accuracies is too low for there to be anything to lose."""
    least = min((number(figures, name) for name in names if known(figures, name)), default=0.0)
    if verdict.outcome != "does not hold here" or least >= LEARNED:
        return verdict
    return not_shown(f"{verdict.why}; a network that is right in only {least:.1f}% of the reviews has too little to lose")


def of_all(verdicts: Mapping[str, Verdict]) -> Verdict:
    """Of a claim of several parts: what all of them say; "only when" a part is meant that alone holds; else not shown."""
    whys = "; ".join(f"{part}: {verdict.why}" for part, verdict in verdicts.items())
    outcomes = [verdict.outcome for verdict in verdicts.values()]
    if all(outcome == outcomes[0] for outcome in outcomes):
        return Verdict(outcomes[0], whys)
    holding = [part for part, verdict in verdicts.items() if verdict.outcome == "holds here"]
    return only_when(f"{' or '.join(holding)} is meant: {whys}") if holding else not_shown(whys)


def measured(figures: Figures, name: str, unit: str = "points") -> tuple[float, float, str]:
    """Both ends of an interval over seeds, and a sentence."""
    value, low, high = (number(figures, f"{name}{end}") for end in ("", ", from", ", to"))
    label = called(name.removesuffix(f", {unit}"))
    digits = 1 if unit == "points" else 3
    seeds = number(figures, "seeds")
    said = f"{label} {value:+.{digits}f} {unit}, 95% between {low:+.{digits}f} and {high:+.{digits}f}, {seeds:g} seeds"
    return low, high, said


def called(label: str) -> str:
    """A figure's name as sentences write it."""
    return label.replace("bilstm", "BiLSTM").replace("transformer", "Transformer")


def too_few(figures: Figures) -> Verdict | None:
    """The verdict where too few seeds were trained; None where they were enough."""
    seeds = number(figures, "seeds")
    return not_shown(f"{seeds:g} seeds, and {ENOUGH_SEEDS} are needed") if seeds < ENOUGH_SEEDS else None
