"""Widgets that choose what a page shows. A choice worth sharing lives in the URL, under a key that names its page."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import streamlit as st

from core.artifact import Opened
from core.inspection.parts import word_parts
from core.records import AttentionMap, Reading
from ui import address, loaders, panels
from ui.examples import NAMES
from ui.view import EVERY_WORD, View, word_key

ALL = 0
"""Layers and heads count from 1 for people; 0 is all of them, averaged."""
LOOKS, IS_LOOKED_AT = "what it looks at", "what looks at it"


def presenting() -> bool:
    """Whether the page is for a projector: no menu and no controls, `present=1` in its address."""
    return st.query_params.get("present") == "1"


def review(verb: str = "Inspect") -> str:
    """The typed text, kept for the session, on every page that asks for it. `verb` is what its button says.

    An example takes its place when its button is pressed.
    """
    text = st.text_area(
        "Review",
        key="inspect_review",
        persist_state="session",
        height=170,
        placeholder="Type or paste a review, in the language that the models were trained on.",
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(verb, type="primary", help="Ctrl+Enter in the text does the same.")
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
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        failed = _take_in_from_address(key)
        titles = loaders.reader_titles()
        names = several("Models", titles, key, most, list(titles)[:default])
        _another(key, names, most)
    for reason in failed:
        panels.refused(reason)
    return names


def model(key: str) -> str:
    """The name of the one chosen model, at first the first."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        failed = _take_in_from_address(key)
        name = one("Model", loaders.reader_titles(), key)
        _another(key, [], 1)
    for reason in failed:
        panels.refused(reason)
    return name


def _take_in_from_address(key: str) -> list[str]:
    """Take in the classifiers from elsewhere that the address names, and say which cannot be opened.

    An address may be anybody's: nothing is downloaded because of one.
    """
    failed = []
    for name in st.query_params.get_all(key):
        if not loaders.is_foreign(name) or name in loaders.reader_titles():
            continue
        if loaders.is_to_download(name):
            failed.append(f"{name}: this address names it, and it has not been downloaded; open it by Another")
            continue
        try:
            loaders.take_in(name)
        except ValueError as error:
            failed.append(str(error))
    return failed


def _another(key: str, chosen: Sequence[str], most: int) -> None:
    """A place to name a classifier from elsewhere, which then is chosen, instead of the last one where there is no room."""
    with st.popover("Another", icon=":material/add:", help="Open a classifier that was trained elsewhere."):
        with st.form(f"{key}_another", border=False, enter_to_submit=True):
            named = st.text_input("Folder, or name on the hub", placeholder="path/to/my-bert or hub:OWNER/NAME").strip()
            pressed = st.form_submit_button("Open", type="primary")
        st.caption("A BERT, DistilBERT, RoBERTa or ModernBERT classifier with safetensors, as transformers saves it.")
        if not pressed or not named:
            return
        with panels.refusals():
            name = loaders.take_in(named)
            remember(key, [*[other for other in chosen if other != name][: most - 1], name])
            st.rerun()


def several(label: str, titles: Mapping[str, str], key: str, most: int, default: Sequence[str] = ()) -> list[str]:
    """The chosen ids of those that `titles` calls by name, `most` of them at most. The URL holds them under `key`."""
    wanted = chosen(key, titles, default)[:most]
    _say_what_is_missing(key, wanted, titles)
    start = None if _overruled(key, wanted) else wanted
    called = _called(titles)
    return st.multiselect(
        label, list(titles), start, format_func=called, max_selections=most, key=key, on_change=_note, args=(key, titles)
    )


def one(label: str, titles: Mapping[str, str], key: str) -> str:
    """The chosen id of those that `titles` calls by name, at first the first. The URL holds it under `key`."""
    ids = list(titles)
    wanted = (chosen(key, titles, ()) or ids)[0]
    _say_what_is_missing(key, [wanted], titles)
    start = 0 if _overruled(key, wanted) else ids.index(wanted)
    return st.selectbox(label, ids, start, format_func=_called(titles), key=key, on_change=_note, args=(key, titles))


def _say_what_is_missing(key: str, wanted: Sequence[str], titles: Mapping[str, str]) -> None:
    """Of what the URL asks for, whether it is gone, or more than a widget holds."""
    missing = [id for id in st.query_params.get_all(key) if id and id not in wanted]
    address.instead(key, missing, [titles[id] for id in wanted])


