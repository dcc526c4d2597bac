"""The verb `measure` of the command line."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, cast, get_args

import tyro

from core.catalog import BACKENDS
from core.config import BackendsConfig, SweepConfig
from core.events import BackendMeasured, CellMeasured, Event
from core.flags import Json
from core.jobs import device_of, hold, tell, turn
from core.measure import sweep as sweeps
from core.measure.predict import peak_bytes
from core.records import Cell
from core.run_folder import read_events
from core.runs import runs_root

DEFAULT = SweepConfig()
FLAGS = {"n_heads": "--heads", "d_head": "--d-head", "n_layers": "--layers"}
"""Of the fields of a sweep; those of several values are called as they are."""
OF_SEVERAL = FLAGS | {name: f"--{name}" for name in ("networks", "backends", "lengths", "batches")}
OF_ONE = FLAGS | {"backends": "--backend", "lengths": "--length", "batches": "--batch"}
KERNEL = "sdpa"
"""Of an encoder, if none is named."""
Backend = Annotated[str | None, tyro.conf.arg(help=f"Attention kernel of an encoder: {' or '.join(BACKENDS)}; else {KERNEL}.")]
Length = Annotated[int, tyro.conf.arg(help="Tokens of each review.")]
Batch = Annotated[int, tyro.conf.arg(help="Reviews at once.")]
NetworkName = Literal["encoder", "bilstm"]
Network = Annotated[NetworkName, tyro.conf.arg(help="A BiLSTM has no attention kernel.")]


@dataclass(frozen=True, kw_only=True)
class Shape:
    """All of a cell but what a sweep takes several of, by the names of its flags."""

    heads: int = DEFAULT.n_heads
    d_head: int = DEFAULT.d_head
    """Size of a head; d_model is heads times this, and so are the hidden units of each direction of a BiLSTM."""
    layers: int = DEFAULT.n_layers
    what: Literal["forward", "backward", "step"] = DEFAULT.what
    """forward: layers without gradients; backward: forward and backward; step: of a whole classifier, with AdamW."""
    checkpointing: bool = DEFAULT.checkpointing
    """Compute a layer's activations again in the backward pass."""
    dtype: Literal["float32", "bfloat16", "mixed"] = DEFAULT.dtype
    """Of weights and activations; mixed: float32 weights, products in bfloat16, as in training."""
    device: Literal["auto", "cpu", "cuda"] = DEFAULT.device

    def config(self, networks: tuple[NetworkName, ...], backends: tuple[str, ...], **numbers: tuple[int, ...]) -> SweepConfig:
        """The sweep of this shape over these networks, backends, lengths and batches."""
        return SweepConfig(
            networks=networks, backends=backends, **numbers, what=self.what, checkpointing=self.checkpointing,
            n_heads=self.heads, d_head=self.d_head, n_layers=self.layers, dtype=self.dtype, device=self.device,
        )  # fmt: skip


ShapeFlags = Annotated[Shape, tyro.conf.arg(name="")]


def memory(
    network: Network = "encoder", backend: Backend = None, length: Length = 512, batch: Batch = 8,
    shape: ShapeFlags = Shape(), as_json: Json = False,
) -> None:  # fmt: skip
    """Predict and measure the peak memory of a network at one length."""
    _one("memory", _cell(shape, network, backend, length, batch), as_json)


def speed(
    network: Network = "encoder", backend: Backend = None, length: Length = 512, batch: Batch = 8,
    shape: ShapeFlags = Shape(), as_json: Json = False,
) -> None:  # fmt: skip
    """Time a network at one length, and say which kernel ran."""
    _one("speed", _cell(shape, network, backend, length, batch), as_json)


def sweep(
    out: Annotated[Path, tyro.conf.arg(help="Folder of the run: events.jsonl has each cell as it is measured.")],
    networks: Annotated[str, tyro.conf.arg(help="encoder, bilstm or encoder,bilstm.")] = ",".join(DEFAULT.networks),
    backends: Annotated[str, tyro.conf.arg(help="Attention kernels, with commas between.")] = ",".join(DEFAULT.backends),
    lengths: Annotated[str, tyro.conf.arg(help="Tokens, with commas between.")] = ",".join(map(str, DEFAULT.lengths)),
    batches: Annotated[str, tyro.conf.arg(help="Reviews at once, with commas between.")] = ",".join(map(str, DEFAULT.batches)),
    shape: ShapeFlags = Shape(),
    as_json: Json = False,
) -> None:
    """Measure memory and time of several backends over lengths, as a run that has the device to itself.

    Asked again with the same folder and flags, it goes on: what is measured already is not measured again.
    """
    with _named_by(OF_SEVERAL):
        config = shape.config(
            _networks(networks),
            tuple(backends.split(",")),
            lengths=_numbers("lengths", lengths),
            batches=_numbers("batches", batches),
        )
        cells = sweeps.cells(config)
    with hold(out, cells[0].device, config) as job:

        def emit(event: Event) -> None:
            job.emit(event)
            if isinstance(event, CellMeasured) and not as_json:
                print(_line(event), flush=True)

        sweeps.sweep(config, emit, job.stopped, said=read_events(job.folder)[0])
        found = sweeps.by_cell(read_events(job.folder)[0])
    if as_json:
        print(json.dumps({"cells": [_summary(found[cell]) for cell in cells if cell in found]}))
    elif len(found) < len(cells):
        print(f"stopped after {len(found)} of {len(cells)} cells; the same command goes on from there")


