"""Every backend, mask, position, format, padded or not, trained or not, against attention written out in float64.

`proof.all_offered` reads from the catalogue what each backend can do; a new one is proved without a line here.
"""

import warnings

import jaxtyping
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.attention.flex_attention import flex_attention

from core.attention import flex
from core.attention.bias import AlibiBias
from core.attention.masks import AttentionMask
from core.catalog import BACKENDS
from tests.attention import proof
from tests.attention.written_out import D_HEAD, MASKS, POSITIONS, Case, drawn
from tests.backends import able


@pytest.fixture
def unchecked(monkeypatch):
    """FlexAttention traces the functions it is given, and cannot trace a check of types."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


@pytest.fixture
def uncompiled(unchecked, monkeypatch):
    """FlexAttention as PyTorch writes it out: to compile it for every case would take an hour."""
    monkeypatch.setattr(flex, "_compiled", lambda dynamic: flex_attention)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="flex_attention called without torch.compile")
        yield


@pytest.mark.parametrize(("name", "dtype", "mask", "position", "padded", "gradients"), proof.all_offered())
def test_a_backend_is_attention(name, dtype, mask, position, padded, gradients, request):
    if name == "flex":
        request.getfixturevalue("uncompiled")
    assert proof.largest_error(name, dtype, mask, position, padded, gradients) <= proof.TOLERANCE[dtype]


COMPILED = [("window and global", "alibi", True, "float32"), ("packed", "rotary", False, "bfloat16")]


@pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated")  # PyTorch's own compiler uses it
@pytest.mark.skipif("flex" not in able(), reason="FlexAttention is compiled, and there is no C++ compiler here")
@pytest.mark.parametrize(("mask", "position", "padded", "dtype"), COMPILED)
def test_flex_is_attention_compiled(mask, position, padded, dtype, unchecked):
    assert proof.error("flex", Case(mask, position, padded, 65), dtype, gradients=False) <= proof.TOLERANCE[dtype]


@given(
    name=st.sampled_from(able(gradients=True)),
    mask=st.sampled_from(list(MASKS)),
    position=st.sampled_from(POSITIONS),
    padded=st.booleans(),
    length=st.integers(1, 300),
    heads=st.integers(1, 9),
)
@settings(max_examples=40)
def test_any_shape(name, mask, position, padded, length, heads):
    case = Case(mask, position, padded and mask != "packed", length, heads)
    for gradients in (False, True):
        assert proof.error(name, case, "float32", gradients) <= proof.TOLERANCE["float32"]


@pytest.mark.parametrize("name", able(gradients=True))
@pytest.mark.parametrize("causal", [False, True])
def test_the_last_queries_alone_are_answered_as_with_all(name, causal):
    case = Case("all", "none", True, 300, 3)
    q, k, v, _ = drawn(case)
    attend, mask = BACKENDS[name].resolve(), AttentionMask(case.real, causal, window=40, n_global=2)
    bias = AlibiBias(torch.tensor([0.5, 0.1, 0.02]))
    torch.testing.assert_close(attend(q[:, :, -5:], k, v, mask, bias)[0], attend(q, k, v, mask, bias)[0][:, :, -5:])


def chunked(*parts):
    return torch.cat(parts, dim=-1).chunk(3, dim=-1)


def transposed(*parts):
    return tuple(x.transpose(1, 2).contiguous().transpose(1, 2) for x in parts)


def shared(q, k, v):
    return q, k[:, :1].expand_as(k), v[:, :1].expand_as(v)


@pytest.mark.parametrize("name", able(gradients=True))
@pytest.mark.parametrize("view", [chunked, transposed, shared])
@pytest.mark.parametrize("mask", ["all", "window and global"])
@pytest.mark.parametrize("length", [33, 65, 513])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_views_read_as_their_copies(name, view, mask, length, dtype):
    case = Case(mask, "alibi", True, length, 3)
    *parts, above = (x.to(proof.DTYPES[dtype]) for x in drawn(case))
    viewed = view(*parts)
    assert not all(x.is_contiguous() for x in viewed)
    results = []
    for leaves in (viewed, [x.contiguous() for x in viewed]):
        leaves = [x.detach().requires_grad_() for x in leaves]
        out = proof.attended(name, case, *leaves)
        results.append((out, *torch.autograd.grad(out, leaves, above)))
    near = proof.TOLERANCE[dtype]
    torch.testing.assert_close(*results, atol=near, rtol=near)


@pytest.mark.parametrize("name", able())
def test_a_row_that_sees_one_key_is_that_key(name, request):
    if name == "flex":
        request.getfixturevalue("uncompiled")
    v = torch.randn(1, 2, 5, D_HEAD)
    with torch.no_grad():
        out, _ = BACKENDS[name].resolve()(v, v, v, AttentionMask(segments=torch.arange(6)))
        causal, _ = BACKENDS[name].resolve()(v, v, v, AttentionMask(causal=True))
    torch.testing.assert_close(out, v)
    torch.testing.assert_close(causal[:, :, 0], v[:, :, 0])
