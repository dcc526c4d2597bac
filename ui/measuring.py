"""A sweep of measurements: what a person chooses before it, and how it stands while it goes."""

from collections.abc import Sequence
from typing import Literal, cast

import streamlit as st

from core import run_folder, runs
from core.catalog import BACKENDS
from core.config import SweepConfig
from core.curves import last
from core.events import Ceilings, CellMeasured
from core.figures.labels import duration
from core.jobs import device_of
from core.measure.command import argv
from core.measure.sweep import cells, estimated_s, impossible, left_s, sound
from core.records import Cell
from core.runs import Run
from ui import controls, launching, loaders, markdown, memory, panels

WHAT: tuple[Literal["backward", "forward", "step"], ...] = ("backward", "forward", "step")
FORMATS: tuple[Literal["float32", "bfloat16", "mixed"], ...] = ("float32", "bfloat16", "mixed")
LENGTHS = tuple(2**power for power in range(5, 14))
BATCHES = tuple(2**power for power in range(8))
FIRST = SweepConfig()


def which(found: Sequence[Run]) -> str | None:
    """The id of the sweep to look at, None for a new one."""
    return launching.which("memory", "measurement", launching.dated([run for run in found if run.sweep is not None]))


def choose() -> SweepConfig:
    """The sweep that a person describes. ValueError for one that cannot be."""
    backends = st.pills(
        "Kernels", list(BACKENDS), selection_mode="multi", default=FIRST.backends, key="memory_backends", wrap=True,
        bind="query-params",
        help="\n".join(f"- `{name}`: {backend.summary}" for name, backend in BACKENDS.items()),
    )  # fmt: skip
    with st.grid(2, min_column_width=340, gap="medium") as sizes:
        with sizes.cell():
            lengths = _numbers("Tokens of a review", LENGTHS, FIRST.lengths, "memory_lengths")
        with sizes.cell():
            batches = _numbers("Reviews at once", BATCHES, FIRST.batches, "memory_batches")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        what = st.segmented_control(
            "What runs", WHAT, default=FIRST.what, required=True, key="memory_what", bind="query-params",
            help="forward: the layers without gradients, as in prediction. backward: forward and backward. step: a whole step "
            "of training a classifier, with its embedding and AdamW.",
        )  # fmt: skip
        bilstm = st.toggle(
            "A BiLSTM beside", key="memory_bilstm", bind="query-params",
            help="As wide as the encoder: each direction has as many units as a token has numbers.",
        )  # fmt: skip
    shape = _shape()
    for name, values in {"number of tokens": lengths, "number of reviews": batches}.items():
        if not values:
            raise ValueError(f"choose at least one {name}")
    if not backends and not bilstm:
        raise ValueError("choose at least one kernel, or a BiLSTM")
    return SweepConfig(
        networks=(*(("encoder",) if backends else ()), *(("bilstm",) if bilstm else ())),
        backends=tuple(name for name in BACKENDS if name in backends) or FIRST.backends,
        lengths=tuple(sorted(lengths)),
        batches=tuple(sorted(batches)),
        what=what,
        **shape,
    )


def _numbers(label: str, numbers: Sequence[int], default: Sequence[int], key: str) -> list[int]:
    return st.pills(
        label, numbers, selection_mode="multi", default=default, format_func=str, key=key, wrap=True, bind="query-params"
    )  # an address has each number as the page writes it


def _shape() -> dict:
    """The network's size and format, folded: few people change them."""
    with st.expander("Size and format of the network"):
        fields = st.grid(6, min_column_width=140)
        values = {}
        for knob, label, low, high, help in (
            ("n_heads", "Heads", 1, 32, "Of each layer; each keeps T × T weights of its own."),
            ("d_head", "Size of a head", 8, 256, "Numbers that a token has in a head; a token has heads times these in all."),
            ("n_layers", "Layers", 1, 24, "One above the other; a BiLSTM has two at most."),
        ):
            with fields.cell():
                start, key = getattr(FIRST, knob), f"memory_{knob}"
                values[knob] = st.number_input(label, low, high, start, key=key, bind="query-params", help=help)
        with fields.cell():
            values["dtype"] = st.selectbox(
                "Format", FORMATS, key="memory_dtype", bind="query-params",
                help="Of weights and activations. mixed: float32 weights, bfloat16 arithmetic, as in training.",
            )  # fmt: skip
        with fields.cell():
            values["checkpointing"] = st.toggle(
                "Checkpointing", key="memory_checkpointing", bind="query-params",
                help="Each layer's activations are computed again in the backward pass rather than kept (arXiv:1604.06174).",
            )  # fmt: skip
        with fields.cell():
            values["device"] = _device()
    return values


