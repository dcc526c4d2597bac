"""What a page shows of a reading: one window of it, and one head or several averaged."""

from dataclasses import dataclass

import numpy as np

from core.figures.labels import token_labels
from core.records import AttentionMap, Reading

EVEN = 8


@dataclass(frozen=True, kw_only=True)
class View:
    """A reading with the choices made on it; layer and head count from 0, None averages all of them."""

    model: str
    kind: str
    reading: Reading
    attention: AttentionMap
    """The window in view."""
    layer: int | None
    head: int | None

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
    def received(self) -> np.ndarray:
        """(T,) attention that each token receives in this view."""
        return self.attention.received(self.layer, self.head)

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
