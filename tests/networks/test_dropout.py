"""Dropout by bytes: what share falls, what the others become, and that it is random."""

import pytest
import torch

from core.networks.dropout import Dropout, dropout_by_bytes

RATES = [0.05, 0.1, 0.3, 0.5, 0.95]
every_rate = pytest.mark.parametrize("p", RATES)
every_dtype = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)


def dropped(p, n=1 << 20, dtype=torch.float32, seed=0):
    torch.manual_seed(seed)
    return dropout_by_bytes(torch.ones(n, dtype=dtype), p)


@every_rate
def test_share_of_zeros_is_the_rounded_rate(p):
    share, n = round(p * 256) / 256, 1 << 20
    assert abs(share - p) <= 1 / 512
    spread = (share * (1 - share) / n) ** 0.5
    assert (dropped(p) == 0).double().mean().item() == pytest.approx(share, abs=4 * spread)


@every_rate
@every_dtype
def test_what_stays_is_scaled_by_exactly_the_share_that_stays(p, dtype):
    torch.manual_seed(0)
    x = torch.randn(4096).to(dtype)
    out = dropout_by_bytes(x, p)
    exact = (x.double() * 256 / (256 - round(p * 256))).to(dtype)
    torch.testing.assert_close(out[out != 0], exact[out != 0], atol=0, rtol=1e-6 if dtype == torch.float32 else 0)


@every_rate
@every_dtype
def test_the_mean_stays(p, dtype):
    torch.manual_seed(1)
    n, share = 1 << 20, round(p * 256) / 256
    x = torch.rand(n).to(dtype)  # of many values: that of a single one would be rounded to one side
    ratio = dropout_by_bytes(x, p).double().mean() / x.double().mean()
    spread = (share / (1 - share) * (1 + 1 / 3) / n) ** 0.5
    assert ratio.item() == pytest.approx(1, abs=4 * spread)


@every_dtype
def test_gradient_passes_where_the_value_did(dtype):
    torch.manual_seed(0)
    x = torch.randn(3, 5, 7).to(dtype).requires_grad_()
    out = dropout_by_bytes(x, 0.5)
    (gradient,) = torch.autograd.grad(out, x, torch.full_like(out, 3))
    assert torch.equal(gradient, torch.where(out == 0, 0, 3 * 2).to(dtype))
    assert 20 < (out == 0).sum() < 85


def test_neighbours_fall_independently():
    fell = (dropped(0.5) == 0).double() - 0.5
    for distance in (1, 2, 7, 8, 9, 64):  # eight elements share a draw
        pair = (fell[:-distance] * fell[distance:]).mean().item() / 0.25
        assert abs(pair) < 4 / len(fell) ** 0.5, distance


def test_each_byte_of_a_draw_falls_equally_often():
    shares = (dropped(0.3).view(-1, 8) == 0).double().mean(0)
    torch.testing.assert_close(shares, torch.full((8,), 77 / 256, dtype=torch.double), atol=0.005, rtol=0)


def test_another_mask_each_time_and_the_same_by_the_same_seed():
    torch.manual_seed(0)
    first, second = dropout_by_bytes(torch.ones(64), 0.5), dropout_by_bytes(torch.ones(64), 0.5)
    assert not torch.equal(first, second)
    assert torch.equal(first, dropped(0.5, n=64, seed=0)) and not torch.equal(first, dropped(0.5, n=64, seed=1))


@pytest.mark.parametrize("shape", [(1,), (7,), (8,), (9,), (2, 3, 5), (0, 4)], ids=str)
def test_any_shape(shape):
    assert dropout_by_bytes(torch.ones(shape), 0.1).shape == shape


def test_a_view_is_dropped_as_its_copy():
    x = torch.randn(6, 5).T
    torch.manual_seed(0)
    viewed = dropout_by_bytes(x, 0.5)
    torch.manual_seed(0)
    assert torch.equal(viewed, dropout_by_bytes(x.contiguous(), 0.5))


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
