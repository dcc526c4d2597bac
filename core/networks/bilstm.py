"""A bidirectional LSTM with attention pooling that classifies reviews. Imports torch alone."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from core.config import BiLSTMArchitecture
from core.networks.blocks import drop_tokens, xavier_
from core.networks.dropout import Dropout


class BiLSTM(nn.Module):
    """Embedding, LSTM in both directions, states averaged by one attention query, classifier (Zhou et al. 2016, P16-2034)."""

    def __init__(self, architecture: BiLSTMArchitecture) -> None:
        super().__init__()
        self.architecture = architecture
        self.embedding = nn.Embedding(architecture.vocab_size, architecture.d_embedding, padding_idx=0)
        self.embedding_dropout = Dropout(architecture.embedding_dropout)
        self.lstm = nn.LSTM(
            architecture.d_embedding,
            architecture.d_hidden,
            architecture.n_layers,
            batch_first=True,
            bidirectional=True,
            dropout=architecture.dropout if architecture.n_layers > 1 else 0.0,
        )
        self.query = nn.Linear(2 * architecture.d_hidden, 1)
        self.dropout = Dropout(architecture.dropout)
        self.classifier = nn.Linear(2 * architecture.d_hidden, architecture.n_classes)
        self.apply(xavier_)

    def forward(
        self, input_ids: Int[Tensor, "B T"], token_mask: Bool[Tensor, "B T"] | None = None
    ) -> tuple[Float[Tensor, "B C"], Float[Tensor, "B T"]]:
        """Logits, and the float32 weights with which the states were averaged. `token_mask` is True on real tokens.

        ValueError if a review is padded on the left: the LSTM would read the padding first.
        """
        if token_mask is None:
            token_mask = torch.ones_like(input_ids, dtype=torch.bool)
        if not token_mask[:, 0].all():
            raise ValueError("got reviews padded on the left or without a token, expected padding on the right")
        if self.training and self.architecture.token_dropout:
            input_ids = drop_tokens(input_ids, self.architecture.token_dropout)
        states = self._states(self.embedding_dropout(self.embedding(input_ids)), token_mask)
        scores = self.query(states).squeeze(-1).float()
        weights = scores.masked_fill(~token_mask, float("-inf")).softmax(-1)
        pooled = (weights.to(states.dtype)[:, None] @ states).squeeze(1)
        return self.classifier(self.dropout(pooled)), weights

    def _states(self, x: Tensor, token_mask: Tensor) -> Tensor:
        """Both directions' states; packed, so that the backward one starts at a review's own end."""
        packed = pack_padded_sequence(x, token_mask.sum(-1).cpu(), batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=x.shape[1])[0]
