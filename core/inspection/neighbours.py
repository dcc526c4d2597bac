"""The reviews of a network's training that are most like a text to it: nearest by the vector that its classifier reads."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float
from torch import nn

from core.artifact import Model, Opened
from core.data.reviews import Reviews
from core.data.splits import Splits, fingerprint
from core.evaluation.scoring import score
from core.evaluation.table import table_logits
from core.inspection.reading import encode_typed
from core.inspection.subject import is_linear, replica

MOST_BYTES = 2**28
"""Of the vectors of one model."""


@dataclass(frozen=True, kw_only=True)
class Space:
    """Where a network sees reviews of its training."""

    reviews: Reviews
    vectors: Float[np.ndarray, "n P"]
    """Of each review, of length 1."""
    n_train: int
    """Reviews of the training, of which these are all or some."""


@dataclass(frozen=True, kw_only=True)
class Neighbour:
    """A review of a network's training beside a text."""

    text: str
    label: str
    """That it was trained with."""
    cosine: float
    """Of the angle between the two: 1 for the same to the network."""


def why_not(model: Opened) -> str | None:
    """A sentence that says why no neighbours can be found for a model; None if they can be looked for."""
    if not isinstance(model, Model):
        return f"{model.name} was trained elsewhere: which reviews it has learned from is not on record"
    if is_linear(model):
        return f"{model.name} is a linear model, which makes no vector of a review; choose an encoder or a BiLSTM"
    return None


def space(
    model: Opened, splits: Splits, most: int | None = None, progress: Callable[[int, int], None] = lambda n, total: None
) -> Space:
    """The reviews that a network was trained on, or `most` of them, spread evenly, as many as `MOST_BYTES` hold.

    `progress` hears how many more have been read, and of how many. ValueError for what `why_not` says, and where `splits` are
    not of the reviews that the model was trained on.
    """
    reader, train = without_classifier(model), splits.train
    recorded = model.run.get("data", {}).get("fingerprint", {}).get("train")
    if recorded is not None and recorded != fingerprint(splits.hashes["train"]):
        raise ValueError(f"the reviews that {model.name} was trained on are not the same any more; restore their table")
    room = MOST_BYTES // (4 * _width(model))
    reviews = train.spread(min(room, len(train) if most is None else most))
    vectors = table_logits(reader, reviews.texts, windows=False, progress=progress)
    return Space(reviews=reviews, vectors=_of_length_1(vectors), n_train=len(train))


def nearest(model: Opened, among: Space, text: str, n: int = 10) -> list[Neighbour]:
    """The `n` reviews whose vectors are at the smallest angle to that of `text`, the nearest first. ValueError as from
    `core.inspection.reading.encode_typed`."""
    ids = model.cut.ids(encode_typed(model, text).ids)
    (vector,) = _of_length_1(score(without_classifier(model).network, [ids]))
    cosines, reviews = among.vectors @ vector, among.reviews
    return [
        Neighbour(text=reviews.texts[i], label=reviews.label_names[reviews.labels[i]], cosine=float(cosines[i]))
        for i in np.argsort(-cosines, kind="stable")[:n]
    ]


def without_classifier(model: Opened) -> Model:
    """The same weights in a network whose logits are the vectors that the classifier reads; `model` stays as it is.

    ValueError for what `why_not` says.
    """
    if (reason := why_not(model)) is not None:
        raise ValueError(reason)
    assert isinstance(model, Model)
    network: Any = replica(model.network)
    network.network.classifier = nn.Identity()
    return replace(model, network=network)


def _width(model: Opened) -> int:
    network: Any = model.network
    return network.network.classifier.in_features


def _of_length_1(vectors: Float[np.ndarray, "n P"]) -> Float[np.ndarray, "n P"]:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
