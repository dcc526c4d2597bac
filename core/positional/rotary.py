"""Queries and keys turned by their places."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from core.config import TransformerArchitecture
from core.positional.base import PositionalEncoding
from core.positional.sinusoidal import sines


class Rotary(PositionalEncoding):
    """Each pair (x_2i, x_2i+1) of a head is turned by p / 10000^(2i/K), p its token's place (arXiv:2104.09864); of any length.

    The product of a query and a key then depends on places through their difference alone.
    """

    def __init__(self, architecture: TransformerArchitecture) -> None:
        super().__init__(architecture)
        self.d_head = architecture.d_model // architecture.n_heads

    def codes(self, positions: Int[Tensor, "#B T"], end: int) -> Float[Tensor, "#B T K"]:
        """Sine and cosine of each place's angles, in float32."""
        return sines(positions, end, self.d_head)

    def rotate(self, q_or_k: Float[Tensor, "B H T K"], codes: Float[Tensor, "#B T K"]) -> Float[Tensor, "B H T K"]:
        """Queries or keys turned, in float32."""
        sin, cos = codes[:, None].unflatten(-1, (-1, 2)).unbind(-1)
        x, y = q_or_k.float().unflatten(-1, (-1, 2)).unbind(-1)
        return torch.stack((x * cos - y * sin, x * sin + y * cos), dim=-1).flatten(-2).to(q_or_k.dtype)
