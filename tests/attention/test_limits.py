"""What the kernels may cost, where it can be counted; times are measured in `benchmarks`."""

import pytest
import torch

from benchmarks.attention_cpu import block_operations
from core.attention import chunked, eager
from core.attention.bias import AlibiBias
from core.attention.masks import AttentionMask
from core.measure.live_bytes import peak_of


def peak(attend, length, mask, bias):
    q, k, v = (torch.randn(1, 2, length, 16, requires_grad=True) for _ in range(3))
    return peak_of(lambda: attend(q, k, v, mask, bias)[0].sum().backward())


MASKS = {"all": AttentionMask(), "window": AttentionMask(window=9, n_global=2)}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("biased", [False, True], ids=["plain", "alibi"])
def test_chunked_attention_takes_a_tenth_of_the_memory_and_grows_with_length(mask, biased):
    bias = AlibiBias(torch.tensor([0.5, 0.25])) if biased else None
    assert peak(chunked.attend, 2048, mask, bias) < peak(eager.attend, 2048, mask, bias) / 10
    short, middle, long = (peak(chunked.attend, length, mask, bias) for length in (1024, 2048, 4096))
    assert long - middle == pytest.approx(2 * (middle - short), rel=0.05)


def test_the_block_calls_no_operator_that_one_by_hand_does_not():
    found = block_operations()
    assert found["ours"] == found["by_hand"] > 10
