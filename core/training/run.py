"""From a configuration to an artefact: load, split, tokenise, fit, store, measure what was stored."""

import gc
import hashlib
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import distributed

from core import artifact
from core.checked import to_json
from core.config import LinearArchitecture, RunConfig
from core.data import tokenizer as tokenizers
from core.data.batches import Cut
from core.data.corpus import Corpus, encode_corpus
from core.data.reviews import Reviews, load, stamp
from core.data.splits import Splits, fingerprint, split
from core.evaluation.metrics import metrics
from core.evaluation.scoring import score
from core.events import Cancelled, Event, TableRead, TrainingFinished, TrainingStarted
from core.jobs import ROOT, is_first
from core.networks.auto import build
from core.run_folder import make_folder
from core.training import linear, machine
from core.training.checkpoint import Checkpoints
from core.training.loop import Examples, Fitted, TrainingDiverged, fit
from core.training.machine import Execution
from core.words import count_words


@dataclass(frozen=True, kw_only=True)
class Asked:
    """How a model came about, beside configuration and reviews."""

    argv: list[str]
    execution: Execution
    began: float
    """By the clock `time.perf_counter`; earlier by the time of steps that another process made."""


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """Data as a run needs it, and the configuration with what the data settles: classes and size of the vocabulary."""

    config: RunConfig
    splits: Splits
    tokenizer: Any
    corpora: dict[str, Corpus]

    def of(self, config: RunConfig) -> "Prepared":
        """The same for another network, or another way to train it, with this seed and this size of the vocabulary."""
        n_classes = len(self.splits.train.label_names)
        model = replace(config.model, vocab_size=self.tokenizer.get_vocab_size(), n_classes=n_classes)
        return replace(self, config=replace(config, model=model))

    @property
    def fingerprints(self) -> dict[str, str]:
        """Of the reviews of each side."""
        return {side: fingerprint(hashes) for side, hashes in self.splits.hashes.items()}

    def examples(self, side: str) -> Examples:
        """The reviews of one side as the network reads them."""
        cut = Cut.of(self.config.model)
        reviews: Reviews = getattr(self.splits, side)
        return Examples([cut.ids(ids) for ids in self.corpora[side]], np.array(reviews.labels))


def prepare(config: RunConfig) -> Prepared:
    """Loads, splits and tokenises; the tokeniser sees the training side alone."""
    splits = split(load(config.reviews, config.training.seed))
    tokenizer = tokenizers.train(splits.train.texts, config.model.vocab_size)
    sides = {"train": splits.train, "validation": splits.validation, "test": splits.test}
    corpora = {side: encode_corpus(tokenizer, reviews.texts) for side, reviews in sides.items()}
    return Prepared(config=config, splits=splits, tokenizer=tokenizer, corpora=corpora).of(config)


def train(
    config: RunConfig,
    out: Path,
    emit: Callable[[Event], None],
    argv: list[str],
    stopped: Callable[[], bool] = lambda: False,
    asked_for: str | None = None,
    prepared: Prepared | None = None,
) -> TrainingFinished | Cancelled:
    """Trains and writes out/model; `emit` hears each event, the last one after the model is whole. `argv` is recorded.

    `stopped` is asked before each step; once it says yes, the weights of the best epoch so far are stored, or in the first
    epoch the current ones, and the last event is Cancelled. Before the first step nothing is stored.
    Where `out` holds a checkpoint of this very training, it goes on from there; once the model of a training that was not
    stopped is whole, or it has diverged, the checkpoint is removed. Of several processes, as `torchrun` starts them, the first
    one alone writes.
    `asked_for`: the `stamp` of the reviews when the training was asked for, if it waited since. `prepared`: what `prepare`
    made of this configuration, where that is known.
    ValueError for data or knobs that cannot be used, or that have changed, and if `out` holds a model already;
    TrainingDiverged; Ended.
    """
    began = time.perf_counter()
    make_folder(out)
    Cut.of(config.model)
    execution = Execution.of(config)
    prepared = prepared or prepare(config)
    _refuse_changed(prepared, asked_for)
    checkpoints = Checkpoints(out, _identity(config, prepared), config.training.checkpoint_s)
    state = checkpoints.read()
    if state and state["execution"]["device"] == execution.device:
        execution = Execution(**state["execution"])  # what "auto" measures now may differ
    if prepared.splits.train.notes:
        emit(TableRead(notes=list(prepared.splits.train.notes)))
    network, prepared = _untrained(prepared)
    emit(TrainingStarted(
        n_parameters=machine.n_parameters(network), n_train=len(prepared.splits.train),
        n_validation=len(prepared.splits.validation), epochs=config.epochs,
        step=state["step"] if state else 0, **asdict(execution),
    ))  # fmt: skip
    examples = prepared.examples("train"), prepared.examples("validation")
    if isinstance(config.model, LinearArchitecture):
        fitted = linear.fit(network, *examples, seed=config.training.seed, emit=emit, stopped=stopped)
    else:
        with _forgotten_where_diverged(checkpoints), leave_taken():
            fitted = fit(
                network, prepared.config, *examples, execution=execution, emit=emit, stopped=stopped,
                checkpoints=checkpoints if is_first() else None, state=state,
            )  # fmt: skip
    earlier_s = state["elapsed_s"] if state else 0.0
    last = _outcome(prepared, network.cpu(), fitted, out, Asked(argv=argv, execution=execution, began=began - earlier_s))
    emit(last)
    if is_first() and not fitted.stopped:
        checkpoints.remove()
    return last


