"""A bidirectional LSTM with attention pooling that classifies reviews. Imports torch alone."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from core.config import BiLSTMArchitecture
from core.networks.blocks import drop_tokens, refuse_no_batch, xavier_
from core.networks.dropout import Dropout


class BiLSTM(nn.Module):
    """Embedding, LSTM in both directions, states averaged by one attention query, classifier (Zhou et al. 2016, P16-2034)."""

    def __init__(self, architecture: BiLSTMArchitecture) -> None:
        super().__init__()
        self.architecture = architecture
        d_states = 2 * architecture.d_hidden
        self.embedding = nn.Embedding(architecture.vocab_size, architecture.d_embedding, padding_idx=0)
        self.embedding_dropout = Dropout(architecture.embedding_dropout)
        self.layers = nn.ModuleList(
            BothDirections(d_states if index else architecture.d_embedding, architecture.d_hidden)
            for index in range(architecture.n_layers)
        )
        self.dropout = Dropout(architecture.dropout)
        self.query = nn.Linear(d_states, 1)
        self.classifier = nn.Linear(d_states, architecture.n_classes)
        self.apply(xavier_)

    def forward(
        self, input_ids: Int[Tensor, "B T"], token_mask: Bool[Tensor, "B T"] | None = None
    ) -> tuple[Float[Tensor, "B C"], Float[Tensor, "B T"]]:
        """Logits, and the float32 weights with which the states were averaged. `token_mask` is True on real tokens.

        ValueError if a review is padded anywhere but on the right: the LSTM would read the padding first.
        """
        refuse_no_batch(input_ids, token_mask)
        if token_mask is None:
            token_mask = torch.ones_like(input_ids, dtype=torch.bool)
        if not (token_mask[:, 0].all() and (token_mask[:, :-1] >= token_mask[:, 1:]).all()):
            raise ValueError("got reviews padded on the left or without a token, expected padding on the right")
        if self.training and self.architecture.token_dropout:
            input_ids = drop_tokens(input_ids, self.architecture.token_dropout)
        states = self._states(self.embedding_dropout(self.embedding(input_ids)), token_mask)
        scores = self.query(states).squeeze(-1).float()
        weights = scores.masked_fill(~token_mask, float("-inf")).softmax(-1)
        pooled = (weights[..., None] * states).sum(1).to(states.dtype)
        return self.classifier(self.dropout(pooled)), weights

    def _states(self, x: Tensor, token_mask: Tensor) -> Tensor:
        mirror = mirrored(token_mask)
        for index, layer in enumerate(self.layers):
            x = layer(self.dropout(x) if index else x, mirror)
        return x


class BothDirections(nn.Module):
    """One layer: an LSTM that reads from the start, and one that reads from each review's own end.

    Two plain LSTMs instead of a packed bidirectional one: on a CPU, PyTorch has no fused kernel for packed sequences,
    whose backward pass was measured 6 to 15 times slower. Padding on the right comes after all that matters.
    """

    def __init__(self, d_in: int, d_hidden: int) -> None:
        super().__init__()
        self.ahead = nn.LSTM(d_in, d_hidden, batch_first=True)
        self.back = nn.LSTM(d_in, d_hidden, batch_first=True)

    def forward(self, x: Float[Tensor, "B T D"], mirror: Int[Tensor, "B T"]) -> Float[Tensor, "B T D2"]:
        """States of both directions side by side, each at its token's place; `mirror` as from `mirrored`."""
        mirror = mirror[..., None]
        back = self.back(x.take_along_dim(mirror, 1))[0].take_along_dim(mirror, 1)
        return torch.cat([self.ahead(x)[0], back], dim=-1)


def mirrored(token_mask: Bool[Tensor, "B T"]) -> Int[Tensor, "B T"]:
    """For each place the one as far from its review's end as this is from the start; padding keeps its own."""
    places = torch.arange(token_mask.shape[1], device=token_mask.device)
    return torch.where(token_mask, token_mask.sum(-1, keepdim=True) - 1 - places, places)
