"""What is kept between reruns, each cache bounded: models are shared by all viewers, what a viewer typed is that session's.

torch is imported when the first model is opened, not before, so that a page paints at once.
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from core import curves as curves_of
from core import runs as runs_on_disk
from core.artifact import Opened, model_folders, models_root, open_reader
from core.catalog import SOURCES
from core.config import Architecture, DataConfig, RunConfig
from core.curves import Curve
from core.data import checks, preparation, uploads
from core.data.checks import SideCheck
from core.data.preparation import Prepared
from core.data.reviews import load, stamp
from core.data.splits import Splits, split
from core.data.table import Table, read_content
from core.evaluation import lengths
from core.evaluation import predictions as stored
from core.evaluation.answers import Answer, Scored, answer
from core.evaluation.paired import Paired, compare
from core.evaluation.predictions import Predictions
from core.hub import PREFIX, is_downloaded, local_folder
from core.records import Head, LengthRange, Reading
from core.runs import Run
from core.statistics import Difference
from ui import examples as examples_by_rule

if TYPE_CHECKING:
    from core.inspection.heads import How
    from core.training.estimate import Estimate, Sample

ANSWERED_AT_ONCE = 64
"""Reviews between two moments at which a person may stop."""
MOST_ANSWERS = 50_000
"""Kept for a session: at least what two models answer for the largest table of a page."""
MOST_FOREIGN = 8
"""Models from elsewhere that a session offers."""
SHIPPED = ("imdb-encoder", "imdb-bilstm")
"""Models to show first, if they are there."""

importing = threading.Lock()
"""Held while torch and transformers are imported, which two threads must not at once."""


def model_names() -> list[str]:
    """Names of the models that can be opened, the shipped ones first and members of experiments last."""
    names = model_folders()
    others = sorted((name for name in names if name not in SHIPPED), key=lambda name: ("/" in name, name))
    return [name for name in SHIPPED if name in names] + others


def model_titles() -> dict[str, str]:
    """What to call each of `model_names`: of a run's model the run's name and the end of its id. Data, never markup."""
    called, folders = runs_on_disk.names(), model_folders()
    own = {name: name if folder.name == name else called.get(name, name) for name, folder in folders.items()}
    titles = runs_on_disk.titles(own)
    return {name: titles[name] for name in model_names()}


def model_title(name: str) -> str:
    """What to call one model; its name if it has gone meanwhile."""
    return reader_titles().get(name, name)


def reader_titles() -> dict[str, str]:
    """The same, and classifiers from elsewhere that this session has taken in: called as their folder, in full where another
    is called so, too."""
    own, foreign = model_titles(), st.session_state.get("foreign_models", ())
    short = {name: name if name.startswith(PREFIX) else Path(name).name or name for name in foreign}
    times = Counter([*own.values(), *short.values()])
    return own | {name: title if times[title] == 1 else name for name, title in short.items()}


def is_foreign(name: str) -> bool:
    """Whether a name is that of a classifier from elsewhere: a whole path, or one of the hub. No model's name is like that."""
    return name.startswith(("/", PREFIX))


def is_to_download(name: str) -> bool:
    """Whether it would be downloaded to be opened."""
    return name.startswith(PREFIX) and not is_downloaded(name)


def take_in(named: str) -> str:
    """The name by which this session offers a classifier from elsewhere, which a person has named; it is opened.

    ValueError as from `core.artifact.open_reader`. The ones that were taken in first go when there are many.
    """
    name = named if named.startswith(PREFIX) else str(Path(named).absolute())
    try:
        model(name)
    except OSError as error:
        raise ValueError(f"{name}: it cannot be read ({error.strerror}); name another folder") from error
    offered = st.session_state.setdefault("foreign_models", [])
    if name not in offered:
        offered.append(name)
        del offered[:-MOST_FOREIGN]
    return name


def runs() -> list[Run]:
    """Every run and every model that came without one, the newest first, as they are at this moment."""
    found = runs_on_disk.all_runs() + [runs_on_disk.read_model(folder) for folder in model_folders(models_root()).values()]
    return sorted(found, key=lambda run: (run.created, run.id), reverse=True)


def members() -> list[Run]:
    """The trainings of all experiments that have made a model, by experiment, the newest first."""
    return sorted(runs_on_disk.members(), key=lambda run: (run.id.partition("/")[0], run.name), reverse=True)


