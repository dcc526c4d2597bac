"""What is known of each claim: the newest figures, measured here or recorded, and the verdict that the rule makes of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from core.claims.catalog import CLAIMS
from core.claims.claim import Claim, Measured, Read, Verdict, not_shown
from core.claims.figures import Figures
from core.events import ClaimMeasured, Event
from core.figures.labels import count
from core.recorded import Column, Recorded, Table, Value

TABLE = "claims"
"""Of recorded figures of claims."""
COLUMNS = (Column(name="claim"), Column(name="figure"), Column(name="value"))
ON_A_GPU = "--device cuda"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A claim with its newest figures."""

    claim: Claim
    figures: Figures
    """Empty where nothing has been measured."""
    hardware: str = ""
    date: str = ""
    """As in 2026-11-30; empty where nothing has been measured."""
    command: str
    """What measures it again."""

    @property
    def verdict(self) -> Verdict:
        """By the claim's rule. Not shown where nothing was measured, or by another version of the experiment."""
        if not self.figures:
            return not_shown(f"nothing has been measured: {self.command}")
        try:
            return self.claim.verdict(self.figures)
        except ValueError as error:
            return not_shown(str(error))


def measure(claim: Measured) -> ClaimMeasured:
    """Runs the experiment of a claim, here and now. ValueError where it lacks something that it needs."""
    figures = claim.measure()
    from core.training.machine import hardware  # torch, which the experiment has imported

    found = hardware("cpu")
    threads = found["threads"]
    return ClaimMeasured(
        claim=claim.name, names=list(figures), values=list(figures.values()),
        hardware=f"{found['cpu']}, {count(threads, 'thread')}", date=str(date.today()),
    )  # fmt: skip


def findings(recorded: Sequence[Recorded], measured: Iterable[ClaimMeasured] = ()) -> list[Finding]:
    """Every claim by number, from recorded results (the newest first) and from what runs have measured (the newest last)."""
    last = {event.claim: event for event in measured}
    return [_read(claim, recorded) if isinstance(claim, Read) else _measured(claim, recorded, last.get(claim.name))
            for claim in CLAIMS.values()]  # fmt: skip


def measured_in(events: Iterable[Event]) -> list[ClaimMeasured]:
    """What events say of claims."""
    return [event for event in events if isinstance(event, ClaimMeasured)]


def measured_before(one: Recorded) -> dict[str, ClaimMeasured]:
    """What results hold of claims, by name: the reverse of `table`."""
    figures: dict[str, dict[str, Value]] = {}
    for each in one.tables:
        if each.name == TABLE and each.columns == COLUMNS:
            for claim, figure, value in each.rows:
                figures.setdefault(str(claim), {})[str(figure)] = value
    return {
        name: ClaimMeasured(claim=name, names=list(found), values=list(found.values()), hardware=one.hardware, date=one.date)
        for name, found in figures.items()
    }


def table(found: Iterable[ClaimMeasured]) -> Table:
    """Figures of claims as results keep them."""
    return Table(
        name=TABLE,
        caption="Figures of the experiments of core.claims, of which `python -m core claims` makes verdicts.",
        columns=COLUMNS,
        rows=tuple((event.claim, *figure) for event in found for figure in zip(event.names, event.values, strict=True)),
    )


def _measured(claim: Claim, recorded: Sequence[Recorded], here: ClaimMeasured | None) -> Finding:
    """The newer of what was measured here and what is recorded; of the same day, what was measured here."""
    command = f"python -m core claims run {claim.name}"
    before = next((found for one in recorded if (found := measured_before(one).get(claim.name)) is not None), None)
    newest = before if here is None or before is not None and before.date > here.date else here
    if newest is None:
        return Finding(claim=claim, figures={}, command=command)
    figures = dict(zip(newest.names, newest.values, strict=True))
    return Finding(claim=claim, figures=figures, hardware=newest.hardware, date=newest.date, command=command)


def _read(claim: Read, recorded: Sequence[Recorded]) -> Finding:
    sources = _sources(claim, recorded)
    if not sources:
        return Finding(claim=claim, figures={}, command=claim.command)
    figures = claim.experiment({device: one.table(claim.table) for device, one in sources.items()})
    hardware = "; ".join(one.hardware for one in sources.values())
    newest = max(one.date for one in sources.values())
    return Finding(claim=claim, figures=figures, hardware=hardware, date=newest, command=claim.command)


def _sources(claim: Read, recorded: Sequence[Recorded]) -> Mapping[str, Recorded]:
    """The newest results of each device that have the table with the columns that are read."""
    found: dict[str, Recorded] = {}
    for one in recorded:
        for each in one.tables:
            if each.name == claim.table and set(claim.columns) <= {column.name for column in each.columns}:
                found.setdefault("cuda" if ON_A_GPU in one.command else "cpu", one)
    return found
