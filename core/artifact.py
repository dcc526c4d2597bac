"""A trained model as a folder: network, tokeniser, run.json, predictions.parquet and a card.

`transformers` opens it too: `AutoModelForSequenceClassification.from_pretrained(folder)` once `core.networks.auto` is
imported. Weights are safetensors only. Torch and transformers are imported where they are used, so that a page can list
models and read their figures without them.
"""

from __future__ import annotations

import copy
import json
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from core.card import card
from core.config import Architecture, RunConfig
from core.hub import local_folder
from core.runs import member_folders, runs_root

if TYPE_CHECKING:
    import pandas as pd
    from tokenizers import Tokenizer
    from torch import nn

    from core.data.batches import Cut
    from core.networks.auto import Network

ROOT = Path(__file__).resolve().parent.parent
FILES = ("config.json", "model.safetensors", "tokenizer.json", "run.json")
OWN_TYPES = "attention-lab-"
"""How the `model_type` of this lab's networks begins."""
COLUMNS = ("text_hash", "split", "label", "logits", "words", "tokens", "tokens_read")
"""Of predictions.parquet."""


@runtime_checkable
class Reader(Protocol):
    """What reads a text: a model of this lab, or one that `core.networks.pretrained` has opened."""

    @property
    def name(self) -> str: ...
    @property
    def network(self) -> nn.Module: ...
    @property
    def tokenizer(self) -> Tokenizer: ...
    @property
    def label_names(self) -> tuple[str, ...]: ...
    @property
    def cut(self) -> Cut: ...


@runtime_checkable
class Opened(Reader, Protocol):
    """A reader of a folder, as `open_reader` gives it."""

    @property
    def folder(self) -> Path: ...
    @property
    def kind(self) -> str: ...
    @property
    def run(self) -> dict[str, Any]: ...


@dataclass(frozen=True, kw_only=True)
class Model:
    """An opened artefact, ready to read reviews: float32 weights, evaluation mode, no gradients."""

    name: str
    folder: Path
    network: Network
    tokenizer: Tokenizer
    run: dict[str, Any]
    """run.json: configuration, data, metrics, versions, hardware, command."""

    @cached_property
    def architecture(self) -> Architecture:
        """What the network is built as."""
        return self.network.config.architecture

    @property
    def kind(self) -> str:
        """ "encoder", "bilstm" or "linear"."""
        return self.architecture.kind

    @property
    def label_names(self) -> tuple[str, ...]:
        """The name of each class."""
        return tuple(self.network.config.id2label[i] for i in range(self.network.config.num_labels))

    @property
    def cut(self) -> Cut:
        """Which tokens of a review are read. ValueError if none would fit."""
        from core.data.batches import Cut

        return Cut.of(self.architecture)


def models_root() -> Path:
    """Where models are whose runs are not here: models/, or the folder that the environment variable ATTENTION_LAB_MODELS
    names."""
    return Path(os.environ.get("ATTENTION_LAB_MODELS", ROOT / "models"))


def model_folders(root: Path | None = None) -> dict[str, Path]:
    """Folders that hold a model, by name: those under `models_root()` and those that runs and members of experiments have made,
    by their ids.

    A root that is given is the only one. Of equal names the one under `models_root()` counts.
    """
    shipped = root or models_root()
    trained = [] if root else sorted(runs_root().glob("*/model"))
    folders = {folder.parent.name: folder for folder in trained} | {folder.name: folder for folder in shipped.glob("*")}
    folders |= {} if root else {id: folder / "model" for id, folder in member_folders(runs_root()).items()}
    return {name: folder for name, folder in sorted(folders.items()) if (folder / "run.json").is_file()}


def read_run(folder: Path) -> dict[str, Any]:
    """run.json of a model folder. ValueError if it is missing or holds no JSON object."""
    return _read_object(folder, "run.json")


def read_predictions(folder: Path) -> pd.DataFrame:
    """predictions.parquet: the `COLUMNS` of validation and test reviews. ValueError if it is missing or damaged."""
    import pandas as pd
    import pyarrow as pa

    _refuse_incomplete(folder, ("predictions.parquet",))
    try:
        frame = pd.read_parquet(folder / "predictions.parquet")
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).rpartition("': ")[2]  # pyarrow names the file, too
        raise ValueError(f"{folder}: predictions.parquet is damaged ({reason}); train the model again") from error
    missing = [name for name in COLUMNS if name not in frame]
    if missing:
        raise ValueError(f"{folder}: predictions.parquet is damaged (no {', '.join(missing)}); train the model again")
    return frame


