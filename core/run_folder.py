"""What a run's folder holds and says. Nothing here starts or ends a process.

A run's folder, `runs/<id>/`, holds:

    request.json   what was asked: argv, title, created         config.json    the whole configuration, once it is known;
                                                                sweep.json     that of a sweep of measurements,
                                                                or experiment.json
    events.jsonl   what the run said, one event a line          log.txt        what it printed
    launched lock  held by a living process                     cancel         there if a person asked it to stop
    pid            of the process, true while a lock is held    model/         what it made
    checkpoint.safetensors                                      what it can go on from
    members/       trainings of an experiment, each a folder like this one

Locks are freed by the kernel at any death, so that no run can stay "running": a lock is held, or the run is over.
"""

import json
import os
import secrets
import sys
import types
from contextlib import suppress
from dataclasses import MISSING, asdict, fields
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from filelock import FileLock, Timeout

from core.checked import from_json, to_json
from core.config import BackendsConfig, ClaimConfig, ExperimentConfig, RunConfig, SweepConfig
from core.events import (
    BackendMeasured,
    Cancelled,
    CellMeasured,
    ClaimMeasured,
    Event,
    Failed,
    Finished,
    Interrupted,
    MemberFinished,
    Queued,
    TrainingFinished,
)

if sys.platform != "win32":
    import fcntl

State = Literal["queued", "running", "succeeded", "cancelled", "failed", "interrupted"]
EVENTS: dict[str, type] = {event.__name__: event for event in get_args(Event)}
OUTCOMES: dict[type, State] = {
    TrainingFinished: "succeeded",
    Finished: "succeeded",
    Cancelled: "cancelled",
    Interrupted: "interrupted",
    Failed: "failed",
}
Config = RunConfig | SweepConfig | ExperimentConfig | ClaimConfig | BackendsConfig
"""What a run was asked to do."""
CONFIGS: dict[type, str] = {
    RunConfig: "config.json", SweepConfig: "sweep.json", ExperimentConfig: "experiment.json", ClaimConfig: "claim.json",
    BackendsConfig: "backends.json",
}  # fmt: skip
RESULTS = (CellMeasured, MemberFinished, ClaimMeasured, BackendMeasured)
"""Events that took their time."""
CHECKPOINT = "checkpoint.safetensors"
MEMBERS = "members"
TAIL_BYTES = 2**16


def new_id() -> str:
    """A name for a run: unique, and in the order of time when sorted."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}-{secrets.token_hex(2)}"


# What it holds


def write_request(folder: Path, argv: list[str], title: str | None) -> None:
    """Writes down what was asked, and when."""
    request = {"argv": argv, "title": title, "created": datetime.now(UTC).isoformat(timespec="milliseconds")}
    (folder / "request.json").write_text(json.dumps(request, ensure_ascii=False), encoding="utf-8")


def write_config(folder: Path, config: Config | None) -> None:
    """Writes down the configuration, where there is one."""
    if config is not None:
        (folder / CONFIGS[type(config)]).write_text(json.dumps(to_json(config), indent=1) + "\n", encoding="utf-8")


def command(folder: Path) -> list[str]:
    """What `python -m core` was given. ValueError if it is not on record."""
    try:
        return list(map(str, json.loads((folder / "request.json").read_text(encoding="utf-8"))["argv"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{folder}: its command cannot be read ({error}); start a new run") from error


def is_attempt_at(folder: Path, config: Config | None) -> bool:
    """Whether the folder holds an earlier attempt at exactly this. ValueError if what it holds is of a newer version."""
    files = () if config is None else ("events.jsonl", CONFIGS[type(config)])
    if config is None or not all((folder / name).is_file() for name in files):
        return False
    try:
        return from_json(type(config), json.loads((folder / CONFIGS[type(config)]).read_text(encoding="utf-8"))) == config
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"{folder}: its configuration cannot be read ({error}); choose another folder") from error


def begin(folder: Path, config: Config | None, goes_on: bool) -> None:
    """Makes the folder ready for this process: what an earlier attempt left stays where this one `goes_on` from it."""
    launched = is_held(folder / "launched")  # and so all that is there is of this attempt, but for what was said before
    if goes_on and not launched:
        reopen(folder)
    if not goes_on and (folder / "events.jsonl").exists():
        for left in ("events.jsonl", CHECKPOINT) + (() if launched else ("cancel", "request.json")):
            (folder / left).unlink(missing_ok=True)
    if not (folder / "request.json").exists():
        write_request(folder, sys.argv[1:], None)
    if not goes_on:
        write_config(folder, config)


def reopen(folder: Path) -> None:
    """An earlier attempt's last word is no longer the last, nor is it asked to stop."""
    (folder / "cancel").unlink(missing_ok=True)
    append_event(folder, Queued(ahead=0))


