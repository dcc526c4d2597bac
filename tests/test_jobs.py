"""Runs as real processes: a small worker stands in for training, and is killed, stopped and raced."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread, Timer

import pytest
import torch
from filelock import FileLock

from core import artifact, jobs, run_folder, runs
from core.__main__ import main
from core.checked import from_json, to_json
from core.config import DataConfig, EncoderArchitecture, RunConfig, SweepConfig, TrainingConfig
from core.events import Cancelled, CellMeasured, EpochFinished, Failed, Finished, Interrupted, Queued, Started, TableRead
from tests import processes
from tests.processes import ROOT, WORKER, events, eventually, interrupted, is_gone, pid, reaches, starts
from tests.test_run_folder import finished, step


@pytest.fixture
def root(tmp_path, monkeypatch) -> Iterator[Path]:
    """An empty runs/, where `python -m core` is the worker above."""
    yield from processes.runs_of(WORKER, tmp_path, monkeypatch)


# Starting


def test_a_run_is_queued_then_running_then_over_and_never_anything_else(root):
    folder, seen = root / run_folder.new_id(), []
    jobs.launch(["quick", "--lr", "0.1"], folder, title="A <b>try</b>")
    while not seen or seen[-1] != "succeeded":
        state = run_folder.state(folder)
        seen += [state] if seen[-1:] != [state] else []
        assert seen in (["queued"], ["queued", "running"], ["queued", "running", "succeeded"], ["queued", "succeeded"])
    assert events(folder) == [Started(device="cpu"), Finished()]
    assert run_folder.tail(folder, 5) == ["at work"]
    request = json.loads((folder / "request.json").read_text())
    assert request["argv"] == ["quick", "--lr", "0.1", "--out", str(folder)]
    assert request["title"] == "A <b>try</b>"


def test_a_run_outlives_the_process_that_launched_it(root):
    folder = root / "a"
    code = f"""import os, signal, pathlib
