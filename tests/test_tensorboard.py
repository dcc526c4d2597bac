"""Curves as TensorBoard reads them: its own bytes, and what a run that goes on leaves."""

import struct
from pathlib import Path

import pytest

from core import tensorboard
from core.events import EpochFinished, Queued, StepFinished, TrainingStarted
from core.tensorboard import Board

VERSION = "1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e743a322a28646c"
SESSION = "0f000000000000006d532b0909000000000000f83f10033a020801ec8612fc"
SCALARS = "2600000000000000734fe30009000000000000f83f10ac022a180a0b0a046c6f7373150000003f0a090a026c72150000803e959d0434"
"""What tensorboard 2.21's RecordWriter writes of the time 1.5: its version, the start of a session at step 3, and at step 300 a
loss of 0.5 and a learning rate of 0.25."""


def begun(n: int) -> TrainingStarted:
    return TrainingStarted(
        n_parameters=1, n_train=2, n_validation=3, epochs=4, device="cpu", precision="float32", backend=None, step=n
    )


def step(n: int, loss: float) -> StepFinished:
    return StepFinished(
        epoch=1, step=n, total_steps=9, loss=loss, lr=0.25, gradient_norm=2.0, largest_logit=None, reviews_per_s=50.0,
        tokens_per_s=9000.0,
    )  # fmt: skip


@pytest.fixture
def clock(monkeypatch) -> None:
    monkeypatch.setattr(tensorboard.time, "time", lambda: 1.5)


def test_every_byte_is_what_tensorboard_writes_itself(tmp_path, clock, monkeypatch):
    monkeypatch.setattr(tensorboard, "STEP_CURVES", ("loss", "lr"))
    board = Board(tmp_path)
    for event in (begun(2), Queued(ahead=1), step(300, 0.5)):
        board(event)
    (path,) = tmp_path.iterdir()
    assert path.name == "events.out.tfevents.0000000001.500000"
    assert path.read_bytes().hex() == VERSION + SESSION + SCALARS


def test_the_checksum_is_that_of_the_standard():
    (masked,) = struct.unpack("<I", tensorboard._checksum(b"123456789"))
    crc = (masked - 0xA282EAD8) & 0xFFFFFFFF
    assert (crc >> 17 | crc << 15) & 0xFFFFFFFF == 0xE3069283  # RFC 3720


def names(path: Path) -> set[str]:
    content = path.read_bytes()
    known = (*tensorboard.STEP_CURVES, *tensorboard.EPOCH_CURVES)
    return {name for name in known if struct.pack("B", len(name)) + name.encode() in content}


def test_every_curve_is_there_and_what_is_no_number_of_32_bits_too(tmp_path):
    board = Board(tmp_path)
    epoch = EpochFinished(epoch=1, step=3, train_loss=0.7, val_loss=0.6, val_accuracy=0.5, elapsed_s=1.0)
    for event in (begun(0), step(1, float("nan")), step(2, -1e39), epoch):
        board(event)
    (path,) = tmp_path.iterdir()
    assert names(path) == {*tensorboard.STEP_CURVES, *tensorboard.EPOCH_CURVES} - {"largest_logit"}
    assert struct.pack("<f", float("-inf")) in path.read_bytes()


def test_each_process_writes_a_file_of_its_own_in_the_order_of_time(tmp_path, monkeypatch):
    clock = iter([999_999_999.5] * 3 + [1_000_000_000.25] * 9)
    monkeypatch.setattr(tensorboard.time, "time", lambda: next(clock))
    Board(tmp_path)(begun(0))
    Board(tmp_path)(begun(5))
    first, second = sorted(path.name for path in tmp_path.iterdir())
    assert first.endswith(".0999999999.500000") and second.endswith(".1000000000.250000")
