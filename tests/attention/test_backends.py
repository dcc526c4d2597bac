"""Every backend against attention written out in float64, with gradients."""

import math
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from core.attention import eager
from core.attention.bias import Bias
from core.attention.masks import AttentionMask
from core.catalog import BACKENDS, CANNOT
from core.networks.blocks import attention_function
from tests.backends import able

TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 4e-2}
every_backend = pytest.mark.parametrize("name", able(gradients=True))


@dataclass(frozen=True)
class Added(Bias):
    """A bias made by hand."""

    term: Tensor

    def at(self, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return self.term[head, query - self.term.shape[2] + self.term.shape[1], key]

    def to(self, device: torch.device) -> "Added":
        return Added(self.term.to(device))


def written_out(q, k, v, allowed, term, scale):
    """Equation 1 of arXiv:1706.03762, sum by sum, in float64."""
    logits = torch.einsum("bhqd,bhtd->bhqt", q.double(), k.double()) * (q.shape[-1] ** -0.5 if scale is None else scale)
    logits = logits if term is None else logits + term.double()
    hidden = ~allowed[:, None, None, :]
    powers = (logits - logits.masked_fill(hidden, -math.inf).amax(-1, keepdim=True)).masked_fill(hidden, -math.inf).exp()
    weights = powers / powers.sum(-1, keepdim=True)
    return torch.einsum("bhqt,bhtd->bhqd", weights, v.double()), weights


def draw(heads=3, queries=7, keys=5, d_head=8, dtype=torch.float32, seed=0):
    """q, k, v of three reviews, and which tokens are real: all, a third of them, one."""
    generator = torch.Generator().manual_seed(seed)
    shapes = [(3, heads, queries, d_head), (3, heads, keys, d_head), (3, heads, keys, d_head)]
    q, k, v = (torch.randn(shape, generator=generator).to(dtype).requires_grad_() for shape in shapes)
    return q, k, v, torch.arange(keys) < torch.tensor([keys, max(1, keys // 3), 1])[:, None]


def result_and_gradients(attend, leaves):
    out, weights = attend(*leaves)
    upstream = torch.randn(out.shape, generator=torch.Generator().manual_seed(1)).to(out.dtype)
    return out, weights, torch.autograd.grad(out, [leaf for leaf in leaves if leaf.requires_grad], upstream)


def assert_as_written_out(name, q, k, v, token_mask, term=None, scale=None):
    attend = BACKENDS[name].resolve()
    allowed = torch.ones(k.shape[0], k.shape[2], dtype=torch.bool) if token_mask is None else token_mask
    bias = None if term is None else Added(term)
    out, weights, gradients = result_and_gradients(
        lambda q, k, v: attend(q, k, v, AttentionMask(token_mask), bias, scale), [q, k, v]
    )
    expected, expected_weights, expected_gradients = result_and_gradients(
        lambda q, k, v: written_out(q, k, v, allowed, term, scale), [q, k, v]
    )
    near = dict(atol=TOLERANCE[q.dtype], rtol=TOLERANCE[q.dtype])
    assert out.dtype == q.dtype
    torch.testing.assert_close(out.double(), expected, **near)
    for gradient, known in zip(gradients, expected_gradients, strict=True):
        torch.testing.assert_close(gradient.double(), known.double(), **near)
    if weights is not None:
        torch.testing.assert_close(weights.double(), expected_weights, **near)


@every_backend
@pytest.mark.parametrize("scale", [None, 0.5, 0.0])
@pytest.mark.parametrize("biased", [False, True], ids=["plain", "biased"])
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("padded", [False, True], ids=["dense", "padded"])
def test_values_and_gradients_with_scale_and_bias_on_unequal_axes(name, scale, biased, dtype, padded):
    q, k, v, token_mask = draw(heads=4, queries=7, keys=65, d_head=16, dtype=dtype)
    term = torch.randn(4, 7, 65, generator=torch.Generator().manual_seed(2))
    assert_as_written_out(name, q, k, v, token_mask if padded else None, term if biased else None, scale)


@every_backend
@pytest.mark.parametrize("d_head", [1, 5, 33])
def test_odd_sizes_of_a_head(name, d_head):
    q, k, v, token_mask = draw(queries=7, keys=7, d_head=d_head)
    assert_as_written_out(name, q, k, v, token_mask)


@every_backend
def test_the_only_key_seen_is_passed_on(name):
    q, k, v, _ = draw(queries=4, keys=6)
    token_mask = torch.zeros(3, 6, dtype=torch.bool)
    token_mask[torch.arange(3), torch.tensor([0, 5, 2])] = True
    out, _ = BACKENDS[name].resolve()(q, k, v, AttentionMask(token_mask))
    seen = torch.stack([v[0, :, 0], v[1, :, 5], v[2, :, 2]])
    torch.testing.assert_close(out, seen[:, :, None].expand_as(out), atol=1e-6, rtol=0)


@every_backend
@pytest.mark.parametrize("biased", [False, True])
def test_a_review_without_a_token_gives_numbers(name, biased):
    q, k, v, token_mask = draw(queries=5, keys=5)
    bias = Added(torch.zeros(3, 5, 5)) if biased else None
    token_mask[1] = False
    out, _, gradients = result_and_gradients(
        lambda q, k, v: BACKENDS[name].resolve()(q, k, v, AttentionMask(token_mask), bias), [q, k, v]
    )
    assert out.isfinite().all() and all(gradient.isfinite().all() for gradient in gradients)
    token_mask[1] = True
    torch.testing.assert_close(out, BACKENDS[name].resolve()(q, k, v, AttentionMask(token_mask), bias)[0])


@every_backend
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_logits_of_thousands_give_numbers(name, dtype):
    q, k, v, token_mask = draw(queries=9, keys=9)
    q, k, v = (x.detach().to(dtype) for x in (-q.abs() * 60, k.abs() * 60, v))
    out, _ = BACKENDS[name].resolve()(q, k, v, AttentionMask(token_mask))
    expected, _ = written_out(q, k, v, token_mask, None, None)
    assert ((q.double() @ k.double().mT) * 8**-0.5).min() < -5000
    assert out.isfinite().all()
    if dtype == torch.float32:
        torch.testing.assert_close(out.double(), expected, atol=1e-3, rtol=0)


@every_backend
def test_padding_changes_nothing_and_real_tokens_do(name):
    q, k, v, token_mask = draw(queries=5, keys=9)
    attend = BACKENDS[name].resolve()
    before, _ = attend(q, k, v, AttentionMask(token_mask))
    padding, real = ~token_mask[:, None, :, None], token_mask[:, None, :, None]
    edited, _ = attend(q, k.masked_fill(padding, 9.0), v.masked_fill(padding, -9.0), AttentionMask(token_mask))
    assert torch.equal(edited, before)
    edited, _ = attend(q, k, v.masked_fill(real, -9.0), AttentionMask(token_mask))
    assert not torch.isclose(edited, before).any()


@pytest.mark.parametrize("name", able(dropout=True))
def test_dropout_keeps_the_mean(name):
    q, k, v, _ = draw(heads=2, queries=3, keys=4)
    attend = BACKENDS[name].resolve()
    undropped, _ = attend(q[:1], k[:1], v[:1], AttentionMask())
    torch.manual_seed(0)
    out, weights = attend(*(x[:1].expand(20_000, -1, -1, -1) for x in (q, k, v)), AttentionMask(), None, None, 0.4)
    assert (out[0] != out[1]).any()
    torch.testing.assert_close(out.mean(0, keepdim=True), undropped, atol=0.04, rtol=0)
    if weights is not None:  # from before dropout
        torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))


@pytest.mark.parametrize("name", able(dropout=True))
@pytest.mark.parametrize("p", [0.1, 0.5])
@pytest.mark.parametrize("padded", [False, True], ids=["dense", "padded"])
def test_dropout_leaves_weights_divided_by_their_share(name, p, padded):
    """The same numbers drawn twice: with unit vectors as values the output is the weights that are left, and then is used."""
    q, k, v, token_mask = draw(heads=4, queries=16, keys=16, d_head=16)
    mask = AttentionMask(token_mask if padded else None)

    def attend(q, k, v):
        torch.manual_seed(0)
        return BACKENDS[name].resolve()(q, k, v, mask, None, None, p)

    left = attend(q, k, torch.eye(16).expand_as(v))[0] != 0
    seen = torch.ones_like(token_mask) if mask.token_mask is None else token_mask
    n_seen = int(seen.sum()) * 4 * 16
    assert int(left.sum()) == pytest.approx((1 - p) * n_seen, abs=4 * (p * (1 - p) * n_seen) ** 0.5)

    def expected(q, k, v):
        weights = written_out(q, k, v, seen, None, None)[1] * left / (1 - p)
        return torch.einsum("bhqt,bhtd->bhqd", weights, v.double()), None

    (out, _, found), (known, _, gradients) = result_and_gradients(attend, [q, k, v]), result_and_gradients(expected, [q, k, v])
    torch.testing.assert_close(out.double(), known, atol=1e-5, rtol=1e-5)
    for gradient, right in zip(found, gradients, strict=True):
        torch.testing.assert_close(gradient.double(), right.double(), atol=1e-5, rtol=1e-5)


weighing = pytest.mark.parametrize("name", able(weights=True))


@weighing
def test_weights_by_hand(name):  # softmax(0, 1) = (1, e) / (1 + e)
    q, k = torch.ones(1, 1, 1, 1), torch.tensor([0.0, 1.0]).view(1, 1, 2, 1)
    out, weights = BACKENDS[name].resolve()(q, k, torch.tensor([10.0, 20.0]).view(1, 1, 2, 1), AttentionMask())
    expected = [1 / (1 + math.e), math.e / (1 + math.e)]
    assert weights.flatten().tolist() == pytest.approx(expected, abs=1e-7)
    assert out.item() == pytest.approx(10 * expected[0] + 20 * expected[1])


@weighing
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_weights_are_float32_sum_to_one_and_leave_padding_out(name, dtype):
    q, k, v, token_mask = draw(4, 11, 64, dtype=dtype)
    _, weights = BACKENDS[name].resolve()(q, k, v, AttentionMask(token_mask))
    assert weights.dtype == torch.float32 and weights.shape == (3, 4, 11, 64)
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, 4, 11))
    shown = token_mask[:, None, None, :].expand_as(weights)
    assert (weights[~shown] == 0).all() and (weights[shown] > 0).all()


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("biased", [False, True])
def test_weights_that_nobody_looks_at_change_nothing(dtype, biased):
    """To the bit going forward: rounded before the product they are either way."""
    q, k, v, token_mask = draw(4, 64, 64, dtype=dtype)
    bias = Added(torch.randn(4, 64, 64)) if biased else None
    out, _, gradients = result_and_gradients(lambda *x: eager.attend(*x, AttentionMask(token_mask), bias), [q, k, v])
    unseen, weights, others = result_and_gradients(
        lambda *x: eager.attend_unseen(*x, AttentionMask(token_mask), bias), [q, k, v]
    )
    assert weights is None and torch.equal(unseen, out)
    for gradient, other in zip(gradients, others, strict=True):
        torch.testing.assert_close(other, gradient, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])


