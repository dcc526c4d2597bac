"""What people would use instead, of equal size: Hugging Face's Trainer and pipeline on a Bert, torch.nn.TransformerEncoder."""

import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    DataCollatorWithPadding,
    PreTrainedTokenizerFast,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)
from transformers.utils import logging

from benchmarks.article import DROPOUT, sines
from core.config import EncoderArchitecture


class TorchEncoder(nn.Module):
    """Embedding, sines, torch.nn.TransformerEncoder, mean over the real tokens, classifier."""

    def __init__(self, architecture: EncoderArchitecture) -> None:
        super().__init__()
        a = architecture
        self.embedding = nn.Embedding(a.vocab_size, a.d_model, padding_idx=0)
        self.register_buffer("positions", sines(a.max_len, a.d_model))
        layer = nn.TransformerEncoderLayer(
            a.d_model, a.n_heads, a.d_ff, DROPOUT, a.activation, batch_first=True, norm_first=a.norm == "pre"
        )
        self.layers = nn.TransformerEncoder(layer, a.n_layers, enable_nested_tensor=False)
        self.classifier = nn.Linear(a.d_model, a.n_classes)

    def forward(self, ids: Tensor, token_mask: Tensor | None = None) -> Tensor:
        real = torch.ones_like(ids, dtype=torch.bool) if token_mask is None else token_mask
        x = self.layers(self.embedding(ids) + self.positions[: ids.shape[1]], src_key_padding_mask=~real)
        return self.classifier((x * real[..., None]).sum(1) / real.sum(1, keepdim=True))


def bert(architecture: EncoderArchitecture) -> BertForSequenceClassification:
    """A Bert of the same sizes, on SDPA."""
    a = architecture
    config = BertConfig(
        vocab_size=a.vocab_size, hidden_size=a.d_model, num_attention_heads=a.n_heads, num_hidden_layers=a.n_layers,
        intermediate_size=a.d_ff, max_position_embeddings=a.max_len, num_labels=a.n_classes, attn_implementation="sdpa",
    )  # fmt: skip
    return BertForSequenceClassification(config)


def hugging_face_tokenizer(tokenizer: str, longest: int) -> PreTrainedTokenizerFast:
    """Our tokeniser, as transformers uses it."""
    from tokenizers import Tokenizer

    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(tokenizer), pad_token="[PAD]", unk_token="[UNK]", model_max_length=longest
    )


class _Clock(TrainerCallback):
    """Seconds from the end of the first step to that of the last."""

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step == 1:
            self.start = time.perf_counter()
        self.seconds = time.perf_counter() - self.start


def trainer(
    network: nn.Module, tokenizer: PreTrainedTokenizerFast, batch_size: int, bf16: bool, device: str
) -> Callable[[Sequence[np.ndarray], np.ndarray], float]:
    """Trains on reviews and their classes; gives the reviews per second after the first step.

    Batches are of reviews of similar length, padded to the longest: the Trainer's own way to save padding.
    """
    logging.set_verbosity_error()
    warnings.simplefilter("ignore")
    newer = "train_sampling_strategy" in TrainingArguments.__dataclass_fields__
    by_length = {"train_sampling_strategy": "group_by_length"} if newer else {"group_by_length": True}
    arguments = TrainingArguments(
        output_dir=tempfile.gettempdir(), per_device_train_batch_size=batch_size, num_train_epochs=1, bf16=bf16,
        use_cpu=device == "cpu", logging_strategy="no", save_strategy="no", report_to=[], disable_tqdm=True,
        learning_rate=3e-4, dataloader_pin_memory=device == "cuda", **by_length,
    )  # fmt: skip

    def run(reviews: Sequence[np.ndarray], labels: np.ndarray) -> float:
        data = [{"input_ids": ids.tolist(), "labels": int(label)} for ids, label in zip(reviews, labels, strict=True)]
        clock = _Clock()
        collator = DataCollatorWithPadding(tokenizer)
        Trainer(model=network, args=arguments, train_dataset=data, data_collator=collator, callbacks=[clock]).train()
        return (len(data) - batch_size) / clock.seconds

    return run
