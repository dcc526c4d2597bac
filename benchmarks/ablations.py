"""Experiments that are over as one recorded result: `python -m benchmarks.ablations runs/ID ... [--note SENTENCE ...]`.

Experiments of one base are put together, whether of other seeds or of other ablations.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.suite import HERE, PACKAGES
from core import runs
from core.ablate import argv
from core.artifact import read_run
from core.config import ExperimentConfig
from core.curves import last
from core.events import ExperimentStarted, MemberFinished
from core.experiments import Outcome, as_table, members, outcomes
from core.presets import nearest
from core.recorded import Column, Recorded, Table, Value, file_name, write
from core.runs import Run
from core.statistics import Difference


def gathered(folders: Sequence[Path], notes: Sequence[str] = ()) -> Recorded:
    """What came of these experiments together. ValueError for a folder that is none, and for bases that differ."""
    found = [runs.read(folder.name, folder.parent) for folder in folders]
    config, settled = _together(found), _settled(found)
    events = {(e.ablation, e.seed): e for run in found for e in run.events if isinstance(e, MemberFinished)}
    every = {(member.ablation, member.seed): member for member in members(config, settled)}
    landed = [events[key] for key in every if key in events]
    bases = {member.ablation: member.base for member in every.values()}
    record, preset = _newest(folders[0].parent, landed), nearest(config.base)
    machine = record["hardware"]
    return Recorded(
        title=f"Ablations of {preset} with {len(config.seeds)} seeds",
        hardware=machine.get("gpu") or f"{machine['cpu']}, {machine['threads']} of {machine['cores']} cores",
        date=record["finished"][:10],
        command=" ".join(["python -m core", *argv(config, preset), "--out runs/ablations"]),
        versions=tuple(f"{name} {version}" for name, version in record["versions"].items() if name in PACKAGES),
        tables=(_table(outcomes(bases, config.seeds, landed)), as_table(bases, landed)),
        notes=tuple(notes),
    )


def _together(found: Sequence[Run]) -> ExperimentConfig:
    """All ablations and seeds of several experiments as one."""
    configs = [run.experiment for run in found if run.experiment is not None]
    if len(configs) < len(found):
        raise ValueError(f"got {', '.join(run.id for run in found if run.experiment is None)}, expected experiments")
    seeds = sorted({seed for config in configs for seed in config.seeds})
    bases = {replace(config.base, training=replace(config.base.training, seed=seeds[0])) for config in configs}
    if len(bases) > 1:
        raise ValueError(f"got {len(bases)} bases that differ, expected one; record each by itself")
    ablations = dict.fromkeys(name for config in configs for name in config.ablations)
    return ExperimentConfig(base=bases.pop(), ablations=tuple(ablations), seeds=tuple(seeds))


def _settled(found: Sequence[Run]) -> ExperimentStarted:
    settled = {last(run.events, ExperimentStarted) for run in found}
    if len(settled) > 1 or None in settled:
        raise ValueError("got experiments that did not compute alike, or have not begun; record each by itself")
    return next(one for one in settled if one is not None)


def _newest(root: Path, landed: Sequence[MemberFinished]) -> dict[str, Any]:
    """run.json of the member that was trained last."""
    models = [root / event.run / "model" for event in landed if event.why_not is None]
    records = [read_run(model) for model in models if model.is_dir()]
    if not records:
        raise ValueError(f"{root}: got no training that is over, expected at least one")
    return max(records, key=lambda record: record["finished"])


def _table(found: Sequence[Outcome]) -> Table:
    return Table(
        name="ablations",
        caption=(
            "Accuracy is of the test reviews, its mean over seeds with Student's 95% interval. A difference is to the base "
            "with the same seeds, in points; its p is made larger for there being several (Holm), and it counts as shown below "
            "0.05. Training is training proper; memory that of a step at its most, on a CPU as predicted."
        ),
        columns=(
            Column(name="ablation"), Column(name="held against"), Column(name="seeds"),
            *(Column(name=f"accuracy{of}", unit="%") for of in ("", " low", " high")),
            *(Column(name=f"difference{of}", unit="points") for of in ("", " low", " high")),
            Column(name="p by Holm"), Column(name="F1"), Column(name="training", unit="s"), Column(name="memory", unit="MiB"),
            Column(name="parameters"), Column(name="verdict"),
        ),
        rows=tuple(map(_row, found)),
    )  # fmt: skip


def _row(outcome: Outcome) -> tuple[Value, ...]:
    accuracy, difference = outcome.accuracy, outcome.difference
    parameters = outcome.mean("n_parameters")
    return (
        outcome.ablation, outcome.base, len(outcome.finished),
        _in(outcome.mean("accuracy"), 0.01), *_interval(accuracy),
        _in(difference and difference.value, 0.01), *_interval(difference), difference and difference.p,
        outcome.mean("f1"), outcome.mean("train_s"), _in(outcome.mean("peak_bytes"), 2**20),
        None if parameters is None else round(parameters), outcome.verdict or None,
    )  # fmt: skip


def _interval(found: Difference | None) -> tuple[float | None, float | None]:
    return (None, None) if found is None else (100 * found.low, 100 * found.high)


def _in(value: float | None, unit: float) -> float | None:
    return None if value is None else value / unit


def main(words: Sequence[str]) -> None:
    """Writes RESULTS_ablations_<hardware>_<date>.json and .md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, help="of experiments, each in the folder of its runs")
    parser.add_argument("--note", action="append", default=[], help="a sentence on what makes these figures better or worse")
    parser.add_argument("--out", type=Path, default=HERE, help="folder for the result")
    asked = parser.parse_args(words)
    try:
        found = gathered([folder.resolve() for folder in asked.folders], asked.note)
    except ValueError as error:
        sys.exit(f"error: {error}")
    write(found, asked.out / file_name(found, "ablations"))
    print(found.table("ablations").as_markdown())


if __name__ == "__main__":
    main(sys.argv[1:])
