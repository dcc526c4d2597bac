"""Results that were measured elsewhere or before, as benchmarks/ keeps them: each with its hardware, date and command."""

import pandas as pd
import streamlit as st

from core import recorded
from core.jobs import ROOT
from core.recorded import Recorded, Table
from ui import controls, markdown

FOLDER = ROOT / "benchmarks"


def found() -> tuple[list[Recorded], list[str]]:
    """All of benchmarks/, the newest first; and why files are passed over."""
    passed_over: list[str] = []
    return recorded.read(FOLDER, passed_over.append), passed_over


def show() -> None:
    """One result after another, as a person chooses."""
    results, passed_over = found()
    for note in passed_over:
        st.warning(markdown.literal(f"{note}."), icon=":material/warning:")
    if not results:
        st.info("Nothing is recorded in benchmarks/.")
        return
    titles = {str(number): f"{one.title} · {one.hardware} · {one.date}" for number, one in enumerate(results)}
    one = results[int(controls.one("Recorded results", titles, "memory_recorded"))]
    st.caption(markdown.literal(origin(one)))
    for note in one.notes:
        st.markdown(markdown.literal(note))
    for table in one.tables:
        st.markdown(f"**{markdown.literal(table.name[:1].upper() + table.name[1:])}**")
        st.markdown(markdown.literal(table.caption))
        st.dataframe(frame(table), hide_index=True)
    st.code(one.command, language="bash", wrap_lines=True)


def origin(one: Recorded) -> str:
    """On what and when it was recorded."""
    seed = "" if one.seed is None else f", seed {one.seed}"
    return f"Recorded on {one.hardware}, {one.date}, with {', '.join(one.versions)}{seed}."


def frame(table: Table) -> pd.DataFrame:
    """A table with three digits of each figure, its units in the headings."""
    rows = [[recorded.shown(value) for value in row] for row in table.rows]
    return pd.DataFrame(rows, columns=[column.heading for column in table.columns])
