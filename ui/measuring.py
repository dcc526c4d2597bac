"""A sweep of measurements: what a person chooses before it, how it stands while it goes, and what came of it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, cast

import streamlit as st

from core import jobs, runs
from core.catalog import BACKENDS
from core.config import LONGEST, SweepConfig
from core.figures.labels import duration
from core.figures.memory import memory_by_length, memory_on_cards, time_by_length
from core.jobs import device_of
from core.measure.command import argv
from core.measure.sweep import cells, estimated_s, impossible
from core.records import CellMeasured, Failed
from core.runs import Run
from ui import controls, launching, loaders, markdown, memory, panels

NEW = "/new"
"""No run can be called so: a folder's name has no slash."""
PASSES: tuple[Literal["backward", "forward"], ...] = ("backward", "forward")
FORMATS: tuple[Literal["float32", "bfloat16"], ...] = ("float32", "bfloat16")
LENGTHS = tuple(2**power for power in range(5, 14))
SECONDS_BETWEEN_LOOKS = 1.0
COLUMNS = {
    "predicted MiB": st.column_config.NumberColumn(format="%,.1f"),
    "measured MiB": st.column_config.NumberColumn(format="%,.1f"),
    "prediction is off by": st.column_config.NumberColumn(format="%+.1f%%"),
    "median ms": st.column_config.NumberColumn(format="%,.2f"),
    "spread ms": st.column_config.NumberColumn(format="%,.2f", help="From the fastest run to the slowest."),
}


def which(found: Sequence[Run]) -> str | None:
    """The id of the sweep to look at, None for a new one. The URL holds it, so that it is found again after all."""
    sweeps = [run for run in found if run.sweep is not None]
    titles = {NEW: "A new measurement"} | {run.id: f"{run.created:%d %b %H:%M} · {run.name}" for run in sweeps}
    asked = st.query_params.get("memory_run")
    if asked and asked not in titles:
        st.error(markdown.literal(f"There is no measurement {asked!r} here; it may have been deleted."), icon=":material/info:")
    chosen = controls.one("Measurement", titles, "memory_run") if len(titles) > 1 else NEW
    return None if chosen == NEW else chosen


def choose() -> SweepConfig:
    """The sweep that a person describes. ValueError for one that cannot be."""
    first = SweepConfig()
    lengths = st.pills(
        "Tokens",
        LENGTHS,
        selection_mode="multi",
        default=first.lengths,
        format_func="{:,}".format,
        key="memory_lengths",
        bind="query-params",
    )
    backends = st.pills(
        "Kernels", list(BACKENDS), selection_mode="multi", default=first.backends, key="memory_backends", bind="query-params"
    )
    fields = st.grid(6, min_column_width=130)
    with fields.cell():
        what = st.selectbox(
            "Pass", PASSES, key="memory_what", bind="query-params",
            help="backward: forward and backward, as in training. forward: without gradients, as in prediction.",
        )  # fmt: skip
    numbers = {}
    for knob, label, low, high, start in (
        ("batch", "Batch", 1, 128, first.batches[0]),
        ("n_heads", "Heads", 1, 32, first.n_heads),
        ("d_head", "Size of a head", 8, 256, first.d_head),
        ("n_layers", "Layers", 1, 24, first.n_layers),
    ):
        with fields.cell():
            numbers[knob] = st.number_input(label, low, high, start, key=f"memory_{knob}", bind="query-params")
    with fields.cell():
        dtype = st.selectbox("Format", FORMATS, key="memory_dtype", bind="query-params", help="Of weights and activations.")
    if not lengths:
        raise ValueError("choose at least one number of tokens")
    if not backends:
        raise ValueError("choose at least one kernel")
    return SweepConfig(
        backends=tuple(name for name in BACKENDS if name in backends),
        lengths=tuple(sorted(lengths)),
        what=what,
        dtype=dtype,
        device=_device(),
        batches=(numbers.pop("batch"),),
        **numbers,
    )


def _device() -> Literal["auto", "cpu", "cuda"]:
    """Asked only where there is a choice."""
    if device_of("auto") == "cpu":
        return "cpu"
    return cast(Literal["cpu", "cuda"], st.segmented_control("Device", ["cuda", "cpu"], default="cuda", key="memory_device"))


def start(config: SweepConfig) -> None:
    """How long it will take, and the button. One form starts one run, however often it is pressed."""
    ahead = sum(run.is_alive for run in loaders.runs())
    with st.container(horizontal=True, vertical_alignment="center"):
        asked = ("memory", launching.token("memory"), argv(config), memory.title(config), config)
        st.button("Measure", type="primary", icon=":material/speed:", on_click=launching.launch, args=asked)
        waits = (
            "" if not ahead else " once the run before it is over" if ahead == 1 else f" once the {ahead} runs before are over"
        )
        st.caption(f"{len(cells(config))} cells, about {duration(estimated_s(config))}{waits}.", width="content")
    for reason in dict.fromkeys(f"{each.backend}: {reason}" for each in cells(config) if (reason := impossible(each))):
        st.caption(markdown.literal(f"{reason}."))
    launching.refusal("memory")


