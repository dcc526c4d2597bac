"""The state of a training on disk, to go on from; the model itself is written by `core.artifact`."""

import errno
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from core import disk
from core.run_folder import CHECKPOINT

MOST_OF_THE_TIME = 0.05
"""Share of a training that is spent on writing checkpoints, at most."""


class Checkpoints:
    """The one checkpoint of a run: a file that is written beside and renamed, so that it is whole at any moment.

    It holds the state after the last step and the weights of the best epoch. While it is written, there are two of them.
    """

    def __init__(self, folder: Path | None = None, of: dict[str, Any] | None = None, every_s: float = 0.0) -> None:
        """`of`: plain values that say which training it is, and that `read` holds against. Without a folder none is kept."""
        self.path = None if folder is None else folder / CHECKPOINT
        self.of, self.every_s = of or {}, every_s
        self.written, self.took_s = time.perf_counter(), 0.0

    def due(self) -> bool:
        """Whether it is time for another one: always, where they are wanted after each step."""
        pause_s = max(self.every_s, self.took_s / MOST_OF_THE_TIME) if self.every_s else 0.0
        return time.perf_counter() - self.written >= pause_s

    def write(self, state: dict[str, Any]) -> None:
        """Replaces the last one by `state`, which has a "step". OSError if there is no room, and then the last one stays."""
        if self.path is None:
            return
        start, partial = time.perf_counter(), self.path.with_suffix(".partial")
        tensors: dict[str, Tensor] = {}
        tree = _take(state, (), tensors)
        try:
            save_file(tensors, partial, {"step": str(state["step"]), "of": json.dumps(self.of), "state": json.dumps(tree)})
            with partial.open("rb") as file:
                os.fsync(file.fileno())
            partial.replace(self.path)
        except (SafetensorError, OSError) as error:
            raise _no_room(tensors, partial, error) from error
        finally:
            partial.unlink(missing_ok=True)
        self.written = time.perf_counter()
        self.took_s = self.written - start

    def read(self) -> dict[str, Any] | None:
        """The state to go on from, None where there is none.

        ValueError if the file is damaged, or of another training than this one.
        """
        if self.path is None or not self.path.is_file():
            return None
        try:
            with safe_open(self.path, "pt") as file:
                metadata = file.metadata()
                of, tree = (json.loads(metadata[name]) for name in ("of", "state"))
                state = _put(tree, {name: file.get_tensor(name) for name in file.keys()})
        except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{self.path}: the checkpoint is damaged; delete it to start from the first step") from error
        differing = [name for name in self.of if of.get(name) != self.of[name]]
        if differing:
            raise ValueError(
                f"{self.path}: the checkpoint is of another training (other {', '.join(differing)}); "
                "restore what was changed, or train in another folder"
            )
        return state

    def remove(self) -> None:
        """Once the model is stored, there is nothing to go on from."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def _no_room(tensors: dict[str, Tensor], partial: Path, error: Exception) -> OSError:
    needed, found = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values()), disk.number(error)
    free = f", {shutil.disk_usage(partial.parent).free / 2**20:,.1f} MiB are free" if found in disk.FULL else ""
    return OSError(
        found or errno.EIO, f"a checkpoint of {needed / 2**20:,.1f} MiB cannot be written ({disk.reason(error)}{free})"
    )


def _take(value: Any, path: tuple[object, ...], tensors: dict[str, Tensor]) -> Any:
    """`value` as JSON; its tensors, which go to `tensors`, stand in it by their names. Keys of a dict may be numbers."""
    if isinstance(value, Tensor):
        name = "/".join(map(str, path))
        tensors[name] = value.detach().contiguous()
        return {"tensor": name}
    if isinstance(value, dict):
        return {"items": [[key, _take(part, (*path, key), tensors)] for key, part in value.items()]}
    if isinstance(value, list | tuple):
        return [_take(part, (*path, i), tensors) for i, part in enumerate(value)]
    return value


def _put(tree: Any, tensors: dict[str, Tensor]) -> Any:
    if isinstance(tree, list):
        return [_put(part, tensors) for part in tree]
    if isinstance(tree, dict):
        return tensors[tree["tensor"]] if "tensor" in tree else {key: _put(part, tensors) for key, part in tree["items"]}
    return tree
