"""A decoder that continues a text, with a cache of keys and values and without it, by length of the prompt."""

from collections.abc import Iterator
from functools import partial

import torch

from benchmarks.inference import NO_CACHE
from benchmarks.pairs import in_turns, ratio, spread, timed
from benchmarks.suite import Setting
from core.config import DecoderArchitecture
from core.networks.decoder import Decoder, generate
from core.recorded import Column, Table, Value

ARCHITECTURE = DecoderArchitecture(max_len=2048, norm="pre", positional="rotary")
PROMPTS = (8, 64, 256, 512)
"""Tokens."""
NEW = 64
"""Tokens to add."""


def part(setting: Setting) -> Iterator[Table]:
    """Table "generation", anew with each length."""
    torch.manual_seed(0)
    network = Decoder(ARCHITECTURE).to(setting.device).eval()
    rows: list[tuple[Value, ...]] = []
    for length in PROMPTS[: 1 if setting.quick else None]:
        rows += _rows(network, length, setting)
        yield _table(rows, setting)


def _rows(network: Decoder, length: int, setting: Setting) -> Iterator[tuple[Value, ...]]:
    ids = torch.randint(4, ARCHITECTURE.vocab_size, (1, length), device=setting.device)
    new = 8 if setting.quick else NEW
    ways = {use: partial(generate, network, ids, max_new_tokens=new, use_cache=use) for use in (True, False)}
    assert torch.equal(ways[True](), ways[False]())
    found = in_turns({str(use): timed(run) for use, run in ways.items()}, setting.rounds)
    size = network.new_cache(1, length + new - 1).n_bytes / 2**20
    for use, name in ((True, "with"), (False, "without")):
        ms = spread([1e3 * s / new for s in found[str(use)]])
        faster = ratio(found["False"], found[str(use)])
        yield (length, name, *ms.cells, 1e3 / ms.median, *faster.cells, size if use else 0.0)


def _table(rows: list[tuple[Value, ...]], setting: Setting) -> Table:
    a = ARCHITECTURE
    return Table(
        name="generation",
        caption=(
            f"A decoder of {a.n_layers} layers of {a.d_model}, {a.n_heads} heads, {a.vocab_size:,} tokens and random weights "
            f"adds {8 if setting.quick else NEW} tokens to one prompt, greedily, in float32; reading the prompt is timed, too. "
            f"Median and range of {setting.rounds} rounds in turns; both ways found the same tokens. {NO_CACHE}"
        ),
        columns=(
            Column(name="prompt", unit="tokens"), Column(name="cache"),
            *(Column(name=name, unit="ms/token") for name in ("median", "lowest", "highest")),
            Column(name="rate", unit="tokens/s"),
            *(Column(name=f"time without over it, {name}") for name in ("median", "lowest", "highest")),
            Column(name="keys and values", unit="MiB"),
        ),
        rows=tuple(rows),
    )  # fmt: skip