def test_weights_in_half_precision_are_float32_only_where_they_are_asked_for():
    q, k, v, _ = draw(2, 40, 40, dtype=torch.bfloat16)
    widest = {}
    for asked in (True, False):
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as found:
            attention_function("eager", weights=asked)(q, k, v, AttentionMask())
        widest[asked] = max(event.self_cpu_memory_usage for event in found.events())
    assert widest[True] == 2 * widest[False] == 4 * 3 * 2 * 40 * 40


@pytest.mark.parametrize("padded", [False, True], ids=["dense", "padded"])
def test_sdpa_takes_the_flash_kernel_on_a_cpu(padded):
    q, k, v, token_mask = draw(3, 64, 64)
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        BACKENDS["sdpa"].resolve()(q, k, v, AttentionMask(token_mask if padded else None))[0].sum().backward()
    names = {event.name for event in profiled.events()}
    assert "aten::_scaled_dot_product_flash_attention_for_cpu_backward" in names
    assert not any("attention_math" in name for name in names)


@pytest.mark.parametrize("padded", [False, True], ids=["dense", "padded"])
def test_sdpa_is_given_no_mask_that_a_kernel_could_misread(padded, monkeypatch):  # pytorch#191612: bool, or as the queries
    q, k, v, token_mask = draw(queries=5, keys=5, dtype=torch.bfloat16)
    given = []

    def spy(q, k, v, attn_mask, **_):
        given.append(attn_mask)
        return q

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", spy)
    mask = AttentionMask(token_mask if padded else None)
    BACKENDS["sdpa"].resolve()(q, k, v, mask, Added(torch.zeros(3, 5, 5)))
    BACKENDS["sdpa"].resolve()(q, k, v, mask)
    assert given[0].dtype == torch.bfloat16
    assert given[1].dtype == torch.bool if padded else given[1] is None


