"""What becomes of a training that is killed, starved, stopped and raced, with real processes.

Each case: the true state at once, nothing lost but the steps since the last checkpoint, and one verb to go on. What happens
to processes that do no work stands in test_jobs.py; what a browser sees of it in browser/test_train.py.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from core import jobs, run_folder, runs
from core.config import RunConfig
from core.events import Cancelled, EpochFinished, Failed, Interrupted, Queued, StepFinished, TrainingStarted
from core.presets import flags, tiny
from core.training import loop
from core.training.run import train
from tests import processes, small_runs
from tests.processes import events, eventually, interrupted, is_over, pid, reaches, starts

MAIN = f"""
import os, resource, runpy, signal, sys
from core import jobs, runs
from core.training import loop, run

what, *details = os.environ.get("ACCIDENT", "none").split()
loop.SECONDS_BETWEEN_EVENTS = 0.0
tell, store = loop.Trainer.tell, run._store


def interrupted_tell(trainer, watched):
    step = tell(trainer, watched)
    if what == "signal" and step.step == int(details[1]):
        os.kill(os.getpid(), signal.Signals[details[0]])
    if what == "cancel" and step.step == int(details[0]):
        jobs.cancel(runs.runs_root() / os.path.basename(sys.argv[-1]))
    return step


def interrupted_store(prepared, network, fitted, out, *more):
    if what == "cancel":
        (out / "cancel").touch()
    if what == "leave":
        os.kill(os.getpid(), signal.SIGTERM)
    if what == "die":
        run.artifact.write_record = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    return store(prepared, network, fitted, out, *more)


loop.Trainer.tell, run._store = interrupted_tell, interrupted_store
if what == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(details[0]), int(details[0])))
runpy.run_path({str(processes.ROOT / "core" / "__main__.py")!r}, run_name="__main__")
"""


@pytest.fixture
def root(tmp_path, monkeypatch) -> Iterator[Path]:
    """An empty runs/, where `python -m core` meets the accident that the environment names."""
    monkeypatch.setenv("ATTENTION_LAB_CACHE", str(tmp_path / "cache"))
    yield from processes.runs_of(MAIN, tmp_path, monkeypatch)


@pytest.fixture
def idle(tmp_path, monkeypatch) -> Iterator[Path]:
    """An empty runs/, where `python -m core` does no work."""
    yield from processes.runs_of(processes.WORKER, tmp_path, monkeypatch)


@pytest.fixture
def config(tmp_path) -> RunConfig:
    """Ten epochs of seven steps, a checkpoint after each step."""
    table = small_runs.write_table(tmp_path / "reviews.csv")
    training = replace(small_runs.TRAINING, epochs=10, batch_size=32, checkpoint_s=0.0)
    return replace(tiny(), model=small_runs.ENCODER, reviews=small_runs.config(table).reviews, training=training)


def steps(said) -> list[tuple]:
    """Of a run's steps and epochs what does not depend on the clock."""
    return [
        (event.step, event.loss, event.lr, event.gradient_norm, event.largest_logit)
        if isinstance(event, StepFinished)
        else (event.epoch, event.train_loss, event.val_loss, event.val_accuracy)
        for event in said
        if isinstance(event, StepFinished | EpochFinished)
    ]


def goes_on(folder: Path, monkeypatch, accident: str = "none") -> run_folder.State:
    """Resumes a run into the next accident, and waits for what becomes of it."""
    monkeypatch.setenv("ACCIDENT", accident)
    jobs.resume(folder)
    assert run_folder.state(folder) in ("queued", "running")
    return is_over(folder)


def test_a_training_that_meets_every_accident_is_the_training_that_met_none(root, tmp_path, config, monkeypatch):
    monkeypatch.setattr(loop, "SECONDS_BETWEEN_EVENTS", 0.0)
    expected = []
    train(config, tmp_path / "whole", expected.append, ["train"])
    folder = runs.runs_root() / run_folder.new_id()
    monkeypatch.setenv("ACCIDENT", "signal SIGKILL 23")
    jobs.launch(["train", *flags("tiny", config)], folder)
    assert is_over(folder) == "interrupted"  # by kill -9, before the step was stored
    assert steps(runs.read(folder.name).events)[-1][0] == 22

    assert goes_on(folder, monkeypatch, "signal SIGTERM 37") == "interrupted"  # asked to end: the step is stored
    assert events(folder)[-1] == Interrupted(reason="the system asked it to end after step 37")

    size = (folder / run_folder.CHECKPOINT).stat().st_size
    assert goes_on(folder, monkeypatch, f"full {size - 1}") == "failed"  # no room for the next checkpoint
    failed = events(folder)[-1]
    assert isinstance(failed, Failed) and failed.kind == "disk" and "let files grow larger" in failed.reason
    assert (folder / run_folder.CHECKPOINT).stat().st_size == size and not list(folder.glob("*.partial"))

    assert goes_on(folder, monkeypatch, "cancel 51") == "cancelled"  # by a person, who may think again
    assert isinstance(events(folder)[-1], Cancelled) and runs.read(folder.name).model == folder / "model"

    assert goes_on(folder, monkeypatch, "die") == "interrupted"  # by kill -9, while the model is stored
    assert runs.read(folder.name).model is not None and (folder / run_folder.CHECKPOINT).exists()  # the one of the stop

    assert goes_on(folder, monkeypatch, "leave") == "interrupted"  # asked to end, while the model is stored
    assert events(folder)[-1] == Interrupted(reason="the system asked it to end")

    assert goes_on(folder, monkeypatch, "cancel 0") == "succeeded"  # a stop that comes while the model is stored
    begun = [event.step for event in events(folder) if isinstance(event, TrainingStarted)]
    assert begun == [0, 22, 37, 37, 51, 70, 70]
    assert steps(runs.read(folder.name).events) == steps(expected)
    assert not (folder / run_folder.CHECKPOINT).exists()
    ours, theirs = (load_file(place / "model" / "model.safetensors") for place in (folder, tmp_path / "whole"))
    assert ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)
    metrics = [runs.read_model(place / "model").metrics for place in (folder, tmp_path / "whole")]
    assert metrics[0] == metrics[1] != {}