def _overruled(key: str, wanted: str | list[str]) -> bool:
    """Whether the widget's value had to be replaced by `wanted`.

    Else `wanted` is to be its starting value, in each run: one that is set from here is sent once, and a click at the wrong
    moment ends that run before it is. The browser would then answer with a choice of nothing, as if it were a person's.
    """
    if st.session_state.get(key, wanted) == wanted:
        return False
    st.session_state[key] = wanted
    return True


def steps(end: int, key: str) -> tuple[int, int] | None:
    """The range of steps to show, None for all of them: a slider, since no chart keeps its zoom when a point is added.

    Where there are other steps it is another slider: a range beyond its end would be refused. A browser counts to 2^53.
    """
    if not 2 <= end < 2**53:
        return None
    chosen = st.slider("Steps", 0, end, (0, end), key=f"{key}_{end}", bind="query-params", format="localized")
    return None if chosen == (0, end) else chosen


def _called(titles: Mapping[str, str]) -> Callable[[str], str]:
    return lambda id: titles.get(id, id)


def chosen(key: str, known: Collection[str], default: Sequence[str]) -> list[str]:
    """The ids of the URL, else those chosen before in this session, on coming back to the page, else `default`.

    `bind` would write titles into the URL instead: a renamed run would be lost, and of two alike the first taken.
    """
    noted = st.session_state.get(f"{key}_noted")
    if key in st.query_params:
        noted = st.query_params.get_all(key)
    elif key in st.session_state:  # the browser's Back button led to where nothing had been chosen yet
        noted = None
    if noted is None:
        return list(default)
    remember(key, noted)
    found = [id for id in dict.fromkeys(noted) if id in known]
    return found or (list(default) if any(noted) else [])


def _note(key: str, titles: Mapping[str, str]) -> None:
    """What was just chosen. A browser that knows an older title sends that instead of an id: it is no choice."""
    chosen = st.session_state[key]
    ids = [chosen] if isinstance(chosen, str) else chosen
    if all(id in titles for id in ids):
        remember(key, ids)


def remember(key: str, ids: Sequence[str]) -> None:
    """Choose `ids` under `key`, and write them into the URL."""
    st.session_state[f"{key}_noted"] = list(ids)
    if st.query_params.get_all(key) != (list(ids) or [""]):
        st.query_params[key] = list(ids) or ""


def view(model: Opened, reading: Reading) -> View:
    """The window, layer, head and word to look at. Where there is one of a kind, nothing is asked."""
    attention = _window(model.name, reading)
    n_layers, n_heads = attention.weights.shape[:2]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        layer = _one_of("Layer", n_layers, n_layers, f"inspect_layer_{model.name}")
        head = _one_of("Head", n_heads, ALL, f"inspect_head_{model.name}") if layer is not None else None
        parts = word_parts(reading.text, attention)
        heads = View(
            model=model.name, kind=model.kind, reading=reading, attention=attention, layer=layer, head=head, parts=parts
        )
        return _word(heads) if heads.can_choose else heads


def _word(view: View) -> View:
    """The view of one word, where a person chooses one."""
    labels = view.parts.labels
    label = st.selectbox("Word", [EVERY_WORD, *labels], key=word_key(view.model), help="Or click on it in the review.")
    if label not in labels:
        return view
    shown = st.segmented_control(
        "Shown", [LOOKS, IS_LOOKED_AT], default=LOOKS, required=True, key=f"inspect_shown_{view.model}", bind="query-params"
    )
    return replace(view, word=labels.index(label), looked_at=shown == IS_LOOKED_AT)


def _window(name: str, reading: Reading) -> AttentionMap:
    n = len(reading.windows)
    if n == 1:
        return reading.windows[0]
    names = [f"{number} of {n}" for number in range(1, n + 1)]
    chosen = st.selectbox("Window", names, key=f"inspect_window_{name}", bind="query-params")
    return reading.windows[names.index(chosen)]


def _one_of(label: str, n: int, default: int, key: str) -> int | None:
    if n == 1:
        return 0
    names = ["all", *map(str, range(1, n + 1))]
    chosen = st.selectbox(label, names, index=default, key=key, bind="query-params")
    return None if chosen == names[ALL] else int(chosen) - 1
