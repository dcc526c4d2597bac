"""Bytes of tensors that are alive at once, counted by each operator's results: the same on every machine."""

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class _LiveBytes(TorchDispatchMode):
    """Adds each storage that an operator makes, and takes it away when the last tensor on it is gone."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.peak = 0
        self.known: set[int] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        given = {storage._cdata for storage in _storages((args, kwargs))}  # a view of one that was there before is not new
        result = func(*args, **(kwargs or {}))
        for storage in _storages(result):
            if storage._cdata not in self.known | given:
                self._add(storage, storage._cdata, storage.nbytes())
        return result

    def _add(self, storage: torch.UntypedStorage, key: int, n_bytes: int) -> None:
        self.known.add(key)
        self.now += n_bytes
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self._remove, key, n_bytes)

    def _remove(self, key: int, n_bytes: int) -> None:
        self.known.discard(key)
        self.now -= n_bytes


def _storages(values: Any) -> Iterator[torch.UntypedStorage]:
    for value in tree_leaves(values):
        if isinstance(value, torch.Tensor) and not value.is_meta:
            yield value.untyped_storage()


def peak_of(run: Callable[[], object]) -> int:
    """The most bytes alive while `run` runs, of tensors made in it."""
    with _LiveBytes() as counter:
        run()
    return counter.peak
