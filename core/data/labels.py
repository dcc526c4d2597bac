"""Labels as people write them, and the classes they stand for."""

import re
import reprlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

MAX_CLASSES = 100
_NUMBER = re.compile(r"[+-]?[0-9]{1,12}(\.[0-9]{0,12})?")
_NO_LABEL = {"", "nan", "null", "<na>", "#n/a"}
_SPELLINGS_SHOWN = 5


def number(text: str) -> Decimal | None:
    """The value of a plain decimal number; None for any other text."""
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def label_key(cell: object) -> str | None:
    """What labels of one class share; None for a cell without a label.

    Spaces around it and case do not matter, and numbers count by value: 1, 1.0 and "1" are one class.
    """
    text = "" if cell is None else str(cell).strip().casefold()
    value = number(text)
    if value is not None:
        return f"{value.normalize():f}" if value else "0"
    return None if text in _NO_LABEL else text


@dataclass(frozen=True, kw_only=True)
class Classes:
    """The class of each cell, what the classes are called, and sentences on labels that were taken for one."""

    labels: list[int]
    names: tuple[str, ...]
    said: list[str]


def find_classes(cells: Sequence[object], column: str) -> Classes:
    """The classes of cells that all have a label: numbers in their order, words by name.

    Of several spellings the most frequent one is the name, and 0 and 1 alone are "negative" and "positive". Fewer than two
    classes or more than `MAX_CLASSES` are a ValueError that names the column.
    """
    keys = [label_key(cell) or "" for cell in cells]
    spellings: dict[str, Counter[str]] = defaultdict(Counter)
    for key, cell in zip(keys, cells, strict=True):
        spellings[key][str(cell)] += 1
    _refuse_odd_count(spellings, len(cells), column)
    ordered = _ordered(spellings)
    names = {key: key if number(key) is not None else _most_frequent(spellings[key]) for key in ordered}
    if ordered == ["0", "1"]:
        names = {"0": "negative", "1": "positive"}
    place = {key: i for i, key in enumerate(ordered)}
    said = [_merged(spellings[key], names[key]) for key in ordered if len(spellings[key]) > 1]
    return Classes(labels=[place[key] for key in keys], names=tuple(names.values()), said=said)


def known_classes(cells: Sequence[object], names: Sequence[str]) -> list[int | None]:
    """The class of each cell among those a model knows, by name or by number from 0; None for any other label.

    Where a name is a number itself, as with stars, only names count.
    """
    by_name = {label_key(name): i for i, name in enumerate(names)}
    by_place = {} if any(number(name) is not None for name in names) else {str(i): i for i in range(len(names))}
    places = by_place | by_name
    return [None if (key := label_key(cell)) is None else places.get(key) for cell in cells]


def _refuse_odd_count(spellings: dict[str, Counter[str]], n: int, column: str) -> None:
    if len(spellings) < 2:
        only = f"it holds only {reprlib.repr(next(iter(spellings)))}" if spellings else "it holds no label"
        raise ValueError(f"column {column!r}: {only}, expected at least two classes")
    if len(spellings) > MAX_CLASSES:
        raise ValueError(
            f"column {column!r}: got {len(spellings):,} different labels in {n:,} rows, expected 2 to {MAX_CLASSES} classes; "
            f"is this the column of labels?"
        )


def _ordered(keys: Sequence[str] | dict[str, Counter[str]]) -> list[str]:
    values = {key: number(key) for key in keys}
    if None in values.values():
        return sorted(values)
    return sorted(values, key=lambda key: values[key] or 0)


def _most_frequent(spellings: Counter[str]) -> str:
    stripped: Counter[str] = Counter()
    for spelling, n in spellings.items():
        stripped[spelling.strip()] += n
    return stripped.most_common(1)[0][0]


def _merged(spellings: Counter[str], name: str) -> str:
    shown = [reprlib.repr(spelling) for spelling, _ in spellings.most_common(_SPELLINGS_SHOWN)]
    more = f" and {len(spellings) - len(shown)} more" if len(spellings) > len(shown) else ""
    return f"the labels {', '.join(shown)}{more} are one class, {reprlib.repr(name)}"