@contextmanager
def _forgotten_where_diverged(checkpoints: Checkpoints) -> Iterator[None]:
    """Removes what there is to go on from where it would lead to the same divergence."""
    try:
        yield
    except TrainingDiverged:
        if is_first():
            checkpoints.remove()
        raise


@contextmanager
def leave_taken() -> Iterator[None]:
    """Ends what ties this process to others that train with it: one still tied, be it by a network, may abort at its exit."""
    try:
        yield
    finally:
        if distributed.is_available() and distributed.is_initialized():
            gc.collect()
            distributed.destroy_process_group()


def _untrained(prepared: Prepared) -> tuple[Any, Prepared]:
    """The network before its first step, and the configuration with what its architecture came to."""
    config, label_names = prepared.config, prepared.splits.train.label_names
    torch.manual_seed(config.training.seed)
    if not isinstance(config.model, LinearArchitecture):
        network = build(config.model, label_names)
        if config.model.kind == "encoder":
            network.network.checkpointing = machine.checkpointing(config)
        return network, prepared
    network = linear.untrained(config.model, label_names, prepared.examples("train"))
    return network, replace(prepared, config=replace(config, model=network.config.architecture))


def _refuse_changed(prepared: Prepared, asked_for: str | None) -> None:
    training, reviews = prepared.config.training, prepared.config.reviews
    if asked_for is not None and stamp(reviews) != asked_for:
        raise ValueError(f"data: {reviews.data} has changed since this training was asked for; start another one on it")
    is_linear = isinstance(prepared.config.model, LinearArchitecture)  # which has no batches
    if not is_linear and training.batch_size > len(prepared.splits.train):
        raise ValueError(
            f"batch_size: got {training.batch_size:,}, expected at most the {len(prepared.splits.train):,} reviews to train on"
        )


def _identity(config: RunConfig, prepared: Prepared) -> dict[str, Any]:
    """What a checkpoint must share with a training that goes on from it."""
    return {"configuration": to_json(config), "reviews": prepared.fingerprints}


def _outcome(prepared: Prepared, network: Any, fitted: Fitted, out: Path, asked: Asked) -> TrainingFinished | Cancelled:
    if not is_first() or (fitted.stopped and not fitted.rates.reviews):
        return Cancelled()
    finished = _store(prepared, network, fitted, out, asked)
    return Cancelled(best_epoch=finished.best_epoch, model_dir=finished.model_dir) if fitted.stopped else finished


