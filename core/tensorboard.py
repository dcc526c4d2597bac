"""A run's curves as TensorBoard reads them, by `tensorboard --logdir runs`; its package is not needed to write them.

A file is a sequence of records, each a protocol buffer `Event` with its length before it and checksums around
(tensorflow/core/util/event.proto and tensorflow/core/lib/io/record_writer.h).
"""

import math
import struct
import time
from functools import cache
from pathlib import Path

from core.curves import EPOCH_CURVES, STEP_CURVES
from core.events import EpochFinished, Event, StepFinished, TrainingStarted


class Board:
    """Hears the events of a run and writes those that are points of curves, each process to a file of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path: Path | None = None

    def __call__(self, event: Event) -> None:
        """Adds what `event` says, if it is a point of a curve; later points of a process that was killed are forgotten."""
        if isinstance(event, TrainingStarted):
            self.path = self.folder / f"events.out.tfevents.{time.time():017.6f}"
            self._write(0, _text(3, "brain.Event:2"))
            self._write(event.step + 1, _message(7, _number(1, 1)))  # SessionLog.START: what was said of later steps is void
        if isinstance(event, StepFinished | EpochFinished):
            names = STEP_CURVES if isinstance(event, StepFinished) else EPOCH_CURVES
            points = {name: float(value) for name in names if (value := getattr(event, name)) is not None}
            self._write(event.step, _message(5, b"".join(_scalar(name, value) for name, value in points.items())))

    def _write(self, step: int, what: bytes) -> None:
        if self.path is not None:
            with self.path.open("ab") as file:
                file.write(_record(_double(1, time.time()) + _number(2, step) + what))


def _scalar(name: str, value: float) -> bytes:
    return _message(1, _text(1, name) + _key(2, 5) + struct.pack("<f", _single(value)))


def _single(value: float) -> float:
    """What a number of 32 bits can hold."""
    return value if abs(value) < 3.4e38 else math.copysign(math.inf, value) if not math.isnan(value) else math.nan


def _record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + _checksum(length) + data + _checksum(data)


def _checksum(data: bytes) -> bytes:
    """Masked CRC-32C (RFC 3720, appendix B.4)."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _table()[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


@cache
def _table() -> list[int]:
    table = list(range(256))
    for _ in range(8):
        table = [crc >> 1 ^ 0x82F63B78 * (crc & 1) for crc in table]
    return table


# Protocol buffers: a field is its number and type, then its value


def _key(field: int, wire: int) -> bytes:
    return _varint(field << 3 | wire)


def _varint(number: int) -> bytes:
    groups = []
    while True:
        number, low = number >> 7, number & 0x7F
        groups.append(low | 0x80 * (number > 0))
        if not number:
            return bytes(groups)


def _number(field: int, value: int) -> bytes:
    return _key(field, 0) + _varint(value) if value else b""  # 0 is what a field that is not there holds


def _double(field: int, value: float) -> bytes:
    return _key(field, 1) + struct.pack("<d", value)


def _message(field: int, content: bytes) -> bytes:
    return _key(field, 2) + _varint(len(content)) + content


def _text(field: int, text: str) -> bytes:
    return _message(field, text.encode())
