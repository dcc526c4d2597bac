"""Small networks trained for a claim: the lab's own data, network and training step, seed by seed, with no folder.

Networks are small enough for one core, and so are the differences that they show: a claim's `scale` says how small. All
seeds are measured on the same reviews, the test side of the whole data set, which no training side shares a text with.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import nn

from core.config import BiLSTMArchitecture, DataConfig, EncoderArchitecture, RunConfig, TrainingConfig
from core.data.batches import Cut
from core.data.corpus import encode_corpus
from core.data.reviews import Reviews, load
from core.data.splits import split
from core.evaluation.scoring import score
from core.events import EpochFinished
from core.networks.auto import build
from core.training.loop import Trainer
from core.training.machine import Execution
from core.training.run import Prepared, prepare
from core.words import count_words

SEEDS = (0, 1, 2)
HELD_OUT = 1_200
"""Test reviews at most."""
ON_ONE_CORE = TrainingConfig(device="cpu", precision="float32", backend="sdpa", batch_size=8, lr=3e-3, epochs=3)
SMALL = EncoderArchitecture(vocab_size=4_000, d_model=64, n_heads=4, n_layers=1, d_ff=128, max_len=128)
RECURRENT = BiLSTMArchitecture(vocab_size=4_000, d_embedding=64, d_hidden=40, max_len=256)
"""As many numbers in its layer as `SMALL` has."""


@dataclass(frozen=True, kw_only=True)
class Learned:
    """A network at its best epoch, and the way there."""

    config: RunConfig
    network: nn.Module
    losses: list[float]
    """Of each step, nats; shorter where the training left the finite numbers."""
    epochs: list[EpochFinished]
    prepared: Prepared

    @property
    def final_loss(self) -> float:
        """Mean over the last tenth of the steps: whether the network can fit what it is given."""
        return float(np.mean(self.losses[-max(1, len(self.losses) // 10) :]))


@dataclass(frozen=True)
class HeldOut:
    """Reviews that no network was trained on, not cut."""

    ids: list[Int[np.ndarray, "_"]]
    labels: Int[np.ndarray, "n"]
    words: Int[np.ndarray, "n"]
    """Of each review."""


@lru_cache(maxsize=256)
def learned(config: RunConfig) -> Learned:
    """A network of `config`; several claims may ask for the same one."""
    prepared = _prepared(config)
    torch.manual_seed(config.training.seed)
    network = build(prepared.config.model, prepared.splits.train.label_names)
    sides = (prepared.examples("train"), prepared.examples("validation"))
    trainer, losses = Trainer(network, prepared.config, *sides, Execution.of(config)), []
    while not trainer.done:
        step = trainer.advance(watched=False)
        if not (math.isfinite(step.loss) and math.isfinite(step.gradient_norm)):
            break
        losses.append(step.loss)
        if trainer.is_last_of_epoch:
            trainer.validate()
    trainer.best.restore()
    return Learned(config=config, network=network.eval(), losses=losses, epochs=trainer.epochs, prepared=prepared)


def _prepared(config: RunConfig) -> Prepared:
    found = _data(config.reviews, config.training.seed, config.model.vocab_size)
    model = replace(config.model, vocab_size=found.config.model.vocab_size, n_classes=found.config.model.n_classes)
    return replace(found, config=replace(config, model=model))


@lru_cache(maxsize=16)
def _data(reviews: DataConfig, seed: int, vocab_size: int) -> Prepared:
    model, training = replace(SMALL, vocab_size=vocab_size), replace(ON_ONE_CORE, seed=seed)
    return prepare(RunConfig(model=model, reviews=reviews, training=training))


def of_seeds(config: RunConfig, seeds: Sequence[int] = SEEDS) -> list[Learned]:
    """The same configuration trained with each seed, which draws weights, order and reviews."""
    return [learned(replace(config, training=replace(config.training, seed=seed))) for seed in seeds]


def held_out(one: Learned) -> HeldOut:
    """The test side of all reviews, as this network's tokeniser reads them."""
    test, words = _test(replace(one.config.reviews, limit=None))
    corpus = encode_corpus(one.prepared.tokenizer, test.texts)
    return HeldOut([corpus[place] for place in range(len(test))], np.array(test.labels), words)


@lru_cache(maxsize=2)
def _test(reviews: DataConfig) -> tuple[Reviews, Int[np.ndarray, "n"]]:
    """Reviews with the words of each."""
    test = split(load(reviews, seed=0)).test
    drawn = np.random.default_rng(0).permutation(len(test))[:HELD_OUT]  # a file may hold one class after the other
    test = test.take(drawn.tolist())
    return test, np.array([count_words(text) for text in test.texts])


def right(one: Learned, reviews: HeldOut, max_len: int | None = None) -> Int[np.ndarray, "n"]:
    """1 for each review that is labelled rightly, read up to `max_len` tokens, else as the network was trained."""
    model = one.config.model if max_len is None else replace(one.config.model, max_len=max_len)
    cut = Cut.of(model)
    return (score(one.network, [cut.ids(ids) for ids in reviews.ids]).argmax(-1) == reviews.labels).astype(np.int64)


@lru_cache(maxsize=256)
def _right_as_trained(config: RunConfig) -> tuple[HeldOut, Int[np.ndarray, "n"]]:
    one = learned(config)
    reviews = held_out(one)
    return reviews, right(one, reviews)


def accuracies(networks: Sequence[Learned], of: Callable[[HeldOut], Bool[np.ndarray, "n"]] | None = None) -> list[float]:
    """Accuracy of each on the held-out reviews, of those alone that `of` says."""
    found = []
    for one in networks:
        reviews, correct = _right_as_trained(one.config)
        found.append(float(correct[slice(None) if of is None else of(reviews)].mean()))
    return found
