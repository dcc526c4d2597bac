"""What tutorials claim: which of it is shown, one claim with all that its verdict rests on, and measuring it again."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

import pandas as pd
import streamlit as st

from core import runs
from core.claims.claim import OUTCOMES, THEMES, Measured, Outcome
from core.claims.command import argv
from core.claims.figures import DISTANCES, of_loss, of_state
from core.claims.findings import Finding
from core.config import ClaimConfig
from core.figures.claims import gradients_by_distance
from core.figures.labels import duration
from core.recorded import shown
from core.run_folder import State
from core.runs import Run
from ui import controls, export, launching, markdown, panels

LOOKS: dict[Outcome, tuple[str, str]] = {
    "holds here": ("green", ":material/check:"),
    "does not hold here": ("red", ":material/close:"),
    "only when": ("orange", ":material/call_split:"),
    "not shown": ("gray", ":material/question_mark:"),
}
"""Colour and symbol of a verdict's badge."""
NETWORKS = {"bilstm": "BiLSTM", "transformer": "Transformer"}
GRADIENTS = {"tokens from state to word": of_state, "tokens from end to word": of_loss}
WIDTHS = {"claim": 420, "because": 560}
SOURCES = "A to D are the articles, P papers and folklore."


def counts(found: Sequence[Finding]) -> None:
    """How many claims came to which verdict."""
    told = Counter(each.verdict.outcome for each in found)
    with st.container(horizontal=True, gap="small"):
        for outcome in OUTCOMES:
            color, icon = LOOKS[outcome]
            st.badge(f"{outcome}: {told[outcome]}", icon=icon, color=color)  # type: ignore[arg-type]


def choose(found: Sequence[Finding]) -> list[Finding]:
    """The claims of the themes and verdicts that a person chooses; of all where none is chosen."""
    with st.container(horizontal=True, gap="medium"):
        themes = st.pills("Theme", THEMES, selection_mode="multi", key="claims_theme", bind="query-params", wrap=True)
        outcomes = st.pills("Verdict", OUTCOMES, selection_mode="multi", key="claims_verdict", bind="query-params", wrap=True)
    return [
        each for each in found
        if (not themes or each.claim.theme in themes) and (not outcomes or each.verdict.outcome in outcomes)
    ]  # fmt: skip


def table(found: Sequence[Finding]) -> None:
    """A row for each claim; one that is ticked is opened below."""
    names = [each.claim.name for each in found]
    # a table of other rows is another one: a tick counts places
    key = f"claims_table_{'_'.join(str(each.claim.number) for each in found)}"
    columns = {name: st.column_config.TextColumn(width=width) for name, width in WIDTHS.items()}
    st.dataframe(
        overview(found), hide_index=True, key=key, column_config=columns, selection_mode="single-row",
        on_select=partial(_open, key, names),
    )  # fmt: skip
    st.caption(f"Tick a claim to open it below. {SOURCES}")


def overview(found: Sequence[Finding]) -> pd.DataFrame:
    """All claims with their verdicts."""
    return pd.DataFrame({
        "no.": [each.claim.number for each in found],
        "verdict": [each.verdict.outcome for each in found],
        "claim": [each.claim.told for each in found],
        "because": [each.verdict.why for each in found],
        "source": [each.claim.source for each in found],
        "theme": [each.claim.theme for each in found],
        "measured": [each.date or "not yet" for each in found],
        "on": [each.hardware or "-" for each in found],
    })  # fmt: skip


def _open(key: str, names: Sequence[str]) -> None:
    rows: list[int] = st.session_state[key]["selection"]["rows"]
    if rows:
        controls.remember("claims_claim", [names[rows[0]]])


def one(found: Sequence[Finding]) -> Finding:
    """The claim that is opened: at first that of the run that the URL names, else the first."""
    run = _followed()
    measured = run.claim.claim if run is not None and run.claim is not None else None
    in_order = sorted(found, key=lambda each: each.claim.name != measured)
    titles = {each.claim.name: f"{each.claim.number} · {each.claim.told}" for each in in_order}
    name = controls.one("Claim", titles, "claims_claim")
    return next(each for each in found if each.claim.name == name)


