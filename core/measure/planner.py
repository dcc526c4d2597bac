"""What fits into a device's memory, by prediction, and what else would. No torch here."""

import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

from core.config import MISTAKES_OF_ATTENTION, EncoderArchitecture, LinearArchitecture, RunConfig
from core.jobs import device_of
from core.measure.predict import Network, peak_bytes
from core.measure.process import available_bytes, gib
from core.records import Cell
from core.training.parts import tokens_at_once

LARGEST = 500_000
"""Reviews beyond which no batch is looked for."""
GB = 10**9
DTYPES = {"float32": ("float32",), "bfloat16": ("mixed",), "auto": ("float32", "mixed")}
"""What a knob of precision may come to on a machine that is not asked."""
CHECKPOINT_BEYOND = 512
"""Tokens beyond which `auto` computes activations again, as in training."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Whether a training fits into memory, as predicted, and what would."""

    needed_bytes: int
    """Of a full batch of the longest reviews; Python and its libraries come on top."""
    memory_bytes: int
    largest_batch: int
    """The largest that fits with all else as it is, 0 if not even one review does."""
    alternatives: tuple[RunConfig, ...]
    """Others that fit, each with a larger batch than the one before; none where this one fits."""
    sentence: str
    """All of this for people, without full stop."""

    @property
    def fits(self) -> bool:
        """Whether the configuration can be trained as it is."""
        return self.needed_bytes <= self.memory_bytes


def plan(config: RunConfig, memory_bytes: int, mean_length: float | None = None) -> Plan | None:
    """What fits into `memory_bytes`; None for a backend that is not understood, and for a linear model.

    A batch holds as many tokens as `batch_size` reviews of `mean_length`; unknown, all reviews are taken to be as long as the
    longest that is read. Where it is computed in parts, as on a CPU, a part has to fit and the batch may be of any size.
    """
    needed = needed_bytes(config, mean_length)
    if needed is None:
        return None
    largest = _largest(lambda batch: _fits(_with_batch(config, batch), memory_bytes, mean_length))
    found: list[RunConfig] = []
    if needed > memory_bytes:
        for variant in _variants(config):
            batch = min(
                config.training.batch_size, _largest(lambda n, v=variant: _fits(_with_batch(v, n), memory_bytes, mean_length))
            )
            if batch > (found[-1].training.batch_size if found else 0):
                found.append(_with_batch(variant, batch))
    return Plan(
        needed_bytes=needed, memory_bytes=memory_bytes, largest_batch=largest, alternatives=tuple(found),
        sentence=_sentence(config, needed, memory_bytes, found),
    )  # fmt: skip


def needed_bytes(config: RunConfig, mean_length: float | None = None) -> int | None:
    """The predicted peak of a training step, the highest of what the knobs of `auto` may come to; None if not predicted."""
    if isinstance(config.model, LinearArchitecture):
        return None  # it has no steps
    network = _network(config)
    found = [peak_bytes(cell, network) for cell in _cells(config, mean_length)]
    known = [n_bytes for n_bytes in found if n_bytes is not None]
    return max(known) if len(known) == len(found) else None


def _network(config: RunConfig) -> Network:
    model = config.model
    if isinstance(model, EncoderArchitecture):
        return Network(vocabulary=model.vocab_size, d_ff=model.d_ff, dropout=model.dropout > 0)
    return Network(vocabulary=round(model.vocab_size * model.d_embedding / model.d_hidden))  # as many numbers, otherwise wide


