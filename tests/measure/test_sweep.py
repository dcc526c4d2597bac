import errno
import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from core import jobs, run_folder, runs
from core.__main__ import main
from core.catalog import BACKENDS, CARDS
from core.checked import from_json, to_json
from core.config import SweepConfig
from core.events import Cancelled, Ceilings, CellMeasured, Finished, Started
from core.measure import sweep as sweeps
from core.measure.command import argv
from core.records import Cell

SMALL = SweepConfig(lengths=(16, 8), batches=(2,), n_heads=3, d_head=8, device="cpu")


CEILINGS = Ceilings(device="cpu", dtype="float32", operations_per_s=1e11, bytes_per_s=1e10, hardware="h", date="2026-11-30")


@pytest.fixture
def quick(monkeypatch, tmp_path) -> list[tuple[str, Cell]]:
    """Measurements that take no time; a list of what was asked. At 8 tokens sdpa finds no memory."""
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "runs"))
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
    assert run_folder.state(tmp_path / "2") == "cancelled" and quick == []


def names(asked: list[tuple[str, Cell]]) -> list[str]:
    return [f"{kind} of {cell.backend} at {cell.length}" for kind, cell in asked]


REST = [f"{kind} of {backend} at {length}" for backend, length in (("sdpa", 8), ("eager", 16), ("sdpa", 16))
        for kind in ("memory", "speed") if (kind, length) != ("speed", 8)]  # fmt: skip
"""What is left after the first cell, and the one that found no memory."""


def test_a_sweep_that_was_stopped_goes_on_with_what_is_left(quick, capsys, tmp_path, monkeypatch):
    command = [*argv(SMALL), "--out", str(tmp_path / "a")]
    monkeypatch.setattr(jobs.Job, "stopped", lambda job: len(quick) >= 3)
    assert main(command) == 0
    assert "stopped after 2 of 4 cells; the same command goes on from there" in capsys.readouterr().out
    assert run_folder.state(tmp_path / "a") == "cancelled"
    monkeypatch.setattr(jobs.Job, "stopped", lambda job: False)
    quick.clear()
    assert main([*command, "--json"]) == 0
    assert names(quick) == REST and run_folder.state(tmp_path / "a") == "succeeded"
    found = json.loads(capsys.readouterr().out)["cells"]
    assert [(each["backend"], each["length"]) for each in found] == [("eager", 8), ("sdpa", 8), ("eager", 16), ("sdpa", 16)]
    assert sum(isinstance(event, Ceilings) for event in run_folder.read_events(tmp_path / "a")[0]) == 1
    quick.clear()
    assert main(command) == 0 and names(quick) == REST[:1]  # the one that failed is tried again


def test_a_sweep_that_was_killed_as_it_wrote_goes_on(quick, tmp_path):
    command = [*argv(SMALL), "--out", str(tmp_path / "a")]
    assert main(command) == 0
    events = tmp_path / "a" / "events.jsonl"
    lines = events.read_bytes().splitlines(keepends=True)
    events.write_bytes(b"".join(lines[:3]) + lines[3][:40])  # started, ceilings, a cell, and half a one
    assert run_folder.state(tmp_path / "a") == "interrupted"
    quick.clear()
    assert main(command) == 0
    assert names(quick) == REST
    assert len(sweeps.by_cell(run_folder.read_events(tmp_path / "a")[0])) == 4


def test_a_full_disk_costs_the_cell_that_could_not_be_written(quick, capsys, tmp_path, monkeypatch):
    command = [*argv(SMALL), "--out", str(tmp_path / "a")]

    def full(folder, event, append=run_folder.append_event):
        if len(quick) >= 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        append(folder, event)

    monkeypatch.setattr(run_folder, "append_event", full)
    assert main(command) == 1
    assert capsys.readouterr().err.startswith("error: No space left on device")
    monkeypatch.undo()
    assert list(sweeps.by_cell(run_folder.read_events(tmp_path / "a")[0])) == sweeps.cells(SMALL)[:1]


def test_a_sweep_of_other_flags_writes_over_nothing(quick, capsys, tmp_path):
    assert main([*argv(SMALL), "--out", str(tmp_path / "a")]) == 0
    other = replace(SMALL, batches=(1,))
    assert main([*argv(other), "--out", str(tmp_path / "a")]) == 2
    assert "a run of other settings already; choose another folder" in capsys.readouterr().err
    assert list(sweeps.by_cell(run_folder.read_events(tmp_path / "a")[0])) == sweeps.cells(SMALL)


