"""Peak memory of a cell from its numbers alone, by counting the tensors that are alive when most are. No torch here.

Counted in bytes: `x` (B, T, D) activations, `scores` (B, H, T, T) in the cell's dtype, `weights` (B, H, T, T) in float32, which
only written-out attention has, `tile` and `strip`, of which chunked attention has a few, and a layer's parameters
(12 D^2 + 13 D). What autograd keeps for backward was read off its graph (torch 2.13); `tests/measure` holds the sums to
counted bytes.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from core.records import Cell

BYTES = {"float32": 4, "bfloat16": 2, "mixed": 2}
FLASH = ("sdpa", "sdpa-flash", "sdpa-efficient")
"""Backends that keep a number for each row, and whose own working memory is not worth counting."""
TILE = 256
"""Queries and keys of a tile of chunked attention."""


@dataclass(frozen=True, kw_only=True)
class _Sizes:
    """Bytes of the tensors of one layer."""

    x: int
    scores: int
    weights: int
    row_sums: int
    """One float32 number for each row of weights: what a flash kernel keeps in their place."""
    tile: int
    """Float32 scores of some queries with some keys, which chunked attention makes one after the other."""
    strip: int
    """Float32 vectors of the queries or keys of a tile."""
    sums: int
    """Float32 activations: chunked attention adds up its gradients in them."""
    norm_statistics: int
    parameters: int
    converts: bool
    """Whether the softmax first copies scores to float32; a GPU reads bfloat16 as it goes."""
    copies: bool
    """Whether a batched product copies q, k and v, since heads of several reviews do not lie evenly in memory."""


def peak_bytes(cell: Cell) -> int | None:
    """Weights, input, activations and gradients of a cell at their most; None for a backend that is not understood."""
    if cell.backend not in ("eager", "chunked", *FLASH) or cell.what == "step" or cell.dtype == "mixed" or cell.checkpointing:
        return None
    sizes = _sizes(cell)
    moments = _forward(cell, sizes) if cell.what == "forward" else _backward(cell, sizes)
    return cell.n_layers * sizes.parameters + max(moments)


def _sizes(cell: Cell) -> _Sizes:
    item, d_model = BYTES[cell.dtype], cell.n_heads * cell.d_head
    rows = cell.batch * cell.n_heads * cell.length
    written_out, chunked = cell.backend == "eager", cell.backend == "chunked"
    in_tile = cell.batch * cell.n_heads * min(cell.length, TILE) * 4
    return _Sizes(
        x=cell.batch * cell.length * d_model * item,
        scores=rows * cell.length * item if written_out else 0,
        weights=rows * cell.length * 4 if written_out else 0,
        row_sums=0 if written_out else rows * 4,
        tile=in_tile * min(cell.length, TILE) if chunked else 0,
        strip=in_tile * cell.d_head if chunked else 0,
        sums=cell.batch * cell.length * d_model * 4 if chunked else 0,
        norm_statistics=4 * cell.batch * cell.length * item,
        parameters=(12 * d_model**2 + 13 * d_model) * item,
        converts=item < 4 and cell.device != "cuda",
        copies=cell.batch > 1 and cell.n_heads > 1,
    )


def _forward(cell: Cell, s: _Sizes) -> Iterable[int]:
    """Without gradients one layer is alive at a time: its input, and the first layer's, which belongs to the caller."""
    held = s.x if cell.n_layers == 1 else 2 * s.x
    half = 0 if s.scores == s.weights else s.scores  # weights in the dtype of v, where that is not float32
    copy = s.x if s.copies else 0
    yield held + 10 * s.x + s.weights  # feed-forward: the attended, its norm, and 4 D wide before and after the activation
    if s.weights:
        qkv = 3 * s.x
        yield held + qkv + s.x + 2 * copy + s.scores  # scores: q scaled, q and k copied
        yield held + qkv + s.scores + s.weights * (2 if s.converts else 1)  # softmax
        yield held + qkv + s.scores + s.weights + half + copy + s.x  # weights times v
    if s.tile:
        strips = (4 if s.copies else 2) + (0 if s.sums == s.x else 2)  # q scaled, the sum and what is added, copies, in float32
        rows = 4 * s.strip // cell.d_head  # their maxima and sums, old and new
        yield held + 4 * s.x + s.row_sums + s.tile + strips * s.strip + rows


def _backward(cell: Cell, s: _Sizes) -> Iterable[int]:
    """Backward goes down the layers: below, what is kept of each; above, the gradients of their parameters."""
    caller = 2 * s.x  # input, and the gradient from above
    for below in range(cell.n_layers):
        passed = caller + below * _kept(s) + (cell.n_layers - below - 1) * s.parameters
        yield from (passed + moment for moment in _layer_backward(s))


def _kept(s: _Sizes) -> int:
    """What a layer keeps from forward for backward: of attention what goes into its products, and its output (12 x in all).

    Both sums and norms, 4 D wide after the activation, and the output of the heads.
    """
    half = 0 if s.scores == s.weights else s.scores
    q, k, v = (s.x, s.x, s.x) if s.copies or not s.weights else (s.x, 0, 3 * s.x)  # k and v are views of one product
    return q + k + v + s.weights + half + s.row_sums + 9 * s.x + s.norm_statistics


def _layer_backward(s: _Sizes) -> Iterable[int]:
    """Bytes of this layer when its activation, its softmax and its first product are passed."""
    half = 0 if s.scores == s.weights else s.scores
    second = s.parameters // 3  # gradient of the second feed-forward product, 4 D^2
    yield _kept(s) + 8 * s.x + second
    if s.weights:
        freed = (8 * s.x) + (s.x if s.copies else 0) + half + s.norm_statistics
        gradients = s.weights + (s.weights if s.converts or not half else s.scores)
        yield _kept(s) - freed + 2 * s.x + gradients + 3 * s.parameters // 4
    if s.tile:
        strips = (2 if s.copies else 1) + (0 if s.sums == s.x else 4)
        products = 3 * s.sums + 2 * s.tile + strips * s.strip
        yield _kept(s) - 8 * s.x - s.norm_statistics + 3 * s.x + products + 3 * s.parameters // 4
    yield 6 * s.x + s.parameters  # gradients of q, k and v, apart and as one
