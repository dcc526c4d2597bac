"""Training: reviews per second of ours, of the articles' plain code and of what others would use, in turns."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
import torch

from benchmarks import arrays, article
from benchmarks.ceilings import gemm_rate
from benchmarks.pairs import Spread, in_turns, ratio, spread
from benchmarks.suite import Setting
from benchmarks.worker import Worker
from core.config import Architecture, EncoderArchitecture, RunConfig
from core.presets import preset
from core.recorded import Column, Table, Value
from core.training.machine import Execution, precision

BATCH = 64
PEER_STEPS = 3
CONTESTANTS: dict[str, tuple[str, dict[str, object]]] = {
    "encoder, this lab": ("benchmarks.training:ours", {"name": "encoder-small"}),
    "encoder, article code": ("benchmarks.training:plain", {"kind": "benchmarks.article:network", "name": "encoder-small"}),
    "encoder, torch.nn.TransformerEncoder": (
        "benchmarks.training:plain", {"kind": "benchmarks.others:TorchEncoder", "name": "encoder-small", "modern": True}
    ),
    "encoder, Hugging Face Trainer, float32": ("benchmarks.training:hugging_face", {"name": "encoder-small", "bf16": False}),
    "encoder, Hugging Face Trainer, bfloat16": ("benchmarks.training:hugging_face", {"name": "encoder-small", "bf16": True}),
    "bilstm, this lab": ("benchmarks.training:ours", {"name": "bilstm"}),
    "bilstm, article code": ("benchmarks.training:plain", {"kind": "benchmarks.article:network", "name": "bilstm"}),
}  # fmt: skip
"""What makes each, and its knobs; the first of each network is ours."""
PEERS = {
    "encoder, peer article_train.py": ("article_train.py", "transformer"),
    "encoder, peer hf_trainer.py, float32": ("hf_trainer.py", "fp32"),
    "encoder, peer hf_trainer.py, bfloat16": ("hf_trainer.py", "bf16"),
    "bilstm, peer article_train.py": ("article_train.py", "bilstm"),
}
Run = Callable[[], float]
"""Trains on the next reviews; gives reviews per second."""


def ours(setting: Setting, name: str) -> Run:
    """The product's own loop; its clock stands still in validation."""
    from core.networks.auto import build
    from core.training.loop import Examples, fit

    config = sized(setting, name)
    torch.manual_seed(0)
    network = build(config.model, ("negative", "positive"))
    take = _taker(setting, config.model.max_len, setting.size(cpu=6 * BATCH, cuda=40 * BATCH, quick=8))
    held_out = Examples(*take())

    def run() -> float:
        fitted = fit(
            network, config, Examples(*take()), Examples(held_out.ids[:8], held_out.labels[:8]),
            execution=Execution.of(config), emit=lambda event: None,
        )  # fmt: skip
        return fitted.rates.reviews_per_s

    return run


def plain(setting: Setting, kind: str, name: str, modern: bool = False) -> Run:
    """The articles' loop; `modern`: padded to the longest of a batch only, under autocast where it is faster, with a mask."""
    import pkgutil

    from benchmarks.pairs import seconds

    config = sized(setting, name)
    torch.manual_seed(0)
    network = pkgutil.resolve_name(kind)(config.model).to(setting.device).train()
    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-4, weight_decay=0.01)
    take = _taker(setting, config.model.max_len, setting.size(cpu=2 * BATCH, cuda=20 * BATCH, quick=8))
    bf16 = modern and precision(config.training, setting.device) == "bfloat16"

    def epoch(reviews: list[np.ndarray], labels: np.ndarray) -> None:
        for start in range(0, len(reviews), BATCH):
            part = reviews[start : start + BATCH]
            ids, mask = article.padded(part, max(map(len, part)) if modern else config.model.max_len)
            ids, mask, classes = (x.to(setting.device) for x in (ids, mask, torch.from_numpy(labels[start : start + BATCH])))
            with torch.autocast(setting.device, torch.bfloat16, enabled=bf16):
                article.step(network, optimizer, ids, mask if modern else None, classes)

    def run() -> float:
        reviews, labels = take()
        return len(reviews) / seconds(partial(epoch, reviews, labels))

    return run