def test_one_cell_waits_for_whoever_has_the_device_and_says_so(quick, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path))
    said, patience = "", time.monotonic() + 60
    with ThreadPoolExecutor(1) as threads:
        with jobs.hold(tmp_path / "1", "cpu"):
            done = threads.submit(main, ["measure", "speed", "--length", "16", "--device", "cpu"])
            while "waiting" not in said and time.monotonic() < patience:
                said += capsys.readouterr().err
                time.sleep(0.05)
            assert said.startswith("waiting for a run on this device") and quick == []
        assert done.result() == 0
    assert [kind for kind, _ in quick] == ["speed"]
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == ["1"]


@pytest.mark.parametrize("network", ["encoder", "bilstm"])
def test_a_bilstm_is_measured_once_beside_the_backends(quick, network):
    config = replace(SMALL, networks=("encoder", "bilstm"))
    asked = [cell for cell in sweeps.cells(config) if cell.network == network]
    assert [cell.label for cell in asked] == (["eager", "sdpa"] * 2 if network == "encoder" else ["bilstm"] * 2)
    assert [cell.backend is None for cell in asked] == [network == "bilstm"] * len(asked)


@pytest.mark.parametrize(
    ("knobs", "reason"),
    [({"n_layers": 3}, "a BiLSTM has 1 to 2 layers here, not 3"), ({"checkpointing": True}, "a BiLSTM does not compute")],
)
def test_what_a_bilstm_is_not_made_for_is_said_and_the_encoder_is_measured(quick, knobs, reason):
    config = replace(SMALL, networks=("encoder", "bilstm"), lengths=(16,), **knobs)
    events = [sweeps.measured(cell) for cell in sweeps.cells(config)]
    assert [event.why_not is None for event in events] == [True, True, False]
    assert events[-1].why_not is not None and events[-1].why_not.startswith(reason)


@pytest.mark.parametrize("reason", [None, "does not fit: the memory ended"])
def test_a_measured_cell_travels_through_the_events(quick, tmp_path, reason):
    event = sweeps.measured(sweeps.cells(SMALL)[reason is not None])
    assert event.why_not == reason
    run_folder.append_event(tmp_path, event)
    assert run_folder.read_events(tmp_path)[0] == [event]
    assert event.cell == sweeps.cells(SMALL)[reason is not None]


def test_every_flag_comes_back_as_the_sweep(quick, tmp_path):
    config = SweepConfig(
        networks=("bilstm", "encoder"), backends=("sdpa",), lengths=(24, 48), batches=(3, 1), what="step", checkpointing=True,
        n_heads=5, d_head=8, n_layers=2, dtype="mixed", device="cpu",
    )  # fmt: skip
    assert main([*argv(config), "--out", str(tmp_path / "a"), "--json"]) == 0
    assert runs.read("a", tmp_path).sweep == config == from_json(SweepConfig, json.loads(json.dumps(to_json(config))))


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ("--lengths 128,many", "--lengths: got '128,many', expected whole numbers with commas between"),
        ("--lengths 0", "--lengths: got 0, expected int from 1 to 65536"),
        ("--lengths 128,128", "--lengths: got 128, 128, expected each only once"),
        ("--backends flash", "--backends: got 'flash', expected one of eager, sdpa"),
        ("--heads 0", "--heads: got 0, expected int from 1 to 64"),
        ("--batches 5000", "--batches: got 5000, expected int from 1 to 1024"),
        ("--networks lstm", "--networks: got 'lstm', expected one of encoder, bilstm"),
    ],
)
def test_a_wrong_choice_is_one_sentence(capsys, tmp_path, flags, sentence):
    assert main(["measure", "sweep", *flags.split(), "--out", str(tmp_path / "a")]) == 2
    assert capsys.readouterr().err.startswith(f"error: {sentence}")
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("kind", ["memory", "speed"])
@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ("--backend flash", "--backend: got 'flash', expected one of eager, sdpa"),
        ("--length 0", "--length: got 0, expected int from 1"),
        ("--batch 5000", "--batch: got 5000, expected int from 1 to 1024"),
        ("--layers 0", "--layers: got 0, expected int from 1 to 48"),
        ("--network bilstm --backend eager", "--backend: got 'eager', but a BiLSTM has no attention kernel; leave it out"),
        ("--network bilstm --layers 3", "bilstm: a BiLSTM has 1 to 2 layers here, not 3"),
        ("--backend cudnn --device cpu", "cudnn: it runs on cuda alone, not on cpu"),
    ],
)
def test_one_cell_that_cannot_be_is_one_sentence_and_an_error(quick, capsys, kind, flags, sentence):
    assert main(["measure", kind, *flags.split()]) == 2
    assert capsys.readouterr().err.startswith(f"error: {sentence}") and quick == []


