"""The operators of a layer, with what each keeps for backward and works in: read off autograd's graph (torch 2.13).

`tests/measure` holds what comes of them to counted bytes.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass

from core.measure.tape import Op
from core.records import Cell

BYTES = {"float32": 4, "bfloat16": 2, "mixed": 2}
"""Of a number in a product."""
TILE = 256
"""Queries and keys of a tile of chunked attention."""
WEIGHTS, ATTENTION = "weights", "attention weights kept"


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """What the operators of a cell are counted in."""

    batch: int
    tokens: int
    """B T."""
    rows: int
    """B H T."""
    training: bool
    length: int
    d_model: int
    d_head: int
    d_ff: int
    dropout: bool
    item: int
    """Bytes of a number in a product."""
    stored: int
    """Bytes of a weight, and of what one layer hands to the next."""
    copies: bool
    """Whether a batched product copies q, k and v, since heads of several reviews do not lie evenly in memory."""

    @classmethod
    def of(cls, cell: Cell, d_ff: int | None, dropout: bool) -> "Sizes":
        return cls(
            d_ff=d_ff or 4 * cell.n_heads * cell.d_head, dropout=dropout,
            batch=cell.batch, tokens=cell.batch * cell.length, rows=cell.batch * cell.n_heads * cell.length,
            length=cell.length, training=cell.what != "forward", d_model=cell.n_heads * cell.d_head, d_head=cell.d_head,
            item=BYTES[cell.dtype], stored=4 if cell.dtype == "mixed" else BYTES[cell.dtype],
            copies=cell.batch > 1 and cell.n_heads > 1,
        )  # fmt: skip

    @property
    def x(self) -> int:
        """An activation of every token, in a product."""
        return self.tokens * self.d_model * self.item

    @property
    def handed(self) -> int:
        """An activation of every token, between layers."""
        return self.tokens * self.d_model * self.stored


def _linear(s: Sizes, given: str, made: str, n_in: int, n_out: int, given_item: int) -> Iterator[Op]:
    """A product with weights, and before it those to bfloat16 that mixed precision needs."""
    n_parameters = n_in * n_out + n_out
    if s.stored == s.item:
        yield Op(reads=(given,), makes={made: s.tokens * n_out * s.item}, keeps=(given,), parameters=n_parameters * s.item)
        return
    half = given
    if given_item != s.item:
        half = f"{given} in half"
        yield Op(reads=(given,), makes={half: s.tokens * n_in * s.item})
    weight = f"{made}'s weight"
    yield Op(makes={weight: n_parameters * s.item}, part=WEIGHTS, parameters=n_parameters * s.stored)
    yield Op(reads=(half, weight), makes={made: s.tokens * n_out * s.item}, keeps=(half, weight))


Attention = Generator[Op, None, str]
"""The operators between q, k, v and the heads side by side; gives the name of the heads' output."""


def encoder_layer(backend: str, s: Sizes, n: int) -> Iterator[Op]:
    """`core.networks.blocks.EncoderLayer` number n with post-norm and ReLU: from `x{n}` to `x{n + 1}`."""
    x, qkv, merged, attended, summed, normed = (f"{name}{n}" for name in ("x", "qkv", "merged", "attended", "summed", "normed"))
    hidden, active, fed, total = (f"{name}{n}" for name in ("hidden", "active", "fed", "total"))
    statistics = 2 * s.tokens * s.stored
    yield from _linear(s, x, qkv, s.d_model, 3 * s.d_model, s.stored)
    q, k, v = names = tuple(f"{name}{n}" for name in "qkv")
    yield Op(reads=(qkv,), makes={f"parted{n}": 3 * s.x}, view=True)
    yield Op(reads=(f"parted{n}",), makes=dict.fromkeys(names, s.x), view=True)
    attention = {"eager": _written_out, "chunked": _by_tiles}.get(backend, _fused)
    heads = yield from attention(s, n, merged)
    yield from _linear(s, merged, attended, s.d_model, s.d_model, s.item)
    yield Op(holds=(qkv, heads))
    yield Op(reads=(x, attended), makes={summed: s.handed}, passes=True)
    yield Op(
        reads=(summed,), makes={normed: s.handed, f"statistics{n}": statistics}, keeps=(summed, f"statistics{n}"),
        parameters=2 * s.d_model * s.stored,
    )  # fmt: skip
    yield from _linear(s, normed, hidden, s.d_model, s.d_ff, s.stored)
    wide = s.tokens * s.d_ff * s.item
    yield Op(reads=(hidden,), makes={active: wide}, keeps=(active,))
    if s.dropout:  # the mask itself is a piece of a table
        yield Op(reads=(active,), makes={f"dropped{n}": wide})
    yield from _linear(s, f"dropped{n}" if s.dropout else active, fed, s.d_ff, s.d_model, s.item)
    yield Op(reads=(normed, fed), makes={total: s.handed}, passes=True)
    yield Op(
        reads=(total,), makes={f"x{n + 1}": s.handed, f"last statistics{n}": statistics},
        keeps=(total, f"last statistics{n}"), holds=(x, attended), parameters=2 * s.d_model * s.stored,
    )  # fmt: skip


