"""Four small models of random weights: of several layers and heads, of one, with [CLS], and recurrent."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from core import artifact
from core.config import Architecture, BiLSTMArchitecture, EncoderArchitecture, RunConfig
from core.data import tokenizer as tokenizers
from core.networks.auto import build

TEXTS = [
    "the film is good and the plot is not bad",
    "a dull and terrible film , not good at all",
    "3.5/10 really movie 2010 like",
]
SMALL = dict(vocab_size=200, max_len=24)
MODELS: dict[str, Architecture] = {
    "imdb-encoder": EncoderArchitecture(**SMALL, d_model=12, n_heads=3, n_layers=2, d_ff=8),
    "imdb-bilstm": BiLSTMArchitecture(**SMALL, d_embedding=8, d_hidden=6),
    "one-head": EncoderArchitecture(**SMALL, d_model=8, n_heads=1, n_layers=1, d_ff=8),
    "cls": EncoderArchitecture(**SMALL, d_model=8, n_heads=2, n_layers=1, d_ff=8, pooling="cls", truncation="head+tail"),
}


def write(root: Path) -> Path:
    """A folder for each of `MODELS` under `root`, as training would leave it but for its figures."""
    tokenizer = tokenizers.train(TEXTS * 3, 200)
    torch.manual_seed(0)
    for name, architecture in MODELS.items():
        config = RunConfig(model=replace(architecture, vocab_size=tokenizer.get_vocab_size()))
        network = build(config.model, ("negative", "positive")).eval()
        artifact.write_network(root / name, network, tokenizer, config)
        (root / name / "run.json").write_text("{}")
        predictions().to_parquet(root / name / "predictions.parquet")
    return root


def predictions(n: int = 400) -> pd.DataFrame:
    """Test reviews of 33 to 432 words, of which those over 224 words are mostly answered wrongly."""
    words = np.arange(33, 33 + n)
    labels = np.arange(n) % 2
    right = (words <= 224) | (words % 3 == 0)
    logits = np.eye(2, dtype=np.float32)[np.where(right, labels, 1 - labels)]
    frame = pd.DataFrame({"text_hash": [f"{i:016x}" for i in range(n)], "split": "test", "label": labels})
    return frame.assign(logits=list(logits), words=words, tokens=words, tokens_read=np.minimum(words, 24))
