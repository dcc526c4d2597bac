"""A run is a process: started detached, alive as long as it holds a lock on its folder, and never more than that.

A run's folder, `runs/<id>/`, holds:

    request.json   what was asked: argv, title, created         config.json    the whole configuration, once it is known;
                                                                sweep.json     that of a sweep of measurements
    events.jsonl   what the run said, one event a line          log.txt        what it printed
    launched lock  held by a living process                     cancel         there if a person asked it to stop
    pid            of the process, true while a lock is held    model/         what it made
    checkpoint.safetensors                                      what it can go on from

Locks are freed by the kernel at any death, so that no run can stay "running": a lock is held, or the run is over. The same
command in the same folder is the same run: it goes on from where it was.
"""

import errno
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import MISSING, asdict, dataclass, fields
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from filelock import FileLock, Timeout

from core.config import RunConfig, SweepConfig, run_config_from_json, sweep_config_from_json, to_json
from core.records import (
    Cancelled,
    CellMeasured,
    Event,
    Failed,
    Finished,
    Interrupted,
    LastEvent,
    Queued,
    Started,
    StepFinished,
    TrainingFinished,
)

if sys.platform != "win32":
    import fcntl

State = Literal["queued", "running", "succeeded", "cancelled", "failed", "interrupted"]
ROOT = Path(__file__).resolve().parent.parent
EVENTS: dict[str, type] = {event.__name__: event for event in get_args(Event)}
OUTCOMES: dict[type, State] = {
    TrainingFinished: "succeeded",
    Finished: "succeeded",
    Cancelled: "cancelled",
    Interrupted: "interrupted",
    Failed: "failed",
}
CONFIGS: dict[type, str] = {RunConfig: "config.json", SweepConfig: "sweep.json"}
PARSERS: dict[type, Callable[[Any], RunConfig | SweepConfig]] = {
    RunConfig: run_config_from_json,
    SweepConfig: sweep_config_from_json,
}
CHECKPOINT = "checkpoint.safetensors"
NO_MEMORY = ("can't allocate memory", "out of memory")
"""How PyTorch says so, on a CPU and on a GPU."""
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
POLL_S = 0.1
TAIL_BYTES = 2**16


class Stopped(Exception):
    """A person stopped the run while it waited for its device."""


class Ended(Exception):
    """The system asked the process to end, and what it did is kept to go on from."""


def new_id() -> str:
    """A name for a run: unique, and in the order of time when sorted."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}-{secrets.token_hex(2)}"


def device_of(knob: str) -> str:
    """The device whose turn a run waits for, told without torch: "auto" is a GPU where the machine has a driver for one."""
    if knob != "auto":
        return knob
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1")
    return "cuda" if not hidden and (Path("/dev/nvidiactl").exists() or shutil.which("nvidia-smi")) else "cpu"


# Starting


def launch(argv: Sequence[str], folder: Path, title: str | None = None, config: RunConfig | SweepConfig | None = None) -> None:
    """Starts `python -m core ARGV --out FOLDER` as a process that outlives this one, its terminal and its tab.

    One folder is one run: where `folder` exists already, nothing is started. `config` is what the command says, for those who
    look before the process is up and writes it itself. Where runs are handed to a cluster, this function is what its submit
    command replaces.
    """
    folder = folder.absolute()
    command = [*argv, "--out", str(folder)]
    place = draft = folder.parent / f".{folder.name}.{secrets.token_hex(4)}"
    try:
        draft.mkdir(parents=True)
        _write_request(draft, command, title)
        _write_config(draft, config)
        with _inheritable_lock(draft / "launched") as inherited:
            # the folder appears whole and locked, so that nobody sees a run that is neither waiting nor over
            if _renamed(draft, folder):
                place = folder
                _start(command, folder, inherited)
    except OSError:
        shutil.rmtree(place, ignore_errors=True)  # nor half a run
        raise


def resume(folder: Path) -> None:
    """Starts a run that is over once more, by its own command: it goes on from where it was, or from the beginning.

    Nothing is started where its process lives. ValueError if its command is not on record; OSError if it cannot be started.
    """
    try:
        command = list(map(str, json.loads((folder / "request.json").read_text(encoding="utf-8"))["argv"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{folder}: its command cannot be read ({error}); start a new run") from error
    if is_alive(folder):
        return
    with suppress(BlockingIOError), _inheritable_lock(folder / "launched") as inherited:
        _reopen(folder)
        _start(command, folder.absolute(), inherited)


def _reopen(folder: Path) -> None:
    """An earlier attempt's last word is no longer the last, nor is it asked to stop."""
    (folder / "cancel").unlink(missing_ok=True)
    append_event(folder, Queued(ahead=0))


