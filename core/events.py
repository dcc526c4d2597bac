"""What a run says of itself, in the order of its life; `core.run_folder` has the file that it is written to."""

from dataclasses import dataclass, fields
from typing import Annotated, Literal

from core.records import Cell

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
    attention_s: float | None = None
    """Seconds of attention alone, in all layers of one run; None where there is none."""
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
class ExperimentStarted:
    """What the knobs of "auto" came to when an experiment began: all its members share it, wherever they go on."""

    device: str
    precision: str
    backend: str | None
    """Attention kernel; None for a network without one."""


@dataclass(frozen=True, kw_only=True)
class MemberStarted:
    """A member of an experiment is trained, or goes on."""

    ablation: str
    """Its name; "base" for what the ablations are held against."""
    seed: int
    run: str
    """Its folder, from the folder of all runs."""


@dataclass(frozen=True, kw_only=True)
class MemberFinished:
    """A member of an experiment and what came of it, or why nothing did."""

    ablation: str
    """Its name; "base" for what the ablations are held against."""
    seed: int
    fingerprint: str
    """Of configuration, reviews and code: members that share it are one."""
    run: str
    """Its folder, from the folder of all runs; of an earlier experiment where that has trained it."""
    why_not: str | None = None
    """Why there are no figures, a sentence without full stop."""
    n: int | None = None
    """Reviews of the test side."""
    accuracy: float | None = None
    f1: float | None = None
    """Both of the test side."""
    val_accuracy: float | None = None
    train_s: float | None = None
    """Seconds of training proper."""
    elapsed_s: float | None = None
    """Seconds that all of it took."""
    peak_bytes: int | None = None
    """The memory of a training step at its most."""
    peak_source: str | None = None
    """What says so: a counter, or predicted."""
    n_parameters: int | None = None


@dataclass(frozen=True, kw_only=True)
class ClaimMeasured:
    """What an experiment of `core.claims` found."""

    claim: str
    """Its name."""
    names: list[str]
    values: list[str | int | float | None]
    """The figure of each name; None where there is none."""
    hardware: str
    date: str
    """Of the measurement, as in 2026-11-30."""


@dataclass(frozen=True, kw_only=True)
class BackendMeasured:
    """What a model says of some reviews through one attention backend, and what that took; or why it was not to be had."""

    backend: str
    n: int
    """Reviews."""
    largest_difference: float | None
    """Of any logit to that of `eager`."""
    changed: int | None
    """Reviews whose predicted class is another than by `eager`."""
    median_s: float | None
    """Seconds of reading all of them once."""
    spread_s: float | None
    """From the fastest reading to the slowest, seconds."""
    others: float | None
    """Share of the machine's CPU time that other processes had meanwhile, as in `CellMeasured`."""
    peak_bytes: int | None
    """What reading adds to the memory of the process at its most, from a process of its own."""
    kernel: str | None
    """Which attention operator ran, as the profiler names it."""
    hardware: str | None
    why_not: str | None
    """Why a figure is missing, a sentence without full stop."""


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
    | ExperimentStarted
    | MemberStarted
    | MemberFinished
    | ClaimMeasured
    | BackendMeasured
    | TrainingFinished
    | Finished
    | Cancelled
    | Interrupted
    | Failed
)
"""What a run says of itself."""
LastEvent = TrainingFinished | Finished | Cancelled | Interrupted | Failed
Preparation = Queued | Started | TableRead | TrainingStarted | ExperimentStarted | MemberStarted | Ceilings
"""What a run says before there is any work of it to be lost."""
