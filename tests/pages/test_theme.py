"""Letters keep a contrast of at least 4.5 to 1 on every shade, as WCAG 2.2 asks of text."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

from core.figures.colors import CATEGORICAL, INK
from ui.panels import SMALL_PRINT
from ui.review_text import STRONGEST, UNREAD

THEME = tomllib.loads((Path(__file__).parents[2] / ".streamlit" / "config.toml").read_text())["theme"]


def rgb(color: str) -> np.ndarray:
    return np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)], dtype=float)


def over(front: np.ndarray, alpha: float, back: np.ndarray) -> np.ndarray:
    return alpha * front + (1 - alpha) * back


def luminance(color: np.ndarray) -> float:
    share = color / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one: np.ndarray, other: np.ndarray) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_of_black_and_white():
    assert contrast(rgb("#000000"), rgb("#ffffff")) == pytest.approx(21)


@pytest.fixture(params=["light", "dark"])
def theme(request):
    return {name: rgb(color) for name, color in THEME[request.param].items()}


def test_words_on_every_shade(theme):
    for alpha in np.linspace(0, STRONGEST, 10):
        assert contrast(theme["textColor"], over(np.array(INK, dtype=float), alpha, theme["backgroundColor"])) >= 4.5


def test_unread_words(theme):
    pale = over(theme["textColor"], UNREAD, theme["backgroundColor"])
    assert contrast(pale, theme["backgroundColor"]) >= 4.5
    assert contrast(pale, theme["textColor"]) >= 1.5  # and still told from what was read


def test_text_of_the_page(theme):
    for ground in ("backgroundColor", "secondaryBackgroundColor"):
        assert contrast(theme["textColor"], theme[ground]) >= 4.5
        assert contrast(theme["linkColor"], theme[ground]) >= 4.5
    assert contrast(rgb("#ffffff"), theme["primaryColor"]) >= 4.5  # buttons are written on in white


def test_captions(theme):
    pale = over(theme["textColor"], 0.6, theme["backgroundColor"])  # Streamlit's own opacity for them
    assert contrast(pale, theme["backgroundColor"]) >= 4.5


def test_small_print_of_figures():
    light = {name: rgb(color) for name, color in THEME["light"].items()}
    assert contrast(rgb(SMALL_PRINT), light["backgroundColor"]) >= 4.5


def test_marks_of_figures(theme):
    for color in CATEGORICAL:
        assert contrast(rgb(color), theme["backgroundColor"]) >= 3


def test_fonts_are_the_systems_own():
    assert "url" not in str(THEME) and "http" not in str(THEME)
