"""A batch that is computed in parts takes the memory of a part, whoever says how much that is."""

from dataclasses import replace

import numpy as np
import pytest

from core.measure.planner import needed_bytes
from core.presets import preset
from core.training.estimate import Sample, estimate
from core.training.parts import tokens_at_once


def with_batch(batch: int, device: str = "cpu"):
    base = preset("tiny")
    return replace(base, training=replace(base.training, batch_size=batch, device=device, precision="float32"))


@pytest.mark.parametrize("name", ["tiny", "bilstm"])
def test_only_a_cpu_computes_in_parts(name):
    model = preset(name).model
    assert tokens_at_once(model, "cuda") is None and (tokens_at_once(model, "cpu") or 0) > 0


def test_what_is_predicted_and_what_is_tried_is_a_part():
    reviews = Sample(n=10_000, n_classes=2, tokens=np.full(50, 100))
    part = (tokens_at_once(with_batch(1).model, "cpu") or 0) // 100
    small, large, larger = (with_batch(n) for n in (part // 2, 4 * part, 400 * part))
    for memory in (needed_bytes, lambda config: estimate(config, reviews).memory_bytes):
        few, many, more = map(memory, (small, large, larger))
        assert few < many and many == pytest.approx(more, rel=0.2)  # what is tried varies by what a batch is tried with
    assert needed_bytes(with_batch(400 * part, "cuda")) > 10 * needed_bytes(with_batch(part, "cuda"))