def open_reader(named: Path) -> Opened:
    """The model of a folder, or a sequence classifier of transformers' that somebody else has trained: of a folder, or of the
    hub.

    ValueError as from `open_model`, `core.networks.pretrained.open_pretrained` and `core.hub.local_folder`.
    """
    folder = local_folder(named)
    if not is_foreign(folder):
        return open_model(folder)
    from core.networks.pretrained import open_pretrained

    return open_pretrained(folder, named.name)


def is_foreign(folder: Path) -> bool:
    """Whether a folder's config.json is of a network that is not of this lab; False where nothing can be read."""
    try:
        model_type = _read_object(folder, "config.json").get("model_type")
    except (ValueError, OSError):
        return False
    return not str(model_type).startswith(OWN_TYPES)


def open_model(folder: Path) -> Model:
    """The model of a folder. A missing or damaged one is a ValueError that says what was found and what is expected."""
    from core.data import tokenizer

    _refuse_incomplete(folder, FILES)
    model = Model(
        name=_name(folder),
        folder=folder,
        network=load_network(folder),
        tokenizer=tokenizer.load(folder),
        run=read_run(folder),
    )
    spelled, known = model.tokenizer.get_vocab_size(), model.architecture.vocab_size
    if spelled != known:
        raise ValueError(f"{folder}: tokenizer.json has {spelled} entries and the network knows {known}; restore both files")
    return model


def load_network(folder: Path) -> Network:
    """The network alone, in float32, evaluation mode and without gradients. ValueError if it cannot be opened."""
    import torch
    from safetensors import SafetensorError
    from transformers import AutoModelForSequenceClassification

    from core.networks.auto import ARCHITECTURES  # and the Auto classes know our networks

    _refuse_incomplete(folder, ("config.json", "model.safetensors"))
    model_type = _read_object(folder, "config.json").get("model_type")
    if model_type not in list(ARCHITECTURES):
        raise ValueError(f"{folder}: config.json is of a {model_type!r}, expected one of {', '.join(ARCHITECTURES)}")
    try:
        network, report = AutoModelForSequenceClassification.from_pretrained(
            folder, dtype=torch.float32, local_files_only=True, output_loading_info=True, ignore_mismatched_sizes=True
        )
    except (SafetensorError, OSError, ValueError, RuntimeError, TypeError, AttributeError) as error:
        # the last two are what transformers stumbles over in a config.json with values of other types
        reason = str(error).strip().splitlines()[0]
        raise ValueError(f"{folder}: the model cannot be opened ({reason}); expected a folder written by this lab") from error
    if any(report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")):
        raise ValueError(
            f"{folder}: model.safetensors does not hold the weights that config.json describes; restore both files"
        )
    names = list(network.config.id2label.values())
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise ValueError(f"{folder}: config.json calls the classes {names}, expected a different text for each; restore it")
    if not all(bool(weights.isfinite().all()) for weights in network.parameters()):
        raise ValueError(f"{folder}: model.safetensors holds weights that are no finite numbers; restore it or train again")
    return network.eval().requires_grad_(False)


def write_network(folder: Path, network: Network, tokenizer: Tokenizer, config: RunConfig) -> None:
    """Weights and tokeniser, in the format that the configuration asks for; `folder` is made, the network left as it is."""
    import torch

    from core.data import tokenizer as tokenizers
    from core.data.batches import Cut

    dtype = getattr(torch, config.training.weights)
    copy.deepcopy(network).to(dtype).save_pretrained(folder)
    tokenizers.save(tokenizer, folder, max_len=config.model.max_len, add_cls=bool(Cut.of(config.model).prefix))


def write_record(folder: Path, run: dict[str, Any], predictions: pd.DataFrame) -> None:
    """What was measured, beside the weights: run.json, predictions.parquet and the card made of them."""
    predictions.to_parquet(folder / "predictions.parquet", index=False)
    (folder / "run.json").write_text(json.dumps(run, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / "README.md").write_text(card(run), encoding="utf-8")


def _name(folder: Path) -> str:
    folder = folder.resolve()
    return folder.parent.name if folder.name == "model" else folder.name


def _read_object(folder: Path, name: str) -> dict[str, Any]:
    _refuse_incomplete(folder, (name,))
    try:
        values = json.loads((folder / name).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{folder}: {name} is damaged ({error}); train the model again or restore the file") from error
    if not isinstance(values, dict):
        raise ValueError(f"{folder}: {name} is damaged (no object); train the model again or restore the file")
    return values


def _refuse_incomplete(folder: Path, files: tuple[str, ...]) -> None:
    if not folder.is_dir():  # a missing folder would be taken for a name on the hub, and asked for over the network
        raise ValueError(
            f"{folder}: there is no such folder; expected one that `python -m core train` wrote, or hub:OWNER/NAME"
        )
    missing = [name for name in files if not (folder / name).is_file()]
    if missing:
        raise ValueError(f"{folder}: {', '.join(missing)} missing; expected a folder that `python -m core train` wrote")
