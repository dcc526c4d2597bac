"""Tables that people bring: CSV, TSV, JSON lines and Parquet files, read as they are, with what was assumed."""

import json
import reprlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import pandas as pd

from core.data import delimited, parquet
from core.data.columns import distinct_names
from core.data.encoding import decode
from core.data.labels import known_classes
from core.data.reviews import Reviews

MAX_UPLOAD_BYTES = 20_000_000
MAX_UNPACKED_BYTES = 400_000_000
"""Of an uploaded Parquet file, whose cells may be a million times the size of the file."""
_MAGIC = {
    b"PK\x03\x04": "an Excel workbook or another ZIP archive; save the sheet as CSV, UTF-8",
    b"PK\x05\x06": "an empty ZIP archive; save the table as CSV, UTF-8",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "an Excel workbook of an older format; save the sheet as CSV, UTF-8",
    b"\x1f\x8b": "a file compressed by gzip; unpack it first",
    b"%PDF-": "a PDF document; save the table as CSV, UTF-8",
    b"PAR1": "a Parquet file; let its name end in .parquet",
}


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows and columns under distinct names; each of `assumed` is a sentence without full stop on how they were read."""

    name: str
    frame: pd.DataFrame
    assumed: tuple[str, ...]


def read_upload(name: str, content: bytes) -> Table:
    """The table in a file that was uploaded; see `read_content`.

    More than `MAX_UPLOAD_BYTES`, or `MAX_UNPACKED_BYTES` once a Parquet file is unpacked, are a ValueError.
    """
    _refuse_large(name, len(content), MAX_UPLOAD_BYTES, "by upload")
    if _suffix(name) == ".parquet":
        with _named(name):
            unpacked = parquet.unpacked_bytes_apart(content, MAX_UNPACKED_BYTES)
        _refuse_large(name, unpacked, MAX_UNPACKED_BYTES, "once it is unpacked")
    return read_content(name, content)


def _refuse_large(name: str, n: int, most: int, when: str) -> None:
    if n > most:
        raise ValueError(
            f"{name}: got {n / 1e6:,.1f} MB {when}, expected at most {most / 1e6:.0f} MB; "
            f"use a smaller file, or give its path to the command line"
        )


@contextmanager
def _named(name: str) -> Iterator[None]:
    """What is refused inside names its file."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def open_table(path: Path) -> Table:
    """The table in a file of any size. A file that cannot be opened is a ValueError; see `read_content`."""
    return read_content(str(path), _content(path))


def read_content(name: str, content: bytes) -> Table:
    """The table in the bytes of a file; the end of its name says which format. Cells of text formats stay as typed.

    Another format under that name, a file that cannot be read and one without rows are a ValueError.
    """
    frame, assumed = _read(name, content)
    frame.columns, renamed = distinct_names([str(column) for column in frame.columns])
    return Table(name=PurePath(name).name, frame=frame, assumed=(*assumed, *renamed))


def open_as_named(path: Path) -> Table:
    """The table of `open_table` under the names that the file gives, be they equal or empty."""
    frame, assumed = _read(str(path), _content(path))
    return Table(name=path.name, frame=frame, assumed=tuple(assumed))


def _content(path: Path) -> bytes:
    _refuse_suffix(str(path))
    try:
        return path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path}: the file cannot be read: {error.strerror}") from error


def _read(name: str, content: bytes) -> tuple[pd.DataFrame, list[str]]:
    _refuse_suffix(name)
    with _named(name):
        frame, assumed = READERS[_suffix(name)](content)
    if frame.empty:
        raise ValueError(f"{name}: got a table without rows, expected one for each review")
    return frame, assumed


def _suffix(name: str) -> str:
    return PurePath(name).suffix.lower()


def _refuse_suffix(name: str) -> None:
    if _suffix(name) not in READERS:
        *others, last = READERS
        raise ValueError(
            f"{name}: got a file name that ends in {_suffix(name)!r}, expected {', '.join(others)} or {last}; "
            f"a spreadsheet can be saved as CSV, UTF-8"
        )


def _text(content: bytes) -> tuple[str, str]:
    for magic, what in _MAGIC.items():
        if content.startswith(magic):
            raise ValueError(f"this is {what}")
    text, encoding = decode(content)
    if text.lstrip()[:15].lower().startswith(("<!doctype html", "<html")):
        raise ValueError("this is a web page; download the table itself")
    return text, encoding


def _read_csv(content: bytes, likely: str = ",") -> tuple[pd.DataFrame, list[str]]:
    text, encoding = _text(content)
    if _is_json(text.lstrip().partition("\n")[0]):
        raise ValueError("this holds JSON, not cells; let its name end in .jsonl if each line is an object")
    parsed = delimited.parse(text, likely)
    return pd.DataFrame(parsed.rows, columns=parsed.names, dtype="str"), [encoding, *parsed.assumed]


