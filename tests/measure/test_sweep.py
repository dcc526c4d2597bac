import json

import pytest

from core import jobs, runs
from core.__main__ import main
from core.catalog import BACKENDS, CARDS
from core.config import SweepConfig, sweep_config_from_json, to_json
from core.measure import sweep as sweeps
from core.measure.command import argv
from core.records import Cancelled, Ceilings, Cell, CellMeasured, Finished, Started

SMALL = SweepConfig(lengths=(16, 8), batches=(2,), n_heads=3, d_head=8, device="cpu")


CEILINGS = Ceilings(device="cpu", dtype="float32", operations_per_s=1e11, bytes_per_s=1e10, hardware="h", date="2026-11-30")


@pytest.fixture
def quick(monkeypatch) -> list[tuple[str, Cell]]:
    """Measurements that take no time; a list of what was asked. At 8 tokens sdpa finds no memory."""
    asked = []

    def in_process(kind, cell, stopped):
        if kind == "ceilings":
            return vars(CEILINGS)
        asked.append((kind, cell))
        if (cell.length, cell.backend) == (8, "sdpa"):
            raise MemoryError("does not fit: the memory ended")
        about = {"kernel": "k", "hardware": "h"}
        if kind == "memory":
            return {"peak_bytes": 1000 * cell.length, "source": "VmHWM above baseline"} | about
        return {"median_s": cell.length / 100, "spread_s": 0.01, "n_repeats": 5} | about

    monkeypatch.setattr(sweeps, "in_process", in_process)
    return asked


def test_a_sweep_goes_from_short_to_long_and_measures_memory_before_time(quick):
    said = []
    sweeps.sweep(SMALL, said.append, lambda: False)
    assert said.pop(0) == CEILINGS
    assert [(event.length, event.backend, event.peak_bytes, event.median_s) for event in said] == [
        (8, "eager", 8000, 0.08), (8, "sdpa", None, None), (16, "eager", 16000, 0.16), (16, "sdpa", 16000, 0.16),
    ]  # fmt: skip
    assert [event.why_not for event in said] == [None, "does not fit: the memory ended", None, None]
    assert [kind for kind, _ in quick] == ["memory", "speed", "memory", "memory", "speed", "memory", "speed"]


def test_a_sweep_that_is_stopped_keeps_what_it_has(quick):
    said = []
    sweeps.sweep(SMALL, said.append, lambda: len(said) == 4)
    assert [type(event) for event in said] == [Ceilings] + [CellMeasured] * 3 + [Cancelled]


def test_what_cannot_be_measured_here_still_has_its_time(quick, monkeypatch):
    def in_process(kind, cell, stopped):
        if kind == "memory":
            raise ValueError("only Linux")
        return {"median_s": 1.0, "spread_s": 0.1, "n_repeats": 5}

    monkeypatch.setattr(sweeps, "in_process", in_process)
    event = sweeps.measured(sweeps.cells(SMALL)[0])
    assert (event.peak_bytes, event.median_s, event.why_not) == (None, 1.0, "only Linux")


def test_a_cell_that_cannot_fit_is_a_result_without_being_tried(quick):
    event = sweeps.measured(sweeps.cells(SweepConfig(lengths=(65_536,), batches=(1024,), device="cpu"))[0])
    assert event.why_not is not None and event.why_not.startswith("does not fit: needs about")
    assert event.peak_bytes is None and quick == []


@pytest.mark.parametrize(
    ("backend", "what", "reason"),
    [("varlen", "forward", "it runs on cuda alone, not on cpu"), ("flex", "backward", "it has no backward pass on cpu")],
)
def test_a_cell_that_its_backend_cannot_run_says_why_without_being_tried(quick, backend, what, reason):
    config = SweepConfig(backends=(backend,), lengths=(64,), what=what, device="cpu")
    event = sweeps.measured(sweeps.cells(config)[0])
    assert event.why_not is not None and event.why_not.startswith(reason)
    assert event.peak_bytes is None and quick == [] and sweeps.estimated_s(config) == 0


def test_a_sweep_is_a_run(quick, capsys, tmp_path):
    command = [*argv(SMALL), "--out", str(tmp_path / "runs" / "a"), "--json"]
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)["cells"]
    assert {"predicted_bytes", "measured_bytes", "source", "kernel", "why_not", "median_s", "spread_s"} <= set(found[0])
    run = runs.read("a", tmp_path / "runs")
    assert (run.state, run.sweep, run.config, run.model, run.problems) == ("succeeded", SMALL, None, None, ())
    assert [type(event) for event in run.events] == [Started, Ceilings] + [CellMeasured] * 4 + [Finished]
    assert runs.compare([run]).loc["a", "state"] == "succeeded"