def _cells(config: RunConfig, mean_length: float | None) -> list[Cell]:
    """The steps that a training may come to."""
    model, training = config.model, config.training
    length, device = model.max_len, device_of(training.device)
    mean = min(mean_length or length, length)
    at_once = tokens_at_once(model, device)
    tokens = training.batch_size * mean if at_once is None else min(training.batch_size * mean, at_once)
    step = partial(
        Cell, what="step", batch=max(1, round(tokens / length)), length=length, n_layers=model.n_layers, device=device
    )
    dtypes = DTYPES[training.precision]
    if not isinstance(model, EncoderArchitecture):
        return [step(network="bilstm", backend=None, n_heads=1, d_head=model.d_hidden, dtype=dtype) for dtype in dtypes]
    step = partial(step, n_heads=model.n_heads, d_head=model.d_model // model.n_heads)
    again = length > CHECKPOINT_BEYOND if training.checkpointing == "auto" else training.checkpointing == "on"
    choices = product(_backends(config, device), dtypes)
    return [step(backend=backend, dtype=dtype, checkpointing=again) for backend, dtype in choices]


def _backends(config: RunConfig, device: str) -> tuple[str, ...]:
    """What a knob of backend may come to."""
    assert isinstance(config.model, EncoderArchitecture)
    if config.training.backend != "auto":
        return (config.training.backend,)
    if config.model.mistake in MISTAKES_OF_ATTENTION:
        return ("eager",)
    return ("eager", "sdpa") if device == "cpu" else ("varlen", "sdpa")


def _fits(config: RunConfig, memory_bytes: int, mean_length: float | None) -> bool:
    return (needed_bytes(config, mean_length) or 0) <= memory_bytes


def _with_batch(config: RunConfig, batch: int) -> RunConfig:
    return replace(config, training=replace(config.training, batch_size=batch))


def _variants(config: RunConfig) -> list[RunConfig]:
    """The configuration, then with less memory for each review."""
    model, training = config.model, config.training
    if not isinstance(model, EncoderArchitecture):
        return [config]
    frugal = training if model.mistake in MISTAKES_OF_ATTENTION else replace(training, backend="sdpa")
    again = replace(frugal, checkpointing="on")
    return [replace(config, training=variant) for variant in dict.fromkeys((training, frugal, again))]


def _sentence(config: RunConfig, needed: int, memory_bytes: int, found: Sequence[RunConfig]) -> str:
    asked = config.training
    if needed <= memory_bytes:
        return f"needs about {gib(needed)} of {gib(memory_bytes)}"
    ways = []
    for each in (variant.training for variant in found):
        how = [each.backend] * (each.backend != asked.backend) + ["checkpointing"] * (each.checkpointing != asked.checkpointing)
        ways.append(f"at batch {each.batch_size}" + (f" with {' and '.join(how)}" if how else ""))
    fits = f"fits {', or '.join(ways)}" if ways else "not even one review fits; choose a smaller max_len or a smaller network"
    return f"needs about {gib(needed)}, and there are {gib(memory_bytes)}; {fits}"


def largest_batch(cell: Cell, memory_bytes: int) -> int | None:
    """The largest batch whose predicted peak is within `memory_bytes`, 0 if one review is too much; None if not predicted."""
    if peak_bytes(cell) is None:
        return None
    return _largest(lambda batch: (peak_bytes(replace(cell, batch=batch)) or 0) <= memory_bytes)


def _largest(fits: Callable[[int], bool]) -> int:
    """The greatest number up to LARGEST that fits, when all smaller ones do."""
    low, high = 0, 1
    while low < LARGEST and fits(high):
        low, high = high, min(2 * high, LARGEST + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def rule_of_thumb(length: int, d_model: int, memory_bytes: int) -> int:
    """The largest batch by article C's rule, (GPU memory - 1 GB) / (T x d_model x 8 x 4): it knows no layer, head or kernel."""
    return max(0, (memory_bytes - GB) // (length * d_model * 8 * 4))


def device_memory(device: str) -> int | None:
    """Bytes that a process could take now: of the first GPU as its driver says, of main memory; None where nobody says."""
    if device == "cpu":
        return available_bytes()
    command = ["nvidia-smi", "--query-gpu=memory.free", "--format=csv,noheader,nounits"]
    with suppress(OSError, subprocess.SubprocessError, ValueError, IndexError):
        said = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout
        return int(said.splitlines()[0]) * 2**20
    return None
