"""Many reviews through one network."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import nn

from core.data.batches import collate, token_budget_batches

TOKENS_PER_BATCH = 4096  # activations of a small network then stay in a core's cache


@torch.no_grad()
def score(
    network: nn.Module, reviews: Sequence[Int[np.ndarray, "_"]], progress: Callable[[int], None] = lambda n: None, **asked: Any
) -> Float[np.ndarray, "n C"]:
    """Float32 logits of each review (its ids, already cut), in evaluation mode, in the order given.

    `progress` hears how many reviews each batch had, and the network's forward is given what else is `asked` of it, such as a
    `head_gain`. The network's mode is what it was before, afterwards.
    """
    was_training = network.training
    network.eval()
    try:
        rows = list(_rows(network, reviews, progress, asked))
    finally:
        network.train(was_training)
    order = np.concatenate([indices for indices, _ in rows])
    return np.concatenate([logits for _, logits in rows])[np.argsort(order)]


def _rows(
    network: nn.Module, reviews: Sequence[np.ndarray], progress: Callable[[int], None], asked: dict[str, Any]
) -> Iterator[tuple[Int[np.ndarray, "B"], Float[np.ndarray, "B C"]]]:
    """Batch by batch, which reviews it holds and their logits."""
    device = next(network.parameters()).device
    lengths = np.array([len(ids) for ids in reviews], dtype=np.int64)
    for indices in token_budget_batches(lengths, TOKENS_PER_BATCH):
        batch = collate([reviews[i] for i in indices])
        mask = None if batch.token_mask is None else batch.token_mask.to(device).long()
        logits = network(batch.input_ids.to(device), mask, **asked).logits.float().cpu()
        yield indices, logits.numpy()
        progress(len(indices))
