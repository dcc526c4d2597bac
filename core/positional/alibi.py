"""A penalty for distance instead of a code for each place."""

import functools
import math

import torch
from jaxtyping import Float
from torch import Tensor

from core.attention.bias import AlibiBias
from core.config import TransformerArchitecture
from core.positional.base import PositionalEncoding


class Alibi(PositionalEncoding):
    """Attention logits lose slope * |i - j|, each head with its own slope (arXiv:2108.12409); of any length."""

    def __init__(self, architecture: TransformerArchitecture) -> None:
        super().__init__(architecture)
        self.n_heads = architecture.n_heads

    def bias(self, device: torch.device) -> AlibiBias:
        """The penalty, in both directions: an encoder looks ahead, too."""
        return AlibiBias(slopes(self.n_heads, device))


@functools.lru_cache(maxsize=8)
def slopes(n_heads: int, device: torch.device) -> Float[Tensor, "H"]:
    """2^(-8h/n) for h = 1..n where n is a power of two; else those of the next lower power, and every other one of the next.

    So the authors' code has it: github.com/ofirpress/attention_with_linear_biases.
    """
    n = 1 << int(math.log2(n_heads))
    powers = [-8 * h / n for h in range(1, n + 1)] + [-4 * h / n for h in range(1, 2 * n, 2)]
    return torch.tensor([2**power for power in powers[:n_heads]], dtype=torch.float32, device=device)
