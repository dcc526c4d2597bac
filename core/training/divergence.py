"""Why a training leaves the finite numbers, and what to change. No torch here: a page offers it, too."""

from dataclasses import dataclass, replace

from core.config import MISTAKES_OF_ATTENTION, EncoderArchitecture, RunConfig

HIGH_LR = 0.03
"""Ten times what small Transformers are trained with: beyond it, AdamW steps over the minimum whatever else is right."""


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
    slower = replace(config, training=replace(training, lr=float(f"{training.lr / 10:.2g}")))
    return Remedy(
        cause=f"since a learning rate of {training.lr:g} is too high",
        change=f"use a learning rate of {slower.training.lr:g}",
        config=slower,
    )
