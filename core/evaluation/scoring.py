"""Many reviews through one network."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from core.data.batches import collate, token_budget_batches

TOKENS_PER_BATCH = 4096  # activations of a small network then stay in a core's cache


@torch.no_grad()
def score(
    network: nn.Module, reviews: Sequence[Int[np.ndarray, "_"]], progress: Callable[[int], None] = lambda n: None
) -> Float[np.ndarray, "n C"]:
    """Float32 logits of each review (its ids, already cut), in evaluation mode, in the order given.

    `progress` hears how many reviews each batch had. The network's mode is what it was before, afterwards.
    """
    lengths = np.array([len(ids) for ids in reviews], dtype=np.int64)
    rows: list[tuple[np.ndarray, Tensor]] = []
    was_training = network.training
    network.eval()
    for indices in token_budget_batches(lengths, TOKENS_PER_BATCH):
        batch = collate([reviews[i] for i in indices])
        device = next(network.parameters()).device
        mask = None if batch.token_mask is None else batch.token_mask.to(device).long()
        rows.append((indices, network(batch.input_ids.to(device), mask).logits.float().cpu()))
        progress(len(indices))
    network.train(was_training)
    order = np.concatenate([indices for indices, _ in rows])
    logits = torch.cat([part for _, part in rows]).numpy()
    return logits[np.argsort(order)]