def _write_request(folder: Path, argv: list[str], title: str | None) -> None:
    request = {"argv": argv, "title": title, "created": datetime.now(UTC).isoformat(timespec="milliseconds")}
    (folder / "request.json").write_text(json.dumps(request, ensure_ascii=False), encoding="utf-8")


def _write_config(folder: Path, config: RunConfig | SweepConfig | None) -> None:
    if config is not None:
        (folder / CONFIGS[type(config)]).write_text(json.dumps(to_json(config), indent=1) + "\n", encoding="utf-8")


def _renamed(draft: Path, folder: Path) -> bool:
    try:
        if folder.exists():  # an empty one would be replaced
            raise FileExistsError(errno.EEXIST, "exists", str(folder))
        draft.rename(folder)
    except OSError:
        shutil.rmtree(draft)
        if not folder.exists():
            raise
        return False
    return True


@contextmanager
def _inheritable_lock(path: Path) -> Iterator[tuple[int, ...]]:
    """A lock that a child process can be born with, so that there is no moment between start and lock.

    It is never unlocked, since that would unlock the child's too: the kernel frees it when the last holder is gone.
    Windows has no such lock; there a run reads as interrupted until its process is up.
    """
    if sys.platform == "win32":
        yield ()
        return
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _lock(descriptor)
        yield (descriptor,)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    """BlockingIOError if a process holds it; who asks whether one does holds it for a moment, too."""
    for _ in range(10):
        with suppress(BlockingIOError):
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        time.sleep(POLL_S / 10)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _start(command: list[str], folder: Path, inherited: tuple[int, ...]) -> None:
    if sys.platform == "win32":
        detached: dict[str, Any] = {"creationflags": subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP}
    else:
        detached = {"start_new_session": True, "pass_fds": inherited}
    environment = os.environ | {"PYTHONUTF8": "1"}  # the log is UTF-8 wherever it is written
    with (folder / "log.txt").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "core", *command],
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=ROOT, env=environment, **detached,
        )  # fmt: skip
    with suppress(OSError):  # it writes the same, once it is up
        (folder / "pid").write_text(str(process.pid))
    threading.Thread(target=_bury, args=(process, folder), daemon=True).start()


def _bury(process: subprocess.Popen[bytes], folder: Path) -> None:
    """Waits for a child, which else stays a zombie, and says for it what it died of before it could speak itself."""
    if process.wait() > 0 and folder.exists() and not isinstance(last_event(folder), LastEvent):
        said = tail(folder, 1)
        with suppress(OSError):
            append_event(folder, Failed(reason=said[0] if said else f"the process ended with exit code {process.returncode}"))


# Being a run


@dataclass
class Job:
    """A run's own side of its folder."""

    folder: Path
    step: int | None = None
    ended: bool = False
    said: Callable[[Queued], None] = lambda queued: None
    """Hears, too, how many go before."""

    def emit(self, event: Event) -> None:
        """Appends an event to events.jsonl."""
        append_event(self.folder, event)
        if isinstance(event, Queued):
            self.said(event)
        self.ended = isinstance(event, LastEvent)
        if isinstance(event, StepFinished):
            self.step = event.step

    def stopped(self) -> bool:
        """Whether a person asked the run to stop; cheap enough to be asked at each step."""
        return (self.folder / "cancel").exists()


@dataclass
class _Guest(Job):
    """Waits among the runs and has no folder."""

    def emit(self, event: Event) -> None:
        """Tells whoever waits."""
        self.said(event)


