"""Findings, charts and tables as files to be sent and opened anywhere: HTML that needs nothing else, and Markdown."""

import html
import re
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.recorded import shown

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #10181d }
table { border-collapse: collapse; font-size: .75rem; display: block; overflow-x: auto; width: max-content; max-width: 96vw;
  margin-left: min(0px, calc(30rem - 48vw)) }
th, td { border: 1px solid #d5dcdf; padding: .25rem .5rem; text-align: right } pre { white-space: pre-wrap }
"""
_MARKUP = re.compile(r"([\\`*_\[\]<>|$~&])")
_FIRST = re.compile(r"^(\d*)([#+.)-])(?=\s)")


def page(
    title: str,
    said: Sequence[str],
    charts: Mapping[str, go.Figure],
    table: pd.DataFrame,
    notes: Sequence[str],
    command: str = "",
    address: str = "",
) -> str:
    """The whole file. Every text is escaped; the first chart brings plotly.js, about 5 MB, along.

    `command` made the figures, and at `address` the view is found again, where there are such.
    """
    parts = [f"<h1>{html.escape(title)}</h1>", *(f"<p>{html.escape(sentence)}</p>" for sentence in said)]
    for number, (name, figure) in enumerate(charts.items()):
        drawn = go.Figure(figure).update_layout(template="plotly_white")
        div = drawn.to_html(
            full_html=False, include_plotlyjs=number == 0, config={"displaylogo": False}, div_id=f"chart-{number}"
        )
        parts += [f"<h2>{html.escape(name)}</h2>", div]
    parts += ["<h2>All figures</h2>", _html_table(table)]
    parts += [f"<p>{html.escape(note)}</p>" for note in notes]
    parts += [f'<p><a href="{html.escape(address)}">{html.escape(address)}</a></p>'] if address else []
    parts += [f"<pre>{html.escape(command)}</pre>"] if command else []
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{html.escape(title)}</title>'
    return f"<!doctype html><html lang=en><head>{head}<style>{STYLE}</style></head><body>{''.join(parts)}</body></html>\n"


def _html_table(table: pd.DataFrame) -> str:
    with pd.option_context("display.max_colwidth", None):  # or pandas cuts long cells
        return table.map(_written).to_html(index=False, border=0)


def markdown(
    title: str, said: Sequence[str], table: pd.DataFrame, notes: Sequence[str], command: str = "", address: str = ""
) -> str:
    """The same without charts; no text is taken for markup."""
    numbers = [pd.api.types.is_numeric_dtype(table[name]) for name in table]
    rows = [[str(name) for name in table], *table.map(_written).to_numpy().tolist()]
    lines = [f"| {' | '.join(map(_plain, row))} |" for row in rows]
    lines.insert(1, f"| {' | '.join('---:' if number else '---' for number in numbers)} |")
    made = [f"<{address}>"] * bool(address) + [f"    {command}"] * bool(command)
    parts = [f"# {_plain(title)}", *map(_sentence, said), "\n".join(lines), *map(_sentence, notes), *made]
    return "\n\n".join(parts) + "\n"


def _plain(text: str) -> str:
    """In one line, with every sign escaped that would be markup inside of one."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))


def _sentence(text: str) -> str:
    """A line of its own, which begins neither a list nor a heading."""
    return _FIRST.sub(r"\1\\\2", _plain(text))


def _written(value: object) -> str:
    """A value as a cell."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or value is pd.NA or value != value:
        return "n/a"
    return shown(value) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
