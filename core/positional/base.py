"""Where a token stands enters at three doors; an encoding overrides the one it uses, and the encoder never asks which."""

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from core.attention.bias import Bias
from core.config import TransformerArchitecture


class PositionalEncoding(nn.Module):
    """No positions at all: every door passes."""

    def __init__(self, architecture: TransformerArchitecture) -> None:
        super().__init__()
        self.d_model = architecture.d_model
        self.max_len = architecture.max_len

    def codes(self, positions: Int[Tensor, "#B T"], end: int) -> Shaped[Tensor, "#B T *code"]:
        """What stands for places, all below `end`, at the first two doors: made once for all layers, without asking a GPU."""
        return positions

    def embed(self, x: Float[Tensor, "B T D"], codes: Shaped[Tensor, "#B T *code"]) -> Float[Tensor, "B T D"]:
        """Token embeddings with their places worked in."""
        return x

    def rotate(self, q_or_k: Float[Tensor, "B H T K"], codes: Shaped[Tensor, "#B T *code"]) -> Float[Tensor, "B H T K"]:
        """Queries or keys with their places worked in."""
        return q_or_k

    def bias(self, device: torch.device) -> Bias | None:
        """What is added to attention logits there; None for nothing."""
        return None
