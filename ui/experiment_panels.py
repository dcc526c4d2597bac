"""What came of an experiment: a matrix that fills, differences with their intervals, sentences, curves and a table."""

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from core import runs
from core.curves import Curve
from core.events import MemberFinished, MemberStarted
from core.experiments import Outcome, from_table, gather
from core.figures.ablations import differences
from core.figures.curves import AXES, overlaid
from core.runs import Run
from core.statistics import Difference
from ui import compare, export, loaders, markdown, panels, recorded

WAITS = "·"
POINTS = 100
"""Of a small curve are drawn at most."""
CURVES = {"training loss": "loss", "validation loss": "val_loss"}
MARGIN = 0.02
"""Nats above and below the lines of a chart."""
NOTES = (
    "Each ablation and its base are trained with the same seeds, so that reviews, first weights and order are the same as far "
    "as they can be. A difference is the mean over seeds of that in test accuracy, with Student's 95% interval; it counts as "
    "shown where p, corrected for all of these comparisons (Holm), is below 0.05. A whisker is of one ablation by itself, "
    "uncorrected. With a few seeds only large differences can be shown. Times are of training alone. Memory is the peak of a "
    "step: measured on a GPU, and predicted on a CPU, where one process trains all members and keeps what the earlier ones "
    "took."
)
SHARES = ("accuracy", "accuracy from", "accuracy to")
COLUMNS = {name: st.column_config.NumberColumn(format="%.1f%%") for name in SHARES} | {
    "ablation": st.column_config.TextColumn(width=150, pinned=True),
    "question": st.column_config.TextColumn(width="medium"),
    "difference": st.column_config.NumberColumn("difference, points", format="%+.1f"),
    "from": st.column_config.NumberColumn(format="%+.1f"),
    "to": st.column_config.NumberColumn(format="%+.1f"),
    "p": st.column_config.NumberColumn("p by Holm", format="%.3f"),
    "F1": st.column_config.NumberColumn(format="%.3f"),
    "training": st.column_config.NumberColumn(format="%,.1f s"),
    "times the base": st.column_config.NumberColumn(format="%.2f"),
    "memory": st.column_config.NumberColumn(format="%,.0f MiB"),
    "parameters": st.column_config.NumberColumn(format="%,d"),
    "verdict": st.column_config.TextColumn(width="large"),
}


def matrix(run: Run) -> None:
    """The accuracy of each member as it lands, a row for each ablation and a column for each seed."""
    assert run.experiment is not None
    outcomes = gather(run.experiment, run.events)
    now = run.events[-1] if run.events and run.is_alive else None
    frame = pd.DataFrame([_cells(outcome, run.experiment.seeds, now) for outcome in outcomes])
    st.dataframe(frame, hide_index=True, key="ablate_matrix", height="content")


def _cells(outcome: Outcome, seeds: Sequence[int], now: object) -> dict[str, str]:
    landed = {event.seed: event for event in (*outcome.finished, *outcome.failed)}
    cells = {f"seed {seed}": _cell(landed.get(seed)) for seed in seeds}
    if isinstance(now, MemberStarted) and now.ablation == outcome.ablation:
        cells[f"seed {now.seed}"] = "training…"
    return {"test accuracy": outcome.ablation} | cells | {"mean": _percent(outcome.mean("accuracy"))}


def _cell(event: MemberFinished | None) -> str:
    return WAITS if event is None else "failed" if event.accuracy is None else _percent(event.accuracy)


def _percent(share: float | None) -> str:
    return WAITS if share is None else f"{share:.1%}"


def results(outcomes: Sequence[Outcome], run: Run) -> None:
    """What can be told until now, and the ways on."""
    findings(outcomes)
    _losses(run)
    _doors(outcomes)
    table(outcomes, run.name, _of(run), run.command or "", "ablate_table")


def findings(outcomes: Sequence[Outcome]) -> None:
    """Differences to the bases as a chart, and what to make of them."""
    found = {outcome.ablation: outcome.difference for outcome in outcomes if outcome.difference is not None}
    if found:
        st.markdown(f"**{headline(found)}**")
        panels.chart(
            differences(found), key="ablate_differences", alt="Difference of each ablation to its base, with intervals"
        )
    if said := sentences(outcomes):
        st.markdown("\n".join(f"- {markdown.literal(sentence)}" for sentence in said))
    if found:
        st.caption(NOTES)


def headline(found: Mapping[str, Difference]) -> str:
    """How many of these differences are more than chance."""
    shown = sum(one.is_shown for one in found.values())
    return f"More than chance: {shown} of {len(found)} {'differences' if len(found) > 1 else 'difference'}."


def sentences(outcomes: Sequence[Outcome]) -> list[str]:
    """Whether each ablation matters, those that do first."""
    said = [outcome for outcome in outcomes if outcome.verdict and (outcome.finished or outcome.failed)]
    said.sort(key=lambda outcome: not (outcome.difference and outcome.difference.is_shown))
    return [f"{outcome.ablation}: {outcome.verdict}." for outcome in said]


