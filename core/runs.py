"""runs/<id>/ read as a `Run`: what was asked, what became of it, how good it is; and what a person may do with it."""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
import sys
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from core import jobs, run_folder
from core.checked import Checked, from_json, to_json
from core.config import KNOBS_OF_FITS, BackendsConfig, ClaimConfig, ExperimentConfig, LinearArchitecture, RunConfig, SweepConfig
from core.curves import standing
from core.disk import writing
from core.events import Event

if TYPE_CHECKING:
    import pandas as pd

C = TypeVar("C", bound=Checked)
NAME_LENGTH = 200
TITLE_LENGTH = 40
"""Characters of a name in a title."""
LARGEST_HEADER = 10**8
"""Bytes that safetensors allows for what stands before the numbers."""
FOLLOWED = 32
"""Runs whose events are kept in memory, at most."""
FIGURES = ("n", "accuracy", "low", "high", "f1")
RATES = ("train_s", "reviews_per_s", "tokens_per_s")
OF_A_RUN = ("request.json", *run_folder.CONFIGS.values(), "events.jsonl", "log.txt", "model")
"""One of these at least is in the folder of a run."""
GIVEN_ID = re.compile(r"\d{8}-\d{6}-\d{6}-([0-9a-f]{4})")
"""What `run_folder.new_id` makes."""


@dataclass(frozen=True, kw_only=True)
class Kept:
    """What a run that is over can go on from."""

    step: int
    """The last step that is not lost."""
    n_bytes: int
    """What it takes on disk."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run at the moment of reading."""

    id: str
    """The folder's name; of a member of an experiment, the way to it from the folder of all runs, which has slashes."""
    folder: Path
    name: str
    """What a person called it; the id where nobody did. Data: never a path, never markup."""
    created: datetime
    state: run_folder.State
    config: RunConfig | None
    """None before the run has written it, and where a newer version wrote it."""
    model: Path | None
    """Folder of the model that it made."""
    record: dict[str, Any]
    """The model's run.json; empty without a model."""
    problems: tuple[str, ...]
    """What in the folder cannot be read, a sentence each."""
    argv: tuple[str, ...] = ()
    """What `python -m core` was given; empty where it is not on record."""
    sweep: SweepConfig | None = None
    """What a sweep of measurements was asked; None for every other run."""
    experiment: ExperimentConfig | None = None
    """What an experiment was asked; None for every other run."""
    claim: ClaimConfig | None = None
    """The claim that is measured; None for every other run."""
    backends: BackendsConfig | None = None
    """What a comparison of backends was asked; None for every other run."""

    @property
    def is_run(self) -> bool:
        """False for what is not renamed, stopped or deleted by itself: a member of an experiment, and a model whose run is not
        here, which has no events and no log."""
        return "/" not in self.id

    @property
    def is_training(self) -> bool:
        """Whether it is a run that trains one model."""
        return self.is_run and not any(self._other_than_training)

    @property
    def _other_than_training(self) -> tuple[run_folder.Config | None, ...]:
        return self.sweep, self.experiment, self.claim, self.backends

    @property
    def command(self) -> str | None:
        """The command line that made it; it is data, and its folder may be anywhere."""
        return shlex.join(["python", "-m", "core", *self.argv]) if self.argv else None

    @property
    def step_name(self) -> str:
        """What its curves go over: a linear model is fitted, and makes no steps."""
        return "fit" if self.config is not None and self.config.epoch_name == "fit" else "step"

    @property
    def is_alive(self) -> bool:
        """Whether its process lived when it was read."""
        return self.state in ("queued", "running")

    @property
    def can_resume(self) -> bool:
        """Whether it is over without having come to its end, and its command can be given again."""
        known = any((self.config, *self._other_than_training))
        return self.is_run and known and bool(self.argv) and self.state in ("interrupted", "cancelled", "failed")

    @cached_property
    def kept(self) -> Kept | None:
        """The checkpoint as it is when this is first asked; None where there is none."""
        with suppress(OSError, ValueError, KeyError, TypeError), (self.folder / run_folder.CHECKPOINT).open("rb") as file:
            size = int.from_bytes(file.read(8), "little")  # the format of safetensors
            header = json.loads(file.read(min(size, LARGEST_HEADER)))
            return Kept(step=int(header["__metadata__"]["step"]), n_bytes=os.fstat(file.fileno()).st_size)
        return None

    @property
    def metrics(self) -> dict[str, dict[str, Any]]:
        """Figures of the stored weights on each side that was measured: validation, test."""
        metrics = self.recorded("metrics")
        return {side: of for side, of in metrics.items() if isinstance(of, dict)} if isinstance(metrics, dict) else {}

    def recorded(self, *path: str) -> Any:
        """What stands in the model's run.json where `path` leads to; None if it leads nowhere."""
        value: Any = self.record
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value

    def figure(self, *path: str) -> float | None:
        """The same, if it is a finite number."""
        value = self.recorded(*path)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return float(value) if is_number and abs(value) <= sys.float_info.max else None

    @cached_property
    def last_event(self) -> Event | None:
        """What the run said last when this is first asked."""
        return run_folder.last_event(self.folder)

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """All that the run has said when this is first asked, and that still holds."""
        return _follower(self.folder).read()


