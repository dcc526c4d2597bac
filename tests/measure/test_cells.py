import pytest
import torch

from core.measure.cells import EncoderLayers, circumstances, kernel_operator, made, prepare
from core.measure.live_bytes import peak_of


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_backends_compute_the_same_of_the_same_cell(cell, dtype):
    outputs = []
    for backend in ("eager", "sdpa"):
        torch.manual_seed(0)
        layers = made(cell(backend=backend, dtype=dtype), EncoderLayers)
        x = torch.randn(3, 40, 16, dtype=getattr(torch, dtype))
        outputs.append(layers(x))
        assert outputs[-1].dtype == x.dtype and outputs[-1].shape == x.shape
    assert torch.allclose(*outputs, atol=1e-5 if dtype == "float32" else 0.05)


def test_the_profiler_names_the_kernel(cell):
    found = {name: circumstances(cell(backend=name), prepare(cell(backend=name))) for name in ("eager", "sdpa")}
    assert found["eager"]["kernel"] == "aten::bmm, aten::_softmax"
    assert found["sdpa"]["kernel"] == "aten::_scaled_dot_product_flash_attention_for_cpu"
    assert "thread" in found["sdpa"]["hardware"]


def test_the_backward_of_a_fused_kernel_is_not_another_kernel():
    names = [
        "aten::bmm",
        "aten::_scaled_dot_product_efficient_attention",
        "aten::_scaled_dot_product_efficient_attention_backward",
    ]
    assert kernel_operator(names) == "aten::_scaled_dot_product_efficient_attention"


def test_a_cell_leaves_nothing_behind(cell):
    """Gradients of one run must not be there in the next one, whose peak they would raise."""
    run = prepare(cell())
    once = peak_of(run)
    assert peak_of(run) == once


def test_forward_keeps_nothing_for_backward(cell):
    forward, deep = (peak_of(prepare(cell(what="forward", n_layers=n))) for n in (2, 6))
    assert forward == deep
    assert peak_of(prepare(cell(n_layers=6))) > 2 * peak_of(prepare(cell()))


def test_a_gpu_that_is_not_there_is_refused(cell, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="device: got 'cuda', but PyTorch finds no GPU here"):
        prepare(cell(device="cuda"))
