"""Several processes that train together, as `torchrun` starts them: the loss of one, and one that writes."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from core import jobs, run_folder
from core.events import EpochFinished
from core.presets import flags, tiny
from core.training.run import train
from tests import small_runs
from tests.processes import ROOT, events


def torchrun(*command: str) -> str:
    """What two processes say that run the same command."""
    start = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([*start, *command], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_two_processes_have_the_loss_of_one(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_CACHE", str(tmp_path / "cache"))
    table = small_runs.write_table(tmp_path / "reviews.csv")
    config = replace(
        tiny(),
        model=replace(small_runs.ENCODER, dropout=0.0, embedding_dropout=0.0),
        reviews=small_runs.config(table).reviews,
        training=replace(small_runs.TRAINING, epochs=2, batch_size=3),  # so that some batches are odd, and some of one review
    )
    alone = []
    train(config, tmp_path / "one", alone.append, ["train"])
    said = json.loads(torchrun("-m", "core", "train", *flags("tiny", config), "--out", str(tmp_path / "two"), "--json"))  # once
    assert said["model_dir"] == str(tmp_path / "two" / "model") and run_folder.state(tmp_path / "two") == "succeeded"
    ours, theirs = ([event for event in told if isinstance(event, EpochFinished)] for told in (events(tmp_path / "two"), alone))
    assert [epoch.step for epoch in ours] == [epoch.step for epoch in theirs]
    for mine, yours in zip(ours, theirs, strict=True):
        assert (mine.train_loss, mine.val_loss) == pytest.approx((yours.train_loss, yours.val_loss), rel=1e-4)


def test_a_process_that_is_not_the_first_leaves_the_folder_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    with jobs.hold(tmp_path / "a", "cpu") as job:
        assert not job.stopped()
    assert not (tmp_path / "a").exists()


GOES_ON = """
import sys
from pathlib import Path

import torch.distributed

from core.training.checkpoint import Checkpoints
from core.training.run import leave_taken
from tests.training.test_checkpoint import losses, trainer, weights


def check(folder):
    whole = trainer("mean")
    expected = losses(whole, 9)
    first = trainer("mean")
    said = losses(first, 4)
    checkpoints = Checkpoints(folder)
    if first.accelerator.is_main_process:
        checkpoints.write(first.state_dict())
    torch.distributed.barrier()
    second = trainer("mean", seed=7)
    second.load_state_dict(checkpoints.read())
    assert said + losses(second, 5) == expected, (said, expected)
    assert torch.equal(weights(second.network), weights(whole.network))
    drawn = [0.0, 0.0]
    torch.distributed.all_gather_object(drawn, torch.rand(()).item())
    assert drawn[0] != drawn[1], "each drops units of its own"


with leave_taken():
    check(Path(sys.argv[1]))
"""


def test_two_processes_go_on_loss_for_loss(tmp_path):
    (tmp_path / "goes_on.py").write_text(GOES_ON)
    torchrun(str(tmp_path / "goes_on.py"), str(tmp_path))
