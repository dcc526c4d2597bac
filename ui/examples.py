"""Five reviews to begin with, chosen by rule from reviews that no shipped model was trained on."""

import re

from core.data.reviews import Reviews

NAMES = ("Positive", "Negative", "Mixed", "Short", "Long")

_CONTRAST = re.compile(r"\b(but|though|although|however|yet|despite)\b", re.IGNORECASE)


def choose(test: Reviews) -> dict[str, str]:
    """A text for each of `NAMES`: the first of its label with 300 characters or more, the one of 300 to 900 with the most
    turns ("but", "though") for its length, the shortest and the longest."""
    by_length = sorted(test.texts, key=lambda text: (len(text), text))
    label_of = dict(zip(test.texts, (test.label_names[label] for label in test.labels), strict=True))
    paragraphs = [text for text in by_length if 300 <= len(text) <= 900]
    return {
        "Positive": next(text for text in paragraphs if label_of[text] == "positive"),
        "Negative": next(text for text in paragraphs if label_of[text] == "negative"),
        "Mixed": max(paragraphs, key=lambda text: len(_CONTRAST.findall(text)) / len(text)),
        "Short": by_length[0],
        "Long": by_length[-1],
    }
