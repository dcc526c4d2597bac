"""What a sweep shows: its sentence and two charts, and behind tabs the reasons, what fits elsewhere and all figures."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from urllib.parse import urlencode

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from core.config import LONGEST, SweepConfig
from core.events import CellMeasured
from core.figures.frame import projected
from core.figures.memory import UNITS, Kept, breakdown, memory_along, memory_on_cards, score_matrices, time_along
from core.figures.roofline import roofline
from core.measure.kernels import TILE
from core.measure.sweep import reached
from core.measure.tables import MEMORY, TIME, points
from core.runs import Run
from ui import controls, export, markdown, memory, memory_why, panels, recorded
from ui.memory import Along

HOW = (
    "Dotted lines are predicted, by counting tensors; points are measured, each in a process of its own. Time is the median of "
    "five runs or more, and its bar is as long as the slowest run took longer than the fastest. A ring means no verdict: the "
    "point and eager's are as far apart as their own runs are, or less, so that the bars touch; or others used more than "
    "a tenth of the machine meanwhile."
)
KEPT = "Dashed lines were recorded, on the machine and day that they name; nothing of them was measured now."
NUMBERS = {
    "predicted MiB": "{:,.1f}", "measured MiB": "{:,.1f}", "live tensors MiB": "{:,.1f}", "reserved MiB": "{:,.1f}",
    "prediction is off by": "{:+.1f}%", "median ms": "{:,.2f}", "spread ms": "{:,.2f}", "attention alone ms": "{:,.2f}",
    "runs": "{:.0f}", "others used": "{:.0f}%",
}  # fmt: skip
"""How the columns of figures are written."""
HELP = {
    "live tensors MiB": "A second source on a CPU, counted by operator.",
    "reserved MiB": "What PyTorch took of a GPU, with what it keeps spare.",
    "spread ms": "From the fastest run to the slowest.",
    "attention alone ms": "The kernel on queries, keys and values of all layers, without the layers around it.",
    "others used": "What other processes had of the machine's CPU time meanwhile.",
}
COLUMNS = {
    name: st.column_config.NumberColumn(format=form.replace("%", "%%").replace("{:", "%").replace("}", ""), help=HELP.get(name))
    for name, form in NUMBERS.items()
}


def along(config: SweepConfig) -> Along:
    """What the charts go along; asked only where a sweep has several lengths and several batches."""
    asked, silent = st.query_params, controls.presenting()
    over, at = ("length", config.batches) if len(config.lengths) > 1 or len(config.batches) == 1 else ("batch", config.lengths)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        if len(config.lengths) > 1 and len(config.batches) > 1:
            units = list(UNITS.values())
            unit = asked.get("present_over") if silent else st.segmented_control(
                "Charts go along", units, default=units[0], required=True, key="memory_over", bind="query-params"
            )  # fmt: skip
            over = "batch" if unit == UNITS["batch"] else "length"
            at = config.batches if over == "length" else config.lengths
        if len(at) == 1:
            return Along(over=over, at=at[0])
        label, key = ("Reviews at once", "memory_at_batch") if over == "length" else ("Tokens of a review", "memory_at_length")
        options, shown = sorted(at), key.replace("memory_", "present_")
        if silent:
            return Along(over=over, at=next((n for n in options if str(n) == asked.get(shown)), options[-1]))
        return Along(over=over, at=st.selectbox(label, options, len(options) - 1, key=key, bind="query-params", width=200))


def charts(config: SweepConfig, measured: Sequence[CellMeasured], run: Run | None) -> Along:
    """The sentence and both charts; returns what they go along."""
    chosen = along(config)
    here = chosen.here(measured)
    say = st.title if controls.presenting() else st.subheader
    say(markdown.literal(memory.headline(config, chosen, here)), anchor=False)
    log = _look(run)
    with st.grid(2, min_column_width=340, gap="medium") as places:
        for name, figure in figures(config, chosen, here, log).items():
            with places.cell():
                st.markdown(f"**{name}**")
                _draw(name, figure, chosen)
        if not any(event.median_s for event in here) and not _kept(config, chosen, TIME):
            with places.cell():
                st.markdown("**Time**")
                st.info("Time is measured, never predicted: nothing has been measured yet.")
    return chosen


def _look(run: Run | None) -> bool:
    """Whether axes are logarithmic, and the way to the view for a projector."""
    if controls.presenting():
        return st.query_params.get("present_log") != "false"
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        log = st.toggle("Logarithmic axes", value=True, key="memory_log", bind="query-params")
        if run is not None:
            st.link_button(
                "Present", f"?{urlencode(_presented(run))}", icon=":material/present_to_all:",
                help="Large charts and one sentence in a tab of their own, for a projector.",
            )  # fmt: skip
    return log


def _presented(run: Run) -> dict[str, str]:
    """The address of the same for a projector, under names of no widget, which would leave it with the widget."""
    looked_at = {name: st.query_params.get(f"memory_{name}") for name in ("over", "at_batch", "at_length", "log")}
    kept = {f"present_{name}": value for name, value in looked_at.items() if value is not None}
    return kept | {"memory_run": run.id, "present": "1"}


def figures(config: SweepConfig, chosen: Along, here: Sequence[CellMeasured], log: bool) -> dict[str, go.Figure]:
    """The charts by their titles; time only where some was measured or recorded."""
    kept, predicted = _kept(config, chosen, MEMORY), memory.predicted(config, chosen)
    found = {"Peak memory": memory_along(chosen.over, predicted, here, kept, log=log)}
    kept = _kept(config, chosen, TIME)
    if kept or any(event.median_s for event in here):
        unsure = memory.unsure(config, chosen, here)
        found["Time"] = time_along(chosen.over, memory.labels(config), here, kept, unsure=unsure, log=log)
    return found


def _kept(config: SweepConfig, chosen: Along, table: str) -> Kept:
    """What was recorded of such cells."""
    return memory.kept(config, chosen, points(recorded.found()[0], table))


def _draw(name: str, figure: go.Figure, chosen: Along) -> None:
    shown = projected(figure) if controls.presenting() else figure
    panels.chart(shown, key=f"memory_chart_{name}", alt=f"{name} by {UNITS[chosen.over]}, predicted and measured")


def notes(config: SweepConfig, chosen: Along, measured: Sequence[CellMeasured]) -> list[str]:
    """How to read the figures, and on what they were measured."""
    machines = dict.fromkeys(event.hardware for event in measured if event.hardware)
    dashed = any(_kept(config, chosen, table) for table in (MEMORY, TIME))
    return [HOW, *[KEPT] * dashed, *[f"Measured on {', '.join(machines)}."] * bool(machines)]


def below(config: SweepConfig, measured: Sequence[CellMeasured], chosen: Along, run: Run | None, missing: str) -> None:
    """Everything else, one tab open at a time."""
    _listed(memory.findings(config, chosen, measured))
    st.caption(markdown.literal(" ".join(notes(config, chosen, measured))))
    parts = {
        "Why": partial(why, config, measured, chosen, run),
        "Where the bytes are": partial(bytes_by_part, config, chosen),
        "What fits": partial(cards, config, measured, chosen),
        "All figures": partial(all_figures, config, measured, chosen, run, missing),
        "Recorded": recorded.show,
    }
    for tab, draw in zip(st.tabs(list(parts), key="memory_tab", bind="query-params"), parts.values(), strict=True):
        if tab.open:
            with tab, panels.refusals():
                draw()


def _listed(sentences: Sequence[str]) -> None:
    if sentences:
        st.markdown("\n".join(f"- {markdown.literal(sentence)}" for sentence in sentences))


def why(config: SweepConfig, measured: Sequence[CellMeasured], chosen: Along, run: Run | None) -> None:
    """The matrix that naive attention keeps, and the bytes that it moves."""
    st.markdown(f"**What a head keeps of one review**: {markdown.literal(memory_why.matrix_sentence(config, chosen))}")
    panels.chart(score_matrices(config.lengths, TILE), key="memory_matrices", alt="The weights of a head, drawn to scale")
    st.caption(
        "To scale, in float32. Naive attention keeps a square for each head, review and layer; flash attention works on tiles, "
        f"such as the filled one of {TILE} × {TILE}, and keeps none."
    )
    place = chosen.places(config)[-1]
    work = memory_why.work(config, chosen, place)
    if not work:
        return
    st.markdown(f"**What attention moves** at {chosen.named(place)}: {markdown.literal(memory_why.work_sentence(work))}")
    ceilings = None if run is None else reached(run.events)
    if ceilings is not None:
        each = {label: (one.operations, one.bytes_moved) for label, one in work.items()}
        figure = roofline(each, ceilings, memory_why.attention_s(chosen, place, measured))
        alt = "Operations a second that attention could reach on each kernel, and that it reached"
        panels.chart(figure, key="memory_roofline", alt=alt)
    st.dataframe(memory_why.work_table(work, ceilings, chosen, place, measured), hide_index=True, key="memory_work")
    st.caption(markdown.literal(memory_why.work_note(ceilings, chosen, place, measured)))


def bytes_by_part(config: SweepConfig, chosen: Along) -> None:
    """What a predicted peak consists of."""
    place = st.select_slider(
        UNITS[chosen.over].capitalize(), chosen.places(config), chosen.places(config)[-1], format_func="{:,}".format,
        key=f"memory_part_{chosen.over}",
    ) if len(chosen.places(config)) > 1 else chosen.places(config)[0]  # fmt: skip
    parts = memory_why.parts(config, chosen, place)
    if not parts:
        st.info("None of these kernels is understood well enough to be predicted.")
        return
    panels.chart(breakdown(parts), key="memory_parts", alt="Parts of the predicted peak memory of each kernel")
    st.caption(f"Predicted at {chosen.named(place)}: the tensors that are in memory at the moment of the peak.")


def cards(config: SweepConfig, measured: Sequence[CellMeasured], chosen: Along) -> None:
    """Up to which batch and length a cell fits here and on cards that are not here, as predicted."""
    length = max(config.lengths) if chosen.over == "length" else chosen.at
    st.markdown(f"**The largest batch** at {length:,} tokens, predicted, and by a rule of thumb")
    st.dataframe(memory_why.largest_batches(config, length), hide_index=True, key="memory_batches_table")
    _listed(memory_why.batches_measured(config, length, measured))
    st.caption(
        "The rule is (memory - 1 GB) / (T × d_model × 8 × 4), as a tutorial gives it: it knows no layer, no head and no kernel."
    )
    batch = chosen.at if chosen.over == "length" else max(config.batches)
    st.markdown(f"**The longest review** at {batch:,} at once, predicted")
    on_cards = memory.predicted(replace(config, device="cuda"), Along(over="length", at=batch), LONGEST)
    levels = memory.card_lines()
    panels.chart(memory_on_cards(on_cards, levels), key="memory_cards", alt="Predicted peak memory against what cards have")
    st.dataframe(memory.cards(config, chosen), hide_index=True, key="memory_card_table")
    st.caption(
        "All predicted, none measured there; a card's memory is its datasheet's. The counts were held against measurements on "
        "a CPU; what kernels work in on a GPU is counted from PyTorch's sources, and what a driver takes is left out. Time on "
        "a card is not predicted: measure it there."
    )


def all_figures(config: SweepConfig, measured: Sequence[CellMeasured], chosen: Along, run: Run | None, missing: str) -> None:
    """The table, and all to take away."""
    frame = memory.table(config, measured, missing)
    st.dataframe(frame, hide_index=True, key="memory_table", column_config=COLUMNS, placeholder="n/a")
    found = taken(config, measured, chosen, run, frame)
    export.downloads(found, "memory_cells")
    st.caption(f"{markdown.literal(memory.title(config))}. This page's address finds it again.")
    if found.command:
        st.caption("The exact command:")
        st.code(found.command, language="bash", wrap_lines=True)


def taken(
    config: SweepConfig, measured: Sequence[CellMeasured], chosen: Along, run: Run | None, frame: pd.DataFrame
) -> export.Export:
    """The same as files, without the columns that say nothing."""
    here = chosen.here(measured)
    return export.Export(
        title=f"Attention: {memory.title(config)}",
        table=frame.dropna(axis="columns", how="all"),
        of=["Predicted, nothing measured." if run is None else f"Run {run.id}: {memory.title(config)}."],
        said=[memory.headline(config, chosen, here), *memory.findings(config, chosen, here)],
        charts=figures(config, chosen, here, log=True),
        notes=notes(config, chosen, measured),
        command=(run and run.command) or "",
    )
