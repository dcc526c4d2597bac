"""What is measured: layers or a training step on random input. Imports torch alone, so that a measured process stays small."""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile
from torch.utils.checkpoint import checkpoint

from core.attention.masks import AttentionMask
from core.config import BiLSTMArchitecture, EncoderArchitecture
from core.figures.labels import count
from core.networks.bilstm import BiLSTM, BothDirections, mirrored
from core.networks.blocks import EncoderLayer, attention_function, split_heads
from core.networks.encoder import Encoder
from core.positional.base import PositionalEncoding
from core.records import STEP_VOCABULARY, Cell
from core.training.machine import hardware

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "mixed": torch.float32}
"""Of weights and input."""
CLIP_NORM = 1.0
LOOK_S = 0.5
"""Between two looks whether the process that asked for a figure still lives."""
FUSED = (
    "aten::_scaled_dot_product_", "torch_attn::_varlen_attn", "triton_tem_fused", "Torch-Compiled Region", "_Flash",
    "aten::_cudnn_rnn", "aten::mkldnn_rnn_layer",
)  # fmt: skip
"""How the profiler's names of kernels begin: PyTorch's, those over packed reviews, FlexAttention's, ours, and of LSTMs."""


class EncoderLayers(nn.Module):
    """Encoder layers as of article A, with neither embedding, positions nor dropout."""

    def __init__(self, cell: Cell) -> None:
        super().__init__()
        assert cell.backend is not None
        architecture = encoder_architecture(cell)
        self.attend = attention_function(cell.backend, weights=False)
        self.positional = PositionalEncoding(architecture)
        self.layers = nn.ModuleList(EncoderLayer(architecture) for _ in range(cell.n_layers))
        self.checkpointing = cell.checkpointing

    def forward(self, x: Tensor) -> Tensor:
        """The last layer's output. Nothing is padded, so that there is no mask."""
        positions = torch.arange(x.shape[1], device=x.device)[None]
        for layer in self.layers:
            run = partial(checkpoint, layer, use_reentrant=False) if self.checkpointing and torch.is_grad_enabled() else layer
            x = run(x, positions, AttentionMask(), self.positional, self.attend)[0]  # no layer's weights outlive it
        return x


class BiLSTMLayers(nn.Module):
    """Layers of a bidirectional LSTM, the first on vectors as wide as the hidden state of a direction."""

    def __init__(self, cell: Cell) -> None:
        super().__init__()
        d_hidden = cell.n_heads * cell.d_head
        self.layers = nn.ModuleList(BothDirections(2 * d_hidden if n else d_hidden, d_hidden) for n in range(cell.n_layers))

    def forward(self, x: Tensor) -> Tensor:
        """The last layer's states, of both directions side by side."""
        mirror = mirrored(torch.ones(x.shape[:2], dtype=torch.bool, device=x.device))
        for layer in self.layers:
            x = layer(x, mirror)
        return x


def encoder_architecture(cell: Cell) -> EncoderArchitecture:
    """The encoder that a cell's layers are of, and its step's classifier."""
    d_model = cell.n_heads * cell.d_head
    return EncoderArchitecture(
        vocab_size=STEP_VOCABULARY, d_model=d_model, n_heads=cell.n_heads, n_layers=cell.n_layers, d_ff=4 * d_model,
        max_len=cell.length, positional="none", dropout=0.0, embedding_dropout=0.0,
    )  # fmt: skip


def bilstm_architecture(cell: Cell) -> BiLSTMArchitecture:
    """The BiLSTM of a step."""
    d_hidden = cell.n_heads * cell.d_head
    return BiLSTMArchitecture(
        vocab_size=STEP_VOCABULARY, d_embedding=d_hidden, d_hidden=d_hidden, n_layers=cell.n_layers, max_len=cell.length,
        dropout=0.0, embedding_dropout=0.0,
    )  # fmt: skip


def asked() -> Cell:
    """The cell that this process was started for; it ends with the process that asked."""
    end_with_parent()
    return Cell(**json.loads(sys.argv[1]))


