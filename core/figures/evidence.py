"""Evidence about one review as figures: word by word, and what it is worth."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float

from core.catalog import EVIDENCE
from core.figures.colors import CATEGORICAL, DIVERGING, ink
from core.figures.frame import framed
from core.figures.labels import literal, shorten, visible
from core.records import Evidence, Faithfulness


def word_labels(pieces: Iterable[str]) -> list[str]:
    """One label for each word, unique even where words repeat: its number, counted from 1, and its characters."""
    return [f"{place} {literal(shorten(visible(piece)))}" for place, piece in enumerate(pieces, 1)]


def largest_share(found: Evidence) -> float:
    """Of any word by any method: the end of the colours, on both sides, so that methods share one scale."""
    return max((float(np.abs(one.shares).max(initial=0)) for one in found.found.values()), default=0.0)


def evidence_heatmap(found: Evidence) -> go.Figure:
    """A row for each method, a column for each word: its share of what the method finds, from against the class to for it."""
    rows = {EVIDENCE[name].title: _shares(found, name) for name in found.found}
    words = [found.text[slice(*word.span)] for word in found.words]
    return word_heatmap(rows, words, largest_share(found), f"share; above 0 for {_named(found.prediction.label)}", "%{z:.1%}")


def contrast_heatmap(words: Sequence[str], rows: Mapping[str, Float[np.ndarray, "P"]], label: str) -> go.Figure:
    """A column for each word of two texts, or of one through two models, a row for what it is worth in either and one for
    how these differ, in nats for `label`; gaps where a text lacks it. All rows share one scale, and 0 has no colour."""
    limit = max((float(np.nanmax(np.abs(values), initial=0)) for values in rows.values()), default=0.0)
    return word_heatmap(rows, words, limit, f"nats; above 0 for {_named(label)}", "%{z:+.3f} nats")


def word_heatmap(
    rows: Mapping[str, Float[np.ndarray, "P"]], words: Sequence[str], limit: float, title: str, value: str
) -> go.Figure:
    """Numbers of words, a row by each name, on a diverging scale from -limit to limit; `value` is how Plotly writes one."""
    limit = limit or 1.0
    heatmap = go.Heatmap(
        z=np.array(list(rows.values()), dtype=np.float32), x=word_labels(words), y=[literal(name) for name in rows],
        zmin=-limit, zmax=limit, colorscale=DIVERGING, hoverongaps=False,
        colorbar=dict(
            orientation="h", y=1, yanchor="bottom", thickness=8, nticks=5, title=dict(text=title, side="top"),
        ),
        hovertemplate=f"%{{x}}<br>%{{y}}: {value}<extra></extra>",
    )  # fmt: skip
    axis = dict(type="category", nticks=24, showgrid=False, zeroline=False, tickfont=dict(size=10), automargin=True)
    figure = go.Figure(heatmap)
    figure.update_layout(xaxis=axis, yaxis=axis | dict(autorange="reversed"), margin=dict(l=8, r=8, t=8, b=8))
    return figure.update_layout(height=200 + 34 * len(rows))


def erasure_curves(found: Faithfulness, label: str, *, insertion: bool = False) -> go.Figure:
    """The probability of the predicted class against the share of its words that are gone, or with `insertion` are back.

    A line for each method, in a band from the lowest to the highest of the random orders.
    """
    shares = 1 - found.shares[::-1] if insertion else found.shares
    random = found.random[:, ::-1] if insertion else found.random
    figure = go.Figure(_band(shares, random))
    for number, (name, curve) in enumerate((found.reversed if insertion else found.deletion).items()):
        figure.add_trace(_curve(number, EVIDENCE[name].title, shares, curve[::-1] if insertion else curve))
    what = "put back" if insertion else "cut out" if found.removed else "masked"
    figure.update_xaxes(title=f"words {what}, strongest first", tickformat=".0%", range=[-0.02, 1.02])
    figure.update_yaxes(title=f"probability of {_named(label)}", tickformat=".0%", range=[-0.02, 1.02])
    return framed(figure, 420)


def _named(label: str) -> str:
    return literal(shorten(label))


def _shares(found: Evidence, name: str) -> Float[np.ndarray, "W"]:
    """A gap where a word was not read."""
    return np.where([word.read for word in found.words], found.found[name].shares, np.nan)


def _band(shares: Float[np.ndarray, "S"], random: Float[np.ndarray, "orders S"]) -> go.Scatter:
    edge = np.concatenate([random.max(0), random.min(0)[::-1]])
    return go.Scatter(
        x=np.concatenate([shares, shares[::-1]]), y=edge, fill="toself", mode="lines", line=dict(width=0),
        fillcolor="rgba(128,128,128,.25)", name=f"{len(random)} random orders", hoverinfo="skip",
    )  # fmt: skip


def _curve(number: int, name: str, shares: Float[np.ndarray, "S"], curve: Float[np.ndarray, "S"]) -> go.Scatter:
    color = (*CATEGORICAL, ink(1.0))[number % (len(CATEGORICAL) + 1)]
    return go.Scatter(
        x=shares, y=curve, name=name, mode="lines+markers", line=dict(color=color, width=2), marker=dict(color=color, size=6),
        hovertemplate="%{x:.0%}: %{y:.1%}<extra>%{fullData.name}</extra>",
    )  # fmt: skip