@pytest.fixture
def disk(root) -> Iterator[Path]:
    """The same runs/, on a file system of three MiB."""
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", root], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    yield root
    for folder in root.iterdir():
        jobs.stop(folder, grace_s=0.0)
    subprocess.run(["umount", "--lazy", root], check=True)


def fill(disk: Path, left: int) -> Path:
    """A file that leaves so many bytes free, or a few more."""
    free = os.statvfs(disk)
    (disk / ".filler").write_bytes(bytes(free.f_bavail * free.f_frsize - left))
    return disk / ".filler"


def test_a_full_disk_keeps_the_last_checkpoint_and_the_run_goes_on_when_there_is_room(disk, config, monkeypatch):
    folder = disk / "1"
    monkeypatch.setenv("ACCIDENT", "signal SIGTERM 5")
    jobs.launch(["train", *flags("tiny", replace(config, training=replace(config.training, epochs=1)))], folder)
    assert is_over(folder) == "interrupted"
    kept, size = runs.read("1").kept, (folder / run_folder.CHECKPOINT).stat().st_size
    filler = fill(disk, size // 2)
    assert goes_on(folder, monkeypatch) == "failed"
    failed = events(folder)[-1]
    assert isinstance(failed, Failed) and failed.kind == "disk"
    assert "(No space left on device, 0." in failed.reason and failed.reason.endswith("make room there")
    assert runs.read("1").kept == kept and not list(folder.glob("*.partial"))
    filler.unlink()
    assert goes_on(folder, monkeypatch) == "succeeded"
    assert [event.step for event in events(folder) if isinstance(event, TrainingStarted)] == [0, 5, 5]


def test_a_training_that_is_asked_to_end_while_it_waits_says_so_and_goes_on(root, config):
    folder = root / "2"
    with jobs.hold(root / "1", "cpu"):
        jobs.launch(["train", *flags("tiny", replace(config, training=replace(config.training, epochs=1)))], folder)
        eventually(lambda: events(folder)[-1:] == [Queued(ahead=1)], 60)
        os.kill(pid(folder), signal.SIGTERM)
        assert is_over(folder) == "interrupted"
    assert events(folder)[-1] == Interrupted(reason="the system asked it to end")
    assert run_folder.tail(folder, 1) == ["the system asked it to end; the same command goes on from there"]
    jobs.resume(folder)
    assert is_over(folder) == "succeeded"


def test_after_a_restart_of_the_machine_every_run_is_interrupted_at_once_and_goes_on(idle):
    folders = [idle / "1", idle / "2"]
    for folder in folders:
        jobs.launch(["work"], folder)
        eventually(lambda folder=folder: len(events(folder)) > 0)
    with pytest.raises(ValueError, match="is running; stop it before you delete it"):
        runs.delete("1")
    with pytest.raises(ValueError, match="is queued; stop it before you delete it"):
        runs.delete("2")
    for folder in reversed(folders):
        os.kill(pid(folder), signal.SIGKILL)
    for folder in folders:
        reaches(folder, "interrupted")
    jobs.resume(folders[1])
    reaches(folders[1], "running")  # it waits for nobody who is gone
    runs.delete("1")
    runs.restore("1")
    jobs.resume(folders[0])
    eventually(lambda: events(folders[0])[-1] == Queued(ahead=1))
    jobs.stop(folders[1])
    reaches(folders[0], "running")


@pytest.mark.parametrize("start", ["launch(['work'], folder)", "resume(folder)"])
def test_two_servers_on_one_folder_start_one_process(idle, start):
    before = 0
    if "resume" in start:
        interrupted(idle / "a")
        before = 1
    code = (
        "import pathlib, sys\nfrom core import jobs\n"
        f"folder, jobs.ROOT = pathlib.Path({str(idle / 'a')!r}), pathlib.Path({str(jobs.ROOT)!r})\njobs.{start}"
    )
    servers = [subprocess.Popen([sys.executable, "-c", code], cwd=processes.ROOT) for _ in range(2)]
    assert [server.wait() for server in servers] == [0, 0]
    reaches(idle / "a", "running")
    assert len(starts(idle)) == before + 1