def _losses(run: Run) -> None:
    """A small chart of each ablation, a line for each seed, all on one range of values."""
    curves = _curves(run)
    known = {name for seeds in curves.values() for of in seeds.values() for name in of}
    labels = [label for label, name in CURVES.items() if name in known]  # a linear model has no training loss
    if not labels:
        return
    st.subheader("How training went", anchor=False)
    label = st.segmented_control("Curve", labels, default=labels[0], required=True, key="ablate_curve", bind="query-params")
    name = CURVES[label]
    drawn = {arm: {seed: of[name].thinned(POINTS) for seed, of in seeds.items() if name in of} for arm, seeds in curves.items()}
    ends = [value for seeds in drawn.values() for curve in seeds.values() for value in curve.values]
    st.caption(f"{AXES[name][0].capitalize()} over the steps, a line for each seed; all charts share one range.")
    cells = st.grid(4, min_column_width=190, gap="small")
    for arm, seeds in drawn.items():
        if seeds:
            with cells.cell():
                st.markdown(f"**{markdown.literal(arm)}**")
                figure = overlaid(seeds, *AXES[name]).update_layout(height=210, showlegend=False).update_xaxes(title=None)
                figure.update_yaxes(range=[min(ends) - MARGIN, max(ends) + MARGIN], title=None)
                panels.chart(figure, key=f"ablate_loss_{arm}", alt=f"{label} of {arm} over the steps")


def _curves(run: Run) -> dict[str, dict[str, dict[str, Curve]]]:
    """Of each ablation, by seed, what its trainings have said."""
    found: dict[str, dict[str, dict[str, Curve]]] = {}
    for event in run.events:
        if isinstance(event, MemberFinished):
            try:
                member = runs.read(event.run)
            except ValueError:
                continue  # of an experiment that was deleted
            found.setdefault(event.ablation, {})[f"seed {event.seed}"] = loaders.curves(member)
    return found


def _doors(outcomes: Sequence[Outcome]) -> None:
    """Members of one seed beside one another in Compare: base and variants."""
    first = [outcome.finished[0].run for outcome in outcomes if outcome.finished]
    there = {member.id for member in loaders.members()}
    ids = [id for id in first if id in there][:8]
    if ids:
        st.page_link(
            "../pages/compare.py", label="Trainings of the first seed in Compare", icon=":material/compare_arrows:",
            query_params={"compare_runs": ids},
        )  # fmt: skip


def table(outcomes: Sequence[Outcome], title: str, of: Sequence[str], command: str, key: str) -> None:
    """All figures, and all to take away."""
    st.subheader("All figures", anchor=False)
    frame = figures(outcomes)
    st.dataframe(frame, hide_index=True, key=key, column_config=COLUMNS, placeholder=compare.NO_VALUE, height="content")
    found = {outcome.ablation: outcome.difference for outcome in outcomes if outcome.difference is not None}
    charts = {"Difference to the base": differences(found)} if found else {}
    taken = export.Export(
        title=f"Ablations: {title}", table=frame, of=of, said=sentences(outcomes), charts=charts, notes=[NOTES], command=command
    )
    export.downloads(taken, key)
    if command:
        st.caption("The exact command:")
        st.code(command, language="bash", wrap_lines=True)


def figures(outcomes: Sequence[Outcome]) -> pd.DataFrame:
    """A row for each base and ablation; accuracies in percent, differences in points, memory in MiB."""
    bases = {outcome.ablation: outcome for outcome in outcomes if outcome.base is None}
    return pd.DataFrame([_row(outcome, bases.get(outcome.base or "")) for outcome in outcomes])


def _row(outcome: Outcome, base: Outcome | None) -> dict[str, object]:
    accuracy, difference = outcome.accuracy, outcome.difference
    seconds, memory = outcome.mean("train_s"), outcome.mean("peak_bytes")
    others = None if base is None else base.mean("train_s")
    return {
        "ablation": outcome.ablation,
        "question": outcome.question,
        "seeds": f"{len(outcome.finished)} of {outcome.n_seeds}",
        "accuracy": _times(outcome.mean("accuracy"), 100),
        "accuracy from": accuracy and 100 * accuracy.low,
        "accuracy to": accuracy and 100 * accuracy.high,
        "difference": difference and 100 * difference.value,
        "from": difference and 100 * difference.low,
        "to": difference and 100 * difference.high,
        "p": difference and difference.p,
        "F1": outcome.mean("f1"),
        "training": seconds,
        "times the base": seconds / others if seconds is not None and others else None,
        "memory": _times(memory, 2**-20),
        "memory is": next((event.peak_source for event in outcome.finished if event.peak_source), None),
        "parameters": outcome.mean("n_parameters"),
        "verdict": outcome.verdict,
    }


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else factor * value


def _of(run: Run) -> list[str]:
    """What the figures are of."""
    assert run.experiment is not None
    base, seeds = run.experiment.base, ", ".join(map(str, run.experiment.seeds))
    limit = "all reviews" if base.reviews.limit is None else f"at most {base.reviews.limit:,} reviews"
    counts = [event.n for event in run.events if isinstance(event, MemberFinished) and event.n]
    n = f", {min(counts):,} to {max(counts):,} of them for test" if counts else ""
    return [f"Experiment {run.id}: {base.reviews.data}, {limit}{n}, {base.training.epochs} epochs, seeds {seeds}."]


# Recorded


def on_record() -> None:
    """The newest experiment of benchmarks/, which was done elsewhere or before."""
    found = [one for one in recorded.found()[0] if any(each.name == "members" for each in one.tables)]
    if not found:
        return
    one = found[0]
    outcomes = from_table(one.table("members"))
    st.subheader(markdown.literal(f"Recorded: {one.title}"), anchor=False)
    st.caption(markdown.literal(f"{recorded.origin(one)} {' '.join(one.notes)}"))
    findings(outcomes)
    table(outcomes, one.title, [recorded.origin(one), *one.notes], one.command, "ablate_recorded")
