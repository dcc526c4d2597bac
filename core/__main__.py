"""The command line: `python -m core train|evaluate|predict|attend|explain|measure|ablate|claims|jobs`, each with `--help`."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from tqdm import tqdm

from core import jobs as processes
from core import run_folder, runs
from core.ablate import ablate_command
from core.artifact import Reader
from core.claims.command import claims
from core.config import Architecture, DataConfig, RunConfig, TrainingConfig
from core.data.reviews import stamp
from core.events import Cancelled, EpochFinished, Event, Failed, Queued, StepFinished, TableRead, TrainingStarted
from core.figures.labels import count, percent
from core.flags import TEXT, Json, ModelFolder, PresetName, Text, WithoutPrefix
from core.inspection.command import explain
from core.jobs import Ended, Stopped, device_of, hold, is_first, tell, told_to_end
from core.measure.command import measure
from core.presets import preset
from core.tensorboard import Board

FLAT = (tyro.conf.OmitArgPrefixes, tyro.conf.AvoidSubcommands)
Windows = Annotated[bool, tyro.conf.arg(help="Read all of a long review in windows and average their logits.")]


def train_command(base: RunConfig, argv: Sequence[str]) -> Callable[..., None]:
    """The verb `train`, whose knobs start from `base`; `argv` is what the run records as its command."""

    def train(
        out: Annotated[Path, tyro.conf.arg(help="Folder of the run: events.jsonl, and the model in model/.")],
        preset: PresetName = "encoder-small",
        model: Annotated[Architecture, WithoutPrefix] = base.model,
        reviews: Annotated[DataConfig, WithoutPrefix] = base.reviews,
        training: Annotated[TrainingConfig, WithoutPrefix] = base.training,
        as_json: Json = False,
    ) -> None:
        """Train a network from scratch and write it as a model folder."""
        config = RunConfig(model=model, reviews=reviews, training=training)
        asked_for = stamp(reviews)
        quiet = as_json or not is_first()
        with (
            _TrainingBar(config.epoch_name, hidden=quiet) as bar,
            hold(out, device_of(config.training.device), config, tell) as job,
        ):
            from core.training.run import train as run  # torch, once the device is free

            hearers = (job.emit, Board(out), bar) if is_first() else ()

            def emit(event: Event) -> None:
                for hear in hearers:
                    hear(event)

            finished = run(config, out, emit, list(argv), job.stopped, asked_for)
        if not is_first():
            return
        if as_json:
            print(json.dumps(asdict(finished)))
        elif isinstance(finished, Cancelled):
            print(f"stopped; the model is in {finished.model_dir}" if finished.model_dir else "stopped before the first step")
        else:
            print(
                f"validation accuracy {finished.val_accuracy:.1%} after {config.epoch_name} {finished.best_epoch}; "
                f"{finished.train_s:.0f} s at {finished.reviews_per_s:.0f} reviews/s; the model is in {finished.model_dir}"
            )

    return train


def evaluate(
    model: ModelFolder,
    data: Annotated[Path, tyro.conf.arg(help="A table: CSV, TSV, JSON lines or Parquet.")],
    text_column: str = "text",
    label_column: str = "label",
    as_json: Json = False,
) -> None:
    """Measure a model on a table of labelled reviews."""
    from core.artifact import open_reader
    from core.evaluation.table import evaluate as measure

    opened = open_reader(model)
    with _Counter("scored", hidden=as_json) as counter:
        metrics, assumed = measure(opened, data, text_column, label_column, counter)
    if as_json:
        print(json.dumps(asdict(metrics) | {"assumed": assumed}, ensure_ascii=False))
        return
    _say_assumed(assumed)
    print(f"n {metrics.n}, accuracy {metrics.accuracy:.1%} ({metrics.low:.1%} to {metrics.high:.1%}), F1 {metrics.f1:.3f}")
    for bucket in metrics.buckets:
        figures = f"{bucket.accuracy:.1%} ({bucket.low:.1%} to {bucket.high:.1%})" if bucket.n else "no data"
        print(f"{bucket.name:>8} words: n {bucket.n}, {figures}")


def predict(
    model: ModelFolder,
    text: Annotated[str | None, TEXT] = None,
    file: Annotated[Path | None, tyro.conf.arg(help="A table of reviews to label: CSV, TSV, JSON lines or Parquet.")] = None,
    out: Annotated[Path | None, tyro.conf.arg(help="Where the labelled table goes; by default beside FILE.")] = None,
    text_column: str = "text",
    windows: Windows = False,
    as_json: Json = False,
) -> None:
    """Label one review, or each review of a table, which is written back with label and probability added."""
    from core.artifact import open_reader

    if (text is None) == (file is None):
        raise ValueError("got both --text and --file, expected one" if text is not None else "expected --text or --file")
    opened = open_reader(model)
    if file is not None:
        _label(opened, file, out, text_column, windows, as_json)
    elif text is not None:
        _answer(opened, text, windows, as_json)


def _label(model: Reader, file: Path, out: Path | None, text_column: str, windows: bool, as_json: bool) -> None:
    from core.evaluation.table import label_table

    with _Counter("labelled", hidden=as_json) as counter:
        summary = label_table(model, file, out, text_column, windows, counter)
    if as_json:
        print(json.dumps(summary, ensure_ascii=False))
        return
    _say_assumed(summary["assumed"])
    n_blank = summary["without_text"]
    blank = f" and {count(n_blank, 'row')} without text left as {'it is' if n_blank == 1 else 'they are'}" if n_blank else ""
    print(f"{count(summary['n'], 'review')} labelled{blank}; the table is in {summary['out']}")


def _answer(model: Reader, text: str, windows: bool, as_json: bool) -> None:
    from core.inspection.reading import read

    answer = read(model, text, windows=windows).prediction
    if as_json:
        print(json.dumps({
            "label": answer.label, "probabilities": answer.probabilities,
            "tokens_read": answer.tokens_read, "tokens_left_out": answer.tokens_left_out,
        }, ensure_ascii=False))  # fmt: skip
        return
    left_out = f", {answer.tokens_left_out} left out" if answer.tokens_left_out else ""
    print(f"{answer.label}, {percent(answer.probabilities[answer.label])} ({answer.tokens_read} tokens read{left_out})")


def _say_assumed(notes: Sequence[str]) -> None:
    for note in notes:
        print(f"data: {note}", file=sys.stderr)


def attend(model: ModelFolder, text: Text, as_json: Json = False) -> None:
    """All attention weights of one review: [layers][heads][queries][tokens]; a BiLSTM has one of each but tokens."""
    from core.artifact import open_reader
    from core.inspection.reading import read

    opened = open_reader(model)
    if opened.kind == "linear":
        raise ValueError(f"{opened.name} is a linear model, which attends to nothing; `explain` tells what each word adds")
    attention = read(opened, text).windows[0]
    if as_json:
        weights: Any = attention.weights.tolist()
        print(json.dumps({"tokens": attention.tokens, "spans": attention.spans, "weights": weights}, ensure_ascii=False))
        return
    received = attention.received()
    print("attention that each token receives, averaged over layers, heads and queries")
    for token, span, share in zip(attention.tokens, attention.spans, received, strict=True):
        print(f"{share:7.2%}  {token!r} at {span[0]}-{span[1]}")


def jobs(
    action: Annotated[Literal["list", "show", "stop"], tyro.conf.Positional],
    id: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(help="A run, for show and stop.")] = None,
    grace_s: Annotated[float, tyro.conf.arg(help="Seconds a run has to end by itself, once asked to stop.")] = 60.0,
    lines: Annotated[int, tyro.conf.arg(help="Show so many last lines of the log.")] = 10,
    as_json: Json = False,
) -> None:
    """List the runs in runs/, show one with the end of its log, or stop one."""
    if action == "list":
        found = [_summary(run) for run in runs.all_runs()]
        print(json.dumps(found, ensure_ascii=False) if as_json else "\n".join(map(_line, found)) or "there are no runs yet")
        return
    if id is None:
        raise ValueError(f"jobs {action}: expected the id of a run; `python -m core jobs list` names them")
    if action == "stop":
        processes.stop(runs.find(id), grace_s)
    run = runs.read(id)
    log = run_folder.tail(run.folder, lines) if action == "show" else []
    if as_json:
        print(json.dumps(_summary(run) | {"metrics": run.metrics, "log": log}, ensure_ascii=False))
        return
    print("\n".join([_line(_summary(run)), *run.problems, *log]))


def _summary(run: runs.Run) -> dict[str, Any]:
    last = run_folder.last_event(run.folder)
    return {
        "id": run.id, "name": run.name, "state": run.state, "created": run.created.isoformat(timespec="seconds"),
        "ahead": last.ahead if isinstance(last, Queued) else None,
        "reason": last.reason if isinstance(last, Failed) else None,
        "model": None if run.model is None else str(run.model), "problems": list(run.problems),
    }  # fmt: skip


def _line(summary: dict[str, Any]) -> str:
    name = "" if summary["name"] == summary["id"] else f"  {summary['name']!r}"
    ahead = f", {summary['ahead']} ahead" if summary["state"] == "queued" and summary["ahead"] else ""
    return f"{summary['id']}  {summary['state']}{ahead}{name}" + (f"  {summary['reason']}" if summary["reason"] else "")


class _TrainingBar:
    """Shows a run's events to a person, on stderr."""

    def __init__(self, epoch_name: str, *, hidden: bool) -> None:
        self.epoch_name, self.hidden = epoch_name, hidden
        self.bar = tqdm(disable=hidden or None, unit=" steps", dynamic_ncols=True, delay=0.5)  # None: on a terminal alone

    def __enter__(self) -> "_TrainingBar":
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.close()

    def _say(self, line: str) -> None:
        if not self.hidden:
            self.bar.write(line, file=sys.stderr)

    def __call__(self, event: Event) -> None:
        if isinstance(event, TableRead):
            for note in event.notes:
                self._say(f"data: {note}")
        elif isinstance(event, TrainingStarted):
            kernel = f", attention by {event.backend}" if event.backend else ""
            self._say(
                f"{event.n_parameters:,} parameters, {event.n_train:,} reviews, {event.device}, {event.precision}{kernel}"
            )
        elif isinstance(event, StepFinished):
            self.bar.total = event.total_steps
            self.bar.update(event.step - self.bar.n)
            self.bar.set_postfix(loss=f"{event.loss:.3f}", reviews_per_s=f"{event.reviews_per_s:.0f}", refresh=False)
        elif isinstance(event, EpochFinished):
            self._say(
                f"{self.epoch_name} {event.epoch}: training loss {event.train_loss:.3f}, "
                f"validation loss {event.val_loss:.3f}, accuracy {event.val_accuracy:.1%}"
            )


