"""Seconds of one epoch of encoder-small over IMDB, on the product's own loop."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from benchmarks import arrays
from benchmarks.inference import reader
from benchmarks.suite import Setting
from benchmarks.training import sized
from core.recorded import Column, Table
from core.training.loop import Examples, fit
from core.training.machine import Execution

REVIEWS = 25_000
EPOCHS = 3


def part(setting: Setting) -> Iterator[Table]:
    """Table "epoch"."""
    config = sized(setting, "encoder-small")
    config = replace(config, training=replace(config.training, epochs=EPOCHS))
    stored, n = arrays.of(setting), setting.size(cpu=500, cuda=REVIEWS, quick=16)
    examples = Examples(stored.reviews("train", config.model.max_len, n=n), stored.classes("train", n=n))
    held_out = Examples(stored.reviews("validation", config.model.max_len), stored.classes("validation"))
    train = partial(fit, validation=held_out, execution=Execution.of(config), emit=lambda event: None)
    few = Examples(examples.ids[: n // 10], examples.labels[: n // 10])
    train(reader(setting, config.model), config, few, validation=few)  # kernels are loaded, and memory is asked for, only once
    fitted = train(reader(setting, config.model), config, examples)
    epoch_s = fitted.rates.seconds / fitted.rates.reviews * REVIEWS
    rates = (fitted.rates.reviews_per_s, fitted.rates.tokens_per_s)
    yield Table(
        name="epoch",
        caption=f"encoder-small, batches of about {config.training.batch_size} reviews of up to {config.model.max_len} tokens: "
        f"{n:,} reviews an epoch (some twice, since fewer are for training), seconds of steps alone after a warm-up, mean of "
        f"{EPOCHS} epochs, times {REVIEWS / n:g}. Accuracy on validation reviews after the last.",
        columns=(
            Column(name="reviews"), Column(name="epoch", unit="s"), Column(name="rate", unit="reviews/s"),
            Column(name="rate of tokens", unit="tokens/s"), Column(name="accuracy", unit="%"),
        ),
        rows=((REVIEWS, epoch_s, *rates, 100 * fitted.epochs[-1].val_accuracy),),
    )  # fmt: skip
