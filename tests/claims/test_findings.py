"""From recorded tables and runs to what is known of each claim; and the command that lists and measures."""

import json
from dataclasses import replace

import pytest

from core import jobs, run_folder, runs
from core.__main__ import main
from core.claims import command
from core.claims.catalog import CLAIMS
from core.claims.claim import Measured
from core.claims.findings import Finding, findings, measure, table
from core.claims.lookup import cell, lost
from core.config import ClaimConfig
from core.events import ClaimMeasured, Finished
from core.recorded import Column, Recorded, Table, read

EVENT = ClaimMeasured(
    claim="scores-1.5-gb", names=["scores, GiB"], values=[1.5], hardware="EPYC, 1 thread", date="2026-11-30"
)  # fmt: skip


def recorded(*tables: Table, date: str = "2026-11-30", command: str = "python -m benchmarks.claims", hardware: str = "EPYC"):
    return Recorded(title="x", hardware=hardware, date=date, command=command, versions=(), tables=tables)


def made(name: str, columns: str, *rows: tuple) -> Table:
    return Table(name=name, caption="", columns=tuple(Column(name=each) for each in columns.split(";")), rows=rows)


def article_a(bilstm: float, transformer: float) -> Table:
    return made("article A", "quantity;BiLSTM, here;Transformer, here", ("one epoch", bilstm, transformer))


def finding(name: str, *given: Recorded, measured: tuple[ClaimMeasured, ...] = ()) -> Finding:
    return next(found for found in findings(given, measured) if found.claim.name == name)


def test_without_figures_nothing_is_shown_and_it_says_how_to_measure():
    for found in findings([]):
        assert found.verdict.outcome == "not shown" and found.verdict.why == f"nothing has been measured: {found.command}"


def test_what_is_recorded_is_read_and_judged():
    found = finding("scores-1.5-gb", recorded(table([EVENT]), hardware="A machine"))
    assert (found.figures, found.hardware, found.date) == ({"scores, GiB": 1.5}, "A machine", "2026-11-30")
    assert found.verdict.outcome == "holds here"


@pytest.mark.parametrize("day, expected", [("2026-11-29", 1.5), ("2026-12-01", 3.0), ("2026-11-30", 3.0)])
def test_the_newer_of_recorded_and_measured_counts_and_of_the_same_day_the_latter(day, expected):
    here = replace(EVENT, values=[3.0], date=day)
    found = finding("scores-1.5-gb", recorded(table([EVENT])), measured=(EVENT, here))
    assert found.figures == {"scores, GiB": expected}


def test_a_newer_file_without_the_claim_leaves_the_older_figures():
    newer = recorded(table([replace(EVENT, claim="parameters")]), date="2026-12-01")
    assert finding("scores-1.5-gb", newer, recorded(table([EVENT]))).date == "2026-11-30"


def test_figures_of_another_version_are_not_shown_with_a_sentence():
    found = finding("scores-1.5-gb", measured=(replace(EVENT, names=["other"]),))
    assert found.verdict.outcome == "not shown" and "measure the claim again" in found.verdict.why


def test_a_table_of_a_gpu_stands_beside_that_of_a_cpu():
    cpu = recorded(article_a(100, 200), command="python -m benchmarks.cpu --device cpu")
    cuda = recorded(article_a(40, 10), command="python -m benchmarks.gpu --device cuda", hardware="H200", date="2026-12-01")
    assert finding("faster-epochs", cpu).verdict.outcome == "does not hold here"
    assert "python -m benchmarks.gpu" in finding("faster-epochs", cpu).verdict.why
    found = finding("faster-epochs", cuda, cpu)
    assert found.figures == {
        "transformer's rate over the BiLSTM's, cpu": 0.5,
        "transformer's rate over the BiLSTM's, cuda": 4.0,
    }
    assert (found.hardware, found.date, found.verdict.outcome) == ("H200; EPYC", "2026-12-01", "only when")
    assert found.verdict.why.startswith("it runs on a GPU: ")


def test_a_table_of_the_same_name_without_the_columns_is_another_one():
    assert finding("faster-epochs", recorded(made("article A", "quantity;BiLSTM, here", ("one epoch", 3.0)))).figures == {}


@pytest.mark.parametrize("others, outcome", [(2.0, "holds here"), (None, "holds here"), (60.0, "not shown")])
def test_times_of_a_busy_machine_give_no_verdict(others, outcome):
    rows = [(kernel, "backward", length, ms, others) for length, times in ((128, (10.0, 9.9)), (512, (100.0, 50.0)))
            for kernel, ms in zip(("eager", "sdpa"), times, strict=True)]  # fmt: skip
    table = made("time by length", "kernel;what;length;time;others used", *rows)
    assert finding("flash-from-512", recorded(table)).verdict.outcome == outcome


