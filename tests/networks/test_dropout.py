"""Dropout from a table: what share falls, what the others become, and that it is random."""

import pytest
import torch

from core.networks.dropout import DRAWN, Dropout, dropout_from_table, table

RATES = [0.05, 0.1, 0.3, 0.5, 0.95]
every_rate = pytest.mark.parametrize("p", RATES)
every_dtype = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)


def dropped(p, n=1 << 20, dtype=torch.float32, seed=0):
    torch.manual_seed(seed)
    return dropout_from_table(torch.ones(n, dtype=dtype), p)


def factor(p, dtype):
    """What the elements that stay are multiplied by."""
    return torch.tensor(1 / (1 - p), dtype=dtype).double().item()


@every_rate
@every_dtype
def test_the_share_of_zeros_is_the_rate_as_the_format_can_hold_it(p, dtype):
    n, share = 1 << 20, 1 - 1 / factor(p, dtype)
    assert share == pytest.approx(p, abs=1e-7 if dtype == torch.float32 else 2e-3)
    spread = (share * (1 - share) / n) ** 0.5
    assert (dropped(p, dtype=dtype) == 0).double().mean().item() == pytest.approx(share, abs=4 * spread)


@every_rate
@every_dtype
def test_what_stays_is_scaled_alike(p, dtype):
    torch.manual_seed(0)
    x = torch.randn(4096).to(dtype)
    out = dropout_from_table(x, p)
    exact = (x.double() * factor(p, dtype)).to(dtype)
    torch.testing.assert_close(out[out != 0], exact[out != 0], atol=0, rtol=1e-6 if dtype == torch.float32 else 0)


@every_rate
@every_dtype
def test_the_mean_stays(p, dtype):
    torch.manual_seed(1)
    n = 1 << 20
    x = torch.rand(n).to(dtype)  # of many values: that of a single one would be rounded to one side
    ratio = dropout_from_table(x, p).double().mean() / x.double().mean()
    spread = (p / (1 - p) * (1 + 1 / 3) / n) ** 0.5
    assert ratio.item() == pytest.approx(1, abs=4 * spread)


@every_dtype
def test_gradient_passes_where_the_value_did(dtype):
    torch.manual_seed(0)
    x = torch.randn(3, 5, 7).to(dtype).requires_grad_()
    out = dropout_from_table(x, 0.5)
    (gradient,) = torch.autograd.grad(out, x, torch.full_like(out, 3))
    assert torch.equal(gradient, torch.where(out == 0, 0, 3 * 2).to(dtype))
    assert 20 < (out == 0).sum() < 85


def test_neighbours_fall_independently():
    fell = (dropped(0.5) == 0).double() - 0.5
    for distance in (1, 2, 7, 8, 64, 1024):
        pair = (fell[:-distance] * fell[distance:]).mean().item() / 0.25
        assert abs(pair) < 4 / len(fell) ** 0.5, distance


def test_each_element_falls_independently_from_one_call_to_the_next():
    torch.manual_seed(0)
    n, calls = 1 << 12, 256
    fell = torch.stack([dropout_from_table(torch.ones(n), 0.5) == 0 for _ in range(calls)]).double()
    assert fell.mean(0).std().item() == pytest.approx(0.5 / calls**0.5, rel=0.05)  # as of tosses of a coin
    pairs = ((fell[:-1] - 0.5) * (fell[1:] - 0.5)).mean().item() / 0.25
    assert abs(pairs) < 4 / (n * (calls - 1)) ** 0.5


def test_another_mask_each_time_and_the_same_by_the_same_seed():
    torch.manual_seed(0)
    first, second = dropout_from_table(torch.ones(64), 0.5), dropout_from_table(torch.ones(64), 0.5)
    assert not torch.equal(first, second)
    assert torch.equal(first, dropped(0.5, n=64, seed=0)) and not torch.equal(first, dropped(0.5, n=64, seed=1))


def test_a_table_drawn_anew_is_the_same_so_that_a_run_can_be_resumed():
    first = dropped(0.3, n=999)
    table.cache_clear()
    assert torch.equal(first, dropped(0.3, n=999))


@pytest.mark.parametrize("shape", [(1,), (7,), (2, 3, 5), (0, 4), (DRAWN // 2 + 1,), (DRAWN + 1,)], ids=str)
def test_any_shape(shape):
    out = dropout_from_table(torch.ones(shape), 0.1)
    assert out.shape == shape
    if out.numel() > 100:
        assert (out == 0).double().mean().item() == pytest.approx(0.1, abs=1e-3)


def test_a_view_is_dropped_as_its_copy():
    x = torch.randn(6, 5).T
    torch.manual_seed(0)
    viewed = dropout_from_table(x, 0.5)
    torch.manual_seed(0)
    assert torch.equal(viewed, dropout_from_table(x.contiguous(), 0.5))


def test_module_is_off_in_evaluation_and_at_zero():
    x = torch.ones(64)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0).train()(x) is x
    assert (Dropout(0.5).train()(x) == 0).any()
    assert repr(Dropout(0.5)) == "Dropout(p=0.5)"


def test_values_of_mixed_precision_stay_what_they_are():
    with torch.autocast("cpu", torch.bfloat16):
        assert Dropout(0.1).train()(torch.ones(8, dtype=torch.bfloat16)).dtype == torch.bfloat16
        assert Dropout(0.1).train()(torch.ones(8)).dtype == torch.float32
