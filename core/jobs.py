"""A run is a process: started detached, alive as long as it holds a lock on its folder, and never more than that.

The same command in the same folder, which is `core.run_folder`'s, is the same run: it goes on from where it was.
"""

import errno
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout

from core import disk, run_folder
from core.events import Cancelled, Event, Failed, Finished, Interrupted, LastEvent, Preparation, Queued, Started, StepFinished
from core.run_folder import Config

if sys.platform != "win32":
    import fcntl

ROOT = Path(__file__).resolve().parent.parent
NO_MEMORY = ("can't allocate memory", "out of memory")
"""How PyTorch says so, on a CPU and on a GPU."""
POLL_S = 0.1
ENDING_S = 30.0
"""A process may take to end after its last word."""


class Stopped(Exception):
    """A person stopped the run while it waited for its device."""


class Ended(BaseException):
    """The system asked the process to end, and what it did is kept to go on from. Like the keyboard's interrupt, no error."""


def device_of(knob: str) -> str:
    """The device whose turn a run waits for, told without torch: "auto" is a GPU where the machine has a driver for one."""
    if knob != "auto":
        return knob
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1")
    return "cuda" if not hidden and (Path("/dev/nvidiactl").exists() or shutil.which("nvidia-smi")) else "cpu"


# Starting


def launch(argv: Sequence[str], folder: Path, title: str | None = None, config: Config | None = None) -> None:
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
        run_folder.write_request(draft, command, title)
        run_folder.write_config(draft, config)
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

    A process that has said its last word is waited for. Nothing is started where another one lives. ValueError if its command
    is not on record, or if it said that it is over and does not end; OSError if it cannot be started.
    """
    command = run_folder.command(folder)
    if not _within(ENDING_S, lambda: not _is_ending(folder)):
        raise ValueError(f"the run {folder.name!r} said that it is over, but its process has not ended; try again in a minute")
    if run_folder.is_alive(folder):
        return
    with suppress(BlockingIOError), _inheritable_lock(folder / "launched") as inherited:
        run_folder.reopen(folder)
        _start(command, folder.absolute(), inherited)


def _is_ending(folder: Path) -> bool:
    """Whether the run's process lives and has said its last word."""
    return run_folder.is_alive(folder) and isinstance(run_folder.last_event(folder), LastEvent)


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
    events = folder / "events.jsonl"
    before = events.stat().st_size if events.exists() else 0
    environment = os.environ | {"PYTHONUTF8": "1"}  # the log is UTF-8 wherever it is written
    with (folder / "log.txt").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "core", *command],
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=ROOT, env=environment, **detached,
        )  # fmt: skip
    with suppress(OSError):  # it writes the same, once it is up
        (folder / "pid").write_text(str(process.pid))
    threading.Thread(target=_bury, args=(process, folder, before), daemon=True).start()


def _bury(process: subprocess.Popen[bytes], folder: Path, before: int) -> None:
    """Waits for a child, which else stays a zombie, and says for it what it died of before it could speak itself.

    `before`: bytes of events from before its time. Where it has spoken, another attempt may have begun already.
    """
    if process.wait() <= 0 or not folder.exists():
        return
    if not any(isinstance(event, LastEvent) for event in run_folder.read_events(folder, before)[0]):
        printed = run_folder.tail(folder, 1)
        reason = printed[0] if printed else f"the process ended with exit code {process.returncode}"
        with suppress(OSError):
            run_folder.append_event(folder, Failed(reason=reason))


# Being a run


@dataclass
class Job:
    """A run's own side of its folder."""

    folder: Path
    step: int | None = None
    ended: bool = False
    bare: bool = False
    """Whether the folder is this process's own, and holds nothing that took its time."""
    said: Callable[[str], None] = lambda text: None
    """Hears that it waits, and how long it did."""

    def emit(self, event: Event) -> None:
        """Appends an event to events.jsonl."""
        run_folder.append_event(self.folder, event)
        self.ended = isinstance(event, LastEvent)
        self.bare = self.bare and isinstance(event, Preparation | LastEvent)
        if isinstance(event, StepFinished):
            self.step = event.step

    def stopped(self) -> bool:
        """Whether a person asked the run to stop; cheap enough to be asked at each step."""
        return (self.folder / "cancel").exists()


@dataclass
class _Guest(Job):
    """Waits among the runs and has no folder."""

    def emit(self, event: Event) -> None:
        """It waits, and nobody reads how."""
        assert isinstance(event, Queued)


def is_first() -> bool:
    """Whether this process is the run: of several that `torchrun` started, on one machine or more, the one of rank 0."""
    return os.environ.get("RANK", "0") == "0"


@contextmanager
def hold(
    folder: Path,
    device: str,
    config: Config | None = None,
    said: Callable[[str], None] = lambda text: None,
) -> Iterator[Job]:
    """Makes this process the run of `folder`: its lock is held for life, and the block runs when `device` is free.

    Runs in one root take turns on a device, in the order of their ids. What leaves the block as an exception is the run's
    last event, `Failed`, and goes on its way. To be entered before torch is imported: a run that waits costs no memory.
    What an earlier attempt with the same `config` left in the folder stays; what was said of any other is removed. `said`
    hears for how many it waits, and how long. Of several processes that `torchrun` started, the first one is the run.
    A ValueError from the block before any work is done leaves no folder, unless there was one, as that of a run launched from
    a page, where a person is to read why. ValueError if the folder holds a model already or what another run has measured or
    learned, cannot be made or is another process's run; Stopped if a person stopped the run while it waited.
    """
    folder = folder.resolve()  # "." has no name to queue by
    if not is_first():
        yield Job(folder)
        return
    existed = folder.exists()
    run_folder.make_folder(folder, run_folder.is_attempt_at(folder, config))
    with _owned(folder):
        goes_on = run_folder.is_attempt_at(folder, config)
        run_folder.make_folder(folder, goes_on)  # a model may have come while this process waited for the lock
        job = Job(folder, bare=not (existed or goes_on), said=said)
        try:
            run_folder.begin(folder, config, goes_on)
            with _turn(job, device):
                job.emit(Started(device=device))
                yield job
            if not job.ended:
                job.emit(Finished())
        except BaseException as error:
            if not job.ended:
                with suppress(OSError):  # of a full disk, which is most likely the error itself
                    job.emit(_outcome(job, error))
            if job.bare and isinstance(error, ValueError):  # refused: who asked is told, and nothing is left of it
                shutil.rmtree(folder, ignore_errors=True)
            raise


