"""Flash attention in plain PyTorch: the softmax tile by tile, so that no (Q, T) matrix is ever there.

To be read beside arXiv:2205.14135: `top` and `total` are a row's running maximum and sum (m and l there), S a tile of logits,
P of their exponentials, D a row's sum of dO * O. The loop over queries is the outer one, as in arXiv:2307.08691.
"""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from core.attention.bias import Bias
from core.attention.masks import AttentionMask
from core.attention.refusal import refuse_impossible

TILE = 256
"""Queries and keys of a tile."""
LOWEST = torch.finfo(torch.float32).min
"""Where a maximum starts: -inf less -inf would be no number."""


def attend(
    q: Float[Tensor, "B H Q K"],
    k: Float[Tensor, "B H T K"],
    v: Float[Tensor, "B H T K"],
    mask: AttentionMask,
    bias: Bias | None = None,
    scale: float | None = None,
    dropout_p: float = 0.0,
) -> tuple[Float[Tensor, "B H Q K"], None]:
    """The same as `eager.attend` without the weights; memory grows with T, in backward, too, which computes them again.

    Sums and softmax are float32. ValueError for dropout: the backward pass would have to draw the same numbers again.
    """
    refuse_impossible("chunked", q, k, v, mask, bias, dropout_p)
    factor = q.shape[-1] ** -0.5 if scale is None else scale
    logits = _Logits(factor, mask.tiles(q, k), None if bias is None else bias.tiles(q, k))
    return _Flash.apply(q, k, v, logits), None


@dataclass(frozen=True)
class _Logits:
    """What the softmax is taken of, one tile at a time."""

    scale: float
    allowed: Callable[[slice, slice], Tensor | None]
    bias: Callable[[slice, slice], Tensor] | None

    def tile(self, q: Tensor, k: Tensor, queries: slice, keys: slice) -> Float[Tensor, "B H q k"] | None:
        """q k^T * scale + bias, -inf where a query may not attend; None for a tile in which none may."""
        allowed = self.allowed(queries, keys)
        if allowed is not None and not allowed.any():
            return None
        logits = (q * self.scale) @ k.mT
        if self.bias is not None:
            logits += self.bias(queries, keys)
        return logits if allowed is None else logits.masked_fill_(~allowed, float("-inf"))


def _tiles(n: int) -> Iterator[slice]:
    return (slice(start, min(start + TILE, n)) for start in range(0, n, TILE))


def _as_written(step: Callable[..., Any]) -> Callable[..., Any]:
    """A step of `_Flash` in the number formats written there: under autocast the tiles would be half-precision, too."""

    @functools.wraps(step)
    def run(ctx: Any, x: Tensor, *others: Any) -> Any:
        with torch.autocast(x.device.type, enabled=False):
            return step(ctx, x, *others)

    return run


class _Flash(torch.autograd.Function):
    """Algorithm 1 of the paper, and Algorithm 4 for gradients; between them, of each row only O and log sum exp S are kept."""

    @staticmethod
    @_as_written
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, logits: _Logits) -> Tensor:
        out, log_sums = torch.empty_like(q), torch.empty(q.shape[:-1], dtype=torch.float32, device=q.device)
        for queries in _tiles(q.shape[-2]):
            q_i = q[..., queries, :].float()
            top = torch.full_like(q_i[..., :1], LOWEST)
            total, o = torch.zeros_like(top), torch.zeros_like(q_i)
            for keys in _tiles(k.shape[-2]):
                S = logits.tile(q_i, k[..., keys, :].float(), queries, keys)
                if S is None:
                    continue
                higher = torch.maximum(top, S.amax(-1, keepdim=True))
                P, shrunk = S.sub_(higher).exp_(), (top - higher).exp_()
                total.mul_(shrunk).add_(P.sum(-1, keepdim=True))
                o.mul_(shrunk).add_(P @ v[..., keys, :].float())
                top = higher
                del S, P  # else the next tile would be made beside this one
            out[..., queries, :] = o / total
            log_sums[..., queries] = (top + total.log()).squeeze(-1)
        ctx.save_for_backward(q, k, v, out, log_sums)
        ctx.logits = logits
        return out

    @staticmethod
    @once_differentiable
    @_as_written
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        q, k, v, out, log_sums = ctx.saved_tensors
        d_q, d_k, d_v = (torch.zeros(x.shape, dtype=torch.float32, device=x.device) for x in (q, k, v))
        for queries in _tiles(q.shape[-2]):
            q_i, dO = q[..., queries, :].float(), d_out[..., queries, :].float()
            D = (dO * out[..., queries, :]).sum(-1, keepdim=True)
            for keys in _tiles(k.shape[-2]):
                k_j, v_j = k[..., keys, :].float(), v[..., keys, :].float()
                S = ctx.logits.tile(q_i, k_j, queries, keys)
                if S is None:
                    continue
                P = S.sub_(log_sums[..., queries, None]).exp_()
                d_v[..., keys, :] += P.mT @ dO
                dS = (dO @ v_j.mT).sub_(D).mul_(P).mul_(ctx.logits.scale)
                d_q[..., queries, :] += dS @ k_j
                d_k[..., keys, :] += dS.mT @ q_i
                del S, P, dS
        return d_q.to(q.dtype), d_k.to(k.dtype), d_v.to(v.dtype), None
