"""PyTorch's fused attention."""

import contextlib

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from core.attention.bias import Bias
from core.attention.masks import AttentionMask

# Left to itself, PyTorch 2.11 to 2.13 may pick cuDNN on Hopper, which is wrong with masks (pytorch#196678, #191612).
KERNELS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


def attend(
    q: Float[Tensor, "B H Q K"],
    k: Float[Tensor, "B H T K"],
    v: Float[Tensor, "B H T K"],
    mask: AttentionMask,
    bias: Bias | None = None,
    scale: float | None = None,
    dropout_p: float = 0.0,
) -> tuple[Float[Tensor, "B H Q K"], None]:
    """The same as `eager.attend` without the weights; memory grows with T where a flash kernel takes it (arXiv:2205.14135)."""
    order = sdpa_kernel(KERNELS, set_priority=True) if q.is_cuda else contextlib.nullcontext()
    with order:
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=_rendered(mask, bias, q, k), dropout_p=dropout_p, scale=scale)
    return out, None


def _rendered(mask: AttentionMask, bias: Bias | None, q: Tensor, k: Tensor) -> Tensor | None:
    allowed = mask.dense(q, k)
    if bias is None:
        return allowed
    dense = bias.dense(q, k)[None].to(q.dtype)  # a float32 mask beside half-precision queries is misread by some kernels
    return dense if allowed is None else dense.masked_fill(~allowed, float("-inf"))
