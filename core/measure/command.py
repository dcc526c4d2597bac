"""The verb `measure` of the command line."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from core.catalog import BACKENDS
from core.config import SweepConfig
from core.jobs import hold
from core.measure import sweep as sweeps
from core.measure.predict import peak_bytes
from core.records import CellMeasured, Event

DEFAULT = SweepConfig()
Backend = Annotated[str, tyro.conf.arg(help=f"Attention kernel: {' or '.join(BACKENDS)}.")]
Length = Annotated[int, tyro.conf.arg(help="Tokens of each review.")]
Json = Annotated[bool, tyro.conf.arg(name="json", help="Print one JSON object for machines.")]


@dataclass(frozen=True, kw_only=True)
class Shape:
    """All of a cell but its backend and its length, by the names of its flags."""

    batch: int = DEFAULT.batch
    """Reviews at once."""
    heads: int = DEFAULT.n_heads
    d_head: int = DEFAULT.d_head
    """Size of a head; d_model is heads times this."""
    layers: int = DEFAULT.n_layers
    what: Literal["forward", "backward"] = DEFAULT.what
    """forward: without gradients; backward: forward and backward, as in training."""
    dtype: Literal["float32", "bfloat16"] = DEFAULT.dtype
    """Of weights and activations."""
    device: Literal["auto", "cpu", "cuda"] = DEFAULT.device

    def config(self, backends: str, lengths: str) -> SweepConfig:
        """The sweep of this shape over names and numbers with commas between."""
        return SweepConfig(
            backends=tuple(backends.split(",")), lengths=_numbers(lengths), what=self.what, batch=self.batch,
            n_heads=self.heads, d_head=self.d_head, n_layers=self.layers, dtype=self.dtype, device=self.device,
        )  # fmt: skip


ShapeFlags = Annotated[Shape, tyro.conf.arg(name="")]


def memory(backend: Backend = "sdpa", length: Length = 512, shape: ShapeFlags = Shape(), as_json: Json = False) -> None:
    """Predict and measure the peak memory of encoder layers at one length."""
    _one("memory", shape.config(backend, str(length)), as_json)


def speed(backend: Backend = "sdpa", length: Length = 512, shape: ShapeFlags = Shape(), as_json: Json = False) -> None:
    """Time encoder layers at one length, and say which kernel ran."""
    _one("speed", shape.config(backend, str(length)), as_json)


def sweep(
    out: Annotated[Path, tyro.conf.arg(help="Folder of the run: events.jsonl has each cell as it is measured.")],
    backends: Annotated[str, tyro.conf.arg(help="Attention kernels, with commas between.")] = ",".join(DEFAULT.backends),
    lengths: Annotated[str, tyro.conf.arg(help="Tokens, with commas between.")] = ",".join(map(str, DEFAULT.lengths)),
    shape: ShapeFlags = Shape(),
    as_json: Json = False,
) -> None:
    """Measure memory and time of several backends over lengths, as a run that has the device to itself."""
    config = shape.config(backends, lengths)
    cells = sweeps.cells(config)
    measured: list[CellMeasured] = []
    with hold(out, cells[0].device, config) as job:

        def emit(event: Event) -> None:
            job.emit(event)
            if isinstance(event, CellMeasured):
                measured.append(event)
                if not as_json:
                    print(_line(event), flush=True)

        sweeps.sweep(config, emit, job.stopped)
    if as_json:
        print(json.dumps({"cells": [_summary(event) for event in measured]}))
    elif len(measured) < len(cells):
        print(f"stopped after {len(measured)} of {len(cells)} cells")


def argv(config: SweepConfig) -> list[str]:
    """The command that measures this sweep, without its folder."""
    return [
        "measure", "sweep", "--backends", ",".join(config.backends), "--lengths", ",".join(map(str, config.lengths)),
        "--batch", str(config.batch), "--heads", str(config.n_heads), "--d-head", str(config.d_head),
        "--layers", str(config.n_layers), "--what", config.what, "--dtype", config.dtype, "--device", config.device,
    ]  # fmt: skip


def _numbers(text: str) -> tuple[int, ...]:
    """ValueError for what is no list of whole numbers."""
    try:
        return tuple(int(number) for number in text.split(","))
    except ValueError as error:
        raise ValueError(f"lengths: got {text!r}, expected whole numbers with commas between, such as 128,256") from error


def _one(kind: str, config: SweepConfig, as_json: bool) -> None:
    (cell,) = sweeps.cells(config)
    event = sweeps.measured(cell, (kind,))
    summary = _summary(event)
    print(json.dumps(summary) if as_json else _line(event))


def _summary(event: CellMeasured) -> dict[str, object]:
    values = vars(event).copy()
    measured = values.pop("peak_bytes")
    return values | {"predicted_bytes": peak_bytes(event.cell), "measured_bytes": measured}


def _line(event: CellMeasured) -> str:
    predicted = peak_bytes(event.cell)
    parts = [f"{event.backend} at {event.length} tokens"]
    if predicted is not None:
        parts.append(f"predicted {predicted / 2**20:.1f} MiB")
    if event.peak_bytes is not None:
        parts.append(f"measured {event.peak_bytes / 2**20:.1f} MiB ({event.source})")
    if event.median_s is not None and event.spread_s is not None:
        parts.append(f"{1e3 * event.median_s:.2f} ms (spread {1e3 * event.spread_s:.2f}, {event.n_repeats} runs)")
    parts += [event.kernel] if event.kernel else []
    return ", ".join([*parts, *([event.why_not] if event.why_not else [])])


def measure(
    what: Annotated[None, tyro.conf.subcommand(name="memory", constructor=memory)]
    | Annotated[None, tyro.conf.subcommand(name="speed", constructor=speed)]
    | Annotated[None, tyro.conf.subcommand(name="sweep", constructor=sweep)],
) -> None:
    """Measure memory and time of attention backends: memory, speed, sweep."""
