"""Tables that people bring: CSV and Parquet files, their texts and their labels."""

import io
import re
import reprlib
from pathlib import Path

import pandas as pd
import pyarrow as pa

from core.data import tokenizer
from core.data.reviews import Reviews


def read_table(path: Path) -> pd.DataFrame:
    """The rows of a CSV file (commas, UTF-8, every cell as typed) or of a Parquet file.

    A file of another kind, one that cannot be read and one without rows are a ValueError.
    """
    suffix = path.suffix.lower()
    if suffix not in READERS:
        raise ValueError(f"{path}: got a file name that ends in {suffix!r}, expected {' or '.join(READERS)}")
    try:
        frame = READERS[suffix](path.read_bytes())
    except OSError as error:
        raise ValueError(f"{path}: the file cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    if frame.empty:
        raise ValueError(f"{path}: got a table without rows, expected one for each review")
    return frame


def _read_csv(content: bytes) -> pd.DataFrame:
    text = _decode(content)
    if not text.strip():
        raise ValueError("the file is empty, expected a line of column names and a row for each review")
    try:
        # the line of names is read as a row, since pandas would rename equal columns and take a surplus one for an index;
        # all cells are text, since it would take "NA" for a gap and "3.50" for 3.5
        cells = pd.read_csv(
            io.StringIO(text.rstrip("\r\n")), header=None, dtype=str, keep_default_na=False, skip_blank_lines=False
        )
    except pd.errors.ParserError as error:
        reason = str(error).rpartition("C error: ")[2].strip()
        raise ValueError(f"this is no table of comma-separated values: {reason}") from error
    names = [str(name).strip() for name in cells.iloc[0]]
    return pd.DataFrame(cells.to_numpy()[1:], columns=names)


def _decode(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"got byte 0x{error.object[error.start]:02x} in line {line}, which is not UTF-8; save the file as UTF-8"
        ) from error


def _read_parquet(content: bytes) -> pd.DataFrame:
    try:
        return pd.read_parquet(io.BytesIO(content))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise ValueError(f"this is no readable Parquet file: {error}") from error


READERS = {".csv": _read_csv, ".parquet": _read_parquet}


def text_column(frame: pd.DataFrame, name: str) -> list[str]:
    """The texts of a column. A row without text, or a cell that is no text, is a ValueError that names the first one.

    Rows count from 1, the line of column names left aside. Characters that show nothing are no text: see `tokenizer.is_blank`.
    """
    cells = _column(frame, name)
    blank = [row for row, cell in enumerate(cells, 1) if _is_blank(cell)]
    if blank:
        raise ValueError(
            f"column {name!r}: {len(blank)} of {len(cells)} rows have no text, the first is row {blank[0]}: remove or fill them"
        )
    texts = [cell for cell in cells if isinstance(cell, str)]
    if len(texts) < len(cells):
        row = next(row for row, cell in enumerate(cells, 1) if not isinstance(cell, str))
        raise ValueError(f"column {name!r}: got {reprlib.repr(cells[row - 1])} in row {row}, expected text")
    return texts


def labelled(frame: pd.DataFrame, text_name: str, label_name: str, label_names: tuple[str, ...] | None, name: str) -> Reviews:
    """The reviews of a table with their classes.

    Labels are whole numbers from 0, also as text. For a model that knows its `label_names`, these are labels too, whatever
    their case, and a table may hold one class only; without, at least two classes and no gap are expected. Anything else is
    a ValueError.
    """
    texts = text_column(frame, text_name)
    labels = _classes(_column(frame, label_name), label_name, label_names)
    return Reviews(name=name, texts=texts, labels=labels, label_names=label_names or _names_of(labels, label_name))


def _column(frame: pd.DataFrame, name: str) -> list[object]:
    found = [str(column) for column in frame.columns]
    if found.count(name) != 1:
        problem = f"{found.count(name)} columns have this name" if name in found else "there is no such column"
        raise ValueError(f"column {name!r}: {problem}; the table has {', '.join(map(reprlib.repr, found))}")
    return frame.iloc[:, found.index(name)].tolist()


def _is_blank(cell: object) -> bool:
    if isinstance(cell, str):
        return tokenizer.is_blank(cell)
    return cell is None or cell is pd.NA or isinstance(cell, float) and cell != cell


def _classes(cells: list[object], column: str, label_names: tuple[str, ...] | None) -> list[int]:
    known = {name.strip().casefold(): i for i, name in enumerate(label_names or ())}
    classes = []
    for row, cell in enumerate(cells, 1):
        text = str(cell).strip().casefold()
        number = int(float(text)) if re.fullmatch(r"[0-9]{1,9}(\.0*)?", text) else None
        label = known.get(text, number)
        if label is None or label_names and label >= len(label_names):
            got = "no label" if _is_blank(cell) else reprlib.repr(cell)
            expected = f"one of {', '.join(label_names)}, or its number from 0" if label_names else "a whole number from 0"
            raise ValueError(f"column {column!r}: got {got} in row {row}, expected {expected}")
        classes.append(label)
    return classes


def _names_of(labels: list[int], column: str) -> tuple[str, ...]:
    found = set(labels)
    if len(found) < 2:
        raise ValueError(f"column {column!r}: it holds only {labels[0]}, expected at least two classes")
    absent = next((i for i in range(max(found)) if i not in found), None)
    if absent is not None:
        raise ValueError(f"column {column!r}: the classes go up to {max(found)} but none is {absent}; number them 0, 1, ...")
    return ("negative", "positive") if len(found) == 2 else tuple(f"class {i}" for i in sorted(found))
