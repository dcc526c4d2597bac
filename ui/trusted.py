"""Which evidence can be trusted for a model: what was recorded once, over many of its test reviews."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import streamlit as st

from core.artifact import Model, Opened
from core.figures.labels import percent
from core.recorded import Recorded
from ui import loaders, markdown, panels, recorded

COMMAND = ("python", "-m", "benchmarks.faithfulness", "--models")
SHARE = "better than every random order"


@dataclass(frozen=True, kw_only=True)
class Worth:
    """What one method's evidence was worth for one model, over reviews."""

    evidence: str
    n: int
    share: float
    """Of the reviews, on which it was better than every random order."""
    deletion: tuple[float, float, float]
    """What it gained on random orders, in area under the curve, with its 95% interval; as does insertion."""
    insertion: tuple[float, float, float]
    verdict: str

    @property
    def rank(self) -> tuple[float, float]:
        """The larger, the more it can be trusted."""
        return self.share, self.deletion[0]


def show(model: Opened) -> None:
    """A sentence and a table of a model that was asked; of another one how to ask it, where there are reviews to ask."""
    if not isinstance(model, Model):
        st.caption("Whether its evidence can be trusted is not on record: it came without test reviews.")
        return
    if model.kind == "linear":
        return
    for one in recorded.found()[0]:
        if found := worth(one, loaders.weights_hash(model.name)):
            _show(model.name, one, found)
            return
    st.caption("Which evidence can be trusted for this model is not on record. This asks 200 of its test reviews:")
    st.code(shlex.join([*COMMAND, str(model.folder)]), language="bash", wrap_lines=True)


def _show(name: str, one: Recorded, found: Sequence[Worth]) -> None:
    st.markdown(markdown.literal(finding(found)))
    with panels.unfolded("How far each kind of evidence can be trusted for this model", f"evidence_trusted_{name}") as is_open:
        if is_open:
            st.dataframe(frame(found), hide_index=True, key=f"evidence_trusted_table_{name}")
            st.caption(markdown.literal(one.table("faithfulness").caption))
            st.caption(markdown.literal(recorded.origin(one)))


def worth(one: Recorded, weights: str) -> list[Worth]:
    """What is recorded of the model with these weights, the most trusted first; empty where it is of others."""
    tables = {table.name: table for table in one.tables}
    if not {"models", "faithfulness"} <= set(tables):
        return []
    asked = tables["models"]
    names = [name for name, its in zip(asked.column("model"), asked.column("weights"), strict=True) if its == weights]
    titles = [column.name for column in tables["faithfulness"].columns]
    rows = [dict(zip(titles, row, strict=True)) for row in tables["faithfulness"].rows]
    return sorted((_worth(row) for row in rows if row["model"] in names), key=lambda found: found.rank, reverse=True)


def _worth(row: dict[str, Any]) -> Worth:
    deletion, insertion = (
        tuple(row[f"gain in {what}{end}"] for end in ("", ", from", ", to")) for what in ("deletion", "insertion")
    )
    return Worth(
        evidence=row["evidence"], n=row["reviews"], share=row[SHARE] / 100, deletion=deletion, insertion=insertion,
        verdict=row["verdict"],
    )  # fmt: skip


def finding(found: Sequence[Worth]) -> str:
    """Which evidence to trust, in a sentence; `found` has the most trusted first."""
    first, *others = found
    trust = f"Trust {first.evidence.lower()} first" if first.verdict == "better than random" else "Trust none of this evidence"
    shares = "".join(f", {one.evidence.lower()} on {percent(one.share)}" for one in others)
    best = f"{first.evidence.lower()} is {SHARE} on {percent(first.share)}"
    return f"{trust}: of {first.n:,} test reviews of this model, {best}{shares}."


def frame(found: Sequence[Worth]) -> pd.DataFrame:
    """A row for each method."""
    return pd.DataFrame({
        "evidence": [one.evidence for one in found],
        "gain in deletion": [_interval(one.deletion) for one in found],
        "gain in insertion": [_interval(one.insertion) for one in found],
        "on average": [one.verdict for one in found],
        "beats all random orders": [percent(one.share) for one in found],
    })  # fmt: skip


def _interval(gain: tuple[float, float, float]) -> str:
    value, low, high = gain
    return f"{value:.3f} ({low:.3f} to {high:.3f})"