def _outcome(job: Job, error: BaseException) -> LastEvent:
    """The last event of a run that this exception ends."""
    if isinstance(error, Stopped):
        return Cancelled()
    if isinstance(error, Ended | KeyboardInterrupt):
        return Cancelled() if job.stopped() else Interrupted(reason=str(error) or "stopped from the keyboard")
    return Failed(reason=sentence(error), step=job.step, kind=_kind(error))


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


def tell(text: str) -> None:
    """Says on stderr how a command waits."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def turn(root: Path, device: str, said: Callable[[str], None]) -> Iterator[None]:
    """Has `device` for the block as a run in `root` has it, without being one; `said` hears of a wait.

    OSError where `root` cannot be written to.
    """
    with _turn(_Guest(root / run_folder.new_id(), said=said), device):
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
    told, begun = 0, time.monotonic()
    while True:
        if job.stopped():
            raise Stopped
        ahead = sum(other.name < ticket.name and run_folder.is_held(other) for other in ticket.parent.iterdir())
        if not ahead:
            with suppress(Timeout):
                free.acquire(blocking=False)
                return job.said(f"waited {time.monotonic() - begun:,.0f} s") if told else None
        ahead += run_folder.is_held(Path(free.lock_file))
        if ahead and not told:
            waited_for = "a run" if ahead == 1 else f"{ahead} runs"
            job.said(f"waiting for {waited_for} on this device: nothing runs beside another")
        if ahead not in (0, told):
            told = ahead
            job.emit(Queued(ahead=ahead))
        time.sleep(POLL_S)


def sentence(error: BaseException) -> str:
    """What went wrong, in a sentence without full stop."""
    lines = str(error).strip().splitlines()
    if _kind(error) == "memory":
        return "there was not enough memory; use a smaller batch, a shorter max_len or a smaller model"
    if _kind(error) == "disk":
        return f"{_of_the_system(error)}; {disk.way_out(error)}"
    if isinstance(error, OSError) and error.strerror:
        return _of_the_system(error)
    if isinstance(error, ValueError) and lines:
        return lines[0]
    return ": ".join([type(error).__name__, *lines[:1]])


def _of_the_system(error: BaseException) -> str:
    """The file, where it is known, and what the system, or who asked it, says of it."""
    if not isinstance(error, OSError):
        return disk.reason(error)
    said = error.strerror or disk.reason(error)
    return f"{error.filename}: {said}" if error.filename else said


def _kind(error: BaseException) -> Literal["diverged", "memory", "disk", "other"]:
    if isinstance(error, MemoryError) or any(sign in str(error) for sign in NO_MEMORY):
        return "memory"
    if disk.number(error) in disk.NO_ROOM:
        return "disk"
    return getattr(error, "kind", "other")


@contextmanager
def told_to_end() -> Iterator[None]:
    """Within the block, SIGTERM raises Ended wherever the process is: waiting, starting or storing, it says so and why."""

    def end(*_: object) -> None:
        raise Ended("the system asked it to end")

    if threading.current_thread() is not threading.main_thread():  # Python lets no other thread hear signals
        yield
        return
    usual = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, usual)


@contextmanager
def patient() -> Iterator[Callable[[], bool]]:
    """Within the block, SIGTERM and the keyboard end nothing at first: what is given says whether one of them asked to.

    A second signal does what it does where no block is entered.
    """
    asked: list[int] = []

    def hear(number: int, _: types.FrameType | None) -> None:
        asked.append(number)
        signal.signal(number, usual[number])

    main = threading.current_thread() is threading.main_thread()  # Python lets no other thread hear signals
    usual: dict[int, Any] = {number: signal.signal(number, hear) for number in (signal.SIGTERM, signal.SIGINT) if main}
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)


# Stopping


def cancel(folder: Path) -> None:
    """Asks a run to stop, and returns at once: it stores what it has and ends. Of a run that is over, nothing changes."""
    if run_folder.is_alive(folder):
        (folder / "cancel").touch()


def stop(folder: Path, grace_s: float = 60.0) -> None:
    """Asks a run to stop, and ends its processes if it has not done so after `grace_s` seconds; returns when it is over.

    Time is needed to store the best weights and to measure them; a run that is ended in the midst of it leaves none.
    """
    cancel(folder)
    if _within(grace_s, lambda: not run_folder.is_alive(folder)):
        return
    for sign in (signal.SIGTERM, signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL):
        _signal(folder, sign)
        if _within(5.0, lambda: not run_folder.is_alive(folder)):
            return


def _within(seconds: float, condition: Callable[[], bool]) -> bool:
    """Waits until it is so, and says whether it came to that."""
    end = time.monotonic() + seconds
    while not condition():
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
