"""Figures by length, from stored answers to charts, sentences and a table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from core import statistics
from core.evaluation.lengths import ARTICLE_EDGES, ENOUGH, Ends, ends, holm, quantile_edges, reading_limit, typed_edges
from core.figures.lengths import FIGURES, Figure, Gains, Series, by_length, difference_by_length
from core.records import LengthRange
from core.statistics import Difference, verdict
from ui import answer_table, compare, controls, export, loaders, markdown, panels

NO_DATA = "no data"
SHORT = "rotten-tomatoes"
"""Reviews of one sentence, of which IMDB has next to none."""
SHORT_HELP = (
    "Another data set, the 8,530 reviews of Rotten Tomatoes (Pang and Lee 2005), which the models were not trained on: each "
    "model reads them once, in some ten seconds."
)
ARTICLE, QUANTILES, OWN = "as in the articles", "equally many reviews", "your own"
KINDS = (ARTICLE, QUANTILES, OWN)
NOTES = (
    "Test reviews, on which no model was trained or chosen; hollow markers are one-sentence reviews, another data set. Words "
    "are counted in the text as typed, before it is cut to what a model reads. Intervals are at 95%: Wilson's for an accuracy, "
    "by the bootstrap for an F1. Models that read the same reviews are compared review by review in each range (McNemar's "
    "exact test, Holm's correction over all ranges; Tango's score interval, uncorrected), and there a hollow marker "
    "is a difference that may be chance. The longest reviews and the shortest are different ones: their accuracies are "
    "compared by Pearson's test, with Holm's correction over the models, and Newcombe's interval. The calibration error is the "
    "mean distance between confidence and accuracy over ten bins of confidence of equal width; the bar beside it shows how "
    "much of it chance alone would make. A range without reviews has no figure."
)
COLUMNS = panels.PERCENT | {
    "n": st.column_config.NumberColumn(format="%,d"),
    "F1": st.column_config.NumberColumn(format="%.3f"),
    "by chance": st.column_config.NumberColumn(
        format="%.1f%%", help="What a model that is right just as often as it says stays below, 95 times in 100."
    ),
    "read in part": st.column_config.NumberColumn(format="%.1f%%", help="Share of the reviews that are longer than it reads."),
}


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A model on a set of reviews, range by range."""

    name: str
    of: str
    """test, or a data set of the catalogue."""
    model: int
    """Its place among the chosen models."""
    title: str
    rows: Sequence[LengthRange]
    gains: Sequence[Difference | None] | None = None
    """Against the baseline, p corrected for all that the page shows; None for the baseline, and if it cannot be told."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a person wants to see."""

    edges: tuple[int, ...]
    of: tuple[str, ...]
    """test, and data sets of the catalogue."""


