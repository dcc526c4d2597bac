"""What travels between rooms: plain frozen values and numpy arrays, no torch, no behaviour beyond reading them.

Axes: `L` layer, `H` head, `Q` query, `T` token, `W` word, `C` class. Layers and heads count from 0 here and from 1 for people.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

Span = tuple[int, int]
"""Start and end of a piece of the typed text, in characters."""


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What a model answers for one review."""

    label: str
    probabilities: dict[str, float]
    """By label, in the order of the classes; they sum to 1."""
    logits: tuple[float, ...]
    tokens_read: int
    tokens_left_out: int


@dataclass(frozen=True, kw_only=True)
class AttentionMap:
    """All attention weights of one forward pass over one window of a review.

    Positions are the keys: equal tokens stay apart. An encoder has a query for each token (Q = T); a BiLSTM has one layer,
    one head and one query, the pooling's; a linear model, which attends to nothing, has none of these.
    """

    tokens: tuple[str, ...]
    spans: tuple[Span, ...]
    """Where each token stands in the typed text; an added token such as [CLS] has an empty span."""
    weights: Float[np.ndarray, "L H Q T"]
    """Float32, before dropout; each row over T sums to 1."""

    @property
    def largest_row_error(self) -> float:
        """How far the sum of the worst row is from 1."""
        return float(np.abs(self.weights.sum(-1, dtype=np.float64) - 1).max(initial=0.0))

    def averaged(self, layer: int | None = None, head: int | None = None) -> Float[np.ndarray, "Q T"]:
        """Weights averaged over the heads and layers not named; each row over T sums to 1."""
        layers = self.weights if layer is None else self.weights[layer : layer + 1]
        heads = layers if head is None else layers[:, head : head + 1]
        return heads.mean((0, 1))

    def received(self, layer: int | None = None, head: int | None = None) -> Float[np.ndarray, "T"]:
        """Attention that each token receives, averaged over queries and over the heads and layers not named; sums to 1."""
        return self.averaged(layer, head).mean(0)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One review as one model read it: what it answered and where it looked, from the same forward pass."""

    text: str
    prediction: Prediction
    windows: tuple[AttentionMap, ...]
    """One for a review that fits max_len or is cut; more when it was read in windows, whose logits were averaged."""
    read: tuple[Span, ...]
    """Spans of the typed text that the model read, merged and in order; the rest was left out."""
    training_mode: bool
    """True if any part of the network was in training mode: then dropout makes the reading worthless."""


@dataclass(frozen=True, kw_only=True)
class Word:
    """A word of the typed text, or a sign outside of words, with all its tokens."""

    span: Span
    read: bool
    """Whether the model read any token of it."""
    unknown: bool
    """Whether a token that was read stands for what the vocabulary cannot spell."""


@dataclass(frozen=True, kw_only=True)
class Attribution:
    """What one method finds in each word of a review."""

    values: Float[np.ndarray, "W"]
    """0 for a word that was not read. Of a signed method in nats of log-odds, above 0 what speaks for the predicted class."""
    elsewhere: float = 0.0
    """What it finds in tokens that nobody typed, such as [CLS]."""
    completeness_gap: float | None = None
    """Of integrated gradients: how far their sum is from what they should explain, as a share of it."""
    note: str | None = None
    """What to know of these values beside the method, a sentence without full stop."""

    @property
    def shares(self) -> Float[np.ndarray, "W"]:
        """The values on the one scale of all methods: as shares of what is found in all words, whatever its sign."""
        total = float(np.abs(self.values).sum())
        return self.values / total if total > 0 else np.zeros_like(self.values)


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What a model's answer for one review rests on, by one method or several."""

    text: str
    prediction: Prediction
    """The predicted class is what all signs are towards."""
    words: tuple[Word, ...]
    """All of the typed text, in order, read or not."""
    found: dict[str, Attribution]
    """By the names of `core.catalog.EVIDENCE`."""

    @property
    def completeness_gap(self) -> float | None:
        """Of integrated gradients, where they were asked for."""
        return next((one.completeness_gap for one in self.found.values() if one.completeness_gap is not None), None)


