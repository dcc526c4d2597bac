"""Cells as tables of recorded results, and such tables read back, cell by cell. No torch here."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from core.config import LARGEST_BATCH, LONGEST, SweepConfig
from core.events import CellMeasured
from core.figures.labels import count
from core.measure.others import MOST
from core.measure.predict import peak_bytes
from core.recorded import Column, Recorded, Table, Value
from core.records import Cell

MEMORY, TIME = "memory", "time by length"
"""What the tables are called."""
FIGURES = {MEMORY: ("measured peak", 2**20), TIME: ("time", 1e-3)}
"""The column of each that a chart shows, and its unit in bytes or seconds."""
LARGE = 2**26
"""Bytes of a cell from which its prediction is held to its peak."""
CELL = (
    Column(name="kernel"), Column(name="what"), Column(name="length", unit="tokens"), Column(name="batch"),
    Column(name="shape"),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Point:
    """A figure of one cell that was recorded, here or elsewhere."""

    label: str
    """The attention kernel, or the network where it has none."""
    what: str
    length: int
    batch: int
    shape: str
    value: float
    """Bytes, or seconds."""
    hardware: str
    date: str


def shape(cell: Cell | SweepConfig) -> str:
    """What all cells of a sweep have in common, as in "8 × 32, 1 layer, float32": heads and their size, layers, format."""
    layers = count(cell.n_layers, "layer")
    return f"{cell.n_heads} × {cell.d_head}, {layers}, {cell.dtype}{', checkpointing' if cell.checkpointing else ''}"


def memory_table(measured: Sequence[CellMeasured]) -> Table:
    """The peaks of these cells, predicted and measured."""
    return Table(
        name=MEMORY,
        caption=(
            "Peak memory of forward passes, of forward and backward passes and of whole training steps of a classifier, each "
            "cell in a process of its own, which counts what it takes itself: what else the machine does changes no figure. "
            "Shape: heads and their size, layers, format of numbers; the BiLSTM is as wide as the encoder. Predictions are "
            "held to peaks of 64 MiB and more."
        ),
        columns=(
            *CELL, Column(name="predicted peak", unit="MiB"), Column(name="measured peak", unit="MiB"),
            Column(name="prediction off by", unit="%"), Column(name="operator"),
        ),
        rows=tuple(map(_memory_row, measured)),
    )  # fmt: skip


def _memory_row(each: CellMeasured) -> tuple[Value, ...]:
    predicted, peak = peak_bytes(each.cell), each.peak_bytes
    off = 100 * abs(predicted / peak - 1) if predicted and peak and peak >= LARGE else None
    return (*_cell(each), in_units(predicted, 2**20), in_units(peak, 2**20), off, each.why_not or each.kernel)


def time_table(measured: Sequence[CellMeasured]) -> Table:
    """The times of these cells, of attention alone beside, and what others used of the machine meanwhile."""
    return Table(
        name=TIME,
        caption=(
            "Seconds of the same cells, each in a process of its own: median, and the distance from the fastest run to the "
            "slowest. Attention alone: the kernel on queries, keys and values of the cell's shape, without the layers around. "
            f"Where others used more than {100 * MOST:.0f}% of the machine meanwhile, a time says nothing of the kernel."
        ),
        columns=(
            *CELL, Column(name="time", unit="ms"), Column(name="spread", unit="ms"),
            Column(name="attention alone", unit="ms"), Column(name="others used", unit="%"), Column(name="operator"),
        ),
        rows=tuple(
            (*_cell(each), in_units(each.median_s, 1e-3), in_units(each.spread_s, 1e-3), in_units(each.attention_s, 1e-3),
             in_units(each.others, 1e-2), each.why_not or each.kernel)
            for each in measured
        ),
    )  # fmt: skip


def points(results: Iterable[Recorded], name: str) -> list[Point]:
    """What the tables of that name hold of each cell, of each hardware the first that is given.

    Passed over are tables and rows that are not of cells, and times from a machine that others used, too.
    """
    found: dict[tuple[str, ...], Point] = {}
    for one in results:
        for row in _rows(one, name):
            if (point := _point(row, name, one)) is not None:
                key = (point.hardware, point.label, point.what, str(point.length), str(point.batch), point.shape)
                found.setdefault(key, point)
    return list(found.values())


def _rows(one: Recorded, name: str) -> Iterator[dict[str, Value]]:
    """Each by the names of its columns."""
    for table in one.tables:
        if table.name == name:
            yield from (dict(zip([column.name for column in table.columns], row, strict=True)) for row in table.rows)


def _point(row: dict[str, Value], name: str, one: Recorded) -> Point | None:
    column, unit = FIGURES[name]
    label, what, length, batch, shape = (row.get(column.name) for column in CELL)
    value, others = row.get(column), row.get("others used")
    if not isinstance(label, str) or not isinstance(what, str) or not isinstance(shape, str):
        return None
    if not isinstance(length, int) or not isinstance(batch, int) or not isinstance(value, int | float):
        return None
    if not (1 <= length <= LONGEST and 1 <= batch <= LARGEST_BATCH and value > 0):
        return None
    if isinstance(others, int | float) and others > 100 * MOST:
        return None
    return Point(
        label=label,
        what=what,
        length=length,
        batch=batch,
        shape=shape,
        value=value * unit,
        hardware=one.hardware,
        date=one.date,
    )


def _cell(each: CellMeasured) -> tuple[Value, ...]:
    return (each.label, each.what, each.length, each.batch, shape(each.cell))


def in_units(value: float | int | None, unit: float | int) -> float | None:
    """A figure in units of so many bytes or seconds."""
    return None if value is None else value / unit
