"""Configurations with one thing changed, by name: each is a function of a configuration, with the question that it answers."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

from core.catalog import NETWORKS
from core.config import MISTAKES_OF_ATTENTION, RunConfig

OTHER_PRECISION = {"float32": "bfloat16", "bfloat16": "float32"}


@dataclass(frozen=True, kw_only=True)
class Ablation:
    """One thing changed, called with the configuration in which it is changed."""

    name: str
    question: str
    part: Literal["model", "training"]
    knobs: Mapping[str, Any]
    """What is set; of several, a network is asked for those that it has."""

    def __call__(self, base: RunConfig) -> RunConfig:
        """`base` with these knobs. ValueError where it has none of them, cannot have them, or has them already."""
        part = getattr(base, self.part)
        knobs = {knob: value for knob, value in self.knobs.items() if hasattr(part, knob)}
        with self.named():
            if not knobs:
                raise ValueError(
                    f"{NETWORKS[base.model.kind]} has no {' or '.join(self.knobs)}; choose another base or ablation"
                )
            variant = replace(base, **{self.part: replace(part, **knobs)})
            if variant == base:
                raise ValueError(f"this base has {_listed(knobs)} already, so nothing would change; choose another ablation")
        return variant

    @contextmanager
    def named(self) -> Iterator[None]:
        """What refuses a knob says which ablation wanted it."""
        try:
            yield
        except ValueError as error:
            raise ValueError(f"ablation {self.name!r}: {error}") from error


def _listed(knobs: Mapping[str, Any]) -> str:
    return ", ".join(f"{knob} {'none' if value is None else value}" for knob, value in knobs.items())


def _of_model(name: str, question: str, **knobs: Any) -> Ablation:
    return Ablation(name=name, question=question, part="model", knobs=knobs)


def _of_training(name: str, question: str, **knobs: Any) -> Ablation:
    return Ablation(name=name, question=question, part="training", knobs=knobs)


_ALL = (
    *(
        _of_model(f"heads-{n}", question, n_heads=n)
        for n, question in {
            1: "Is one head, with all of a token's numbers, as good as several?",
            2: "Are two heads enough?",
            4: "Are four heads enough?",
            8: "Does it need eight heads?",
            16: "Do sixteen heads, each of few numbers, find more?",
        }.items()
    ),
    _of_model("positions-none", "How much does the order of words matter at all?", positional="none"),
    _of_model("positions-sinusoidal", "Do fixed sines and cosines tell places well enough?", positional="sinusoidal"),
    _of_model("positions-learned", "Is a trained vector for each place better, or slower to learn?", positional="learned"),
    _of_model("positions-rotary", "Does it help to turn queries and keys by their place?", positional="rotary"),
    _of_model("positions-alibi", "Is a penalty on distance all that is needed of places?", positional="alibi"),
    _of_model("residual-off", "Can it learn without a way around each sublayer?", residual=False),
    _of_training("warm-up-off", "Do the first steps need a small learning rate?", warmup_ratio=0.0),
    _of_model("post-norm", "Is a layer norm after each sum, as first published, better?", norm="post"),
    _of_model("pre-norm", "Is a layer norm before each sublayer steadier?", norm="pre"),
    _of_model("batch-norm", "Does batch norm do in place of layer norm?", mistake="batch_norm"),
    _of_model("pooling-cls", "Can the first token alone stand for the review?", pooling="cls"),
    _of_model("pooling-mean", "Is the mean of all tokens the better summary?", pooling="mean"),
    _of_model("pooling-max", "Is the largest of each number the better summary?", pooling="max"),
    _of_model("pooling-mean+max", "Do mean and largest together say more than one?", pooling="mean+max"),
    _of_model("mean-over-padding", "What does it cost to pool padding with the words?", mistake="mean_over_padding"),
    _of_model("scale-off", "Do attention logits need to be scaled down?", attention_scale="none"),
    _of_model("scale-by-d-model", "What if logits are divided by sqrt(d_model)?", attention_scale="sqrt_d_model"),
    _of_model("mask-after-softmax", "What does it cost to hide padding after the softmax?", mistake="mask_after_softmax"),
    _of_model("mask-off", "What does it cost to attend to padding?", mistake="no_mask"),
    *(
        _of_model(f"layers-{n}", question, n_layers=n)
        for n, question in {
            1: "Is one layer enough?",
            2: "Are two layers enough?",
            3: "Are three layers better than the base's?",
            4: "Are four layers better than the base's?",
            5: "Are five layers better than the base's?",
            6: "Do six layers, as in the first Transformer, pay here?",
        }.items()
    ),
    _of_model("relu", "Is the plain ReLU as good?", activation="relu"),
    _of_model("gelu", "Is the smooth GELU better?", activation="gelu"),
    _of_training("label-smoothing", "Does it generalise better when labels are not quite certain?", label_smoothing=0.1),
    _of_training("clipping-off", "Does training need its gradients clipped?", clip_norm=None),
    _of_model(
        "dropout-off", "What does dropout do against overfitting?",
        dropout=0.0, embedding_dropout=0.0, attention_dropout=0.0, token_dropout=0.0,
    ),
    _of_model("attention-dropout", "Is dropout of attention weights worth its time?", attention_dropout=0.1),
    _of_training("beta2-0.98", "Is AdamW better when it forgets squares sooner?", betas=(0.9, 0.98)),
    _of_training("beta2-0.999", "Is AdamW better when it remembers squares for longer?", betas=(0.9, 0.999)),
    _of_model("window", "Is it enough to see 32 tokens to each side?", window=32, n_global=0),
    _of_model("local-global", "Does one token that sees all make up for windows of 32?", window=32, n_global=1),
    _of_model("max-len-128", "Do the first 128 tokens tell enough?", max_len=128),
    _of_model("max-len-256", "Do 256 tokens tell enough?", max_len=256),
    _of_model("max-len-512", "Do reviews say more in 512 tokens?", max_len=512),
    _of_model("head-only", "Is the beginning of a long review enough?", truncation="head"),
    _of_model("head+tail", "Does the end of a long review say more than its middle?", truncation="head+tail"),
    _of_training("float32", "Does arithmetic in bfloat16 cost accuracy?", precision="float32"),
    _of_training("bfloat16", "Is arithmetic in bfloat16 faster, and as good?", precision="bfloat16"),
    _of_model("embedding-scale", "Should embeddings be multiplied by the root of d_model?", embedding_scale=True),
    _of_model("embedding-scale-off", "Do embeddings do without the factor of the root of d_model?", embedding_scale=False),
)  # fmt: skip

ABLATIONS: dict[str, Ablation] = {ablation.name: ablation for ablation in _ALL}


def find(name: str) -> Ablation:
    """The ablation of that name. An unknown one is a ValueError that lists the known ones."""
    if name not in ABLATIONS:
        raise ValueError(f"ablation: got {name!r}, expected one of {', '.join(ABLATIONS)}")
    return ABLATIONS[name]


def pair(base: RunConfig, name: str) -> tuple[RunConfig, RunConfig]:
    """A base and its variant, which differ in this one thing: they share the attention kernel, whichever the variant needs.

    A base of precision "auto" takes the one that the variant has not. What "auto" is else must come to the same for both.
    ValueError if the ablation is unknown or changes nothing in this base.
    """
    ablation = find(name)
    training = base.training
    if ablation.knobs.get("mistake") in MISTAKES_OF_ATTENTION:
        training = replace(training, backend="eager")
    if training.precision == "auto" and (other := OTHER_PRECISION.get(ablation.knobs.get("precision", ""))):
        training = replace(training, precision=other)
    with ablation.named():
        base = replace(base, training=training)
    return base, ablation(base)


def why_not(base: RunConfig, name: str) -> str | None:
    """Why an ablation cannot be made of this base, a sentence without full stop; None if it can."""
    try:
        pair(base, name)
    except ValueError as error:
        return str(error)
    return None
