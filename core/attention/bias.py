"""How much more or less a query attends to a key because of where they stand, before the softmax."""

from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor


@runtime_checkable
class Bias(Protocol):
    """A term added to attention logits; kernels that know a shorter form than the dense one may use it."""

    def dense(self, q: Float[Tensor, "B H Q K"], k: Float[Tensor, "B H T K"]) -> Float[Tensor, "#B #H Q T"]:
        """The whole term, for kernels that add a tensor."""
        ...