def make_folder(folder: Path, goes_on: bool = True) -> None:
    """Makes the folder of a run if it is not there. ValueError if that cannot be done, or if a run in it would write over a
    model: one that it made before, unless it `goes_on` from a checkpoint, or one that the folder itself is."""
    if goes_on and (folder / CHECKPOINT).is_file():
        return
    if any((folder / name).exists() for name in ("model", "model.safetensors", "run.json")):
        raise ValueError(f"{folder}: there is a model already; choose another folder, so that nothing is lost")
    if not goes_on and _has_results(folder):
        raise ValueError(f"{folder}: there is a run of other settings already; choose another folder, so that nothing is lost")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"{folder}: the folder cannot be made ({error.strerror}); choose another one") from error


def _has_results(folder: Path) -> bool:
    """Whether a run that is not over, or did not end well, left something that took its time."""
    return (folder / CHECKPOINT).is_file() or any(isinstance(event, RESULTS) for event in read_events(folder)[0])


# What has become of it


def is_held(lock: Path) -> bool:
    """Whether a living process holds this lock file. Those who ask do not see each other."""
    if not lock.is_file():
        return False
    if sys.platform == "win32":
        with suppress(Timeout), FileLock(lock, blocking=False):
            return False
        return True
    try:
        descriptor = os.open(lock, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def is_alive(folder: Path) -> bool:
    """Whether the run's process lives."""
    return is_held(folder / "launched") or is_held(folder / "lock")


def state(folder: Path) -> State:
    """What has become of a run, from its lock and its last event; true at the moment of asking."""
    alive = is_alive(folder)  # before the event: the last one is written before the lock is freed
    event = last_event(folder)
    if type(event) in OUTCOMES:
        return OUTCOMES[type(event)]
    if alive:
        return "queued" if event is None or isinstance(event, Queued) else "running"
    if event is None and (folder / "model").is_dir():  # which appears whole: it is what was said of it that is lost
        return "succeeded"
    return "cancelled" if (folder / "cancel").exists() else "interrupted"


# What it says


def append_event(folder: Path, event: Event) -> None:
    """Adds a line to events.jsonl, after whatever a full disk left of the one before."""
    line = json.dumps({"event": type(event).__name__} | asdict(event), ensure_ascii=False) + "\n"
    with (folder / "events.jsonl").open("a+b") as file:
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            line = line if file.read(1) == b"\n" else f"\n{line}"
        file.write(line.encode("utf-8", "replace"))  # a reason may name a file by half a character


def read_events(folder: Path, offset: int = 0) -> tuple[list[Event], int]:
    """The events from byte `offset` of events.jsonl on, and the offset to go on from.

    A last line without an end is left for the next time; lines that are no event of this version are passed over. An offset
    that is smaller than the one given says that the run has been started again, and these events are all of them.
    """
    try:
        with (folder / "events.jsonl").open("rb") as file:
            if file.seek(0, os.SEEK_END) < offset:
                offset = 0
            file.seek(offset)
            whole, end, _ = file.read().rpartition(b"\n")
    except OSError:  # there is none yet, or it is another person's
        return [], 0
    return _events(whole), offset + len(whole) + len(end)


def last_event(folder: Path) -> Event | None:
    """The last event that is whole, None before the first."""
    size = TAIL_BYTES
    while True:
        read = _tail_bytes(folder / "events.jsonl", size)
        lines = read.rpartition(b"\n")[0].splitlines()
        event = next((event for line in reversed(lines) if (event := _event(line)) is not None), None)
        if event is not None or len(read) < size:
            return event
        size *= 8  # one line is longer


def _events(lines: bytes) -> list[Event]:
    return [event for line in lines.splitlines() if (event := _event(line)) is not None]


def _event(line: bytes) -> Event | None:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return None
    event = EVENTS.get(str(values.pop("event", None))) if isinstance(values, dict) else None
    if event is None or not _required(event) <= set(values) <= set(_hints(event)):
        return None
    hints = _hints(event)
    return event(**values) if all(_is_of(value, hints[name]) for name, value in values.items()) else None


@cache
def _required(event: type) -> frozenset[str]:
    return frozenset(field.name for field in fields(event) if field.default is MISSING)


@cache
def _hints(event: type) -> dict[str, Any]:
    return get_type_hints(event)


def _is_of(value: Any, hint: Any) -> bool:
    """Whether a value of JSON is what a field of an event is to hold; half a character, which no page can show, is no text."""
    if get_origin(hint) is types.UnionType:
        return any(_is_of(value, option) for option in get_args(hint))
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if get_origin(hint) is list:
        return isinstance(value, list) and all(_is_of(item, *get_args(hint)) for item in value)
    if hint is str:
        return isinstance(value, str) and value.encode("utf-8", "replace").decode() == value
    if hint is bool or isinstance(value, bool):
        return hint is bool and isinstance(value, bool)
    return isinstance(value, float | int if hint is float else hint)


def tail(folder: Path, n: int) -> list[str]:
    """The last `n` lines of what the run printed, of a progress bar only what it shows last."""
    text = _tail_bytes(folder / "log.txt", TAIL_BYTES).decode("utf-8", errors="replace")
    lines = [line.rstrip("\r").rpartition("\r")[2].rstrip() for line in text.split("\n")]
    return [line for line in lines if line][-n:]


def _tail_bytes(path: Path, size: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - size))
            return file.read()
    except OSError:
        return b""
