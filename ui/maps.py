"""Where a model looks in a review: its map by tokens or by sentences, each head small, and the strongest pairs of words."""

import numpy as np
import pandas as pd
import streamlit as st

from core.figures.attention import attention_heatmap, largest_weight, thumbnail
from core.figures.labels import literal
from core.inspection.parts import Parts, sentence_parts, strongest
from ui import loaders, markdown, panels
from ui.view import EVEN, View, head_name

BESIDE = 32
"""Heads whose small maps fit beside the large one; those of a larger model stand below it, a row for each layer."""
MOST_WORDS = 128
"""On a side of a map that is drawn token by token unasked."""
MOST_PAIRS = 200
PAIRS = (
    "Numbers are those of the map, of a word's first token. A word pays the mean of what its tokens pay, and receives the sum "
    "of what they receive."
)
BLOCKS = (
    "from sentence to sentence, the mean weight of a token for a token, each row divided by its sum, so that a long sentence "
    "gets no more than a short one"
)


def show(view: View) -> None:
    """The map of the heads in view, a small one of each head, and the strongest pairs of words."""
    st.subheader(f"Where {markdown.literal(loaders.model_title(view.model))} looks")
    n_layers, n_heads = view.attention.weights.shape[:2]
    beside = 1 < n_layers * n_heads <= BESIDE
    left, right = st.columns([6, 5], gap="medium") if beside else (st.container(), st.container())
    with left:
        _map(view)
    with right:
        if beside:
            _every_head(view, columns=4)
        elif n_layers * n_heads > 1:
            with panels.unfolded(f"Maps of all {n_layers * n_heads} heads", f"inspect_heads_{view.model}") as is_open:
                if is_open:
                    _every_head(view, columns=n_heads)
    if view.can_choose:
        with panels.unfolded("The strongest pairs of words, as numbers", f"inspect_pairs_{view.model}") as is_open:
            if is_open:
                _pairs(view)


def _map(view: View) -> None:
    """Token by token, where the words are few; else sentence by sentence, until a person chooses few enough of them."""
    many = view.can_choose and len(view.parts) > MOST_WORDS
    sentences = sentence_parts(view.reading.text, view.attention) if many else None
    if sentences is None or len(sentences) == 1:
        _tokens(view, np.arange(len(view.queries)), np.arange(len(view.keys)))
        return
    with st.container(horizontal=True):
        rows, columns = (_chosen(view, sentences, side) for side in ("From", "To"))
    tokens = [np.flatnonzero(np.isin(sentences.part_of, side)) for side in (rows, columns)]
    n_words = max(len(np.unique(view.parts.part_of[side])) for side in tokens)
    help = f"Drawn unasked where up to {MOST_WORDS} words are chosen."
    if st.toggle("Every token", key=f"inspect_tokens_{view.model}", bind="query-params", help=help) or n_words <= MOST_WORDS:
        _tokens(view, *tokens)
    else:
        _sentences(view, sentences, rows, columns)


def _chosen(view: View, sentences: Parts, side: str) -> np.ndarray:
    """Indices of the sentences on one side of the map; where there are others it is another slider."""
    n = len(sentences)
    key = f"inspect_{side.lower()}_{view.model}_{n}"
    first, last = st.slider(f"{side} sentences", 1, n, (1, n), key=key, bind="query-params")
    return np.arange(first - 1, last)


def _tokens(view: View, rows: np.ndarray, columns: np.ndarray) -> None:
    queries, keys = view.queries, view.keys
    what = "rows attend to columns, each row of all tokens sums to 1"
    if view.kind == "bilstm":
        what = "one row, which sums to 1"
    drawn, said = view.weights[np.ix_(rows, columns)], f"{what}. Colour: {_colours(view)}"
    _draw(view, drawn, [queries[i] for i in rows], [keys[i] for i in columns], view.ceiling, said)


def _sentences(view: View, sentences: Parts, rows: np.ndarray, columns: np.ndarray) -> None:
    shares, labels = sentences.blocks(view.weights), [literal(label) for label in sentences.labels]
    ceiling = float((sentences.blocks(view.attention.weights) if view.is_one_head else shares).max())
    end = "the largest share of any head here" if view.is_one_head else "the largest share here"
    said = f"{BLOCKS}. Colour: from 0 to {ceiling:.2g}, {end}, by its square root"
    _draw(view, shares[np.ix_(rows, columns)], [labels[i] for i in rows], [labels[i] for i in columns], ceiling, said)


def _draw(view: View, weights: np.ndarray, queries: list[str], keys: list[str], ceiling: float, said: str) -> None:
    figure = attention_heatmap(weights, queries, keys, ceiling, view.title)
    alt = f"Attention map, {view.title}: {largest_weight(weights, queries, keys)}"
    panels.chart(figure, key=f"inspect_map_{view.model}", alt=alt)
    st.caption(f"{view.title.capitalize()}: {said}.")


def _colours(view: View) -> str:
    if view.is_one_head:
        end = "the largest weight of any head here"
    else:
        end = "the largest weight here" if view.ceiling == view.weights.max() else f"{EVEN} times an even share"
    return f"from 0 to {view.ceiling:.2g}, {end}, by its square root"


def _every_head(view: View, columns: int) -> None:
    weights = view.attention.weights
    with st.grid(columns, min_column_width=56, gap="small"):
        for layer, head in np.ndindex(weights.shape[:2]):
            name = head_name(layer, head)
            picture = thumbnail(weights[layer, head], view.largest)
            st.image(picture, caption=name, alt=f"Attention map of {name}", width="stretch")
    st.caption(
        f"Every head on one colour range, from 0 to {view.largest:.2g}. "
        "In a long review each pixel is the largest weight of its block."
    )


def _pairs(view: View) -> None:
    n = st.number_input("Pairs", 5, MOST_PAIRS, 20, 5, key=f"inspect_n_pairs_{view.model}", bind="query-params", width=160)
    number = st.column_config.NumberColumn(format="%.2f%%")
    st.dataframe(pairs(view, n), hide_index=True, column_config={"attention": number}, key=f"inspect_pairs_table_{view.model}")
    st.caption(f"{view.title.capitalize()}. {PAIRS}")


def pairs(view: View, n: int) -> pd.DataFrame:
    """The `n` pairs of words with most attention from the one to the other, in percent of what the first pays."""
    between, labels = view.between, view.parts.labels
    found = strongest(between, n)
    return pd.DataFrame({
        "from": [labels[i] for i, _ in found], "to": [labels[j] for _, j in found],
        "attention": [100 * between[i, j] for i, j in found],
    })  # fmt: skip
