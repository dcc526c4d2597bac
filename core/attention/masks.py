"""Who may attend to whom, independent of the kernel that has to respect it."""

from dataclasses import dataclass

from jaxtyping import Bool
from torch import Tensor


@dataclass(frozen=True)
class AttentionMask:
    """Which keys a query may attend to; each backend renders it as its kernel wants it. True = may attend."""

    token_mask: Bool[Tensor, "B T"] | None = None
    """True on real tokens; None when there is no padding."""

    def dense(self) -> Bool[Tensor, "B 1 1 T"] | None:
        """The mask as it broadcasts over (B, H, Q, T); None when nothing is hidden."""
        return None if self.token_mask is None else without_empty_rows(self.token_mask)[:, None, None, :]


def without_empty_rows(token_mask: Bool[Tensor, "B T"]) -> Bool[Tensor, "B T"]:
    """The same, but all True for a review without one real token: the softmax of nothing is NaN, and travels through V."""
    return token_mask | ~token_mask.any(-1, keepdim=True)
