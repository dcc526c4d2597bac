"""Two texts, or one through two models, side by side: what is answered, and what each word is worth on one scale."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st

from core.figures.evidence import contrast_heatmap
from core.figures.labels import percent, visible
from core.inspection.edits import ABSENT, Contrast, Weighed
from core.records import Span
from ui import compare, export, loaders, markdown, panels
from ui.review_text import Unit, drawn, pieces, units_of_words

NEW = "font-weight:600;text-decoration:underline 2px;text-underline-offset:4px"
GONE = "text-decoration:line-through 2px"
"""How words look that one of two texts lacks."""
NOTES = (
    "A word's worth is what the log-odds of {label} lose when a mask stands in its place, in nats; what was not read has none. "
    "In the difference, the second less the first, a word that one side lacks counts 0 there."
)


def show(both: Contrast, models: tuple[str, str], called: tuple[str, str], key: str) -> None:
    """Both answers with their words, their difference word by word, and all of it to take away.

    `called` tells the two apart; `key` begins with the page's name.
    """
    said = sentences(both, called)
    st.markdown(markdown.literal(" ".join(said)))
    _side_by_side(both, models, called)
    found, label = table(both, called), both.first.label
    rows = {name: found[name].to_numpy() for name in (*called, "difference")}
    figure = contrast_heatmap(found["word"].tolist(), rows, label)
    alt = f"What each word is worth for {label}, {called[0]} and {called[1]}: {largest_difference(found)}"
    panels.chart(figure, key=f"{key}_chart", alt=alt)
    notes = explained(both)
    st.caption(markdown.literal(notes))
    with panels.unfolded("Every number", f"{key}_numbers") as is_open:
        if is_open:
            st.dataframe(found, hide_index=True, key=f"{key}_table", placeholder="-")
            title = f"What if: {called[0]} and {called[1]}"
            charts = {"Word by word": figure}
            export.downloads(
                export.Export(title=title, table=found, of=of(models), said=said, charts=charts, notes=[notes]), key=key
            )


def explained(both: Contrast) -> str:
    """What the numbers are."""
    at_once = max(both.first.together, both.second.together)
    grouped = f" Words were hidden {at_once} at a time, since there are so many." if at_once > 1 else ""
    return NOTES.format(label=both.first.label) + grouped


def _side_by_side(both: Contrast, models: tuple[str, str], called: tuple[str, str]) -> None:
    limit = float(np.nanmax(np.abs(both.values), initial=0))
    columns = st.grid(2, min_column_width=340, gap="large")
    looks = (both.gone, GONE), (both.new, NEW)
    for one, model, name, (places, look) in zip((both.first, both.second), models, called, looks, strict=True):
        with columns.cell():
            if models[0] == models[1]:  # else each answer says whose it is
                st.caption(markdown.literal(name))
            panels.answer(loaders.model(model), loaders.reading(model, one.text, windows=False))
            st.html(as_html(one, places, look, limit))
    marks = "Struck through: only in the first. Underlined: only in the second." if both.gone or both.new else ""
    st.caption(f"{shades(both.first.label, limit)} {marks}")


def shades(label: str, limit: float) -> str:
    """What the colours of words are; they are full at `limit`, in nats."""
    return f"Orange speaks for {markdown.literal(label)}, blue against it; full colour at {limit:.2f} nats."


def sentences(both: Contrast, called: tuple[str, str]) -> list[str]:
    """What becomes of the answer and of the words; typed words are not among them."""
    first, second = both.first, both.second
    points, nats = 100 * (second.probability - first.probability), second.log_odds - first.log_odds
    turned = f": the answer turns to {second.prediction.label}" if second.prediction.label != first.label else ""
    words = ", ".join(f"{len(places)} {what}" for places, what in ((both.new, "added"), (both.gone, "removed")) if places)
    return [
        f"{first.label}: {called[0]} {percent(first.probability)}, {called[1]} {percent(second.probability)} "
        f"({compare.signed(points)} points){turned}.",
        f"Log-odds: {first.log_odds:+.2f} and {second.log_odds:+.2f} ({nats:+.2f} nats).",
        f"Words: {words}." if words else "No word differs.",
    ]


def table(both: Contrast, called: tuple[str, str]) -> pd.DataFrame:
    """A row for each word that was read in either: where it is, what it is worth in both, and the difference, in nats."""
    sides = [called[0] if j == ABSENT else called[1] if i == ABSENT else "both" for i, j in both.pairs.tolist()]
    columns = dict(zip((*called, "difference"), (*both.values, both.difference), strict=True))
    found = pd.DataFrame({"word": [visible(word) for word in both.words], "in": sides} | columns)
    return found[found["difference"].notna()].reset_index(drop=True)


def largest_difference(found: pd.DataFrame) -> str:
    """What the chart of a `table` shows above all, for who cannot see it."""
    if not found["difference"].any():
        return "no word differs in worth"
    row = found.loc[found["difference"].abs().idxmax()]
    return f"the largest difference, {row['difference']:+.2f} nats, is in {row['word']}"


def as_html(one: Weighed, marked: Sequence[int], look: str, limit: float) -> str:
    """The text with its words shaded by their worth, in full at `limit`; the `marked` ones, read or not, have a look beside."""
    worth = one.values / limit if limit else one.values
    shaded = units_of_words(one.words, worth)
    unread = [Unit(span=span, share=0.0, unknown=False) for span in _unread(one, marked)]
    found = pieces(
        one.text, sorted([*shaded, *unread], key=lambda unit: unit.span), [unit.span for unit in shaded],
        of="worth of the strongest word here", largest=1.0,
    )  # fmt: skip
    own = {one.words[place].span[0] for place in marked}
    begins = np.cumsum([0, *(len(piece.text) for piece in found)]).tolist()
    return drawn(replace(piece, style=f"{piece.style};{look}") if begin in own else piece
                 for piece, begin in zip(found, begins, strict=False))  # fmt: skip


def _unread(one: Weighed, marked: Sequence[int]) -> list[Span]:
    """The marked words that were not read, neighbours as one: of a very long text there are very many."""
    spans: list[Span] = []
    last = None
    for place in (place for place in marked if not one.words[place].read):
        start, end = one.words[place].span
        if last == place - 1:
            start, _ = spans.pop()
        spans.append((start, end))
        last = place
    return spans


def of(models: Sequence[str]) -> list[str]:
    """What figures of these models are of, with their weights, a sentence each."""
    names = list(dict.fromkeys(models))
    weights = [f"{loaders.model_title(name)}: weights of SHA-256 {loaders.weights_hash(name)}." for name in names]
    return [*export.of_models(names), *weights]
