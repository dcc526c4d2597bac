"""A person's table through a model: measured if it has labels, labelled if it has none."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from core.artifact import Model
from core.data.batches import Cut
from core.data.corpus import Corpus, encode_corpus
from core.data.table import labelled, read_table, text_column
from core.evaluation.metrics import metrics
from core.evaluation.scoring import score
from core.records import Metrics
from core.words import count_words

Progress = Callable[[int, int], None]


def evaluate(model: Model, path: Path, text_name: str, label_name: str, progress: Progress) -> Metrics:
    """How well `model` labels the table. ValueError if it cannot be used, or holds one class alone."""
    reviews = labelled(read_table(path), text_name, label_name, model.label_names, path.name)
    if len(set(reviews.labels)) < 2:
        only = model.label_names[reviews.labels[0]]
        raise ValueError(f"column {label_name!r}: it holds only {only!r}, expected at least two classes")
    logits = table_logits(model, reviews.texts, windows=False, progress=progress)
    words = np.array([count_words(text) for text in reviews.texts])
    return metrics(logits, np.array(reviews.labels), words)


def label_table(
    model: Model, path: Path, out: Path | None, text_name: str, windows: bool, progress: Progress
) -> dict[str, Any]:
    """Writes the table with columns `label` and `probability` (of that label) added, and says where.

    ValueError if it has columns of these names already: what a person brought is never overwritten.
    """
    frame = read_table(path)
    taken = [name for name in ("label", "probability") if name in frame.columns]
    out = out or path.with_name(f"{path.stem}.labelled{path.suffix}")
    if out.exists():
        raise ValueError(f"{out}: there is a file already; name another with --out")
    names = [f"predicted_{name}" if name in taken else name for name in ("label", "probability")]
    texts = text_column(frame, text_name)
    logits = table_logits(model, texts, windows=windows, progress=progress)
    probabilities = _softmax(logits)
    frame[names[0]] = [model.label_names[i] for i in probabilities.argmax(-1)]
    frame[names[1]] = probabilities.max(-1)
    _write(frame, out)
    return {"n": len(frame), "out": str(out), "columns": names}


def table_logits(model: Model, texts: Sequence[str], *, windows: bool, progress: Progress) -> Float[np.ndarray, "n C"]:
    """Logits of each text; with `windows` the mean over windows that read all of it."""
    corpus = _encoded(model, texts)
    cut = Cut.of(model.architecture)
    passes = [[cut.ids(ids, kept) for kept in (cut.windows(len(ids)) if windows else [cut.kept(len(ids))])] for ids in corpus]
    counts = np.array([len(parts) for parts in passes])
    logits = score(model.network, [ids for parts in passes for ids in parts], lambda n: progress(n, int(counts.sum())))
    return np.add.reduceat(logits, np.r_[0, counts.cumsum()[:-1]]) / counts[:, None].astype(np.float32)


def _encoded(model: Model, texts: Sequence[str]) -> Corpus:
    corpus = encode_corpus(model.tokenizer, texts)
    if not corpus.lengths.all():
        row = int(np.flatnonzero(corpus.lengths == 0)[0]) + 1
        raise ValueError(f"row {row}: got a text without a visible character, expected a review of at least one word")
    return corpus


def _softmax(logits: Float[np.ndarray, "n C"]) -> Float[np.ndarray, "n C"]:
    exponentials = np.exp(logits - logits.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


def _write(frame: pd.DataFrame, out: Path) -> None:
    if out.suffix.lower() == ".csv":
        frame.to_csv(out, index=False)
    elif out.suffix.lower() == ".parquet":
        frame.to_parquet(out, index=False)
    else:
        raise ValueError(f"out: got a name that ends in {out.suffix!r}, expected .csv or .parquet")