@pytest.mark.parametrize(
    ("mask", "queries", "by_order"),
    [
        (AttentionMask(causal=True), 5, True),
        (AttentionMask(causal=True, window=4), 5, True),  # wide enough for all
        (AttentionMask(causal=True), 3, False),  # which PyTorch would take for the first three
        (AttentionMask(causal=True, window=2), 5, False),
        (AttentionMask(torch.ones(3, 5, dtype=torch.bool), causal=True), 5, False),
        (AttentionMask(), 5, False),
    ],
)
@pytest.mark.parametrize("name", ["sdpa", "sdpa-flash", "sdpa-math"])
def test_plain_order_is_told_to_the_kernel_without_a_mask(name, mask, queries, by_order, monkeypatch):
    q, k, v, _ = draw(queries=queries, keys=5)
    expected, _ = BACKENDS["eager"].resolve()(q, k, v, mask)
    given, right = [], torch.nn.functional.scaled_dot_product_attention
    monkeypatch.setattr(
        torch.nn.functional, "scaled_dot_product_attention", lambda *x, **how: given.append(how) or right(*x, **how)
    )
    torch.testing.assert_close(BACKENDS[name].resolve()(q, k, v, mask)[0], expected)
    assert given[0]["is_causal"] == by_order and (given[0]["attn_mask"] is None) == (by_order or mask == AttentionMask())


