"""What is shown of one reading, from its answer to its last head."""

import html
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from core.artifact import Model, Opened
from core.figures.attention import attention_heatmap, thumbnail
from core.figures.labels import percent, shorten, visible
from core.records import Prediction, Reading
from core.words import count_words, words_read
from ui import loaders, markdown
from ui.review_text import Unit, as_html, units
from ui.view import EVEN, View, head_name

KINDS = {
    "encoder": "Transformer", "bilstm": "BiLSTM", "linear": "Linear model",
    "bert": "BERT", "distilbert": "DistilBERT", "roberta": "RoBERTa", "modernbert": "ModernBERT",
}  # fmt: skip
MOST_CLASSES = 6
"""Probabilities shown; of more classes the most probable."""
BESIDE = 32
"""Heads whose small maps fit beside the large one; those of a larger model stand below it, a row for each layer."""
ROW_ERROR = 1e-4
"""A row of weights may miss 1 by so much through float32 arithmetic, not by more."""
SMALL_PRINT = "#59646d"
"""Ticks and titles of axes on the light theme: Streamlit's own grey has a contrast of 3.8 to 1 there."""
SHARES = ("accuracy", "from", "to", "attention", "calibration error", "by chance", "read in part")
PERCENT = {name: st.column_config.NumberColumn(format="%.1f%%") for name in SHARES}
"""Columns of tables that hold percents."""


@contextmanager
def refusals() -> Iterator[None]:
    """Show the sentence of a ValueError in the place of what could not be made."""
    try:
        yield
    except ValueError as error:
        refused(str(error))


def refused(reason: str) -> None:
    """Say why something cannot be; `reason` is a sentence without full stop."""
    st.error(markdown.literal(f"{reason}."), icon=":material/info:")


def no_models() -> None:
    """Say how to get a model where there is none."""
    st.info("There is no trained model yet.")
    st.page_link("../pages/train.py", label="Train one", icon=":material/model_training:")


def chart(figure: go.Figure, key: str, alt: str) -> None:
    """A figure as wide as its place, with Plotly's tools, of which the camera saves it."""
    if st.context.theme.type != "dark":
        font = {"color": SMALL_PRINT}
        axis = {"tickfont": font, "title": {"font": font}}
        figure.update_layout(xaxis=axis, yaxis=axis)
        figure.update_traces(colorbar=axis, selector={"type": "heatmap"})
    tools = {"displaylogo": False, "toImageButtonOptions": {"filename": "attention-lab", "scale": 2}}
    st.plotly_chart(figure, key=key, config=tools, alt=alt)


def answer(model: Opened, reading: Reading) -> None:
    """Class, probability and margin, and how much of the review they rest on."""
    st.html(_answer(f"{KINDS[model.kind]} · {loaders.model_title(model.name)}", reading.prediction))
    st.markdown(coverage(reading))
    _trust(reading)


def _answer(title: str, prediction: Prediction) -> str:
    ranked = sorted(prediction.probabilities.items(), key=lambda pair: -pair[1])
    margin = ranked[0][1] - ranked[1][1]
    others = ", ".join(f"{html.escape(label)} {percent(p)}" for label, p in ranked[1:MOST_CLASSES])
    return (
        f'<div style="opacity:.8;font-size:.9rem;overflow-wrap:anywhere">{html.escape(title)}</div>'
        f'<div style="font-size:1.7rem;font-weight:600;line-height:1.3;overflow-wrap:anywhere">'
        f"{html.escape(prediction.label)} {percent(ranked[0][1])}</div>"
        f'<div style="height:5px;border-radius:3px;background:rgba(128,128,128,.25);margin:.35rem 0">'
        f'<div style="height:5px;border-radius:3px;background:currentColor;opacity:.8;width:{ranked[0][1]:.2%}"></div></div>'
        f'<div style="opacity:.8;font-size:.9rem;overflow-wrap:anywhere">'
        f"{others} · margin {100 * margin:.1f} points</div>"
    )


def coverage(reading: Reading) -> str:
    """How much of the review was read, in tokens and words."""
    read, left_out = reading.prediction.tokens_read, reading.prediction.tokens_left_out
    words = count_words(reading.text)
    n_windows = len(reading.windows)
    if left_out:
        seen = words_read(reading.text, reading.read)
        return f"Read {read:,} of {read + left_out:,} tokens ({seen:,} of {words:,} words); the rest is grey."
    if n_windows > 1:
        return f"Read all {read:,} tokens ({words:,} words) in {n_windows} windows; their logits are averaged."
    return f"Read {'the one token' if read == 1 else f'all {read:,} tokens'} ({_count(words, 'word')})."


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def _trust(reading: Reading) -> None:
    if not reading.windows[0].weights.size:
        return
    error = max(window.largest_row_error for window in reading.windows)
    if reading.training_mode:
        st.warning("The model is in training mode: dropout makes this reading worthless.", icon=":material/warning:")
    if not error <= ROW_ERROR:
        st.warning(f"Rows of weights miss 1 by up to {error:.0e}: these maps are no attention.", icon=":material/warning:")
    if error <= ROW_ERROR and not reading.training_mode:
        with st.container(horizontal=True, gap="xsmall"):
            st.badge(f"rows sum to 1 within {error:.0e}" if error else "rows sum to 1", icon=":material/check:", color="green")
            st.badge("evaluation mode", icon=":material/check:", color="green")


