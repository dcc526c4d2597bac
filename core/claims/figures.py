"""What an experiment finds: figures by name, as rules read them and people see them."""

from collections.abc import Mapping, Sequence

from core.recorded import Value
from core.statistics import over_seeds

Figures = Mapping[str, Value]
Found = dict[str, Value]
"""Figures while they are gathered."""
POINTS = 100.0
"""Of a share of 1."""


def interval(name: str, base: Sequence[float], variant: Sequence[float], unit: float = POINTS) -> Found:
    """`variant` minus `base` over the same seeds, its 95% interval and the number of seeds, under `name`.

    In percentage points, where `unit` says nothing else.
    """
    found = over_seeds(base, variant)
    return {
        name: unit * found.value, f"{name}, from": unit * found.low, f"{name}, to": unit * found.high, "seeds": found.n
    }  # fmt: skip


def mean(values: Sequence[float]) -> float:
    """Of several seeds or reviews."""
    return sum(values) / len(values)


DISTANCES = (0, 1, 2, 5, 10, 20, 30, 40, 60, 100, 150, 200, 250)
"""Tokens between a word and what looks back at it, in figures of gradients."""


def of_state(network: str, distance: int) -> str:
    """The figure of a state of the last layer."""
    return f"{network}: state, {distance} tokens away"


def of_loss(network: str, distance: int) -> str:
    """The figure of the loss, by distance from the end of the review."""
    return f"{network}: loss, {distance} tokens from the end"
