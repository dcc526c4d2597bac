"""What a run's folder says, and how it is read while it grows, when it is damaged and when it is of another version."""

import fcntl
import json
import os
import time
from dataclasses import replace

import pytest

from core import run_folder
from core.events import (
    BackendMeasured,
    Cancelled,
    Ceilings,
    CellMeasured,
    ClaimMeasured,
    EpochFinished,
    ExperimentStarted,
    Failed,
    Finished,
    Interrupted,
    MemberFinished,
    MemberStarted,
    Queued,
    Started,
    StepFinished,
    TableRead,
    TrainingFinished,
    TrainingStarted,
)
from tests.processes import events


def step(n: int) -> StepFinished:
    return StepFinished(
        epoch=1, step=n, total_steps=90, loss=0.7, lr=1e-3, gradient_norm=2.0, largest_logit=None, reviews_per_s=50.0,
        tokens_per_s=9000.0,
    )  # fmt: skip


def finished() -> TrainingFinished:
    return TrainingFinished(
        reviews_per_s=50.0, tokens_per_s=9000.0, train_s=3.0, best_epoch=1, val_accuracy=0.8, model_dir="runs/a/model"
    )


EPOCH = EpochFinished(epoch=1, step=9, train_loss=0.69, val_loss=0.6, val_accuracy=0.7, elapsed_s=4.0)


def test_events_are_read_on_from_where_reading_stopped(tmp_path):
    written = [Queued(ahead=2), step(1), EPOCH, finished(), Failed(reason="„λ“\u2028\u0085\n\r")]
    offset, read = 0, []
    for event in written:
        run_folder.append_event(tmp_path, event)
        new, offset = run_folder.read_events(tmp_path, offset)
        read += new
    assert read == written == events(tmp_path)
    assert run_folder.read_events(tmp_path, offset) == ([], offset)
    assert offset == (tmp_path / "events.jsonl").stat().st_size


def test_a_torn_last_line_is_ignored_until_it_is_whole(tmp_path):
    run_folder.append_event(tmp_path, step(1))
    whole = (tmp_path / "events.jsonl").read_bytes()
    run_folder.append_event(tmp_path, finished())
    both = (tmp_path / "events.jsonl").read_bytes()
    for end in range(len(whole), len(both)):
        (tmp_path / "events.jsonl").write_bytes(both[:end])
        assert run_folder.read_events(tmp_path) == ([step(1)], len(whole))
        assert run_folder.last_event(tmp_path) == step(1) and run_folder.state(tmp_path) == "interrupted"
    (tmp_path / "events.jsonl").write_bytes(both)
    assert run_folder.read_events(tmp_path, len(whole)) == ([finished()], len(both))


def test_a_last_event_of_any_length_is_found(tmp_path):
    for n in (10, 200_000, 2_000_000):
        run_folder.append_event(tmp_path, Failed(reason="x" * n))
        assert run_folder.last_event(tmp_path) == Failed(reason="x" * n)


def test_an_event_of_an_earlier_version_lacks_what_has_come_since(tmp_path):
    run_folder.append_event(tmp_path, step(1))
    written = json.loads((tmp_path / "events.jsonl").read_text())
    del written["non_finite"]
    (tmp_path / "events.jsonl").write_text(json.dumps(written) + "\n")
    assert events(tmp_path) == [step(1)]


def test_lines_that_are_no_event_of_this_version_are_passed_over(tmp_path):
    lines = ['{"event": "Warped", "by": 2}', '{"event": "Queued"}', '{"event": "Queued", "ahead": 1, "new": 0}',
             '{"event": ["Queued"]}', "[]", "{", "\xff", '{"event": "Queued", "ahead": 4}']  # fmt: skip
    (tmp_path / "events.jsonl").write_bytes(("\n".join(lines) + "\n").encode("latin-1"))
    assert events(tmp_path) == [Queued(ahead=4)]


@pytest.mark.parametrize(
    "line",
    [
        "[" * 100_000,
        '{"event": "Queued", "ahead": "4"}',
        '{"event": "Queued", "ahead": true}',
        '{"event": "Queued", "ahead": 4.5}',
        '{"event": "Started", "device": null}',
        '{"event": "Failed", "reason": null, "step": null}',
        '{"event": "Failed", "reason": "a\\ud800", "step": null}',
        '{"event": "Failed", "reason": "a", "step": [1]}',
        '{"event": "TableRead", "notes": 5}',
        '{"event": "TableRead", "notes": ["a", 5]}',
    ],
)
def test_an_event_with_values_of_other_types_is_none(tmp_path, line):
    (tmp_path / "events.jsonl").write_text(f"{line}\n")
    assert events(tmp_path) == [] and run_folder.last_event(tmp_path) is None