def details(found: Finding) -> None:
    """All that the verdict on a claim rests on."""
    claim, verdict = found.claim, found.verdict
    color, icon = LOOKS[verdict.outcome]
    with st.container(border=True):
        st.markdown(f"**{markdown.literal(claim.told)}**")
        st.caption(markdown.literal(f"Claim {claim.number}, {claim.theme}. Source: {claim.source}."))
        st.badge(verdict.outcome, icon=icon, color=color)  # type: ignore[arg-type]
        st.markdown(markdown.literal(_sentence(verdict.sentence if verdict.outcome == "only when" else verdict.why)))
        said = {"Question": claim.question, "Experiment": claim.method, "Rule": claim.rule, "Scale": _sentence(claim.scale)}
        for name, text in said.items():
            st.markdown(f"**{name}.** {markdown.literal(text)}")
        _figures(found)
    _gradients(found)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _figures(found: Finding) -> None:
    if not found.figures:
        return
    st.dataframe(figures(found), hide_index=True, key=f"claims_figures_{found.claim.name}")
    st.caption(markdown.literal(f"Measured on {found.hardware}, {found.date}."))


def figures(found: Finding) -> pd.DataFrame:
    """The figures of a claim, with three digits."""
    return pd.DataFrame({"value": [shown(value) for value in found.figures.values()], "figure": list(found.figures)})


def _gradients(found: Finding) -> None:
    """Charts of gradients over distance, where a claim has such figures."""
    for number, (x_title, name) in enumerate(GRADIENTS.items()):
        lines = {title: _line(found, partial(name, network)) for network, title in NETWORKS.items()}
        if all(lines.values()):
            chart = gradients_by_distance(lines, x_title)
            panels.chart(chart, key=f"claims_gradients_{number}", alt=f"Gradient by {x_title}")


def _line(found: Finding, name: Callable[[int], str]) -> dict[int, float]:
    """The shares that figures have at each distance."""
    shares = {at: found.figures.get(name(at)) for at in DISTANCES}
    return {at: float(share) for at, share in shares.items() if isinstance(share, int | float)}


def again(found: Finding) -> None:
    """The button that measures a claim here and now, and how that goes."""
    claim = found.claim
    if not isinstance(claim, Measured):
        st.caption("Its figures come from a longer benchmark. To measure them again:")
        st.code(found.command, language="bash", wrap_lines=True)
        return
    asked = ("claims", launching.token("claims"), argv(claim.name), f"Claim {claim.number}: {claim.name}")
    with st.container(horizontal=True, vertical_alignment="center"):
        config = ClaimConfig(claim=claim.name)
        st.button(
            "Measure it here", type="primary", icon=":material/science:", key=f"claims_measure_{claim.name}",
            on_click=launching.launch, args=(*asked, config),
        )  # fmt: skip
        st.caption(f"About {duration(float(claim.seconds))} on a quiet core.", width="content")
    launching.refusal("claims")


def _followed() -> Run | None:
    """The run that the URL names; None if it names none, or one that is not here."""
    with suppress(ValueError):
        return runs.read(st.query_params.get("claims_run", ""))
    return None


def follow() -> None:
    """How the measurement stands that the URL names, looked at again each second while its process lives."""
    run, id = _followed(), st.query_params.get("claims_run")
    if run is not None:
        launching.watch(_look, run)
    elif id is not None:
        panels.refused(f"there is no measurement {id!r} here; it may have been deleted")


def _look(id: str, state: State) -> None:
    with panels.refusals():
        run = runs.read(id)
        if run.state != state:
            st.rerun()
        _standing(run)


def _standing(run: Run) -> None:
    name = markdown.literal(run.name)
    if run.state == "queued":
        launching.waiting(run)
    elif run.state == "running":
        st.info(f"{name} is being measured.", icon=":material/hourglass_top:")
    elif run.state == "succeeded":
        st.success(f"{name} was measured; its figures are above.", icon=":material/check:")
    elif run.state == "cancelled":
        st.info(f"{name} was stopped before it had any figures.", icon=":material/stop:")
    else:
        launching.ended(run)
    if run.is_alive:
        launching.end(run, f"claims_end_{run.id}", "What it has found so far is lost.")


def downloads(found: Sequence[Finding]) -> None:
    """All claims that are shown, to take away."""
    of = sorted({f"{each.hardware}, {each.date}" for each in found if each.date})
    export.downloads(
        export.Export(
            title="What tutorials claim, checked", table=overview(found), of=[f"Measured on {each}." for each in of],
            notes=[SOURCES, *(f"{each.claim.number}: {_sentence(each.claim.scale)} {each.claim.rule}" for each in found)],
            command="python -m core claims --json",
        ),
        "claims_table",
    )  # fmt: skip
