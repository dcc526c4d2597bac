"""What a page shows of a reading: one window of it, and one head or several averaged."""

from dataclasses import dataclass

import numpy as np

from core.figures.labels import token_labels
from core.inspection.parts import Parts
from core.records import AttentionMap, Reading

EVEN = 8
EVERY_WORD = "all"
"""No word is called so: their labels begin with numbers."""


@dataclass(frozen=True, kw_only=True)
class View:
    """A reading with the choices made on it; layer, head and word count from 0, None averages all of them."""

    model: str
    kind: str
    reading: Reading
    attention: AttentionMap
    """The window in view."""
    layer: int | None
    head: int | None
    parts: Parts
    """The words of the window, and what nobody typed."""
    word: int | None = None
    """Index of the part in view; None for all of them, as always where words do not look at one another."""
    looked_at: bool = False
    """Whether what looks at that word is in view, and not what it looks at."""

    @property
    def title(self) -> str:
        """The heads in view, counted from 1."""
        if self.kind == "bilstm":
            return "the pooling's weights"
        if self.layer is None:
            return "all layers and heads averaged"
        return head_name(self.layer, self.head)

    @property
    def weights(self) -> np.ndarray:
        """(Q, T) of the heads in view."""
        return self.attention.averaged(self.layer, self.head)

    @property
    def between(self) -> np.ndarray:
        """(P, P) of the heads in view, from part to part; rows sum to 1."""
        return self.parts.between(self.weights)

    @property
    def shares(self) -> np.ndarray:
        """(P,) attention that each part receives, from the word in view or on average; or gives it, of its own."""
        if self.word is None:
            return self.parts.received(self.attention.received(self.layer, self.head))
        return self.between[:, self.word] if self.looked_at else self.between[self.word]

    @property
    def is_one_head(self) -> bool:
        """Whether nothing is averaged."""
        n_layers, n_heads = self.attention.weights.shape[:2]
        return (self.layer is not None or n_layers == 1) and (self.head is not None or n_heads == 1)

    @property
    def largest(self) -> float:
        """The largest weight of any head in any window: heads share one range of colours, so that they can be compared."""
        return max(float(window.weights.max()) for window in self.reading.windows)

    @property
    def ceiling(self) -> float:
        """The weight of the strongest colour: that of all heads for one head, its own largest for an average.

        An average that spreads its weight evenly has no strong colour: the range is `EVEN` even shares at least.
        """
        if self.is_one_head:
            return self.largest
        return max(float(self.weights.max()), min(1.0, EVEN / len(self.attention.tokens)))

    @property
    def can_choose(self) -> bool:
        """Whether there are several words that look at one another."""
        return self.kind != "bilstm" and len(self.parts) > 1

    @property
    def keys(self) -> list[str]:
        """A label for each token."""
        return token_labels(self.reading.text, self.attention)

    @property
    def queries(self) -> list[str]:
        """A label for each row: the tokens again, or the one query of a pooling."""
        return ["review"] if self.kind == "bilstm" else self.keys


def head_name(layer: int, head: int | None) -> str:
    """As people count."""
    return f"layer {layer + 1}, all heads averaged" if head is None else f"layer {layer + 1}, head {head + 1}"


def word_key(model: str) -> str:
    """Where the session holds the label of the word in view. The URL never does: it is typed text."""
    return f"inspect_word_{model}"
