"""Attention once more, in float64, plain and with nothing of the product: what every kernel is held against."""

import functools
import math
from dataclasses import dataclass

import torch
from torch import Tensor

LENGTHS = (1, 2, 63, 64, 65, 127, 128, 129, 512, 1025)
HEADS = (1, 3, 6, 8)
LONG = 500
"""From so many tokens on, one head is enough."""
D_HEAD = 8
MASKS = {  # causal, window, n_global, packed
    "all": (False, None, 0, False),
    "causal": (True, None, 0, False),
    "window": (False, 3, 0, False),
    "window and global": (False, 2, 2, False),
    "packed": (False, None, 0, True),
}
POSITIONS = ("none", "rotary", "alibi")
"""Those that act inside attention, and none of them."""


@dataclass(frozen=True)
class Case:
    """One attention to compute; padded reviews have padding on the right, and on the left."""

    mask: str
    position: str
    padded: bool
    length: int
    heads: int = 1

    @property
    def real(self) -> Tensor:
        """(B, T), True on real tokens."""
        n = self.length
        if not self.padded:
            return torch.ones(1 if MASKS[self.mask][3] else 2, n, dtype=torch.bool)
        place = torch.arange(n)
        return torch.stack([place < max(1, 2 * n // 3), place >= n // 2])

    @property
    def starts(self) -> list[int]:
        """Where packed reviews begin; one of them is a single token."""
        return sorted({0, 1, self.length // 3, self.length // 2}) if MASKS[self.mask][3] and self.length > 2 else [0]

    @property
    def places(self) -> Tensor:
        """(B, T), each token's place in its review."""
        begins = torch.tensor(self.starts)
        counted = torch.arange(self.length) - begins[torch.searchsorted(begins, torch.arange(self.length), right=True) - 1]
        return (self.real.cumsum(-1) - 1).clamp(min=0) if self.padded else counted.expand(len(self.real), -1)


def cases(mask: str, position: str, padded: bool) -> list[Case]:
    """One for each length, with every number of heads."""
    turn = list(MASKS).index(mask)
    return [
        Case(mask, position, padded, length, 1 if length > LONG else HEADS[(turn + i) % len(HEADS)])
        for i, length in enumerate(LENGTHS)
    ]


@functools.cache
def drawn(case: Case) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """q, k, v and the gradient from above, the same in float32, bfloat16 and float16: 64ths below 4. None asks of padding."""
    generator = torch.Generator().manual_seed(case.length)
    shape = (len(case.real), case.heads, case.length, D_HEAD)
    q, k, v, above = ((64 * torch.randn(shape, generator=generator)).round().clamp(-255, 255) / 64 for _ in range(4))
    return q, k, v, above * case.real[:, None, :, None]


@functools.cache
def answer(case: Case) -> tuple[Tensor, ...]:
    """The output and the gradients of q, k and v, in float64."""
    *inputs, above = (x.double() for x in drawn(case))
    q, k, v = (x.requires_grad_() for x in inputs)
    turn = turned if case.position == "rotary" else lambda x, places: x
    logits = torch.einsum("bhqd,bhtd->bhqt", turn(q, case.places), turn(k, case.places)) / math.sqrt(D_HEAD)
    if case.position == "alibi":
        distance = (torch.arange(case.length)[:, None] - torch.arange(case.length)).abs()
        logits = logits - torch.tensor(published_slopes(case.heads), dtype=torch.double)[:, None, None] * distance
    hidden = ~allowed(case)[:, None]
    powers = (logits - logits.masked_fill(hidden, -math.inf).amax(-1, keepdim=True)).exp().masked_fill(hidden, 0.0)
    out = torch.einsum("bhqt,bhtd->bhqd", powers / powers.sum(-1, keepdim=True), v)
    return out.detach(), *torch.autograd.grad(out, (q, k, v), above)


def allowed(case: Case) -> Tensor:
    """(B, T, T), whether a query sees a key. Padding sees itself, so that there is an answer; nobody asks for it."""
    causal, window, n_global, _ = MASKS[case.mask]
    i, j = torch.arange(case.length)[:, None], torch.arange(case.length)[None]
    seen = case.real[:, None, :].expand(-1, case.length, -1)
    if causal:
        seen = seen & (j <= i)
    if window is not None:
        leading = case.real & (case.places < n_global)
        seen = seen & (((i - j).abs() <= window) | leading[:, :, None] | leading[:, None, :])
    review = sum((torch.arange(case.length) >= start).long() for start in case.starts)
    return (seen & (review[:, None] == review[None])) | (i == j)


def turned(x: Tensor, places: Tensor) -> Tensor:
    """Rotary positions as a product of complex numbers (arXiv:2104.09864, equation 12)."""
    angles = places[:, None, :, None] * 10_000 ** (-torch.arange(0, D_HEAD, 2, dtype=torch.double) / D_HEAD)
    return torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (-1, 2))) * torch.exp(1j * angles)).flatten(-2)


def published_slopes(n: int) -> list[float]:
    """`get_slopes` of the code to arXiv:2108.12409."""
    if math.log2(n).is_integer():
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**i for i in range(n)]
    closest = 2 ** math.floor(math.log2(n))
    return published_slopes(closest) + published_slopes(2 * closest)[0::2][: n - closest]
