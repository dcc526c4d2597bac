import pytest
import torch
from torch.nn.functional import cross_entropy as entropy

from core.measure import cells
from core.measure.cells import EncoderLayers, circumstances, kernel_operator, made, prepare, prepare_attention
from core.measure.live_bytes import peak_of
from core.networks import encoder


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


@pytest.mark.parametrize(
    ("knobs", "kernel"),
    [
        (dict(backend="eager"), "aten::bmm, aten::_softmax"),
        (dict(backend="sdpa"), "aten::_scaled_dot_product_flash_attention_for_cpu"),
        (dict(backend="sdpa-math"), "aten::_scaled_dot_product_attention_math"),
        (dict(backend="chunked"), "_Flash"),
        (dict(backend="chunked", what="step", dtype="mixed", checkpointing=True), "_Flash"),
        (dict(network="bilstm", backend=None), "aten::mkldnn_rnn_layer"),
        (dict(network="bilstm", backend=None, what="step", dtype="mixed"), "aten::mkldnn_rnn_layer"),
    ],
)
def test_the_profiler_names_the_kernel(cell, knobs, kernel):
    found = circumstances("cpu", prepare(cell(**knobs)))
    assert found["kernel"] == kernel and "thread" in found["hardware"]


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("aten::_scaled_dot_product_cudnn_attention", ["aten::_scaled_dot_product_cudnn_attention_backward", "aten::bmm"]),
        ("torch_attn::_varlen_attn", ["torch_attn::_varlen_attn_backward", "aten::_flash_attention_forward"]),
        ("triton_tem_fused_flex_attention_0", ["Torch-Compiled Region: 0/0", "aten::bmm"]),
        ("Torch-Compiled Region: 0/0", ["TorchDynamo Cache Lookup", "aten::bmm", "aten::_softmax"]),
        ("aten::_cudnn_rnn", ["aten::_cudnn_rnn_backward", "aten::lstm"]),
    ],
)
def test_kernels_of_other_machines_have_names_too(name, others):
    assert kernel_operator([*others, name]) == name


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


@pytest.mark.parametrize("network", ["encoder", "bilstm"])
@pytest.mark.parametrize("dtype", ["float32", "mixed"])
def test_a_step_trains_and_begins_with_the_moments_of_the_optimiser(cell, network, dtype, monkeypatch):
    """Bytes of the first step are those of the second, and its loss falls."""
    asked = cell(network=network, backend="sdpa" if network == "encoder" else None, what="step", dtype=dtype)
    losses: list[float] = []
    monkeypatch.setattr(cells.F, "cross_entropy", lambda *given: losses.append(loss := entropy(*given)) or loss)
    run = prepare(asked)
    first = peak_of(run)
    assert peak_of(run) == first
    for _ in range(8):
        run()
    assert losses[-1].item() < losses[0].item()


@pytest.mark.parametrize("backend", ["eager", "sdpa", "chunked"])
def test_activations_computed_again_give_the_same_gradients(cell, backend):
    found = []
    for again in (False, True):
        asked = cell(backend=backend, checkpointing=again)
        torch.manual_seed(0)
        layers = made(asked, EncoderLayers)
        layers(torch.randn(3, 40, 16, requires_grad=True)).sum().backward()
        found.append(torch.cat([p.grad.flatten() for p in layers.parameters()]))
    assert torch.equal(*found) and found[0].abs().max() > 0


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "mixed"])
@pytest.mark.parametrize("what", ["forward", "backward", "step"])
def test_attention_alone_is_what_the_layers_ask_of_their_kernel(cell, what, dtype, monkeypatch):
    """The same queries, keys and values by size, place in memory and format, as often; gradients come where there are any."""
    asked: list[tuple] = []

    def attend(q, k, v, *_):
        out = q * k * v
        if out.requires_grad:
            out.register_hook(lambda gradient: asked.append((gradient.shape, gradient.stride(), gradient.dtype)))
        asked.append(tuple((x.shape, x.stride(), x.dtype) for x in (q, k, v)))
        return out, None

    for module in (cells, encoder):
        monkeypatch.setattr(module, "attention_function", lambda *_, **__: attend)
    of = cell(what=what, dtype=dtype, n_layers=3)
    prepare(of)()
    in_layers = asked.copy()
    asked.clear()
    prepare_attention(of)()
    assert sorted(map(str, asked)) == sorted(map(str, in_layers)) and len(asked) == (3 if what == "forward" else 6)
    assert prepare_attention(cell(network="bilstm", backend=None)) is None


def test_attention_alone_is_computed_again_where_its_layer_is(cell, monkeypatch):
    asked: list[bool] = []
    real = cells.attention_function("sdpa", weights=False)
    monkeypatch.setattr(cells, "attention_function", lambda *_, **__: lambda *given: asked.append(True) or real(*given))
    prepare_attention(cell(backend="sdpa", checkpointing=True))()
    assert len(asked) == 2 * 2


def test_a_gpu_that_is_not_there_is_refused(cell, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="device: got 'cuda', but PyTorch finds no GPU here"):
        prepare(cell(device="cuda"))
