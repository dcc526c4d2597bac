"""Widgets that choose what a page shows. A choice worth sharing lives in the URL, under a key that names its page."""

import streamlit as st

from core.artifact import Model
from core.records import AttentionMap, Reading
from ui import loaders
from ui.examples import NAMES
from ui.view import View

ALL = 0
"""Layers and heads count from 1 for people; 0 is all of them, averaged."""


def review() -> str:
    """The typed text, kept for the session. An example takes its place when its button is pressed."""
    text = st.text_area(
        "Review",
        key="inspect_review",
        persist_state="session",
        height=170,
        placeholder="Type or paste a film review in English.",
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("Inspect", type="primary", help="Ctrl+Enter in the text does the same.")
        st.caption("or an example:", width="content")
        for name in NAMES:
            st.button(name, key=f"inspect_example_{name}", on_click=_fill, args=(name,))
    return text


def _fill(example: str) -> None:
    st.session_state["inspect_review"] = loaders.examples()[example]


def readers() -> tuple[list[str], bool]:
    """Up to two models, and whether they are to read a long review whole, in windows, rather than cut."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        names = models("inspect_models", most=2, default=2)
        windows = st.toggle(
            "Read the whole review in windows",
            key="inspect_windows",
            bind="query-params",
            help="A model reads a limited number of tokens. In windows it reads a longer review in pieces of that size; "
            "their logits are averaged.",
        )
    return names, windows


def models(key: str, most: int, default: int) -> list[str]:
    """Names of the chosen models, `most` of them at most, at first the first `default`."""
    names = loaders.model_names()
    chosen = st.multiselect("Models", names, default=names[:default], max_selections=most, key=key, bind="query-params")
    return [name for name in chosen if name in names][:most]


def view(model: Model, reading: Reading) -> View:
    """The window, layer and head to look at. Where there is one of a kind, nothing is asked."""
    attention = _window(model.name, reading)
    n_layers, n_heads = attention.weights.shape[:2]
    with st.container(horizontal=True):
        layer = _one_of("Layer", n_layers, n_layers, f"inspect_layer_{model.name}")
        head = _one_of("Head", n_heads, ALL, f"inspect_head_{model.name}") if layer is not None else None
    return View(model=model.name, kind=model.kind, reading=reading, attention=attention, layer=layer, head=head)


def _window(name: str, reading: Reading) -> AttentionMap:
    n = len(reading.windows)
    if n == 1:
        return reading.windows[0]
    index = st.selectbox(
        "Window", range(n), format_func=lambda i: f"{i + 1} of {n}", key=f"inspect_window_{name}", bind="query-params"
    )
    return reading.windows[index]


def _one_of(label: str, n: int, default: int, key: str) -> int | None:
    if n == 1:
        return 0
    chosen = st.selectbox(label, range(n + 1), index=default, format_func=_name, key=key, bind="query-params")
    return None if chosen == ALL else chosen - 1


def _name(number: int) -> str:
    return "all" if number == ALL else str(number)
