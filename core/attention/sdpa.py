"""PyTorch's fused attention: the best kernel that can, or one kernel by name."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from threading import Lock

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from core.attention.bias import Bias
from core.attention.masks import AttentionMask
from core.attention.refusal import refuse_impossible

# Left to itself, PyTorch 2.11 to 2.13 may pick cuDNN on Hopper, which is wrong with masks (pytorch#196678, #191612).
KERNELS = (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH)
_CHOOSING = Lock()


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
    with _chosen(*KERNELS) if q.is_cuda else nullcontext():
        return _attended(q, k, v, mask, bias, scale, dropout_p), None


def _only(name: str, kernel: SDPBackend) -> Callable[..., tuple[Tensor, None]]:
    """`attend` by this kernel or not at all."""

    def attend_by_one(
        q: Float[Tensor, "B H Q K"],
        k: Float[Tensor, "B H T K"],
        v: Float[Tensor, "B H T K"],
        mask: AttentionMask,
        bias: Bias | None = None,
        scale: float | None = None,
        dropout_p: float = 0.0,
    ) -> tuple[Float[Tensor, "B H Q K"], None]:
        refuse_impossible(name, q, k, v, mask, bias, dropout_p)
        with _chosen(kernel):
            return _attended(q, k, v, mask, bias, scale, dropout_p), None

    return attend_by_one


flash = _only("sdpa-flash", SDPBackend.FLASH_ATTENTION)
efficient = _only("sdpa-efficient", SDPBackend.EFFICIENT_ATTENTION)
math = _only("sdpa-math", SDPBackend.MATH)
cudnn = _only("cudnn", SDPBackend.CUDNN_ATTENTION)


@contextmanager
def _chosen(*kernels: SDPBackend) -> Iterator[None]:
    """These kernels alone, in this order: one thread at a time, since PyTorch keeps the choice for the whole process."""
    with _CHOOSING, sdpa_kernel(list(kernels), set_priority=True):
        yield


def _attended(
    q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, bias: Bias | None, scale: float | None, dropout_p: float
) -> Tensor:
    sizes = q.shape[-2], k.shape[-2]
    # PyTorch takes fewer queries for the first ones
    is_causal = bias is None and sizes[0] == sizes[1] and mask.among(*sizes).by_order_alone
    rendered = None if is_causal else _rendered(mask, bias, q, k)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=rendered, dropout_p=dropout_p, is_causal=is_causal, scale=scale)


def _rendered(mask: AttentionMask, bias: Bias | None, q: Tensor, k: Tensor) -> Tensor | None:
    allowed = mask.dense(q, k)
    if bias is None:
        return allowed
    dense = bias.dense(q, k)[None].to(q.dtype)  # a float32 mask beside half-precision queries is misread by some kernels
    return dense if allowed is None else dense.masked_fill(~allowed, float("-inf"))
