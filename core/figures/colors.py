"""The colours of all figures, each legible on the light and on the dark theme: a figure need not know where it stands."""

import numpy as np

INK = (217, 96, 15)
"""Red, green and blue of attention: more of it is more attention, none is the page's own background."""

AGAINST = (30, 110, 190)
"""The same of what speaks against something, where `INK` is of what speaks for it: told apart by colour-blind eyes, too."""

CATEGORICAL = ("#1f8aa3", "#9b6bd0", "#5a8f3c", "#c2497a", "#a07a1c")
"""For models beside one another."""

SYMBOLS = ("circle", "diamond", "square", "triangle-up", "star")
"""The same for who sees no colours."""


def opacity(share: float | np.ndarray) -> np.ndarray | np.floating:
    """Opacity of the ink for a weight that is `share` of the largest: its square root, since most weights are small."""
    return np.sqrt(share)


def ink(alpha: float, color: tuple[int, int, int] = INK) -> str:
    """The ink at one opacity, as CSS and Plotly write colours."""
    red, green, blue = color
    return f"rgba({red},{green},{blue},{alpha:.3f})"


SEQUENTIAL = [[(step / 16) ** 2, ink(step / 16)] for step in range(17)]
"""Plotly's colour scale from no weight to the largest, following `opacity`: its stops are dense where a root is steep."""

DIVERGING = [[(1 - (step / 16) ** 2) / 2, ink(step / 16, AGAINST)] for step in range(16, 0, -1)]
DIVERGING += [[(1 + place) / 2, color] for place, color in SEQUENTIAL]
"""From the most against to the most for: nothing is in the middle, and shows the page's own background."""
