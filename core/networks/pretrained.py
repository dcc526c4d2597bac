"""Sequence classifiers that others have trained, opened from a folder and run on this lab's attention backends.

transformers calls the attention registered under the name that a network carries, and hands it the mask that is registered
under the same name: importing this module registers both as "lab", and overrides nothing. What differs from call to call
travels as keyword arguments of the network's forward, so that one network serves many threads:

    network(input_ids, attention_mask, output_attentions=True, backend="eager", head_gain=gain)

Texts are padded on the right: their first place is taken for the whole, and on the left that would be padding.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float
from tokenizers import Tokenizer
from torch import Tensor
from transformers import (
    AttentionInterface,
    AttentionMaskInterface,
    AutoModelForSequenceClassification,
    PreTrainedModel,
)
from transformers.models.distilbert.modeling_distilbert import DistilBertSelfAttention

from core.attention.masks import AttentionMask
from core.data import tokenizer as tokenizers
from core.data.batches import Cut
from core.networks.blocks import attention_function, of_layer, switched

NAME = "lab"
ARCHITECTURES = {
    "bert": "BertForSequenceClassification",  # arXiv:1810.04805
    "distilbert": "DistilBertForSequenceClassification",  # arXiv:1910.01108
    "roberta": "RobertaForSequenceClassification",  # arXiv:1907.11692
    "modernbert": "ModernBertForSequenceClassification",  # arXiv:2412.13663
}
"""What can be opened, by its `model_type`."""
OF_A_LAYER = re.compile(r"\.layers?\.\d+\.")
"""In the name of a weight that changes what is read; a head for another task may be passed over."""


@dataclass(frozen=True, kw_only=True)
class Pretrained:
    """An opened classifier, ready to read reviews: float32 weights, evaluation mode, no gradients."""

    name: str
    folder: Path
    network: PreTrainedModel
    tokenizer: Tokenizer
    label_names: tuple[str, ...]
    """The name of each class."""
    cut: Cut
    """Which tokens of a text are read, and between which others."""

    @property
    def kind(self) -> str:
        """The `model_type`, one of `ARCHITECTURES`."""
        return self.network.config.model_type

    @property
    def run(self) -> dict[str, Any]:
        """What is on record of its training: nothing."""
        return {}

    @property
    def max_len(self) -> int:
        """Tokens read at once, the added ones among them."""
        return len(self.cut.prefix) + self.cut.room + len(self.cut.suffix)


# Attention


def attend(
    module: Any,
    query: Float[Tensor, "B H Q K"],
    key: Float[Tensor, "B H T K"],
    value: Float[Tensor, "B H T K"],
    attention_mask: AttentionMask | Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    *,
    backend: str | None = None,
    head_gain: Float[Tensor, "layers heads"] | None = None,
    head_mean: Bool[Tensor, "layers heads"] | None = None,
    output_attentions: bool = False,
    **ignored: Any,
) -> tuple[Float[Tensor, "B Q H K"], Float[Tensor, "B H Q T"] | None]:
    """What transformers calls in each layer. Without a `backend`: eager if weights are asked, else sdpa.

    `head_gain` and `head_mean`, each (L, H), are what they are for the lab's own encoder. ValueError if one is of another
    shape, or if weights are asked of a backend that computes none.
    """
    if ignored.get("head_mask") is not None:
        raise ValueError("head_mask: transformers passes over it since version 5; scale heads by head_gain")
    if not isinstance(attention_mask, AttentionMask):
        raise ValueError("attention_mask: got one that is made already, expected (B, T), 1 on real tokens")
    function = attention_function(backend or ("eager" if output_attentions else "sdpa"), weights=output_attentions)
    heads, weights = function(query, key, value, attention_mask, None, scaling, dropout)
    own = partial(of_layer, layer=module.layer_idx, n_layers=module.config.num_hidden_layers, n_heads=heads.shape[1])
    heads = switched(heads, attention_mask, own("head_gain", head_gain), own("head_mean", head_mean))
    return heads.transpose(1, 2).contiguous(), weights


def mask(
    *,
    mask_function: Callable[..., Tensor],
    attention_mask: Bool[Tensor, "B T"] | None = None,
    local_size: int | None = None,
    use_vmap: bool = False,
    **ignored: Any,
) -> AttentionMask:
    """What transformers calls for the mask of its global layers, and with a `local_size` for that of its local ones.

    ValueError for a pattern other than those two.
    """
    first, second = torch.tensor(0), torch.tensor(1)
    if use_vmap or not mask_function(first, first, first, second):
        raise ValueError("got a network that reads from left to right or masks in its own way, expected an encoder")
    if attention_mask is not None and attention_mask.all():
        attention_mask = None
    return AttentionMask(attention_mask, window=local_size)


AttentionInterface.register(NAME, attend)
AttentionMaskInterface.register(NAME, mask)


# Opening


def open_pretrained(folder: Path, name: str | None = None) -> Pretrained:
    """The classifier of a local folder: config.json, safetensors and tokenizer.json, nothing asked of the network, no code run.

    It is called `name`, or as its folder is. ValueError if that is none, is damaged, lacks weights, or holds something other
    than a classifier of `ARCHITECTURES`.
    """
    if not folder.is_dir():  # transformers would take it for a name on the hub, and ask for it over the network
        raise ValueError(f"{folder}: there is no such folder, expected one with config.json, model.safetensors, tokenizer.json")
    refuse_foreign_kinds(folder)
    _refuse_unsafe_weights(folder)
    network = _load(folder)
    label_names = _label_names(folder, network.config)
    tokenizer = tokenizers.load(folder)
    return Pretrained(
        name=name or folder.resolve().name,
        folder=folder,
        network=network,
        tokenizer=tokenizer,
        label_names=label_names,
        cut=_cut(folder, tokenizer, network.config),
    )


def refuse_foreign_kinds(folder: Path) -> None:
    """ValueError where config.json is not of a classifier of `ARCHITECTURES`, or asks for code of its own to be run."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{folder}: config.json cannot be read ({error}); restore the file") from error
    found = (config.get("model_type"), config.get("architectures")) if isinstance(config, dict) else (None, None)
    if found not in [(kind, [name]) for kind, name in ARCHITECTURES.items()]:
        raise ValueError(
            f"{folder}: config.json is of a {found[0]!r} with architectures {found[1]!r}, "
            f"expected one of {', '.join(ARCHITECTURES.values())}"
        )
    if config.get("auto_map"):
        raise ValueError(f"{folder}: config.json asks for code of its own (auto_map), which is never run; expected none")
    if config.get("is_decoder"):
        raise ValueError(f"{folder}: config.json is of a decoder, which reads from left to right, expected an encoder")
    if config.get("quantization_config"):
        raise ValueError(f"{folder}: config.json is of quantised weights, expected float32, bfloat16 or float16")


