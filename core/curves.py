"""What a run has said of itself, as curves over its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from core.events import EpochFinished, Event, StepFinished, TrainingStarted

E = TypeVar("E")
STEP_CURVES = ("loss", "lr", "gradient_norm", "largest_logit", "non_finite", "reviews_per_s")
EPOCH_CURVES = ("train_loss", "val_loss", "val_accuracy")


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One quantity of a run, `values[i]` at `steps[i]`."""

    steps: tuple[int, ...]
    values: tuple[float, ...]
    resumed: tuple[int, ...] = ()
    """Steps after which another process went on."""

    def thinned(self, most: int) -> Curve:
        """About `most` of its points, evenly, always with the last one."""
        every = -(-len(self.steps) // most)
        start = (len(self.steps) - 1) % every
        return replace(self, steps=self.steps[start::every], values=self.values[start::every])


def standing(events: Sequence[Event]) -> list[Event]:
    """What still holds of what a run has said: without the steps and epochs that were lost with an earlier process."""
    kept: list[Event] = []
    for event in events:
        if isinstance(event, TrainingStarted):
            kept = [old for old in kept if not (isinstance(old, StepFinished | EpochFinished) and old.step > event.step)]
        kept.append(event)
    return kept


def resumed(events: Sequence[Event]) -> tuple[int, ...]:
    """The steps after which an earlier process ended and a later one went on, of those that still hold."""
    begun = [event.step for event in events if isinstance(event, TrainingStarted)]
    return tuple(sorted({step for i, step in enumerate(begun) if 0 < step <= min(begun[i:])}))


def curves(events: Sequence[Event]) -> dict[str, Curve]:
    """A curve for each of `STEP_CURVES` and `EPOCH_CURVES` that the run has; those of epochs have a point at each one's end.

    Numbers that are not finite are counted only where there are any.
    """
    found, marks = {}, resumed(events)
    for kind, names in ((StepFinished, STEP_CURVES), (EpochFinished, EPOCH_CURVES)):
        said = [event for event in events if isinstance(event, kind)]
        for name in names:
            points = [(event.step, float(value)) for event in said if (value := getattr(event, name)) is not None]
            if points and (name != "non_finite" or any(value for _, value in points)):
                steps, values = zip(*points, strict=True)
                found[name] = Curve(steps=steps, values=values, resumed=marks)
    return found


def last(events: Sequence[Event], kind: type[E]) -> E | None:
    """The last event of a kind."""
    return next((event for event in reversed(events) if isinstance(event, kind)), None)
