"""How packed reviews are handed to PyTorch's kernel, which a stand-in replaces that does what its documentation says."""

import pytest
import torch

from core.attention import eager, varlen
from tests.attention import proof
from tests.attention.written_out import Case, answer, cases, drawn


def as_documented(query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, *, scale, window_size):
    """Each review by itself; `window_size` are the keys seen before and after, -1 for all."""
    assert query.shape[-1] % 8 == 0
    assert cu_seq_q.dtype == cu_seq_k.dtype == torch.int32 and cu_seq_q[-1] == len(query) and cu_seq_k[-1] == len(key)
    assert max_q >= cu_seq_q.diff().max() and max_k >= cu_seq_k.diff().max()
    before, after = (len(key) if n == -1 else n for n in window_size)
    parts = []
    for (q0, q1), (k0, k1) in zip(cu_seq_q.unfold(0, 2, 1).tolist(), cu_seq_k.unfold(0, 2, 1).tolist(), strict=True):
        offset = torch.arange(k1 - k0) - (torch.arange(q1 - q0)[:, None] + (k1 - k0) - (q1 - q0))
        logits = torch.einsum("qhd,khd->hqk", query[q0:q1], key[k0:k1]) * (scale or query.shape[-1] ** -0.5)
        weights = logits.masked_fill((offset > after) | (offset < -before), float("-inf")).softmax(-1)
        parts.append(torch.einsum("hqk,khd->qhd", weights, value[k0:k1]))
    return torch.cat(parts)


@pytest.fixture(autouse=True)
def stand_in(monkeypatch):
    monkeypatch.setattr(varlen.varlen, "varlen_attn", as_documented)
    monkeypatch.setattr(varlen, "refuse_impossible", lambda *_: None)  # it is on a CPU that this runs


@pytest.mark.parametrize("mask", ["all", "causal", "window", "packed"])
@pytest.mark.parametrize("position", ["none", "rotary"])
def test_reviews_are_handed_over_as_they_are(mask, position):
    for case in cases(mask, position, padded=False)[:8]:
        assert proof.error("varlen", case, "float32", gradients=True) <= proof.TOLERANCE["float32"]


def test_a_window_before_a_token_alone():
    case = Case("causal", "none", False, 65, 3)
    q, k, v, _ = drawn(case)
    mask = varlen.AttentionMask(causal=True, window=4)
    expected = proof.BACKENDS["eager"].resolve()(q, k, v, mask)[0]
    torch.testing.assert_close(varlen.attend(q, k, v, mask)[0], expected)
    assert not torch.isclose(expected.double(), answer(case)[0], atol=1e-3).all()
    torch.testing.assert_close(varlen.attend(q[:, :, -3:], k, v, mask)[0], expected[:, :, -3:])  # the last queries of all


@pytest.mark.parametrize("d_head", [1, 5, 12])
@pytest.mark.parametrize("scale", [None, 0.7])
def test_heads_are_filled_up_to_what_the_kernel_takes(d_head, scale):
    q, k, v = torch.randn(3, 2, 3, 6, d_head, generator=torch.Generator().manual_seed(0)).requires_grad_().unbind()
    mine, known = (attend(q, k, v, varlen.AttentionMask(), None, scale)[0] for attend in (varlen.attend, eager.attend))
    torch.testing.assert_close(mine, known)
    torch.testing.assert_close(*(torch.autograd.grad(out.square().sum(), (q, k, v)) for out in (mine, known)))


def test_the_longest_review_is_asked_once_for_all_layers(monkeypatch):
    case = Case("packed", "none", False, 65, 3)
    q, k, v, _ = drawn(case)
    asked = []
    monkeypatch.setattr(torch.Tensor, "__int__", lambda x: asked.append(x) or x.item())
    packed, padded = varlen.AttentionMask(segments=torch.tensor([*case.starts, 65], dtype=torch.int32)), varlen.AttentionMask()
    for mask in (packed, padded) * 3:
        varlen.attend(q, k, v, mask)
    assert len(asked) == 1


def test_a_length_that_is_known_is_not_asked(monkeypatch):
    monkeypatch.setattr(torch.Tensor, "__int__", lambda x: pytest.fail("a GPU would be waited for"))
    case = Case("packed", "none", False, 65, 3)
    q, k, v, _ = drawn(case)
    segments = torch.tensor([*case.starts, 65], dtype=torch.int32)
    varlen.attend(q, k, v, varlen.AttentionMask(segments=segments, max_seqlen=65))