def _refuse_unsafe_weights(folder: Path) -> None:
    names = ("model.safetensors", "model.safetensors.index.json")
    if not any((folder / name).is_file() for name in names):
        others = ", ".join(sorted(path.name for path in folder.glob("*.bin"))) or "none"
        raise ValueError(
            f"{folder}: got no model.safetensors (other weights: {others}), expected safetensors, since a .bin can run code "
            "as it is read; convert it where it was trained"
        )


def _load(folder: Path) -> PreTrainedModel:
    try:
        network, report = AutoModelForSequenceClassification.from_pretrained(
            folder,
            attn_implementation=NAME,
            dtype=torch.float32,
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
            output_attentions=False,  # what config.json may ask for is asked for call by call
            return_dict=True,
        )
    except Exception as error:  # transformers stumbles over a wrong config.json in every way there is
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise ValueError(f"{folder}: the model cannot be opened ({reason}); restore config.json and the weights") from error
    if missing := sorted(report["missing_keys"]):
        raise ValueError(
            f"{folder}: the weights lack {_some(missing)}, which would be random; expected a classifier that has been trained"
        )
    if unread := sorted(name for name in report["unexpected_keys"] if OF_A_LAYER.search(name)):
        raise ValueError(
            f"{folder}: the weights hold {_some(unread)}, which the network of config.json would pass over; "
            "expected as many layers, and no part that transformers lacks"
        )
    if not all(bool(weights.isfinite().all()) for weights in network.parameters()):
        raise ValueError(f"{folder}: the weights are not all finite numbers; restore them")
    _number_layers(network)
    return network.eval().requires_grad_(False)


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (" and more" if names[3:] else "")


def _number_layers(network: PreTrainedModel) -> None:
    """Tell DistilBERT's attentions which layer they are of, as those of the other kinds know."""
    attentions: list[Any] = [module for module in network.modules() if isinstance(module, DistilBertSelfAttention)]
    for index, attention in enumerate(attentions):
        attention.layer_idx = index


def _label_names(folder: Path, config: Any) -> tuple[str, ...]:
    if config.num_labels < 2 or config.problem_type not in (None, "single_label_classification"):
        raise ValueError(
            f"{folder}: config.json is of {config.num_labels} outputs for {config.problem_type or 'a regression'}, "
            "expected classes of which a text has one"
        )
    names = {i: str(name) for i, name in config.id2label.items()}
    if sorted(names) != list(range(len(names))) or len(set(names.values())) < len(names):
        raise ValueError(f"{folder}: config.json calls the classes {names}, expected a different name for each from 0 on")
    return tuple(names[i] for i in range(len(names)))


def _cut(folder: Path, tokenizer: Tokenizer, config: Any) -> Cut:
    """What is read of a text, between the tokens that the tokeniser puts before and after it."""
    if max(tokenizer.get_vocab().values(), default=-1) >= config.vocab_size:
        raise ValueError(f"{folder}: tokenizer.json has ids that the network's {config.vocab_size} lack; restore both files")
    try:
        sample = tokenizer.encode("a")
    except Exception as error:  # the library raises nothing more special
        raise ValueError(f"{folder}: tokenizer.json cannot read an 'a' ({error}); save it again") from error
    own = [place for place, added in enumerate(sample.special_tokens_mask) if not added]
    if not own or own[0] == 0:
        raise ValueError(f"{folder}: tokenizer.json puts no token before a text, expected [CLS] or its like; save it again")
    prefix, suffix = tuple(sample.ids[: own[0]]), tuple(sample.ids[own[-1] + 1 :])
    room = _max_len(config) - len(prefix) - len(suffix)
    if room < 1:
        raise ValueError(f"{folder}: config.json leaves no place for a token of the text, expected more positions")
    return Cut(room=room, truncation="head", prefix=prefix, suffix=suffix)


def _max_len(config: Any) -> int:
    if config.model_type == "roberta":  # counts places from that of padding on
        return config.max_position_embeddings - config.pad_token_id - 1
    return config.max_position_embeddings
