"""Runs that take a second: a made table of short reviews, and configurations that learn it."""

import random
from dataclasses import replace
from pathlib import Path

import pandas as pd

from core.config import BiLSTMArchitecture, DataConfig, EncoderArchitecture, RunConfig, TrainingConfig

OPINIONS = (("dull", "awful", "boring", "flat"), ("good", "superb", "moving", "bright"))
WORDS = "the film has a plot and cast that we saw in town with friends".split()
ENCODER = EncoderArchitecture(vocab_size=150, d_model=16, n_heads=2, n_layers=2, d_ff=24, max_len=12)
ARCHITECTURES = {
    "mean": ENCODER,
    "cls": replace(ENCODER, pooling="cls"),
    "bilstm": BiLSTMArchitecture(vocab_size=150, d_embedding=12, d_hidden=10, max_len=12),
}
TRAINING = TrainingConfig(epochs=4, batch_size=16, lr=0.01, device="cpu", precision="float32")


def review(rng: random.Random, label: int) -> str:
    """Five to twenty words, two of which tell the class."""
    words = rng.choices(WORDS, k=rng.randint(3, 18)) + rng.choices(OPINIONS[label], k=2)
    rng.shuffle(words)
    return " ".join(words)


def write_table(path: Path, n: int = 240) -> Path:
    """A CSV file of so many reviews, half of each class."""
    rng = random.Random(0)
    labels = [i % 2 for i in range(n)]
    pd.DataFrame({"text": [review(rng, label) for label in labels], "label": labels}).to_csv(path, index=False)
    return path


def config(table: Path, architecture: str = "mean", **knobs) -> RunConfig:
    """A short run on that table; `knobs` are those of the training."""
    return RunConfig(
        model=ARCHITECTURES[architecture], reviews=DataConfig(data=str(table)), training=replace(TRAINING, **knobs)
    )