def _written_out(s: Sizes, n: int, merged: str) -> Attention:
    """`core.attention.eager`: scores, softmax and weights as matrices of T x T."""
    q, k, v, scaled, logits, weights, heads = (f"{name}{n}" for name in ("q", "k", "v", "scaled", "logits", "weights", "heads"))
    scores = s.rows * s.length * s.item
    yield Op(reads=(q,), makes={scaled: s.x})
    queries = yield from _even(s, scaled)
    keys = yield from _even(s, k)
    yield Op(reads=(queries, keys), makes={logits: scores}, keeps=(queries, keys), holds=(scaled,))
    yield Op(reads=(logits,), makes={weights: scores}, keeps=(weights,), part=ATTENTION)
    values = yield from _even(s, v)
    yield Op(reads=(weights, values), makes={heads: s.x}, keeps=(weights, values), back=s.x if s.copies else 0)
    yield Op(reads=(heads,), makes={merged: s.x}, passes=True)
    return heads


def _even(s: Sizes, name: str) -> Generator[Op, None, str]:
    """What a batched product reads: the same, or a copy of it."""
    if s.copies:
        yield Op(reads=(name,), makes={f"{name} in a row": s.x}, passes=True)
        return f"{name} in a row"
    return name


def _by_tiles(s: Sizes, n: int, merged: str) -> Attention:
    """`core.attention.chunked`: float32 tiles, one after the other, and sums of gradients in float32."""
    q, k, v, rows = (f"{name}{n}" for name in ("q", "k", "v", "row sums"))
    in_tile = s.rows // s.length * min(s.length, TILE) * 4
    tile, strip = in_tile * min(s.length, TILE), in_tile * s.d_head
    wide = 0 if s.item == 4 else 1
    forward = tile + (2 + 2 * s.copies + 2 * wide) * strip + 4 * in_tile
    sums = wide * 3 * s.rows * s.d_head * 4
    yield Op(
        reads=(q, k, v), makes={merged: s.x, rows: 4 * s.rows}, keeps=(q, k, v, merged, rows), scratch=forward,
        back=sums + max(2 * tile + (1 + s.copies + 4 * wide) * strip - wide * 3 * s.x, 0),
    )  # fmt: skip
    return merged


def _fused(s: Sizes, n: int, merged: str) -> Attention:
    """PyTorch's flash kernels, which keep a number for each row in place of its weights."""
    q, k, v, rows = (f"{name}{n}" for name in ("q", "k", "v", "row sums"))
    yield Op(reads=(q, k, v), makes={merged: s.x, rows: 4 * s.rows}, keeps=(q, k, v, merged, rows))
    return merged


def bilstm_layer(s: Sizes, n: int) -> Iterator[Op]:
    """`core.networks.bilstm.BothDirections` number n: from `x{n}`, d_model wide or twice that, to `x{n + 1}`."""
    d_in, given = (s.d_model, s.stored) if n == 0 else (2 * s.d_model, s.item)
    x, back, mirrored, ahead = (f"{name}{n}" for name in ("x", "back", "mirrored", "ahead"))
    yield from _mirrored(s, x, f"mirror image{n}", d_in, given)
    yield from _lstm(s, f"mirror image{n}", back, d_in, given)
    yield from _mirrored(s, back, mirrored, s.d_model, s.item)
    yield from _lstm(s, x, ahead, d_in, given)
    yield Op(reads=(ahead, mirrored), makes={f"x{n + 1}": 2 * s.x}, holds=(x,), cuts=True)


def _mirrored(s: Sizes, given: str, made: str, width: int, item: int) -> Iterator[Op]:
    """Places by an index of 64 bits for each number, which is kept; bfloat16 is gathered by way of float32."""
    size, index = s.tokens * width * item, f"{made}'s index"
    yield Op(
        reads=(given,), makes={made: size, index: 8 * s.tokens * width}, keeps=(given, index),
        scratch=4 * s.tokens * width * (item < 4), back=size,
    )  # fmt: skip


def _lstm(s: Sizes, given: str, made: str, d_in: int, item: int) -> Iterator[Op]:
    """One direction by oneDNN, counted in resident bytes: most of the workspace that it asks for is never written to.

    It keeps all gates and states; scratch gates, copies of the weights and gradients of the states come and go, in float32.
    """
    in_row, half, weight, space = (f"{made}'s {name}" for name in ("input", "half", "weight", "workspace"))
    n_parameters, size = 4 * s.d_model * (d_in + s.d_model + 2), s.tokens * d_in * s.item
    mixed, exact = s.stored != s.item, s.item == 4
    yield Op(reads=(given,), makes={in_row: s.tokens * d_in * item}, passes=True)
    if mixed:
        yield Op(makes={weight: n_parameters * s.item}, part=WEIGHTS, parameters=n_parameters * s.stored)
    if item != s.item:
        yield Op(reads=(in_row,), makes={half: size})
    read = half if item != s.item else in_row
    steps = s.batch * (s.length + 1)
    gates = 16 * s.tokens * s.d_model if exact else 0
    states = 4 * steps * (3 * _padded(max(d_in, s.d_model), 4) + _padded(s.d_model, 4))
    converted = 0 if exact else (4 - s.item) * (n_parameters + s.tokens * d_in)  # gradients come in float32
    yield Op(
        reads=(read, *([weight] * mixed)), keeps=(read, made, space, *([weight] * mixed)), holds=(given,),
        makes={made: s.x, space: 4 * s.x + steps * _padded(s.d_model, s.item) * s.item if s.training else 0},
        scratch=(4 * n_parameters + gates * s.training) * exact,
        back=4 * s.tokens * s.d_model + gates + 8 * n_parameters + states + converted,
        parameters=0 if mixed else n_parameters * s.item,
    )  # fmt: skip


def _padded(width: int, item: int) -> int:
    """The width of a row in oneDNN's memory: whole cache lines of 64 bytes, and no multiple of 256 numbers."""
    line = 64 // item
    rounded = -(-width // line) * line
    return rounded + line if rounded % 256 == 0 else rounded
