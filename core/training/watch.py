"""What training shows beside the loss."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from core.networks.blocks import SelfAttention

REVIEWS = 4  # of a batch: their logits cost little beside a step, and one that explodes does so in every review


class LargestLogit:
    """The largest absolute attention logit of the forward passes that are watched; None before one with self-attention."""

    def __init__(self) -> None:
        self.value: float | None = None

    @contextmanager
    def watching(self, network: nn.Module) -> Iterator[None]:
        """Looks at every self-attention of `network` while the block runs. Neither numbers nor gradients change."""
        self.value = None
        attentions = [module for module in network.modules() if isinstance(module, SelfAttention)]
        # after the module has run: under autocast, weights first cast here would be kept without their gradient
        hooks = [attention.register_forward_hook(self._look) for attention in attentions]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    @torch.no_grad()
    def _look(self, attention: SelfAttention, context: tuple[Any, ...], output: Any) -> None:
        x, positions, mask, positional = context[:4]
        token_mask = None if mask.token_mask is None else mask.token_mask[:REVIEWS]
        logits = attention.logits(x[:REVIEWS], positions[:REVIEWS], replace(mask, token_mask=token_mask), positional)
        if token_mask is not None:  # what padding asks is no concern of a review
            logits = logits.masked_fill(~token_mask[:, None, :, None], 0.0)
        self.value = max(self.value or 0.0, float(logits.abs().max()))


def non_finite(network: nn.Module) -> int:
    """Numbers of the gradient that are infinite or not a number."""
    gradients = (parameter.grad for parameter in network.parameters() if parameter.grad is not None)
    return sum(int((~gradient.isfinite()).sum()) for gradient in gradients)
