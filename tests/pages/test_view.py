from dataclasses import replace

import numpy as np
import pytest

from core.inspection.parts import word_parts
from core.records import AttentionMap, Prediction, Reading
from ui.view import View


def view(weights: np.ndarray, layer: int | None, head: int | None) -> View:
    n = weights.shape[-1]
    attention = AttentionMap(
        tokens=("a",) * n, spans=tuple((2 * i, 2 * i + 1) for i in range(n)), weights=weights.astype(np.float32)
    )
    answer = Prediction(label="x", probabilities={"x": 1.0}, logits=(0.0,), tokens_read=n, tokens_left_out=0)
    reading = Reading(text="a " * n, prediction=answer, windows=(attention,), read=((0, 2 * n),), training_mode=False)
    parts = word_parts(reading.text, attention)
    return View(model="m", kind="encoder", reading=reading, attention=attention, layer=layer, head=head, parts=parts)


HEADS = np.array([[[[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.3, 0.7]]]])  # one layer, two heads


@pytest.mark.parametrize(
    ("head", "weights", "received"),
    [
        (0, [[0.9, 0.1], [0.2, 0.8]], [0.55, 0.45]),
        (1, [[0.5, 0.5], [0.3, 0.7]], [0.4, 0.6]),
        (None, [[0.7, 0.3], [0.25, 0.75]], [0.475, 0.525]),
    ],
)
def test_a_head_or_the_average_of_all_by_hand(head, weights, received):
    shown = view(HEADS, 0, head)
    np.testing.assert_allclose(shown.weights, weights, rtol=1e-6)
    np.testing.assert_allclose(shown.shares, received, rtol=1e-6)


def test_a_word_has_its_row_and_its_column():
    shown = view(HEADS, 0, 0)
    np.testing.assert_allclose(replace(shown, word=1).shares, [0.2, 0.8], rtol=1e-6)
    np.testing.assert_allclose(replace(shown, word=1, looked_at=True).shares, [0.1, 0.8], rtol=1e-6)


def test_heads_share_the_range_of_the_largest():
    assert view(HEADS, 0, 0).ceiling == view(HEADS, 0, 1).ceiling == np.float32(0.9)


def test_an_average_has_its_own_range_and_an_even_one_no_strong_colour():
    spread = np.full((2, 2, 100, 100), 0.01)
    assert view(spread, None, None).ceiling == pytest.approx(0.08)
    spread[:, :, 0] = np.eye(100)[7]
    assert view(spread, None, None).ceiling == 1
    assert view(np.ones((2, 2, 1, 1)), None, None).ceiling == 1


@pytest.mark.parametrize(
    ("layer", "head", "title"),
    [
        (0, 2, "layer 1, head 3"),
        (1, None, "layer 2, all heads averaged"),
        (None, None, "all layers and heads averaged"),
    ],
)
def test_layers_and_heads_count_from_one_for_people(layer, head, title):
    assert view(np.full((2, 3, 4, 4), 0.25), layer, head).title == title
