"""The verb `ablate` of the command line."""

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import tyro

from core import experiments
from core.ablations import ABLATIONS
from core.config import Architecture, DataConfig, ExperimentConfig, RunConfig, TrainingConfig
from core.events import Event, MemberFinished
from core.experiments import Outcome, gather, left_s, members, progress
from core.figures.labels import duration, percent
from core.flags import Json, PresetName, WithoutPrefix
from core.jobs import device_of, hold, tell
from core.presets import flags
from core.run_folder import read_events

Names = Annotated[str, tyro.conf.arg(help=f"With commas between: {', '.join(ABLATIONS)}.")]
Seeds = Annotated[int, tyro.conf.arg(help="How many each is trained with: --seed and those that follow it.")]


def ablate_command(start: RunConfig) -> Callable[..., None]:
    """The verb `ablate`, whose base starts from `start`."""

    def ablate(
        out: Annotated[Path, tyro.conf.arg(help="Folder of the run; what it trains is in members/.")],
        ablations: Names,
        base: PresetName = "encoder-small",
        seeds: Seeds = 3,
        model: Annotated[Architecture, WithoutPrefix] = start.model,
        reviews: Annotated[DataConfig, WithoutPrefix] = start.reviews,
        training: Annotated[TrainingConfig, WithoutPrefix] = start.training,
        as_json: Json = False,
    ) -> None:
        """Train a configuration and ablations of it with several seeds, and say which of them matter.

        Asked again with the same folder and flags, it goes on: what is trained already, here or in a folder beside, is not
        trained again.
        """
        if "RANK" in os.environ:
            raise ValueError("ablate: got several processes of torchrun, expected one; start it without")
        config = _experiment(RunConfig(model=model, reviews=reviews, training=training), ablations, seeds)
        members(config)  # refused before a run is made of it
        with hold(out, device_of(training.device), config, tell) as job:

            def emit(event: Event) -> None:
                job.emit(event)
                if isinstance(event, MemberFinished) and not as_json:
                    _say(event, config, read_events(job.folder)[0])

            experiments.run(config, job.folder, emit, job.stopped, read_events(job.folder)[0])
            said = read_events(job.folder)[0]
        outcomes = gather(config, said)
        if as_json:
            print(json.dumps({"members": _members(said), "ablations": [summary(outcome) for outcome in outcomes]}))
        else:
            print("\n".join(_table(outcomes)))

    return ablate


def _experiment(base: RunConfig, ablations: str, seeds: int) -> ExperimentConfig:
    if seeds < 1:
        raise ValueError(f"seeds: got {seeds}, expected at least 1, and 3 or more to tell a difference from chance")
    first = base.training.seed
    return ExperimentConfig(base=base, ablations=tuple(ablations.split(",")), seeds=tuple(range(first, first + seeds)))


def argv(config: ExperimentConfig, preset: str) -> list[str]:
    """The command that does this experiment, whose base starts from that preset, without its folder."""
    return [
        "ablate", "--base", preset, "--ablations", ",".join(config.ablations), "--seeds", str(len(config.seeds)),
        *flags(preset, config.base)[2:],
    ]  # fmt: skip


def _say(event: MemberFinished, config: ExperimentConfig, said: Sequence[Event]) -> None:
    done, n = progress(config, said)
    came = f"failed: {event.why_not}" if event.accuracy is None else f"accuracy {percent(event.accuracy)} of {event.n:,}"
    left = left_s(config, said)
    goes = f", about {duration(left)} left" if left else ""
    print(f"{done}/{n} {event.ablation}, seed {event.seed}: {came}{goes}", file=sys.stderr, flush=True)


def _members(said: Sequence[Event]) -> list[dict[str, Any]]:
    found = {(event.ablation, event.seed): event for event in said if isinstance(event, MemberFinished)}
    return [asdict(event) for event in found.values()]


def summary(outcome: Outcome) -> dict[str, Any]:
    """What came of an ablation as plain values; shares from 0 to 1, intervals of 95%, means over seeds."""
    accuracy, difference = outcome.accuracy, outcome.difference
    return {
        "ablation": outcome.ablation, "base": outcome.base, "question": outcome.question,
        "seeds": len(outcome.finished), "failed": len(outcome.failed),
        "accuracy": outcome.mean("accuracy"), "low": accuracy and accuracy.low, "high": accuracy and accuracy.high,
        "difference": difference and asdict(difference),
        **{name: outcome.mean(name) for name in ("f1", "val_accuracy", "train_s", "peak_bytes", "n_parameters")},
        "verdict": outcome.verdict,
    }  # fmt: skip


def _table(outcomes: Sequence[Outcome]) -> list[str]:
    width = max(len(outcome.ablation) for outcome in outcomes)
    return [f"{outcome.ablation:{width}}  {_accuracy(outcome)}  {outcome.verdict}".rstrip() for outcome in outcomes]


def _accuracy(outcome: Outcome) -> str:
    mean, interval = outcome.mean("accuracy"), outcome.accuracy
    if mean is None:
        return f"{'n/a':>23}"
    return f"{mean:6.1%} " + (f"({interval.low:6.1%} to {interval.high:6.1%})" if interval else " " * 16)
