"""A review of which each word can be chosen by a click: letter for letter, by the browser's own text nodes, never as markup."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import streamlit as st
from streamlit.components.v2 import component

from ui.review_text import Piece, block

_HTML = '<div dir="auto" tabindex="0" role="group" aria-label="The review"></div>'
_JS = """
export default function ({ data, parentElement, setTriggerValue }) {
  const review = parentElement.querySelector("[role=group]")
  review.style.cssText = data.block
  review.replaceChildren(...data.pieces.map(({ text, style, title, unit }) => {
    const span = document.createElement("span")
    span.textContent = text
    span.style.cssText = style
    span.title = title
    if (unit !== null) span.dataset.unit = unit
    return span
  }))
  review.onclick = ({ target }) => {
    if (target.dataset.unit !== undefined) setTriggerValue("word", Number(target.dataset.unit))
  }
}
"""
_CSS = """
[aria-label="The review"] [data-unit] {
  cursor: pointer;
}
"""
_mounted = component("review", html=_HTML, css=_CSS, js=_JS, isolate_styles=False)


def review(pieces: Sequence[Piece], key: str, clicked: Callable[[int], None] | None, *, scrolling: bool = True) -> None:
    """Draws it; `clicked` is told the unit of a word that was clicked, before the page runs again. None: nothing is chosen."""
    shown = pieces if clicked else [replace(piece, unit=None) for piece in pieces]
    data = {"block": block(scrolling=scrolling), "pieces": [vars(piece) for piece in shown]}
    _mounted(key=key, data=data, on_word_change=partial(_told, key, clicked))


def _told(key: str, clicked: Callable[[int], None] | None) -> None:
    unit = st.session_state[key]["word"]
    if clicked and isinstance(unit, int | float):
        clicked(int(unit))
