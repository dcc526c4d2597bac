"""Does it matter? A configuration and ablations of it, each trained with several seeds, and what the differences say.

An experiment is one run, which trains its members one after the other. No torch here until it does.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from core.ablations import ABLATIONS, pair
from core.artifact import read_run
from core.checked import from_json, to_json
from core.config import ExperimentConfig, LinearArchitecture, RunConfig
from core.curves import last
from core.events import Cancelled, Event, ExperimentStarted, Failed, MemberFinished, MemberStarted
from core.jobs import Stopped, sentence
from core.measure.planner import needed_bytes
from core.presets import flags, nearest
from core.recorded import Column, Table
from core.run_folder import MEMBERS, append_event, make_folder, state, write_config, write_request
from core.statistics import Difference, holm, mean_of_seeds, over_seeds, verdict

if TYPE_CHECKING:
    from core.training.run import Prepared

BASE = "base"
EITHER = ("backend", "precision")
"""Knobs in which bases of one experiment may differ."""


# What is trained


@dataclass(frozen=True, kw_only=True)
class Member:
    """One training of an experiment."""

    ablation: str
    """Its name; "base" for what ablations are held against, and how it differs where there are several."""
    base: str | None
    """The name of what it is held against; None for a base."""
    config: RunConfig

    @property
    def seed(self) -> int:
        """Of all that is drawn."""
        return self.config.training.seed

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.ablation}, seed {self.seed}"


def members(config: ExperimentConfig, settled: ExperimentStarted | None = None) -> list[Member]:
    """Every training of an experiment, seed by seed, bases first; an ablation and its base differ in one thing alone.

    `settled` says what "auto" comes to; before that is known, there may be a base more than is needed. ValueError for an
    ablation that is unknown or cannot be made of this base.
    """
    pairs = {name: [_settle(each, settled) for each in pair(config.base, name)] for name in config.ablations}
    bases = _names_of_bases(_settle(config.base, settled), [base for base, _ in pairs.values()])
    arms = [(name, None, base) for base, name in bases.items()]
    arms += [(name, bases[base], variant) for name, (base, variant) in pairs.items()]
    return [
        Member(ablation=name, base=base, config=replace(arm, training=replace(arm.training, seed=seed)))
        for seed in config.seeds
        for name, base, arm in arms
    ]


def _settle(config: RunConfig, settled: ExperimentStarted | None) -> RunConfig:
    """The same with what "auto" came to in its place; a linear model has no use for it."""
    known = {} if settled is None or isinstance(config.model, LinearArchitecture) else vars(settled)
    chosen = {knob: value for knob, value in known.items() if value and getattr(config.training, knob) == "auto"}
    return replace(config, training=replace(config.training, **chosen))


def _names_of_bases(asked: RunConfig, bases: Iterable[RunConfig]) -> dict[RunConfig, str]:
    """Each base once, named by how it is not the one that was asked for; one that stands alone is the base."""
    different = list(dict.fromkeys(bases))
    if len(different) == 1:
        return {different[0]: BASE}
    return {base: BASE if base == asked else f"{BASE}, {_how(asked, base)}" for base in different}


def _how(asked: RunConfig, base: RunConfig) -> str:
    was, became = asked.training, base.training
    return ", ".join(getattr(became, knob) for knob in EITHER if getattr(became, knob) != getattr(was, knob))


# Training it


def run(
    config: ExperimentConfig,
    folder: Path,
    emit: Callable[[Event], None],
    stopped: Callable[[], bool],
    said: Sequence[Event] = (),
) -> None:
    """Trains each member that no experiment beside `folder` has trained, and emits what came of it, but for what was `said`.

    A member is a folder in folder/members, called by its fingerprint. One that was interrupted goes on from its checkpoint;
    one that cannot be trained is a result, too. Ends with Cancelled once `stopped` says so. ValueError for reviews that
    cannot be used; Ended.
    """
    from core.training.machine import Execution
    from core.training.run import code, prepare

    settled = last(said, ExperimentStarted) or ExperimentStarted(**asdict(Execution.of(config.base)))
    if settled not in said:
        emit(settled)
    sources, prepared = code()["sha256"], None
    for member in members(config, settled):
        if stopped():
            return emit(Cancelled())
        same = prepared is not None and prepared.config.training.seed == member.seed
        prepared = prepared.of(member.config) if prepared and same else prepare(member.config)
        place = folder / MEMBERS / fingerprint(member.config, prepared.fingerprints, sources)
        try:
            finished = _trained(member, place) or _train(member, place, prepared, emit, stopped)
        except Stopped:
            return emit(Cancelled())
        if finished not in said:
            emit(finished)


def fingerprint(config: RunConfig, reviews: Mapping[str, str], sources: str | None) -> str:
    """What two trainings share that must come to the same: all that was set, the reviews of each side, and the code."""
    identity = json.dumps([to_json(config), reviews, sources], sort_keys=True)
    return hashlib.sha256(identity.encode()).hexdigest()[:16]


def _trained(member: Member, place: Path) -> MemberFinished | None:
    """What came of a member where this experiment or one beside it has trained it, unless its record is damaged."""
    for other in [place, *sorted(place.parents[2].glob(f"*/{MEMBERS}/{place.name}"))]:
        with suppress(ValueError, KeyError, TypeError):
            if state(other) == "succeeded":
                return _finished(member, place, other)
    return None


def _finished(member: Member, place: Path, at: Path) -> MemberFinished:
    record = read_run(at / "model")
    test, (peak_bytes, peak_source) = record["metrics"]["test"], _peak(record)
    return replace(
        _nothing(member, place, at),
        n=test["n"], accuracy=test["accuracy"], f1=test["f1"], val_accuracy=record["metrics"]["validation"]["accuracy"],
        train_s=record["training"]["train_s"], elapsed_s=record["wall_s"], peak_bytes=peak_bytes, peak_source=peak_source,
        n_parameters=record["n_parameters"],
    )  # fmt: skip


def _peak(record: Mapping[str, Any]) -> tuple[int | None, str | None]:
    """The memory that a member takes at most, and what says so; on a CPU, a process keeps what earlier members let go."""
    if record["training"]["device"] == "cuda":
        return record["peak_memory"]["bytes"], record["peak_memory"]["source"]
    config = from_json(RunConfig, record["config"])
    return (None, None) if isinstance(config.model, LinearArchitecture) else (needed_bytes(config), "predicted")


def _nothing(member: Member, place: Path, at: Path) -> MemberFinished:
    """What is known of a member before it is trained."""
    run = at.relative_to(place.parents[2]).as_posix()
    return MemberFinished(ablation=member.ablation, seed=member.seed, fingerprint=place.name, run=run)


def _train(
    member: Member, place: Path, prepared: "Prepared", emit: Callable[[Event], None], stopped: Callable[[], bool]
) -> MemberFinished:
    """Trains a member in its folder, like a run of its own. Stopped if a person stops it; Ended; OSError of a full disk."""
    from core.training.run import forget_peak, train

    make_folder(place)
    argv = ["train", *flags(nearest(member.config), member.config), "--out", str(place)]
    write_request(place, argv, member.title)
    write_config(place, member.config)
    started = _nothing(member, place, place)
    emit(MemberStarted(ablation=started.ablation, seed=started.seed, run=started.run))
    forget_peak(member.config.training.device)
    say = partial(append_event, place)
    try:
        outcome = train(member.config, place, say, argv, stopped, prepared=prepared)
    except (ValueError, MemoryError, RuntimeError) as error:  # what this member is, or that it takes more than there is
        say(Failed(reason=sentence(error)))
        return replace(started, why_not=sentence(error))
    if isinstance(outcome, Cancelled):
        raise Stopped
    return _finished(member, place, place)


# What came of it


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of a base or an ablation, over its seeds."""

    ablation: str
    base: str | None
    """The name of what it is held against; None for a base."""
    finished: tuple[MemberFinished, ...]
    """With figures, by seed."""
    failed: tuple[MemberFinished, ...]
    n_seeds: int
    """That were asked for."""
    difference: Difference | None
    """In accuracy on the test side, to its base with the same seeds; its p is made larger for there being several (Holm).
    None for a base, and before two seeds of both are there."""

    @property
    def question(self) -> str:
        """That the ablation answers; of a base, nothing is asked."""
        return "" if self.base is None else ABLATIONS[self.ablation].question

    @property
    def accuracy(self) -> Difference | None:
        """The mean accuracy on the test side and its interval over seeds; None before there are two."""
        found = [event.accuracy for event in self.finished if event.accuracy is not None]
        if len(found) < 2:
            return None
        mean = mean_of_seeds(found)
        return replace(mean, low=max(mean.low, 0.0), high=min(mean.high, 1.0))  # a share is not beyond

    def mean(self, figure: str) -> float | None:
        """Of a figure of its members; None where none has it."""
        values = [value for event in self.finished if (value := getattr(event, figure)) is not None]
        return fmean(values) if values else None

    @property
    def verdict(self) -> str:
        """Whether it matters, a sentence without full stop; empty for a base that lacks nothing."""
        parts = [] if self.base is None else [self._difference()]
        if self.failed:
            parts.append(f"{len(self.failed)} of {self.n_seeds} failed: {self.failed[0].why_not}")
        return "; ".join(part for part in parts if part)

    def _difference(self) -> str:
        if self.difference is not None:
            return f"{verdict(self.difference, seeds=self.difference.n)}, p = {self.difference.p:.3f} by Holm"
        if len(self.failed) == self.n_seeds:
            return ""
        waits = len(self.finished) + len(self.failed) < self.n_seeds
        return "not trained yet" if waits else "no verdict: two seeds of it and of its base are needed to tell it from chance"


