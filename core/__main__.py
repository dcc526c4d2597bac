"""The command line: `python -m core train|evaluate|predict|attend`, each with `--help`."""

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

from core.config import RunConfig
from core.presets import PRESETS, preset
from core.records import EpochFinished, Event, StepFinished, TrainingStarted

FLAT = (tyro.conf.OmitArgPrefixes, tyro.conf.AvoidSubcommands)
PresetName = Literal[tuple(PRESETS)]  # type: ignore[valid-type]
Json = Annotated[bool, tyro.conf.arg(name="json", help="Print one JSON object for machines, and no progress.")]
ModelFolder = Annotated[Path, tyro.conf.arg(name="model", help="Folder of a trained model, such as models/imdb-encoder.")]
Text = Annotated[str | None, tyro.conf.arg(help="The review; one that starts with a dash is given as --text='-...'.")]
Windows = Annotated[bool, tyro.conf.arg(help="Read all of a long review in windows and average their logits.")]


def train_command(base: RunConfig) -> Callable[..., None]:
    """The verb `train`, whose knobs start from `base`."""

    def train(
        out: Annotated[Path, tyro.conf.arg(help="Folder of the run: events.jsonl, and the model in model/.")],
        preset: Annotated[PresetName, tyro.conf.arg(help="Where the defaults below come from.")] = "encoder-small",
        config: Annotated[RunConfig, tyro.conf.arg(name="")] = base,
        as_json: Json = False,
    ) -> None:
        """Train a network from scratch and write it as a model folder."""
        from core.training.run import train as run

        with _TrainingBar(hidden=as_json) as bar:
            finished = run(config, out, bar, sys.argv[1:])
        if as_json:
            print(json.dumps(asdict(finished)))
            return
        print(
            f"validation accuracy {finished.val_accuracy:.1%} after epoch {finished.best_epoch}; {finished.train_s:.0f} s "
            f"at {finished.reviews_per_s:.0f} reviews/s; the model is in {finished.model_dir}"
        )

    return train


def evaluate(
    model: ModelFolder,
    data: Annotated[Path, tyro.conf.arg(help="A CSV or Parquet file.")],
    text_column: str = "text",
    label_column: str = "label",
    as_json: Json = False,
) -> None:
    """Measure a model on a table of labelled reviews."""
    from core.artifact import open_model
    from core.evaluation.table import evaluate as measure

    opened = open_model(model)
    with _Counter("scored", hidden=as_json) as counter:
        metrics = measure(opened, data, text_column, label_column, counter)
    if as_json:
        print(json.dumps(asdict(metrics)))
        return
    print(f"n {metrics.n}, accuracy {metrics.accuracy:.1%} ({metrics.low:.1%} to {metrics.high:.1%}), F1 {metrics.f1:.3f}")
    for bucket in metrics.buckets:
        figures = f"{bucket.accuracy:.1%} ({bucket.low:.1%} to {bucket.high:.1%})" if bucket.n else "no data"
        print(f"{bucket.name:>8} words: n {bucket.n}, {figures}")


def predict(
    model: ModelFolder,
    text: Text = None,
    file: Annotated[Path | None, tyro.conf.arg(help="A CSV or Parquet file of reviews to label.")] = None,
    out: Annotated[Path | None, tyro.conf.arg(help="Where the labelled table goes; by default beside FILE.")] = None,
    text_column: str = "text",
    windows: Windows = False,
    as_json: Json = False,
) -> None:
    """Label one review, or each review of a table, which is written back with label and probability added."""
    from core.artifact import open_model

    if (text is None) == (file is None):
        raise ValueError("got both --text and --file, expected one" if text is not None else "expected --text or --file")
    opened = open_model(model)
    if file is not None:
        from core.evaluation.table import label_table

        with _Counter("labelled", hidden=as_json) as counter:
            summary = label_table(opened, file, out, text_column, windows, counter)
        print(json.dumps(summary) if as_json else f"{summary['n']} reviews labelled; the table is in {summary['out']}")
        return
    assert text is not None
    from core.inspection.reading import read

    answer = read(opened, text, windows=windows).prediction
    if as_json:
        print(json.dumps({
            "label": answer.label, "probabilities": answer.probabilities,
            "tokens_read": answer.tokens_read, "tokens_left_out": answer.tokens_left_out,
        }, ensure_ascii=False))  # fmt: skip
        return
    left_out = f", {answer.tokens_left_out} left out" if answer.tokens_left_out else ""
    print(f"{answer.label}, {answer.probabilities[answer.label]:.1%} ({answer.tokens_read} tokens read{left_out})")


def attend(model: ModelFolder, text: Annotated[str, tyro.conf.arg(help="The review.")], as_json: Json = False) -> None:
    """All attention weights of one review: [layers][heads][queries][tokens]; a BiLSTM has one of each but tokens."""
    from core.artifact import open_model
    from core.inspection.reading import read

    attention = read(open_model(model), text).windows[0]
    if as_json:
        weights: Any = attention.weights.tolist()
        print(json.dumps({"tokens": attention.tokens, "spans": attention.spans, "weights": weights}, ensure_ascii=False))
        return
    received = attention.received()
    print("attention that each token receives, averaged over layers, heads and queries")
    for token, span, share in zip(attention.tokens, attention.spans, received, strict=True):
        print(f"{share:7.2%}  {token!r} at {span[0]}-{span[1]}")


class _TrainingBar:
    """Shows a run's events to a person, on stderr."""

    def __init__(self, *, hidden: bool) -> None:
        self.bar = tqdm(disable=hidden, unit="step", dynamic_ncols=True)

    def __enter__(self) -> "_TrainingBar":
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.close()

    def __call__(self, event: Event) -> None:
        if isinstance(event, TrainingStarted):
            kernel = f", attention by {event.backend}" if event.backend else ""
            self.bar.write(
                f"{event.n_parameters:,} parameters, {event.n_train:,} reviews, {event.device}, {event.precision}{kernel}"
            )
        elif isinstance(event, StepFinished):
            self.bar.total = event.total_steps
            self.bar.update(event.step - self.bar.n)
            self.bar.set_postfix(loss=f"{event.loss:.3f}", reviews_per_s=f"{event.reviews_per_s:.0f}", refresh=False)
        elif isinstance(event, EpochFinished):
            self.bar.write(
                f"epoch {event.epoch}: training loss {event.train_loss:.3f}, "
                f"validation loss {event.val_loss:.3f}, accuracy {event.val_accuracy:.1%}"
            )


class _Counter:
    """Counts reviews for a person, on stderr."""

    def __init__(self, verb: str, *, hidden: bool) -> None:
        self.bar = tqdm(desc=verb, disable=hidden, unit="review", dynamic_ncols=True)

    def __enter__(self) -> "_Counter":
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.close()

    def __call__(self, n: int, total: int | None = None) -> None:
        self.bar.total = total or self.bar.total
        self.bar.update(n)


def main(argv: Sequence[str]) -> int:
    """Runs one command; 0 for success, 2 with a sentence on stderr for what was chosen wrongly."""
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    early.add_argument("--preset", choices=PRESETS, default="encoder-small")
    try:
        base = preset(early.parse_known_args(argv)[0].preset)
        verbs = {"train": train_command(base), "evaluate": evaluate, "predict": predict, "attend": attend}
        tyro.extras.subcommand_cli_from_dict(verbs, prog="python -m core", args=argv, config=FLAT)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    sys.exit(main(sys.argv[1:]))
