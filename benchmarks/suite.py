"""What every benchmark shares: where it runs, how parts are chosen, and one file of results that grows part by part."""

import argparse
import datetime
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

import torch

from benchmarks import budgets
from core.recorded import Recorded, Table, file_name, read_file, write
from core.training.machine import hardware

HERE = Path(__file__).parent
ROOT = HERE.parent
ARRAYS = ROOT / ".cache" / "arrays.npz"
QUICK = "Quick: sizes are the smallest, whatever a caption says, and the figures none to keep."
PACKAGES = ("torch", "transformers", "accelerate", "tokenizers", "numpy")


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What a part is told."""

    device: Literal["cpu", "cuda"] = "cpu"
    quick: bool = False
    """Whether the smallest sizes will do: to see that all runs, for no figures."""
    arrays: str = str(ARRAYS)
    """File of `benchmarks.arrays`."""
    peers: str | None = None
    """Folder of other programs to time, too."""

    @property
    def rounds(self) -> int:
        """How often contestants take turns."""
        return 2 if self.quick else 5

    def size(self, *, cpu: int, cuda: int, quick: int) -> int:
        """A number that this machine has time for."""
        return quick if self.quick else {"cpu": cpu, "cuda": cuda}[self.device]


Part = Callable[[Setting], Iterable[Table]]
"""Measures, and gives each table when it is whole."""


def recorded(
    title: str, command: str, device: str = "cpu", tables: tuple[Table, ...] = (), seed: int | None = None, what: str = "this"
) -> Recorded:
    """Results of today, of this machine and these packages; a machine that is at work already when `what` begins is a note."""
    return Recorded(
        title=title, command=command, hardware=machine(device), date=str(datetime.date.today()), versions=tuple(_versions()),
        tables=tables, seed=seed, notes=tuple(_busy(what)),
    )  # fmt: skip


def machine(device: str) -> str:
    """The name that figures carry."""
    found = hardware(device)
    return found["gpu"] if device == "cuda" else f"{found['cpu']}, {found['threads']} of {found['cores']} cores"


def _versions() -> Iterable[str]:
    for name in PACKAGES:
        try:
            yield f"{name} {version(name)}"
        except PackageNotFoundError:
            continue


def _busy(what: str) -> Iterable[str]:
    load = os.getloadavg()[0]
    if load > 0.5:
        cores = hardware("cpu")["cores"]
        yield f"Other processes used this machine, too: its load was {load:.1f} on {cores} cores when {what} began."


def main(title: str, parts: Mapping[str, Part], description: str, device: str, minutes: float) -> None:
    """Measures the parts that the command line names, prints each table, and writes the file anew after each.

    The last table is of the budgets.
    """
    asked = _arguments(parts, description, device, minutes)
    chosen = _chosen(asked.only, parts)
    setting = Setting(device=asked.device, quick=asked.quick, arrays=asked.arrays, peers=asked.peers)
    what = "this" if len(chosen) == len(parts) else f"measuring {', '.join(chosen)}"
    results = recorded(title, _command(setting), setting.device, seed=0, what=what)
    if setting.quick:
        results = replace(results, notes=(*results.notes, QUICK))
    path = Path(asked.out) / file_name(results)
    results = _continued(results, path)
    deadline = time.monotonic() + 60 * asked.minutes
    try:
        for name in chosen:
            start = time.monotonic()
            if start > deadline:
                print(f"{name}: not measured, since {asked.minutes:g} minutes are over", file=sys.stderr)
                continue
            results = _with_part(results, name, parts[name], setting, path, deadline)
            print(f"{name}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        sys.exit(f"interrupted; what was measured until now is in {path}.json")
    print(budgets.table(results).as_markdown())


def _command(setting: Setting) -> str:
    """Without what does not change the figures: which of them are taken now, and where files lie."""
    flags = [f" --device {setting.device}", *[" --quick"] * setting.quick, *[" --peers DIR"] * (setting.peers is not None)]
    return f"python -m benchmarks.{Path(sys.argv[0]).stem}{''.join(flags)}"


def _with_part(results: Recorded, name: str, part: Part, setting: Setting, path: Path, deadline: float) -> Recorded:
    """Each table is written as it comes; a part that fails, or has no more time, leaves those that it gave."""
    measured: dict[str, Table] = {}
    try:
        for table in part(setting):
            measured[table.name] = table
            results = results.with_table(table)
            results = results.with_table(budgets.table(results))
            write(results, path)
            if time.monotonic() > deadline:
                raise ValueError("since the time is over")
    except (ValueError, MemoryError, OSError, RuntimeError, ImportError) as error:  # the other parts can still be measured
        print(f"{name}: not measured whole, {(str(error) or type(error).__name__).splitlines()[0]}", file=sys.stderr)
    for table in measured.values():
        print(table.as_markdown(), end="\n\n", flush=True)
    return results


def _continued(results: Recorded, path: Path) -> Recorded:
    """With the tables of the same command of the same day, which parts that are measured now replace.

    Ends the program if the file is damaged, or holds those of another command or of other packages, which they would be mixed
    with.
    """
    written = path.with_name(f"{path.name}.json")
    if not written.is_file():
        return results
    try:
        before = read_file(written)
    except ValueError as error:
        sys.exit(f"{written}: {error}, or choose another --out")
    if (before.command, before.versions, before.hardware) != (results.command, results.versions, results.hardware):
        sys.exit(f"{written}: got results of {before.command!r}, or of other packages or threads; choose another --out")
    return replace(results, tables=before.tables, notes=tuple(dict.fromkeys(before.notes + results.notes)))


def _arguments(parts: Mapping[str, Part], description: str, device: str, minutes: float) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--only", help=f"parts, with commas between: {', '.join(parts)}", default=",".join(parts))
    parser.add_argument("--quick", action="store_true", help="the smallest sizes, to see that all runs; no figures to keep")
    parser.add_argument("--device", choices=("cpu", "cuda"), default=device)
    parser.add_argument("--arrays", default=str(ARRAYS), help="file of `python -m benchmarks.arrays`")
    parser.add_argument("--peers", help="folder of article_train.py and hf_trainer.py, to be timed, too")
    parser.add_argument("--minutes", type=float, default=minutes, help="after which no table is begun any more: %(default)g")
    parser.add_argument("--out", default=str(HERE), help="folder for RESULTS_<hardware>_<date>.json and .md")
    asked = parser.parse_args()
    if not Path(asked.out).is_dir():
        parser.error(f"out: got {asked.out!r}, expected a folder that is there")
    if asked.device == "cuda" and not torch.cuda.is_available():
        parser.error("device: got 'cuda', but PyTorch finds no GPU here; use --device cpu")
    return asked


def _chosen(only: str, parts: Mapping[str, Part]) -> list[str]:
    unknown = set(only.split(",")) - set(parts)
    if unknown:
        sys.exit(f"only: got {', '.join(sorted(unknown))}, expected some of {', '.join(parts)}")
    return [name for name in parts if name in only.split(",")]