@dataclass(frozen=True, kw_only=True)
class Faithfulness:
    """What becomes of an answer while its words are taken away, in the orders of several methods and in random ones.

    Curves hold the probability of the class that the whole review is predicted to be of, at each of `shares`.
    """

    shares: Float[np.ndarray, "S"]
    """Of the words that were read, taken away: from 0 to 1."""
    deletion: dict[str, Float[np.ndarray, "S"]]
    """By method: the words with most evidence for the class go first."""
    reversed: dict[str, Float[np.ndarray, "S"]]
    """By method: they go last. Seen from its end, this is what their insertion does."""
    random: Float[np.ndarray, "orders S"]
    removed: bool
    """Whether words were cut out; else [MASK] or its like stood in their places."""


@dataclass(frozen=True, kw_only=True)
class Head:
    """What one attention head does with one review; it counts from 0, as its layer does."""

    layer: int
    head: int
    effect: float
    """Log-odds of the predicted class that are lost without the head, in nats."""
    entropy: float
    """Of a row of weights, in nats, averaged over rows: 0 where each token looks at one, log T where at all alike."""
    distance: float
    """Between a token and what it looks at, in tokens."""
    added: float
    """Share of its attention on tokens that nobody typed, such as [CLS] and [SEP]; the following are shares, too."""
    first: float
    """On the first token of the typed text."""
    signs: float
    """On punctuation and what else is no word."""
    stop_words: float
    """On words such as "the" and "and": English ones, as scikit-learn lists them."""


@dataclass(frozen=True, kw_only=True)
class Bucket:
    """Accuracy among the reviews of one range of lengths."""

    name: str
    n: int
    accuracy: float | None
    """Fraction in [0, 1]; None where n is 0, as are both ends of the interval."""
    low: float | None
    high: float | None
    """Wilson interval, 95%."""


@dataclass(frozen=True, kw_only=True)
class Metrics:
    """How well a model labels a table of reviews."""

    n: int
    accuracy: float
    low: float
    high: float
    """Wilson interval of the accuracy, 95%."""
    f1: float
    """Of the second class where there are two, else the mean over classes (macro)."""
    buckets: tuple[Bucket, ...]


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A figure with its 95% interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class CalibrationError:
    """How far confidence is from accuracy, on average over bins of confidence, weighted by their reviews; in [0, 1]."""

    value: float
    by_chance: float
    """What a model that is right as often as it says stays below 95 times in 100, with as many reviews."""


@dataclass(frozen=True, kw_only=True)
class CalibrationBin:
    """The answers of which a model was about as sure."""

    low: float
    high: float
    """Confidence in this bin is above `low` and at most `high`."""
    n: int
    confidence: float | None
    """Their mean; None where n is 0."""
    accuracy: Estimate | None


@dataclass(frozen=True, kw_only=True)
class LengthRange:
    """What a model answers in one range of lengths. Figures are None where n is 0."""

    name: str
    n: int
    accuracy: Estimate | None
    f1: Estimate | None
    """None, too, where no review is of the class that counts, and none is said to be."""
    calibration: CalibrationError | None
    cut: float | None
    """Share of the reviews of which the model read only a part."""


@dataclass(frozen=True, kw_only=True)
class ReadingLimit:
    """How long a review may be for a model to read all of it."""

    words: float
    place: float
    """On an axis on which the range of lengths number i, from 0, reaches from i - 1/2 to i + 1/2."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What is measured at once: the layers of a network, or a training step of a whole classifier, at one length.

    Layers are D = H K wide and have neither positions nor dropout. The encoder's have H heads of K and d_ff = 4 D. The BiLSTM
    has no heads: D goes into its first layer, and each direction has D hidden units, as many as the encoder's d_model, like
    the pair of article A.
    """

    network: str = "encoder"
    """encoder or bilstm."""
    backend: str | None
    """Attention kernel; None for a BiLSTM, which has none."""
    what: str
    """forward: layers on random input, without gradients. backward: the same forward and backward. step: forward, backward and
    AdamW of a classifier with an embedding of `STEP_VOCABULARY` tokens."""
    batch: int
    length: int
    """Tokens of a review."""
    n_heads: int
    d_head: int
    n_layers: int
    dtype: str
    """Format of weights and activations; mixed: float32 weights under autocast to bfloat16, as in training."""
    checkpointing: bool = False
    """Whether a layer's activations are computed again in the backward pass (arXiv:1604.06174)."""
    device: str

    @property
    def label(self) -> str:
        """The attention kernel, or the network where it has none: what a legend says."""
        return self.backend or self.network


STEP_VOCABULARY = 16_384
"""Tokens in the embedding of the classifier whose step is measured."""