def _device() -> Literal["auto", "cpu", "cuda"]:
    """Asked only where there is a choice."""
    if device_of("auto") == "cpu":
        return "cpu"
    return cast(Literal["cpu", "cuda"], st.segmented_control("Device", ["cuda", "cpu"], default="cuda", key="memory_device"))


def start(config: SweepConfig) -> None:
    """How long it will take, and the button. One form starts one run, however often it is pressed."""
    ahead = sum(run.is_alive for run in loaders.runs())
    every = cells(config)
    with st.container(horizontal=True, vertical_alignment="center"):
        asked = ("memory", launching.token("memory"), argv(config), memory.title(config), config)
        st.button("Measure", type="primary", icon=":material/speed:", on_click=launching.launch, args=asked)
        waits = (
            "" if not ahead else " once the run before it is over" if ahead == 1 else f" once the {ahead} runs before are over"
        )
        st.caption(f"{len(every)} cells, about {duration(estimated_s(config))}{waits}.", width="content")
    for reason in dict.fromkeys(f"{each.label}: {reason}" for each in every if (reason := impossible(each))):
        st.caption(markdown.literal(f"{reason}."))
    launching.refusal("memory")


def measured(run: Run) -> list[CellMeasured]:
    """What a sweep has measured until now: of each cell the last. ValueError for a backend that the catalogue lacks."""
    assert run.sweep is not None
    return sound(run.sweep, run.events)[0]


MISSING = {"queued": "not measured yet", "running": "not measured yet", "cancelled": "not measured: the run was stopped"}
"""Why a cell has no figures, by the state of its run."""


def missing(run: Run) -> str:
    """Why a cell of that run has no figures."""
    return MISSING.get(run.state, "not measured: the run ended before")


def follow(id: str) -> Run:
    """The sweep of that id, how it stands looked at again each second while its process lives. ValueError if there is none."""
    run = runs.read(id)
    if run.sweep is None:
        raise ValueError(f"the run {id!r} measures no memory")
    launching.watch(_look, run, len(measured(run)))
    left_out = sound(run.sweep, run.events)[1]
    if left_out and not controls.presenting():
        told = f"Left out, since it cannot have been measured so: {'; '.join(left_out)}. The run's file is damaged."
        st.warning(markdown.literal(told), icon=":material/report:")
    return run


def _look(id: str, state: run_folder.State, n_measured: int) -> None:
    """How the run stands; charts are drawn again when there is something new, and not each second."""
    with panels.refusals():
        run = runs.read(id)
        found = measured(run)
        if (run.state, len(found)) != (state, n_measured):
            st.rerun()
        _standing(run, found)


def _standing(run: Run, found: Sequence[CellMeasured]) -> None:
    assert run.sweep is not None
    every = cells(run.sweep)
    _said(run, every, found)
    if controls.presenting():
        return
    if launching.is_asked_to_stop(run):  # a button would stay for seconds beside the one to resume
        st.caption("Stopping: what has been measured is kept.")
    elif run.is_alive:
        launching.stop(run, f"memory_stop_{run.id}", "What has been measured is kept.")
    elif len(found) < len(every):
        launching.resume(run, f"memory_resume_{run.id}", "What has been measured is not measured again.")


def _said(run: Run, every: Sequence[Cell], found: Sequence[CellMeasured]) -> None:
    if run.state == "queued":
        launching.waiting(run)
    elif run.state == "running":
        done = len(found)
        left = f", about {duration(left_s(run.sweep, found))} left" if done < len(every) else ""
        st.progress(min(done / len(every), 1.0), f"{done} of {len(every)} cells measured{left}{_now(run, every, found)}")
    elif run.state == "cancelled":
        st.info(f"Stopped after {len(found)} of {len(every)} cells.", icon=":material/stop:")
    elif run.state != "succeeded":
        launching.ended(run)


def _now(run: Run, every: Sequence[Cell], found: Sequence[CellMeasured]) -> str:
    if not found and last(run.events, Ceilings) is None:
        return ": measuring what this machine reaches"
    done = {event.cell for event in found}
    now = next((each for each in every if each not in done), None)
    return "" if now is None else f": {now.label} at {now.length:,} tokens, batch {now.batch}, memory and then time"
