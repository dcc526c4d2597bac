"""Labelled tables as files."""

import io
from collections.abc import Callable, Sequence

import pandas as pd
import pyarrow as pa

from core.data.labels import number

SPREADSHEETS = (".csv", ".tsv")
"""Formats that people open with Excel and its like."""
_BOM = b"\xef\xbb\xbf"


def free_name(name: str, frame: pd.DataFrame) -> str:
    """`name`, or with `predicted_` before it, as often as it takes, where the table has such a column already."""
    return free_name(f"predicted_{name}", frame) if name in frame.columns else name


def inert(cells: Sequence[str | None]) -> list[str | None]:
    """Texts that we put into a table, so that no spreadsheet takes one for a formula.

    Excel and its like calculate a cell of a CSV file that begins with =, +, -, @, a tab or a carriage return, quoted or not
    (OWASP, CSV injection). Such a text gets an apostrophe before it, except a plain number: -1 is a fine label. A person's
    own cells are never given to this: their file has them already, and a table must come back as it was.
    """
    return [f"'{cell}" if cell and cell[0] in "=+-@\t\r" and number(cell) is None else cell for cell in cells]


def rendered(frame: pd.DataFrame, suffix: str) -> bytes:
    """The bytes of a file of that format. ValueError if it cannot hold the table."""
    try:
        return WRITERS[suffix](frame)
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise ValueError(f"a {suffix} file cannot hold this table: {error}") from error


def csv_for_excel(frame: pd.DataFrame) -> bytes:
    """CSV with the mark by which Excel knows UTF-8."""
    return _BOM + _csv(frame)


def _csv(frame: pd.DataFrame, delimiter: str = ",") -> bytes:
    """As RFC 4180: with line ends of two characters, the cells that hold either of them are quoted."""
    return frame.to_csv(index=any(frame.index.names), sep=delimiter, lineterminator="\r\n").encode()


def _tsv(frame: pd.DataFrame) -> bytes:
    return _csv(frame, "\t")


def _jsonl(frame: pd.DataFrame) -> bytes:
    """An object a line. Numbers that were read as they were typed are written as texts."""
    plain = frame.reset_index() if any(frame.index.names) else frame
    buffer = io.BytesIO()
    plain.to_json(buffer, orient="records", lines=True, force_ascii=False, double_precision=15, date_format="iso")
    return buffer.getvalue()


def _parquet(frame: pd.DataFrame) -> bytes:
    return frame.to_parquet()


WRITERS: dict[str, Callable[[pd.DataFrame], bytes]] = {
    ".csv": _csv,
    ".tsv": _tsv,
    ".jsonl": _jsonl,
    ".ndjson": _jsonl,
    ".parquet": _parquet,
}
