"""One vector for each review from those of its tokens, padded or packed."""

from collections.abc import Callable, Mapping

import torch
from jaxtyping import Float, Int
from torch import Tensor

from core.attention.masks import AttentionMask, without_empty_rows


def first(x: Float[Tensor, "B T D"], mask: AttentionMask) -> Float[Tensor, "n D"]:
    """The first real token."""
    if mask.segments is not None:
        return x[0, mask.segments[:-1]]
    if mask.token_mask is None:
        return x[:, 0]
    return x[torch.arange(len(x), device=x.device), mask.token_mask.int().argmax(-1)]


def mean(x: Float[Tensor, "B T D"], mask: AttentionMask) -> Float[Tensor, "n D"]:
    """The mean over real tokens, summed in float32."""
    if mask.segments is not None:
        return torch.segment_reduce(x[0].float(), "mean", offsets=mask.segments).to(x.dtype)
    if mask.token_mask is None:
        return x.mean(1, dtype=torch.float32).to(x.dtype)
    real = without_empty_rows(mask.token_mask)[..., None]
    return (torch.where(real, x, 0).sum(1, dtype=torch.float32) / real.sum(1)).to(x.dtype)


def largest(x: Float[Tensor, "B T D"], mask: AttentionMask) -> Float[Tensor, "n D"]:
    """The largest value of each component over real tokens."""
    if mask.segments is not None:
        return _largest_by_segment(x[0], mask.segments)
    if mask.token_mask is None:
        return x.amax(1)
    return x.masked_fill(~without_empty_rows(mask.token_mask)[..., None], torch.finfo(x.dtype).min).amax(1)


def _largest_by_segment(x: Float[Tensor, "total D"], ends: Int[Tensor, "n_cumulative"]) -> Float[Tensor, "n D"]:
    """Not `segment_reduce`: up to PyTorch 2.13 equal largest values share its gradient where that is positive alone."""
    lengths = ends.diff()
    review = torch.arange(len(lengths), device=x.device).repeat_interleave(lengths, output_size=len(x))
    lowest = x.new_full((len(lengths), x.shape[1]), float("-inf"))  # equal to no value, or it would take a share, too
    return lowest.scatter_reduce(0, review[:, None].expand_as(x), x, "amax")


Pooling = Callable[[Tensor, AttentionMask], Tensor]
POOLINGS: dict[str, Pooling] = {"cls": first, "mean": mean, "max": largest}


def pool(
    x: Float[Tensor, "B T D"], mask: AttentionMask, pooling: str, poolings: Mapping[str, Pooling] = POOLINGS
) -> Float[Tensor, "n P"]:
    """One vector for each review, from its real tokens alone (if it has any); P is D, or 2 D for "mean+max".

    `poolings` says what pools under each name.
    """
    return torch.cat([poolings[name](x, mask) for name in pooling.split("+")], dim=-1)
