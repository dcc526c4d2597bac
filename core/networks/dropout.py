"""Dropout whose random numbers cost little on a CPU."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


class Dropout(nn.Module):
    """Zeroes each element with probability p in training and scales the others, so that the mean stays (JMLR 15:1929)."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """The same in evaluation; in training another mask at each call."""
        if not self.training or self.p == 0:
            return x
        return F.dropout(x, self.p) if x.is_cuda else dropout_by_bytes(x, self.p)

    def extra_repr(self) -> str:
        """What `print(module)` shows."""
        return f"p={self.p}"


def dropout_by_bytes(x: Float[Tensor, "*shape"], p: float) -> Float[Tensor, "*shape"]:
    """Dropout with p rounded to a 256th.

    PyTorch draws one number for each element on one thread, which took 40 % of a training step; here one 64-bit draw
    serves eight elements, a byte each.
    """
    threshold = round(p * 256)
    draws = torch.empty(-(-x.numel() // 8), dtype=torch.int64, device=x.device).random_(-(2**63), None)
    kept = draws.view(torch.uint8)[: x.numel()].view(x.shape) >= threshold
    return (x * kept.to(x.dtype)).mul_(256 / (256 - threshold))  # not the mask: in bfloat16 it cannot hold the factor
