"""A review that a model has read, made ready for the question what its answer rests on."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from core.artifact import Reader
from core.evaluation.scoring import score
from core.inspection.reading import encode_typed, read
from core.inspection.words import to_words, words
from core.networks.auto import LinearForSequenceClassification
from core.records import Reading, Word

SPECIAL = {"pad": ("[PAD]", "<pad>"), "mask": ("[MASK]", "<mask>")}
"""What tokenisers call the tokens that stand for nothing, and for something unseen."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One review through one model, cut to what the model reads at once."""

    model: Reader
    reading: Reading
    ids: Int[np.ndarray, "T"]
    """What the network was given, the added tokens among them."""
    words: tuple[Word, ...]
    word_of: Int[np.ndarray, "T"]
    """Index of each token's word; `core.inspection.words.ADDED` for a token that nobody typed."""
    label: str
    """The class that signs are towards."""

    @property
    def target(self) -> int:
        """The number of that class."""
        return self.model.label_names.index(self.label)

    @property
    def read(self) -> Int[np.ndarray, "n_read"]:
        """Indices of the words that were read."""
        return np.flatnonzero([word.read for word in self.words])

    def without(self, gone: Sequence[int] | np.ndarray, *, remove: bool = False) -> Int[np.ndarray, "left"]:
        """The ids with a mask in the place of each token of these words; with `remove` they are cut out.

        Of a review that has nothing left, one mask stays.
        """
        hidden = np.isin(self.word_of, gone)
        if remove and not hidden.all():
            return self.ids[~hidden]
        masked = np.where(hidden, special_id(self.model, "mask"), self.ids).astype(self.ids.dtype)
        return masked[:1] if remove else masked

    def logits(self, reviews: Sequence[Int[np.ndarray, "_"]], **asked: Any) -> Float[np.ndarray, "n C"]:
        """Of variants of this review, such as `without` makes; `asked` as for `core.evaluation.scoring.score`."""
        return score(self.model.network, reviews, **asked)

    def log_odds(self, reviews: Sequence[Int[np.ndarray, "_"]], **asked: Any) -> Float[np.ndarray, "n"]:
        """The same as `log_odds` of the class that signs are towards."""
        return log_odds(torch.from_numpy(self.logits(reviews, **asked)), self.target).numpy()

    def to_words(self, values: Float[np.ndarray, "T"]) -> Float[np.ndarray, "W"]:
        """The sum over the tokens of each word."""
        return to_words(values, self.word_of, len(self.words))


def subject(model: Reader, text: str, label: str | None = None) -> Subject:
    """The text as the model reads it, with signs towards a class, by default the predicted one.

    ValueError as from `core.inspection.reading.read`, and if the model does not know the class.
    """
    if label is not None and label not in model.label_names:
        raise ValueError(
            f"{model.name} knows no class {label!r}, only {', '.join(model.label_names)}; choose models of the same classes"
        )
    reading, encoded = read(model, text), encode_typed(model, text)
    found, word_of = words(text, encoded.spans, reading.windows[0])
    return Subject(
        model=model, reading=reading, ids=model.cut.ids(encoded.ids), words=found, word_of=word_of,
        label=reading.prediction.label if label is None else label,
    )  # fmt: skip


def log_odds(logits: Float[Tensor, "n C"], target: int) -> Float[Tensor, "n"]:
    """log p / (1 - p) of the class `target`, in nats; of two classes the difference of their logits.

    Unlike a probability it does not saturate, and unlike one logit it does not move with what is added to all of them.
    """
    others = [c for c in range(logits.shape[-1]) if c != target]
    return logits[:, target] - logits[:, others].logsumexp(-1)


def has_heads(model: Reader) -> bool:
    """Whether its network is of self-attention; a BiLSTM's attention is one row of weights."""
    return hasattr(model.network.config, "num_attention_heads")


def is_linear(model: Reader) -> bool:
    """Whether it is a linear model, whose weights are its evidence."""
    return isinstance(model.network, LinearForSequenceClassification)


def special_id(model: Reader, kind: Literal["pad", "mask"]) -> int:
    """The id of a token that a vocabulary keeps for itself. ValueError if it has none."""
    found = [model.tokenizer.token_to_id(name) for name in SPECIAL[kind]]
    ids = [id for id in found if id is not None]
    if not ids:
        raise ValueError(f"{model.name}: its tokeniser has no {' or '.join(SPECIAL[kind])}, which this evidence needs")
    return ids[0]


def replica(network: nn.Module) -> nn.Module:
    """The same network over the very same weights, of modules of its own: hooks and modes set on it concern no other reader."""
    shared = {id(tensor): tensor for tensor in chain(network.parameters(), network.buffers())}
    return copy.deepcopy(network, shared)