def test_a_sweep_waits_for_whoever_has_the_device(quick, tmp_path):
    with jobs.hold(tmp_path / "1", "cpu"):
        (tmp_path / "2").mkdir()
        (tmp_path / "2" / "cancel").touch()
        assert main([*argv(SMALL), "--out", str(tmp_path / "2")]) == 1
    assert jobs.state(tmp_path / "2") == "cancelled" and quick == []


@pytest.mark.parametrize("reason", [None, "does not fit: the memory ended"])
def test_a_measured_cell_travels_through_the_events(quick, tmp_path, reason):
    event = sweeps.measured(sweeps.cells(SMALL)[reason is not None])
    assert event.why_not == reason
    jobs.append_event(tmp_path, event)
    assert jobs.read_events(tmp_path)[0] == [event]
    assert event.cell == sweeps.cells(SMALL)[reason is not None]


def test_every_flag_comes_back_as_the_sweep(quick, tmp_path):
    config = SweepConfig(
        networks=("bilstm", "encoder"), backends=("sdpa",), lengths=(24, 48), batches=(3, 1), what="step", checkpointing=True,
        n_heads=5, d_head=8, n_layers=2, dtype="mixed", device="cpu",
    )  # fmt: skip
    assert main([*argv(config), "--out", str(tmp_path / "a"), "--json"]) == 0
    assert runs.read("a", tmp_path).sweep == config == sweep_config_from_json(json.loads(json.dumps(to_json(config))))


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ("--lengths 128,many", "lengths: got '128,many', expected whole numbers with commas between"),
        ("--lengths 0", "lengths: got 0, expected int from 1 to 65536"),
        ("--lengths 128,128", "lengths: got 128, 128, expected each only once"),
        ("--backends flash", "backends: got 'flash', expected one of eager, sdpa"),
        ("--heads 0", "n_heads: got 0, expected int from 1 to 64"),
        ("--batches 5000", "batches: got 5000, expected int from 1 to 1024"),
        ("--networks lstm", "networks: got 'lstm', expected one of encoder, bilstm"),
    ],
)
def test_a_wrong_choice_is_one_sentence(capsys, tmp_path, flags, sentence):
    assert main(["measure", "sweep", *flags.split(), "--out", str(tmp_path / "a")]) == 2
    assert capsys.readouterr().err.startswith(f"error: {sentence}")
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("kind", ["memory", "speed"])
def test_one_cell_is_measured_by_a_command(quick, capsys, kind):
    command = ["measure", kind, "--backend", "eager", "--length", "24", "--batch", "3", "--heads", "2", "--d-head", "8"]
    assert main([*command, "--layers", "2", "--what", "forward", "--dtype", "bfloat16", "--device", "cpu", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert quick == [(kind, Cell(backend="eager", what="forward", batch=3, length=24, n_heads=2, d_head=8, n_layers=2,
                                 dtype="bfloat16", device="cpu"))]  # fmt: skip
    assert (found["measured_bytes"], found["median_s"]) == ((24000, None) if kind == "memory" else (None, 0.24))
    assert found["predicted_bytes"] > 0
    assert main([*command]) == 0
    assert "eager at 24 tokens, batch 3, predicted" in capsys.readouterr().out


def test_an_estimate_grows_with_length_and_is_nothing_for_what_does_not_fit():
    short, long = (sweeps.estimated_s(SweepConfig(lengths=(length,), device="cpu")) for length in (128, 2048))
    assert 0 < short < long
    assert sweeps.estimated_s(SweepConfig(lengths=(65_536,), batches=(1024,), device="cpu")) == 0


def test_every_backend_of_a_sweep_is_in_the_catalogue():
    assert set(SweepConfig().backends) <= set(BACKENDS)
    assert all(card.memory_bytes > 10**9 and card.name for card in CARDS.values())


def test_a_sweep_is_known_for_one_before_its_process_is_up(monkeypatch, tmp_path):
    monkeypatch.setattr(jobs, "_start", lambda *_: None)
    jobs.launch(argv(SMALL), tmp_path / "a", "a try", SMALL)
    assert (runs.read("a", tmp_path).sweep, runs.read("a", tmp_path).name) == (SMALL, "a try")