def asked(names: Sequence[str]) -> Asked | None:
    """Edges of the ranges, and which reviews figures are of; None, and a sentence, where these cannot be."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        kind = st.segmented_control(
            "Ranges of words", KINDS, default=KINDS[0], required=True, key="lengths_ranges", bind="query-params", wrap=True
        )
        typed = kind == OWN and st.text_input(
            "Each range up to", "32, 96, 224", key="lengths_edges", bind="query-params", width=220, max_chars=100
        )
        short = st.toggle("One-sentence reviews, too", key="lengths_short", bind="query-params", help=SHORT_HELP)
    with panels.refusals():
        return Asked(edges=_edges(kind, typed or "", names), of=("test", SHORT) if short else ("test",))
    return None


def _edges(kind: str, typed: str, names: Sequence[str]) -> tuple[int, ...]:
    if kind == OWN:
        return typed_edges(typed)
    return quantile_edges(loaders.predictions(names[0]).words) if kind == QUANTILES else ARTICLE_EDGES


def measured(names: Sequence[str], asked: Asked) -> list[Measured]:
    """Figures of each model on each set of reviews; it is said which could not be had, and why."""
    found = []
    for of in asked.of:
        for place, name in enumerate(names):
            with panels.refusals():
                rows = loaders.ranges(name, of, asked.edges)
                found.append(Measured(name=name, of=of, model=place, title=_title(name, of), rows=rows))
    return found


def baseline(found: Sequence[Measured]) -> str:
    """The model that the others are held against; it is asked for where there are several."""
    titles = {one.name: loaders.model_title(one.name) for one in found}
    return controls.one("Baseline", titles, "lengths_baseline") if len(titles) > 1 else found[0].name


def figure() -> Figure:
    """Which figure is drawn."""
    return st.segmented_control("Figure", FIGURES, default=FIGURES[0], required=True, key="lengths_figure", bind="query-params")


def _title(name: str, of: str) -> str:
    return loaders.model_title(name) if of == "test" else f"{loaders.model_title(name)} on {of}"


def against(found: Sequence[Measured], baseline: str, asked: Asked) -> list[Measured]:
    """The same with the differences to the baseline on the same reviews; it is said where that cannot be told."""
    bases, gains = {one.of for one in found if one.name == baseline}, {}
    refused: dict[str, list[str]] = {}
    for i, one in enumerate(found):
        if one.name != baseline and one.of in bases:
            try:
                gains[i] = loaders.differences(baseline, one.name, one.of, asked.edges)
            except ValueError as error:
                refused.setdefault(str(error), []).append(one.title)
    for reason, titles in refused.items():
        said = f"{', '.join(titles)} cannot be compared with {loaders.model_title(baseline)}: {reason}."
        st.info(markdown.literal(said), icon=":material/info:")
    corrected = dict(zip(gains, holm(list(gains.values())), strict=True))
    return [replace(one, gains=corrected.get(i)) for i, one in enumerate(found)]


def chart(found: Sequence[Measured], asked: Asked, figure: Figure) -> go.Figure:
    """One figure of all of them."""
    return by_length([_series(one, asked.edges) for one in found], figure)


def _series(one: Measured, edges: tuple[int, ...]) -> Series:
    limit = reading_limit(loaders.predictions(one.name), edges) if one.of == "test" else None
    return Series(name=one.title, model=one.model, rows=one.rows, limit=limit, hollow=one.of != "test")


def difference_chart(found: Sequence[Measured], baseline: str) -> go.Figure | None:
    """The differences to the baseline; None where there is none."""
    gains = [Gains(name=one.title, model=one.model, rows=one.gains) for one in found if one.gains is not None]
    names = [row.name for row in found[0].rows]
    return difference_by_length(names, gains, loaders.model_title(baseline)) if gains else None


def table(found: Sequence[Measured], baseline: str, asked: Asked) -> None:
    """All figures of the charts; a row that is ticked leads to its reviews."""
    event = st.dataframe(
        rows(found, baseline),
        hide_index=True,
        key=answer_table.key("lengths_table", asked, [one.name for one in found]),
        column_config=COLUMNS,
        placeholder=NO_DATA,
        on_select="rerun",
        selection_mode="single-row",
    )
    for place in event["selection"]["rows"]:
        i, one = place // len(found), found[place % len(found)]
        _read(one, i, baseline, asked.edges)
    if not event["selection"]["rows"]:
        st.caption("Tick a row to read the reviews behind it.")


def _read(one: Measured, i: int, baseline: str, edges: tuple[int, ...]) -> None:
    row = one.rows[i]
    models = [one.name] if one.name == baseline or one.gains is None else [baseline, one.name]
    limits = {"reviews_from": str(edges[i - 1] + 1)} if i else {}
    limits |= {"reviews_to": str(edges[i])} if i < len(edges) else {}
    st.page_link(
        "../pages/reviews.py",
        label=f"Read the {row.n:,} reviews of {row.name} words that {markdown.literal(one.title)} answered",
        icon=":material/rate_review:",
        query_params={"reviews_models": models, "reviews_of": one.of} | limits,
        disabled=not row.n,
    )


def rows(found: Sequence[Measured], baseline: str) -> pd.DataFrame:
    """A row for each range and model, range by range, shares in percent; where n is 0 there is no figure."""
    return pd.DataFrame([_row(one, i, baseline) for i in range(len(found[0].rows)) for one in found])


def _row(one: Measured, i: int, baseline: str) -> dict[str, Any]:
    row = one.rows[i]
    accuracy, f1, error = row.accuracy, row.f1, row.calibration
    return {
        "words": row.name,
        "model": one.title,
        "n": row.n,
        "accuracy": _percent(accuracy and accuracy.value),
        "from": _percent(accuracy and accuracy.low),
        "to": _percent(accuracy and accuracy.high),
        "vs baseline": compare.ITSELF if one.name == baseline else _against(one, i),
        "F1": np.nan if f1 is None else f1.value,
        "calibration error": _percent(error and error.value),
        "by chance": _percent(error and error.by_chance),
        "read in part": _percent(row.cut),
    }


def _percent(share: float | None) -> float:
    return np.nan if share is None else 100 * share


def _against(one: Measured, i: int) -> str:
    if one.gains is None:
        return compare.NO_VALUE
    gain = one.gains[i]
    return NO_DATA if gain is None else f"{compare.signed(100 * gain.value)} points"


def downloads(found: Sequence[Measured], baseline: str, figure: Figure, charts: Mapping[str, go.Figure]) -> None:
    """All of it, to take away."""
    export.downloads(
        export.Export(
            title=f"{figure.capitalize()} by length of the review", table=rows(found, baseline), said=findings(found, baseline),
            of=export.of_models(list(dict.fromkeys(one.name for one in found))), charts=charts, notes=[NOTES],
        ),
        key="lengths_ranges_of_words",
    )  # fmt: skip


def findings(found: Sequence[Measured], baseline: str) -> list[str]:
    """How accuracy changes with length, and in which ranges a model differs from the baseline by more than chance."""
    several = sum(gain is not None for one in found for gain in one.gains or ())
    return changes({one.title: ends(one.rows) for one in found if one.of == "test"}) + [
        verdicts(one.title, loaders.model_title(baseline), [row.name for row in one.rows], one.gains, several)
        for one in found
        if one.gains is not None
    ]


def changes(found: Mapping[str, Ends | None]) -> list[str]:
    """Whether each model is better or worse on the longest reviews than on the shortest, or that too few tell."""
    known = [of.gain.p for of in found.values() if of is not None]
    corrected = iter(statistics.holm(known))
    return [
        f"{model}: fewer than two ranges hold {ENOUGH} test reviews, too few to compare."
        if of is None
        else _change(model, replace(of, gain=replace(of.gain, p=next(corrected))), len(known))
        for model, of in found.items()
    ]


def _change(model: str, found: Ends, several: int) -> str:
    short, long = (
        f"{row.name} words ({row.accuracy.value:.1%}, n = {row.n:,})" for row in (found.short, found.long) if row.accuracy
    )
    p = f"{compare.chance(found.gain.p)}{compare.by_holm(several)}"
    return f"{model}, {long} against {short}: {verdict(found.gain)}, {p}."


def verdicts(model: str, baseline: str, ranges: Sequence[str], gains: Sequence[Difference | None], several: int) -> str:
    """In which ranges a model is better or worse than the baseline. p is corrected for `several` comparisons."""
    known = [(name, gain) for name, gain in zip(ranges, gains, strict=True) if gain is not None]
    if not known:
        return f"{model} against {baseline}: there is no review to compare."
    shown = [f"at {name} words {verdict(gain)}, {compare.chance(gain.p)}" for name, gain in known if gain.is_shown]
    if not shown:
        least = min(gain.p for _, gain in known)
        shown = [f"no difference shown in any range, {compare.chance(least)}{' or more' if least < 1 else ''}"]
    return f"{model} against {baseline}: {'; '.join(shown)}{compare.by_holm(several)}."