def is_first() -> bool:
    """Whether this process is the run: of several that `torchrun` started, on one machine or more, the one of rank 0."""
    return os.environ.get("RANK", "0") == "0"


@contextmanager
def hold(
    folder: Path,
    device: str,
    config: RunConfig | SweepConfig | None = None,
    said: Callable[[Queued], None] = lambda queued: None,
) -> Iterator[Job]:
    """Makes this process the run of `folder`: its lock is held for life, and the block runs when `device` is free.

    Runs in one root take turns on a device, in the order of their ids. What leaves the block as an exception is the run's
    last event, `Failed`, and goes on its way. To be entered before torch is imported: a run that waits costs no memory.
    What an earlier attempt with the same `config` left in the folder stays; what was said of any other is removed. `said`
    hears how many go before. Of several processes that `torchrun` started, the first one is the run.
    ValueError if the folder holds a model already or what another run has measured or learned, cannot be made or is another
    process's run; Stopped if a person stopped the run while it waited.
    """
    folder = folder.resolve()  # "." has no name to queue by
    if not is_first():
        yield Job(folder)
        return
    make_folder(folder, _goes_on(folder, config))
    with _owned(folder):
        goes_on = _goes_on(folder, config)
        make_folder(folder, goes_on)  # a model may have come while this process waited for the lock
        job = Job(folder, said=said)
        try:
            _begin(folder, config, goes_on)
            with _turn(job, device):
                job.emit(Started(device=device))
                yield job
            if not job.ended:
                job.emit(Finished())
        except BaseException as error:
            if not job.ended:
                with suppress(OSError):  # of a full disk, which is most likely the error itself
                    job.emit(_outcome(job, error))
            raise


def _outcome(job: Job, error: BaseException) -> LastEvent:
    """The last event of a run that this exception ends."""
    if isinstance(error, Stopped):
        return Cancelled()
    if isinstance(error, Ended | KeyboardInterrupt):
        return Cancelled() if job.stopped() else Interrupted(reason=str(error) or "stopped from the keyboard")
    return Failed(reason=sentence(error), step=job.step, kind=_kind(error))


def _goes_on(folder: Path, config: RunConfig | SweepConfig | None) -> bool:
    """Whether the folder holds an earlier attempt at exactly this. ValueError if what it holds is of a newer version."""
    files = () if config is None else ("events.jsonl", CONFIGS[type(config)])
    if config is None or not all((folder / name).is_file() for name in files):
        return False
    try:
        return PARSERS[type(config)](json.loads((folder / CONFIGS[type(config)]).read_text(encoding="utf-8"))) == config
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"{folder}: its configuration cannot be read ({error}); choose another folder") from error


def _begin(folder: Path, config: RunConfig | SweepConfig | None, goes_on: bool) -> None:
    launched = is_held(folder / "launched")  # and so all that is there is of this attempt, but for what was said before
    if goes_on and not launched:
        _reopen(folder)
    if not goes_on and (folder / "events.jsonl").exists():
        for left in ("events.jsonl", CHECKPOINT) + (() if launched else ("cancel", "request.json")):
            (folder / left).unlink(missing_ok=True)
    if not (folder / "request.json").exists():
        _write_request(folder, sys.argv[1:], None)
    if not goes_on:
        _write_config(folder, config)


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
    return (folder / CHECKPOINT).is_file() or any(isinstance(event, CellMeasured) for event in read_events(folder)[0])


@contextmanager
def _owned(folder: Path) -> Iterator[None]:
    lock = FileLock(folder / "lock")
    try:
        lock.acquire(timeout=1)  # who asks whether a run is alive holds its lock for a moment, too
    except Timeout as error:
        raise ValueError(f"{folder}: another process is this run already; choose another folder or stop it first") from error
    try:
        (folder / "pid").write_text(str(os.getpid()))
        yield
    finally:
        lock.release()


def tell(queued: Queued) -> None:
    """Says on stderr how many runs a command waits for."""
    runs = "a run" if queued.ahead == 1 else f"{queued.ahead} runs"
    print(f"waiting for {runs} on this device: nothing runs beside another", file=sys.stderr, flush=True)


