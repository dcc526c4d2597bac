"""When a training has diverged, why, and what to change. No torch here: a page offers it, too."""

import math
from dataclasses import dataclass, replace

from core.config import MISTAKES_OF_ATTENTION, EncoderArchitecture, RunConfig
from core.events import EpochFinished

USUAL_LR = 0.003
"""Small Transformers are trained with up to this."""
HIGH_LR = 10 * USUAL_LR
"""Beyond it, AdamW steps over the minimum whatever else is right."""
FAR = 2.0
"""Times the loss of guessing."""


def diverged(epoch: EpochFinished, n_classes: int) -> bool:
    """Whether an epoch ended far above the loss of guessing, ln C, on the reviews that it trained on and on others, too.

    A network that overfits is above it on other reviews alone, one whose first steps were too long and that came back from
    them in its own epoch alone, and one that learns nothing stays near it: on both only weights are that have grown too large.
    """
    return min(epoch.train_loss, epoch.val_loss) > FAR * math.log(n_classes)


def described(epoch: EpochFinished, config: RunConfig, n_classes: int) -> str:
    """What is wrong with an epoch that `diverged`, where, why, and what to do: a sentence without full stop."""
    return explained(
        f"the loss is {_rounded(epoch.val_loss)} after epoch {epoch.epoch}, step {epoch.step}, where guessing costs "
        f"{math.log(n_classes):.2f}",
        config,
    )


def _rounded(loss: float) -> str:
    return f"{loss:,.0f}" if 100 <= loss < 1e6 else f"{loss:.3g}"


def explained(what: str, config: RunConfig) -> str:
    """What went wrong, with the most likely cause and the way out."""
    safer = remedy(config)
    return f"{what}, most likely {safer.cause}; {safer.change}"


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """The one change that is most likely to help."""

    cause: str
    """What follows "most likely"."""
    change: str
    """What the safer variant does, as a command to a person."""
    config: RunConfig
    """The safer variant."""


def remedy(config: RunConfig) -> Remedy:
    """The most likely cause of a divergence among the knobs, and the configuration without it."""
    model, training = config.model, config.training
    if isinstance(model, EncoderArchitecture):
        if model.mistake in MISTAKES_OF_ATTENTION:
            right = replace(config, model=replace(model, mistake="none"))
            return Remedy(cause=f"since the mistake {model.mistake} is made on purpose", change="make no mistake", config=right)
        if model.attention_scale == "none":
            scaled = replace(config, model=replace(model, attention_scale="sqrt_d_head"))
            return Remedy(
                cause="since attention logits grow with d_head and nothing scales them", change="scale attention", config=scaled
            )
    if training.lr <= HIGH_LR and not training.warmup_ratio:
        warmed = replace(config, training=replace(training, warmup_ratio=0.1))
        return Remedy(cause="since there is no warm-up", change="use a warm-up", config=warmed)
    if training.lr <= HIGH_LR and training.clip_norm is None:
        clipped = replace(config, training=replace(training, clip_norm=1.0))
        return Remedy(cause="since the gradient is not clipped", change="clip the gradient", config=clipped)
    lr = USUAL_LR if training.lr > HIGH_LR else float(f"{training.lr / 10:.2g}")
    slower = replace(config, training=replace(training, lr=lr))
    return Remedy(
        cause=f"since a learning rate of {training.lr:g} is too high",
        change=f"use a learning rate of {slower.training.lr:g}",
        config=slower,
    )
