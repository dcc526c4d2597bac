"""Cells of `core.measure`: peak memory, predicted and measured; time by length; and training steps by kernel and batch."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from benchmarks.suite import Setting
from core.config import SweepConfig
from core.events import CellMeasured
from core.measure import sweep
from core.measure.tables import in_units, memory_table, time_table
from core.recorded import Column, Table
from core.records import Cell

REVIEWS = 512
BATCHES = (1, 16, 32)
WHAT = ("forward", "backward", "step")


def memory(setting: Setting) -> Iterator[Table]:
    """Table "memory", anew with each cell."""
    yield from _growing(_memory_cells(setting), "memory", memory_table)


def times(setting: Setting) -> Iterator[Table]:
    """Table "time by length", anew with each cell."""
    yield from _growing(sweep.cells(_lengths(setting, cpu=(128, 256, 512, 1024, 2048))), "speed", time_table)


def _growing(cells: Sequence[Cell], kind: str, table: Callable[[Sequence[CellMeasured]], Table]) -> Iterator[Table]:
    measured: list[CellMeasured] = []
    for cell in cells:
        measured.append(sweep.measured(cell, (kind,)))
        yield table(measured)


def _memory_cells(setting: Setting) -> list[Cell]:
    """What the page Memory measures if nothing else is chosen, and longer, in each of the three ways to run it."""
    config = _lengths(setting, cpu=(128, 256, 512, 1024, 2048, 4096))
    ways = ("backward",) if setting.quick else ("backward", "step") if setting.device == "cuda" else WHAT
    return [cell for what in ways for cell in sweep.cells(replace(config, what=what))]


def _lengths(setting: Setting, cpu: tuple[int, ...]) -> SweepConfig:
    """On a GPU few lengths, since each cell starts a process."""
    if setting.quick:
        return SweepConfig(backends=("eager",), lengths=(512,), device=setting.device)
    if setting.device == "cuda":
        return SweepConfig(backends=("eager", "sdpa"), lengths=(1024, 4096), dtype="bfloat16", device="cuda")
    return SweepConfig(networks=("encoder", "bilstm"), backends=("eager", "sdpa", "chunked"), lengths=cpu, device="cpu")


def steps(setting: Setting) -> Iterator[Table]:
    """Table "steps", anew with each cell."""
    measured: list[CellMeasured] = []
    for cell in _step_cells(setting):
        measured.append(sweep.measured(cell, ("speed",)))
        yield _step_table(measured)


def _step_cells(setting: Setting) -> list[Cell]:
    encoder = SweepConfig(
        backends=("eager", "sdpa") if setting.device == "cuda" else ("eager", "sdpa", "chunked"),
        lengths=(32 if setting.quick else 256,), batches=BATCHES, what="step", n_layers=3, dtype="mixed", device=setting.device,
    )  # fmt: skip
    if setting.quick:
        encoder = replace(encoder, n_layers=1, d_head=8, backends=("eager",))
    return sweep.cells(encoder) + sweep.cells(replace(encoder, networks=("bilstm",), n_layers=1))


def _step_table(measured: Iterable[CellMeasured]) -> Table:
    return Table(
        name="steps",
        caption=(
            f"Seconds to train on {REVIEWS} reviews, from the time of one step (forward, backward, clipping, AdamW) on random "
            "reviews of equal length, without padding and dropout: encoder of 3 layers of 256, BiLSTM of one layer of 256 each "
            "way, 16,384 words, float32 weights under autocast to bfloat16. Each cell in a process of its own."
        ),
        columns=(
            Column(name="network"), Column(name="backend"), Column(name="batch"), Column(name="length", unit="tokens"),
            Column(name="step", unit="ms"), Column(name="spread", unit="ms"), Column(name=f"{REVIEWS} reviews", unit="s"),
            Column(name="kernel"),
        ),
        rows=tuple(
            (each.network, each.backend, each.batch, each.length, in_units(each.median_s, 1e-3), in_units(each.spread_s, 1e-3),
             in_units(each.median_s, each.batch / REVIEWS), each.why_not or each.kernel)
            for each in measured
        ),
    )  # fmt: skip
