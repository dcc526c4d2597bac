"""Parts of a page that are drawn again by themselves."""

from collections.abc import Callable

import streamlit as st


def ticking(draw: Callable[..., None], seconds: float | None) -> Callable[..., None]:
    """`draw` as a part of the page that is drawn again every so many seconds, or only with the page if None.

    It has a place of its own. When such a part is drawn again, Streamlit drops whatever of it has not reached the browser yet,
    the part itself too, and the browser gives up on a page whose next element would come after one that is missing.
    """

    def drawn(*known: object) -> None:
        with st.container():
            st.fragment(draw, run_every=seconds)(*known)

    return drawn
