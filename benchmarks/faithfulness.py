"""Which evidence can be trusted, and for which model: `python -m benchmarks.faithfulness`.

The curves of `core.inspection.faithfulness` and the agreement of methods, over test reviews of the models that come along, or
of others. The page Evidence shows what is recorded of the model on view.
"""

import argparse
import shlex
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from itertools import zip_longest
from multiprocessing import get_context
from pathlib import Path
from statistics import mean, median

import torch
from tqdm import tqdm

from benchmarks.suite import HERE, ROOT, recorded
from core.artifact import Model, open_model
from core.catalog import EVIDENCE
from core.data.reviews import load
from core.data.splits import split
from core.inspection.evidence import evidence
from core.inspection.faithfulness import RANDOM_ORDERS, SEED, STEPS, Areas, areas, faithfulness, verdict
from core.inspection.gradients import MOST_GAP, MOST_STEPS
from core.inspection.report import weights_hash
from core.inspection.summary import Agreement, agreements
from core.recorded import Column, Table, Value, file_name, write
from core.runs import config_of
from core.statistics import mean_of_seeds

MODELS = tuple(str(ROOT / "models" / name) for name in ("imdb-encoder", "imdb-bilstm"))
REVIEWS = 200
WRITTEN_EVERY = 20
"""Readings: what is stopped has a result of fewer reviews."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What was found of one review."""

    model: str
    areas: dict[str, Areas]
    completeness_gap: float
    agreements: list[Agreement]


def ask(folder: str, text: str) -> Asked:
    """One review through one model, with every method."""
    model = _model(folder)
    found = evidence(model, text)
    curves = faithfulness(model, found)
    assert found.completeness_gap is not None
    return Asked(
        model=model.name,
        areas={method: areas(curves, method) for method in found.found},
        completeness_gap=found.completeness_gap,
        agreements=agreements(found),
    )


@cache
def _model(folder: str) -> Model:
    torch.set_num_threads(1)
    return open_model(Path(folder))


def models(folders: Sequence[str]) -> Table:
    """Which models are asked. ValueError for one that cannot be opened or is linear."""
    for folder in folders:
        if _model(folder).kind == "linear":
            raise ValueError(f"{folder}: got a linear model, whose weights are its evidence, expected a network")
    rows = tuple((_model(folder).name, weights_hash(_model(folder))) for folder in folders)
    caption = "The first 16 digits of the SHA-256 of each model.safetensors, by which a model is known again."
    return Table(name="models", caption=caption, columns=(Column(name="model"), Column(name="weights")), rows=rows)


def tables(found: Sequence[Asked]) -> tuple[Table, ...]:
    """Of all that was asked until now."""
    by_model = {name: [one for one in found if one.model == name] for name in dict.fromkeys(one.model for one in found)}
    by_model = {name: own for name, own in by_model.items() if len(own) > 1}
    return (_faithfulness(by_model), _agreement(by_model), _completeness(by_model))


def _faithfulness(by_model: dict[str, list[Asked]]) -> Table:
    return Table(
        name="faithfulness",
        caption=(
            f"The probability of the predicted class while the words that a model read go in {STEPS} steps, a mask in the "
            "place of each: the area under its curve, from 0 to 1, as a mean over reviews. Deletion takes those with most "
            "evidence first, and should be small; insertion leaves them to the last, and should be large; random is the mean "
            f"of {RANDOM_ORDERS} random orders of each review. A gain is the paired difference to random, with its 95% "
            "interval: evidence whose intervals do not lie above 0 is no better than random. The last column counts reviews on "
            "which it is better than every random order in both. Occlusion hides words by the very mask that stands in their "
            "place here, which favours it; attention does not tell what speaks for a class from what speaks against it."
        ),
        columns=(
            Column(name="model"), Column(name="evidence"), Column(name="reviews"), Column(name="deletion"),
            Column(name="insertion"), Column(name="random"), *_gain_columns("deletion"), *_gain_columns("insertion"),
            Column(name="verdict"), Column(name="better than every random order", unit="%"),
        ),
        rows=tuple(_row(name, method, [one.areas[method] for one in own])
                   for name, own in by_model.items() for method in own[0].areas),
    )  # fmt: skip


def _gain_columns(name: str) -> tuple[Column, ...]:
    return tuple(Column(name=f"gain in {name}{end}") for end in ("", ", from", ", to"))


