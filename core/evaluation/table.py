"""A person's table through a model: measured if it has labels, labelled if it has none."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from core.artifact import Reader
from core.data.corpus import encode_corpus
from core.data.table import labelled, open_as_named, texts_of
from core.evaluation.metrics import metrics
from core.evaluation.scoring import score
from core.evaluation.writing import SPREADSHEETS, WRITERS, free_name, inert, rendered
from core.records import Metrics
from core.statistics import softmax
from core.words import count_words

Progress = Callable[[int, int], None]


def evaluate(model: Reader, path: Path, text_name: str, label_name: str, progress: Progress) -> tuple[Metrics, tuple[str, ...]]:
    """How well `model` labels the table, and sentences on how that was read and which rows without text were left out.

    ValueError if it cannot be used, or holds one class alone.
    """
    table = open_as_named(path)
    reviews = labelled(table.frame, text_name, label_name, model.label_names, path.name)
    if len(set(reviews.labels)) < 2:
        only = model.label_names[reviews.labels[0]]
        raise ValueError(f"column {label_name!r}: it holds only {only!r}, expected at least two classes")
    logits = table_logits(model, reviews.texts, windows=False, progress=progress)
    words = np.array([count_words(text) for text in reviews.texts])
    return metrics(logits, np.array(reviews.labels), words), (*table.assumed, *reviews.notes)


def label_table(
    model: Reader, path: Path, out: Path | None, text_name: str, windows: bool, progress: Progress
) -> dict[str, Any]:
    """Writes the table with columns `label` and `probability` (of that label) added, and says where, and how it was read.

    A row without text keeps its place and gets neither. Nothing that a person brought is overwritten: where a column has
    such a name already, ours is called `predicted_...`, and a file that exists is a ValueError, as is every other place that
    cannot be written and a column without any text; it comes before the scoring.
    """
    out = out or path.with_name(f"{path.stem}.labelled{path.suffix}")
    _refuse_unwritable(out)
    table = open_as_named(path)
    frame = table.frame
    rows, texts = texts_of(frame, text_name)
    _rendered(frame, out)  # refuses what this format cannot hold
    shares = softmax(table_logits(model, texts, windows=windows, progress=progress))
    names = [free_name(name, frame) for name in ("label", "probability")]
    labels = [model.label_names[i] for i in shares.argmax(-1)]
    frame[names[0]] = _placed(inert(labels) if out.suffix.lower() in SPREADSHEETS else labels, rows, len(frame))
    frame[names[1]] = _placed(shares.max(-1).tolist(), rows, len(frame))
    _write(_rendered(frame, out), out)
    summary = {"n": len(texts), "without_text": len(frame) - len(texts), "out": str(out), "columns": names}
    return summary | {"assumed": list(table.assumed)}


def _placed(values: Sequence[object], rows: Sequence[int], n: int) -> list[object]:
    """The values at their rows, none at the others."""
    placed: list[object] = [None] * n
    for value, row in zip(values, rows, strict=True):
        placed[row - 1] = value
    return placed


def table_logits(model: Reader, texts: Sequence[str], *, windows: bool, progress: Progress) -> Float[np.ndarray, "n C"]:
    """Logits of each text; with `windows` the mean over windows that read all of it."""
    corpus = encode_corpus(model.tokenizer, texts)
    cut = model.cut
    passes = [[cut.ids(ids, kept) for kept in (cut.windows(len(ids)) if windows else [cut.kept(len(ids))])] for ids in corpus]
    counts = np.array([len(parts) for parts in passes])
    logits = score(model.network, [ids for parts in passes for ids in parts], lambda n: progress(n, int(counts.sum())))
    return np.add.reduceat(logits, np.r_[0, counts.cumsum()[:-1]]) / counts[:, None].astype(np.float32)


def _refuse_unwritable(out: Path) -> None:
    if out.suffix.lower() not in WRITERS:
        *others, last = WRITERS
        raise ValueError(f"out: got a name that ends in {out.suffix!r}, expected {', '.join(others)} or {last}")
    if out.exists():
        raise ValueError(f"{out}: there is a file already; name another with --out")
    if not out.parent.is_dir():
        raise ValueError(f"{out}: there is no folder {out.parent}; make it first, or name another with --out")


def _rendered(frame: pd.DataFrame, out: Path) -> bytes:
    try:
        return rendered(frame, out.suffix.lower())
    except ValueError as error:
        raise ValueError(f"{out}: {error}") from error


def _write(content: bytes, out: Path) -> None:
    try:
        with out.open("xb") as file:  # a file that came meanwhile is left alone, too
            file.write(content)
    except OSError as error:
        raise ValueError(f"{out}: the table cannot be written there: {error.strerror}") from error
