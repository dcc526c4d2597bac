"""A network whose evidence is known: each token adds its own numbers to the logits."""

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from core.artifact import Model
from core.inspection.reading import Reader


class BagOfWords(nn.Module):
    """logits = the sum of the tokens' embeddings; attention is uniform."""

    def __init__(self, weights: Tensor) -> None:
        super().__init__()
        self.config = SimpleNamespace(num_attention_heads=1, pooling="mean")
        self.embedding = nn.Embedding.from_pretrained(weights, freeze=True)

    def get_input_embeddings(self) -> nn.Module:
        return self.embedding

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, output_attentions: bool = False) -> Any:
        embedded = self.embedding(input_ids)
        if attention_mask is not None:
            embedded = embedded * attention_mask[..., None]
        n = input_ids.shape[1]
        uniform = torch.full((len(input_ids), 1, n, n), 1 / n)
        return SimpleNamespace(logits=embedded.sum(1), attentions=(uniform,) if output_attentions else None)


def bag_of_words(model: Model, weights: dict[str, float]) -> Reader:
    """A reader of the model's tokeniser, in which each of these words speaks for "positive" by its weight, and nothing else."""
    table = torch.zeros(model.tokenizer.get_vocab_size(), 2)
    for word, weight in weights.items():
        table[model.tokenizer.token_to_id(word)] = torch.tensor([-weight / 2, weight / 2])
    return SimpleNamespace(  # type: ignore[return-value]
        name="bag", network=BagOfWords(table).eval(), tokenizer=model.tokenizer, label_names=model.label_names, cut=model.cut
    )
