"""What was inspected in this tab, to come back to: in the session's memory alone, never in the URL, a log or a file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import streamlit as st

from core.figures.labels import percent
from core.records import Prediction
from ui import controls, loaders, markdown, panels

KEY = "inspect_history"
MOST = 12
"""Reviews that are kept."""
MOST_CHARACTERS = 1_000_000
"""Of all of them together; the newest is kept at any length."""
LONGEST = 90
"""Characters of a review that are shown."""
VIEW = ("inspect_windows", *(f"inspect_{what}_" for what in ("layer", "head", "window", "word", "shown")))
"""How the keys begin of what a view is made of."""


@dataclass(frozen=True, kw_only=True)
class Inspected:
    """One review as it was last looked at."""

    text: str
    models: tuple[str, ...]
    answers: tuple[str, ...]
    """A sentence for each model that answered."""
    view: Mapping[str, Any]
    """The values of the widgets that `VIEW` names."""


def note(text: str, models: Sequence[str], answers: Mapping[str, Prediction]) -> None:
    """Keeps what is on the page as the newest; the same review with the same models is kept once."""
    if not answers:
        return
    view = {str(key): value for key, value in st.session_state.items() if str(key).startswith(VIEW)}
    said = tuple(f"{loaders.model_title(name)}: {_answer(prediction)}" for name, prediction in answers.items())
    newest = Inspected(text=text, models=tuple(models), answers=said, view=view)
    st.session_state[KEY] = bounded([newest, *_others(text, models)])


def bounded(kept: Sequence[Inspected]) -> list[Inspected]:
    """The newest, as many as there is room for."""
    sizes = accumulate(len(one.text) for one in kept)
    return [
        one for i, (one, size) in enumerate(zip(kept, sizes, strict=True)) if i == 0 or (i < MOST and size <= MOST_CHARACTERS)
    ]


def offer(text: str, models: Sequence[str]) -> None:
    """The others, the newest first: a click brings back the review, its models and what was looked at."""
    others = _others(text, models)
    if not others:
        return
    with panels.unfolded("Inspected before in this tab", "inspect_before") as is_open:
        for number, one in enumerate(others if is_open else []):
            st.button(
                markdown.literal(cut(one.text)), key=f"inspect_again_{number}", on_click=_again, args=(one,), width="stretch"
            )
            st.caption(markdown.literal(" · ".join(one.answers)))
        if is_open:
            st.button("Forget them", key="inspect_forget", on_click=st.session_state.pop, args=(KEY,), type="tertiary")


def cut(text: str) -> str:
    """The beginning of a review on one line; where there is more, it says of how much."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST].rstrip()}… ({len(text):,} characters)"


def _others(text: str, models: Sequence[str]) -> list[Inspected]:
    return [one for one in st.session_state.get(KEY, ()) if (one.text, one.models) != (text, tuple(models))]


def _again(one: Inspected) -> None:
    controls.remember("inspect_models", one.models)
    st.session_state.update({"inspect_review": one.text, **one.view})


def _answer(prediction: Prediction) -> str:
    return f"{prediction.label} {percent(prediction.probabilities[prediction.label])}"
