"""The heads of a Transformer: what each looks at, what becomes of an answer without some, and of many answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from core.figures.attention import attention_heatmap, largest_weight, thumbnail
from core.figures.heads import accuracy_without, scatter
from core.figures.labels import percent, token_labels
from core.records import Estimate, Head, Reading
from core.statistics import Difference, share, verdict
from ui import compare, controls, explanations, export, loaders, markdown, panels
from ui.view import head_name

if TYPE_CHECKING:
    from core.inspection.heads import Importance

HOW = {"nothing": "zero", "its mean over the text": "mean"}
"""What a head that is switched off gives, in words, and as `core.inspection.heads` calls it."""
SAMPLES = (50, 100, 200, 500)
"""Test reviews that may be asked."""
MANY = 32
"""Heads whose maps are shown unasked."""


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One number of a head."""

    title: str
    field: str
    factor: int = 1
    """Of the number that is shown: 100 for shares, shown in percent."""

    def of(self, found: Sequence[Head]) -> list[float]:
        """The number of each head, as it is shown."""
        return [self.factor * getattr(head, self.field) for head in found]


MEASURES = {
    measure.title: measure
    for measure in (
        Measure(title="effect, nats", field="effect"),
        Measure(title="entropy, nats", field="entropy"),
        Measure(title="distance, tokens", field="distance"),
        Measure(title="on added tokens, %", field="added", factor=100),
        Measure(title="on the first token, %", field="first", factor=100),
        Measure(title="on punctuation, %", field="signs", factor=100),
        Measure(title="on stop words, %", field="stop_words", factor=100),
    )
}
PLACE = "layer and head"
NOTES = (
    "Effect: log-odds of the answer that are lost without the head. Entropy: how widely a token spreads its attention. "
    "Distance: how far away it looks. Shares: of the head's attention, on tokens that nobody typed, such as [CLS], on the "
    "first typed one, on punctuation, and on English stop words."
)

SAMPLE_NOTES = (
    "Each head was switched off alone. Intervals of accuracies are Wilson's, 95%; p is McNemar's on the same reviews, by Holm "
    "for all heads together. Answers move: mean distance of log-odds."
)


