"""Peak memory of a cell from its numbers alone: its operators are played without a tensor. No torch here."""

from dataclasses import dataclass
from functools import lru_cache

from core.measure.kernels import EVEN, KERNELS
from core.measure.operators import WEIGHTS, bilstm_layer, encoder_layer
from core.measure.sizes import Sizes
from core.measure.tape import Op, Segment, Tape
from core.records import STEP_VOCABULARY, Cell

OPTIMISER, INPUT = "optimiser", "input"
N_CLASSES = 2


@dataclass(frozen=True, kw_only=True)
class Network:
    """What a training's network may have otherwise than a cell's."""

    vocabulary: int = STEP_VOCABULARY
    d_ff: int | None = None
    """4 D if not named."""
    dropout: bool = False
    """Whether hidden units of the feed-forward are dropped; other dropout leaves nothing behind."""


def peak_bytes(cell: Cell, network: Network | None = None) -> int | None:
    """Weights, gradients, optimiser, input and activations of a cell at their most; None if it is not understood."""
    parts = breakdown(cell, network)
    return None if parts is None else sum(parts.values())


def breakdown(cell: Cell, network: Network | None = None) -> dict[str, int] | None:
    """The bytes of `peak_bytes` by what they are; None if the cell is not understood.

    `not_understood` says why.
    """
    if not_understood(cell) is not None:
        return None
    network = network or Network(vocabulary=STEP_VOCABULARY)
    return {part: n_bytes for part, n_bytes in _at_peak(cell, network).items() if n_bytes}


def not_understood(cell: Cell) -> str | None:
    """Why the peak of a cell is not predicted, without full stop; None if it is."""
    if cell.network == "bilstm" and cell.device != "cpu":
        return "no prediction: cuDNN says only when it runs what it keeps of an LSTM and works in"
    if cell.backend is not None and cell.backend not in KERNELS:
        return f"no prediction: {cell.backend} says only when it runs how much working memory it takes"
    if cell.device != "cpu" and cell.backend in EVEN and cell.d_head % 8:
        return f"no prediction: {cell.backend} copies heads of {cell.d_head} to make their size a multiple of 8 on a GPU"
    return None


@lru_cache(maxsize=4096)
def _at_peak(cell: Cell, network: Network) -> dict[str, int]:
    s = Sizes.of(cell, network.d_ff, network.dropout)
    layers = [_layer(cell, s, n) for n in range(cell.n_layers)]
    first, last = "x0", f"x{cell.n_layers}"
    casts = [name for layer in layers for op in layer.ops if op.part == WEIGHTS for name in op.makes]
    weights, x, directions = s.stored * _parameters(cell, s, network.vocabulary), s.handed, 2 if cell.network == "bilstm" else 1
    if cell.what == "step":
        embedding = Op(makes={first: x}, parameters=s.stored * network.vocabulary * s.d_model)
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


def _parameters(cell: Cell, s: Sizes, vocabulary: int) -> int:
    """Of the layers of a cell, for a step also of the embedding, the pooling and the classifier."""
    d = s.d_model
    if cell.network == "encoder":
        layers, head = cell.n_layers * (4 * d**2 + 2 * d * s.d_ff + 9 * d + s.d_ff), N_CLASSES * (d + 1)
    else:
        later = (cell.n_layers - 1) * 8 * d * (3 * d + 2)
        layers, head = 8 * d * (2 * d + 2) + later, (N_CLASSES + 1) * (2 * d + 1)
    return layers + (vocabulary * d + head if cell.what == "step" else 0)