def curves(run: Run) -> dict[str, Curve]:
    """What a run has said of itself until now, as curves."""
    events = run.folder / "events.jsonl"
    return _curves(run, str(events), events.stat().st_size if events.is_file() else 0)


def model(name: str) -> Opened:
    """The model of that name, in evaluation mode; ValueError if its folder is missing or damaged."""
    folder = _folder(name)
    opened: Any = _open(folder, _changed(folder))
    return replace(opened, name=name) if is_foreign(name) else opened


def reading(name: str, text: str, windows: bool) -> Reading:
    """`text` as that model reads it, from one forward pass; ValueError if there is nothing to read."""
    folder = _folder(name)
    return _read(folder, _changed(folder), text, windows)


def heads(name: str, text: str, how: How) -> list[Head]:
    """What each of that model's heads does with `text`; ValueError as above, and for a network without heads."""
    folder = _folder(name)
    return _heads(folder, _changed(folder), text, how)


def reading_without(name: str, text: str, off: tuple[tuple[int, int], ...], how: How) -> Reading:
    """`text` as that model reads it with some heads, each a layer and a head from 0, switched off; ValueError as above."""
    folder = _folder(name)
    return _read_without(folder, _changed(folder), text, off, how)


def model_key(name: str) -> tuple[str, int]:
    """The folder of the model of that name, and when it was last written to; ValueError if there is none."""
    folder = _folder(name)
    return folder, _changed(folder)


def digest(text: str) -> bytes:
    """By which a text is known again."""
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def weights_hash(name: str) -> str:
    """By which a model is known again, however it is called."""
    return _weights_hash(*model_key(name))


def predictions(name: str, of: str = "test") -> Predictions:
    """What that model answered on a side in its evaluation, or answers on a data set of the catalogue that `of` names.

    ValueError where the first is missing or damaged, and for what `evaluation.elsewhere` refuses.
    """
    return _predictions(*model_key(name), of)


def test_answers(run: Run) -> Predictions:
    """What the model of a run answered on its test reviews; ValueError where that is missing or damaged."""
    assert run.model is not None
    return _stored(str(run.model), _changed(str(run.model)), "test")


def label_names(name: str, n_classes: int) -> tuple[str, ...]:
    """What that model calls its classes; their numbers where its record does not say."""
    return stored.label_names(Path(_folder(name)), n_classes)


def splits(name: str) -> Splits:
    """The reviews that a model was trained and measured on, as they are now; ValueError if they cannot be found."""
    config = runs_on_disk.config_of(Path(_folder(name)))
    return _splits(config.reviews, config.training.seed, stamp(config.reviews))


def texts(name: str, of: str) -> dict[str, str]:
    """The reviews of a side, or of a data set that `of` names, by the hashes that `predictions` have; ValueError as above."""
    if of not in SOURCES:
        return splits(name).texts(of)
    found = _splits(DataConfig(data=of), 0, None)
    return {hash: text for side in found.hashes for hash, text in found.texts(side).items()}


def side_checks(name: str) -> dict[str, SideCheck]:
    """How the sides are made up that a model was trained and measured on; ValueError if they cannot be found."""
    return _side_checks(*model_key(name), splits(name))


def unknown_words(name: str, side: str) -> float:
    """Share of the words of a side that a model cannot spell; ValueError as above, and if it cannot be opened."""
    return _unknown_words(*model_key(name), side, splits(name))


def ranges(name: str, of: str, edges: tuple[int, ...]) -> list[LengthRange]:
    """How good that model is in each range of lengths; ValueError as from `predictions`."""
    return _ranges(*model_key(name), of, edges)


def differences(base: str, variant: str, of: str, edges: tuple[int, ...]) -> list[Difference | None]:
    """How much more accurate a model is than another in each range; ValueError if they are not to be compared."""
    return _differences(model_key(base), model_key(variant), of, edges)


def paired(base: Run, variant: Run) -> Paired:
    """How much better a run's model is than another's on the same test reviews; ValueError if they are not to be compared."""
    folders = [run.model for run in (base, variant) if run.model is not None]
    assert len(folders) == 2
    return _paired(*((str(folder), _changed(str(folder))) for folder in folders))