def _store(prepared: Prepared, network: Any, fitted: Fitted, out: Path, asked: Asked) -> TrainingFinished:
    """Writes the artefact beside its place, measures what was written, and moves it there when it is whole."""
    partial, folder = out / "model.partial", out / "model"
    artifact.write_network(partial, network, prepared.tokenizer, prepared.config)
    stored = artifact.load_network(partial)
    predictions = pd.concat([_predictions(stored, prepared, side) for side in ("validation", "test")], ignore_index=True)
    run = {"n_parameters": machine.n_parameters(network)} | _record(prepared, fitted, predictions, asked)
    artifact.write_record(partial, run, predictions)
    shutil.rmtree(folder, ignore_errors=True)  # which this training stored when it was stopped
    partial.rename(folder)
    return TrainingFinished(
        reviews_per_s=fitted.rates.reviews_per_s,
        tokens_per_s=fitted.rates.tokens_per_s,
        train_s=fitted.rates.seconds,
        best_epoch=fitted.best_epoch,
        val_accuracy=run["metrics"]["validation"]["accuracy"],
        model_dir=str(folder),
    )


def _predictions(network: Any, prepared: Prepared, side: str) -> pd.DataFrame:
    examples, reviews, corpus = prepared.examples(side), getattr(prepared.splits, side), prepared.corpora[side]
    room = Cut.of(prepared.config.model).room
    return pd.DataFrame(
        {
            "text_hash": prepared.splits.hashes[side],
            "split": side,
            "label": examples.labels,
            "logits": list(score(network, examples.ids)),
            "words": [count_words(text) for text in reviews.texts],
            "tokens": corpus.lengths,
            "tokens_read": np.minimum(corpus.lengths, room),
        }
    )


def _record(prepared: Prepared, fitted: Fitted, predictions: pd.DataFrame, asked: Asked) -> dict[str, Any]:
    """run.json: all that is needed to make this model again and to trust its figures."""
    splits = prepared.splits
    return {
        "command": shlex.join(["python", "-m", "core", *asked.argv]),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "config": to_json(prepared.config),
        "label_names": list(splits.train.label_names),
        "data": {
            "name": splits.train.name,
            "n": {side: len(hashes) for side, hashes in splits.hashes.items()},
            "fingerprint": prepared.fingerprints,
            "duplicates_dropped": splits.duplicates_dropped,
            "notes": list(splits.train.notes),
        },
        "epochs": [asdict(epoch) for epoch in fitted.epochs],
        "best_epoch": fitted.best_epoch,
        "metrics": {side: _metrics(frame) for side, frame in predictions.groupby("split")},
        "training": asdict(asked.execution)
        | {
            "train_s": fitted.rates.seconds,
            "reviews_per_s": fitted.rates.reviews_per_s,
            "tokens_per_s": fitted.rates.tokens_per_s,
        },
        "wall_s": time.perf_counter() - asked.began,
        "peak_memory": peak_memory(asked.execution.device),
        "hardware": machine.hardware(asked.execution.device),
        "versions": machine.versions(),
        "code": code(),
    }


def code() -> dict[str, str | None]:
    """This code: the commit that it stands on, with "-dirty" where files differ, and a SHA-256 of its sources as they are."""
    digest = hashlib.sha256()
    for path in sorted((ROOT / "core").rglob("*.py")):
        digest.update(f"{path.relative_to(ROOT).as_posix()}\0".encode() + path.read_bytes())
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    commit = None
    with suppress(OSError, subprocess.SubprocessError):  # no git, or no checkout
        commit = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    return {"commit": commit, "sha256": digest.hexdigest()}


def forget_peak(device: str) -> None:
    """Lets `peak_memory` begin anew with what is held now, where the system can."""
    gc.collect()
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    else:
        with suppress(OSError):  # Linux alone has the file, and writes to it only for who may
            Path("/proc/self/clear_refs").write_text("5")


def peak_memory(device: str) -> dict[str, Any]:
    """The most memory that this process held until now, in bytes, with the counter that says so; without one, none.

    On a GPU it is what tensors took there, elsewhere all that was resident, libraries and reviews with it.
    """
    if device == "cuda":
        return {"bytes": torch.cuda.max_memory_allocated(), "source": "torch.cuda.max_memory_allocated"}
    status = Path("/proc/self/status")  # ru_maxrss would begin with what the parent held
    found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.is_file() else None
    return {"bytes": 1024 * int(found[1]), "source": "VmHWM"} if found else {"bytes": None, "source": None}


def _metrics(frame: pd.DataFrame) -> dict[str, Any]:
    return asdict(metrics(np.stack(frame["logits"]), frame["label"].to_numpy(), frame["words"].to_numpy()))