def end_with_parent() -> None:
    """Lets this process end when the one that started it has, whatever that died of."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_S)
    os._exit(1)


def prepare(cell: Cell) -> Callable[[], None]:
    """Makes weights and input, and returns what runs the cell once and forgets the result.

    ValueError without its backend or device.
    """
    if cell.device == "cuda" and not torch.cuda.is_available():
        raise ValueError("device: got 'cuda', but PyTorch finds no GPU here; use 'cpu'")
    torch.manual_seed(0)
    if cell.what == "step":
        return _prepare_step(cell)
    layers = made(cell, EncoderLayers if cell.network == "encoder" else BiLSTMLayers)
    shape = (cell.batch, cell.length, cell.n_heads * cell.d_head)
    x = torch.randn(shape, dtype=DTYPES[cell.dtype], device=cell.device)
    if cell.what == "forward":
        return lambda: _forward(cell, layers, x)
    gradient = _gradient_from_above(cell, x)
    return lambda: _backward(cell, layers, x.requires_grad_(), gradient)


def made(cell: Cell, module: Callable[[Cell], nn.Module]) -> nn.Module:
    """Made without memory first, since weights that are converted would be there twice for a moment."""
    with torch.device("meta"):
        made = module(cell).to(DTYPES[cell.dtype])
    made.to_empty(device=cell.device)
    for part in made.modules():
        if isinstance(part, nn.Linear | nn.LayerNorm | nn.LSTM | nn.Embedding):
            part.reset_parameters()
    return made


def _autocast(cell: Cell) -> torch.autocast:
    return torch.autocast(cell.device, torch.bfloat16, enabled=cell.dtype == "mixed")


def prepare_attention(cell: Cell) -> Callable[[], None] | None:
    """What runs attention alone as often as a run of the cell does, on queries, keys and values that lie as a layer's do.

    None for a network without attention kernels.
    """
    if cell.backend is None:
        return None
    attend, training = attention_function(cell.backend, weights=False), cell.what != "forward"
    shape = (cell.batch, cell.length, 3 * cell.n_heads * cell.d_head)
    qkv = torch.randn(shape, dtype=multiplied(cell), device=cell.device)
    q, k, v = (x.detach().requires_grad_(training) for x in split_heads(qkv, cell.n_heads))
    gradient = torch.randn_like(q.transpose(1, 2), memory_format=torch.contiguous_format).transpose(1, 2)

    @torch.no_grad
    def forward() -> None:
        attend(q, k, v, AttentionMask())

    def run() -> None:
        for _ in range(cell.n_layers):
            if not training or cell.checkpointing:
                forward()
            if training:
                torch.autograd.grad(attend(q, k, v, AttentionMask())[0], (q, k, v), gradient)

    return run


def multiplied(cell: Cell) -> torch.dtype:
    """The format of numbers in the cell's products."""
    return torch.bfloat16 if cell.dtype == "mixed" else DTYPES[cell.dtype]


def _forward(cell: Cell, layers: nn.Module, x: Tensor) -> None:
    with torch.no_grad(), _autocast(cell):
        layers(x)


def _gradient_from_above(cell: Cell, x: Tensor) -> Tensor:
    """What stands for the gradient that would come from what follows the layers."""
    widths = (2 * x.shape[-1],) if cell.network == "bilstm" else (x.shape[-1],)
    return torch.randn(*x.shape[:-1], *widths, dtype=x.dtype, device=x.device)


def _backward(cell: Cell, layers: nn.Module, x: Tensor, gradient: Tensor) -> None:
    with _autocast(cell):
        out = layers(x)
    out.backward(gradient.to(out.dtype))
    x.grad = None
    layers.zero_grad()


def _prepare_step(cell: Cell) -> Callable[[], None]:
    """A step of the classifier; the optimiser has its moments already, as after a first step."""
    encoder = cell.network == "encoder"
    network = made(cell, lambda of: Encoder(encoder_architecture(of)) if encoder else BiLSTM(bilstm_architecture(of)))
    chosen = {"backend": cell.backend} if encoder else {}
    if isinstance(network, Encoder):
        network.checkpointing = cell.checkpointing
    optimizer = torch.optim.AdamW(network.parameters(), fused=True)
    for parameter in network.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    optimizer.zero_grad()
    ids = torch.randint(STEP_VOCABULARY, (cell.batch, cell.length), device=cell.device)
    labels = torch.arange(cell.batch, device=cell.device) % 2

    def step() -> None:
        with _autocast(cell):
            logits = network(ids, **chosen)[0]
        F.cross_entropy(logits.float(), labels).backward()
        nn.utils.clip_grad_norm_(network.parameters(), CLIP_NORM)
        optimizer.step()
        optimizer.zero_grad()

    return step


def synchronize(device: str) -> None:
    """Wait until the device has done what it was told."""
    if device == "cuda":
        torch.cuda.synchronize()


def circumstances(device: str, run: Callable[[], None]) -> dict[str, str]:
    """Which attention operator ran and on what, from one more run; both belong beside each figure."""
    with profile(activities=[ProfilerActivity.CPU]) as found:
        run()
    return {"kernel": kernel_operator([event.key for event in found.key_averages()]), "hardware": hardware_of(device)}


def kernel_operator(names: Sequence[str]) -> str:
    """Of the operators that the profiler names: the fused one, or the softmax between two products."""
    forward = [name for name in names if not name.lower().endswith("backward")]
    fused = next((found for sign in FUSED if (found := [name for name in forward if name.startswith(sign)])), [])
    return ", ".join(fused or [name for name in ("aten::bmm", "aten::_softmax") if name in names])


def hardware_of(device: str) -> str:
    """What a figure of a device is a figure of."""
    found = hardware(device)
    threads = found["threads"]
    return found["gpu"] if device == "cuda" else f"{found['cpu']}, {count(threads, 'thread')}"