class _Counter:
    """Counts reviews for a person, on stderr."""

    def __init__(self, verb: str, *, hidden: bool) -> None:
        self.bar = tqdm(desc=verb, disable=hidden, unit=" reviews", dynamic_ncols=True, delay=0.5)

    def __enter__(self) -> "_Counter":
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.close()

    def __call__(self, n: int, total: int | None = None) -> None:
        self.bar.total = total or self.bar.total
        self.bar.update(n)


def main(argv: Sequence[str]) -> int:
    """Runs one command; 0 for success, 2 with a sentence on stderr for what was chosen wrongly, 1 for what went wrong."""
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    # tyro says that none is named
    early.add_argument("--preset", "--base", nargs="?", default="encoder-small", const="encoder-small")
    try:
        base = preset(early.parse_known_args(argv)[0].preset)
        verbs = {
            "train": train_command(base, argv), "evaluate": evaluate, "predict": predict, "attend": attend,
            "explain": explain, "measure": measure, "ablate": ablate_command(base), "claims": claims, "jobs": jobs,
        }  # fmt: skip
        with told_to_end():
            tyro.extras.subcommand_cli_from_dict(verbs, prog="python -m core", args=argv, config=FLAT)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except Stopped:
        print("stopped while it waited for its device", file=sys.stderr)
        return 1
    except (Ended, KeyboardInterrupt) as error:
        print(f"{str(error) or 'stopped from the keyboard'}; the same command goes on from there", file=sys.stderr)
        return 130
    except (OSError, MemoryError, RuntimeError) as error:  # of the machine: a disk, its memory, a GPU
        print(f"error: {processes.sentence(error)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    # threads that wait by spinning slow each other down a hundredfold where other processes want the cores, too
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")  # some microseconds first: alone, a step is 1.2x faster
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    sys.exit(main(sys.argv[1:]))
