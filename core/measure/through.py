"""A model through one attention backend, in this process, which does nothing else: `python -m core.measure.through ASKED`."""

import gc
import json
import statistics
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from core.artifact import open_model
from core.evaluation.scoring import score
from core.measure.cells import circumstances, end_with_parent
from core.measure.memory import allocated_peak, resident_peak
from core.measure.others import watch
from core.measure.speed import times


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is measured."""

    kind: Literal["memory", "speed"]
    model: str
    """Folder of a model."""
    backend: str
    device: str
    reviews: str
    """File of `numpy.savez`: ids of all reviews after one another, and their lengths."""


def measure(asked: Asked) -> dict[str, Any]:
    """Logits of all reviews, memory or time of reading them, which kernel ran and on what.

    ValueError for a backend that cannot read them, and where memory cannot be measured.
    """
    network = open_model(Path(asked.model)).network.to(asked.device)
    with np.load(asked.reviews, allow_pickle=False) as stored:
        reviews = np.split(stored["ids"], np.cumsum(stored["lengths"])[:-1])
    read = partial(score, network, reviews, backend=asked.backend)
    logits = read()  # and libraries and kernels are there
    found = _memory(asked, read) if asked.kind == "memory" else _speed(asked, read)
    return found | circumstances(asked.device, read) | {"logits": logits.tolist()}


def _memory(asked: Asked, read: partial[Any]) -> dict[str, Any]:
    gc.collect()
    return {"peak_bytes": allocated_peak(read)[0] if asked.device == "cuda" else resident_peak(read)}


def _speed(asked: Asked, read: partial[Any]) -> dict[str, Any]:
    others = watch()
    seconds = times(asked.device, read)
    return {"median_s": statistics.median(seconds), "spread_s": max(seconds) - min(seconds), "others": others()}


if __name__ == "__main__":
    end_with_parent()
    print(json.dumps(measure(Asked(**json.loads(sys.argv[1])))))
