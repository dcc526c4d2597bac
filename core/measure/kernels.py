"""The operators of each attention kernel, with what each keeps for backward and works in.

Those of a CPU are read off autograd's graph (torch 2.13), and `tests/measure` holds what comes of them to counted bytes. What
fused kernels ask for on a GPU is read off ATen's sources, and has been measured nowhere.
"""

from collections.abc import Callable, Generator
from functools import partial

from core.measure.sizes import Sizes
from core.measure.tape import Op

TILE = 256
"""Queries and keys of a tile of chunked attention."""
ATTENTION = "attention weights kept"
Attention = Generator[Op, None, str]
"""The operators between q, k, v and the heads side by side; gives the name of the heads' output."""


def _written_out(s: Sizes, n: int, merged: str) -> Attention:
    """`core.attention.eager`: scores, softmax and weights as matrices of T x T."""
    q, k, v, scaled, logits, weights, heads = (f"{name}{n}" for name in ("q", "k", "v", "scaled", "logits", "weights", "heads"))
    scores = s.rows * s.length * s.item
    yield Op(reads=(q,), makes={scaled: s.x})
    queries = yield from _even(s, scaled, s.x)
    keys = yield from _even(s, k, s.x)
    yield Op(reads=(queries, keys), makes={logits: scores}, keeps=(queries, keys), holds=(scaled,))
    yield Op(reads=(logits,), makes={weights: scores}, keeps=(weights,), part=ATTENTION)
    values = yield from _even(s, v, s.x)
    yield Op(reads=(weights, values), makes={heads: s.x}, keeps=(weights, values), back=s.x if s.copies else 0)
    yield Op(reads=(heads,), makes={merged: s.x}, passes=True)
    return heads


def _composed(s: Sizes, n: int, merged: str) -> Attention:
    """PyTorch's own written-out attention: in float32 whatever it is given, and its softmax marks which scores are -inf."""
    scores, x, names = s.rows * s.length * 4, s.rows * s.d_head * 4, tuple(f"{name}{n}" for name in "qkv")
    logits, weights, wide, heads = (f"{name}{n}" for name in ("logits", "weights", "wide heads", "heads"))
    half, weights_in_half = s.item < 4, f"weights in half{n}"
    q, k, v = names
    if half:
        q, k, v = given = tuple(f"wide {name}" for name in names)
        for name, made in zip(names, given, strict=True):
            yield Op(reads=(name,), makes={made: x})
    scaled = (f"scaled {q}", f"scaled {k}")
    for name, made in zip((q, k), scaled, strict=True):
        yield Op(reads=(name,), makes={made: x})
    queries = yield from _even(s, scaled[0], x)
    keys = yield from _even(s, scaled[1], x)
    yield Op(reads=(queries, keys), makes={logits: scores}, keeps=(queries, keys), holds=scaled)
    yield Op(reads=(logits,), makes={weights: scores}, keeps=(weights,), scratch=scores // 4, part=ATTENTION)
    yield Op(makes={weights_in_half: scores // 2 * half})
    values = yield from _even(s, v, x)
    heads_in = wide if half else heads
    yield Op(
        reads=(weights, values), makes={heads_in: x}, keeps=(weights, values), back=x if s.copies else 0,
        holds=(q, k, v, scaled[0], weights_in_half),
    )  # fmt: skip
    if half:
        yield Op(reads=(wide,), makes={heads: s.x}, holds=(q, k, v, scaled[0], weights_in_half))
    yield Op(reads=(heads,), makes={merged: s.x}, passes=True)
    return heads


def _even(s: Sizes, name: str, size: int) -> Generator[Op, None, str]:
    """What a batched product reads: the same, or a copy of it."""
    if s.copies:
        yield Op(reads=(name,), makes={f"{name} in a row": size}, passes=True)
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


def _fused(kernel: str, s: Sizes, n: int, merged: str) -> Attention:
    """PyTorch's fused kernels, which keep a number for each row in place of its weights."""
    q, k, v, rows = (f"{name}{n}" for name in ("q", "k", "v", "row sums"))
    back = 0 if s.device == "cpu" else WORKING_MEMORY[fused_kernel(kernel, s)](s)
    yield Op(reads=(q, k, v), makes={merged: s.x, rows: 4 * s.rows}, keeps=(q, k, v, merged, rows), back=back)
    return merged


def fused_kernel(backend: str, s: Sizes) -> str:
    """What of `WORKING_MEMORY` a backend runs on a GPU: PyTorch's own choice is flash, which takes half precision alone."""
    return ("sdpa-flash" if s.item == 2 else "sdpa-efficient") if backend == "sdpa" else backend


def _of_flash(s: Sizes) -> int:
    """Gradients of queries and a number for each row in float32, to whole tiles: `mha_bwd` of flash_attn/flash_api.cpp."""
    return 4 * s.rows // s.length * _rounded(s.length, 128) * (_head_of_flash(s) + 1)


def _of_varlen(s: Sizes) -> int:
    """The same with room for a tile after each review: `mha_varlen_bwd`."""
    return 4 * s.rows // s.length * (s.length + 128) * (_head_of_flash(s) + 1)


def _head_of_flash(s: Sizes) -> int:
    return _rounded(s.d_head, 32 if s.d_head <= 128 else 64)


def _of_efficient(s: Sizes) -> int:
    """Gradients of queries in float32, to whole tiles, and of large heads in half precision those of keys and values, too.

    A number for each row comes on top, in float32 by way of a product: `_efficient_attention_backward` of
    attention_backward.cu, and mem_eff_attention/kernel_backward.h.
    """
    heads = s.rows // s.length
    queries = 4 * heads * _rounded(s.length, 64) * _rounded(s.d_head, 64)
    if s.item == 4:
        return 4 * s.rows + max(queries, s.x)
    splits = max(1, min(-(-s.length // 64), 200 // heads)) if s.d_head > 128 else 0
    return 4 * s.rows + queries + 2 * 4 * heads * splits * 64 * _rounded(s.d_head, 128)


def _of_flex(s: Sizes) -> int:
    """A number for each row: `flex_attention_backward` of _inductor/kernel/flex."""
    return 4 * s.rows


def _rounded(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


WORKING_MEMORY = {"sdpa-flash": _of_flash, "sdpa-efficient": _of_efficient, "varlen": _of_varlen, "flex": _of_flex}
"""Of fused kernels in backward on a GPU, beside the gradients that they give."""
EVEN = ("sdpa", "sdpa-flash", "sdpa-efficient", "varlen")
"""Backends that copy heads on a GPU where their size is no multiple of 8."""
KERNELS: dict[str, Callable[[Sizes, int, str], Attention]] = {
    "eager": _written_out, "sdpa-math": _composed, "chunked": _by_tiles,
    **{name: partial(_fused, name) for name in ("sdpa", *WORKING_MEMORY)},
}  # fmt: skip
"""By backend: the operators of layer n, whose heads' output side by side is to be called as it is told."""
