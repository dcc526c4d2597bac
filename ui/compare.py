"""Runs beside one another as tables and sentences: how each stands, what differs, and whether a difference is one."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from core import runs
from core.config import BiLSTMArchitecture, LinearArchitecture
from core.evaluation.paired import Paired
from core.events import EpochFinished, Failed, Queued, StepFinished
from core.figures.labels import count
from core.recorded import shown
from core.runs import Run
from core.statistics import holm, verdict
from ui.launching import is_asked_to_stop

SIDES = ("validation", "test")
NO_VALUE = "n/a"
ITSELF = "–"
FEATURES = {"naive-bayes": "naive Bayes", "tfidf": "TF-IDF"}


def overview(found: Sequence[Run], baseline: Run | None = None) -> pd.DataFrame:
    """A row for each run: how it stands and how good it is, and against the baseline, if there is one.

    Shares in percent, times in seconds; what is unknown is none.
    """
    titles = titles_of(found)
    rows = [
        {"run": titles[run.id], "state": standing(run)}
        | _measured(run, "test")
        | ({} if baseline is None else {"test vs baseline": points(run, baseline, "test")})
        | _measured(run, "validation")
        | {
            "model": kind(run),
            "data": data(run),
            "training": run.figure("training", "train_s"),
            "parameters": run.figure("n_parameters"),
            "created": run.created,
            "id": run.id,
        }
        for run in found
    ]
    return pd.DataFrame(rows)


def _measured(run: Run, side: str) -> dict[str, Any]:
    accuracy = run.figure("metrics", side, "accuracy")
    return {side: None if accuracy is None else 100 * accuracy, f"{side} 95%": _interval(run, side)}


def titles_of(found: Sequence[Run]) -> dict[str, str]:
    """What to call each run, by id."""
    return runs.titles({run.id: run.name for run in found})


def model_name(run: Run) -> str:
    """What its model is called where models are chosen."""
    return run.id.removeprefix("models/")


def standing(run: Run) -> str:
    """How a run stands, in a line: where it is, or how it ended, and what of its folder cannot be read."""
    damage = [f"damaged: {problem}" for problem in run.problems]
    return "; ".join([", ".join([run.state, *_more(run)]), *damage])


def _more(run: Run) -> list[str]:
    said = run.last_event if run.is_alive or run.state == "failed" else None
    asked = ["asked to stop"] if is_asked_to_stop(run) else []
    match said:
        case Queued():
            return [f"{said.ahead} ahead", *asked]
        case StepFinished():
            return [f"step {said.step:,} of {said.total_steps:,}", f"{said.reviews_per_s:,.0f} reviews/s", *asked]
        case EpochFinished():
            return [f"epoch {said.epoch} validated: {said.val_accuracy:.1%}", *asked]
        case Failed():
            return [said.reason]
    return asked


def kind(run: Run) -> str | None:
    """The network in a few words, or what is measured in its place."""
    if run.config is None:
        return "a sweep of memory and time" if run.sweep else "ablations with several seeds" if run.experiment else None
    model = run.config.model
    if isinstance(model, LinearArchitecture):
        return f"Linear, {FEATURES[model.features]} of up to {count(model.longest_run, 'token')}"
    layers = count(model.n_layers, "layer")
    if isinstance(model, BiLSTMArchitecture):
        return f"BiLSTM, {layers} of 2 × {model.d_hidden}"
    return f"Transformer, {layers} of {model.d_model}, {count(model.n_heads, 'head')}"


def data(run: Run) -> str | None:
    """Which reviews, in a few words."""
    if run.config is None:
        return None
    reviews = run.config.reviews
    name = reviews.data.replace("\\", "/").rpartition("/")[2]
    return name if reviews.limit is None else f"{name}, at most {reviews.limit:,}"


def knobs(chosen: Sequence[Run]) -> pd.DataFrame:
    """A row for each knob in which the runs differ and a column for each run, values as people write them.

    Knobs that only one kind of network has come last.
    """
    titles, differing = titles_of(chosen), runs.differences(chosen)
    having = Counter(name for values in differing.values() for name in values)
    names = sorted(having, key=lambda name: -having[name])
    columns = {titles[id]: [_written(values.get(name)) for name in names] for id, values in differing.items()}
    return pd.DataFrame(columns, index=pd.Index([name.partition(".")[2] for name in names], name="knob", dtype="str"))


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return NO_VALUE
    return f"{value:g}" if isinstance(value, float) else _end_of_path(value) if isinstance(value, str) else str(value)


def _end_of_path(value: str) -> str:
    """Of a path its last two parts, which tell uploads of one name apart; a longer one would be cut at its end."""
    parts = value.replace("\\", "/").split("/")
    return value if len(parts) < 3 else f"…/{'/'.join(parts[-2:])}"


def figures(chosen: Sequence[Run], baseline: Run) -> pd.DataFrame:
    """A row for each figure, one below it for what it is against the baseline, and a column for each run."""
    rows: dict[str, list[str]] = {}
    for side in SIDES:
        rows[f"{side} accuracy"] = [_accuracy(run, side) for run in chosen]
        rows[f"{side} vs baseline"] = [points(run, baseline, side) for run in chosen]
    rows["test F1"] = [_number(run.figure("metrics", "test", "f1"), ".3f") for run in chosen]
    rows["F1 vs baseline"] = [_f1(run, baseline) for run in chosen]
    for name, short, unit, form, path in COSTS:
        rows[name] = [_number(run.figure(*path), form, unit) for run in chosen]
        rows[f"{short} vs baseline"] = [_ratio(run, baseline, path) for run in chosen]
    rows["peak memory"] = [_memory(run) for run in chosen]
    rows["memory vs baseline"] = [
        _ratio(run, baseline, PEAK) if _source(run) == _source(baseline) else NO_VALUE for run in chosen
    ]
    titles = titles_of(chosen)
    columns = {titles[run.id]: [cells[i] for cells in rows.values()] for i, run in enumerate(chosen)}
    return pd.DataFrame(columns, index=pd.Index(list(rows), name="figure", dtype="str"))


COSTS = (
    ("training time", "time", " s", ",.1f", ("training", "train_s")),
    ("training speed", "speed", " reviews/s", ",.1f", ("training", "reviews_per_s")),
    ("parameters", "parameters", "", ",.0f", ("n_parameters",)),
)
PEAK = ("peak_memory", "bytes")


def points(run: Run, baseline: Run, side: str) -> str:
    """Accuracy against the baseline's, in points, where both were measured on the same reviews."""
    return _gain(run, baseline, side, "accuracy", lambda gain: f"{signed(100 * gain)} points")


