"""Whole configurations by name, each a function without arguments; its docstring is what a person reads."""

import reprlib
from collections.abc import Callable
from dataclasses import fields, replace

from core.catalog import NETWORKS
from core.config import BiLSTMArchitecture, DataConfig, EncoderArchitecture, LinearArchitecture, RunConfig, TrainingConfig

LONGEST_WORD = 100_000
"""Bytes of a word of a command; Linux refuses more than 131,071."""


def tiny() -> RunConfig:
    """The smallest Transformer worth watching: seconds on two cores."""
    return RunConfig(
        model=EncoderArchitecture(
            vocab_size=4_000, d_model=64, n_heads=4, n_layers=1, d_ff=128, max_len=128, dropout=0.0, embedding_dropout=0.1
        ),
        reviews=DataConfig(limit=5_000),
        training=TrainingConfig(epochs=3, batch_size=32, lr=2e-3),
    )


def encoder_small() -> RunConfig:
    """The encoder of article A: three layers of 256, post-norm, sinusoidal positions, mean pooling."""
    return RunConfig()


def encoder_base() -> RunConfig:
    """The encoder of article D: six layers of 768, pre-norm, GELU, [CLS], 512 tokens. Made for a GPU."""
    return RunConfig(
        model=EncoderArchitecture(
            vocab_size=30_522, d_model=768, n_heads=12, n_layers=6, d_ff=3072, max_len=512,
            norm="pre", activation="gelu", pooling="cls", embedding_scale=True,
        ),
        training=TrainingConfig(batch_size=32, lr=1e-4),
    )  # fmt: skip


def encoder_local_global() -> RunConfig:
    """Article D's encoder for long reviews: 128 global tokens, 512 local ones, 256 on either side (arXiv:2004.05150)."""
    base = encoder_base()
    return replace(
        base,
        model=replace(base.model, max_len=4_096, window=256, n_global=128),
        training=replace(base.training, batch_size=8),
    )


def encoder_two_layer() -> RunConfig:
    """The encoder of article B: two layers, label smoothing, Adam's second beta at 0.98."""
    return RunConfig(
        model=replace(EncoderArchitecture(), n_layers=2),
        training=TrainingConfig(label_smoothing=0.1, betas=(0.9, 0.98)),
    )


def bilstm() -> RunConfig:
    """The BiLSTM with attention of article A: embedding 200, hidden 256."""
    return RunConfig(model=BiLSTMArchitecture())


def encoder_best() -> RunConfig:
    """The small encoder that was best on IMDB's validation reviews: two layers of 128, words drowned in dropout."""
    return RunConfig(
        model=EncoderArchitecture(
            vocab_size=8_000, d_model=128, n_heads=4, n_layers=2, d_ff=512, truncation="head+tail", norm="pre",
            positional="learned", embedding_scale=True, pooling="mean+max",
            dropout=0.2, embedding_dropout=0.3, token_dropout=0.3,
        ),
        training=TrainingConfig(lr=1e-3, batch_size=32, weights="float16"),
    )  # fmt: skip


def bilstm_best() -> RunConfig:
    """The BiLSTM that was best on IMDB's validation reviews: embedding and hidden 128, 512 tokens."""
    return RunConfig(
        model=BiLSTMArchitecture(
            vocab_size=8_000, d_embedding=128, d_hidden=128, max_len=512,
            dropout=0.3, embedding_dropout=0.3, token_dropout=0.2,
        ),
        training=TrainingConfig(epochs=6, lr=2e-3, batch_size=32, weights="float16"),
    )  # fmt: skip


def nb_svm() -> RunConfig:
    """No network: tokens and pairs of them, weighed by naive Bayes and a linear classifier. A minute on a CPU, hard to beat."""
    return RunConfig(model=LinearArchitecture(), training=TrainingConfig(device="cpu"))


def tfidf() -> RunConfig:
    """No network: tokens and pairs of them by TF-IDF, and logistic regression. A minute on a CPU."""
    return RunConfig(
        model=LinearArchitecture(features="tfidf", c_values=(1.0, 3.0, 10.0, 30.0, 100.0)),
        training=TrainingConfig(device="cpu"),
    )


PRESETS: dict[str, Callable[[], RunConfig]] = {
    "tiny": tiny,
    "encoder-small": encoder_small,
    "encoder-base": encoder_base,
    "encoder-local-global": encoder_local_global,
    "encoder-two-layer": encoder_two_layer,
    "encoder-best": encoder_best,
    "bilstm": bilstm,
    "bilstm-best": bilstm_best,
    "nb-svm": nb_svm,
    "tfidf": tfidf,
}


def preset(name: str) -> RunConfig:
    """The configuration of that name. An unknown one is a ValueError that lists the known ones."""
    if name not in PRESETS:
        raise ValueError(f"preset: got {name!r}, expected one of {', '.join(PRESETS)}")
    return PRESETS[name]()


def nearest(config: RunConfig) -> str:
    """The name of the preset of its kind from which a configuration differs least."""
    same = [name for name, make in PRESETS.items() if type(make().model) is type(config.model)]
    return min(same, key=lambda name: len(flags(name, config)))


def flags(name: str, config: RunConfig) -> list[str]:
    """What `python -m core train` is given for `config`: the preset of that name, and each knob that differs from it.

    ValueError for a configuration whose network is of another kind, and for column names that a command line takes for flags
    or cannot hold.
    """
    base = preset(name)
    if type(config.model) is not type(base.model):
        own, other = NETWORKS[base.model.kind], NETWORKS[config.model.kind]
        raise ValueError(f"preset: got {name!r}, {own}, for {other}; expected one of the same kind")
    words = ["--preset", name]
    for part in fields(config):
        ours, theirs = getattr(config, part.name), getattr(base, part.name)
        for knob in fields(ours):
            if (value := getattr(ours, knob.name)) != getattr(theirs, knob.name):
                words += _flag(knob.name.replace("_", "-"), value)
    return words


def _flag(name: str, value: object) -> list[str]:
    for part in value if isinstance(value, tuple) else (value,):
        if "\0" in str(part) or len(str(part).encode()) > LONGEST_WORD:
            raise ValueError(
                f"{name}: got {reprlib.repr(part)}, expected no zero character and at most {LONGEST_WORD:,} bytes, which is "
                f"what a command can be given; rename it"
            )
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    if isinstance(value, tuple):
        taken = [part for part in value if str(part).startswith("-")]
        if taken:
            raise ValueError(f"{name}: got {taken[0]!r} among several names, expected none that starts with a dash; rename it")
        return [f"--{name}", *map(str, value)]
    return [f"--{name}={value}"] if str(value).startswith("-") else [f"--{name}", str(value)]
