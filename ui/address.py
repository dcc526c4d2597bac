"""What an address asks for and does not get. Streamlit leaves that out in silence, and whoever opens a link would be misled."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import streamlit as st

from core.data.labels import number
from ui import markdown

PLACE, SEEN, OPEN = "address_place", "address_seen", "address_open"


@contextmanager
def answered(page: str) -> Iterator[None]:
    """Say, above what the page of that name draws within, what its address asks for and what is shown instead.

    It is said once, when there is a widget to show it: later, what is in the address is a person's own choice. A page that is
    stopped early leaves a question open for its next run.
    """
    asked, session = {key: st.query_params.get_all(key) for key in st.query_params}, st.session_state
    before = session.get(SEEN, {}).get(page)
    new = {key: values for key, values in asked.items() if values != (before or {}).get(key)}
    session[OPEN] = new if before is None else session[OPEN] | new
    session[SEEN] = {page: asked}
    session[PLACE] = st.container()
    yield
    for key in [key for key in session[OPEN] if key in session]:
        _compare(key, session[OPEN][key], session[key])
        session[OPEN].pop(key, None)


def _compare(key: str, asked: Sequence[str], shown: object) -> None:
    values = [_written(value) for value in (shown if isinstance(shown, list | tuple) else [shown])]
    instead(key, [value for value in asked if value and not any(_is_same(value, other) for other in values)], values)


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_same(asked: str, shown: str) -> bool:
    return asked.lower() == shown.lower() or number(asked) == number(shown) is not None


def instead(key: str, missing: Sequence[str], shown: Sequence[str]) -> None:
    """Say that the address asks for what is `missing` under `key`, and what is shown, if anything is and it is not said yet."""
    if missing and key in st.session_state.get(OPEN, ()):
        verb = "are" if len(shown) > 1 else "is"
        given = f"{' and '.join(shown) or 'nothing'} {verb} shown instead"
        tell(key, f"The address asks for {' and '.join(missing)} ({key}), which cannot be shown here: {given}.")


def tell(key: str, sentence: str) -> None:
    """Say a sentence on what the address asks for under `key`; nothing else is said on that in this run."""
    st.session_state.get(OPEN, {}).pop(key, None)
    st.session_state.get(PLACE, st).warning(markdown.literal(sentence), icon=":material/info:")