def hugging_face(setting: Setting, name: str, bf16: bool) -> Run:
    """Hugging Face's Trainer on a Bert."""
    from benchmarks import others

    config = sized(setting, name)
    assert isinstance(config.model, EncoderArchitecture)
    torch.manual_seed(0)
    tokenizer = others.hugging_face_tokenizer(arrays.of(setting).tokenizer, config.model.max_len)
    batch = 4 if setting.quick else BATCH
    train = others.trainer(others.bert(config.model), tokenizer, batch, bf16, setting.device)
    take = _taker(setting, config.model.max_len, setting.size(cpu=3 * BATCH, cuda=20 * BATCH, quick=8))
    return lambda: train(*take())


def sized(setting: Setting, name: str) -> RunConfig:
    """A preset for this setting: one epoch, and if quick of short reviews and one layer."""
    config = preset(name)
    model = replace(config.model, max_len=32, n_layers=1) if setting.quick else config.model
    return replace(config, model=model, training=replace(config.training, device=setting.device, epochs=1))


def _taker(setting: Setting, longest: int, n: int) -> Callable[[], tuple[list[np.ndarray], np.ndarray]]:
    """Gives `n` more training reviews each time, and their classes."""
    reviews, rounds = arrays.of(setting), count()

    def take() -> tuple[list[np.ndarray], np.ndarray]:
        start = next(rounds) * n
        return reviews.reviews("train", longest, start, n), reviews.classes("train", start, n)

    return take


def peer(folder: Path, script: str, kind: str) -> float:
    """Reviews per second that a script prints. ValueError if it fails."""
    command = [sys.executable, str(folder / script), kind, str(PEER_STEPS)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise ValueError(f"{script} {kind} ended: {(done.stderr.strip().splitlines() or ['without a word'])[-1]}")
    return float(json.loads(done.stdout.splitlines()[-1])["reviews_per_s"])


def operations(architecture: Architecture, lengths: np.ndarray) -> float:
    """Of a forward and a backward pass over one review, on average: two for each product and sum, thrice as many in all.

    Those of matrix products alone: of all weights but the embedding's, and of queries with keys and weights with values.
    """
    if not isinstance(architecture, EncoderArchitecture):
        a = architecture
        return 6.0 * lengths.mean() * 8 * a.d_hidden * (a.d_embedding + a.d_hidden)
    a = architecture
    weights = a.n_layers * (4 * a.d_model**2 + 2 * a.d_model * a.d_ff)
    return 6.0 * (weights * lengths.mean() + 2 * a.n_layers * a.d_model * (lengths**2).mean())


def part(setting: Setting) -> Iterator[Table]:
    """Table "training"."""
    with ExitStack() as stack:
        workers = {name: stack.enter_context(Worker(make, setting, **knobs)) for name, (make, knobs) in CONTESTANTS.items()}
        runs: dict[str, Run] = dict(workers)
        if setting.peers:
            runs |= {name: partial(peer, Path(setting.peers), *words) for name, words in PEERS.items()}
        yield table(setting, in_turns(runs, setting.rounds))


def table(setting: Setting, found: dict[str, list[float]]) -> Table:
    """Rates, ours over theirs, and the share of the rate of a matrix product that the operations of each come to."""
    peak = gemm_rate(setting.device)
    return Table(
        name="training",
        caption=(
            f"Reviews of IMDB, cut to 256 tokens, batches of {BATCH}: median, lowest and highest of {setting.rounds} rounds in "
            "turns, each contestant in a process of its own. Ours over theirs: of each round. Share: operations of matrix "
            f"products over this machine's own rate for a large one ({peak / 1e9:,.0f} GFLOP/s, its best format of numbers); "
            "padding counts for nothing. Dropout 0.1 everywhere, but none on attention weights in this lab."
            + (" Peers read other reviews of the same data, and their own start is not counted." if setting.peers else "")
        ),
        columns=(
            Column(name="contestant"),
            *(Column(name=name, unit="reviews/s") for name in ("median", "lowest", "highest")),
            *(Column(name=f"ours over it, {name}") for name in ("median", "lowest", "highest")),
            Column(name="share", unit="% of GEMM"),
        ),
        rows=tuple(_row(setting, name, found, peak) for name in found),
    )


def _row(setting: Setting, name: str, found: dict[str, list[float]], peak: float) -> tuple[Value, ...]:
    kind = name.split(",")[0]
    config = sized(setting, {"encoder": "encoder-small"}.get(kind, kind))
    lengths = np.array([len(ids) for ids in arrays.of(setting).reviews("train", config.model.max_len)])
    rate: Spread = spread(found[name])
    faster = ratio(found[f"{kind}, this lab"], found[name])
    share = 100 * rate.median * operations(config.model, lengths) / peak
    return (name, *rate.cells, *faster.cells, share)