def argv(config: SweepConfig) -> list[str]:
    """The command that measures this sweep, without its folder."""
    return [
        "measure", "sweep", "--networks", ",".join(config.networks), "--backends", ",".join(config.backends),
        "--lengths", ",".join(map(str, config.lengths)), "--batches", ",".join(map(str, config.batches)),
        "--heads", str(config.n_heads), "--d-head", str(config.d_head), "--layers", str(config.n_layers),
        "--what", config.what, *(["--checkpointing"] if config.checkpointing else []),
        "--dtype", config.dtype, "--device", config.device,
    ]  # fmt: skip


def backends_argv(config: BackendsConfig) -> list[str]:
    """The command that sends a model through every backend, without its folder."""
    return ["measure", "backends", "--model", config.model, "--n", str(config.n), "--device", config.device]


def _networks(text: str) -> tuple[NetworkName, ...]:
    """ValueError for an unknown one."""
    names = text.split(",")
    if unknown := set(names) - set(get_args(NetworkName)):
        raise ValueError(f"networks: got {unknown.pop()!r}, expected one of {', '.join(get_args(NetworkName))}")
    return cast(tuple[NetworkName, ...], tuple(names))


def _numbers(knob: str, text: str) -> tuple[int, ...]:
    """ValueError for what is no list of whole numbers."""
    try:
        return tuple(int(number) for number in text.split(","))
    except ValueError as error:
        raise ValueError(f"{knob}: got {text!r}, expected whole numbers with commas between, such as 128,256") from error


@contextmanager
def _named_by(flags: Mapping[str, str]) -> Iterator[None]:
    """What refuses a field of the configuration names the flag instead, which is what a person wrote."""
    try:
        yield
    except ValueError as error:
        knob, colon, rest = str(error).partition(": ")
        raise ValueError(f"{flags.get(knob, knob)}{colon}{rest}") from error


def _cell(shape: Shape, network: NetworkName, backend: str | None, length: int, batch: int) -> Cell:
    """ValueError for one that cannot be run: where nothing else is asked for, this is no result."""
    if network == "bilstm" and backend is not None:
        raise ValueError(f"--backend: got {backend!r}, but a BiLSTM has no attention kernel; leave it out")
    with _named_by(OF_ONE):
        (cell,) = sweeps.cells(shape.config((network,), (backend or KERNEL,), lengths=(length,), batches=(batch,)))
    if (reason := sweeps.impossible(cell)) is not None:
        raise ValueError(f"{cell.label}: {reason}")
    return cell


def _one(kind: str, cell: Cell, as_json: bool) -> None:
    with turn(runs_root(), cell.device, tell):
        event = sweeps.measured(cell, (kind,))
    summary = _summary(event)
    print(json.dumps(summary) if as_json else _line(event))


def _summary(event: CellMeasured) -> dict[str, object]:
    values = vars(event).copy()
    measured = values.pop("peak_bytes")
    return values | {"predicted_bytes": peak_bytes(event.cell), "measured_bytes": measured}


def _line(event: CellMeasured) -> str:
    predicted = peak_bytes(event.cell)
    parts = [f"{event.label} at {event.length} tokens, batch {event.batch}"]
    if predicted is not None:
        parts.append(f"predicted {predicted / 2**20:.1f} MiB")
    if event.peak_bytes is not None:
        parts.append(f"measured {event.peak_bytes / 2**20:.1f} MiB ({event.source})")
    if event.median_s is not None and event.spread_s is not None:
        parts.append(f"{1e3 * event.median_s:.2f} ms (spread {1e3 * event.spread_s:.2f}, {event.n_repeats} runs)")
    parts += [event.kernel] if event.kernel else []
    return ", ".join([*parts, *sweeps.remarks(event)])


def backends(
    model: Annotated[Path, tyro.conf.arg(name="model", help="Folder of a trained Transformer, such as models/imdb-encoder.")],
    out: Annotated[Path, tyro.conf.arg(help="Folder of the run: events.jsonl has each backend as it is measured.")],
    n: Annotated[int, tyro.conf.arg(name="n", help="Of its test reviews.")] = BackendsConfig.n,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    as_json: Json = False,
) -> None:
    """Send the same reviews through a model on every backend that can run here: the same answers, at what cost?

    Asked again with the same folder and flags, it goes on: what is measured already is not measured again.
    """
    config = BackendsConfig(model=str(model), n=n, device=device)
    with hold(out, device_of(device), config, tell) as job:
        from core.measure.backends import compare  # numpy and the reviews, once the device is free

        def emit(event: Event) -> None:
            job.emit(event)
            if isinstance(event, BackendMeasured) and not as_json:
                print(_backend_line(event), flush=True)

        compare(config, emit, job.stopped, said=read_events(job.folder)[0])
        found = [event for event in read_events(job.folder)[0] if isinstance(event, BackendMeasured)]
    if as_json:
        print(json.dumps({"backends": [vars(event) for event in found]}))


def _backend_line(event: BackendMeasured) -> str:
    parts = [event.backend]
    if event.largest_difference is not None:
        parts.append(f"logits within {event.largest_difference:.1e} of eager, {event.changed} of {event.n} answers changed")
    if event.median_s is not None and event.spread_s is not None:
        parts.append(f"{1e3 * event.median_s:.0f} ms (spread {1e3 * event.spread_s:.0f})")
    parts += [] if event.peak_bytes is None else [f"{event.peak_bytes / 2**20:.1f} MiB"]
    return ", ".join([*parts, *(said for said in (event.kernel, event.why_not) if said)])


def measure(
    what: Annotated[None, tyro.conf.subcommand(name="memory", constructor=memory)]
    | Annotated[None, tyro.conf.subcommand(name="speed", constructor=speed)]
    | Annotated[None, tyro.conf.subcommand(name="sweep", constructor=sweep)]
    | Annotated[None, tyro.conf.subcommand(name="backends", constructor=backends)],
) -> None:
    """Measure memory and time of attention backends: memory, speed, sweep; backends of one model."""
