"""One trained vector for each place."""

from jaxtyping import Float, Int
from torch import Tensor, nn

from core.config import TransformerArchitecture
from core.positional.base import PositionalEncoding


class Learned(PositionalEncoding):
    """A table of max_len trained vectors (arXiv:1810.04805). A longer text is a ValueError: there is no vector for it."""

    def __init__(self, architecture: TransformerArchitecture) -> None:
        super().__init__(architecture)
        self.table = nn.Embedding(self.max_len, self.d_model)
        nn.init.normal_(self.table.weight, std=0.02)  # small beside the words, which a network has to learn first

    def codes(self, positions: Int[Tensor, "#B T"], end: int) -> Int[Tensor, "#B T"]:
        """The places themselves. ValueError for one without a vector."""
        if end > self.max_len and (length := int(positions.max()) + 1) > self.max_len:
            raise ValueError(
                f"got {length} tokens, expected at most max_len {self.max_len}: learned positions end there; "
                "cut the text, or choose sinusoidal, rotary or alibi positions, or none"
            )
        return positions

    def embed(self, x: Float[Tensor, "B T D"], codes: Int[Tensor, "#B T"]) -> Float[Tensor, "B T D"]:
        """Adds the vector of each token's place."""
        return x + self.table(codes)
