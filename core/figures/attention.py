"""Attention as figures: rows attend, columns are attended to."""

import html
import io

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from PIL import Image

from core.figures.colors import INK, SEQUENTIAL, opacity

THUMBNAIL = 96
"""Pixels of a thumbnail's side at most: in a longer review each pixel is the maximum of a block of weights."""


def attention_heatmap(
    weights: Float[np.ndarray, "Q T"], queries: list[str], keys: list[str], ceiling: float, name: str
) -> go.Figure:
    """Weights of one head, or of several averaged, with a label for each row and column; each row sums to 1.

    `ceiling` is the weight of the strongest colour: give one for all heads of a model, or they cannot be compared.
    Labels must be unique, since equal ones would share a cell, and escaped (`core.figures.labels.token_labels`).
    `name` says in the hover what the weights are of.
    """
    heatmap = go.Heatmap(
        z=np.asarray(weights, dtype=np.float32),  # other types travel as JSON, four times as long
        x=keys,
        y=queries,
        zmin=0,
        zmax=ceiling or 1.0,
        colorscale=SEQUENTIAL,
        colorbar=dict(orientation="h", y=1, yanchor="bottom", thickness=8, nticks=5, title=dict(text="weight", side="top")),
        hovertemplate=f"%{{y}}<br>to %{{x}}<br>weight %{{z:.4f}}<extra>{name}</extra>",
    )
    # An axis of unique categories thins its own ticks; 512 explicit tick texts would take 10 s to draw.
    axis = dict(type="category", nticks=28, showgrid=False, zeroline=False, tickfont=dict(size=10), automargin=True)
    figure = go.Figure(heatmap)
    # on a telephone a map is 250 pixels wide: more labels than this would lie over one another
    figure.update_layout(xaxis=axis | dict(nticks=24), yaxis=axis | dict(autorange="reversed"), margin=dict(l=8, r=8, t=8, b=8))
    return figure.update_layout(height=230 if len(queries) == 1 else 560)


def largest_weight(weights: Float[np.ndarray, "Q T"], queries: list[str], keys: list[str]) -> str:
    """What a map shows above all, in plain text without full stop, for who cannot see it; labels as for `attention_heatmap`."""
    i, j = np.unravel_index(weights.argmax(), weights.shape)
    return html.unescape(f"the largest weight, {weights[i, j]:.2g}, is from {queries[i]} to {keys[j]}")


def thumbnail(weights: Float[np.ndarray, "Q T"], ceiling: float) -> bytes:
    """The same as a small PNG through which the page's background shows; `ceiling` as in `attention_heatmap`."""
    shares = np.clip(_enlarged(_block_maximum(weights)) / (ceiling or 1.0), 0, 1)
    pixels = np.empty((*shares.shape, 4), dtype=np.uint8)
    pixels[..., :3] = INK
    pixels[..., 3] = np.rint(255 * opacity(shares))
    file = io.BytesIO()
    Image.fromarray(pixels, "RGBA").save(file, "PNG")
    return file.getvalue()


def _block_maximum(weights: Float[np.ndarray, "Q T"]) -> Float[np.ndarray, "rows columns"]:
    for axis, length in enumerate(weights.shape):
        block = -(-length // THUMBNAIL)
        weights = np.maximum.reduceat(weights, np.arange(0, length, block), axis=axis)
    return weights


def _enlarged(weights: Float[np.ndarray, "Q T"]) -> Float[np.ndarray, "rows columns"]:
    """Whole pixels for each weight: a browser that stretches a picture of few pixels would blur it."""
    for axis, length in enumerate(weights.shape):
        weights = weights.repeat(THUMBNAIL // length, axis=axis)
    return weights