def added(model: Model, reading: Reading) -> None:
    """What each word adds to a linear model's answer, the ten that add most, in place of attention, which it has not."""
    label = markdown.literal(reading.prediction.label)
    whole = "log-odds" if len(reading.prediction.probabilities) == 2 else "logit"
    st.markdown(
        f"A linear model attends to nothing: each run of up to {model.architecture.longest_run} neighbouring tokens has a "
        f"weight, and the sum of what these add, wherever they stand, makes the {whole} of {label}."
    )
    found = loaders.weights(model.name, reading.text)
    top = sorted(zip(found.words, found.found["weights"].values, strict=True), key=lambda pair: -abs(pair[1]))[:10]
    table = pd.DataFrame({
        "word": [visible(reading.text[slice(*word.span)]) for word, _ in top],
        f"adds to the {whole}": [value for _, value in top],
    })  # fmt: skip
    number = st.column_config.NumberColumn(format="%+.2f")
    st.dataframe(table, hide_index=True, column_config={f"adds to the {whole}": number}, key=f"inspect_added_{model.name}")
    st.caption(f"The ten that add most; below 0 is against {label}. {markdown.sentence(found.found['weights'].note or '')}")


def words(view: View) -> None:
    """The review, its words shaded by the attention they receive, and the ten that receive most as numbers."""
    text = view.reading.text
    shaded = units(text, view.attention, view.received)
    # a window in the middle would be out of sight in a box that opens at the beginning
    st.html(as_html(text, shaded, view.reading.read, scrolling=len(view.reading.windows) == 1))
    st.caption(_legend(view, shaded))
    with st.expander("The ten with most attention, as numbers"):
        st.dataframe(most_attended(text, shaded), hide_index=True, column_config=PERCENT, key=f"inspect_words_{view.model}")


def most_attended(text: str, shaded: Sequence[Unit], n: int = 10) -> pd.DataFrame:
    """The `n` units with most attention, the largest first."""
    top = sorted(shaded, key=lambda unit: -unit.share)[:n]
    return pd.DataFrame(
        {
            "word": [visible(text[slice(*unit.span)]) for unit in top],
            "attention": [100 * unit.share for unit in top],
            "known to the model": ["no" if unit.unknown else "yes" for unit in top],
        }
    )


def _legend(view: View, shaded: Sequence[Unit]) -> str:
    top = max(shaded, key=lambda unit: unit.share)
    word = shorten(visible(view.reading.text[slice(*top.span)]))
    parts = [f"Attention received, {view.title}. Shade: from none at 0% to full at {top.share:.1%} ({markdown.literal(word)})."]
    added = {token for token, span in zip(view.attention.tokens, view.attention.spans, strict=True) if span[0] == span[1]}
    if added:
        rest = float(view.received.sum()) - sum(unit.share for unit in shaded)
        parts.append(f"{markdown.literal(', '.join(sorted(added)))}, which nobody typed, receives {rest:.1%}.")
    if any(unit.unknown for unit in shaded):
        parts.append("Dotted: unknown to the model.")
    return " ".join(parts)


def heads(view: View) -> None:
    """The map of the heads in view, token by token, and beside it a small one of each head."""
    st.subheader(f"Where {markdown.literal(loaders.model_title(view.model))} looks")
    if view.kind == "bilstm":
        _map(view, f"The pooling's weights: one row, which sums to 1. Colour: {_colours(view)}.")
        return
    n_layers, n_heads = view.attention.weights.shape[:2]
    caption = f"{view.title.capitalize()}: rows attend to columns, each row sums to 1. Colour: {_colours(view)}."
    if n_layers * n_heads == 1:
        _map(view, caption)
        return
    beside = n_layers * n_heads <= BESIDE
    left, right = st.columns([6, 5], gap="medium") if beside else (st.container(), st.container())
    with left:
        _map(view, caption)
    with right:
        _every_head(view, columns=4 if beside else n_heads)


def _colours(view: View) -> str:
    if view.is_one_head:
        end = "the largest weight of any head here"
    else:
        end = "the largest weight here" if view.ceiling == view.weights.max() else f"{EVEN} times an even share"
    return f"from 0 to {view.ceiling:.2g}, {end}, by its square root"


def _map(view: View, caption: str) -> None:
    figure = attention_heatmap(view.weights, view.queries, view.keys, view.ceiling, view.title)
    alt = f"Attention weights of {view.title}"
    chart(figure, key=f"inspect_map_{view.model}", alt=alt)
    st.caption(caption)


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
