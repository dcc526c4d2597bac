"""Tables A and D of the articles, with their figures beside ours: `python -m benchmarks.cpu --only article-a,article-d`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import nn

from benchmarks import arrays
from benchmarks.inference import NO_CACHE, read_all, reader
from benchmarks.pairs import in_turns, seconds, spread, timed
from benchmarks.suite import Setting
from core.config import RunConfig, SweepConfig
from core.evaluation.scoring import score
from core.measure import sweep
from core.presets import preset
from core.recorded import Column, Table, Value
from core.training.loop import Examples, fit
from core.training.machine import Execution, n_parameters

REVIEWS = 25_000
"""Of the articles' epochs."""
READ = 512
"""Reviews of article D's predictions."""
BATCHES = (1, 16, 32)
WHERE = {"A": "V100 16 GB, latency on a T4", "D": "A100 80 GB"}


@dataclass(frozen=True, kw_only=True)
class Trained:
    """What a training came to."""

    network: nn.Module
    epoch_s: float
    """Seconds of an epoch of all of `REVIEWS`, from those of fewer."""
    accuracy: float
    f1: float
    """Of the second class."""


def trained(setting: Setting, config: RunConfig, n: int) -> Trained:
    """A network trained on the first `n` reviews and measured on test reviews, as the product does both."""
    stored, longest = arrays.of(setting), config.model.max_len
    network = reader(setting, config.model)
    examples = Examples(stored.reviews("train", longest, n=n), stored.classes("train", n=n))
    few = setting.size(cpu=200, cuda=1_000, quick=8)
    held_out = Examples(stored.reviews("validation", longest, n=few), stored.classes("validation", n=few))
    fitted = fit(network, config, examples, held_out, execution=Execution.of(config), emit=lambda event: None)
    read = setting.size(cpu=400, cuda=int(stored.counts[2]), quick=8)
    right = stored.classes("test", n=read)
    found = score(network, stored.reviews("test", longest, n=read)).argmax(-1)
    epoch_s = fitted.rates.seconds / fitted.rates.reviews * REVIEWS
    return Trained(network=network, epoch_s=epoch_s, accuracy=float((found == right).mean()), f1=_f1(found, right))


def _f1(found: np.ndarray, right: np.ndarray) -> float:
    both = int((found & right).sum())
    return 2 * both / max(1, int(found.sum() + right.sum()))


def _config(setting: Setting, name: str, **training: object) -> RunConfig:
    config = preset(name)
    model = replace(config.model, max_len=32, n_layers=1) if setting.quick else config.model
    return replace(config, model=model, training=replace(config.training, device=setting.device, **training))


def _peak_mib(setting: Setting, network: str, config: SweepConfig) -> float | None:
    """Of a step, in a process of its own."""
    backend = None if network == "bilstm" else config.backends[0]
    length = 32 if setting.quick else config.lengths[0]
    peak = sweep.measured(sweep.cell(config, backend, length), ("memory",)).peak_bytes
    return None if peak is None else peak / 2**20


def article_a(setting: Setting) -> Iterator[Table]:
    """Table "article A"."""
    n, epochs = setting.size(cpu=500, cuda=REVIEWS, quick=16), setting.size(cpu=5, cuda=5, quick=1)
    n = min(n, int(arrays.of(setting).counts[0]))
    columns = [_column_a(setting, name, n, epochs) for name in ("bilstm", "encoder-small")]
    names = ("parameters", "one epoch", "five epochs", "test accuracy", "latency of a batch", "memory of a step")
    units = ("million", "s", "min", "%", "ms", "MiB")
    theirs = ((8.6, 467, 38.9, 87.2, 18.3, 3420), (9.2, 132, 11.0, 91.6, 9.6, 5870))
    yield Table(
        name="article A",
        caption=(
            f"IMDB, batch 64, 256 tokens, AdamW 3e-4: article A's figures ({WHERE['A']}, mean of 3 runs) beside ours of one "
            f"run, trained for {epochs} epochs on {n:,} reviews; times of an epoch are of {REVIEWS:,} reviews, scaled by "
            f"{REVIEWS / n:g}. An accuracy after so many reviews is no answer to theirs where they are fewer. Latency: 64 "
            "reviews of 256 tokens. Memory: weights, gradients, AdamW and activations of a step with batch 64, 16,384 words "
            "and, in the BiLSTM, embeddings of 256, in a process of its own; the encoder's attention is written out, as there."
        ),
        columns=(
            Column(name="quantity"), Column(name="unit"), Column(name="BiLSTM, article"), Column(name="BiLSTM, here"),
            Column(name="Transformer, article"), Column(name="Transformer, here"),
        ),
        rows=tuple(zip(names, units, theirs[0], columns[0], theirs[1], columns[1], strict=True)),
    )  # fmt: skip


