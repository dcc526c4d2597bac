"""Cells measured one after the other, memory first and then time, each in a process of its own. No torch here."""

import itertools
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from core.catalog import BACKENDS
from core.config import SweepConfig
from core.curves import last
from core.events import Cancelled, Ceilings, CellMeasured, Event
from core.jobs import Ended, Stopped, device_of, patient
from core.measure.others import disturbance
from core.measure.predict import not_understood
from core.measure.process import in_process, too_large
from core.records import Cell

NOTHING: dict[str, Any] = {
    "peak_bytes": None, "source": None, "live_bytes": None, "reserved_bytes": None,
    "median_s": None, "spread_s": None, "attention_s": None, "others": None, "n_repeats": 0, "kernel": None, "hardware": None,
}  # fmt: skip
KINDS = ("memory", "speed")
MOST_BILSTM_LAYERS = 2
FLOPS_PER_S = {"cpu": 3e10, "cuda": 1e13}
"""What one may count on; only for an estimate of how long a sweep takes."""
START_S = 3.0
"""Seconds until a process has imported PyTorch."""
POSSIBLE = {
    "peak_bytes": (1, 2**50), "live_bytes": (0, 2**50), "reserved_bytes": (0, 2**50), "n_repeats": (0, 10**6),
    "median_s": (1e-9, 1e6), "spread_s": (0.0, 1e6), "attention_s": (1e-9, 1e6), "others": (0.0, 1.0), "elapsed_s": (0.0, 1e6),
}  # fmt: skip
"""From where to where a figure can lie, on any machine: others stand in a file that was damaged or written by hand."""
MOST_A_SECOND = 1e20
"""Of operations or bytes, on any machine."""
RUNS = 10
"""Of a cell: two for its memory, two to warm up, five or more timed, one for the profiler."""


def cells(config: SweepConfig) -> list[Cell]:
    """What a sweep measures, from the shortest to the longest. ValueError for a backend that the catalogue lacks."""
    for name in config.backends:
        if name not in BACKENDS:
            raise ValueError(f"backends: got {name!r}, expected one of {', '.join(BACKENDS)}")
    sizes = sorted(itertools.product(config.lengths, config.batches))
    return [cell(config, backend, length, batch) for length, batch in sizes for backend in contenders(config)]


def contenders(config: SweepConfig) -> list[str | None]:
    """What a sweep compares: the encoder's backends, and None for the BiLSTM."""
    return [*(config.backends if "encoder" in config.networks else ()), *([None] if "bilstm" in config.networks else ())]


def cell(config: SweepConfig, backend: str | None, length: int, batch: int | None = None) -> Cell:
    """One cell of a sweep's shape, of the BiLSTM without a backend; of the sweep's first batch if none is named."""
    return Cell(
        network="bilstm" if backend is None else "encoder", backend=backend, what=config.what,
        batch=config.batches[0] if batch is None else batch, length=length, n_heads=config.n_heads, d_head=config.d_head,
        n_layers=config.n_layers, dtype=config.dtype, checkpointing=config.checkpointing, device=device_of(config.device),
    )  # fmt: skip


def impossible(cell: Cell) -> str | None:
    """Why a cell cannot be run at all; None if it can."""
    if cell.backend is None:
        return _impossible_bilstm(cell)
    dtype = "bfloat16" if cell.dtype == "mixed" else cell.dtype
    return BACKENDS[cell.backend].why_not(device=cell.device, dtype=dtype, gradients=cell.what != "forward")


def _impossible_bilstm(cell: Cell) -> str | None:
    if cell.n_layers > MOST_BILSTM_LAYERS:
        return f"a BiLSTM has 1 to {MOST_BILSTM_LAYERS} layers here, not {cell.n_layers}"
    return "a BiLSTM does not compute its activations again; measure it without checkpointing" if cell.checkpointing else None


def sweep(config: SweepConfig, emit: Callable[[Event], None], stopped: Callable[[], bool], said: Sequence[Event] = ()) -> None:
    """Measures what the machine can do, then each cell, but for what was `said` before, and emits it.

    A cell that could not be measured before is tried again. Ends with Cancelled a fraction of a second after `stopped` says
    so, and raises Ended where the system asks the process to end.
    """
    every = cells(config)
    known = {event.cell for event in sound(config, said)[0] if event.why_not is None}
    with patient() as asked_to_end:

        def over() -> bool:
            return stopped() or asked_to_end()

        try:
            if not any(isinstance(event, Ceilings) for event in said) and not over():
                with suppress(ValueError, MemoryError):  # without the device, each cell says why
                    emit(ceilings(every[0], over))
            for each in (cell for cell in every if cell not in known):
                if over():
                    raise Stopped
                emit(measured(each, stopped=over))
        except Stopped as error:
            if asked_to_end():
                raise Ended("the system asked it to end; what is measured is kept") from error
            emit(Cancelled())


