"""The verb `claims` of the command line."""

import json
from pathlib import Path
from typing import Annotated, Literal

import tyro

from core import runs
from core.claims.catalog import find
from core.claims.claim import Measured
from core.claims.findings import Finding, findings, measure, measured_in
from core.config import ClaimConfig
from core.flags import Json
from core.jobs import ROOT, hold, tell, turn
from core.recorded import read

RESULTS = ROOT / "benchmarks"
"""Where recorded figures are."""
DEVICE = "cpu"
"""Of experiments that are small enough to be run whenever somebody asks."""


def claims(
    action: Annotated[Literal["list", "run"], tyro.conf.Positional] = "list",
    name: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(help="A claim, for run.")] = None,
    out: Annotated[Path | None, tyro.conf.arg(help="Folder of a run, for run: events.jsonl, with the figures.")] = None,
    as_json: Json = False,
) -> None:
    """List what tutorials claim, with figures and verdicts, or measure a claim again: claims run NAME."""
    if action == "list":
        if name is not None or out is not None:
            raise ValueError("claims list: got a name or a folder, expected neither; to measure, claims run NAME")
        for found in known():
            print(_line(found, as_json))
        return
    if name is None:
        raise ValueError("claims run: expected the name of a claim; `python -m core claims` lists them")
    claim = find(name)
    if not isinstance(claim, Measured):
        raise ValueError(f"claim {name!r}: its figures are recorded, not measured at once; {claim.command} measures them")
    print(_line(_again(claim, out), as_json))


def known() -> list[Finding]:
    """Every claim, with what is recorded and what runs here have measured."""
    said = [event for run in reversed(runs.all_runs()) if run.claim is not None for event in measured_in(run.events)]
    return findings(read(RESULTS), said)


def argv(name: str) -> list[str]:
    """The command that measures a claim, without its folder."""
    return ["claims", "run", name]


def _again(claim: Measured, out: Path | None) -> Finding:
    """Measured when the device is free, in a folder as a run, or else in this process alone."""
    if out is None:
        with turn(runs.runs_root(), DEVICE, tell):
            measured = measure(claim)
    else:
        with hold(out, DEVICE, ClaimConfig(claim=claim.name), tell) as job:
            measured = measure(claim)
            job.emit(measured)
    return next(found for found in findings([], [measured]) if found.claim is claim)


def _line(found: Finding, as_json: bool) -> str:
    claim, verdict = found.claim, found.verdict
    if not as_json:
        return f"{claim.number:2} {claim.name} ({claim.source}): {verdict.sentence}"
    return json.dumps({
        "name": claim.name, "number": claim.number, "source": claim.source, "claim": claim.told, "figures": dict(found.figures),
        "verdict": verdict.outcome, "why": verdict.why, "scale": claim.scale, "hardware": found.hardware, "date": found.date,
    }, ensure_ascii=False)  # fmt: skip