def gather(config: ExperimentConfig, events: Sequence[Event]) -> list[Outcome]:
    """What came of each base and ablation until now, in order. ValueError for an ablation that is unknown here."""
    bases = {member.ablation: member.base for member in members(config, last(events, ExperimentStarted))}
    return outcomes(bases, config.seeds, [event for event in events if isinstance(event, MemberFinished)])


def outcomes(bases: Mapping[str, str | None], seeds: Sequence[int], events: Iterable[MemberFinished]) -> list[Outcome]:
    """The same of members that are on record; `bases` names what each ablation is held against, None for a base."""
    found = {(event.ablation, event.seed): event for event in events if _is_sound(event)}
    made = [_outcome(name, base, seeds, found) for name, base in bases.items()]
    chances = iter(holm([outcome.difference.p for outcome in made if outcome.difference]))
    return [
        replace(outcome, difference=replace(outcome.difference, p=next(chances))) if outcome.difference else outcome
        for outcome in made
    ]


def _is_sound(event: MemberFinished) -> bool:
    """Whether its figures can be: others stand in a file that was damaged or written by hand."""
    shares = (event.accuracy, event.f1, event.val_accuracy)
    return (event.accuracy is None) == (event.why_not is not None) and all(s is None or 0 <= s <= 1 for s in shares)


