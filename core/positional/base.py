"""Where a token stands enters at three doors; an encoding overrides the one it uses, and the encoder never asks which."""

from jaxtyping import Float, Int
from torch import Tensor, nn

from core.attention.bias import Bias
from core.config import TransformerArchitecture


class PositionalEncoding(nn.Module):
    """No positions at all: every door passes."""

    def __init__(self, architecture: TransformerArchitecture) -> None:
        super().__init__()
        self.d_model = architecture.d_model
        self.max_len = architecture.max_len

    def embed(self, x: Float[Tensor, "B T D"], positions: Int[Tensor, "#B T"]) -> Float[Tensor, "B T D"]:
        """Token embeddings with their places worked in."""
        return x

    def rotate(self, q_or_k: Float[Tensor, "B H T K"], positions: Int[Tensor, "#B T"]) -> Float[Tensor, "B H T K"]:
        """Queries or keys with their places worked in."""
        return q_or_k

    def bias(self) -> Bias | None:
        """What is added to attention logits; None for nothing."""
        return None
