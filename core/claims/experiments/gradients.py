"""How much of a state's gradient reaches words at a distance: ||d state / d input|| by how many tokens lie between."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from core.claims.experiments.learning import Learned, held_out
from core.claims.figures import DISTANCES, Figures, Found, mean, of_loss, of_state
from core.networks.bilstm import BothDirections
from core.networks.blocks import EncoderLayer

REVIEWS = 40
"""Of each seed, each as long as the network reads."""


def by_distance(networks: Mapping[str, Sequence[Learned]], reviews: int = REVIEWS) -> Figures:
    """For each kind of network, the mean over seeds and reviews, as a share of what is nearest.

    Of a state: the last layer's at the last token, and at the first, where a BiLSTM's way back ends. Of the loss: by distance
    from the end of the review.
    """
    figures: Found = {}
    for name, seeds in networks.items():
        found = [_shares(one, reviews) for one in seeds]
        for place, distance in enumerate(DISTANCES):
            figures[of_state(name, distance)] = mean([float(state[place]) for state, _ in found])
            figures[of_loss(name, distance)] = mean([float(loss[place]) for _, loss in found])
        figures["seeds"] = len(found)
    return figures


def _shares(one: Learned, reviews: int) -> tuple[np.ndarray, np.ndarray]:
    """Of states and of the loss, at each of `DISTANCES`."""
    texts, room = held_out(one), one.config.model.max_len
    chosen = [place for place, ids in enumerate(texts.ids) if len(ids) >= room][:reviews]
    ids = torch.stack([torch.from_numpy(np.array(texts.ids[place][:room])).long() for place in chosen])
    labels = torch.from_numpy(texts.labels[chosen])
    embedded, states, logits = _watched(one.network.get_submodule("network"), ids)
    loss = torch.nn.functional.cross_entropy(logits, labels, reduction="sum")
    (of_the_loss,) = torch.autograd.grad(loss, embedded, retain_graph=True)
    ways = torch.randn(states.shape[-1], generator=torch.Generator().manual_seed(0))
    ends = [torch.autograd.grad((states[:, at] @ ways).sum(), embedded, retain_graph=True)[0] for at in (-1, 0)]
    state = (_norms(ends[0]).flip(0) + _norms(ends[1])) / 2
    return _at(state), _at(_norms(of_the_loss).flip(0))


def _watched(network: nn.Module, ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The embedded tokens, the last layer's states, and the logits."""
    seen: dict[str, Tensor] = {}

    def keep_input(module: nn.Module, given: object, made: Tensor) -> Tensor:
        seen["embedded"] = made.detach().requires_grad_()
        return seen["embedded"]

    def keep_states(module: nn.Module, given: object, made: Tensor | tuple[Tensor, Tensor | None]) -> None:
        seen["states"] = made[0] if isinstance(made, tuple) else made

    last = [module for module in network.modules() if isinstance(module, EncoderLayer | BothDirections)][-1]
    hooks = [network.get_submodule("embedding").register_forward_hook(keep_input), last.register_forward_hook(keep_states)]
    try:
        logits = network(ids)[0]
    finally:
        for hook in hooks:
            hook.remove()
    return seen["embedded"], seen["states"], logits


def _norms(gradient: Tensor) -> Tensor:
    """(T,) of each token, averaged over reviews that weigh alike."""
    norms = gradient.norm(dim=-1)
    return (norms / norms.amax(-1, keepdim=True).clamp(min=1e-30)).mean(0)


def _at(shares: Tensor) -> np.ndarray:
    shares = shares / shares[0].clamp(min=1e-30)
    return np.array([float(shares[min(distance, len(shares) - 1)]) for distance in DISTANCES])
