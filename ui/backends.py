"""One model through every attention kernel: what a person chooses before it, how it stands, and what came of it."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from core import runs
from core.artifact import model_folders
from core.catalog import BACKENDS
from core.config import BackendsConfig, EncoderArchitecture
from core.events import BackendMeasured
from core.figures.backends import UNITS, bars
from core.measure.command import backends_argv
from core.measure.others import disturbance
from core.run_folder import State
from core.runs import Run
from ui import controls, export, launching, loaders, markdown, panels

SIZES = (16, 32, 64, 128, 256)
NOTES = (
    "Each kernel reads the same test reviews in float32 in processes of its own, one for time and one for memory. Difference: "
    "the largest between any logit and that of eager. Time: median of five readings or more; whiskers are the spread."
)
COLUMNS = {name: st.column_config.NumberColumn(format="%,.1f") for name in ("time, ms", "spread, ms", "peak memory, MiB")}


def which(found: Sequence[Run]) -> str | None:
    """The id of the comparison to look at, None for a new one."""
    return launching.which("backends", "comparison", launching.dated([run for run in found if run.backends is not None]))


def start() -> None:
    """Which model and how many of its test reviews, and the button."""
    offered = {name: title for name, title in loaders.model_titles().items() if _may_attend(name)}
    if not offered:
        raise ValueError("none of these models is a Transformer, and no other has attention kernels; train one first")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        name = controls.one("Model", offered, "backends_model")
        n = st.select_slider("Test reviews", SIZES, 64, key="backends_n", bind="query-params", width=260)
    config = BackendsConfig(model=str(model_folders()[name]), n=n)
    title = f"{loaders.model_title(name)} through every kernel"
    asked = ("backends", launching.token("backends"), backends_argv(config), title, config)
    st.button("Compare", type="primary", icon=":material/play_arrow:", on_click=launching.launch, args=asked)


def _may_attend(name: str) -> bool:
    """Whether a model is a Transformer, or nothing is on record of what it is."""
    config = runs.read_model(model_folders()[name]).config
    return config is None or isinstance(config.model, EncoderArchitecture)


def follow(id: str) -> None:
    """The comparison of that id, looked at again each second while its process lives. ValueError if there is none."""
    run = runs.read(id)
    if run.backends is None:
        raise ValueError(f"the run {id!r} compares no kernels")
    launching.watch(_look, run, len(measured(run)))
    found = measured(run)
    if found:
        _outcome(run, found)


def measured(run: Run) -> list[BackendMeasured]:
    """What is known of each kernel until now, in the order of the catalogue; of one that was measured twice the last."""
    found = {event.backend: event for event in run.events if isinstance(event, BackendMeasured)}
    return [found[name] for name in BACKENDS if name in found]


def _look(id: str, state: State, n_measured: int) -> None:
    with panels.refusals():
        run = runs.read(id)
        if (run.state, len(measured(run))) != (state, n_measured):
            st.rerun()
        _standing(run, n_measured)


def _standing(run: Run, n_measured: int) -> None:
    if run.state == "queued":
        launching.waiting(run)
    elif run.state == "running":
        st.progress(n_measured / len(BACKENDS), f"{n_measured} of {len(BACKENDS)} kernels have been tried")
    elif run.state == "cancelled":
        st.info(f"Stopped after {n_measured} of {len(BACKENDS)} kernels.", icon=":material/stop:")
    elif run.state != "succeeded":
        launching.ended(run)
    if run.is_alive:
        launching.stop(run, f"backends_stop_{run.id}", "What has been measured is kept.")
    elif run.state != "succeeded":
        launching.resume(run, f"backends_resume_{run.id}", "What has been measured is not measured again.")


def _outcome(run: Run, found: Sequence[BackendMeasured]) -> None:
    disturbed = disturbance(*found)
    said = [finding(found), *([f"{disturbed}, so that these times settle nothing"] if disturbed else [])]
    for sentence in said:
        st.markdown(markdown.sentence(sentence))
    charts = {cost.capitalize(): bars(found, cost) for cost in UNITS}
    for place, (name, chart) in zip(st.columns(2), charts.items(), strict=True):
        with place:
            panels.chart(chart, key=f"backends_{name.replace(' ', '_')}", alt=f"{name} of each kernel")
    table = frame(found)
    st.dataframe(table, hide_index=True, key="backends_table", placeholder="n/a", column_config=COLUMNS)
    st.caption(NOTES)
    export.downloads(
        export.Export(
            title=run.name, table=table, of=[f"{found[0].n:,} test reviews, {found[0].hardware or 'nothing measured'}."],
            said=said, charts=charts, notes=[NOTES], command=run.command or "",
        ),
        key="backends_table",
    )  # fmt: skip


def finding(found: Sequence[BackendMeasured]) -> str:
    """Whether the kernels agree, a sentence without full stop."""
    known = [event for event in found if event.largest_difference is not None]
    if len(known) < 2:
        return "no second kernel has answered yet"
    largest = max(event.largest_difference or 0.0 for event in known)
    changed = [f"{event.backend} changes {event.changed} of {event.n:,} answers" for event in known if event.changed]
    answers = "; ".join(changed) or f"no answer to {known[0].n:,} reviews changes"
    return f"{answers}; logits of {len(known)} kernels differ by {largest:.1e} at most"


def frame(found: Sequence[BackendMeasured]) -> pd.DataFrame:
    """A row for each kernel; what could not be measured says why."""
    return pd.DataFrame({
        "kernel": [event.backend for event in found],
        "largest difference of a logit": [None if (d := event.largest_difference) is None else f"{d:.2g}" for event in found],
        "answers changed": pd.array([event.changed for event in found], dtype="Int64"),
        "time, ms": [None if event.median_s is None else round(1e3 * event.median_s, 1) for event in found],
        "spread, ms": [None if event.spread_s is None else round(1e3 * event.spread_s, 1) for event in found],
        "peak memory, MiB": [None if event.peak_bytes is None else round(event.peak_bytes / 2**20, 1) for event in found],
        "why not": [event.why_not for event in found],
        "operator that ran": [event.kernel for event in found],
    })  # fmt: skip
