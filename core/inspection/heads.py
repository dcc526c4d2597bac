"""What each attention head does: with one review, and over a sample of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from core import statistics
from core.artifact import Reader
from core.evaluation.scoring import score
from core.inspection.reading import encode_typed
from core.inspection.subject import Subject, has_heads, log_odds, subject
from core.inspection.words import ADDED
from core.records import Head
from core.statistics import Difference
from core.words import count_words

How = Literal["zero", "mean"]
"""What a head that is switched off gives: nothing, or its mean over the text, whichever token asks."""


@dataclass(frozen=True, kw_only=True)
class Importance:
    """What each head does for a sample of labelled reviews."""

    labels: Int[np.ndarray, "n"]
    answers: Int[np.ndarray, "n"]
    """With all heads."""
    answers_without: Int[np.ndarray, "L H n"]
    """Without each head."""
    effect: Float[np.ndarray, "L H"]
    """How far the log-odds of the first class move without it, in nats: the mean over reviews, whatever the direction."""
    n_classes: int

    @property
    def n(self) -> int:
        """Reviews."""
        return len(self.labels)

    @property
    def accuracy(self) -> float:
        """With all heads."""
        return float(np.mean(self.answers == self.labels))

    @property
    def without(self) -> Float[np.ndarray, "L H"]:
        """Accuracy without each head."""
        return (self.answers_without == self.labels).mean(-1)

    def differences(self) -> list[Difference]:
        """How much better the model is without each head, layer by layer: McNemar's p, by Holm for all heads together."""
        rows = self.answers_without.reshape(-1, self.n)
        found = [statistics.accuracy_gain(self.labels, self.answers, row) for row in rows]
        corrected = statistics.holm([one.p for one in found])
        return [replace(one, p=p) for one, p in zip(found, corrected, strict=True)]


def heads(model: Reader, text: str, how: How = "zero") -> list[Head]:
    """Every head on one review. ValueError for a network without self-attention, and for a text that cannot be read.

    One review does not tell what a head is for: `importance` asks a sample.
    """
    asked = subject(model, text)
    shape = _shape(asked)
    weights = asked.reading.windows[0].weights.astype(np.float64)
    lost = effects(asked, how)
    shares = {name: weights[..., tokens].sum(-1).mean(-1) for name, tokens in _kinds(asked).items()}
    measures = {"effect": lost, "entropy": entropies(weights), "distance": distances(weights)} | shares
    return [
        Head(layer=layer, head=head, **{name: float(values[layer, head]) for name, values in measures.items()})
        for layer, head in np.ndindex(shape)
    ]


def effects(asked: Subject, how: How = "zero") -> Float[np.ndarray, "L H"]:
    """Log-odds of the predicted class that are lost when each head is switched off, in nats."""
    shape = _shape(asked)
    whole, lost = asked.log_odds([asked.ids]), np.zeros(shape)
    for place in np.ndindex(shape):
        lost[place] = (whole - asked.log_odds([asked.ids], **off(shape, [place], how)))[0]
    return lost


def off(shape: tuple[int, int], places: Sequence[tuple[int, int]], how: How = "zero") -> dict[str, Tensor]:
    """What is asked of a network, so that the heads at these places, each a layer and a head, are switched off."""
    chosen = torch.zeros(shape, dtype=torch.bool)
    for place in places:
        chosen[place] = True
    return {"head_gain": (~chosen).float()} if how == "zero" else {"head_mean": chosen}


def importance(
    model: Reader,
    texts: Sequence[str],
    labels: Sequence[int],
    how: How = "zero",
    progress: Callable[[int], None] = lambda n: None,
) -> Importance:
    """Accuracy on labelled reviews without each head, and how much each moves their answers (arXiv:1905.10650).

    `progress` hears how many reviews were read, of (1 + heads) times as many as there are. ValueError where there is none.
    """
    if not texts:
        raise ValueError("got no review, expected at least one")
    shape = _shape(subject(model, texts[0]))
    ids = [model.cut.ids(encode_typed(model, text).ids) for text in texts]
    whole = score(model.network, ids, progress)
    answers, moved = np.zeros((*shape, len(ids)), np.int64), np.zeros(shape)
    for place in np.ndindex(shape):
        logits = score(model.network, ids, progress, **off(shape, [place], how))
        answers[place] = logits.argmax(-1)
        moved[place] = np.abs(_first_class(whole) - _first_class(logits)).mean()
    return Importance(
        labels=np.array(labels, np.int64), answers=whole.argmax(-1), answers_without=answers, effect=moved,
        n_classes=whole.shape[1],
    )  # fmt: skip


def entropies(weights: Float[np.ndarray, "L H Q T"]) -> Float[np.ndarray, "L H"]:
    """Of each head's rows, in nats, averaged."""
    logarithms = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    return -(weights * logarithms).sum(-1).mean(-1)


def distances(weights: Float[np.ndarray, "L H T T"]) -> Float[np.ndarray, "L H"]:
    """Tokens between a query and what it attends to, averaged over weights and queries."""
    places = np.arange(weights.shape[-1])
    return (weights * np.abs(places[:, None] - places)).sum(-1).mean(-1)


def _shape(asked: Subject) -> tuple[int, int]:
    """Layers and heads. ValueError where there is no self-attention."""
    if not has_heads(asked.model):
        raise ValueError(f"{asked.model.name}: it has no self-attention, and so no heads to switch off; choose a Transformer")
    return asked.reading.windows[0].weights.shape[:2]


def _first_class(logits: Float[np.ndarray, "n C"]) -> Float[np.ndarray, "n"]:
    return log_odds(torch.from_numpy(logits), 0).numpy()


def _kinds(asked: Subject) -> dict[str, Bool[np.ndarray, "T"]]:
    """Which tokens are of each kind that `Head` has a share of."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS  # a second to import

    typed = asked.word_of != ADDED
    pieces = [asked.reading.text[slice(*word.span)] for word in asked.words]
    signs = np.array([count_words(piece) == 0 for piece in pieces])
    stops = np.array([piece.casefold() in ENGLISH_STOP_WORDS for piece in pieces])
    return {
        "added": ~typed,
        "first": np.arange(len(typed)) == typed.argmax(),
        "signs": signs[asked.word_of] & typed,
        "stop_words": stops[asked.word_of] & typed,
    }
