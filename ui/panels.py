"""What is shown of one reading: its answer, and its words."""

import html
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from core.artifact import Model, Opened
from core.figures.labels import count, percent, shorten, visible
from core.records import Prediction, Reading
from core.words import count_words, words_read
from ui import clickable, explanations, loaders, markdown
from ui.review_text import Unit, pieces, units
from ui.view import EVERY_WORD, View, word_key

KINDS = {
    "encoder": "Transformer", "bilstm": "BiLSTM", "linear": "Linear model",
    "bert": "BERT", "distilbert": "DistilBERT", "roberta": "RoBERTa", "modernbert": "ModernBERT",
}  # fmt: skip
MOST_CLASSES = 6
"""Probabilities shown; of more classes the most probable."""
ROW_ERROR = 1e-4
"""A row of weights may miss 1 by so much through float32 arithmetic, not by more."""
SMALL_PRINT = "#59646d"
"""Ticks and titles of axes on the light theme: Streamlit's own grey has a contrast of 3.8 to 1 there."""
SHARES = (
    "accuracy", "from", "to", "attention", "calibration error", "by chance", "read in part", "prediction is off by",
    "others used", "confidence from", "confidence to", "mean confidence",
)  # fmt: skip
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
    return f"Read {'the one token' if read == 1 else f'all {read:,} tokens'} ({count(words, 'word')})."


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
    found = explanations.weights(model.name, reading.text)
    top = sorted(zip(found.words, found.found["weights"].values, strict=True), key=lambda pair: -abs(pair[1]))[:10]
    table = pd.DataFrame({
        "word": [visible(reading.text[slice(*word.span)]) for word, _ in top],
        f"adds to the {whole}": [value for _, value in top],
    })  # fmt: skip
    number = st.column_config.NumberColumn(format="%+.2f")
    st.dataframe(table, hide_index=True, column_config={f"adds to the {whole}": number}, key=f"inspect_added_{model.name}")
    st.caption(f"The ten that add most; below 0 is against {label}. {markdown.sentence(found.found['weights'].note or '')}")


def words(view: View) -> None:
    """The review, each word shaded by its attention and chosen by a click, and the ten with most of it as numbers."""
    text, shaded = view.reading.text, units(view.parts, view.shares)
    chosen = None if view.word is None else view.parts.typed.index(view.word)
    clickable.review(
        pieces(text, shaded, view.reading.read, of=_of(view), chosen=chosen),
        key=f"inspect_shaded_{view.model}",
        clicked=partial(_choose, view) if view.can_choose else None,
        # a window in the middle would be out of sight in a box that opens at the beginning
        scrolling=len(view.reading.windows) == 1,
    )
    st.caption(_legend(view, shaded))
    with unfolded("The ten with most attention, as numbers", f"inspect_most_{view.model}") as is_open:
        if is_open:
            st.dataframe(most_attended(text, shaded), hide_index=True, column_config=PERCENT, key=f"inspect_words_{view.model}")


@contextmanager
def unfolded(label: str, key: str) -> Iterator[bool]:
    """A part of the page that is folded at first; whether it is open, and so has to be made. The URL knows under `key`."""
    with (place := st.expander(label, key=key, on_change="rerun", bind="query-params")):
        yield bool(place.open)


def _choose(view: View, unit: int) -> None:
    """Looks at the word of a unit; at all of them, where it is the one in view."""
    part = view.parts.typed[unit]
    st.session_state[word_key(view.model)] = EVERY_WORD if part == view.word else view.parts.labels[part]


def _of(view: View) -> str:
    """What the shares in view are of."""
    if view.word is None:
        return "attention"
    word = view.parts.labels[view.word]
    return f"attention that it pays, to {word}" if view.looked_at else f"attention of {word}"


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
    word = markdown.literal(shorten(visible(view.reading.text[slice(*top.span)])))
    parts = [f"{_what(view)}, {view.title}. Shade: from none at 0% to full at {top.share:.1%} ({word})."]
    added = {token for token, span in zip(view.attention.tokens, view.attention.spans, strict=True) if span[0] == span[1]}
    if added and not view.looked_at:
        rest = float(view.shares.sum()) - sum(unit.share for unit in shaded)
        what = f"{markdown.literal(' and '.join(sorted(added)))}, which nobody typed,"
        parts.append(f"{what} {'receives' if len(added) == 1 else 'receive'} {rest:.1%}.")
    if any(unit.unknown for unit in shaded):
        parts.append("Dotted: unknown to the model.")
    return " ".join(parts)


def _what(view: View) -> str:
    if view.word is None:
        return "Attention received"
    word = markdown.literal(view.parts.labels[view.word])
    return f"Of the attention that each word pays, the share that {word} receives" if view.looked_at else f"Attention of {word}"
