"""What a kernel cannot do is said before it is tried."""

import torch
from torch import Tensor

from core.attention.bias import Bias
from core.attention.masks import AttentionMask
from core.catalog import BACKENDS


def refuse_impossible(
    name: str, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, bias: Bias | None, dropout_p: float
) -> None:
    """ValueError, with the sentence of the catalogue, if the backend called `name` cannot do just this."""
    mask = mask.among(q.shape[-2], k.shape[-2])
    reason = BACKENDS[name].why_not(
        device=q.device.type,
        dtype=str(q.dtype).removeprefix("torch."),
        bias=bias is not None,
        padding=mask.token_mask is not None,
        places=mask.by_place,
        global_tokens=mask.n_global > 0,
        dropout=dropout_p > 0,
        gradients=torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v)),
    )
    if reason is not None:
        raise ValueError(f"backend {name!r}: {reason}")