def members(*rows: tuple) -> Table:
    return made("members", "ablation;base;seed;accuracy;f1", *rows)


def test_an_ablation_is_held_against_its_base_seed_by_seed():
    table = members(("base", None, 0, 0.8, 0.7), ("base", None, 1, 0.9, 0.8), ("base, other", None, 0, 0.1, 0.1),
                    ("heads-1", "base", 1, 0.85, 0.8), ("heads-1", "base", 0, 0.77, 0.7),
                    ("heads-1", "base", 2, None, None))  # fmt: skip
    found = lost({"cpu": table}, "heads-1", "loss")
    assert (found["loss"], found["seeds"], found["heads-1: trainings that failed"]) == (pytest.approx(4.0), 2, 1)
    assert found["loss, from"] < 4 < found["loss, to"]
    assert found["base, accuracy %"] == pytest.approx(85.0)
    assert lost({"cpu": table}, "heads-16", "loss") == {}


def test_where_every_training_failed_there_are_no_seeds():
    failed = [("scale-off", "base", seed, None, None) for seed in range(3)]
    table = members(("base", None, 0, 0.8, 0.7), *failed)
    assert lost({"cpu": table}, "scale-off", "loss") == {"seeds": 0, "scale-off: trainings that failed": 3}
    assert finding("scale-or-diverge", recorded(table)).verdict.outcome == "holds here"


def test_every_claim_that_is_read_takes_tables_that_lack_what_it_looks_for():
    for claim in CLAIMS.values():
        if not isinstance(claim, Measured):
            found = finding(claim.name, recorded(made(claim.table, ";".join(claim.columns))))
            assert found.verdict.outcome == "not shown", claim.name


def test_what_comes_along_can_be_judged():
    for found in findings(read(command.RESULTS)):
        assert found.figures or not isinstance(found.claim, Measured), found.claim.name
        assert "measure the claim again" not in found.verdict.why, found.claim.name


def test_a_cell_is_found_by_other_columns():
    table = made("t", "a;b;c", ("x", 1, 2.5), ("y", 1, None), ("y", 2, "z"))
    assert cell(table, "c", {"a": "x", "b": 1}) == 2.5
    assert [cell(table, "c", {"a": "y", "b": b}) for b in (1, 2, 3)] == [None, None, None]


# The command


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


def lines(capsys, *argv: str) -> list[dict]:
    assert main(["claims", *argv, "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_every_claim_is_listed_as_an_object_a_line(capsys, root):
    found = lines(capsys)
    assert [each["number"] for each in found] == list(range(1, 50))
    assert {"name", "source", "figures", "verdict", "hardware", "date"} <= set(found[0])
    assert main(["claims"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 49


def test_a_claim_is_measured_at_once(capsys, root):
    (found,) = lines(capsys, "run", "scores-1.5-gb")
    assert (found["figures"], found["verdict"]) == ({"scores, GiB": 1.5}, "holds here")
    assert runs.all_runs() == []


def test_a_claim_is_measured_as_a_run_whose_figures_are_known_from_then_on(capsys, root, monkeypatch):
    monkeypatch.setattr(command, "read", lambda folder: [])
    (found,) = lines(capsys, "run", "parameters", "--out", str(root / "1"))
    said = run_folder.read_events(root / "1")[0]
    assert [type(event) for event in said][-2:] == [ClaimMeasured, Finished]
    (run,) = runs.all_runs()
    assert (run.state, run.claim, run.problems) == ("succeeded", ClaimConfig(claim="parameters"), ())
    known = next(each for each in command.known() if each.claim.name == "parameters")
    assert known.figures == found["figures"] and known.verdict.outcome == "does not hold here"


@pytest.mark.parametrize("argv, said", [
    (["run"], "expected the name of a claim"), (["run", "x"], "claim: got 'x', expected one of faster-epochs"),
    (["run", "faster-epochs"], "its figures are recorded, not measured at once; python -m benchmarks.cpu"),
    (["list", "x"], "expected neither"),
])  # fmt: skip
def test_what_cannot_be_measured_is_refused_in_a_sentence(capsys, root, argv, said):
    assert main(["claims", *argv]) == 2
    shown = capsys.readouterr()
    assert said in shown.err and shown.out == "" and not root.exists()


def test_a_claim_is_launched_by_the_command_that_is_shown(root):
    assert command.argv("parameters") == ["claims", "run", "parameters"]
    assert {type(each) for each in run_folder.CONFIGS} and jobs.device_of(command.DEVICE) == "cpu"


def test_what_is_measured_says_where_and_when():
    claim = CLAIMS["matrix-4-gb"]
    assert isinstance(claim, Measured)
    found = measure(claim)
    assert found.claim == "matrix-4-gb" and len(found.names) == len(found.values) == 3
    assert "thread" in found.hardware and len(found.date) == 10