def _f1(run: Run, baseline: Run) -> str:
    return _gain(run, baseline, "test", "f1", lambda gain: f"{gain:+.3f}")


def _gain(run: Run, baseline: Run, side: str, figure: str, written: Callable[[float], str]) -> str:
    if run.id == baseline.id:
        return ITSELF
    own, other = (run.figure("metrics", side, figure) for run in (run, baseline))
    if own is None or other is None:
        return NO_VALUE
    return written(own - other) if is_same_reviews(run, baseline, side) else "n/a: other reviews"


def is_same_reviews(run: Run, other: Run, side: str) -> bool:
    """Whether both are on record as measured on the same reviews."""
    fingerprint = run.recorded("data", "fingerprint", side)
    return fingerprint is not None and fingerprint == other.recorded("data", "fingerprint", side)


def findings(chosen: Sequence[Run], baseline: Run, compared: Callable[[Run, Run], Paired]) -> list[str]:
    """A sentence for each run that was measured on the baseline's test reviews: is it better, or is that chance?

    `compared` holds the stored predictions of the baseline and of another run against each other; it raises ValueError.
    """
    titles, found, sentences = titles_of(chosen), {}, []
    others = [run for run in chosen if run.id != baseline.id and run.model and is_same_reviews(run, baseline, "test")]
    for run in others:
        try:
            found[run.id] = compared(baseline, run)
        except ValueError as error:
            sentences.append(f"{titles[run.id]} cannot be compared with the baseline: {error}.")
    chances = holm([paired.accuracy.p for paired in found.values()])
    for (id, paired), p in zip(found.items(), chances, strict=True):
        better, f1 = verdict(replace(paired.accuracy, p=p)), paired.f1
        sentences.append(
            f"{titles[id]} against the baseline: {better}, {chance(p)}{by_holm(len(found))}; "
            f"F1 {f1.value:+.3f}, 95% between {f1.low:+.3f} and {f1.high:+.3f}."
        )
    return sentences


