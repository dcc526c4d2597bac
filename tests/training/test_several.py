"""Several processes that train together, as `torchrun` starts them: the loss of one, and one that writes."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from core import jobs, run_folder
from core.presets import flags, tiny
from core.records import EpochFinished
from core.training.run import train
from tests import small_runs
from tests.processes import ROOT, events


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
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "-m", "core"]
    command = ["train", *flags("tiny", config), "--out", str(tmp_path / "two"), "--json"]
    done = subprocess.run([*torchrun, *command], cwd=ROOT, env=dict(os.environ), capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)  # once
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
