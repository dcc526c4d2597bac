"""The operators of a layer, with what each keeps for backward and works in: read off autograd's graph (torch 2.13).

`tests/measure` holds what comes of them to counted bytes.
"""

from collections.abc import Iterator

from core.measure.kernels import KERNELS
from core.measure.sizes import Sizes
from core.measure.tape import Op

WEIGHTS = "weights"


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


def encoder_layer(backend: str, s: Sizes, n: int) -> Iterator[Op]:
    """`core.networks.blocks.EncoderLayer` number n with post-norm and ReLU: from `x{n}` to `x{n + 1}`."""
    x, qkv, merged, attended, summed, normed = (f"{name}{n}" for name in ("x", "qkv", "merged", "attended", "summed", "normed"))
    hidden, active, fed, total = (f"{name}{n}" for name in ("hidden", "active", "fed", "total"))
    statistics = 2 * s.tokens * s.stored
    yield from _linear(s, x, qkv, s.d_model, 3 * s.d_model, s.stored)
    q, k, v = names = tuple(f"{name}{n}" for name in "qkv")
    yield Op(reads=(qkv,), makes={f"parted{n}": 3 * s.x}, view=True)
    yield Op(reads=(f"parted{n}",), makes=dict.fromkeys(names, s.x), view=True)
    heads = yield from KERNELS[backend](s, n, merged)
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