def _row(model: str, method: str, found: list[Areas]) -> tuple[Value, ...]:
    deletion = mean_of_seeds([float(one.random.mean()) - one.deletion for one in found])
    insertion = mean_of_seeds([one.insertion - float(one.random.mean()) for one in found])
    means = (mean(one.deletion for one in found), mean(one.insertion for one in found))
    return (
        model, EVIDENCE[method].title, len(found), *means, mean(float(one.random.mean()) for one in found),
        deletion.value, deletion.low, deletion.high, insertion.value, insertion.low, insertion.high,
        verdict(deletion=deletion.low > 0, insertion=insertion.low > 0), 100 * mean(one.faithful for one in found),
    )  # fmt: skip


def _agreement(by_model: dict[str, list[Asked]]) -> Table:
    rows: list[tuple[Value, ...]] = []
    for name, own in by_model.items():
        for pairs in zip(*(one.agreements for one in own), strict=True):
            taus = [pair.tau for pair in pairs if pair.tau is not None]
            titles = (EVIDENCE[pairs[0].first].title, EVIDENCE[pairs[0].second].title)
            rows.append((name, *titles, len(taus), mean(taus) if taus else None, mean(pair.overlap for pair in pairs)))
    return Table(
        name="agreement",
        caption="Kendall's tau of two methods' order of a review's words, whatever their signs, and how many of the five "
        "strongest words of one are among those of the other: means over reviews.",
        columns=tuple(Column(name=name) for name in ("model", "first", "second", "reviews", "tau", "overlap of five")),
        rows=tuple(rows),
    )


def _completeness(by_model: dict[str, list[Asked]]) -> Table:
    gaps = {name: [one.completeness_gap for one in own] for name, own in by_model.items()}
    return Table(
        name="completeness",
        caption="Integrated gradients: how far their sum is from what it should be, f(review) - f(padding) in log-odds, as a "
        f"share of that. Steps are doubled until it is under {MOST_GAP:.0%}, up to {MOST_STEPS:,}.",
        columns=(
            Column(name="model"), Column(name="reviews"), *(Column(name=name, unit="%") for name in ("median", "largest")),
            Column(name=f"under {MOST_GAP:.0%}", unit="%"),
        ),
        rows=tuple(
            (name, len(own), 100 * median(own), 100 * max(own), 100 * mean(gap < MOST_GAP for gap in own))
            for name, own in gaps.items()
        ),
    )  # fmt: skip


def texts(folder: str, n: int) -> list[str]:
    """Test reviews of a model in the order of their hashes, which is none: it has not learned from them."""
    config = config_of(Path(folder))
    sides = split(load(config.reviews, config.training.seed))
    return [text for _, text in sorted(zip(sides.hashes["test"], sides.test.texts, strict=True))][:n]


def asked_all(folders: Sequence[str], n: int, workers: int) -> Iterator[Asked]:
    """Every review through each model, the models in turns."""
    own = [[(folder, text) for text in texts(folder, n)] for folder in folders]
    tasks = [task for turn in zip_longest(*own) for task in turn if task is not None]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from tqdm(pool.map(ask, *zip(*tasks, strict=True)), total=len(tasks), unit=" readings")


def main() -> None:
    """Asks, and writes the file again and again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reviews", type=int, default=REVIEWS, help="for each model: %(default)s")
    parser.add_argument("--models", nargs="+", default=list(MODELS), metavar="DIR", help="networks: those that come along")
    parser.add_argument("--workers", type=int, default=1, help="processes of one thread each: %(default)s")
    parser.add_argument("--out", default=str(HERE), help="folder for RESULTS_faithfulness_<hardware>_<date>.json and .md")
    given = parser.parse_args()
    torch.set_num_threads(1)
    try:
        asked = models(given.models)
    except ValueError as error:
        parser.error(f"models: {error}")
    named = [] if given.models == list(MODELS) else ["--models", *given.models]
    command = shlex.join(["python", "-m", "benchmarks.faithfulness", "--reviews", str(given.reviews), *named])
    nothing = replace(recorded("Which evidence can be trusted", command, seed=SEED), notes=())  # none of it is a time
    kind = "_".join(["faithfulness", *(str(name) for name in asked.column("model") if named)])
    path, found = Path(given.out) / file_name(nothing, kind), list[Asked]()
    for one in asked_all(given.models, given.reviews, given.workers):
        found.append(one)
        if len(found) % WRITTEN_EVERY == 0:
            write(replace(nothing, tables=(asked, *tables(found))), path)
    write(replace(nothing, tables=(asked, *tables(found))), path)


if __name__ == "__main__":
    main()