@contextmanager
def turn(root: Path, device: str, said: Callable[[Queued], None]) -> Iterator[None]:
    """Has `device` for the block as a run in `root` has it, without being one; `said` hears how many go before.

    OSError where `root` cannot be written to.
    """
    with _turn(_Guest(root / new_id(), said=said), device):
        yield


@contextmanager
def _turn(job: Job, device: str) -> Iterator[None]:
    """Waits until `device` is free and no run of a smaller id waits for it, and has it for the block.

    Each waiting run holds a lock named by its id, so that those behind it see it and one that dies is passed over.
    """
    queue = job.folder.parent / ".queue" / device
    queue.mkdir(parents=True, exist_ok=True)
    ticket, free = queue / job.folder.name, FileLock(queue.with_suffix(".lock"))
    try:
        with FileLock(ticket):
            _wait(job, free, ticket)
    finally:
        ticket.unlink(missing_ok=True)
    try:
        yield
    finally:
        free.release()


def _wait(job: Job, free: FileLock, ticket: Path) -> None:
    told = 0
    while True:
        if job.stopped():
            raise Stopped
        ahead = sum(other.name < ticket.name and is_held(other) for other in ticket.parent.iterdir())
        if not ahead:
            with suppress(Timeout):
                free.acquire(blocking=False)
                return
        ahead += is_held(Path(free.lock_file))
        if ahead not in (0, told):
            told = ahead
            job.emit(Queued(ahead=ahead))
        time.sleep(POLL_S)


def sentence(error: BaseException) -> str:
    """What went wrong, in a sentence without full stop."""
    lines = str(error).strip().splitlines()
    if _kind(error) == "memory":
        return "there was not enough memory; use a smaller batch, a shorter max_len or a smaller model"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, ValueError) and lines:
        return lines[0]
    return ": ".join([type(error).__name__, *lines[:1]])


def _kind(error: BaseException) -> Literal["diverged", "memory", "disk", "other"]:
    if isinstance(error, MemoryError) or any(sign in str(error) for sign in NO_MEMORY):
        return "memory"
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        return "disk"
    return getattr(error, "kind", "other")


@contextmanager
def patient() -> Iterator[Callable[[], bool]]:
    """Within the block, SIGTERM and the keyboard end nothing at first: what is given says whether one of them asked to.

    A second signal ends the process as ever, and so does the first where no block is entered.
    """
    asked: list[int] = []

    def hear(number: int, _: types.FrameType | None) -> None:
        asked.append(number)
        signal.signal(number, usual[number])

    main = threading.current_thread() is threading.main_thread()  # Python lets no other thread hear signals
    usual = {number: signal.signal(number, hear) for number in (signal.SIGTERM, signal.SIGINT) if main}
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)


# Following a run


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


# Stopping


def cancel(folder: Path) -> None:
    """Asks a run to stop, and returns at once: it stores what it has and ends. Of a run that is over, nothing changes."""
    if is_alive(folder):
        (folder / "cancel").touch()


def stop(folder: Path, grace_s: float = 60.0) -> None:
    """Asks a run to stop, and ends its processes if it has not done so after `grace_s` seconds; returns when it is over.

    Time is needed to store the best weights and to measure them; a run that is ended in the midst of it leaves none.
    """
    cancel(folder)
    if _over_within(folder, grace_s):
        return
    for sign in (signal.SIGTERM, signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL):
        _signal(folder, sign)
        if _over_within(folder, 5.0):
            return


def _over_within(folder: Path, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while is_alive(folder):
        if time.monotonic() > end:
            return False
        time.sleep(POLL_S / 2)
    return True


def _signal(folder: Path, sign: signal.Signals) -> None:
    """Signals a run's processes; one that was not launched shares its group with others, and is signalled alone."""
    with suppress(ProcessLookupError, FileNotFoundError, ValueError):
        pid = int((folder / "pid").read_text())
        if pid <= 1:  # of a damaged file: it would be this very group, or the machine's first process
            return
        if sys.platform != "win32" and os.getpgid(pid) == pid:
            os.killpg(pid, sign)
        else:
            os.kill(pid, sign)