@pytest.mark.parametrize("masked", [False, True], ids=["dense", "window"])
def test_chunked_sums_are_float32_under_autocast_too(masked):
    q, k, v, _ = draw(heads=2, queries=300, keys=300, d_head=32)
    mask = AttentionMask(window=40) if masked else AttentionMask()
    attend, results = BACKENDS["chunked"].resolve(), []
    for autocast in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            results.append(result_and_gradients(lambda q, k, v: attend(q * 3, k, v, mask), [q, k, v]))
    assert all(map(torch.equal, results[0][2], results[1][2])) and torch.equal(results[0][0], results[1][0])


def test_threads_do_not_take_each_others_kernel(monkeypatch):
    enabled = {"sdpa-flash": torch.backends.cuda.flash_sdp_enabled, "sdpa-math": torch.backends.cuda.math_sdp_enabled}
    before = [is_enabled() for is_enabled in enabled.values()]
    chosen = []

    def spy(q, *_, **__):
        time.sleep(0.001)  # so that another thread has its turn
        chosen.append([name for name, is_enabled in enabled.items() if is_enabled()])
        return q

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", spy)
    q, k, v, _ = draw()
    names = list(enabled) * 20
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: BACKENDS[name].resolve()(q, k, v, AttentionMask()), names))
    assert sorted(chosen) == sorted([name] for name in names)
    assert [is_enabled() for is_enabled in enabled.values()] == before


def test_what_a_backend_cannot_do_is_said():
    for name, backend in BACKENDS.items():
        assert backend.why_not() is None
        assert set(backend.dtypes) == set(backend.cannot)
        for device, cannot in backend.cannot.items():
            assert {what for what in CANNOT if backend.why_not(device=device, **{what: True})} == set(cannot), name
            assert backend.why_not(device=device, dtype="float8") is not None
    assert BACKENDS["sdpa"].why_not(weights=True) == "it computes no weights; to inspect, use 'eager'"
    assert BACKENDS["cudnn"].why_not(device="cpu") == "it runs on cuda alone, not on cpu; use 'eager' or 'sdpa'"
    assert (
        BACKENDS["varlen"].why_not(dtype="float32")
        == "it takes bfloat16 and float16 on cuda, not float32; use 'eager' or 'sdpa'"
    )
    assert BACKENDS["varlen"].why_not(bias=True) == "it adds no bias, which ALiBi needs, on cuda; use 'eager' or 'sdpa'"
    assert BACKENDS["sdpa-flash"].why_not(bias=True) is None  # it does on one device
    assert BACKENDS["flex"].why_not(device="cpu", gradients=True) is not None
    assert BACKENDS["flex"].why_not(device="cuda", gradients=True) is None


def test_what_is_compiled_needs_a_compiler(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert "no C++ compiler here; install g++" in BACKENDS["flex"].why_not(device="cpu")
    assert BACKENDS["flex"].why_not(device="cuda") is None
    assert BACKENDS["eager"].why_not(device="cpu") is None


REFUSED = [(name, what) for name in able() for what in BACKENDS[name].cannot["cpu"] if what != "weights"]


@pytest.mark.parametrize(("name", "what"), REFUSED)
def test_a_backend_refuses_what_the_catalogue_says(name, what):
    q, k, v, token_mask = draw(queries=5, keys=5)
    with torch.set_grad_enabled(what == "gradients"), pytest.raises(ValueError, match=f"backend '{name}': it (drops|has) no"):
        BACKENDS[name].resolve()(q, k, v, AttentionMask(token_mask), None, None, 0.1 if what == "dropout" else 0.0)


@pytest.mark.parametrize("name", [name for name in BACKENDS if name not in able()])
def test_a_backend_of_another_device_says_so(name):
    q, k, v, _ = draw()
    with pytest.raises(ValueError, match=f"backend '{name}': it runs on cuda alone, not on cpu; use 'eager' or 'sdpa'"):
        BACKENDS[name].resolve()(q, k, v, AttentionMask())