def asked() -> tuple[str, str]:
    """The model, and what a head gives that is switched off."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        name = controls.model("heads_model")
        how = st.segmented_control(
            "Switched off, a head gives",
            list(HOW),
            default=next(iter(HOW)),
            required=True,
            key="heads_how",
            bind="query-params",
        )
    return name, HOW[how]


def every(name: str, found: Sequence[Head], reading: Reading) -> None:
    """All heads on this review, sorted as a person likes: numbers, maps, and any two numbers against each other."""
    st.subheader("Every head on this review")
    by = st.selectbox("Sort by", [*MEASURES, PLACE], key="heads_sort", bind="query-params", width=260)
    ranked = ordered(found, by)
    table = frame(ranked)
    st.dataframe(table, hide_index=True, key="heads_table", column_config=_formats())
    st.caption(NOTES)
    weights = reading.windows[0].weights
    if len(found) <= MANY or st.toggle(f"Maps of all {len(found)} heads", key="heads_maps", bind="query-params"):
        _maps(ranked, weights)
    _two_measures(found)
    export.downloads(
        export.Export(
            title=f"Heads of {loaders.model_title(name)} on one review", table=table, of=export.of_models([name]), notes=[NOTES]
        ),
        key="heads_every",
    )


def ordered(found: Sequence[Head], by: str) -> list[Head]:
    """The heads with the largest of a measure first, whatever its sign; or in their places."""
    if by == PLACE:
        return list(found)
    return sorted(found, key=lambda head: -abs(getattr(head, MEASURES[by].field)))


def frame(found: Sequence[Head]) -> pd.DataFrame:
    """A row for each head: its place, as people count, and every measure."""
    names = [head_name(head.layer, head.head) for head in found]
    return pd.DataFrame({"head": names} | {title: measure.of(found) for title, measure in MEASURES.items()})


def _formats() -> dict[str, object]:
    return {title: st.column_config.NumberColumn(format="%.3f" if measure.field == "effect" else "%.1f")
            for title, measure in MEASURES.items()}  # fmt: skip


def _maps(ranked: Sequence[Head], weights: np.ndarray) -> None:
    ceiling = float(weights.max())
    with st.grid(8, min_column_width=72, gap="small"):
        for head in ranked:
            called = head_name(head.layer, head.head)
            picture = thumbnail(weights[head.layer, head.head], ceiling)
            st.image(picture, caption=called, alt=f"Attention map of {called}", width="stretch")
    st.caption(f"Rows attend to columns. One colour range for all, from 0 to {ceiling:.2g}, by its square root.")


def _two_measures(found: Sequence[Head]) -> None:
    titles = list(MEASURES)
    left, right = st.columns(2)
    x = left.selectbox("Across", titles, index=2, key="heads_x", bind="query-params")
    y = right.selectbox("Upward", titles, index=0, key="heads_y", bind="query-params")
    places = [(head.layer, head.head) for head in found]
    figure = scatter(places, MEASURES[x].of(found), MEASURES[y].of(found), (x, y))
    panels.chart(figure, key="heads_scatter", alt=f"Each head by {x} and {y}, as in the table")


def without(name: str, reading: Reading, how: str) -> None:
    """The answer and one map, with every head and without those that a person switches off."""
    st.subheader("Without some of them")
    shape = reading.windows[0].weights.shape[:2]
    titles = {f"{layer + 1}.{head + 1}": head_name(layer, head) for layer, head in np.ndindex(shape)}
    left, right = st.columns([3, 2])
    with left:
        off = controls.several("Switch off", titles, "heads_off", most=len(titles))
    if not off:
        st.info("Choose heads to switch off: the answer and any map are shown with and without them.")
        return
    with right:
        seen = controls.one("Map of", titles, "heads_seen")
    changed = loaders.reading_without(name, reading.text, tuple(map(_place, off)), how)
    st.markdown(markdown.literal(effect(reading, changed)))
    layer, head = _place(seen)
    ceiling = max(float(one.windows[0].weights.max()) for one in (reading, changed))
    for column, one, said in zip(st.columns(2), (reading, changed), ("all heads", "without those"), strict=True):
        attention = one.windows[0]
        labels, weights = token_labels(one.text, attention), attention.weights[layer, head]
        figure = attention_heatmap(weights, labels, labels, ceiling, titles[seen])
        with column:
            alt = f"Attention map, {titles[seen]}, {said}: {largest_weight(weights, labels, labels)}"
            panels.chart(figure, key=f"heads_map_{said.replace(' ', '_')}", alt=alt)
            st.caption(f"{titles[seen].capitalize()}, {said}. Colour: from 0 to {ceiling:.2g}, the largest weight of any head.")
    if layer <= min(place[0] for place in map(_place, off)):
        st.caption("No head below this one is off, so that its map is the same: a head changes what the layers above it see.")


def _place(id: str) -> tuple[int, int]:
    """Layer and head, from 0, of what people call 1.1."""
    layer, head = id.split(".")
    return int(layer) - 1, int(head) - 1


def effect(before: Reading, after: Reading) -> str:
    """What switching heads off did to the answer, a sentence."""
    label = before.prediction.label
    was, now = (one.prediction.probabilities[label] for one in (before, after))
    points = compare.signed(100 * (now - was))
    flipped = "" if after.prediction.label == label else f", and the answer turns to {after.prediction.label}"
    return f"{label}: {percent(was)} with all heads, {percent(now)} without those ({points} points){flipped}."


def sample(name: str, how: str) -> None:
    """Accuracy without each head in turn, over test reviews, once a person asks for it."""
    st.subheader("Over many reviews")
    st.markdown(
        "One review is not a head's job: what a head is for shows over a sample of test reviews, on which each is off once."
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        n = st.select_slider("Test reviews", SAMPLES, 200, key="heads_n", bind="query-params", width=260)
        wanted = st.button("Ask them", key="heads_ask", icon=":material/play_arrow:")
    found = explanations.importance(name, n, how, ask=wanted)
    if found is None:
        return
    differences = found.differences()
    table, said = importance_frame(found, differences), finding(found, differences)
    places = [f"{layer + 1}.{head + 1}" for layer, head in np.ndindex(found.without.shape)]
    figure = accuracy_without(
        places, [_share(accuracy, found.n) for accuracy in found.without.flat], _share(found.accuracy, found.n)
    )
    panels.chart(figure, key="heads_importance", alt="Accuracy without each head")
    st.markdown(markdown.literal(said))
    st.dataframe(table, hide_index=True, key="heads_sample", column_config=panels.PERCENT)
    export.downloads(
        export.Export(
            title=f"Accuracy of {loaders.model_title(name)} without each head", table=table, said=[said],
            of=export.of_models([name]), charts={"Accuracy without each head": figure}, notes=[SAMPLE_NOTES],
        ),
        key="heads_sample",
    )  # fmt: skip


def importance_frame(found: Importance, differences: Sequence[Difference]) -> pd.DataFrame:
    """A row for each head: accuracy without it, how that differs, and how far answers move; shares in percent."""
    rows = []
    for (layer, head), gain in zip(np.ndindex(found.without.shape), differences, strict=True):
        accuracy = _share(found.without[layer, head], found.n)
        rows.append({
            "head off": head_name(layer, head), "accuracy": 100 * accuracy.value, "from": 100 * accuracy.low,
            "to": 100 * accuracy.high, "points": compare.signed(100 * gain.value), "p": gain.p,
            "answers move by, nats": found.effect[layer, head],
        })  # fmt: skip
    return pd.DataFrame(rows)


def finding(found: Importance, differences: Sequence[Difference]) -> str:
    """Which heads a model misses by more than chance, or that it misses none."""
    names = [head_name(layer, head) for layer, head in np.ndindex(found.without.shape)]
    shown = [f"without {name} {verdict(gain)}, {compare.chance(gain.p)}"
             for name, gain in zip(names, differences, strict=True) if gain.is_shown]  # fmt: skip
    whole = f"{found.accuracy:.1%} of {found.n:,} reviews are right with all heads"
    if shown:
        return f"{whole}; {'; '.join(shown)} (of {len(names)} heads, by Holm)."
    return f"{whole}; no single head is missed by more than chance (p by McNemar, for {len(names)} heads by Holm)."


def _share(accuracy: float, n: int) -> Estimate:
    found = share(round(accuracy * n), n)
    assert found is not None
    return found
