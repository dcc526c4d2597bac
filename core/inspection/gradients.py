"""Which tokens the log-odds of the predicted class would move with: gradients at the embeddings, by Captum."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from captum.attr import InputXGradient, IntegratedGradients
from jaxtyping import Float, Int
from torch import Tensor, nn

from core.inspection.subject import Subject, log_odds, replica, special_id
from core.inspection.words import ADDED

MOST_GAP = 0.1
"""Of the sum of integrated gradients to what it should be, as a share of it; steps are doubled until it is smaller."""
FEWEST_STEPS, MOST_STEPS = 32, 512
TOKENS_AT_ONCE = 4096
"""In the steps that are computed together: memory then does not grow with them."""


@dataclass(frozen=True, kw_only=True)
class Integrated:
    """Integrated gradients of one review."""

    values: Float[np.ndarray, "T"]
    gap: float
    """Between the sum of the values and f(review) - f(baseline), as a share of the latter."""
    steps: int


class OfEmbeddings:
    """The log-odds of the predicted class as a function of the embeddings of a review's tokens.

    A replica is asked, so that the hook that puts embeddings in is seen by nobody else. Its LSTMs are in training mode, in
    which alone cuDNN keeps what its backward pass needs; they have no dropout, so that nothing else changes.
    """

    def __init__(self, subject: Subject) -> None:
        self.network: Any = replica(subject.model.network)
        for module in self.network.modules():
            if isinstance(module, nn.LSTM):
                module.train()
        self.embedding: nn.Module = self.network.get_input_embeddings()
        self.target = subject.target
        self.ids = self._tensor(subject.ids)
        pad = special_id(subject.model, "pad")
        self.nothing = self._tensor(np.where(subject.word_of == ADDED, subject.ids, pad))

    def __call__(self, x: Float[Tensor, "n T D"]) -> Float[Tensor, "n"]:
        """The log-odds of each of several variants."""
        with self.embedding.register_forward_hook(lambda *_: x):
            return log_odds(self.network(self.ids.expand(len(x), -1)).logits, self.target)

    def embedded(self) -> tuple[Float[Tensor, "1 T D"], Float[Tensor, "1 T D"]]:
        """The embeddings of the review and of its baseline: padding in the place of all that was typed."""
        return self.embedding(self.ids).detach(), self.embedding(self.nothing).detach()

    def _tensor(self, ids: Int[np.ndarray, "T"]) -> Int[Tensor, "1 T"]:
        return torch.from_numpy(ids).long()[None].to(next(self.network.parameters()).device)


def input_x_gradient(subject: Subject) -> Float[np.ndarray, "T"]:
    """Each token's embedding times the gradient there (arXiv:1605.01713): exact where the network is linear in it."""
    function = OfEmbeddings(subject)
    x, _ = function.embedded()
    return _of_tokens(InputXGradient(function).attribute(x.requires_grad_()))


def integrated(subject: Subject) -> Integrated:
    """Integrated gradients (arXiv:1703.01365), with as many steps as bring the gap under `MOST_GAP`, up to `MOST_STEPS`.

    An LSTM may never get there: along its path log-odds were seen to change by nine within 6e-8 of the way, which is what
    float32 can tell apart, and to be as steep in float64. Its values then rank words, and do not add up.
    """
    function = OfEmbeddings(subject)
    x, baseline = function.embedded()
    with torch.no_grad():
        expected = float(function(x) - function(baseline))
    method: Callable[..., Tensor] = IntegratedGradients(function).attribute
    at_once = max(1, TOKENS_AT_ONCE // x.shape[1])
    steps = FEWEST_STEPS
    while True:
        values = _of_tokens(method(x, baseline, n_steps=steps, internal_batch_size=at_once))
        gap = float(abs(values.sum() - expected) / max(abs(expected), np.finfo(np.float32).eps))
        if gap < MOST_GAP or steps >= MOST_STEPS:
            return Integrated(values=values, gap=gap, steps=steps)
        steps *= 2


def _of_tokens(attributed: Float[Tensor, "1 T D"]) -> Float[np.ndarray, "T"]:
    return attributed.detach()[0].sum(-1).double().cpu().numpy()
