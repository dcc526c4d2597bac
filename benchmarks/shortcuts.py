"""What the short cuts of training cost in accuracy, seed by seed: `python -m benchmarks.shortcuts`.

The loop as it is, against the same loop as an article would have it: float32, batches drawn at random and padded to the
longest review that is read, every dropout drawn for each element, and on attention weights, too.
"""

import argparse
import shlex
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.suite import HERE, recorded
from core.config import DataConfig, EncoderArchitecture, RunConfig
from core.data.batches import Batch, Cut, Store
from core.data.corpus import encode_corpus
from core.data.reviews import load
from core.evaluation.scoring import score
from core.networks import dropout
from core.networks.auto import build
from core.presets import preset
from core.recorded import Column, Table, file_name, write
from core.statistics import mean_of_seeds
from core.training import loop
from core.training.loop import Examples, fit
from core.training.machine import Execution
from core.training.run import prepare

WAYS = {
    "with short cuts": Execution(device="cpu", precision="bfloat16", backend="eager"),
    "without": Execution(device="cpu", precision="float32", backend="eager"),
}
EPOCHS, SEEDS = 3, 4


@dataclass(frozen=True, kw_only=True)
class Trained:
    """What came of one training."""

    way: str
    seed: int
    accuracy: float
    """Of the reviews held out."""
    n: int
    cpu_s: float
    """Seconds of the processor for training proper and validation."""


def configuration(limit: int | None = None) -> RunConfig:
    """`encoder-small`, narrowed to what four pairs on two cores have time for, on all of IMDB's training side."""
    base = preset("encoder-small")
    model = replace(base.model, max_len=128, d_model=128, n_layers=2, n_heads=4, d_ff=512)
    return replace(base, model=model, reviews=DataConfig(limit=limit), training=replace(base.training, epochs=EPOCHS, lr=1e-3))


def train(way: str, seed: int, held_out: str | None = None, limit: int | None = None) -> Trained:
    """One training; what is `held_out` is a table of reviews, or the test side."""
    torch.set_num_threads(1)
    prepared = prepare(configuration(limit))
    config = replace(prepared.config, training=replace(prepared.config.training, seed=seed))
    test, kept_from = prepared.examples("test"), ExitStack()
    if held_out is not None:
        reviews, cut = load(DataConfig(data=held_out), 0), Cut.of(config.model)
        test = Examples([cut.ids(ids) for ids in encode_corpus(prepared.tokenizer, reviews.texts)], reviews.labels)
    if way == "without":
        assert isinstance(config.model, EncoderArchitecture)
        config = replace(config, model=replace(config.model, attention_dropout=config.model.dropout))
        kept_from.enter_context(plainly(config.model.max_len, config.training.batch_size, seed))
    torch.manual_seed(seed)
    network, before = build(config.model, prepared.splits.train.label_names), time.process_time()
    with kept_from:
        fit(
            network, config, prepared.examples("train"), prepared.examples("validation"), execution=WAYS[way],
            emit=lambda event: None,
        )  # fmt: skip
    spent = time.process_time() - before
    accuracy = float((score(network, test.ids).argmax(-1) == test.labels).mean())
    return Trained(way=way, seed=seed, accuracy=accuracy, n=len(test), cpu_s=spent)


@contextmanager
def plainly(longest: int, batch: int, seed: int) -> Iterator[None]:
    """Trainings of this process take no short cut meanwhile; a step is computed in parts of half a batch, to the same sum."""
    rng, cut = np.random.Generator(np.random.SFC64(seed)), Store.padded

    def each_element(x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        """Dropout that draws a number for each element, by a generator that is quicker than PyTorch's."""
        if not training or p == 0:
            return x
        kept = rng.integers(0, 2**16, x.numel(), dtype=np.uint16) >= round(p * 2**16)
        return x * torch.from_numpy(kept).view(x.shape).to(x.dtype).mul_(1 / (1 - p))

    def at_random(
        lengths: np.ndarray, tokens: int, rng: np.random.Generator, at_once: int | None = None
    ) -> list[list[np.ndarray]]:
        order = rng.permutation(len(lengths))
        return [np.array_split(order[i : i + batch], 2) for i in range(0, len(order), batch)]

    def to_the_longest(store: Store, indices: np.ndarray) -> Batch:
        ids = cut(store, indices).input_ids
        ids = F.pad(ids, (0, longest - ids.shape[1]))
        return Batch(ids, torch.arange(longest) < torch.from_numpy(store.lengths[indices])[:, None])

    with (
        patch.object(dropout, "dropout_from_table", each_element), patch.object(F, "dropout", each_element),
        patch.object(loop, "shuffled_steps", at_random), patch.object(Store, "padded", to_the_longest),
    ):  # fmt: skip
        yield


def tables(found: Sequence[Trained]) -> tuple[Table, Table]:
    """Each seed's two trainings, and the mean of their difference."""
    by_way = {way: {one.seed: one for one in found if one.way == way} for way in WAYS}
    fast, plain = by_way.values()
    seeds = sorted(set(fast) & set(plain))
    difference = mean_of_seeds([100 * (fast[seed].accuracy - plain[seed].accuracy) for seed in seeds])
    return (
        Table(
            name="trainings",
            caption=f"Accuracy on the same {found[0].n:,} reviews held out, and seconds of one core. The network: "
            f"`encoder-small`, narrowed to two layers of 128 and 4 heads, 128 tokens, {EPOCHS} epochs of IMDB's training side.",
            columns=(
                Column(name="seed"), *(Column(name=f"accuracy {way}", unit="%") for way in WAYS),
                *(Column(name=f"CPU {way}", unit="s") for way in WAYS),
            ),
            rows=tuple(
                (seed, *(100 * by_way[way][seed].accuracy for way in WAYS), *(by_way[way][seed].cpu_s for way in WAYS))
                for seed in seeds
            ),
        ),
        Table(
            name="difference",
            caption="Points of accuracy, with short cuts less without: the mean over seeds and its 95% interval (Student's t).",
            columns=tuple(Column(name=name) for name in ("seeds", "points", "from", "to")),
            rows=((difference.n, difference.value, difference.low, difference.high),),
        ),
    )  # fmt: skip


def main() -> None:
    """Trains, two at a time, and writes the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="pairs of trainings: %(default)s")
    parser.add_argument("--held-out", metavar="TABLE", help="reviews to count on; without it, the lab's own test side")
    parser.add_argument("--limit", type=int, help="train on so many reviews only: to see that all runs")
    parser.add_argument("--workers", type=int, default=2, help="processes of one thread each: %(default)s")
    parser.add_argument("--out", default=str(HERE), help="folder for RESULTS_shortcuts_<hardware>_<date>.json and .md")
    given = parser.parse_args()
    prepare(configuration(given.limit))  # once, for the cache that all then read
    named = ["--held-out", Path(given.held_out).name] if given.held_out else []
    named += ["--limit", str(given.limit)] if given.limit else []
    command = shlex.join(["python", "-m", "benchmarks.shortcuts", "--seeds", str(given.seeds), *named])
    nothing = replace(recorded("What the short cuts of training cost", command, seed=0), notes=())  # no clock is read
    tasks = [(way, seed) for seed in range(given.seeds) for way in WAYS]
    with ProcessPoolExecutor(given.workers, mp_context=get_context("spawn")) as pool:
        started = [pool.submit(train, way, seed, given.held_out, given.limit) for way, seed in tasks]
        found = [one.result() for one in started]
    write(replace(nothing, tables=tables(found)), Path(given.out) / file_name(nothing, "shortcuts"))


if __name__ == "__main__":
    main()
