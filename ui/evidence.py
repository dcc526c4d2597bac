"""What an answer rests on, word by word and method by method, and what each method is worth."""

import json
from collections.abc import Sequence
from functools import partial

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from core.artifact import Opened
from core.catalog import EVIDENCE
from core.figures.evidence import erasure_curves, evidence_heatmap, largest_share
from core.figures.labels import shorten, visible
from core.inspection.summary import agreement, rests_on
from core.records import Evidence, Faithfulness, Reading
from ui import explanations, export, loaders, markdown, panels
from ui.explanations import FIRST_EVIDENCE
from ui.review_text import as_html, units_of_words

CUT_HELP = "Words that are taken away are masked. Cut out, the review gets shorter, as if they had never been typed."
WORTH = (
    "Areas under the curves: of deletion small, of insertion large is good. A method is better than random where it beats "
    "every random order; one review is a small sample."
)


def found(name: str, text: str) -> Evidence:
    """Evidence by every method; while that is looked for, the first of it is on the page."""
    if explanations.has_evidence(name, text):
        return explanations.evidence(name, text)
    place = st.empty()
    with place.container():
        first = explanations.first_evidence(name, text)
        st.markdown(f"**{markdown.literal(rests_on(first))}.**")
        _coloured(first, FIRST_EVIDENCE)
    everything = explanations.evidence(name, text)
    place.empty()
    return everything


def words(name: str, found: Evidence) -> None:
    """What the answer rests on in a sentence, and the review coloured by the method that a person chooses."""
    st.markdown(f"**{markdown.literal(rests_on(found))}.**")
    methods = {EVIDENCE[method].title: method for method in found.found}
    title = st.segmented_control(
        "Coloured by", list(methods), default=EVIDENCE[FIRST_EVIDENCE].title, required=True, key=f"evidence_method_{name}",
        bind="query-params", wrap=True,
    )  # fmt: skip
    _coloured(found, methods[title])


def _coloured(found: Evidence, method: str) -> None:
    shaded = units_of_words(found.words, found.found[method].shares)
    st.html(as_html(found.text, shaded, [unit.span for unit in shaded], of="evidence"))
    st.caption(_legend(found, method))


def _legend(found: Evidence, method: str) -> str:
    shares, label = found.found[method].shares, markdown.literal(found.prediction.label)
    strongest = max(range(len(found.words)), key=lambda i: abs(shares[i]))
    word = markdown.literal(shorten(visible(found.text[slice(*found.words[strongest].span)])))
    signed = EVIDENCE[method].signed
    colours = f"Orange speaks for {label}, blue against it" if signed else "Orange: how much, not for which class"
    parts = [EVIDENCE[method].summary, f"{colours}; full colour at {abs(shares[strongest]):.1%} of all evidence ({word})."]
    note = found.found[method].note
    return " ".join([*parts, *([markdown.sentence(note)] if note else [])])


def every_method(name: str, found: Evidence) -> None:
    """All methods on the same words, how far they agree, and every number."""
    figure = evidence_heatmap(found)
    panels.chart(figure, key=f"evidence_methods_{name}", alt=f"Every method, word by word: {rests_on(found)}")
    limit = largest_share(found)
    st.caption(f"Shares of what each method finds in all words; colours from {-limit:.1%} to {limit:.1%}, the same for all.")
    if said := agreement(found):
        st.markdown(markdown.literal(f"{said}."))
    with panels.unfolded("Every number", f"evidence_numbers_{name}") as is_open:
        if is_open:
            _numbers(name, found, figure)


def _numbers(name: str, found: Evidence, figure: go.Figure) -> None:
    from core.inspection.report import table  # torch, which a model has brought

    numbers, said = table(found), agreement(found)
    st.dataframe(numbers, hide_index=True, key=f"evidence_table_{name}", placeholder="not read")
    export.downloads(
        export.Export(
            title=f"Evidence of {loaders.model_title(name)}", table=numbers, of=export.of_models([name]),
            said=[f"{rests_on(found)}.", *([f"{said}."] if said else [])], charts={"Every method": figure},
            notes=[f"{EVIDENCE[method].title}: {EVIDENCE[method].summary}" for method in found.found],
        ),
        key=f"evidence_words_{name}",
    )  # fmt: skip


def trust(model: Opened, reading: Reading, found: Evidence) -> None:
    """Whether each method is better than chance on this review, once a person asks; and all of it to take away."""
    with st.container(horizontal=True, vertical_alignment="center"):
        asked = st.button("Test the evidence", key=f"evidence_test_{model.name}", icon=":material/science:")
        remove = st.toggle("Cut words out", key=f"evidence_remove_{model.name}", bind="query-params", help=CUT_HELP)
    curves = explanations.faithfulness(model.name, found.text, remove=remove, ask=asked)
    if curves is None:
        st.caption("Takes words away in the order of each method and in 8 random ones, and sees when the answer falls.")
        return
    label = found.prediction.label
    for place, insertion in zip(st.columns(2), (False, True), strict=True):
        what = "insertion" if insertion else "deletion"
        with place:
            figure = erasure_curves(curves, label, insertion=insertion)
            panels.chart(
                figure, key=f"evidence_{what}_{model.name}", alt=f"Probability in the course of {what}; the table has the areas"
            )
    st.dataframe(worth(found, curves), hide_index=True, key=f"evidence_worth_{model.name}")
    st.caption(WORTH)
    _take_away(model, reading, found, curves)


def worth(found: Evidence, curves: Faithfulness) -> pd.DataFrame:
    """A row for each method: its areas, those of the random orders, and what follows."""
    from core.inspection.faithfulness import areas

    rows = []
    for name in found.found:
        one = areas(curves, name)
        rows.append({
            "method": EVIDENCE[name].title, "deletion": round(one.deletion, 3), "insertion": round(one.insertion, 3),
            "random orders": f"{one.random_low:.3f} to {one.random_high:.3f}", "here": one.verdict,
        })  # fmt: skip
    return pd.DataFrame(rows)


def _take_away(model: Opened, reading: Reading, found: Evidence, curves: Faithfulness) -> None:
    from core.inspection import report

    def as_json() -> str:
        stamp: Sequence[str] = report.stamp(model, found)
        return json.dumps(report.as_values(found, curves) | {"of": list(stamp)}, ensure_ascii=False, indent=1)

    with st.container(horizontal=True):
        for name, make, mime in (
            ("html", partial(report.as_html, model, reading, found, curves, ""), "text/html"),
            ("json", as_json, "application/json"),
        ):
            file, key = f"attention-lab-evidence.{name}", f"evidence_report_{name}_{model.name}"
            export.button(f"Report as {name.upper()}", make, file, mime, key)
