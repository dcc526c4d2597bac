"""What travels between rooms: plain frozen values and numpy arrays, no torch, no behaviour beyond reading them.

Axes: `L` layer, `H` head, `Q` query, `T` token, `C` class. Layers and heads count from 0 here and from 1 for people.
"""

from dataclasses import dataclass, fields
from typing import Annotated, Literal

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
    one head and one query, the pooling's.
    """

    tokens: tuple[str, ...]
    spans: tuple[Span, ...]
    """Where each token stands in the typed text; an added token such as [CLS] has an empty span."""
    weights: Float[np.ndarray, "L H Q T"]
    """Float32, before dropout; each row over T sums to 1."""

    @property
    def largest_row_error(self) -> float:
        """How far the sum of the worst row is from 1."""
        return float(np.abs(self.weights.sum(-1, dtype=np.float64) - 1).max())

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
class Bucket:
    """Accuracy among the reviews of one range of lengths."""

    name: str
    n: int
    accuracy: float | None
    """Fraction in [0, 1]; None where n is 0, as are both ends of the interval."""
    low: float | None
    high: float | None
    """Wilson interval, 95 %."""


@dataclass(frozen=True, kw_only=True)
class Metrics:
    """How well a model labels a table of reviews."""

    n: int
    accuracy: float
    low: float
    high: float
    """Wilson interval of the accuracy, 95 %."""
    f1: float
    """Of the second class where there are two, else the mean over classes (macro)."""
    buckets: tuple[Bucket, ...]


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


Rate = Annotated[float, "per second of training proper: no start, validation or saving"]


@dataclass(frozen=True, kw_only=True)
class TableRead:
    """A person's table is read, and some of it may have been left out."""

    notes: list[str]
    """Sentences without full stop: what was assumed, and which rows were left out."""


@dataclass(frozen=True, kw_only=True)
class TrainingStarted:
    """Data and network are ready, and training proper begins."""

    n_parameters: int
    n_train: int
    n_validation: int
    epochs: int
    device: str
    precision: str
    backend: str | None
    """Attention kernel; None for a network without one."""
    step: int = 0
    """Steps made before, by an earlier process; what was said of later ones is superseded."""


@dataclass(frozen=True, kw_only=True)
class StepFinished:
    """Progress inside an epoch, a few times a second at most."""

    epoch: int
    step: int
    total_steps: int
    loss: float
    """Cross-entropy of the last batch, nats per review."""
    lr: float
    gradient_norm: float
    """Of all parameters together, before it is clipped."""
    largest_logit: float | None
    """Largest absolute attention logit, over the first reviews of the batch and all heads; None without self-attention."""
    non_finite: int = 0
    """Numbers of the gradient that are infinite or not a number."""
    reviews_per_s: Rate
    tokens_per_s: Rate


@dataclass(frozen=True, kw_only=True)
class EpochFinished:
    """An epoch and its validation."""

    epoch: int
    step: int
    """The epoch's last one."""
    train_loss: float
    val_loss: float
    val_accuracy: float
    elapsed_s: float


@dataclass(frozen=True, kw_only=True)
class TrainingFinished:
    """The last event of a training run, written after the artefact."""

    reviews_per_s: Rate
    tokens_per_s: Rate
    train_s: float
    """Seconds of training proper."""
    best_epoch: int
    val_accuracy: float
    """Of the stored weights on the validation split."""
    model_dir: str


@dataclass(frozen=True, kw_only=True)
class CellMeasured(Cell):
    """A cell and what it took, or why it was not to be measured. Memory and time are of two processes."""

    peak_bytes: int | None
    """Weights, input, activations, gradients and optimiser state at their most; None if it could not be measured."""
    source: str | None
    """What `peak_bytes` was read from."""
    live_bytes: int | None = None
    """A second source on a CPU: the tensors alive at once, counted by each operator's results."""
    reserved_bytes: int | None = None
    """On a GPU: what PyTorch's allocator took of it, a little more than the tensors' own."""
    median_s: float | None
    """Seconds of one run; None if it could not be measured."""
    spread_s: float | None
    """From the fastest run to the slowest, seconds."""
    others: float | None = None
    """Share of the machine's CPU time that other processes had meanwhile, from 0 to 1; None where the system does not say."""
    elapsed_s: float | None = None
    """Seconds that all of it took, with the start of its processes."""
    n_repeats: int
    kernel: str | None
    """Which attention operator ran, as the profiler names it."""
    hardware: str | None
    """What it was measured on."""
    why_not: str | None
    """Why a figure is missing, a sentence without full stop."""

    @property
    def cell(self) -> Cell:
        """The cell alone, to be looked up by."""
        return Cell(**{knob.name: getattr(self, knob.name) for knob in fields(Cell)})


@dataclass(frozen=True, kw_only=True)
class Ceilings:
    """What a machine reaches at its most, measured before the cells of a sweep."""

    device: str
    dtype: str
    """Of the products: float32, or bfloat16, in which mixed precision multiplies, too."""
    operations_per_s: float
    """Multiplications and sums in a product of large matrices."""
    bytes_per_s: float
    """Read and written in a copy of a large tensor."""
    hardware: str
    date: str
    """Of the measurement, as in ISO 8601."""


@dataclass(frozen=True, kw_only=True)
class Queued:
    """A run waits until the device is free."""

    ahead: int
    """Runs that go before it: those that wait in front of it and the one that has the device."""


@dataclass(frozen=True, kw_only=True)
class Started:
    """The run has its device and loads what it needs."""

    device: str


@dataclass(frozen=True, kw_only=True)
class Finished:
    """The last event of a run that came to its end and has no other last event."""


@dataclass(frozen=True, kw_only=True)
class Cancelled:
    """The last event of a run that was stopped by a person."""

    best_epoch: int | None = None
    """The epoch that the stored weights are of, 0 for those of an unfinished first one; None if nothing is stored."""
    model_dir: str | None = None


@dataclass(frozen=True, kw_only=True)
class Interrupted:
    """The last event of a run whose process was asked to end by the system or from the keyboard."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class Failed:
    """The last event of a run that could not go on."""

    reason: str
    """One sentence for people; the run's log has the rest."""
    step: int | None = None
    """The last training step reported before."""
    kind: Literal["diverged", "memory", "disk", "other"] = "other"
    """What a person can do about it: choose a safer variant, ask for less memory, make room; or read the reason."""


Event = (
    Queued
    | Started
    | TableRead
    | TrainingStarted
    | StepFinished
    | EpochFinished
    | Ceilings
    | CellMeasured
    | TrainingFinished
    | Finished
    | Cancelled
    | Interrupted
    | Failed
)
"""What a run says of itself; see `core.run_folder` for the file that they are written to."""
LastEvent = TrainingFinished | Finished | Cancelled | Interrupted | Failed
