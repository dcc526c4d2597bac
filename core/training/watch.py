"""What training shows beside the loss."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from core.attention.masks import AttentionMask
from core.networks.blocks import SelfAttention

REVIEWS = 4  # of a batch: their logits cost little beside a step, and one that explodes does so in every review


class LargestLogit:
    """The largest absolute attention logit of the forward passes that are watched; None before one with self-attention."""

    def __init__(self) -> None:
        self.value: float | None = None
        self.seen: list[Tensor] = []
        """Of each layer, on the device."""

    @contextmanager
    def watching(self, network: nn.Module) -> Iterator[None]:
        """Looks at every self-attention of `network` while the block runs. Neither numbers nor gradients change."""
        self.value, self.seen = None, []
        attentions = [module for module in network.modules() if isinstance(module, SelfAttention)]
        # after the module has run: under autocast, weights first cast here would be kept without their gradient
        hooks = [attention.register_forward_hook(self._look) for attention in attentions]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()
        if self.seen:
            self.value = float(torch.stack(self.seen).max())

    @torch.no_grad()
    def _look(self, attention: SelfAttention, context: tuple[Any, ...], output: Any) -> None:
        x, codes, mask, positional = context[:4]
        x, codes, mask = _first(x, codes, mask)
        logits = attention.logits(x, codes, mask, positional)
        if mask.token_mask is not None:  # what padding asks is no concern of a review
            logits = logits.masked_fill(~mask.token_mask[:, None, :, None], 0.0)
        self.seen.append(logits.abs().max())


def _first(x: Tensor, codes: Tensor, mask: AttentionMask) -> tuple[Tensor, Tensor, AttentionMask]:
    """Of a batch, padded or packed, its first reviews."""
    if mask.segments is None:
        token_mask = None if mask.token_mask is None else mask.token_mask[:REVIEWS]
        return x[:REVIEWS], codes[:REVIEWS], replace(mask, token_mask=token_mask)
    segments = mask.segments[: REVIEWS + 1]
    end = int(segments[-1])
    return x[:, :end], codes[:, :end], replace(mask, segments=segments)


def non_finite(network: nn.Module) -> int:
    """Numbers of the gradient that are infinite or not a number."""
    gradients = (parameter.grad for parameter in network.parameters() if parameter.grad is not None)
    return sum(int((~gradient.isfinite()).sum()) for gradient in gradients)
