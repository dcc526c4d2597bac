"""The articles' networks and training step as they write them: padded to max_len, float32, attention written out."""

import math
from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from core.config import BiLSTMArchitecture, EncoderArchitecture

DROPOUT = 0.1


class MultiHeadAttention(nn.Module):
    """Three projections, scores of all pairs, softmax, dropout on the weights, an output projection."""

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads, self.d_head = n_heads, d_model // n_heads
        self.q, self.k, self.v, self.out = (nn.Linear(d_model, d_model) for _ in range(4))
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, x: Tensor, token_mask: Tensor | None) -> Tensor:
        batch, length, _ = x.shape
        q, k, v = (f(x).view(batch, length, self.n_heads, self.d_head).transpose(1, 2) for f in (self.q, self.k, self.v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_head)
        if token_mask is not None:
            scores = scores.masked_fill(~token_mask[:, None, None, :], -1e9)
        heads = self.dropout(scores.softmax(-1)) @ v
        return self.out(heads.transpose(1, 2).contiguous().view(batch, length, -1))


class Layer(nn.Module):
    """Attention and feed-forward, each with dropout, residual sum and layer norm."""

    def __init__(self, a: EncoderArchitecture) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(a.d_model, a.n_heads)
        activation = nn.GELU() if a.activation == "gelu" else nn.ReLU()
        self.feed_forward = nn.Sequential(
            nn.Linear(a.d_model, a.d_ff), activation, nn.Dropout(DROPOUT), nn.Linear(a.d_ff, a.d_model)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(a.d_model) for _ in range(2))
        self.dropout = nn.Dropout(DROPOUT)
        self.pre_norm = a.norm == "pre"

    def forward(self, x: Tensor, token_mask: Tensor | None) -> Tensor:
        first, second = self.norms
        if self.pre_norm:
            x = x + self.dropout(self.attention(first(x), token_mask))
            return x + self.dropout(self.feed_forward(second(x)))
        x = first(x + self.dropout(self.attention(x, token_mask)))
        return second(x + self.dropout(self.feed_forward(x)))


class Transformer(nn.Module):
    """Article A: post-norm, the mean over all places, padding too. Article D: pre-norm, scaled embedding, the first token."""

    def __init__(self, architecture: EncoderArchitecture) -> None:
        super().__init__()
        self.architecture = a = architecture
        self.embedding = nn.Embedding(a.vocab_size, a.d_model, padding_idx=0)
        self.register_buffer("positions", sines(a.max_len, a.d_model))
        self.dropout = nn.Dropout(DROPOUT)
        self.layers = nn.ModuleList(Layer(a) for _ in range(a.n_layers))
        self.norm = nn.LayerNorm(a.d_model) if a.norm == "pre" else nn.Identity()
        self.classifier = nn.Linear(a.d_model, a.n_classes)

    def forward(self, ids: Tensor, token_mask: Tensor | None = None) -> Tensor:
        scale = math.sqrt(self.architecture.d_model) if self.architecture.embedding_scale else 1.0
        x = self.dropout(self.embedding(ids) * scale + self.positions[: ids.shape[1]])
        for layer in self.layers:
            x = layer(x, token_mask)
        x = self.norm(x)
        return self.classifier(x[:, 0] if self.architecture.pooling == "cls" else x.mean(1))


def sines(length: int, d_model: int) -> Tensor:
    """The table of sinusoidal positions (arXiv:1706.03762, section 3.5)."""
    rates = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10_000) / d_model))
    angles = torch.arange(length)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


class BiLSTM(nn.Module):
    """One bidirectional LSTM over the padded batch, and the mean of its states weighted by a softmax."""

    def __init__(self, architecture: BiLSTMArchitecture) -> None:
        super().__init__()
        a = architecture
        self.embedding = nn.Embedding(a.vocab_size, a.d_embedding, padding_idx=0)
        self.lstm = nn.LSTM(a.d_embedding, a.d_hidden, a.n_layers, batch_first=True, bidirectional=True)
        self.score = nn.Linear(2 * a.d_hidden, 1)
        self.classifier = nn.Linear(2 * a.d_hidden, a.n_classes)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, ids: Tensor, token_mask: Tensor | None = None) -> Tensor:
        states = self.lstm(self.dropout(self.embedding(ids)))[0]
        scores = self.score(states).squeeze(-1)
        if token_mask is not None:
            scores = scores.masked_fill(~token_mask, -1e9)
        pooled = (scores.softmax(-1)[..., None] * states).sum(1)
        return self.classifier(self.dropout(pooled))


def network(architecture: EncoderArchitecture | BiLSTMArchitecture) -> nn.Module:
    """The article's network of the sizes of one of ours."""
    return Transformer(architecture) if isinstance(architecture, EncoderArchitecture) else BiLSTM(architecture)


def padded(reviews: Sequence[np.ndarray], length: int) -> tuple[Tensor, Tensor]:
    """Ids with zeros on the right up to `length`, and True on real tokens."""
    ids = torch.zeros(len(reviews), length, dtype=torch.long)
    for row, review in zip(ids, reviews, strict=True):
        row[: len(review)] = torch.from_numpy(review)
    return ids, torch.arange(length) < torch.tensor([[len(review)] for review in reviews])


def step(network: nn.Module, optimizer: torch.optim.Optimizer, ids: Tensor, token_mask: Tensor | None, labels: Tensor) -> float:
    """Forward, backward, gradient clipped at 1, optimiser; the loss."""
    loss = F.cross_entropy(network(ids, token_mask).float(), labels)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    optimizer.step()
    return loss.item()
