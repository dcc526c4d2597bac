"""A table of reviews with what models answer: how it is drawn, and how one of its reviews is opened."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from core.figures.labels import shorten
from ui import markdown

LONGEST_CELL = 200
"""Characters of a review in the table."""
REVIEW_WIDTH = 270
"""Pixels of them, so that what two models answer stands beside."""
PERCENTS = ("probability (", "difference", "read (")
"""How columns of shares begin."""


def key(name: str, *shown: object) -> str:
    """A key that differs where what is shown does."""
    return f"{name}_{hashlib.blake2b(repr(shown).encode(), digest_size=8).hexdigest()}"


def ticked(shown: pd.DataFrame, models: Sequence[str], key: str) -> int | None:
    """Draws a table of `evaluation.answers` or `evaluation.behind`; the place in it of the row that a person ticked."""
    event = st.dataframe(
        _drawn(shown),
        hide_index=True,
        column_config=_columns(shown, models),
        key=key,
        on_select="rerun",
        selection_mode="single-row",
        placeholder="",
    )
    return next(iter(event["selection"]["rows"]), None)


def _drawn(shown: pd.DataFrame) -> pd.DataFrame:
    drawn = shown.copy()
    drawn["review"] = [shorten(text, LONGEST_CELL) if isinstance(text, str) else None for text in shown["review"]]
    for name in shown.columns:
        if name.startswith(PERCENTS):
            drawn[name] = np.floor(1000 * shown[name]) / 10  # what is not certain must not read 100.0
    return drawn


def _columns(shown: pd.DataFrame, models: Sequence[str]) -> dict[str, Any]:
    """A model's name stands above its answers alone: with it above each of its columns, they would not fit beside another's."""
    percents = {name: st.column_config.NumberColumn(format="%.1f%%") for name in shown.columns if name.startswith(PERCENTS)}
    columns: dict[str, Any] = percents | {"review": st.column_config.TextColumn(width=REVIEW_WIDTH)}
    for model in models:
        columns[f"label ({model})"] = st.column_config.TextColumn(model)
        columns[f"probability ({model})"] = st.column_config.NumberColumn("probability", format="%.1f%%")
        columns[f"read ({model})"] = st.column_config.NumberColumn("read", format="%.0f%%")
    if len(models) == 1:
        columns[f"left out ({models[0]})"] = st.column_config.NumberColumn("left out")
    return columns


def open_in_inspect(page: str, names: Sequence[str], text: str | None, said: str) -> None:
    """A button that opens a review with the models, and a sentence beside it; without a text there is nothing to open."""
    with st.container(horizontal=True, vertical_alignment="center"):
        pressed = st.button("Open in Inspect", key=f"{page}_open", icon=":material/search:", disabled=text is None)
        st.caption(markdown.literal(said), width="content")
    if pressed and text is not None:
        st.session_state["inspect_review"] = text
        # with nothing to put in its place, Streamlit refuses to clear an address that holds the order of a table
        st.switch_page("../pages/inspect.py", query_params={"inspect_models": names})