@pytest.mark.parametrize(("flags", "label"), [("", "sdpa"), ("--network bilstm", "bilstm")])
def test_one_cell_needs_no_kernel_to_be_named(quick, capsys, flags, label):
    assert main(["measure", "speed", *flags.split(), "--length", "16", "--device", "cpu"]) == 0
    assert capsys.readouterr().out.startswith(f"{label} at 16 tokens")


def test_a_kernel_without_a_prediction_says_so(quick, capsys):
    command = ["measure", "memory", "--backend", "cudnn", "--length", "16", "--dtype", "bfloat16", "--device", "cuda"]
    assert main(command) == 0
    assert "no prediction: cudnn says only when it runs how much working memory it takes" in capsys.readouterr().out


@pytest.mark.parametrize(("share", "says"), [(None, False), (0.1, False), (0.34, True)])
def test_a_time_from_a_busy_machine_comes_without_a_verdict(quick, capsys, monkeypatch, share, says):
    found = {"median_s": 1.0, "spread_s": 0.1, "n_repeats": 5, "others": share}
    monkeypatch.setattr(sweeps, "in_process", lambda *_: found)
    assert main(["measure", "speed", "--length", "16", "--device", "cpu"]) == 0
    told = "no verdict on its time: others used 34% of the machine while this was measured"
    assert (told in capsys.readouterr().out) == says
    assert main(["measure", "speed", "--length", "16", "--device", "cpu", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["others"] == share


NONSENSE = [
    {"median_s": -5.0}, {"median_s": float("nan")}, {"median_s": float("inf")}, {"spread_s": -1.0}, {"peak_bytes": 10**30},
    {"peak_bytes": 0}, {"attention_s": 0.0}, {"others": 3.0}, {"length": 0}, {"length": 17}, {"n_heads": 0},
    {"device": "toaster"},
]  # fmt: skip


@pytest.mark.parametrize("figures", NONSENSE, ids=str)
def test_a_cell_that_no_machine_measured_is_left_out_by_name(quick, figures):
    every = [sweeps.measured(cell) for cell in sweeps.cells(SMALL)]
    assert sweeps.sound(SMALL, every) == (every, [])
    found, left_out = sweeps.sound(SMALL, [replace(every[0], **figures), *every[1:]])
    assert found == every[1:] and len(left_out) == 1 and left_out[0].startswith("eager at ")


def test_a_cell_that_no_machine_measured_is_measured(quick):
    said: list = []
    every = [sweeps.measured(cell) for cell in sweeps.cells(SMALL)]
    quick.clear()
    sweeps.sweep(SMALL, said.append, lambda: False, [CEILINGS, replace(every[0], median_s=-5.0), *every[2:]])
    assert names(quick) == ["memory of eager at 8", "speed of eager at 8", "memory of sdpa at 8"]


def test_time_left_goes_by_what_the_cells_before_took(quick):
    every = [sweeps.measured(cell) for cell in sweeps.cells(SMALL)]
    assert all(event.elapsed_s is not None for event in every)
    expected = sweeps.estimated_s(SMALL)
    assert sweeps.left_s(SMALL, []) == expected
    ran = [replace(every[number], elapsed_s=30.0, median_s=1.0) for number in (0, 2)]
    assert sweeps.left_s(SMALL, ran) == pytest.approx(60, rel=0.1)  # two are left, about as long as these
    assert sweeps.left_s(SMALL, [every[1]]) == pytest.approx(0.75 * expected, rel=0.1)  # what was refused sets no pace
    assert sweeps.left_s(SMALL, every) == 0


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
