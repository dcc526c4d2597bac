"""Text between delimiters (RFC 4180 and its relatives): which delimiter, which quotes, a line of names or none."""

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass

from core.data.columns import is_known
from core.data.labels import number

DELIMITERS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "vertical bars"}
_NO_DELIMITER = "\x1f"  # stands in no text that people write
_EXCEL_HINT = re.compile(r"sep=([,;\t|])\r?\n")
_LONG = 60  # characters; a column's name is shorter

csv.field_size_limit(2**31 - 1)  # the module's own limit of 128 KiB is below what a review may have


@dataclass(frozen=True, kw_only=True)
class Delimited:
    """Names and cells, all as typed, and what was assumed about their form."""

    names: list[str]
    rows: list[list[str]]
    assumed: list[str]


def parse(text: str, likely: str = ",") -> Delimited:
    """The cells of a text; of delimiters that fit equally well `likely` is taken.

    A text without a character, rows longer than the first one and quotation marks that do not pair are a ValueError.
    """
    if not text.strip():
        raise ValueError("the file is empty, expected a line of column names and a row for each review")
    hint = _EXCEL_HINT.match(text)
    body = text[hint.end() :] if hint else text
    lines, assumed = _lines(body.strip("\r\n"), hint[1] if hint else None, likely)
    if _lacks_names(lines):
        names, rows = [f"column {place}" for place in range(1, len(lines[0]) + 1)], lines
        assumed += ["the first line is a row, so the columns are called by their place"]
    else:
        names, rows = [name.strip() for name in lines[0]], lines[1:]
        assumed += ["the first line holds the column names"]
    cells, padded = _rectangular(rows, len(names))
    return Delimited(names=names, rows=cells, assumed=assumed + padded)


def _lines(text: str, given: str | None, likely: str) -> tuple[list[list[str]], list[str]]:
    """The text in cells by the delimiter that cuts most rows into as many cells as the first one."""
    first = text.splitlines()[0]
    found = [delimiter for delimiter in sorted(DELIMITERS, key=lambda d: d != likely) if delimiter in first]
    candidates = [given] if given else found or [_NO_DELIMITER]
    fits, failures = {}, []
    for delimiter in candidates:
        try:
            fits[delimiter] = _cells(text, delimiter)
        except ValueError as error:
            failures.append(error)
    if fits:
        best = max(fits, key=lambda delimiter: _regularity(fits[delimiter]))
        return fits[best], [_between(best)]
    for delimiter in candidates:
        cells = _cells(text, delimiter, quoted=False)
        if _regularity(cells) == 1:
            return cells, [_between(delimiter), "quotation marks are part of the cells, since they do not pair"]
    raise failures[0]


def _between(delimiter: str) -> str:
    return f"{DELIMITERS[delimiter]} between columns" if delimiter in DELIMITERS else "one column"


def _cells(text: str, delimiter: str, quoted: bool = True) -> list[list[str]]:
    quoting = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quoting=quoting, strict=True)
    try:
        return list(reader)
    except csv.Error as error:
        open_quote = "unexpected end" in str(error)
        problem = "a quotation mark is never closed" if open_quote else "a cell goes on after its closing quotation mark"
        raise ValueError(
            f"line {reader.line_num}: {problem}; quote a cell whole and double the quotation marks inside it"
        ) from error


def _regularity(rows: Sequence[Sequence[str]]) -> float:
    """Share of the rows, blank ones aside, that have as many cells as the first."""
    widths = [len(row) for row in rows if row]
    return widths.count(widths[0]) / len(widths)


def _lacks_names(lines: list[list[str]]) -> bool:
    """Whether the first line reads as one more row: a long text, a number above numbers, or a value that comes again."""
    first = [cell.strip() for cell in lines[0]]
    if any(map(is_known, first)) or first == [str(i) for i in range(len(first))]:
        return False
    below = [[row[i].strip() for row in lines[1:] if i < len(row)] for i in range(len(first))]
    return any(_is_value(cell, column) for cell, column in zip(first, below, strict=True) if cell)


def _is_value(cell: str, below: Sequence[str]) -> bool:
    filled = [other for other in below if other]
    numbers = number(cell) is not None and sum(number(other) is not None for other in filled) > 0.9 * len(filled)
    return len(cell) > _LONG or bool(filled) and numbers or cell in filled


def _rectangular(rows: list[list[str]], width: int) -> tuple[list[list[str]], list[str]]:
    for place, row in enumerate(rows, 1):
        if len(row) > width:
            raise ValueError(
                f"row {place} has {len(row)} cells, expected {width}; put quotation marks around cells that hold the delimiter"
            )
    short = [place for place, row in enumerate(rows, 1) if 0 < len(row) < width]  # an empty line is no broken row
    n = f"{len(short):,} of {len(rows):,} rows"
    said = [f"cells missing at the end of a row are empty: {n}, the first is row {short[0]}"] if short else []
    return [row + [""] * (width - len(row)) for row in rows], said
