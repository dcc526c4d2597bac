"""What a page shows, to take away: its table as CSV and Markdown, and with its charts and sentences as one HTML file."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from urllib.parse import urlencode

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from core.artifact import model_folders
from core.evaluation.writing import csv_for_excel, free_name, inert
from core.figures import report
from core.runs import Run
from ui import compare, loaders, panels


@dataclass(frozen=True, kw_only=True)
class Export:
    """What is taken away; every text is data, and is escaped where it is written."""

    title: str
    table: pd.DataFrame
    """As it is shown; an index that has a name is a column, too. Columns of `panels.PERCENT` get the sign into their names."""
    of: Sequence[str]
    """What the figures are of, a sentence each: `of_runs` or `of_models` for runs, data, seeds and n."""
    said: Sequence[str] = ()
    """The findings, a sentence each."""
    charts: Mapping[str, go.Figure] = field(default_factory=dict)
    """By their headings."""
    notes: Sequence[str] = ()
    """How to read the figures."""
    command: str = ""
    """The exact command that made them, where one did."""


def downloads(found: Export, key: str, *, csv: bool = True) -> None:
    """A button for each format; files are made when one is pressed.

    `key` begins with the page's name and is that of no other table: buttons and files are called by it. `csv`: whether to
    offer that, too, where the page has none of its own.
    """
    view = address()
    formats = (
        ("CSV", as_csv, "csv", "text/csv"), ("Markdown", as_markdown, "md", "text/markdown"),
        ("HTML", as_html, "html", "text/html"),
    )  # fmt: skip
    with st.container(horizontal=True):
        for name, make, suffix, mime in formats[0 if csv else 1 :]:
            file = f"attention-lab-{key.replace('_', '-')}.{suffix}"
            button(f"Download {name}", partial(make, found, view), file, mime, f"{key}_{suffix}")


def button(label: str, make: Callable[[], str | bytes], file: str, mime: str, key: str) -> None:
    """Takes away what `make` makes, once it is pressed."""
    # a click that drew the page anew would take another file away before it has been made
    st.download_button(label, make, file, mime, key=key, icon=":material/download:", on_click="ignore")


def of_runs(runs: Sequence[Run]) -> list[str]:
    """What figures of these runs are of: of each its network, its data and the sides of it, and its seed."""
    titles = compare.titles_of(runs)
    return [f"{titles[run.id]}: {', '.join(_facts(run))}." for run in runs]


def of_models(names: Sequence[str]) -> list[str]:
    """The same for models by their names."""
    folders = model_folders()
    wanted = [folders.get(name) for name in names]
    return of_runs([run for run in loaders.runs() if run.model is not None and run.model in wanted])


def _facts(run: Run) -> list[str]:
    origin = "a model that came along" if run.model == run.folder else f"run {run.id}"
    facts = [origin, compare.kind(run) or "an unknown network"]
    name, sizes = run.recorded("data", "name"), run.recorded("data", "n")
    facts.append(f"data {name or compare.data(run) or 'not on record'}")
    facts += [f"{n:,} {side}" for side, n in sizes.items() if isinstance(n, int)] if isinstance(sizes, dict) else []
    fingerprint = run.recorded("data", "fingerprint", "test")
    facts += [f"fingerprint of the test reviews {str(fingerprint)[:12]}"] if fingerprint else []
    facts += [] if run.config is None else [f"seed {run.config.training.seed}"]
    commit = run.recorded("code", "commit")
    return [*facts, f"code {str(commit)[:12]}"] if commit else facts


def address() -> str:
    """Where the view that is shown is found again; empty where no browser looks at it."""
    asked = urlencode({name: st.query_params.get_all(name) for name in st.query_params}, doseq=True)
    return f"{st.context.url}{'?' if asked else ''}{asked}" if st.context.url else ""


def as_csv(found: Export, address: str) -> bytes:
    """For spreadsheets, too; the last column says of each row what it is of."""
    table = _flat(found.table)
    source = " ".join([*_stamped(found), address]).strip()
    table = table.assign(**{free_name("source", table): source})
    texts = {name: inert(list(table[name])) for name in table if pd.api.types.is_string_dtype(table[name])}
    return csv_for_excel(table.assign(**texts).rename(columns=lambda name: inert([str(name)])[0]))


def as_markdown(found: Export, address: str) -> str:
    """Heading, findings, table and what it is of."""
    notes = [*found.notes, *_stamped(found)]
    return report.markdown(found.title, found.said, _flat(found.table), notes, found.command, address)


def as_html(found: Export, address: str) -> str:
    """The same with the charts, in a file that needs nothing else."""
    notes = [*found.notes, *_stamped(found)]
    return report.page(found.title, found.said, found.charts, _flat(found.table), notes, found.command, address)


def _stamped(found: Export) -> list[str]:
    return [*found.of, f"Taken on {datetime.now(UTC):%Y-%m-%d at %H:%M} UTC."]


def _flat(table: pd.DataFrame) -> pd.DataFrame:
    """Index and columns as columns, whose names say what is in percent."""
    flat = table.reset_index() if any(table.index.names) else table
    percents = {name: f"{name} %" for name in panels.PERCENT if name in flat and pd.api.types.is_numeric_dtype(flat[name])}
    return flat.rename(columns=percents)