@st.cache_data(max_entries=1, show_spinner=False)
def examples() -> dict[str, str]:
    """Five reviews of the bundled test split, by the names of `ui.examples`."""
    from core.data.sources.bundled import imdb
    from core.data.splits import split

    return examples_by_rule.choose(split(imdb()).test)


def table(id: str) -> Table:
    """The table of an upload, which nobody may change; ValueError if there is no upload of that id."""
    return _table(uploads.find(id).id)


def prepared(id: str, text_columns: tuple[str, ...], label_column: str) -> Prepared:
    """The usable reviews of an upload; ValueError for what `preparation.prepare` refuses."""
    return _prepared(uploads.find(id).id, text_columns, label_column)


def estimate(config: RunConfig) -> Estimate:
    """What a training is expected to take on this machine; ValueError for data or knobs that cannot be used."""
    return _estimate(config)


def mean_length(config: RunConfig) -> float:
    """Tokens that its network reads of a review on average; ValueError for data that cannot be used."""
    return _mean_length(config.reviews, config.training.seed, config.model)


def unanswered(name: str, texts: Sequence[str | None]) -> list[str]:
    """The different ones of `texts` that this session has no answer of that model for; ValueError if there is no model."""
    key, kept = model_key(name), _answers()
    return [text for text in dict.fromkeys(texts) if text is not None and (*key, digest(text)) not in kept]


def ask(name: str, texts: Sequence[str]) -> Iterator[int]:
    """Asks that model for an answer to each of `texts`, and says again and again how many are new.

    Answers are kept for the session as they come: what was stopped goes on from where it was. The oldest ones go when
    there are more than `MOST_ANSWERS`. ValueError if the model cannot be opened.
    """
    key, kept, opened = model_key(name), _answers(), model(name)
    for start in range(0, len(texts), ANSWERED_AT_ONCE):
        chunk = texts[start : start + ANSWERED_AT_ONCE]
        for text, found in zip(chunk, answer(opened, chunk), strict=True):
            kept[*key, digest(text)] = found
        while len(kept) > MOST_ANSWERS:
            del kept[next(iter(kept))]
        yield len(chunk)


def scored(name: str, texts: Sequence[str | None]) -> Scored:
    """What that model answered for each of `texts`, of which none may be `unanswered`; None where there is no text."""
    key, kept = model_key(name), _answers()
    answers = [None if text is None else kept[*key, digest(text)] for text in texts]
    return Scored(model=model_title(name), label_names=model(name).label_names, answers=answers)


def _answers() -> dict[tuple[str, int, bytes], Answer]:
    return st.session_state.setdefault("answers", {})


def _folder(name: str) -> str:
    if is_foreign(name):
        return _foreign_folder(name)
    folders = model_folders()
    if name not in folders:
        raise ValueError(f"there is no model {name!r}; choose one of {', '.join(folders)}")
    return str(folders[name])


@st.cache_data(max_entries=32, ttl=3600, show_spinner="Looking for the model…")
def _foreign_folder(name: str) -> str:
    with importing:
        return str(local_folder(Path(name)))


def _changed(folder: str) -> int:
    """When a file of the folder was last written, so that a model trained anew is opened anew; 0 if it is gone meanwhile."""
    with suppress(FileNotFoundError, NotADirectoryError):
        return max((file.stat().st_mtime_ns for file in Path(folder).iterdir()), default=0)
    return 0


@st.cache_data(max_entries=32, show_spinner=False)
def _curves(_run: Run, events: str, size: int) -> dict[str, Curve]:
    return curves_of.curves(_run.events)


@st.cache_data(max_entries=32, show_spinner="Trying a layer of this network…")
def _estimate(config: RunConfig) -> Estimate:
    with importing:
        from core.training.estimate import estimate
    return estimate(config, _sample(config.reviews, config.training.seed, config.model.vocab_size))


@st.cache_data(max_entries=32, show_spinner="Counting the tokens of some reviews…")
def _mean_length(data: DataConfig, seed: int, model: Architecture) -> float:
    with importing:
        from core.data.batches import Cut
    cut, tokens = Cut.of(model), _sample(data, seed, model.vocab_size).tokens
    return sum(len(cut.kept(n)) + len(cut.prefix) for n in tokens.tolist()) / len(tokens)


