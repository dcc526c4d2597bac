"""What is shown of runs, and what a person may do with one: always to the run of an id, never to a row."""

from collections.abc import Mapping, Sequence

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from core import runs
from core.curves import Curve, last
from core.events import Failed, StepFinished
from core.figures.curves import AXES, overlaid
from core.runs import Run
from ui import compare, controls, export, launching, loaders, markdown, panels
from ui.ticking import ticking

SECONDS_BETWEEN_LOOKS = 2
UNDOABLE = 5
"""Deleted runs that the page offers to bring back; the trash holds all of them."""
MOST_LENGTHS = 5
"""Models that the page of lengths draws."""
NO_CURVE = Curve(steps=(), values=())
COLUMNS = {
    "created": st.column_config.DatetimeColumn("created (UTC)", format="D MMM YYYY, HH:mm"),
    "validation": st.column_config.NumberColumn(format="%.1f%%"),
    "test": st.column_config.NumberColumn(format="%.1f%%"),
    "training": st.column_config.NumberColumn(format="%,.1f s", help="Seconds of training proper: no start, no validation."),
    "parameters": st.column_config.NumberColumn(format="%,d"),
}


def no_runs() -> None:
    """Say how to get a run where there is none but those of the shipped models."""
    st.info("There is no run yet: train a network, and it is here as soon as it starts.")
    st.page_link("../pages/train.py", label="Train one", icon=":material/model_training:")


def table(found: Sequence[Run], baseline: Run | None) -> None:
    """All runs, which are looked at again every few seconds while one of them lives."""
    alive = any(run.is_alive for run in found)
    draw = ticking(_table, SECONDS_BETWEEN_LOOKS if alive else None)
    draw({run.id: run.state for run in found}, baseline)


def _table(known: Mapping[str, str], baseline: Run | None) -> None:
    found = loaders.runs()
    if {run.id: run.state for run in found} != known:
        st.rerun()  # what a run may be asked has changed, or there is another one: the whole page should say so
    # a reason needs room; without one, figures stand side by side
    state = st.column_config.TextColumn(width="large" if any(run.state == "failed" for run in found) else "medium")
    st.dataframe(
        compare.overview(found, baseline), hide_index=True, key="compare_table", column_config=COLUMNS | {"state": state},
        placeholder=compare.NO_VALUE,
    )  # fmt: skip


def deleted() -> None:
    """What was deleted in this session, and the way back."""
    gone: dict[str, str] = st.session_state.setdefault("compare_deleted", {})
    for id, name in list(gone.items())[-UNDOABLE:]:
        with st.container(horizontal=True, vertical_alignment="center"), panels.refusals():
            st.markdown(f"Deleted {markdown.literal(name)}.", width="content")
            if st.button("Undo", key=f"compare_undo_{id}"):
                runs.restore(id)
                del gone[id]
                st.rerun()


def one(run: Run, title: str) -> None:
    """A run by itself: why it failed, the end of its log, and what may be done with it."""
    label = f"{markdown.literal(title)}: {run.state}"
    with st.expander(label, expanded=run.state == "failed" or bool(run.problems), key=f"compare_run_{run.id}"):
        for problem in run.problems:
            st.warning(markdown.sentence(problem), icon=":material/warning:")
        if isinstance(run.last_event, Failed):
            st.error(markdown.sentence(run.last_event.reason), icon=":material/error:")
        if not run.is_run:
            st.caption(markdown.literal(_belongs(run)))
            return
        st.caption(markdown.literal(f"{run.name} in {run.folder}"))
        launching.printed(run)
        _rename(run)
        with panels.refusals():
            _act(run)


def _belongs(run: Run) -> str:
    """Why nothing can be done with it by itself."""
    if run.model == run.folder:
        return "This model came without its run: there is no log of it, and it cannot be renamed or deleted here."
    return f"Trained for the experiment {run.id.partition('/')[0]}, with which it is deleted."


def _rename(run: Run) -> None:
    with (
        st.form(f"compare_rename_{run.id}", border=False),
        st.container(horizontal=True, vertical_alignment="bottom"),
        panels.refusals(),
    ):
        name = st.text_input("Name", run.name, runs.NAME_LENGTH, key=f"compare_name_{run.id}", placeholder=run.id)
        if st.form_submit_button("Rename"):
            runs.rename(run.id, name)
            st.rerun()


def _act(run: Run) -> None:
    with st.container(horizontal=True):
        if run.is_alive:
            launching.stop(run, f"compare_stop_{run.id}", "It stores what it has, measures it and ends.")
        if launching.is_asked_to_stop(run):
            launching.end(run, f"compare_end_{run.id}", "What it has learned is lost.")
        if _button("Delete", run, "Into the trash, from where it can be brought back."):
            runs.delete(run.id)
            st.session_state["compare_deleted"] |= {run.id: run.name}
            st.rerun()


def _button(label: str, run: Run, help: str) -> bool:
    return st.button(label, key=f"compare_{label}_{run.id}", help=help)


def differences(chosen: Sequence[Run]) -> None:
    """The knobs in which the chosen runs differ."""
    st.subheader("What was set differently")
    knobs = compare.knobs(chosen)
    if knobs.empty:
        st.markdown("No knob differs." if len(chosen) > 1 else "Choose a second run to see what differs.")
    else:
        _wide(knobs, "compare_knobs", 230)
    unknown = [run for run in chosen if run.config is None and compare.kind(run) is None]
    if unknown:
        titles = compare.titles_of(chosen)
        st.caption(markdown.literal(f"The configuration of {', '.join(titles[run.id] for run in unknown)} is not on record."))


