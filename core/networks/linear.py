"""A linear classifier on runs of neighbouring tokens: naive Bayes' ratios (Wang and Manning 2012) or TF-IDF."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from core.config import LinearArchitecture


class Runs(NamedTuple):
    """Runs of neighbouring tokens, each as often as it is there."""

    review: Int[Tensor, "found"]
    """The row of the batch."""
    place: Int[Tensor, "found"]
    """Of the first token."""
    length: Int[Tensor, "found"]
    number: Int[Tensor, "found"]
    """The tokens as digits, so that different runs have different numbers."""


class Features(NamedTuple):
    """The known runs, each once for a review."""

    review: Int[Tensor, "features"]
    index: Int[Tensor, "features"]
    """In the model's own list of runs."""
    count: Int[Tensor, "features"]
    """How often the review has it."""
    value: Float[Tensor, "features"]


def runs_of(input_ids: Int[Tensor, "B T"], token_mask: Bool[Tensor, "B T"] | None, longest: int, vocab_size: int) -> Runs:
    """Every run of up to `longest` tokens; `token_mask` is True on real ones."""
    whole = torch.ones_like(input_ids, dtype=torch.bool) if token_mask is None else token_mask
    real, number, found = whole, torch.zeros_like(input_ids), []
    for length in range(1, min(longest, input_ids.shape[1]) + 1):
        width = input_ids.shape[1] - length + 1
        whole = whole[:, :width] & real[:, length - 1 :]
        number = number[:, :width] * (vocab_size + 1) + input_ids[:, length - 1 :] + 1  # no digit is 0
        review, place = whole.nonzero(as_tuple=True)
        found.append(Runs(review, place, torch.full_like(review, length), number[whole]))
    return Runs(*map(torch.cat, zip(*found, strict=True)))


class Linear(nn.Module):
    """logits = b + the sum over the known runs j of a review of v_j w_j.

    With naive Bayes v_j is 1, and the ratios are part of w_j; with TF-IDF it is (1 + ln n_j) s_j for a run that is there n_j
    times, divided by the Euclidean norm of these over the review.
    """

    runs: Int[Tensor, "J"]
    """The numbers of the known runs, in ascending order."""
    scale: Float[Tensor, "J"]
    """s_j: with TF-IDF the logarithm of how rare a run is."""

    def __init__(self, architecture: LinearArchitecture) -> None:
        super().__init__()
        self.architecture = architecture
        self.register_buffer("runs", torch.zeros(architecture.n_features, dtype=torch.long))
        self.register_buffer("scale", torch.ones(architecture.n_features))
        self.weight = nn.Parameter(torch.zeros(architecture.n_features, architecture.n_classes))
        self.bias = nn.Parameter(torch.zeros(architecture.n_classes))

    def forward(self, input_ids: Int[Tensor, "B T"], token_mask: Bool[Tensor, "B T"] | None = None) -> Float[Tensor, "B C"]:
        """Logits; `token_mask` is True on real tokens."""
        review, index, _, value = self.features(self.known(input_ids, token_mask), len(input_ids))
        added = value[:, None] * self.weight[index].float()  # sums are float32, whatever the weights are stored as
        return self.bias.float().repeat(len(input_ids), 1).index_add(0, review, added).to(self.weight.dtype)

    def known(self, input_ids: Int[Tensor, "B T"], token_mask: Bool[Tensor, "B T"] | None = None) -> Runs:
        """The runs of a batch that the model knows; their numbers are indices into its own list."""
        a = self.architecture
        found = runs_of(input_ids.long(), token_mask, a.longest_run, a.vocab_size)
        index = torch.searchsorted(self.runs, found.number).clamp(max=len(self.runs) - 1)
        known = self.runs[index] == found.number
        return Runs(found.review[known], found.place[known], found.length[known], index[known])

    def features(self, known: Runs, n_reviews: int) -> Features:
        """The same, each once for a review, with its value v."""
        of_review, count = torch.unique(known.review * len(self.runs) + known.number, return_counts=True)
        review, index = of_review // len(self.runs), of_review % len(self.runs)
        if self.architecture.features == "naive-bayes":
            return Features(review, index, count, torch.ones_like(count, dtype=torch.float32))
        value = (1 + count.log()) * self.scale[index].float()
        norm = torch.zeros(n_reviews, device=value.device).index_add(0, review, value**2).sqrt()
        return Features(review, index, count, value / norm[review])

    def contributions(self, input_ids: Int[Tensor, "T"]) -> Float[Tensor, "T C"]:
        """What each token of a review adds to each logit; together with the bias these sums are the logits.

        A run that is there several times shares its part among them, and each among its tokens.
        """
        known = self.known(input_ids[None])
        _, index, count, value = self.features(known, 1)
        each = (value / count)[:, None] * self.weight[index]
        part = each[torch.searchsorted(index, known.number)] / known.length[:, None]
        parts = torch.zeros(len(input_ids), self.weight.shape[1], dtype=part.dtype, device=part.device)
        for ahead in range(self.architecture.longest_run):
            inside = known.length > ahead
            parts.index_add_(0, known.place[inside] + ahead, part[inside])
        return parts