def follow(id: str) -> None:
    """The sweep of that id, looked at again each second while its process lives. ValueError if there is no such sweep."""
    run = runs.read(id)
    if run.sweep is None:
        raise ValueError(f"the run {id!r} measures no memory")
    measured = _measured(run)
    st.fragment(_look, run_every=SECONDS_BETWEEN_LOOKS if run.is_alive else None)(id, run.state, len(measured))
    if measured:
        show(run.sweep, measured, MISSING.get(run.state, "not measured: the run ended before"))
        cards(run.sweep)
    if run.command is not None:
        st.caption("The exact command:")
        st.code(run.command, language="bash", wrap_lines=True)


def _measured(run: Run) -> list[CellMeasured]:
    return [event for event in run.events if isinstance(event, CellMeasured)]


def _look(id: str, state: jobs.State, n_measured: int) -> None:
    """How the run stands; charts are drawn again when there is something new, and not each second."""
    with panels.refusals():
        run = runs.read(id)
        measured = _measured(run)
        if (run.state, len(measured)) != (state, n_measured):
            st.rerun()
        _standing(run, measured)


MISSING = {"queued": "not measured yet", "running": "not measured yet", "cancelled": "not measured: the run was stopped"}
"""Why a cell has no figures, by the state of its run."""


def _standing(run: Run, measured: Sequence[CellMeasured]) -> None:
    assert run.sweep is not None
    every = cells(run.sweep)
    if run.state == "queued":
        launching.waiting(run)
    elif run.state == "running":
        done = len(measured)
        now = f": {every[done].backend} at {every[done].length:,} tokens, memory and then time" if done < len(every) else ""
        st.progress(min(done / len(every), 1.0), f"{done} of {len(every)} cells measured{now}")
    elif run.state == "cancelled":
        st.info(f"Stopped after {len(measured)} of {len(every)} cells.", icon=":material/stop:")
    elif run.state != "succeeded":
        reason = run.last_event.reason if isinstance(run.last_event, Failed) else "its process ended without a word"
        st.error(markdown.literal(f"The run is {run.state}: {reason}."), icon=":material/error:")
        launching.printed(run)
    if run.is_alive:
        launching.stop(run, f"memory_stop_{run.id}", "What has been measured is kept.")


def show(config: SweepConfig, measured: Sequence[CellMeasured], missing: str = "not measured yet") -> None:
    """Both charts, what they say, and all figures."""
    log = st.toggle("Logarithmic axes", value=True, key="memory_log", bind="query-params")
    said = memory.findings(config, measured) or [memory.prediction_finding(config)]
    for sentence in (sentence for sentence in said if sentence):
        st.markdown(markdown.literal(sentence))
    with st.grid(2, min_column_width=340, gap="medium") as charts:
        with charts.cell():
            st.subheader("Peak memory", anchor=False)
            figure = memory_by_length(memory.predicted(config), measured, log=log)
            panels.chart(figure, key="memory_chart", alt="Peak memory by number of tokens, predicted and measured")
        with charts.cell():
            st.subheader("Time", anchor=False)
            if any(event.median_s for event in measured):
                figure = time_by_length(config.backends, measured, log=log)
                panels.chart(figure, key="memory_time", alt="Time by number of tokens, measured")
            else:
                st.info("Time is measured, never predicted: nothing has been measured yet.")
    machines = dict.fromkeys(event.hardware for event in measured if event.hardware)
    on = f" Measured on {', '.join(machines)}." if machines else ""
    st.caption(
        markdown.literal(
            "Dotted lines are predicted by counting tensors, points are measured, each in a process of its own. Memory is "
            "weights, input, activations and gradients of the encoder layers; time is the median of five runs and more, its "
            f"bar the spread between them.{on}"
        )
    )
    if measured:
        frame = memory.table(config, measured, missing)
        st.dataframe(frame, hide_index=True, key="memory_table", column_config=COLUMNS, placeholder="n/a")


def cards(config: SweepConfig) -> None:
    """Up to which length a cell fits on cards that are not here, as predicted."""
    st.subheader("Where it stops fitting", anchor=False)
    on_cards = memory.predicted(replace(config, device="cuda"), LONGEST)
    panels.chart(
        memory_on_cards(on_cards, memory.card_lines()),
        key="memory_cards",
        alt="Predicted peak memory against what graphics cards have",
    )
    st.dataframe(memory.cards(config), hide_index=True, key="memory_card_table")
    st.caption(
        "All predicted: the longest reviews, in tokens, that fit at this batch; a card's memory is its datasheet's. The counts "
        "were held against measurements on a CPU, and leave out what a driver and a kernel's workspace take. Time on a card is "
        "not predicted: measure it there."
    )
