"""Whether a training fits into memory, asked before it starts and after it ran out: a sentence, and one button to go on."""

from dataclasses import replace

import streamlit as st

from core.config import RunConfig
from core.events import Failed
from core.jobs import device_of
from core.measure.planner import Plan, device_memory, needed_bytes, plan
from core.presets import flags
from core.runs import Run
from ui import launching, loaders, markdown


def before(config: RunConfig, key: str) -> None:
    """Say what fits where the training does not, as predicted; the button sets the knobs, whose keys begin with `key`."""
    found = _plan(config)
    if found is None or found.fits:
        return
    st.warning(markdown.literal(f"This training will not fit, as predicted: it {found.sentence}."), icon=":material/memory:")
    if found.alternatives:
        other = found.alternatives[-1]
        st.button(f"Choose {described(config, other)}", key="train_fitting", on_click=_turn, args=(config, other, key))


def after(run: Run, preset: str) -> None:
    """What a training that ran out of memory could be in its place, and the button that starts it."""
    failed = isinstance(run.last_event, Failed) and run.last_event.kind == "memory"
    if not failed or run.config is None or run.config.epoch_name == "fit":  # fits have no batch to be smaller
        return
    found = _plan(run.config)
    if found is not None and not found.fits and found.alternatives:
        said, other = f"Predicted: it {found.sentence}.", found.alternatives[-1]
    elif (other := _frugal(run.config)) is not None:
        said = "The prediction says that it fits, and it did not: this takes less."
    else:
        return
    st.caption(markdown.literal(said))
    asked = ("train", launching.token("train"), ["train", *flags(preset, other)], run.name)
    label = f"Train with {described(run.config, other)}"
    st.button(label, key=f"train_fitting_{run.id}", type="primary", on_click=launching.launch, args=asked)


def described(asked: RunConfig, other: RunConfig) -> str:
    """In which knobs that memory hangs on another configuration differs, for a button."""
    old, new = asked.training, other.training
    words = [f"batch {new.batch_size}"] * (new.batch_size != old.batch_size)
    words += [new.backend] * (new.backend != old.backend) + ["checkpointing"] * (new.checkpointing != old.checkpointing)
    words += [f"max_len {other.model.max_len}"] * (other.model.max_len != asked.model.max_len)
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _plan(config: RunConfig) -> Plan | None:
    """None where memory or need is unknown. Reviews are taken to be long until that matters: their lengths take a moment."""
    memory_bytes = device_memory(device_of(config.training.device))
    if memory_bytes is None:
        return None
    found = plan(config, memory_bytes)
    return found if found is None or found.fits else plan(config, memory_bytes, loaders.mean_length(config))


def _frugal(config: RunConfig) -> RunConfig | None:
    """The first that takes less, as predicted: a smaller batch, checkpointing, shorter reviews.

    A CPU computes a batch in parts: half of it may take as much as the whole.
    """
    now, model, training = needed_bytes(config), config.model, config.training
    batches = [training.batch_size // 2**halved for halved in range(1, training.batch_size.bit_length())]
    changes = [*({"batch_size": batch} for batch in batches), {"checkpointing": "on"}]
    variants = [replace(config, training=replace(training, **change)) for change in changes]
    variants.append(replace(config, model=replace(model, max_len=max(1, model.max_len // 2))))
    return next((each for each in variants if now and (needed_bytes(each) or now) < now), None)


def _turn(config: RunConfig, other: RunConfig, key: str) -> None:
    for knob, value in vars(other.training).items():
        if value != getattr(config.training, knob):
            st.session_state[f"{key}_{knob}"] = value
