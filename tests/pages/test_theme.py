"""Letters keep a contrast of at least 4.5 to 1 on every shade, as WCAG 2.2 asks of text."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

from core.figures.colors import AGAINST, CATEGORICAL, INK
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


SEEN = {  # Machado, Oliveira and Fernandes 2009, severity 1: what is left of red, green and blue light
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def lab(light: np.ndarray) -> np.ndarray:
    """CIELAB of linear sRGB, in whose units 2.3 are just noticed."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = np.cbrt(to_xyz @ np.clip(light, 0, 1) / [0.9505, 1, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("eyes", SEEN)
@pytest.mark.parametrize("alpha", [0.25, 0.45, 1.0])
def test_for_and_against_are_told_apart_by_colour_blind_eyes(theme, eyes, alpha):
    seen = [over(np.array(color, dtype=float), alpha, theme["backgroundColor"]) / 255 for color in (INK, AGAINST)]
    one, other = (lab(np.array(SEEN[eyes]) @ color**2.2) for color in seen)
    assert np.linalg.norm(one - other) >= 10


def test_fonts_are_the_systems_own():
    assert "url" not in str(THEME) and "http" not in str(THEME)