def _read_tsv(content: bytes) -> tuple[pd.DataFrame, list[str]]:
    return _read_csv(content, likely="\t")


def _is_json(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _read_jsonl(content: bytes) -> tuple[pd.DataFrame, list[str]]:
    text, encoding = _text(content)
    rows = [_object(line, place) for place, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not rows:
        raise ValueError("the file is empty, expected a JSON object for each review, one a line")
    names = list(dict.fromkeys(name for row in rows for name in row))
    frame = pd.DataFrame([[row.get(name) for name in names] for row in rows], columns=names, dtype=object)
    return frame, [encoding, "one JSON object a line, with numbers as typed"]


def _object(line: str, place: int) -> dict[str, Any]:
    try:
        row = json.loads(line, parse_int=str, parse_float=str, object_pairs_hook=_without_equal_names)
        json.dumps(row, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise ValueError(f"line {place} is no JSON: {error.msg} at character {error.pos + 1}") from error
    except UnicodeEncodeError as error:
        raise ValueError(f"line {place} holds half a character (a surrogate without its pair)") from error
    except RecursionError as error:
        raise ValueError(f"line {place} is nested too deeply") from error
    except ValueError as error:
        raise ValueError(f"line {place}: {error}") from error
    if not isinstance(row, dict):
        raise ValueError(f"line {place}: got {reprlib.repr(row)}, expected a JSON object such as {{'text': ..., 'label': ...}}")
    return row


def _without_equal_names(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"two values are called {next(name for name in names if names.count(name) > 1)!r}")
    return row


def _read_parquet(content: bytes) -> tuple[pd.DataFrame, list[str]]:
    return parquet.read(content), []


READERS: dict[str, Callable[[bytes], tuple[pd.DataFrame, list[str]]]] = {
    ".csv": _read_csv,
    ".tsv": _read_tsv,
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".parquet": _read_parquet,
}


def texts_of(frame: pd.DataFrame, name: str) -> tuple[list[int], list[str]]:
    """The rows that have text in a column, and these texts. No text at all, and a cell that is none, is a ValueError.

    Rows count from 1, the line of column names left aside. Characters that show nothing are no text: see `tokenizer.is_blank`.
    """
    cells = column(frame, name)
    rows = [row for row, cell in enumerate(cells, 1) if not is_blank(cell)]
    if not rows:
        raise ValueError(f"column {name!r}: none of its {len(cells):,} rows has text")
    for row in rows:
        if not isinstance(cells[row - 1], str):
            raise ValueError(f"column {name!r}: got {reprlib.repr(cells[row - 1])} in row {row}, expected text")
    return rows, [text for row in rows if isinstance(text := cells[row - 1], str)]


def labelled(frame: pd.DataFrame, text_name: str, label_name: str, label_names: tuple[str, ...], name: str) -> Reviews:
    """The reviews of a table with their classes, for a model that knows these `label_names`.

    Labels are the names, whatever their case, or numbers from 0; a table may hold one class only. Any other label is a
    ValueError. Rows without text are left out, which the notes say.
    """
    rows, texts = texts_of(frame, text_name)
    every = column(frame, label_name)
    cells = [every[row - 1] for row in rows]
    known = known_classes(cells, label_names)
    labels = [label for label in known if label is not None]
    if len(labels) < len(cells):
        place = known.index(None)
        got = "no label" if is_blank(cells[place]) else reprlib.repr(cells[place])
        expected = f"one of {', '.join(label_names)}, or its number from 0"
        raise ValueError(f"column {label_name!r}: got {got} in row {rows[place]}, expected {expected}")
    notes = _left_out(rows, len(every))
    return Reviews(name=name, texts=texts, labels=labels, label_names=label_names, notes=notes)


def _left_out(rows: Sequence[int], n: int) -> tuple[str, ...]:
    if len(rows) == n:
        return ()
    first = min({*range(1, n + 1)} - {*rows})
    return (f"left out {n - len(rows):,} of {n:,} rows, without text: the first is row {first}",)


def column(frame: pd.DataFrame, name: str) -> list[object]:
    """The cells of a column. A name that no column has, or several, is a ValueError."""
    found = [str(other) for other in frame.columns]
    if found.count(name) != 1:
        problem = f"{found.count(name)} columns have this name" if name in found else "there is no such column"
        raise ValueError(f"column {name!r}: {problem}; the table has {', '.join(map(reprlib.repr, found))}")
    return frame.iloc[:, found.index(name)].tolist()


def is_blank(cell: object) -> bool:
    """Whether a cell holds nothing, or text that shows nothing."""
    from core.data import tokenizer  # not needed to offer a table, and a page is painted before it loads

    if isinstance(cell, str):
        return tokenizer.is_blank(cell)
    return cell is None or cell is pd.NA or isinstance(cell, float) and cell != cell
