"""The same weights and the same reviews through every attention backend: the same answers, at what cost?"""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from core.catalog import BACKENDS, NETWORKS
from core.config import BackendsConfig
from core.data.reviews import Reviews, load
from core.data.splits import split
from core.events import BackendMeasured, Cancelled, Event
from core.jobs import Ended, Stopped, device_of, patient
from core.measure.process import ALLOCATOR, answer
from core.runs import config_of

REFERENCE = "eager"
KINDS = ("speed", "memory")


@dataclass(frozen=True, kw_only=True)
class Given:
    """What every backend is given."""

    model: Path
    device: str
    reviews: Path
    """As `core.measure.through.Asked` has it."""
    n: int


def compare(
    config: BackendsConfig, emit: Callable[[Event], None], stopped: Callable[[], bool], said: Sequence[Event] = ()
) -> None:
    """Sends the reviews through each backend that can run here, the reference first, and emits what it said and took.

    What was `said` before is not measured again, but for the reference's answers. Ends with Cancelled if `stopped` says so,
    and raises Ended where the system asks the process to end. ValueError for a model without self-attention, and for one
    whose reviews cannot be found.
    """
    with patient() as asked_to_end, tempfile.TemporaryDirectory() as folder:

        def over() -> bool:
            return stopped() or asked_to_end()

        try:
            given = _given(config, Path(folder) / "reviews.npz")
            reference = _answer(given, REFERENCE, KINDS[0], over)
            known = {event.backend for event in said if isinstance(event, BackendMeasured)}
            for backend in sorted(set(BACKENDS) - known, key=lambda name: (name != REFERENCE, list(BACKENDS).index(name))):
                emit(_measured(given, backend, reference, over))
        except Stopped as error:
            if asked_to_end():
                raise Ended("the system asked it to end; what is measured is kept") from error
            emit(Cancelled())


def sample(model: Path, n: int) -> Reviews:
    """Of the test reviews of a model, `n` spread evenly. ValueError if they cannot be found."""
    config = config_of(model)
    return split(load(config.reviews, config.training.seed)).test.spread(n)


def _given(config: BackendsConfig, file: Path) -> Given:
    from core.artifact import open_model  # torch, once the device is free
    from core.data.tokenizer import encode

    model = open_model(Path(config.model))
    if model.kind != "encoder":
        of = NETWORKS[model.kind]
        raise ValueError(f"model: got {model.name}, {of}, which has no attention kernel; expected a Transformer")
    texts = sample(Path(config.model), config.n).texts
    reviews = [model.cut.ids(encode(model.tokenizer, text).ids) for text in texts]
    np.savez(file, ids=np.concatenate(reviews), lengths=[len(ids) for ids in reviews])
    return Given(model=Path(config.model), device=device_of(config.device), reviews=file, n=len(reviews))


def _measured(given: Given, backend: str, reference: dict[str, Any], stopped: Callable[[], bool]) -> BackendMeasured:
    """Time first, then memory; what cannot be measured says why. `reference` is the answer on the time of the reference."""
    found: dict[str, Any] = {}
    reason = BACKENDS[backend].why_not(device=given.device, dtype="float32")
    for kind in KINDS if reason is None else ():
        try:
            asked_before = (backend, kind) == (REFERENCE, KINDS[0])
            found |= reference if asked_before else _answer(given, backend, kind, stopped)
        except (MemoryError, ValueError) as error:
            reason = str(error)
            break
    logits, right = (np.array(answer["logits"]) if "logits" in answer else None for answer in (found, reference))
    return BackendMeasured(
        backend=backend,
        n=given.n,
        largest_difference=None if logits is None else float(np.abs(logits - right).max()),
        changed=None if logits is None else int((logits.argmax(1) != right.argmax(1)).sum()),
        why_not=reason,
        **{name: found.get(name) for name in ("median_s", "spread_s", "others", "peak_bytes", "kernel", "hardware")},
    )


def _answer(given: Given, backend: str, kind: str, stopped: Callable[[], bool]) -> dict[str, Any]:
    asked = {
        "kind": kind, "model": str(given.model.resolve()), "backend": backend, "device": given.device,
        "reviews": str(given.reviews),
    }  # fmt: skip
    return answer("core.measure.through", asked, stopped, ALLOCATOR if kind == "memory" else {})