@st.cache_data(max_entries=8, show_spinner="Reading the reviews…")
def _sample(data: DataConfig, seed: int, vocab_size: int) -> Sample:
    from core.data.reviews import load
    from core.training.estimate import sample

    reviews = load(data, seed)
    return sample(reviews.texts, len(reviews.label_names), vocab_size)


@st.cache_resource(max_entries=4, show_spinner=False)
def _open(folder: str, changed: int) -> Opened:
    with importing:
        from transformers.utils import logging

        logging.disable_progress_bar()  # which would write to the server's log at each model
        return open_reader(Path(folder))


@st.cache_data(max_entries=32, show_spinner=False)
def _weights_hash(folder: str, changed: int) -> str:
    from core.inspection.report import weights_hash

    return weights_hash(_open(folder, changed))


@st.cache_resource(max_entries=4, scope="session", show_spinner="Reading the review…")
def _read(folder: str, changed: int, text: str, windows: bool) -> Reading:
    opened = _open(folder, changed)
    from core.inspection.reading import read

    return read(opened, text, windows=windows)


@st.cache_resource(max_entries=4, scope="session", show_spinner="Switching off each head…")
def _heads(folder: str, changed: int, text: str, how: How) -> list[Head]:
    opened = _open(folder, changed)
    from core.inspection.heads import heads

    return heads(opened, text, how)


@st.cache_resource(max_entries=4, scope="session", show_spinner="Reading the review without those heads…")
def _read_without(folder: str, changed: int, text: str, off: tuple[tuple[int, int], ...], how: How) -> Reading:
    opened = _open(folder, changed)
    from core.inspection import heads
    from core.inspection.reading import read

    shape = (opened.network.config.num_hidden_layers, opened.network.config.num_attention_heads)
    return read(opened, text, **heads.off(shape, off, how))


@st.cache_resource(max_entries=4, show_spinner="Reading the table…")
def _table(id: str) -> Table:
    upload = uploads.find(id)
    return replace(read_content(upload.path.name, upload.path.read_bytes()), name=upload.name)


@st.cache_resource(max_entries=4, show_spinner="Looking through the reviews…")
def _prepared(id: str, text_columns: tuple[str, ...], label_column: str) -> Prepared:
    return preparation.prepare(_table(id), text_columns, label_column)


@st.cache_resource(max_entries=2, show_spinner="Finding the reviews…")
def _splits(data: DataConfig, seed: int, stamp: str | None) -> Splits:
    return split(load(data, seed))


@st.cache_data(max_entries=8, show_spinner="Looking through the reviews…")
def _side_checks(folder: str, changed: int, _splits: Splits) -> dict[str, SideCheck]:
    return checks.side_checks(_splits)


@st.cache_data(max_entries=32, show_spinner="Counting unknown words…")
def _unknown_words(folder: str, changed: int, side: str, _splits: Splits) -> float:
    return checks.unknown_words(_open(folder, changed).tokenizer, _splits.side(side).texts)


def _predictions(folder: str, changed: int, of: str) -> Predictions:
    return _elsewhere(folder, changed, of) if of in SOURCES else _stored(folder, changed, of)


@st.cache_resource(max_entries=16, show_spinner="Reading the answers…")
def _stored(folder: str, changed: int, side: str) -> Predictions:
    return stored.read(Path(folder), side)


@st.cache_resource(max_entries=8, show_spinner="Asking a model about another data set…")
def _elsewhere(folder: str, changed: int, source: str) -> Predictions:
    with importing:
        from core.evaluation.elsewhere import elsewhere
    return elsewhere(_open(folder, changed), source)


@st.cache_data(max_entries=64, show_spinner=False)
def _ranges(folder: str, changed: int, of: str, edges: tuple[int, ...]) -> list[LengthRange]:
    return lengths.ranges(_predictions(folder, changed, of), edges)


@st.cache_data(max_entries=64, show_spinner=False)
def _differences(base: tuple[str, int], variant: tuple[str, int], of: str, edges: tuple[int, ...]) -> list[Difference | None]:
    return lengths.differences(_predictions(*base, of), _predictions(*variant, of), edges)


@st.cache_data(max_entries=32, show_spinner="Comparing the predictions…")
def _paired(base: tuple[str, int], variant: tuple[str, int]) -> Paired:
    return compare(_predictions(*base, "test"), _predictions(*variant, "test"))
