"""What a tutorial claims, the experiment that checks it, and the rule that makes a verdict of its figures. No torch here."""

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from core.claims.figures import Figures
from core.recorded import Table

Outcome = Literal["holds here", "does not hold here", "only when", "not shown"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
Theme = Literal["speed", "memory and size", "accuracy", "training", "numbers and masks", "positions and maps"]
THEMES: tuple[Theme, ...] = get_args(Theme)
ENOUGH_SEEDS = 3
"""Trainings with one seed or two show nothing of a method."""


@dataclass(frozen=True)
class Verdict:
    """What figures say of a claim."""

    outcome: Outcome
    why: str
    """What decides, with its figures, a sentence without full stop; of "only when", what follows these words first."""

    @property
    def sentence(self) -> str:
        """Both, without full stop."""
        return f"{self.outcome}{' ' if self.outcome == 'only when' else ': '}{self.why}"


def holds(why: str) -> Verdict:
    """The figures are as told."""
    return Verdict("holds here", why)


def fails(why: str) -> Verdict:
    """The figures are other than told."""
    return Verdict("does not hold here", why)


def only_when(condition: str) -> Verdict:
    """It depends."""
    return Verdict("only when", condition)


def not_shown(why: str) -> Verdict:
    """Too little to tell."""
    return Verdict("not shown", why)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A sentence that tutorials repeat, and how it is checked."""

    number: int
    name: str
    """What it is called on the command line."""
    theme: Theme
    source: str
    """Letters of the articles; P: papers and folklore."""
    told: str
    """The claim as it is told."""
    question: str
    """What the experiment asks."""
    scale: str
    """Of what the figures are: sizes, data, seeds."""
    method: str
    """What the experiment does."""
    verdict: Callable[[Figures], Verdict]
    """The rule: pure, from figures alone."""

    @property
    def rule(self) -> str:
        """The rule in words."""
        return " ".join((inspect.getdoc(self.verdict) or "").split())


@dataclass(frozen=True, kw_only=True)
class Measured(Claim):
    """One whose figures are measured whenever somebody asks."""

    experiment: str
    """module:function, which takes nothing and gives figures; imported when it is run, as it needs torch."""
    seconds: int
    """About how long it takes on a core."""

    def measure(self) -> Figures:
        """Runs the experiment."""
        module, name = self.experiment.split(":")
        return getattr(importlib.import_module(module), name)()


@dataclass(frozen=True, kw_only=True)
class Read(Claim):
    """One whose figures come from a table that a longer benchmark has recorded, on a CPU, on a GPU or on both."""

    table: str
    columns: tuple[str, ...]
    """Those that are read; a table of the same name without them is another one."""
    experiment: Callable[[Mapping[str, Table]], Figures]
    """From the tables, by device."""
    command: str
    """What measures it again."""
