"""How fast attention could be: its operations and bytes against what a machine reaches of either. No torch here.

The roofline of doi:10.1145/1498765.1498785; `core.measure.ceilings` measures its two lines.
"""

from dataclasses import dataclass

from core.events import Ceilings
from core.measure.kernels import TILE
from core.measure.sizes import BYTES
from core.records import Cell

WRITTEN_OUT = ("eager", "sdpa-math")
"""Backends whose scores and weights go to memory and come back."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """What an algorithm has to do, whoever does it."""

    operations: float
    """Multiplications and sums."""
    bytes_moved: float
    """Read from memory and written to it."""


def attention_work(cell: Cell) -> Work:
    """What attention takes in all layers of a cell, on its kernel; a BiLSTM's is nothing.

    Operations are those of the products: 2 B H T^2 K each, of which forward has two, and backward four written out and five
    where the scores are made again. Bytes are those of arXiv:2205.14135, section 3.1 and appendix B: written out, each T x T
    matrix goes to memory and comes back; by tiles it never does, and instead keys and values are read once for each tile of
    queries, in backward queries and their gradients once for each tile of keys (arXiv:2307.08691).
    """
    if cell.backend is None:
        return Work(operations=0.0, bytes_moved=0.0)
    rows = cell.batch * cell.n_heads * cell.length
    x, scores = rows * cell.d_head * BYTES[cell.dtype], rows * cell.length * BYTES[cell.dtype]
    tiles = -(-cell.length // TILE)
    forward, backward = (
        ((2, 4 * x + 4 * scores), (4, 8 * x + 7 * scores))
        if cell.backend in WRITTEN_OUT
        else ((2, 2 * x + 2 * tiles * x), (5, 6 * x + 4 * tiles * x))
    )
    passes = [forward] if cell.what == "forward" else [forward, *[forward] * cell.checkpointing, backward]
    return Work(
        operations=float(cell.n_layers * sum(products for products, _ in passes) * 2 * rows * cell.length * cell.d_head),
        bytes_moved=float(cell.n_layers * sum(n_bytes for _, n_bytes in passes)),
    )


def attainable_s(work: Work, ceilings: Ceilings) -> float:
    """The least seconds that it can take: of computing and of moving bytes the longer one, as if both went on at once."""
    return max(work.operations / ceilings.operations_per_s, work.bytes_moved / ceilings.bytes_per_s)