class Follower:
    """What a run has said, read on from where reading stopped, since those who look do so each second."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.lock = folder, threading.Lock()
        self.file, self.offset, self.said = 0, 0, ()

    def read(self) -> tuple[Event, ...]:
        """All events that still hold."""
        with self.lock:
            with suppress(OSError):
                file = (self.folder / "events.jsonl").stat().st_ino
                if file != self.file:  # the run began anew
                    self.file, self.offset, self.said = file, 0, ()
            new, offset = run_folder.read_events(self.folder, self.offset)
            self.said = tuple(standing([*self.said, *new] if offset >= self.offset else new)) if new else self.said
            self.offset = offset
            return self.said if offset else ()


@lru_cache(maxsize=FOLLOWED)
def _follower(folder: Path) -> Follower:
    return Follower(folder)


def runs_root() -> Path:
    """Where runs are: runs/, or the folder that the environment variable ATTENTION_LAB_RUNS names."""
    return Path(os.environ.get("ATTENTION_LAB_RUNS") or jobs.ROOT / "runs")


def find(id: str, root: Path | None = None) -> Path:
    """The folder of a run. ValueError if there is none of that id, whatever the id is made of."""
    root = root or runs_root()
    folders = {folder.name: folder for folder in _folders(root)}
    if id not in folders:
        raise ValueError(f"there is no run {id!r} in {root}; `python -m core jobs list` names those that are")
    return folders[id]


def all_runs(root: Path | None = None) -> list[Run]:
    """Every run, the newest first; one whose files are damaged is there, too, and says so."""
    runs = [run for folder in _folders(root or runs_root()) if (run := _read(folder)) is not None]
    return sorted(runs, key=lambda run: (run.created, run.id), reverse=True)


def members(root: Path | None = None) -> list[Run]:
    """The trainings of all experiments that have made a model; they come and go with their experiment."""
    found = [_read(folder, id) for id, folder in member_folders(root or runs_root()).items()]
    return [run for run in found if run is not None and run.model is not None]


def member_folders(root: Path) -> dict[str, Path]:
    """The folder of each member of an experiment, by its id."""
    places = [place for of in _folders(root) for place in sorted(of.glob(f"{run_folder.MEMBERS}/*"))]
    return {place.relative_to(root).as_posix(): place for place in places}


def alive(root: Path | None = None) -> list[Run]:
    """The runs whose processes live, in the order in which they get their device; no more of the others is read."""
    living = [folder for folder in sorted(_folders(root or runs_root())) if run_folder.is_alive(folder)]
    return [run for folder in living if (run := _read(folder)) is not None and run.is_alive]


def read(id: str, root: Path | None = None) -> Run:
    """One run, or a member of an experiment. ValueError if there is none of that id."""
    run = _read(member_folders(root or runs_root()).get(id) or find(id, root), id)
    if run is None:
        raise ValueError(f"the run {id!r} has just been deleted")
    return run


def config_of(model: Path) -> RunConfig:
    """How a model was trained. ValueError where that is not on record: nobody knows which reviews it was measured on."""
    config = read_model(model).config
    if config is None:
        raise ValueError(
            f"the configuration of {model.name} is not on record, so nobody knows which reviews it was measured on"
        )
    return config


def read_model(folder: Path) -> Run:
    """A model whose run is not here, as a run that succeeded when the model was finished.

    Its id is the path of a model, which no run's can be, since a folder's name has no slash.
    """
    problems: list[str] = []
    record = _json(folder / "run.json", problems)
    return Run(
        id=f"models/{folder.name}",
        folder=folder,
        name=folder.name,
        created=_time(record.get("finished"), "run.json", folder, problems),
        state="succeeded",
        config=_parsed(RunConfig, record.get("config"), problems),
        model=folder,
        record=record,
        problems=tuple(problems),
    )


def names(root: Path | None = None) -> dict[str, str]:
    """What each run is called, by id."""
    root = root or runs_root()
    folders = {folder.name: folder for folder in _folders(root)} | member_folders(root)
    return {id: _name(folder, []) for id, folder in folders.items()}


def titles(names: Mapping[str, str]) -> dict[str, str]:
    """A text to choose each id by, no two alike: its name, shortened, and the end of its id. Data, as names are."""
    found = {id: _title(id, name) for id, name in names.items()}
    times = Counter(found.values())
    return {id: title if times[title] == 1 else f"{title} ({id})" for id, title in found.items()}


def _title(id: str, name: str) -> str:
    short = name if len(name) <= TITLE_LENGTH else f"{name[: TITLE_LENGTH - 1]}…"
    if name == id.rpartition("/")[2]:
        return short
    given = GIVEN_ID.fullmatch(id.partition("/")[0])
    return f"{short} · {given[1] if given else id}"


def rename(id: str, name: str, root: Path | None = None) -> None:
    """Calls a run `name`, in one line; an empty name gives it its id back.

    ValueError for one that is too long, and where it cannot be written: the old one stays.
    """
    folder, name = find(id, root), " ".join(name.split())
    if len(name) > NAME_LENGTH:
        raise ValueError(f"name: got {len(name)} characters, expected at most {NAME_LENGTH}")
    beside = folder / f".name.{secrets.token_hex(4)}"
    with writing(f"the run {id!r} cannot be renamed"):
        try:
            beside.write_text(json.dumps({"name": name}), encoding="utf-8")
            beside.replace(folder / "name.json")
        finally:
            beside.unlink(missing_ok=True)


def delete(id: str, root: Path | None = None) -> None:
    """Moves a run to the trash, from where `restore` brings it back. ValueError while its process lives, and where its folder
    cannot be moved."""
    folder = find(id, root)
    if run_folder.is_alive(folder):
        raise ValueError(f"the run {id!r} is {run_folder.state(folder)}; stop it before you delete it")
    place = folder.parent / ".trash" / run_folder.new_id()  # the same id may be deleted twice
    with writing(f"the run {id!r} cannot be deleted"):
        place.mkdir(parents=True)
        folder.rename(place / id)


def restore(id: str, root: Path | None = None) -> None:
    """Undoes the last `delete` of this id. ValueError if there was none, if there is such a run again, and where its folder
    cannot be moved."""
    root = root or runs_root()
    deleted = [folder for folder in sorted((root / ".trash").glob("*/*")) if folder.name == id]
    if not deleted:
        raise ValueError(f"there is no run {id!r} in the trash")
    if (root / id).exists():
        raise ValueError(f"there is a run {id!r} again; delete it before you restore the other")
    with writing(f"the run {id!r} cannot be brought back"):
        deleted[-1].rename(root / id)
    with suppress(OSError):  # if something else has come into it
        deleted[-1].parent.rmdir()


def compare(runs: Sequence[Run]) -> pd.DataFrame:
    """A row for each run, by id: its name and state, the knobs in which the runs differ, figures and times.

    Figures are fractions, intervals Wilson's at 95%; times are seconds of training proper. What a run lacks is NA, which
    a knob set to none is not.
    """
    import pandas as pd

    differing = differences(runs)
    rows = [{"name": run.name, "state": run.state} | differing[run.id] | _figures(run) for run in runs]
    knobs = dict.fromkeys(name for values in differing.values() for name in values)
    figures = [f"{side}.{figure}" for side in ("validation", "test") for figure in FIGURES]
    index = pd.Index([run.id for run in runs], name="id", dtype="str")
    frame = pd.DataFrame(rows, index=index, columns=["name", "state", *knobs, *figures, *RATES], dtype=object)
    return frame.where(frame.notna(), pd.NA).convert_dtypes()


def differences(runs: Sequence[Run]) -> dict[str, dict[str, Any]]:
    """The knobs in which the runs differ, by dotted name, for each id: those that the run has, in one order for all."""
    knobs = {run.id: {} if run.config is None else _knobs(_used(run.config)) for run in runs}
    known = [knobs[run.id] for run in runs if run.config is not None]
    names = dict.fromkeys(name for values in known for name in values)
    differing = [name for name in names if len({repr(values.get(name)) for values in known}) > 1]
    return {id: {name: values[name] for name in differing if name in values} for id, values in knobs.items()}


def _used(config: RunConfig) -> dict[str, Any]:
    """The knobs that a run has a use for."""
    values = to_json(config)
    if isinstance(config.model, LinearArchitecture):
        values["training"] = {name: values["training"][name] for name in KNOBS_OF_FITS}
    return values


def _knobs(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested knobs by dotted names; one that is none and one that is a list read as people write them."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            flat |= _knobs(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = "none" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else value
    return flat


def _figures(run: Run) -> dict[str, Any]:
    measured = {f"{side}.{name}": values.get(name) for side, values in run.metrics.items() for name in FIGURES}
    return measured | {name: run.recorded("training", name) for name in RATES}


def _folders(root: Path) -> list[Path]:
    return [folder for folder in root.glob("*") if folder.is_dir() and not folder.name.startswith(".")]


def _read(folder: Path, id: str | None = None) -> Run | None:
    """None for a folder that is no run, or that has been moved away meanwhile."""
    if not any((folder / name).exists() for name in OF_A_RUN):
        return None
    problems: list[str] = []
    _refused(folder / "events.jsonl", problems)
    request, name = _json(folder / "request.json", problems), _name(folder, problems)

    def asked(cls: type[Checked]) -> dict[str, Any]:
        return _json(folder / run_folder.CONFIGS[cls], problems)

    model = folder / "model"
    record = _json(model / "run.json", problems)
    try:
        return Run(
            id=id or folder.name,
            folder=folder,
            name=name,
            created=_time(request.get("created"), "request.json", folder, problems),
            state=run_folder.state(folder),
            config=_parsed(RunConfig, asked(RunConfig) or record.get("config"), problems),
            sweep=_parsed(SweepConfig, asked(SweepConfig), problems),
            experiment=_parsed(ExperimentConfig, asked(ExperimentConfig), problems),
            claim=_parsed(ClaimConfig, asked(ClaimConfig), problems),
            backends=_parsed(BackendsConfig, asked(BackendsConfig), problems),
            model=model if record else None,
            record=record,
            argv=tuple(map(str, argv)) if isinstance(argv := request.get("argv"), list) else (),
            problems=tuple(dict.fromkeys(problems)),
        )
    except FileNotFoundError:
        return None


def _name(folder: Path, problems: list[str]) -> str:
    given, asked = _json(folder / "name.json", problems).get("name"), _json(folder / "request.json", problems).get("title")
    name = " ".join(str(given or asked or folder.name).split())
    name = name if len(name) <= NAME_LENGTH else f"{name[: NAME_LENGTH - 1]}…"
    return name.encode("utf-8", "replace").decode()  # a file system can hold half a character, which no page can show


def _refused(path: Path, problems: list[str]) -> None:
    """Notes of a file that it is there and cannot be read."""
    try:
        path.open("rb").close()
    except FileNotFoundError:
        pass
    except OSError as error:
        problems.append(f"{path.name} cannot be read ({error.strerror})")


def _json(path: Path, problems: list[str]) -> dict[str, Any]:
    """The object in a file; an empty one if there is no file or, which is a problem, no object in it."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        # JSON can hold half a character in any of its texts, which no page can show
        values = json.loads(json.dumps(values, ensure_ascii=False).encode("utf-8", "replace"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        problems.append(f"{path.name} cannot be read ({error})")
        return {}
    if not isinstance(values, dict):
        problems.append(f"{path.name} holds {type(values).__name__}, expected an object")
        return {}
    return values


def _time(written: Any, file: str, folder: Path, problems: list[str]) -> datetime:
    """What was written in `file`; where that is no time, when `folder` last changed."""
    if written is not None:
        try:
            return datetime.fromisoformat(str(written)).astimezone(UTC)
        except (ValueError, OverflowError) as error:
            problems.append(f"{file} cannot be read ({error})")
    return datetime.fromtimestamp(folder.stat().st_mtime, UTC)


def _parsed(cls: type[C], values: Any, problems: list[str]) -> C | None:
    if not values:
        return None
    try:
        return from_json(cls, values)
    except (ValueError, TypeError, AttributeError) as error:
        problems.append(f"the configuration is of another version ({error})")
        return None
