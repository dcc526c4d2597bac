"""Findings, charts and tables as one HTML file that needs nothing else, to be sent and opened anywhere."""

import html
from collections.abc import Mapping, Sequence

import pandas as pd
import plotly.graph_objects as go

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #10181d }
table { border-collapse: collapse; font-size: .75rem; display: block; overflow-x: auto; width: max-content; max-width: 96vw;
  margin-left: min(0px, calc(30rem - 48vw)) }
th, td { border: 1px solid #d5dcdf; padding: .25rem .5rem; text-align: right } pre { white-space: pre-wrap }
"""


def page(
    title: str, said: Sequence[str], charts: Mapping[str, go.Figure], table: pd.DataFrame, notes: Sequence[str], command: str
) -> str:
    """The whole file. Every text is escaped; the first chart brings plotly.js, about 5 MB, along."""
    parts = [f"<h1>{html.escape(title)}</h1>", *(f"<p>{html.escape(sentence)}</p>" for sentence in said)]
    for number, (name, figure) in enumerate(charts.items()):
        drawn = go.Figure(figure).update_layout(template="plotly_white")
        div = drawn.to_html(
            full_html=False, include_plotlyjs=number == 0, config={"displaylogo": False}, div_id=f"chart-{number}"
        )
        parts += [f"<h2>{html.escape(name)}</h2>", div]
    filled = table.astype(object).where(table.notna(), "n/a")
    parts += ["<h2>All figures</h2>", filled.to_html(index=False, float_format="{:,.2f}".format, border=0)]
    parts += [*(f"<p>{html.escape(note)}</p>" for note in notes), f"<pre>{html.escape(command)}</pre>"]
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{html.escape(title)}</title>'
    return f"<!doctype html><html lang=en><head>{head}<style>{STYLE}</style></head><body>{''.join(parts)}</body></html>\n"
