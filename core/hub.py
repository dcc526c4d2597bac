"""Classifiers of the Hugging Face hub, called hub:OWNER/NAME: no folder's name is taken for one."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from huggingface_hub import ModelInfo

PREFIX = "hub:"
TIMEOUT_S = 3
"""For the hub to answer; left to itself its client tries again for 23 s, and waits for a server that hangs for minutes."""
MOST_BYTES = 4 * 2**30
"""Of weights that are downloaded."""
SETTINGS = ("config.json", "tokenizer.json")
WEIGHTS = ("model.safetensors", "model-*.safetensors", "model.safetensors.index.json")


def local_folder(named: Path) -> Path:
    """`named` itself, or of a classifier of the hub the folder that its files are in, downloaded where they are not yet.

    Nothing is asked with anybody's token. ValueError if the hub has no such model or does not answer and it has never been
    downloaded, and before its weights are for one without safetensors, of more than `MOST_BYTES`, or that cannot be opened.
    """
    name = str(named)
    return _downloaded(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else named


def is_downloaded(name: str) -> bool:
    """Whether the files of hub:OWNER/NAME are on this machine already, as far as can be told without asking the hub."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        return isinstance(try_to_load_from_cache(name.removeprefix(PREFIX), "config.json"), str)
    except HFValidationError:
        return False


def _downloaded(name: str) -> Path:
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import (
        HFValidationError,
        HTTPError,  # pyright: ignore[reportPrivateImportUsage]  # of the client the hub uses
        RepositoryNotFoundError,
    )

    from core.networks.pretrained import refuse_foreign_kinds

    try:
        try:
            _refuse_weights(name, HfApi().model_info(name, files_metadata=True, timeout=TIMEOUT_S, token=False))
        except (HTTPError, OSError) as error:
            if isinstance(error, RepositoryNotFoundError):
                raise ValueError(f"{PREFIX}{name}: the hub has no such public model; check its owner and its name") from error
            return Path(snapshot_download(name, local_files_only=True))
        folder = Path(snapshot_download(name, allow_patterns=[*SETTINGS], etag_timeout=TIMEOUT_S, token=False))
        refuse_foreign_kinds(folder)
        return Path(snapshot_download(name, allow_patterns=[*SETTINGS, *WEIGHTS], etag_timeout=TIMEOUT_S, token=False))
    except HFValidationError as error:
        raise ValueError(f"got {PREFIX}{name}, expected a name such as {PREFIX}OWNER/NAME") from error
    except (HTTPError, OSError) as error:
        raise ValueError(
            f"{PREFIX}{name}: the Hugging Face hub does not answer ({type(error).__name__}), and the model has not been "
            "downloaded before; name a folder, or try again with a network"
        ) from error


def _refuse_weights(name: str, found: ModelInfo) -> None:
    files = {file.rfilename: file.size or 0 for file in found.siblings or ()}
    weights = [size for file, size in files.items() if any(fnmatch(file, pattern) for pattern in WEIGHTS)]
    if not weights:
        raise ValueError(f"{PREFIX}{name}: it has no model.safetensors; other weights can run code as they are read")
    if sum(weights) > MOST_BYTES:
        raise ValueError(
            f"{PREFIX}{name}: its weights take {sum(weights) / 2**30:.1f} GiB, expected at most {MOST_BYTES / 2**30:.0f}"
        )