def by_cell(events: Iterable[Event]) -> dict[Cell, CellMeasured]:
    """What was found of each cell, the last time that it was measured."""
    return {event.cell: event for event in events if isinstance(event, CellMeasured)}


def sound(config: SweepConfig, events: Iterable[Event]) -> tuple[list[CellMeasured], list[str]]:
    """What a sweep found of each of its cells, the last time; and the names of those with figures that no machine has."""
    asked = {replace(each, device="") for each in cells(config)}
    found, left_out = [], []
    for event in by_cell(events).values():
        wrong = [f"{name} {value:g}" for name, (least, most) in POSSIBLE.items()
                 if (value := getattr(event, name)) is not None and not least <= value <= most]  # fmt: skip
        if event.device not in FLOPS_PER_S or replace(event.cell, device="") not in asked:
            wrong.append("no cell of this sweep")
        if wrong:
            left_out.append(f"{event.label} at {event.length:,} tokens, batch {event.batch:,} ({', '.join(wrong)})")
        else:
            found.append(event)
    return found, left_out


def reached(events: Sequence[Event]) -> Ceilings | None:
    """What the machine of a sweep reaches at its most; None where that was not measured, or is what no machine reaches."""
    found = last(events, Ceilings)
    possible = found and all(1 <= rate <= MOST_A_SECOND for rate in (found.operations_per_s, found.bytes_per_s))
    return found if possible else None


def remarks(event: CellMeasured) -> list[str]:
    """Why a figure of a cell is missing or says nothing, sentences without full stop."""
    disturbed = disturbance(event)
    said = (event.why_not, not_understood(event.cell), disturbed and f"no verdict on its time: {disturbed}")
    return [sentence for sentence in said if sentence]


def ceilings(cell: Cell, stopped: Callable[[], bool] = lambda: False) -> Ceilings:
    """What the machine reaches at its most on a cell's device and in its format. ValueError without the device."""
    return Ceilings(**in_process("ceilings", cell, stopped))


def measured(cell: Cell, kinds: tuple[str, ...] = KINDS, stopped: Callable[[], bool] = lambda: False) -> CellMeasured:
    """A cell and its figures; what cannot be measured is a result, too, and says why. Stopped if `stopped` says so."""
    found, reasons, start = dict(NOTHING), [], time.monotonic()
    if (reason := impossible(cell) or too_large(cell)) is not None:
        reasons.append(reason)
        kinds = ()
    for kind in kinds:
        try:
            found |= in_process(kind, cell, stopped)
        except MemoryError as error:
            reasons.append(str(error))
            break  # nor would it fit for its time
        except ValueError as error:
            reasons.append(str(error))
    why_not = "; ".join(dict.fromkeys(reasons)) or None
    return CellMeasured(**vars(cell), **found, elapsed_s=time.monotonic() - start, why_not=why_not)


def estimated_s(config: SweepConfig) -> float:
    """About how many seconds a sweep takes on a quiet machine, from its operations; what cannot run or fit takes none."""
    return left_s(config, [])


def left_s(config: SweepConfig, found: Collection[CellMeasured]) -> float:
    """About how many seconds a sweep still takes: as estimated, and at the pace of the cells that have been found."""
    took = [(event.elapsed_s, _estimated_s(event.cell)) for event in found if event.elapsed_s and event.median_s]
    pace = sum(seconds for seconds, _ in took) / sum(expected for _, expected in took) if took else 1.0
    done = {event.cell for event in found}
    left = [each for each in cells(config) if each not in done and not (impossible(each) or too_large(each))]
    return pace * sum(map(_estimated_s, left), 0.0)


def _estimated_s(cell: Cell) -> float:
    d_model = cell.n_heads * cell.d_head
    per_token = 24 * d_model**2 + 4 * cell.length * d_model  # two for each product and sum; about as many in a BiLSTM
    passes = 1 if cell.what == "forward" else 3
    operations = RUNS * passes * cell.n_layers * cell.batch * cell.length * per_token
    return len(KINDS) * START_S + operations / FLOPS_PER_S[cell.device]
