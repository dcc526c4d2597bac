"""Peak memory of a cell from its numbers alone: its operators are played without a tensor. No torch here."""

from functools import lru_cache

from core.measure.operators import WEIGHTS, Sizes, bilstm_layer, encoder_layer
from core.measure.tape import Op, Segment, Tape
from core.records import STEP_VOCABULARY, Cell

FLASH = ("sdpa", "sdpa-flash", "sdpa-efficient")
"""Backends that keep a number for each row, and whose own working memory is not worth counting."""
OPTIMISER, INPUT = "optimiser", "input"
N_CLASSES = 2


def peak_bytes(cell: Cell) -> int | None:
    """Weights, gradients, optimiser, input and activations of a cell at their most; None if it is not understood."""
    parts = breakdown(cell)
    return None if parts is None else sum(parts.values())


def breakdown(cell: Cell) -> dict[str, int] | None:
    """The bytes of `peak_bytes` by what they are; None if the cell is not understood.

    Understood are the encoder on written-out, flash and chunked attention, and the BiLSTM on a CPU.
    """
    known = cell.backend in ("eager", "chunked", *FLASH) if cell.network == "encoder" else cell.device == "cpu"
    return {part: n_bytes for part, n_bytes in _at_peak(cell).items() if n_bytes} if known else None


@lru_cache(maxsize=4096)
def _at_peak(cell: Cell) -> dict[str, int]:
    s = Sizes.of(cell)
    layers = [_layer(cell, s, n) for n in range(cell.n_layers)]
    first, last = "x0", f"x{cell.n_layers}"
    casts = [name for layer in layers for op in layer.ops if op.part == WEIGHTS for name in op.makes]
    weights, x, directions = s.stored * _parameters(cell), s.handed, 2 if cell.network == "bilstm" else 1
    if cell.what == "step":
        embedding = Op(makes={first: x}, parameters=s.stored * STEP_VOCABULARY * s.d_model)
        given, segments = [], [Segment([embedding]), *layers, Segment(_head(cell, s, last))]
        tape = Tape({WEIGHTS: weights, OPTIMISER: 2 * weights, INPUT: 8 * s.tokens})
        end, last = Op(holds=casts), "pooled"
    else:
        given, segments = [Segment([Op(makes={first: x}, keeps=(first,), part=INPUT)])], layers
        tape = Tape({WEIGHTS: weights, INPUT: x * directions * s.training})  # the gradient that comes from above
        end = Op(holds=(first, *casts), keeps=(last,))
    tape.forward(given)
    tape.forward([*segments, Segment([end])], keep=s.training)
    if s.training:
        tape.seed(last)
        tape.backward([*given, *segments])
    return dict(tape.peak)


def _layer(cell: Cell, s: Sizes, n: int) -> Segment:
    if cell.backend is None:
        return Segment(list(bilstm_layer(s, n)))
    return Segment(list(encoder_layer(cell.backend, s, n)), again=cell.checkpointing)


def _head(cell: Cell, s: Sizes, last: str) -> list[Op]:
    """From the last layer to one vector of each review; the classifier is too small to count."""
    made = {"pooled": 4 * cell.batch * s.d_model}
    if cell.network == "encoder":
        return [Op(reads=(last,), makes=made, back=0 if s.stored == 4 else 2 * s.handed)]
    states = 2 * s.tokens * s.d_model * 4
    return [Op(reads=(last,), makes=made, keeps=(last,), scratch=states, back=states)]


def _parameters(cell: Cell) -> int:
    """Of the layers of a cell, for a step also of the embedding, the pooling and the classifier."""
    d_model = cell.n_heads * cell.d_head
    if cell.network == "encoder":
        layers, pooled = cell.n_layers * (12 * d_model**2 + 13 * d_model), d_model
    else:
        later = (cell.n_layers - 1) * 8 * d_model * (3 * d_model + 2)
        layers, pooled = 8 * d_model * (2 * d_model + 2) + later, 2 * d_model
    head = STEP_VOCABULARY * d_model + N_CLASSES * (pooled + 1) + (0 if cell.network == "encoder" else pooled + 1)
    return layers + (head if cell.what == "step" else 0)
