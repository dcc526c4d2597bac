"""Attention through several layers, and attention weighted by what it takes: two corrections of the bare weights."""

import re
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from core.inspection.subject import Subject, replica

VALUES = re.compile(r"\.(attention\.qkv|self\.value|v_lin|Wqkv)$")
"""Name of the projection whose last D components are the values, in the lab's networks and in those of others."""
OUTPUTS = re.compile(r"\.(attention\.out|attention\.output\.dense|out_lin|attn\.Wo)$")
"""Of the one that the heads' results go through."""


def rollout(weights: Float[np.ndarray, "L H T T"], *, residual: bool = True) -> Float[np.ndarray, "T T"]:
    """How much of each token's last state comes from each input token (attention rollout, arXiv:2005.00928).

    The product A_L ... A_1 of the layers' weights, averaged over heads; with a residual sum around attention each layer is
    half its weights and half the token itself. Rows sum to 1.
    """
    identity = np.eye(weights.shape[-1])
    through = identity
    for layer in weights.mean(1, dtype=np.float64):
        through = (layer + identity) / 2 @ through if residual else layer @ through
    return through


def weighted_by_values(
    weights: Float[np.ndarray, "L H Q T"], norms: Float[np.ndarray, "L H T"]
) -> Float[np.ndarray, "L H Q T"]:
    """Weights times the lengths of the vectors that they weigh (arXiv:2004.10102): a weight on almost nothing is nothing."""
    return weights * norms[:, :, None, :]


@torch.no_grad()
def value_norms(subject: Subject) -> Float[np.ndarray, "L H T"]:
    """Of each head, the length of what a token gives to those that attend to it: its value, through the output projection.

    They are heard in one forward pass through a replica of the network. ValueError for a network without self-attention, and
    for one whose heads are blocks of whole tokens by mistake.
    """
    network, heads = replica(subject.model.network), subject.reading.windows[0].weights.shape[1]
    named = dict(network.named_modules())
    values = [module for name, module in named.items() if VALUES.search(name)]
    outputs = [module for name, module in named.items() if OUTPUTS.search(name)]
    if not values or getattr(network.config, "mistake", "none") == "reshape_without_transpose":
        raise ValueError(f"{subject.model.name}: expected self-attention, whose heads have values of their own for each token")
    heard: list[Tensor] = []
    for module, output in zip(values, outputs, strict=True):
        module.register_forward_hook(partial(_hear, output=output, n_heads=heads, heard=heard))
    network(torch.from_numpy(subject.ids).long()[None])
    return torch.stack(heard).numpy()


def _hear(module: nn.Module, args: Any, result: Tensor, *, output: Any, n_heads: int, heard: list[Tensor]) -> None:
    d_model = output.in_features
    v = result[0, :, -d_model:].unflatten(-1, (n_heads, -1)).transpose(0, 1)
    through = output.weight.unflatten(-1, (n_heads, -1)).permute(1, 2, 0)
    heard.append(torch.linalg.vector_norm(v @ through, dim=-1))


def pooled(rows: Float[np.ndarray, "Q T"], *, first: bool) -> Float[np.ndarray, "T"]:
    """What a review's vector takes from each token, where it is the first token's state, or else made of all alike."""
    return rows[0] if first else rows.mean(0)
