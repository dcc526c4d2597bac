"""Queries and keys turned by their places."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from core.positional.base import PositionalEncoding
from core.positional.sinusoidal import codes


class Rotary(PositionalEncoding):
    """Each pair (x_2i, x_2i+1) of a head is turned by p / 10000^(2i/K), p its token's place (arXiv:2104.09864); of any length.

    The product of a query and a key then depends on places through their difference alone.
    """

    def rotate(self, q_or_k: Float[Tensor, "B H T K"], positions: Int[Tensor, "#B T"]) -> Float[Tensor, "B H T K"]:
        """Queries or keys turned, in float32. ValueError for an odd d_head."""
        if q_or_k.shape[-1] % 2:
            raise ValueError(f"d_head: got {q_or_k.shape[-1]}, expected an even number: rotary positions turn pairs")
        sin, cos = codes(positions, q_or_k.shape[-1])[:, None].unflatten(-1, (-1, 2)).unbind(-1)
        x, y = q_or_k.float().unflatten(-1, (-1, 2)).unbind(-1)
        return torch.stack((x * cos - y * sin, x * sin + y * cos), dim=-1).flatten(-2).to(q_or_k.dtype)
