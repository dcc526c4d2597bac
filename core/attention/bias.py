"""How much more or less a query attends to a key because of where they stand, before the softmax."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from core.attention.masks import places


class Bias(ABC):
    """A term added to attention logits. It is constant: no gradient flows into it."""

    @abstractmethod
    def at(self, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        """The term at indices that broadcast, for kernels that ask it pair by pair; places as of `masks.places`."""

    @abstractmethod
    def to(self, device: torch.device) -> "Bias":
        """The same on another device."""

    def dense(self, q: Float[Tensor, "B H Q K"], k: Float[Tensor, "B H T K"]) -> Float[Tensor, "H Q T"]:
        """The whole term in float32, for kernels that add a tensor. ValueError with more queries than keys."""
        return self.tiles(q, k)(slice(None), slice(None))

    def tiles(self, q: Float[Tensor, "B H Q K"], k: Float[Tensor, "B H T K"]) -> Callable[[slice, slice], Tensor]:
        """`dense` of some queries and keys alone, so that the whole is never there."""
        here, (query, key) = self.to(q.device), places(q, k)
        head = torch.arange(q.shape[1], device=q.device)[:, None, None]
        return lambda queries, keys: here.at(head, query[queries][None, :, None], key[keys][None, None, :])


@dataclass(frozen=True)
class AlibiBias(Bias):
    """-slope * |i - j|: what is far counts less, in both directions (arXiv:2108.12409)."""

    slopes: Float[Tensor, "H"]
    """One for each head, in float32."""

    def at(self, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        """-slopes[head] * |query - key|."""
        return -self.slopes[head] * (query - key).abs()

    def to(self, device: torch.device) -> "AlibiBias":
        """The same on another device."""
        return AlibiBias(self.slopes.to(device))
