"""A configuration as widgets and back: one for each knob, of the kind that its annotation asks for."""

import ast
import inspect
import textwrap
from collections.abc import Collection
from dataclasses import replace
from functools import cache
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import streamlit as st

from core.checked import Checked, options_of
from core.config import KNOBS_OF_FITS, DataConfig, LinearArchitecture, RunConfig

FIRST = (
    "epochs", "batch_size", "lr", "limit", "max_len", "n_layers", "n_heads", "d_model", "d_hidden", "dropout", "longest_run",
    "c_values",
)  # fmt: skip
"""Knobs that matter most."""
SETTLED = ("kind", "n_classes", "data", "text_column", "label_column")
"""Knobs that are chosen elsewhere, or settled by the data."""
NARROWEST = 150
"""Pixels of a widget."""


def choose(base: RunConfig, reviews: DataConfig, key: str) -> RunConfig:
    """`base` on these `reviews`, with every other knob as a person sets it: the first ones in sight, the rest folded.

    Widgets are kept for the session under `key`, which should differ where `base` does. ValueError for values that no run
    can have.
    """
    first = st.grid(5, min_column_width=NARROWEST)
    with st.expander("All other knobs"):
        parts = {"model": ("Network", base.model), "training": ("Training", base.training)}
        folded = {}
        for name, (title, _) in parts.items():
            st.markdown(f"**{title}**")
            folded[name] = st.grid(5, min_column_width=NARROWEST)
    of_training = KNOBS_OF_FITS if isinstance(base.model, LinearArchitecture) else None
    training = _values(base.training, first, folded["training"], key, of_training)
    limited = _values(replace(reviews, limit=base.reviews.limit), first, first, key)
    model = _values(base.model, first, folded["model"], key)
    # all are drawn before one is refused, or those after it would be lost
    for part, values in ((base.training, training), (base.model, model)):
        for name, value in values.items():
            if isinstance(value, str) and isinstance(getattr(part, name), tuple):
                raise ValueError(f"{name}: got {value!r}, expected numbers with a comma between them")
    return RunConfig(
        model=replace(base.model, **model), reviews=replace(reviews, **limited), training=replace(base.training, **training)
    )


def _values(base: Checked, first: Any, folded: Any, key: str, only: Collection[str] | None = None) -> dict[str, Any]:
    hints = get_type_hints(type(base), include_extras=True)
    asked = [name for name in hints if name not in SETTLED and (only is None or name in only)]
    names = sorted(asked, key=lambda name: FIRST.index(name) if name in FIRST else 99)
    values = {}
    for name in names:
        with (first if name in FIRST else folded).cell():
            values[name] = _widget(name, getattr(base, name), hints[name], f"{key}_{name}", explanations(type(base)).get(name))
    return values


def _widget(name: str, value: Any, hint: Any, key: str, help: str | None) -> Any:
    kept: dict[str, Any] = {"key": key, "persist_state": "session", "help": help}
    types_ = [get_args(option)[0] if get_origin(option) is Annotated else option for option in options_of(hint)]
    if isinstance(value, bool):
        return st.selectbox(name, [True, False], index=int(not value), format_func=lambda on: "on" if on else "off", **kept)
    if get_origin(types_[0]) is Literal:
        choices = get_args(types_[0])
        return st.selectbox(name, choices, index=choices.index(value), **kept)
    if isinstance(value, tuple):
        return _numbers(name, value, kept)
    number = {"format": "%g", "step": _step(value)} if float in types_ else {"step": 1}
    if type(None) in types_:  # only a box that begins empty can be emptied
        if f"{key}_begun" not in st.session_state:
            st.session_state[f"{key}_begun"] = True
            st.session_state[key] = value
        return st.number_input(name, value=None, placeholder="none", **number, **kept)
    return st.number_input(name, value=value, **number, **kept)


def _step(value: float | None) -> float:
    """A tenth of the value's own size, so that the buttons neither leap nor stand still."""
    return 10.0 ** (len(f"{value:.0f}") - 2) if value and value >= 1 else float(f"{(value or 0.1) / 10:.0e}")


def _numbers(name: str, values: tuple[float, ...], kept: dict[str, Any]) -> tuple[float, ...] | str:
    """What was typed, where it is not numbers with commas between them."""
    typed = st.text_input(name, ", ".join(f"{value:g}" for value in values), **kept)
    try:
        return tuple(float(part) for part in typed.split(","))
    except ValueError:
        return typed


@cache
def explanations(part: type[Checked]) -> dict[str, str]:
    """What the source says of each knob, in the text that follows it."""
    found = {}
    for owner in reversed(part.__mro__[:-1]):
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
        assert isinstance(definition, ast.ClassDef)
        for knob, text in zip(definition.body, definition.body[1:], strict=False):
            if isinstance(knob, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
                found[ast.unparse(knob.target)] = " ".join(str(text.value.value).split())
    return found