from core import jobs
jobs.ROOT = pathlib.Path({str(jobs.ROOT)!r})
jobs.launch(["work"], pathlib.Path({str(folder)!r}))
os.killpg(0, signal.SIGKILL)"""
    launcher = subprocess.run([sys.executable, "-c", code], cwd=ROOT, start_new_session=True)
    assert launcher.returncode == -signal.SIGKILL
    seen = set()

    def runs() -> bool:
        seen.add(run_folder.state(folder))
        return "running" in seen

    eventually(runs)
    assert seen <= {"queued", "running"}  # not interrupted between the launcher's death and the run's own lock
    assert os.getsid(pid(folder)) == pid(folder)  # no terminal's hang-up reaches it


def test_five_launches_into_one_folder_start_one_process(root):
    folder = root / "a"
    with ThreadPoolExecutor(5) as pool:
        list(pool.map(lambda _: jobs.launch(["work"], folder), range(5)))
    reaches(folder, "running")
    jobs.launch(["work"], folder)
    assert len(starts(root)) == 1
    assert sorted(path.name for path in root.iterdir()) == [".queue", "a", "starts"]


def test_an_empty_folder_is_somebody_s_too(root):
    (root / "a").mkdir()
    jobs.launch(["quick"], root / "a")
    assert list((root / "a").iterdir()) == []


def test_of_two_processes_for_one_folder_one_is_the_run(root):
    command = [sys.executable, "-m", "core", "work", "--out", str(root / "a")]
    racing = [subprocess.Popen(command, cwd=jobs.ROOT, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    eventually(lambda: any(process.poll() is not None for process in racing))
    reaches(root / "a", "running")
    loser, winner = sorted(racing, key=lambda process: process.poll() is None)
    assert "another process is this run already" in loser.communicate()[1]
    assert pid(root / "a") == winner.pid and events(root / "a") == [Started(device="cpu")]
    jobs.stop(root / "a")
    assert winner.communicate() == (None, "") and winner.returncode == 0


@pytest.mark.parametrize(("module", "place"), [(run_folder, "write_request"), (jobs, "_start")])
def test_a_launch_that_fails_leaves_nothing_behind(root, monkeypatch, module, place):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, place, full)
    with pytest.raises(OSError, match="No space left"):
        jobs.launch(["work"], root / "a")
    assert list(root.iterdir()) == []


# Going on


def test_a_run_goes_on_in_its_folder_by_its_command_and_forgets_that_it_was_to_stop(root):
    folder = interrupted(root / "a")
    request, dead = (folder / "request.json").read_text(), pid(folder)
    (folder / "cancel").touch()  # asked to stop, and killed before it did
    assert run_folder.state(folder) == "cancelled"
    jobs.resume(folder)
    assert run_folder.state(folder) in ("queued", "running")
    reaches(folder, "running")
    assert pid(folder) != dead and (folder / "request.json").read_text() == request and not (folder / "cancel").exists()
    jobs.stop(folder)
    assert events(folder) == [Started(device="cpu"), Queued(ahead=0), Started(device="cpu"), Cancelled()]


def test_the_same_command_in_the_same_folder_goes_on_and_another_begins_anew(tmp_path):
    folder = tmp_path / "a"
    with pytest.raises(KeyError), jobs.hold(folder, "cpu", RunConfig()):
        jobs.cancel(folder)
        (folder / "checkpoint.safetensors").touch()
        raise KeyError
    with jobs.hold(folder, "cpu", RunConfig()) as job:
        assert not job.stopped() and (folder / "checkpoint.safetensors").exists()
    assert [type(event) for event in events(folder)] == [Started, Failed, Queued, Started, Finished]
    (folder / "checkpoint.safetensors").unlink()
    with jobs.hold(folder, "cpu", RunConfig(training=TrainingConfig(epochs=1))):
        pass
    assert events(folder) == [Started(device="cpu"), Finished()]


MEASURED = CellMeasured(
    backend="sdpa", batch=1, length=64, n_heads=1, d_head=8, n_layers=1, what="forward", dtype="float32", device="cpu",
    peak_bytes=None, source=None, median_s=None, spread_s=None, n_repeats=0, kernel=None, hardware=None, why_not="too small",
)  # fmt: skip
OTHERS = [SweepConfig(lengths=(64,)), RunConfig(training=TrainingConfig(epochs=1))]


@pytest.mark.parametrize("result", ["checkpoint", "cell"])
@pytest.mark.parametrize("other", OTHERS, ids=["sweep", "run"])
def test_what_a_run_of_other_settings_has_learned_or_measured_is_not_written_over(tmp_path, result, other):
    folder = tmp_path / "a"
    with jobs.hold(folder, "cpu", SweepConfig()) as job:
        if result == "cell":
            job.emit(MEASURED)
        else:
            (folder / "checkpoint.safetensors").touch()
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(ValueError, match="there is a run of other settings already"), jobs.hold(folder, "cpu", other):
        pytest.fail("it began")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_who_waits_for_the_device_is_told(tmp_path, capsys):
    with jobs.hold(tmp_path / "1", "cpu"):
        with FileLock(tmp_path / ".queue" / "cpu" / "0"):
            waiting = Thread(target=_wait_and_end, args=(tmp_path / "2",))
            waiting.start()
            eventually(lambda: Queued(ahead=2) in events(tmp_path / "2"))
        eventually(lambda: Queued(ahead=1) in events(tmp_path / "2"))
    waiting.join()
    said = ["waiting for 2 runs on this device: nothing runs beside another", "waited 0 s"]
    assert re.sub("waited .*", said[1], capsys.readouterr().err).splitlines() == said  # once


def _wait_and_end(folder: Path) -> None:
    with jobs.hold(folder, "cpu", said=jobs.tell):
        pass


def test_a_model_without_a_word_of_how_it_came_is_one_that_was_made(root):
    folder = interrupted(root / "a")
    (folder / "events.jsonl").write_text("garbage\n")
    assert run_folder.state(folder) == "interrupted"
    (folder / "model").mkdir()
    assert run_folder.state(folder) == "succeeded"


def test_five_clicks_on_resume_start_one_process_and_a_living_run_is_left_alone(root):
    folder = interrupted(root / "a")
    with ThreadPoolExecutor(5) as pool:
        list(pool.map(lambda _: jobs.resume(folder), range(5)))
    reaches(folder, "running")
    jobs.resume(folder)
    assert len(starts(root)) == 2
    assert [type(event) for event in events(folder)] == [Started, Queued, Started]


def test_a_run_whose_process_has_said_its_last_word_goes_on_once_that_has_ended(root, monkeypatch):
    folder = interrupted(root / "a")
    run_folder.append_event(folder, Interrupted(reason="the system asked it to end"))
    with FileLock(folder / "lock", thread_local=False) as ending:
        monkeypatch.setattr(jobs, "ENDING_S", 0.1)
        with pytest.raises(ValueError, match="its process has not ended; try again in a minute"):
            jobs.resume(folder)
        monkeypatch.setattr(jobs, "ENDING_S", 30.0)
        Timer(0.3, ending.release).start()
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda _: jobs.resume(folder), range(2)))
    reaches(folder, "running")
    assert len(starts(root)) == 2


def test_a_run_that_is_asked_to_stop_while_it_starts_again_stops(root):
    folder = interrupted(root / "a")
    jobs.resume(folder)
    jobs.stop(folder)
    assert run_folder.state(folder) == "cancelled" and events(folder)[-1] == Cancelled()


def test_a_second_attempt_that_dies_before_it_can_speak_says_why(root):
    folder = interrupted(root / "a")
    request = json.loads((folder / "request.json").read_text())
    (folder / "request.json").write_text(json.dumps(request | {"argv": ["refuse", "--out", str(folder)]}))
    jobs.resume(folder)
    reaches(folder, "failed")
    assert events(folder)[-1] == Failed(reason="error: there is no such knob")


@pytest.mark.parametrize(("before", "since", "said"), [
    ([], [Started(device="cpu")], True),
    ([], [Started(device="cpu"), Failed(reason="x")], False),
    ([], [Started(device="cpu"), Failed(reason="x"), Queued(ahead=0)], False),  # and the next attempt has begun
    ([Failed(reason="x"), Queued(ahead=0)], [], True),
])  # fmt: skip
def test_of_a_process_that_has_spoken_for_itself_nothing_more_is_said(tmp_path, before, since, said):
    for event in before:
        run_folder.append_event(tmp_path, event)
    offset = run_folder.read_events(tmp_path)[1]
    for event in since:
        run_folder.append_event(tmp_path, event)
    jobs._bury(subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"]), tmp_path, offset)
    spoken = [Failed(reason="the process ended with exit code 3")] if said else []
    assert events(tmp_path) == before + since + spoken


@pytest.mark.parametrize("content", [None, "{", "[]", "{}"])
def test_a_run_whose_command_is_not_on_record_is_not_started_again(root, content):
    (root / "a").mkdir()
    if content is not None:
        (root / "a" / "request.json").write_text(content)
    with pytest.raises(ValueError, match="its command cannot be read .*; start a new run"):
        jobs.resume(root / "a")


def test_a_folder_of_a_newer_version_is_left_as_it_is(tmp_path):
    run_folder.append_event(tmp_path, Failed(reason="x"))
    (tmp_path / "config.json").write_text(json.dumps(to_json(RunConfig()) | {"sails": 3}))
    with pytest.raises(ValueError, match="unknown knobs sails in RunConfig: was this written by a newer version"):
        with jobs.hold(tmp_path, "cpu", RunConfig()):
            pass
    assert events(tmp_path) == [Failed(reason="x")]


# Dying


def test_a_killed_run_is_interrupted_at_once(root):
    jobs.launch(["work"], root / "a")
    reaches(root / "a", "running")
    os.kill(pid(root / "a"), signal.SIGKILL)
    eventually(lambda: is_gone(pid(root / "a")))
    assert run_folder.state(root / "a") == "interrupted"


def test_a_run_that_fails_says_why(root):
    jobs.launch(["fail"], root / "a")
    reaches(root / "a", "failed")
    assert events(root / "a")[-1] == Failed(reason="epochs: got 0, expected at least 1")
    eventually(lambda: not run_folder.is_alive(root / "a"))
    assert run_folder.tail(root / "a", 2) == ["ValueError: epochs: got 0, expected at least 1", "and more"]


def test_a_run_that_dies_before_it_can_speak_says_why(root):
    jobs.launch(["refuse"], root / "a")
    reaches(root / "a", "failed")
    assert events(root / "a") == [Failed(reason="error: there is no such knob")]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("lr: got 0\nmore"), "lr: got 0"),
        (OSError(28, "No space left on device"), "No space left on device; make room there"),
        (OSError(13, "Permission denied", "runs"), "runs: Permission denied"),
        (RuntimeError("I/O error: gone (os error 28)"), "No space left on device; make room there"),
        (FileNotFoundError(2, "No such file or directory", "gone.csv"), "gone.csv: No such file or directory"),
        (MemoryError(), "there was not enough memory; use a smaller batch, a shorter max_len or a smaller model"),
        (
            RuntimeError(
                "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 12000000000000 bytes."
            ),
            "there was not enough memory; use a smaller batch, a shorter max_len or a smaller model",
        ),
        (
            torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
            "there was not enough memory; use a smaller batch, a shorter max_len or a smaller model",
        ),
        (KeyError("d_model"), "KeyError: 'd_model'"),
        (SystemExit(), "SystemExit"),
    ],
)
def test_whatever_ends_a_run_is_its_last_event_and_goes_on(tmp_path, error, reason):
    with pytest.raises(type(error)), jobs.hold(tmp_path / "a", "cpu") as job:
        job.emit(step(7))
        raise error
    kind = "memory" if "memory" in reason else "disk" if "space" in reason else "other"
    assert events(tmp_path / "a")[-1] == Failed(reason=reason, step=7, kind=kind)
    assert run_folder.state(tmp_path / "a") == "failed"


@pytest.mark.parametrize(("error", "reason"), [
    (KeyboardInterrupt(), "stopped from the keyboard"),
    (jobs.Ended("the system asked it to end after step 7"), "the system asked it to end after step 7"),
])  # fmt: skip
def test_a_process_that_is_asked_to_end_is_interrupted_and_says_so(tmp_path, error, reason):
    with pytest.raises(type(error)), jobs.hold(tmp_path / "a", "cpu"):
        raise error
    assert events(tmp_path / "a")[-1] == Interrupted(reason=reason) and run_folder.state(tmp_path / "a") == "interrupted"
    with pytest.raises(type(error)), jobs.hold(tmp_path / "b", "cpu"):
        jobs.cancel(tmp_path / "b")
        raise error
    assert run_folder.state(tmp_path / "b") == "cancelled"


@pytest.mark.parametrize(("before", "said", "error", "left"), [
    ([], [], ValueError("data: got x"), None),
    ([], [TableRead(notes=["a"])], ValueError("data: got x"), None),
    (["mine.txt"], [], ValueError("data: got x"), Failed(reason="data: got x")),
    ([], [step(7)], ValueError("nan"), Failed(reason="nan", step=7)),
    ([], [MEASURED], ValueError("x"), Failed(reason="x")),
    ([], [], KeyError("x"), Failed(reason="KeyError: 'x'")),
])  # fmt: skip
def test_what_is_refused_before_any_work_leaves_no_folder_of_its_own(tmp_path, before, said, error, left):
    folder = tmp_path / "a"
    for name in before:
        folder.mkdir()
        (folder / name).write_text("keep")
    with pytest.raises(type(error)), jobs.hold(folder, "cpu", RunConfig()) as job:
        for event in said:
            job.emit(event)
        raise error
    assert folder.exists() == (left is not None) and all((folder / name).read_text() == "keep" for name in before)
    assert (events(folder)[-1:] or [None]) == [left]


def test_what_an_earlier_attempt_left_is_kept_when_the_next_one_is_refused(tmp_path):
    for error in (KeyError, ValueError):
        with pytest.raises(error), jobs.hold(tmp_path / "a", "cpu", RunConfig()):
            raise error("x")
    assert [type(event) for event in events(tmp_path / "a")] == [Started, Failed, Queued, Started, Failed]


def test_what_follows_the_last_event_does_not_change_the_outcome(tmp_path):
    with pytest.raises(BrokenPipeError), jobs.hold(tmp_path / "a", "cpu") as job:
        job.emit(finished())
        raise BrokenPipeError
    assert run_folder.state(tmp_path / "a") == "succeeded"


def test_another_attempt_in_the_same_folder_starts_anew(tmp_path):
    with pytest.raises(KeyError), jobs.hold(tmp_path / "a", "cpu"):
        (tmp_path / "a" / "cancel").touch()
        raise KeyError
    with jobs.hold(tmp_path / "a", "cpu", RunConfig()) as job:
        assert not job.stopped()
        assert run_folder.state(tmp_path / "a") == "running"
        with pytest.raises(ValueError, match="another process"), jobs.hold(tmp_path / "a", "cpu"):
            pass
    assert events(tmp_path / "a") == [Started(device="cpu"), Finished()]
    assert from_json(RunConfig, json.loads((tmp_path / "a" / "config.json").read_text())) == RunConfig()


# Waiting


def test_runs_on_one_device_take_turns_in_the_order_of_their_ids(root):
    jobs.launch(["work"], root / "1")
    reaches(root / "1", "running")
    for name in ("3", "2"):  # not in the order of launching
        jobs.launch(["work"], root / name)
        eventually(lambda name=name: len(events(root / name)) > 0)
    eventually(lambda: events(root / "3")[-1] == Queued(ahead=2))
    assert events(root / "2") == [Queued(ahead=1)]
    assert [run_folder.state(root / name) for name in "123"] == ["running", "queued", "queued"]
    jobs.stop(root / "1")
    reaches(root / "2", "running")
    eventually(lambda: events(root / "3")[-1] == Queued(ahead=1))
    os.kill(pid(root / "2"), signal.SIGKILL)
    reaches(root / "3", "running")


def test_a_waiting_run_that_dies_is_passed_over(root):
    with jobs.hold(root / "1", "cpu"):
        for name in "23":
            jobs.launch(["quick"], root / name)
            reaches(root / name, "queued")
            eventually(lambda name=name: len(events(root / name)) > 0)
        os.kill(pid(root / "2"), signal.SIGKILL)
        reaches(root / "2", "interrupted")
        eventually(lambda: events(root / "3")[-1] == Queued(ahead=1))
    reaches(root / "3", "succeeded")


def test_another_device_is_free(tmp_path):
    with jobs.hold(tmp_path / "1", "cpu"), jobs.hold(tmp_path / "2", "cuda"):
        assert run_folder.state(tmp_path / "2") == "running"


def test_the_device_is_told_without_torch(monkeypatch):
    assert jobs.device_of("cuda") == "cuda" and jobs.device_of("cpu") == "cpu"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert jobs.device_of("auto") == "cpu"


# Stopping


def test_a_waiting_run_is_stopped(root):
    with jobs.hold(root / "1", "cpu"):
        jobs.launch(["work"], root / "2")
        eventually(lambda: events(root / "2") == [Queued(ahead=1)])
        jobs.stop(root / "2")
    assert events(root / "2") == [Queued(ahead=1), Cancelled()]
    assert run_folder.state(root / "2") == "cancelled"
    assert not run_folder.is_held(root / ".queue" / "cpu.lock")


def test_a_run_is_stopped_before_it_is_up(root):
    jobs.launch(["work"], root / "a")
    jobs.stop(root / "a")
    assert events(root / "a") == [Cancelled()] and run_folder.state(root / "a") == "cancelled"


def test_a_running_run_is_asked_to_stop_and_twice_does_no_harm(root):
    jobs.launch(["work"], root / "a")
    reaches(root / "a", "running")
    jobs.stop(root / "a")
    assert run_folder.state(root / "a") == "cancelled" and is_gone(pid(root / "a"))
    before = sorted(path.name for path in (root / "a").iterdir()), events(root / "a")
    jobs.stop(root / "a")
    jobs.cancel(root / "a")
    assert (sorted(path.name for path in (root / "a").iterdir()), events(root / "a")) == before
    assert before[1] == [Started(device="cpu"), Cancelled()]


def test_a_run_that_does_not_listen_is_ended_after_the_grace(root):
    jobs.launch(["deaf"], root / "a")
    reaches(root / "a", "running")
    start = time.monotonic()
    jobs.stop(root / "a", grace_s=0.5)
    assert 0.5 <= time.monotonic() - start < 4
    assert run_folder.state(root / "a") == "cancelled" and is_gone(pid(root / "a"))


def test_stopping_a_run_that_was_not_launched_spares_its_group(root):
    command = [sys.executable, "-m", "core", "deaf", "--out", str(root / "a")]
    with subprocess.Popen(["sleep", "60"], process_group=0) as neighbour:
        foreground = subprocess.Popen(command, cwd=jobs.ROOT, process_group=neighbour.pid)
        reaches(root / "a", "running")
        jobs.stop(root / "a", grace_s=0.0)
        assert foreground.wait() == -signal.SIGTERM and neighbour.poll() is None
        neighbour.kill()


@pytest.mark.parametrize("outcome", [Finished(), Failed(reason="no"), None])
def test_a_run_that_is_over_stays_what_it_was(tmp_path, outcome):
    if outcome:
        run_folder.append_event(tmp_path, outcome)
    before = run_folder.state(tmp_path)
    jobs.stop(tmp_path)
    assert run_folder.state(tmp_path) == before == ("interrupted" if outcome is None else run_folder.OUTCOMES[type(outcome)])


# Training as a run


@pytest.fixture
def table(tmp_path) -> Path:
    """A hundred and twenty short reviews."""
    rows = [f"{word} film number {n},{label}" for n in range(60) for label, word in enumerate(("dull", "good"))]
    (tmp_path / "reviews.csv").write_text("\n".join(["text,label", *rows]))
    return tmp_path / "reviews.csv"


def small(table: Path, epochs: int) -> RunConfig:
    architecture = EncoderArchitecture(vocab_size=100, d_model=8, n_heads=2, n_layers=1, d_ff=8, max_len=8)
    training = TrainingConfig(epochs=epochs, batch_size=16, device="cpu", precision="float32", backend="eager")
    return RunConfig(model=architecture, reviews=DataConfig(data=str(table)), training=training)


def test_a_training_that_is_stopped_keeps_its_best_weights(tmp_path, table, monkeypatch, capsys):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("ATTENTION_LAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "runs"))
    knobs = "--vocab-size 100 --d-model 8 --n-heads 2 --n-layers 1 --d-ff 8 --max-len 8 --device cpu --precision float32"
    folder = runs.runs_root() / run_folder.new_id()
    jobs.launch(["train", "--preset", "tiny", "--data", str(table), "--epochs", "9000", *knobs.split()], folder)
    try:
        eventually(lambda: any(isinstance(event, EpochFinished) for event in events(folder)), timeout_s=60)
        assert main(["jobs", "list"]) == 0 and capsys.readouterr().out == f"{folder.name}  running\n"
        assert main(["jobs", "stop", folder.name]) == 0 and capsys.readouterr().out == f"{folder.name}  cancelled\n"
    finally:
        jobs.stop(folder, grace_s=0.0)
    said = events(folder)
    assert [type(event).__name__ for event in said[:3]] == ["Started", "TableRead", "TrainingStarted"]
    validated = [event for event in said if isinstance(event, EpochFinished)]
    best = max(validated, key=lambda event: (event.val_accuracy, -event.val_loss)).epoch
    assert said[-1] == Cancelled(best_epoch=best, model_dir=str(folder / "model"))
    assert main(["jobs", "show", folder.name, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["state"] == "cancelled" and shown["model"] == str(folder / "model")
    assert shown["metrics"]["validation"]["n"] > 0 and shown["log"][-1].startswith("stopped; the model is in")
    run = runs.read(folder.name)
    assert run.config is not None and run.config.training.epochs == 9_000 and run.config.model.max_len == 8
    assert artifact.model_folders()[folder.name] == folder / "model"
    artifact.open_model(folder / "model")
    shutil.rmtree(folder / "model")
    runs.delete(folder.name)
    assert folder.name not in artifact.model_folders()


@pytest.mark.parametrize(("steps", "kept"), [(0, None), (3, 0)])
def test_a_training_that_is_stopped_in_its_first_epoch_keeps_what_it_has(tmp_path, table, monkeypatch, steps, kept):
    from core.training.run import train

    monkeypatch.setenv("ATTENTION_LAB_CACHE", str(tmp_path / "cache"))
    asked = iter(range(10**6))
    last = train(small(table, 2), tmp_path / "a", lambda event: None, ["train"], lambda: next(asked) >= steps)
    assert last == Cancelled(best_epoch=kept, model_dir=None if kept is None else str(tmp_path / "a" / "model"))
    assert (tmp_path / "a" / "model").exists() == (kept is not None)
    assert next(asked) == steps + 1  # and no step was made after the answer


def test_a_folder_with_a_model_is_left_as_it_is(tmp_path):
    (tmp_path / "a" / "model").mkdir(parents=True)
    run_folder.append_event(tmp_path / "a", finished())
    with pytest.raises(ValueError, match="there is a model already"), jobs.hold(tmp_path / "a", "cpu"):
        pass
    assert events(tmp_path / "a") == [finished()]


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "a").touch()
    with pytest.raises(ValueError, match="the folder cannot be made"), jobs.hold(tmp_path / "a" / "b", "cpu"):
        pass


# The command line


def test_jobs_are_listed_shown_and_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path))
    assert main(["jobs", "list"]) == 0 and capsys.readouterr().out == "there are no runs yet\n"
    with jobs.hold(tmp_path / "b", "cpu"):
        pass
    (tmp_path / "a").mkdir()
    with pytest.raises(ValueError), jobs.hold(tmp_path / "a", "cpu"):
        raise ValueError("no such file")
    (tmp_path / "a" / "log.txt").write_text("one\ntwo\nthree\n")
    (tmp_path / "a" / "config.json").write_text("{")
    assert main(["jobs", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [(run["id"], run["state"], run["reason"]) for run in listed] == [
        ("a", "failed", "no such file"),
        ("b", "succeeded", None),
    ]
    assert main(["jobs", "show", "a", "--lines", "2"]) == 0
    first, problem, *log = capsys.readouterr().out.splitlines()
    assert (first, log) == ("a  failed  no such file", ["two", "three"]) and problem.startswith("config.json cannot be read")
    assert main(["jobs", "stop", "a"]) == 0 and capsys.readouterr().out.startswith("a  failed")
    assert main(["jobs", "show"]) == 2 and "expected the id of a run" in capsys.readouterr().err
    assert main(["jobs", "stop", "../a"]) == 2 and "there is no run '../a'" in capsys.readouterr().err
