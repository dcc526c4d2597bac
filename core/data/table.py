"""Tables that people bring: CSV and Parquet files, their texts and their labels."""

import io
import re
from pathlib import Path

import pandas as pd
import pyarrow as pa

from core.data.reviews import Reviews

SUFFIXES = (".csv", ".parquet")


def read_table(path: Path) -> pd.DataFrame:
    """The rows of a CSV file (commas, UTF-8, every cell as typed) or of a Parquet file.

    A file that is missing, cannot be read or has no rows is a ValueError.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"{path}: got a file that ends in {path.suffix!r}, expected one of {', '.join(SUFFIXES)}")
    if not path.is_file():
        raise ValueError(f"{path}: this is a folder, expected a file" if path.is_dir() else f"{path}: there is no such file")
    frame = _read_csv(path) if path.suffix.lower() == ".csv" else _read_parquet(path)
    if frame.empty:
        raise ValueError(f"{path}: got a table without rows, expected a row for each review")
    return frame


def _read_csv(path: Path) -> pd.DataFrame:
    content = _decode(path)
    if not content.strip():
        raise ValueError(f"{path}: the file is empty, expected a line of column names and a row for each review")
    try:
        # the line of names is read as a row, since pandas would rename equal columns and take a surplus one for an index;
        # all cells are text, since it would take 'NA' for a gap and 3.50 for 3.5
        cells = pd.read_csv(
            io.StringIO(content.rstrip("\r\n")), header=None, dtype=str, keep_default_na=False, skip_blank_lines=False
        )
    except pd.errors.ParserError as error:
        raise ValueError(f"{path}: this is no table of comma-separated values: {str(error).strip()}") from error
    return cells[1:].reset_index(drop=True).set_axis(cells.iloc[0].fillna("").str.strip(), axis="columns")


def _decode(path: Path) -> str:
    content = path.read_bytes()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{path}: got byte 0x{content[error.start]:02x} in line {line}, which is no UTF-8; save the file as UTF-8"
        ) from error


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise ValueError(f"{path}: this is no readable Parquet file: {error}") from error


def text_column(frame: pd.DataFrame, name: str) -> list[str]:
    """The texts of a column. A row without text, or a cell that is no text, is a ValueError that names the first one."""
    cells = _column(frame, name)
    blank = [row for row, cell in enumerate(cells, 1) if _is_blank(cell)]
    if blank:
        raise ValueError(f"column {name!r}: {len(blank)} of {len(cells)} rows have no text, the first is row {blank[0]}")
    texts = [cell for cell in cells if isinstance(cell, str)]
    if len(texts) < len(cells):
        row = next(row for row, cell in enumerate(cells, 1) if not isinstance(cell, str))
        raise ValueError(f"column {name!r}: got {cells[row - 1]!r} in row {row}, expected text")
    return texts


def labelled(frame: pd.DataFrame, text_name: str, label_name: str, label_names: tuple[str, ...] | None, name: str) -> Reviews:
    """The reviews of a table with their classes.

    Labels are whole numbers from 0, also as text; for a model that knows its `label_names`, these too, whatever their case.
    Without them at least two classes without a gap are expected. Anything else is a ValueError.
    """
    texts = text_column(frame, text_name)
    known = {known.strip().casefold(): i for i, known in enumerate(label_names or ())}
    labels = []
    for row, cell in enumerate(_column(frame, label_name), 1):
        label = _as_class(cell, known)
        if label is None or label_names is not None and label >= len(label_names):
            got = "no label" if _is_blank(cell) else repr(cell)
            expected = f"one of {', '.join(label_names)}, or its number from 0" if label_names else "a whole number from 0"
            raise ValueError(f"column {label_name!r}: got {got} in row {row}, expected {expected}")
        labels.append(label)
    return Reviews(name=name, texts=texts, labels=labels, label_names=label_names or _names_of(labels, label_name))


def _column(frame: pd.DataFrame, name: str) -> list[object]:
    found = [str(column) for column in frame.columns]
    if found.count(name) != 1:
        problem = f"there are {found.count(name)} columns of this name" if name in found else "there is no such column"
        raise ValueError(f"column {name!r}: {problem}; the table has {', '.join(map(repr, found))}")
    return frame.iloc[:, found.index(name)].tolist()


def _is_blank(cell: object) -> bool:
    return not cell.strip() if isinstance(cell, str) else cell is None or cell is pd.NA or cell != cell


def _as_class(cell: object, known: dict[str, int]) -> int | None:
    text = str(cell).strip()
    if text.casefold() in known:
        return known[text.casefold()]
    return int(float(text)) if re.fullmatch(r"[0-9]{1,9}(\.0*)?", text) else None


def _names_of(labels: list[int], column: str) -> tuple[str, ...]:
    classes = sorted(set(labels))
    if len(classes) < 2:
        raise ValueError(f"column {column!r}: it holds only {classes[0]}, expected at least two classes")
    if classes[-1] != len(classes) - 1:
        absent = next(i for i in range(len(classes)) if i not in set(classes))
        raise ValueError(f"column {column!r}: the classes go up to {classes[-1]} but none is {absent}; number them 0, 1, ...")
    return ("negative", "positive") if len(classes) == 2 else tuple(f"class {i}" for i in classes)
