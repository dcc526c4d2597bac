"""Prediction: 512 reviews by network, kernel and batch; one review; and many against Hugging Face's pipeline."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks import arrays, article
from benchmarks.pairs import in_turns, ratio, spread, timed
from benchmarks.suite import ROOT, Setting
from benchmarks.training import operations, sized
from core.artifact import Model, open_model
from core.catalog import BACKENDS
from core.config import Architecture
from core.data.batches import collate
from core.recorded import Column, Table

REVIEWS = 512
BATCHES = (1, 16, 32)
KERNELS = ("eager", "sdpa", "chunked", "varlen")
NO_CACHE = (
    "A cache of keys and values, which article D counts as a further gain here, does nothing for a classifier: it reads a "
    "review once, all tokens in one pass, so that no key and no value is ever asked for again. A cache helps a decoder, which "
    "would read its own text anew for each token that it adds."
)
SECONDS = tuple(Column(name=name, unit="s") for name in ("median", "lowest", "highest"))
Runs = dict[tuple[str, str, int], Callable[[], float]]
"""By network, kernel and batch: seconds for the reviews taken."""


def reader(setting: Setting, architecture: Architecture) -> Any:
    """Our network of random weights, ready to read, as `core.networks.auto.build` makes it."""
    from core.networks.auto import build

    torch.manual_seed(0)
    return build(architecture, ("negative", "positive")).to(setting.device).eval()


def kernels(device: str) -> list[str]:
    """Of `KERNELS` those that classify padded reviews on this device; packed ones they are where it is better."""
    dtype = "bfloat16" if device == "cuda" else "float32"
    return [name for name in KERNELS if BACKENDS[name].why_not(device=device, dtype=dtype) is None]


def runs(
    setting: Setting, network: nn.Module, name: str, reviews: Sequence[np.ndarray], backends: Sequence[str | None]
) -> Runs:
    """Reads all reviews in batches as they come, each padded to its longest."""
    return {
        (name, backend or "-", batch): timed(partial(read_all, setting, network, reviews, batch, backend))
        for batch in BATCHES
        for backend in backends
    }


@torch.no_grad()
def read_all(setting: Setting, network: nn.Module, reviews: Sequence[np.ndarray], batch: int, backend: str | None) -> None:
    """Under autocast to bfloat16 on a GPU, in float32 on a CPU; where nothing is padded, without a mask."""
    chosen = {} if backend is None else {"backend": backend}
    cast = torch.autocast("cuda", torch.bfloat16) if setting.device == "cuda" else nullcontext()
    for start in range(0, len(reviews), batch):
        part = collate(reviews[start : start + batch])
        mask = None if part.token_mask is None else part.token_mask.to(setting.device)
        with cast:
            network(part.input_ids.to(setting.device), mask, **chosen)


def speeds(setting: Setting) -> Iterator[Table]:
    """Table "inference"."""
    n = setting.size(cpu=128, cuda=128, quick=32)
    encoder, bilstm = sized(setting, "encoder-small").model, sized(setting, "bilstm").model
    reviews = arrays.of(setting).reviews("test", encoder.max_len, n=n)
    contestants = runs(setting, reader(setting, encoder).network, "encoder", reviews, kernels(setting.device))
    contestants |= runs(setting, reader(setting, bilstm).network, "bilstm", reviews, [None])
    plain = article.network(encoder).to(setting.device).eval()
    contestants |= {
        ("article's encoder", "written out", batch): timed(partial(read_all, setting, plain, reviews, batch, None))
        for batch in BATCHES
    }
    found = in_turns(contestants, setting.rounds)  # pyright: ignore[reportArgumentType]
    yield Table(
        name="inference",
        caption=(
            f"Seconds for {REVIEWS} test reviews of IMDB, cut to {encoder.max_len} tokens, in the order in which they come, "
            f"each batch padded to its longest: median and range of {setting.rounds} rounds in turns"
            + (f"; {n} reviews were read, and seconds multiplied by {REVIEWS / n:g}" if n != REVIEWS else "")
            + f". {'bfloat16 under autocast' if setting.device == 'cuda' else 'float32'}, encoder of 3 layers of 256 and "
            f"BiLSTM of article A, random weights. {NO_CACHE}"
        ),
        columns=(Column(name="network"), Column(name="kernel"), Column(name="batch"), *SECONDS),
        rows=tuple((*key, *(REVIEWS / n * s for s in spread(times).cells)) for key, times in found.items()),
    )


def latencies(setting: Setting) -> Iterator[Table]:
    """Table "latency": one review of 250 tokens through the shipped encoder, and through others of its size."""
    from transformers.utils.logging import disable_progress_bar

    from benchmarks import others

    disable_progress_bar()
    model = open_model(ROOT / "models" / "imdb-encoder")
    network = model.network.to(setting.device)
    ids = torch.from_numpy(np.resize(np.arange(4, 5_000), 250))[None].to(setting.device)
    rivals = {
        "this lab": network,
        "article code": article.Transformer(model.architecture),
        "torch.nn.TransformerEncoder": others.TorchEncoder(model.architecture),
        "Hugging Face Bert": others.bert(model.architecture),
    }
    contestants = {name: partial(_forward, rival.to(setting.device).eval(), ids) for name, rival in rivals.items()}
    contestants |= {"this lab, with all maps": partial(_forward, network, ids, output_attentions=True)}
    if setting.device == "cpu":  # where the pages read
        contestants |= _from_text(model, arrays.of(setting).texts)
    times = {name: timed(run) for name, run in contestants.items()}
    found = in_turns(times, setting.size(cpu=50, cuda=50, quick=3))
    yield Table(
        name="latency",
        caption="Milliseconds of one warm prediction of a review of 250 tokens, as models/imdb-encoder takes it, and networks "
        "of its sizes (2 layers of 128): median and range of 50, in turns. Tokenising is counted where it says: from text.",
        columns=(Column(name="network"), *(Column(name=name, unit="ms") for name in ("median", "lowest", "highest"))),
        rows=tuple((name, *(1e3 * s for s in spread(values).cells)) for name, values in found.items()),
    )


def _from_text(model: Model, texts: Sequence[str]) -> dict[str, Callable[[], object]]:
    """An answer, and a reading with all maps, of words that come to 250 tokens."""
    from core.data.tokenizer import encode
    from core.evaluation.scoring import score
    from core.inspection.reading import read

    whole = " ".join([*texts] * (1 + 500 // len(texts)))
    text = whole[: encode(model.tokenizer, whole).spans[249][1]]
    return {
        "this lab, from text": lambda: score(model.network, [model.cut.ids(encode(model.tokenizer, text).ids)]),
        "this lab, from text, with all maps": partial(read, model, text),
    }


@torch.no_grad()
def _forward(network: nn.Module, ids: torch.Tensor, **asked: bool) -> None:
    network(ids, **asked)


def scoring(setting: Setting) -> Iterator[Table]:
    """Table "scoring": texts to classes, ours and transformers' pipeline on a Bert of equal size."""
    from tokenizers import Tokenizer
    from transformers import pipeline

    from benchmarks import others
    from core.data.batches import Cut
    from core.evaluation.scoring import score

    model, stored = sized(setting, "encoder-small").model, arrays.of(setting)
    texts = stored.texts[: setting.size(cpu=128, cuda=256, quick=8)]
    tokenizer = Tokenizer.from_str(stored.tokenizer)
    network, cut = reader(setting, model), Cut.of(model)

    def ours() -> None:
        encoded = [np.array(each.ids) for each in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]
        score(network, [cut.ids(ids) for ids in encoded])

    classify = pipeline(
        "text-classification", model=others.bert(model).eval(), device=setting.device,
        tokenizer=others.hugging_face_tokenizer(stored.tokenizer, model.max_len),
    )  # fmt: skip
    contestants = {"this lab": ours} | {
        f"transformers pipeline, batch {batch}": partial(classify, texts, batch_size=batch, truncation=True)
        for batch in BATCHES
    }
    found = in_turns({name: timed(run) for name, run in contestants.items()}, setting.rounds)
    read = np.array([len(cut.ids(np.array(each.ids))) for each in tokenizer.encode_batch_fast(texts, add_special_tokens=False)])
    billions = operations(model, read) / 3 / 1e9  # of a forward pass alone
    yield Table(
        name="scoring",
        caption=f"{len(texts)} texts to classes, tokenising counted, by an encoder of article A's size and by a Bert of the "
        f"same, both float32: median and range of {setting.rounds} rounds in turns; ours over theirs of each round. Products: "
        "operations of matrix products of the tokens that are read; padding counts for nothing.",
        columns=(
            Column(name="way"),
            *(Column(name=name, unit="reviews/s") for name in ("median", "lowest", "highest")),
            *(Column(name=f"ours over it, {name}") for name in ("median", "lowest", "highest")),
            Column(name="products", unit="GFLOP/s"),
        ),
        rows=tuple(
            (name, *(rate := spread([len(texts) / s for s in times])).cells, *ratio(times, found["this lab"]).cells,
             rate.median * billions)
            for name, times in found.items()
        ),
    )  # fmt: skip
