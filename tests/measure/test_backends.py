import json
from dataclasses import replace

import numpy as np
import pytest

from core.artifact import open_model
from core.config import BackendsConfig
from core.data.reviews import Reviews
from core.evaluation.scoring import score
from core.events import BackendMeasured, Cancelled
from core.measure import backends, through
from tests import small_models

REVIEWS = Reviews(name="x", texts=small_models.TEXTS, labels=[1, 0, 0], label_names=("negative", "positive"))


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return small_models.write(tmp_path_factory.mktemp("models"))


@pytest.fixture(autouse=True)
def few_reviews(monkeypatch):
    monkeypatch.setattr(backends, "sample", lambda model, n: REVIEWS.spread(n))


def compared(config: BackendsConfig, said=(), stopped=lambda: False) -> list:
    events = []
    backends.compare(config, events.append, stopped, said)
    return events


def answered(monkeypatch, logits: dict[str, list]) -> list:
    """Has each backend answer so, a ValueError as a refusal; hears who was asked for what."""
    asked = []

    def answer(given, backend, kind, stopped):
        asked.append((backend, kind))
        if isinstance(logits[backend], ValueError):
            raise logits[backend]
        figures = {"median_s": 2.0, "spread_s": 0.5, "others": 0.0} if kind == "speed" else {"peak_bytes": 7}
        return figures | {"logits": logits[backend], "kernel": f"a kernel of {backend}", "hardware": "here"}

    monkeypatch.setattr(backends, "_answer", answer)
    monkeypatch.setattr(backends, "BACKENDS", {name: backends.BACKENDS[name] for name in logits})
    return asked


def test_a_kernel_is_read_in_processes_of_its_own(root, monkeypatch):
    monkeypatch.setattr(backends, "BACKENDS", {name: backends.BACKENDS[name] for name in ("varlen", "eager")})
    eager, varlen = compared(BackendsConfig(model=str(root / "imdb-encoder"), n=2))
    assert (eager.backend, eager.n, eager.largest_difference, eager.changed) == ("eager", 2, 0, 0)
    assert "aten::_softmax" in eager.kernel
    assert eager.median_s > 0 and eager.spread_s >= 0 and eager.peak_bytes >= 0 and eager.hardware
    assert varlen.median_s is None and varlen.largest_difference is None and "cuda" in varlen.why_not


@pytest.mark.parametrize(("backend", "kernel"), [("chunked", "_Flash"), ("sdpa", "flash")])
def test_the_process_reads_what_scoring_reads(root, tmp_path, backend, kernel):
    model = open_model(root / "cls")
    reviews = [np.array([5, 6, 7]), np.array([8, 9])]
    np.savez(tmp_path / "reviews.npz", ids=np.concatenate(reviews), lengths=[3, 2])
    asked = through.Asked(
        kind="speed", model=str(root / "cls"), backend=backend, device="cpu", reviews=str(tmp_path / "reviews.npz")
    )
    found = through.measure(asked)
    np.testing.assert_allclose(found["logits"], score(model.network, reviews), atol=1e-6)
    assert kernel in found["kernel"] and found["median_s"] > 0 and "peak_bytes" not in found
    json.dumps(found)


def test_other_answers_are_told(root, monkeypatch):
    asked = answered(monkeypatch, {
        "sdpa": [[0.0, 1.0], [0.5, 0.0]], "eager": [[0.0, 1.0], [0.0, 0.25]], "flex": ValueError("no compiler"),
    })  # fmt: skip
    eager, sdpa, flex = compared(BackendsConfig(model=str(root / "cls"), n=2))
    assert asked == [("eager", "speed"), ("eager", "memory"), ("sdpa", "speed"), ("sdpa", "memory"), ("flex", "speed")]
    assert (eager.changed, eager.largest_difference, eager.peak_bytes, eager.median_s) == (0, 0, 7, 2.0)
    assert (sdpa.changed, sdpa.largest_difference) == (1, 0.5)
    assert (flex.why_not, flex.changed, flex.median_s, flex.largest_difference) == ("no compiler", None, None, None)


def test_what_was_said_before_is_not_measured_again(root, monkeypatch):
    asked = answered(monkeypatch, {"eager": [[0.0, 1.0]], "sdpa": [[0.0, 1.0]]})
    said = compared(config := BackendsConfig(model=str(root / "cls"), n=1))
    asked.clear()
    assert compared(config, said[:1]) == [replace(said[1], backend="sdpa")]
    assert asked == [("eager", "speed"), ("sdpa", "speed"), ("sdpa", "memory")]


def test_a_person_may_stop_it(root):
    events = compared(BackendsConfig(model=str(root / "cls"), n=1), stopped=lambda: True)
    assert events == [Cancelled()]


def test_a_network_without_kernels_and_unknown_reviews_are_refused(root, monkeypatch):
    with pytest.raises(ValueError, match="imdb-bilstm, a BiLSTM, which has no attention kernel"):
        compared(BackendsConfig(model=str(root / "imdb-bilstm")))
    monkeypatch.undo()
    with pytest.raises(ValueError, match="the configuration of cls is not on record"):
        compared(BackendsConfig(model=str(root / "cls")))


def test_events_are_of_every_kernel_once(root, monkeypatch):
    answered(monkeypatch, {"sdpa-math": [[0.0, 1.0]], "eager": [[0.0, 1.0]]})
    events = compared(BackendsConfig(model=str(root / "cls"), n=1))
    assert [event.backend for event in events if isinstance(event, BackendMeasured)] == ["eager", "sdpa-math"]
