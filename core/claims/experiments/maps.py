"""Experiments on positions and on maps: what order does, where attention goes, and whether heads differ."""

from dataclasses import replace
from functools import lru_cache
from itertools import combinations

import numpy as np
import torch
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from core.artifact import Model, models_root, open_model
from core.catalog import POSITIONAL
from core.claims.figures import Figures, Found, mean
from core.config import EncoderArchitecture
from core.data.reviews import Reviews
from core.data.sources.bundled import imdb
from core.data.splits import split
from core.inspection.reading import read
from core.networks.auto import build
from core.networks.encoder import Encoder
from core.positional.sinusoidal import table
from core.records import AttentionMap

READER = "imdb-encoder"
"""The model whose maps are looked at."""
REVIEWS = 40


def some_reviews() -> list[str]:
    """Test reviews that come with the lab, of both classes."""
    return _test_reviews().texts[:REVIEWS]


@lru_cache(maxsize=1)
def _test_reviews() -> Reviews:
    """Drawn, since the file holds one class after the other."""
    test = split(imdb()).test
    return test.take(np.random.default_rng(0).permutation(len(test)).tolist())


def sliced_table() -> Figures:
    """A table of sines for 128 places, asked for 200, and added to 200 embedded tokens."""
    codes = table(128, 64, torch.device("cpu"))
    rows = codes[:200]
    try:
        _ = torch.zeros(1, 200, 64) + rows
        added = "adds"
    except RuntimeError:
        added = "refused"
    return {"rows asked for": 200, "rows got": len(rows), "sum with 200 tokens": added}


STEPS = (1, 5, 50)


def linear_map() -> Figures:
    """A matrix for each pair of components, found from the first 300 places, that is to give PE(p + k) from PE(p) later on."""
    pairs = table(1_100, 64, torch.device("cpu")).double().unflatten(1, (-1, 2)).transpose(0, 1)
    figures: Found = {}
    for step in STEPS:
        matrices = torch.linalg.lstsq(pairs[:, :300], pairs[:, step : 300 + step]).solution
        error = pairs[:, 300:1_000] @ matrices - pairs[:, 300 + step : 1_000 + step]
        figures[f"k = {step}: largest error"] = float(error.abs().max())
    return figures


def word_order() -> Figures:
    """How far logits move when the tokens of a text are shuffled, by positional encoding; random weights."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(4, 100, (8, 24), generator=generator)
    shuffled = ids[:, torch.randperm(24, generator=generator)]
    figures: Found = {}
    for positional in POSITIONAL:
        torch.manual_seed(0)
        knobs = dict(vocab_size=100, d_model=32, n_heads=4, n_layers=2, d_ff=64, max_len=32)
        network = Encoder(EncoderArchitecture(**knobs, positional=positional)).eval()  # type: ignore[arg-type]
        with torch.no_grad():
            figures[f"{positional}: logits move by"] = float((network(ids)[0] - network(shuffled)[0]).abs().max())
    return figures


def stop_words() -> Figures:
    """Attention that words without content and punctuation receive, and their share of the tokens."""
    model = open_model(models_root() / READER)
    torch.manual_seed(0)
    untrained = replace(model, network=build(model.architecture, model.label_names).eval())
    found = {"attention received, %": _maps(model), "attention received, untrained, %": _maps(untrained)}
    shares = [float(_empty(one).mean()) for one in found["attention received, %"]]
    received = {name: 100 * mean([float(one.received()[_empty(one)].sum()) for one in maps]) for name, maps in found.items()}
    return received | {"share of the tokens, %": 100 * mean(shares), "reviews": len(shares)}


def _maps(model: Model) -> list[AttentionMap]:
    return [read(model, text).windows[0] for text in some_reviews()]


def _empty(one: AttentionMap) -> np.ndarray:
    """True on stop words, separators and punctuation."""
    return np.array([
        token.lower() in ENGLISH_STOP_WORDS or start == end or not any(character.isalnum() for character in token)
        for token, (start, end) in zip(one.tokens, one.spans, strict=True)
    ])  # fmt: skip


ALIKE = 0.1
"""Total variation distance below which two heads look alike: they differ in where a tenth of their attention goes."""


def heads_differ() -> Figures:
    """Total variation distance between the maps of two heads of a layer, averaged over queries and reviews."""
    maps = _maps(open_model(models_root() / READER))
    n_layers, n_heads = maps[0].weights.shape[:2]
    distances = {
        (layer, a, b): mean([float(np.abs(one.weights[layer, a] - one.weights[layer, b]).sum(-1).mean()) / 2 for one in maps])
        for layer in range(n_layers) for a, b in combinations(range(n_heads), 2)
    }  # fmt: skip
    layer, a, b = min(distances, key=lambda pair: distances[pair])
    return {
        "mean distance of two heads of a layer": mean(list(distances.values())),
        "smallest distance": distances[layer, a, b],
        "of": f"layer {layer + 1}, heads {a + 1} and {b + 1}",
        "pairs alike": sum(distance < ALIKE for distance in distances.values()),
        "pairs": len(distances),
    }
