"""Cells of `core.measure`: peak memory, predicted and measured, with time; and training steps by kernel and batch."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from benchmarks.suite import Setting
from core.config import SweepConfig
from core.measure import sweep
from core.measure.predict import peak_bytes
from core.recorded import Column, Table, Value
from core.records import Cell, CellMeasured

REVIEWS = 512
BATCHES = (1, 16, 32)
LARGE = 2**26
"""Bytes of a cell from which its prediction is held to its peak."""


def memory(setting: Setting) -> Iterator[Table]:
    """Table "memory", anew with each length."""
    cuda = setting.device == "cuda"
    config = SweepConfig(
        backends=("eager", "sdpa") if cuda else ("eager", "sdpa", "chunked"),
        lengths=(1024, 4096) if cuda else (128, 256, 512, 1024, 2048),
        dtype="bfloat16" if cuda else "float32",
        device=setting.device,
    )
    if setting.quick:
        config = replace(config, lengths=(512,), backends=("eager",))
    yield from _growing(memory_table(config, []), sweep.cells(config), config)


def _growing(empty: Table, cells: Sequence[Cell], config: SweepConfig) -> Iterator[Table]:
    measured: list[CellMeasured] = []
    for cell in cells:
        measured.append(sweep.measured(cell))
        yield memory_table(config, measured)


def memory_table(config: SweepConfig, measured: Iterable[CellMeasured]) -> Table:
    """The cells measured so far."""
    return Table(
        name="memory",
        caption=(
            f"One encoder layer of {config.n_heads} heads of {config.d_head}, batch {config.batches[0]}, {config.dtype}, "
            "forward and backward, each cell in a process of its own. Time is the median, spread the distance from the fastest "
            "run to the slowest. Predictions are held to peaks of 64 MiB and more."
        ),
        columns=(
            Column(name="backend"), Column(name="length", unit="tokens"), Column(name="predicted peak", unit="MiB"),
            Column(name="measured peak", unit="MiB"), Column(name="prediction off by", unit="%"),
            Column(name="time", unit="ms"), Column(name="spread", unit="ms"), Column(name="kernel"),
        ),
        rows=tuple(_memory_row(each) for each in measured),
    )  # fmt: skip


def _memory_row(each: CellMeasured) -> tuple[Value, ...]:
    predicted, peak = peak_bytes(each.cell), each.peak_bytes
    off = 100 * abs(predicted / peak - 1) if predicted and peak and peak >= LARGE else None
    return (
        each.backend, each.length, _in(predicted, 2**20), _in(peak, 2**20), off, _in(each.median_s, 1e-3),
        _in(each.spread_s, 1e-3), each.why_not or each.kernel,
    )  # fmt: skip


def _in(value: float | None, unit: float) -> float | None:
    return None if value is None else value / unit


def steps(setting: Setting) -> Iterator[Table]:
    """Table "steps", anew with each cell."""
    measured: list[CellMeasured] = []
    for cell in _step_cells(setting):
        measured.append(sweep.measured(cell, ("speed",)))
        yield _step_table(setting, measured)


def _step_cells(setting: Setting) -> list[Cell]:
    encoder = SweepConfig(
        backends=("eager", "sdpa") if setting.device == "cuda" else ("eager", "sdpa", "chunked"),
        lengths=(32 if setting.quick else 256,), batches=BATCHES, what="step", n_layers=3, dtype="mixed", device=setting.device,
    )  # fmt: skip
    if setting.quick:
        encoder = replace(encoder, n_layers=1, d_head=8, backends=("eager",))
    return sweep.cells(encoder) + sweep.cells(replace(encoder, networks=("bilstm",), n_layers=1))


def _step_table(setting: Setting, measured: Iterable[CellMeasured]) -> Table:
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
            (each.network, each.backend, each.batch, each.length, _in(each.median_s, 1e-3), _in(each.spread_s, 1e-3),
             _in(each.median_s, each.batch / REVIEWS), each.why_not or each.kernel)
            for each in measured
        ),
    )  # fmt: skip
