"""Results that were measured once and kept: benchmarks/RESULTS_*.json, with what they were measured on, when and how.

The Markdown beside each is made from it by `markdown`, so that the two cannot differ.
"""

import json
import logging
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from core.checked import Checked

Value = str | int | float | None
"""Of a cell; None where nothing could be measured."""


@dataclass(frozen=True, kw_only=True)
class Column(Checked):
    """What the values of a column are."""

    name: str
    unit: str = ""
    """Such as ms, MiB or tokens/s; empty for names, counts and ratios."""

    @property
    def heading(self) -> str:
        """Both, for people."""
        return f"{self.name}, {self.unit}" if self.unit else self.name


@dataclass(frozen=True, kw_only=True)
class Table(Checked):
    """Figures that belong together."""

    name: str
    """What it is looked up by, such as "inference"."""
    caption: str
    """What was done, and how the figures are to be read: sentences."""
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"table {self.name}: got a row of {len(row)} values, expected {len(self.columns)}")

    def column(self, name: str) -> list[Value]:
        """The values of a column from top to bottom. ValueError if there is none of that name."""
        names = [column.name for column in self.columns]
        if name not in names:
            raise ValueError(f"table {self.name}: got column {name!r}, expected one of {', '.join(names)}")
        return [row[names.index(name)] for row in self.rows]

    def as_markdown(self) -> str:
        """Heading, caption and table."""
        headings = [column.heading for column in self.columns]
        texts = [any(isinstance(row[i], str) for row in self.rows) for i in range(len(headings))]
        rows = [
            headings,
            ["---" if text else "---:" for text in texts],
            *([shown(value) for value in row] for row in self.rows),
        ]
        return "\n".join([f"## {self.name}", "", self.caption, "", *map(_row, rows)])


@dataclass(frozen=True, kw_only=True)
class Recorded(Checked):
    """One file of results."""

    title: str
    hardware: str
    """Such as "AMD EPYC, 1 of 2 cores"."""
    date: str
    """The day on which the figures were taken, as in 2026-11-30."""
    command: str
    versions: tuple[str, ...]
    """Packages that the figures depend on, as in "torch 2.13.0"."""
    tables: tuple[Table, ...]
    seed: int | None = None
    """None where nothing is drawn."""
    notes: tuple[str, ...] = ()
    """Sentences on what makes these figures better or worse than others, such as a machine that others used, too."""

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            date.fromisoformat(self.date)
        except ValueError as error:
            raise ValueError(f"date: got {self.date!r}, expected a day, as in 2026-11-30") from error

    def table(self, name: str) -> Table:
        """The table of that name. ValueError if there is none."""
        found = {table.name: table for table in self.tables}
        if name not in found:
            raise ValueError(f"{self.title}: got table {name!r}, expected one of {', '.join(found)}")
        return found[name]

    def with_table(self, table: Table) -> "Recorded":
        """The same with this table, in the place of the one of its name or as the last."""
        tables = {other.name: other for other in self.tables} | {table.name: table}
        return replace(self, tables=tuple(tables.values()))


def _warn(note: str) -> None:
    logging.getLogger(__name__).warning("%s", note)


def read(folder: Path, note: Callable[[str], None] = _warn) -> list[Recorded]:
    """All results of a folder, the newest first; a file that is damaged or of another kind is passed over, and `note` told."""
    found = []
    for path in sorted(folder.glob("RESULTS_*.json")):
        try:
            found.append(read_file(path))
        except ValueError as error:
            note(f"{path.name} is passed over: {error}")
    return sorted(found, key=lambda recorded: recorded.date, reverse=True)


def read_file(path: Path) -> Recorded:
    """One file of results. ValueError for one that cannot be read, is damaged or is of another kind."""
    try:
        return _recorded(json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse))
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise ValueError(f"{_damage(error)}; write it again by its benchmark, or take it away") from error


def _damage(error: Exception) -> str:
    """What is wrong with a file, for people."""
    if isinstance(error, OSError):
        return f"it cannot be read ({error.strerror})"
    if isinstance(error, json.JSONDecodeError):
        return f"it is cut off or was changed by hand, in line {error.lineno}"
    return str(error) if type(error) is ValueError else "it holds something else than results of this lab"


def write(recorded: Recorded, path: Path) -> None:
    """Writes path.json and path.md; each is renamed into its place when it is whole."""
    _put(path.with_name(f"{path.name}.json"), json.dumps(asdict(recorded), indent=1, ensure_ascii=False) + "\n")
    _put(path.with_name(f"{path.name}.md"), markdown(recorded))


def file_name(recorded: Recorded, kind: str = "") -> str:
    """RESULTS_<kind>_<hardware>_<date>, without ending; of the hardware what stands before the first comma."""
    parts = ("RESULTS", kind, recorded.hardware.split(",")[0], recorded.date)
    return "_".join(re.sub(r"[^\w-]+", "-", part).strip("-") for part in parts if part)


def markdown(recorded: Recorded) -> str:
    """The same for people."""
    seed = "" if recorded.seed is None else f" Seed {recorded.seed}."
    made = f"`{recorded.command}`, {recorded.date}. {recorded.hardware}; {', '.join(recorded.versions)}.{seed}"
    return (
        "\n\n".join([f"# {recorded.title}", made, *recorded.notes, *(table.as_markdown() for table in recorded.tables)]) + "\n"
    )


def _row(values: Sequence[str]) -> str:
    return f"| {' | '.join(value.replace('|', '/') for value in values)} |"


def shown(value: Value) -> str:
    """A value with the three digits that count; a dash for what was not measured."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:#.3g}"
    return f"{value:,}" if isinstance(value, int) else value


def _put(path: Path, text: str) -> None:
    beside = path.with_name(f".{path.name}")
    beside.write_text(text, encoding="utf-8")
    os.replace(beside, path)


def _recorded(values: dict[str, Any]) -> Recorded:
    lists: dict[str, Any] = {name: tuple(values.get(name, ())) for name in ("versions", "notes")}
    lists["tables"] = tuple(map(_table, values["tables"]))
    return Recorded(**values | lists)


def _table(values: dict[str, Any]) -> Table:
    lists: dict[str, Any] = {"columns": tuple(Column(**column) for column in values["columns"])}
    lists["rows"] = tuple(map(tuple, values["rows"]))
    return Table(**values | lists)


def _refuse(constant: str) -> float:
    raise ValueError(f"got {constant}, which is no number")