def _outcome(name: str, base: str | None, seeds: Sequence[int], found: Mapping[tuple[str, int], MemberFinished]) -> Outcome:
    own = [found[name, seed] for seed in seeds if (name, seed) in found]
    both = [(found[base, seed].accuracy, found[name, seed].accuracy) for seed in seeds
            if base is not None and (base, seed) in found and (name, seed) in found]  # fmt: skip
    pairs = [(before, after) for before, after in both if before is not None and after is not None]
    return Outcome(
        ablation=name, base=base, n_seeds=len(seeds),
        finished=tuple(event for event in own if event.why_not is None),
        failed=tuple(event for event in own if event.why_not is not None),
        difference=over_seeds(*zip(*pairs, strict=True)) if len(pairs) > 1 else None,
    )  # fmt: skip


def progress(config: ExperimentConfig, events: Sequence[Event]) -> tuple[int, int]:
    """How many members are there, and how many there will be."""
    every = {(member.ablation, member.seed) for member in members(config, last(events, ExperimentStarted))}
    return len(every & {(event.ablation, event.seed) for event in events if isinstance(event, MemberFinished)}), len(every)


def left_s(config: ExperimentConfig, events: Sequence[Event]) -> float | None:
    """About how many seconds an experiment still takes, at the pace of the members that are there; None before the first."""
    took = [event.elapsed_s for event in events if isinstance(event, MemberFinished) and event.elapsed_s]
    done, all_of_them = progress(config, events)
    return fmean(took) * (all_of_them - done) if took else None


def estimated_s(config: ExperimentConfig, seconds: Callable[[RunConfig], float]) -> float:
    """About how many seconds an experiment takes here where nothing is trained yet; `seconds` tells it of a training."""
    once = [member for member in members(config) if member.seed == config.seeds[0]]
    return len(config.seeds) * sum(seconds(member.config) for member in once)


# On record

ON_RECORD = (
    "ablation",
    "base",
    "seed",
    *(knob.name for knob in fields(MemberFinished) if knob.name not in ("ablation", "seed")),
)
"""Columns of a table of members."""


def as_table(bases: Mapping[str, str | None], events: Iterable[MemberFinished]) -> Table:
    """The members of an experiment, to be kept in benchmarks/ and read by `from_table`."""
    rows = [tuple({"base": bases[event.ablation], **asdict(event)}[name] for name in ON_RECORD) for event in events]
    caption = (
        "A row for each training: what it was held against, for a base nothing, and what came of it. accuracy and f1 are of "
        "its n test reviews, shares from 0 to 1; train_s are seconds of training proper, elapsed_s of all; peak_bytes is the "
        "memory of a step at its most, measured on a GPU, and predicted on a CPU."
    )
    return Table(name="members", caption=caption, columns=tuple(Column(name=name) for name in ON_RECORD), rows=tuple(rows))


def from_table(table: Table) -> list[Outcome]:
    """What came of the members that `as_table` wrote. ValueError for a table that lacks a column."""
    columns = {name: table.column(name) for name in ON_RECORD}
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    bases: dict[str, Any] = {str(row["ablation"]): row.pop("base") for row in rows}
    events = [MemberFinished(**row) for row in rows]
    return outcomes(bases, sorted({event.seed for event in events}), events)
