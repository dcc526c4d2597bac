"""A person's table through a model: measured if it has labels, labelled if it has none."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from jaxtyping import Bool, Float

from core.artifact import Model
from core.data.batches import Cut
from core.data.corpus import encode_corpus
from core.data.table import column, is_blank, labelled, read_table, text_column
from core.evaluation.metrics import metrics
from core.evaluation.scoring import probabilities, score
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

    A row without text keeps its place and gets neither. Nothing that a person brought is overwritten: where a column has
    such a name already, ours is called `predicted_...`, and a file that exists is a ValueError, as is every other place that
    cannot be written and a column without any text; it comes before the scoring.
    """
    out = out or path.with_name(f"{path.stem}.labelled{path.suffix}")
    _refuse_unwritable(out)
    frame = read_table(path)
    filled = np.array([not is_blank(cell) for cell in column(frame, text_name)])
    texts = text_column(frame[filled] if filled.any() else frame, text_name)
    _rendered(frame, out)  # refuses what this format cannot hold
    shares = probabilities(table_logits(model, texts, windows=windows, progress=progress))
    names = [_free_name(name, frame) for name in ("label", "probability")]
    frame[names[0]] = _placed([model.label_names[i] for i in shares.argmax(-1)], filled)
    frame[names[1]] = _placed(shares.max(-1).tolist(), filled)
    _write(_rendered(frame, out), out)
    return {"n": len(texts), "without_text": int((~filled).sum()), "out": str(out), "columns": names}


def _placed(values: Sequence[object], filled: Bool[np.ndarray, "n"]) -> list[object]:
    """One value for each row that has text, none for the others."""
    rest = iter(values)
    return [next(rest) if full else None for full in filled]


def table_logits(model: Model, texts: Sequence[str], *, windows: bool, progress: Progress) -> Float[np.ndarray, "n C"]:
    """Logits of each text; with `windows` the mean over windows that read all of it."""
    corpus = encode_corpus(model.tokenizer, texts)
    cut = Cut.of(model.architecture)
    passes = [[cut.ids(ids, kept) for kept in (cut.windows(len(ids)) if windows else [cut.kept(len(ids))])] for ids in corpus]
    counts = np.array([len(parts) for parts in passes])
    logits = score(model.network, [ids for parts in passes for ids in parts], lambda n: progress(n, int(counts.sum())))
    return np.add.reduceat(logits, np.r_[0, counts.cumsum()[:-1]]) / counts[:, None].astype(np.float32)


def _refuse_unwritable(out: Path) -> None:
    if out.suffix.lower() not in WRITERS:
        raise ValueError(f"out: got a name that ends in {out.suffix!r}, expected {' or '.join(WRITERS)}")
    if out.exists():
        raise ValueError(f"{out}: there is a file already; name another with --out")
    if not out.parent.is_dir():
        raise ValueError(f"{out}: there is no folder {out.parent}; make it first, or name another with --out")


def _free_name(name: str, frame: pd.DataFrame) -> str:
    return _free_name(f"predicted_{name}", frame) if name in frame.columns else name


def _rendered(frame: pd.DataFrame, out: Path) -> bytes:
    try:
        return WRITERS[out.suffix.lower()](frame)
    except (pa.ArrowException, ValueError) as error:
        raise ValueError(f"{out}: a {out.suffix} file cannot hold this table: {error}") from error


def _write(content: bytes, out: Path) -> None:
    try:
        with out.open("xb") as file:  # a file that came meanwhile is left alone, too
            file.write(content)
    except OSError as error:
        raise ValueError(f"{out}: the table cannot be written there: {error.strerror}") from error


def _csv(frame: pd.DataFrame) -> bytes:
    """As RFC 4180: with line ends of two characters, the cells that hold either of them are quoted."""
    return frame.to_csv(index=any(frame.index.names), lineterminator="\r\n").encode()


def _parquet(frame: pd.DataFrame) -> bytes:
    return frame.to_parquet()


WRITERS: dict[str, Callable[[pd.DataFrame], bytes]] = {".csv": _csv, ".parquet": _parquet}