def _column_a(setting: Setting, name: str, n: int, epochs: int) -> tuple[Value, ...]:
    config = _config(setting, name, epochs=epochs)
    found = trained(setting, config, n)
    ids = torch.from_numpy(np.resize(np.arange(4, 5_000), (64, config.model.max_len))).to(setting.device)
    latency = spread([seconds(partial(_read, found.network, ids)) for _ in range(1 + setting.rounds)][1:])
    shape = SweepConfig(
        backends=("eager",), lengths=(256,), batches=(64,), what="step", n_layers=1 if name == "bilstm" else 3,
        device=setting.device,
    )  # fmt: skip
    peak = _peak_mib(setting, config.model.kind, shape)
    millions, minutes = n_parameters(found.network) / 1e6, 5 * found.epoch_s / 60
    return (millions, found.epoch_s, minutes, 100 * found.accuracy, 1e3 * latency.median, peak)


@torch.no_grad()
def _read(network: nn.Module, ids: torch.Tensor) -> None:
    network.eval()(ids)


def article_d(setting: Setting) -> Iterator[Table]:
    """Tables "article D" and "article D, prediction"."""
    yield _training_d(setting)
    yield _prediction_d(setting)


def _training_d(setting: Setting) -> Table:
    n = setting.size(cpu=16, cuda=5_000, quick=8)
    batch = setting.size(cpu=8, cuda=32, quick=4)
    shape = SweepConfig(
        lengths=(512,), batches=(batch,), what="step", n_heads=12, d_head=64, n_layers=6, dtype="mixed", device=setting.device
    )
    if setting.quick:
        shape = replace(shape, n_heads=2, n_layers=1)
    rows: list[tuple[Value, ...]] = []
    for label, name, backend, theirs in (
        ("BiLSTM + attention", "bilstm", "auto", (0.871, 532.0, 6.8)),
        ("Transformer, naive attention", "encoder-base", "eager", (0.914, 384.0, 11.2)),
        ("Transformer, flash attention", "encoder-base", "sdpa", (0.916, 257.0, 7.8)),
    ):
        config = _config(setting, name, epochs=1, batch_size=batch, backend=backend)
        config = config if setting.quick else replace(config, model=replace(config.model, max_len=512))
        found = trained(setting, config, n)
        kind = replace(shape, n_layers=1) if name == "bilstm" else replace(shape, backends=(backend,))
        peak = _peak_mib(setting, config.model.kind, kind)
        f1 = found.f1 if setting.device == "cuda" else None
        rows.append((label, theirs[0], f1, theirs[1], found.epoch_s, theirs[2], None if peak is None else peak / 1024))
    return Table(
        name="article D",
        caption=(
            f"IMDB, up to 512 tokens, 6 layers of 768 with 12 heads: article D's figures ({WHERE['D']}) beside ours of one "
            f"epoch over {n:,} reviews in batches of {batch}; time is that of {REVIEWS:,} reviews, scaled by {REVIEWS / n:g}. "
            + ("" if setting.device == "cuda" else "So few reviews give no F1 to compare. ")
            + f"Memory: of a step with batch {batch}, 512 tokens and 16,384 words, in a process of its own; the BiLSTM's of "
            "one layer of 768 each way."
        ),
        columns=(
            Column(name="network"), Column(name="F1, article"), Column(name="F1, here"),
            Column(name="epoch, article", unit="s"), Column(name="epoch, here", unit="s"),
            Column(name="peak, article", unit="GB"), Column(name="peak, here", unit="GiB"),
        ),
        rows=tuple(rows),
    )  # fmt: skip


def _prediction_d(setting: Setting) -> Table:
    n = setting.size(cpu=32, cuda=128, quick=4)
    config = _config(setting, "encoder-base")
    network = reader(setting, config.model).network
    reviews = arrays.of(setting).reviews("test", config.model.max_len, n=n)
    runs: dict[str, Callable[[], float]] = {
        f"{backend} {batch}": timed(partial(read_all, setting, network, reviews, batch, backend))
        for batch in BATCHES
        for backend in ("eager", "sdpa")
    }
    found = in_turns(runs, setting.rounds) if setting.device == "cuda" else {name: [run()] for name, run in runs.items()}
    theirs = {"eager": (11.4, 7.2, 6.1), "sdpa": (8.9, 4.6, 3.8)}
    rows: list[tuple[Value, ...]] = [
        (label, batch, told, READ / n * spread(found[f"{backend} {batch}"]).median)
        for backend, label in (("eager", "naive"), ("sdpa", "flash"))
        for batch, told in zip(BATCHES, theirs[backend], strict=True)
    ]
    rows += [("flash with KV cache", batch, told, None) for batch, told in zip(BATCHES, (3.2, 1.7, 1.4), strict=True)]
    return Table(
        name="article D, prediction",
        caption=(
            f"Seconds for {READ} reviews up to 512 tokens: article D's figures ({WHERE['D']}) beside ours of {n} reviews, "
            f"scaled by {READ / n:g}; each batch is padded to its longest, kernels are eager and sdpa. {NO_CACHE}"
        ),
        columns=(
            Column(name="attention"), Column(name="batch"), Column(name="article", unit="s"), Column(name="here", unit="s")
        ),
        rows=tuple(rows),
    )  # fmt: skip
