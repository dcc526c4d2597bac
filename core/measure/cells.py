"""What is measured: encoder layers on random input. Imports torch alone, so that a measured process stays small."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from core.attention.masks import AttentionMask
from core.config import EncoderArchitecture
from core.networks.blocks import EncoderLayer, attention_function
from core.positional.base import PositionalEncoding
from core.records import Cell
from core.training.machine import hardware

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


class Layers(nn.Module):
    """Encoder layers as of article A, with neither embedding, positions nor dropout."""

    def __init__(self, cell: Cell) -> None:
        super().__init__()
        d_model = cell.n_heads * cell.d_head
        architecture = EncoderArchitecture(
            d_model=d_model, n_heads=cell.n_heads, n_layers=cell.n_layers, d_ff=4 * d_model, positional="none", dropout=0.0
        )
        self.attend = attention_function(cell.backend, weights=False)
        self.positional = PositionalEncoding(architecture)
        self.layers = nn.ModuleList(EncoderLayer(architecture) for _ in range(cell.n_layers))

    def forward(self, x: Tensor) -> Tensor:
        """The last layer's output. Nothing is padded, so that there is no mask."""
        positions = torch.arange(x.shape[1], device=x.device)[None]
        for layer in self.layers:
            x = layer(x, positions, AttentionMask(), self.positional, self.attend)[0]  # no layer's weights outlive it
        return x


def prepare(cell: Cell) -> Callable[[], None]:
    """Makes weights and input, and returns what runs the cell once and forgets the result.

    ValueError without its backend or device.
    """
    if cell.device == "cuda" and not torch.cuda.is_available():
        raise ValueError("device: got 'cuda', but PyTorch finds no GPU here; use 'cpu'")
    torch.manual_seed(0)
    layers = _layers(cell)
    shape = (cell.batch, cell.length, cell.n_heads * cell.d_head)
    x = torch.randn(shape, dtype=DTYPES[cell.dtype], device=cell.device)
    if cell.what == "forward":
        return lambda: _forward(layers, x)
    gradient = torch.randn_like(x)
    return lambda: _backward(layers, x.requires_grad_(), gradient)


def _layers(cell: Cell) -> Layers:
    """Made without memory first, since weights that are converted would be there twice for a moment."""
    with torch.device("meta"):
        layers = Layers(cell).to(DTYPES[cell.dtype])
    layers.to_empty(device=cell.device)
    for module in layers.modules():
        if isinstance(module, nn.Linear | nn.LayerNorm):
            module.reset_parameters()
    return layers


def _forward(layers: Layers, x: Tensor) -> None:
    with torch.no_grad():
        layers(x)


def _backward(layers: Layers, x: Tensor, gradient: Tensor) -> None:
    """Forward, then backward from a gradient that stands for what would follow the layers."""
    layers(x).backward(gradient)
    x.grad = None
    layers.zero_grad()


def synchronize(cell: Cell) -> None:
    """Wait until the device has done what it was told."""
    if cell.device == "cuda":
        torch.cuda.synchronize()


def circumstances(cell: Cell, run: Callable[[], None]) -> dict[str, str]:
    """Which attention operator ran and on what, from one more run; both belong beside each figure."""
    with profile(activities=[ProfilerActivity.CPU]) as found:
        run()
    return {"kernel": attention_operator([event.key for event in found.key_averages()]), "hardware": _hardware(cell)}


def attention_operator(names: Sequence[str]) -> str:
    """Of the operators that the profiler names: the fused one, or the softmax between two products."""
    fused = [name for name in names if name.startswith("aten::_scaled_dot_product_") and not name.endswith("_backward")]
    written_out = [name for name in ("aten::bmm", "aten::_softmax") if name in names]
    return ", ".join(fused or written_out)


def _hardware(cell: Cell) -> str:
    found = hardware(cell.device)
    threads = found["threads"]
    return found["gpu"] if cell.device == "cuda" else f"{found['cpu']}, {threads} thread{'s' if threads > 1 else ''}"