def _wide(frame: pd.DataFrame, key: str, width: int) -> None:
    """A table with a column for each run, all of one width in pixels."""
    columns = {name: st.column_config.TextColumn(width=width) for name in frame.columns}
    st.dataframe(frame, key=key, height="content", column_config=columns | {"_index": st.column_config.TextColumn(width=175)})


def figures(chosen: Sequence[Run], baseline: Run) -> None:
    """Figures of the chosen runs against the baseline, and which of the differences are more than chance."""
    warning = compare.other_reviews(chosen)
    if warning:
        st.warning(markdown.literal(warning), icon=":material/warning:")
    _wide(compare.figures(chosen, baseline), "compare_figures", 230)
    for sentence in compare.findings(chosen, baseline, loaders.paired):
        st.markdown(markdown.literal(sentence))
    st.caption(markdown.literal(" ".join(_notes(chosen))))
    _closer(chosen, baseline)


def _closer(chosen: Sequence[Run], baseline: Run) -> None:
    """Where these figures are looked at more closely, with the baseline first."""
    runs = sorted((run for run in chosen if run.model is not None), key=lambda run: run.id != baseline.id)
    names = [compare.model_name(run) for run in runs]
    if not names:
        return
    disagreeing = {"reviews_which": "the models disagree" if len(names) > 1 else "wrong answers"}
    with st.container(horizontal=True, gap="medium"):
        st.page_link(
            "../pages/lengths.py", label="Accuracy by length of the review", icon=":material/straighten:",
            query_params={"lengths_models": names[:MOST_LENGTHS]},
        )  # fmt: skip
        st.page_link(
            "../pages/reviews.py", label="The reviews behind these figures", icon=":material/rate_review:",
            query_params={"reviews_models": names[:2]} | disagreeing,
        )  # fmt: skip
        st.page_link(
            "../pages/calibration.py", label="How far their confidence can be trusted", icon=":material/balance:",
            query_params={"calibration_models": names[:MOST_LENGTHS]},
        )  # fmt: skip


def _notes(chosen: Sequence[Run]) -> list[str]:
    """How the figures are to be read."""
    notes = [
        "Accuracies are of the stored weights, with Wilson's 95% interval and the number of reviews; differences in points and "
        "ratios are to the baseline. Whether a run is better is decided on the reviews that it alone or the baseline alone "
        "gets right (McNemar's exact test, Holm's correction where several are compared); the 95% interval of "
        "accuracy is Tango's score interval, that of F1 a paired bootstrap over the same reviews, both uncorrected. Memory is "
        "the most that the process held while it trained and was measured."
    ]
    machines = compare.machines(chosen)
    return [*notes, machines] if machines else notes


def curves(chosen: Sequence[Run]) -> dict[str, go.Figure]:
    """How the chosen runs went, on one range of steps; returns what is drawn, by its title."""
    st.subheader("How training went")
    titles = compare.titles_of(chosen)
    found = {titles[run.id]: loaders.curves(run) for run in chosen}
    silent = [title for title, own in found.items() if not own]
    if silent:
        st.caption(markdown.literal(f"No course of training is on record for {', '.join(silent)}."))
    steps = controls.steps(max(map(_last_step, chosen)), "compare_steps")
    step_name = "fit" if all(run.step_name == "fit" for run in chosen) else "step"
    cells, drawn = st.grid(2, min_column_width=320, gap="medium"), {}
    for name, (y_title, y_format) in AXES.items():
        own = {title: of.get(name, NO_CURVE) for title, of in found.items()}  # which keeps each run's colour
        if any(name in of for of in found.values()):
            title = f"{y_title} over the {step_name}s"
            drawn[title] = overlaid(own, y_title, y_format, steps, step_name)
            with cells.cell():
                panels.chart(drawn[title], key=f"compare_{name}", alt=title)
    return drawn


def take_away(chosen: Sequence[Run], baseline: Run, charts: Mapping[str, go.Figure]) -> None:
    """All that is shown of the chosen runs as files: what was set differently above what came of it."""
    found = export.Export(
        title=f"Runs against {compare.titles_of(chosen)[baseline.id]}",
        table=pd.concat([compare.knobs(chosen), compare.figures(chosen, baseline)]).rename_axis("what"),
        of=export.of_runs(chosen),
        said=compare.findings(chosen, baseline, loaders.paired),
        charts=charts,
        notes=_notes(chosen),
    )
    export.downloads(found, "compare_chosen")


def take_list_away(found: Sequence[Run], baseline: Run | None) -> None:
    """The table of all runs as files."""
    with st.popover("Download the list", icon=":material/download:"):
        units = {"training": "training s", "test": "test %", "validation": "validation %"}
        listed = compare.overview(found, baseline).rename(columns=units)
        export.downloads(export.Export(title="All runs", table=listed, of=export.of_runs(found)), "compare_list")


def _last_step(run: Run) -> int:
    """The step at which a run's curves end, or will."""
    step = last(run.events, StepFinished)
    return 0 if step is None else step.total_steps