def test_every_kind_of_event_is_read_as_it_was_written(tmp_path):
    cell = CellMeasured(
        backend="sdpa", what="forward", batch=1, length=2, n_heads=3, d_head=4, n_layers=5, dtype="float32", device="cpu",
        peak_bytes=None, source=None, median_s=1.0, spread_s=0.5, n_repeats=0, kernel=None, hardware=None, why_not="no",
    )  # fmt: skip
    ceilings = Ceilings(device="cpu", dtype="mixed", operations_per_s=1e11, bytes_per_s=1e10, hardware="h", date="2026-11-30")
    began = TrainingStarted(
        n_parameters=1, n_train=2, n_validation=3, epochs=4, device="cpu", precision="float32", backend=None
    )
    not_a_number = replace(step(1), loss=float("inf"), largest_logit=None)
    said = [
        Queued(ahead=1), Started(device="cpu"), TableRead(notes=["a", "b"]), began, step(0), not_a_number, EPOCH, ceilings,
        cell, finished(), Finished(), Cancelled(), Cancelled(best_epoch=1, model_dir="x"), Interrupted(reason="x"),
        Failed(reason="x", kind="disk"), ExperimentStarted(device="cpu", precision="float32", backend=None),
        MemberStarted(ablation="base", seed=0, run="a/members/b"),
        MemberFinished(ablation="base", seed=0, fingerprint="b", run="a/members/b", accuracy=0.8, n=9),
        ClaimMeasured(claim="c", names=["a", "b", "c"], values=["x", 1.5, None], hardware="h", date="2026-11-30"),
        BackendMeasured(backend="sdpa", n=2, largest_difference=1e-7, changed=0, median_s=1.0, spread_s=0.5, others=None,
                        peak_bytes=3, kernel="k", hardware="h", why_not=None),
    ]  # fmt: skip
    assert {type(event) for event in said} == set(run_folder.EVENTS.values())
    for event in said:
        run_folder.append_event(tmp_path, event)
    assert events(tmp_path) == said


def test_an_event_follows_half_a_line_on_a_line_of_its_own(tmp_path):
    run_folder.append_event(tmp_path, step(1))
    with (tmp_path / "events.jsonl").open("a") as file:
        file.write('{"event": "StepFin')
    run_folder.append_event(tmp_path, Failed(reason="OSError: No space left on device: a\ud800.csv"))
    assert events(tmp_path) == [step(1), Failed(reason="OSError: No space left on device: a?.csv")]


def test_a_file_that_began_anew_is_read_from_its_start(tmp_path):
    for n in range(3):
        run_folder.append_event(tmp_path, step(n))
    offset = run_folder.read_events(tmp_path)[1]
    (tmp_path / "events.jsonl").unlink()
    run_folder.append_event(tmp_path, EPOCH)
    new, restarted = run_folder.read_events(tmp_path, offset)
    assert new == [EPOCH] and restarted < offset


def test_the_tail_of_a_log(tmp_path):
    assert run_folder.tail(tmp_path, 3) == []
    (tmp_path / "log.txt").write_bytes(b"one\ntwo\r\n  0%|\r 50%|\r100%|\n\nfilm \xe2\x9d\xa4 \xff\n")
    assert run_folder.tail(tmp_path, 3) == ["two", "100%|", "film ❤ \ufffd"]
    (tmp_path / "log.txt").write_bytes(b"x" * 10**6 + b"\nend\n")
    assert run_folder.tail(tmp_path, 1) == ["end"]


def test_those_who_ask_at_once_do_not_take_each_other_for_the_run(tmp_path):
    (tmp_path / "lock").touch()
    held = os.open(tmp_path / "lock", os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_SH)  # as another who asks has it for a moment
        assert run_folder.state(tmp_path) == "interrupted"
    finally:
        os.close(held)


def test_ids_are_unique_and_in_the_order_of_time():
    ids = []
    for _ in range(50):
        ids.append(run_folder.new_id())
        time.sleep(1e-4)
    assert ids == sorted(set(ids))