def by_holm(n: int) -> str:
    """That p is corrected, where it is one of several."""
    return f" ({n} comparisons, by Holm)" if n > 1 else ""


def chance(p: float) -> str:
    """A p as people read it."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def other_reviews(chosen: Sequence[Run]) -> str | None:
    """What was measured on which reviews, where it was not the same for all; None where it was."""
    measured = [run for run in chosen if run.figure("metrics", "test", "accuracy") is not None]
    groups: dict[Any, list[Run]] = {}
    for run in measured:
        groups.setdefault(run.recorded("data", "fingerprint", "test"), []).append(run)
    if len(groups) < 2:
        return None
    titles = titles_of(chosen)
    parts = [f"{', '.join(titles[run.id] for run in group)} on {_reviews(group[0])}" for group in groups.values()]
    return f"These figures are of different reviews and cannot be compared with each other: {'; '.join(parts)}."


def _reviews(run: Run) -> str:
    n, name = run.figure("data", "n", "test"), run.recorded("data", "name")
    if run.recorded("data", "fingerprint", "test") is None or n is None:
        return "reviews that are not on record"
    return f"{n:,.0f} test reviews of {name}"


def machines(chosen: Sequence[Run]) -> str | None:
    """What the runs were trained on, where it was not the same for all; None where it was."""
    known = {run.id: machine for run in chosen if (machine := _machine(run)) is not None}
    if len(set(known.values())) < 2:
        return None
    titles = titles_of(chosen)
    parts = (f"{titles[id]} on {machine}" for id, machine in known.items())
    return f"Times and memory are not of the same machine: {'; '.join(parts)}."


def _machine(run: Run) -> str | None:
    name, threads = run.recorded("hardware", "gpu") or run.recorded("hardware", "cpu"), run.figure("hardware", "threads")
    return None if name is None or threads is None else f"{name}, {count(threads, 'thread')}"


def _accuracy(run: Run, side: str) -> str:
    accuracy, n = run.figure("metrics", side, "accuracy"), run.figure("metrics", side, "n")
    if accuracy is None:
        return NO_VALUE
    return f"{accuracy:.1%} ({_interval(run, side) or 'no interval'}{'' if n is None else f', n {n:,.0f}'})"


def _interval(run: Run, side: str) -> str | None:
    low, high = run.figure("metrics", side, "low"), run.figure("metrics", side, "high")
    return None if low is None or high is None else f"{100 * low:.1f} to {high:.1%}"


def _number(value: float | None, form: str, unit: str = "") -> str:
    return NO_VALUE if value is None else f"{value:{form}}{unit}"


def _ratio(run: Run, baseline: Run, path: Sequence[str]) -> str:
    if run.id == baseline.id:
        return ITSELF
    own, other = run.figure(*path), baseline.figure(*path)
    return f"{shown(own / other)} ×" if own is not None and other else NO_VALUE


def _memory(run: Run) -> str:
    peak = run.figure(*PEAK)
    return NO_VALUE if peak is None else f"{peak / 2**20:,.0f} MiB ({_source(run)})"


def _source(run: Run) -> Any:
    return run.recorded("peak_memory", "source")


def signed(points: float) -> str:
    """A difference in points, without a sign where it rounds to none."""
    return f"{points:+.1f}" if abs(points) >= 0.05 else "±0.0"
