"""Fixed sines and cosines."""

import functools
import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from core.positional.base import PositionalEncoding


class Sinusoidal(PositionalEncoding):
    """PE(p, 2i) = sin(p / 10000^(2i/D)), PE(p, 2i+1) = cos of the same (arXiv:1706.03762, section 3.5); of any length."""

    def codes(self, positions: Int[Tensor, "#B T"], end: int) -> Float[Tensor, "#B T D"]:
        """PE of each place, in float32."""
        return sines(positions, end, self.d_model)

    def embed(self, x: Float[Tensor, "B T D"], codes: Float[Tensor, "#B T D"]) -> Float[Tensor, "B T D"]:
        """Adds the code of each token's place."""
        return x + codes.to(x.dtype)


def sines(positions: Int[Tensor, "#B T"], end: int, d_model: int) -> Float[Tensor, "#B T D"]:
    """PE of each place, all below `end`, in float32."""
    length = 1 << (end - 1).bit_length()  # few different tables
    return table(length, d_model, positions.device)[positions]


@functools.lru_cache(maxsize=8)
def table(length: int, d_model: int, device: torch.device) -> Float[Tensor, "T D"]:
    """The codes of the first `length` places, in float32."""
    place = torch.arange(length, dtype=torch.float64)[:, None]
    angle = place * torch.exp(torch.arange(0, d_model, 2, dtype=torch.float64) * (-math.log(1e4) / d_model))
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1).to(device, torch.float32)
