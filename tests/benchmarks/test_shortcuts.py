import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy import stats

from benchmarks.shortcuts import Trained, configuration, plainly, tables
from core.data.batches import Store
from core.networks import dropout
from core.training import loop
from core.training.loop import Examples

LENGTHS = (3, 9, 5, 12, 4, 7, 2)


def examples() -> Examples:
    return Examples([np.arange(1, n + 1) for n in LENGTHS], np.zeros(len(LENGTHS), dtype=np.int64))


def test_without_short_cuts_batches_are_random_and_padded_to_the_longest():
    with plainly(longest=16, batch=4, seed=0):
        steps = loop.plan(examples(), configuration().training)
        batch = Store.of(examples().ids).padded(np.array([0, 3]))
    assert [sum(map(len, parts)) for _, parts in steps] == [4, 3] * configuration().training.epochs
    of_an_epoch = [index for _, parts in steps[:2] for part in parts for index in part]
    assert sorted(of_an_epoch) == list(range(len(LENGTHS))) and of_an_epoch != sorted(of_an_epoch, key=LENGTHS.__getitem__)
    assert batch.input_ids.shape == (2, 16) and batch.token_mask.sum(1).tolist() == [3, 12]
    assert batch.input_ids[~batch.token_mask].unique().tolist() == [0]


def test_without_short_cuts_dropout_draws_for_each_element():
    own, of_torch, cut = dropout.dropout_from_table, F.dropout, Store.padded
    x = torch.ones(400, 500)
    with plainly(longest=16, batch=4, seed=0):
        for drop in (dropout.dropout_from_table, F.dropout):
            dropped = drop(x, 0.25)
            assert dropped.unique().tolist() == pytest.approx([0, 4 / 3])
            assert stats.binomtest(int((dropped == 0).sum()), x.numel(), 0.25).pvalue > 1e-4
            assert abs(np.corrcoef(dropped[0], dropped[1])[0, 1]) < 0.2
        assert F.dropout(x, 0.25, training=False) is x
    assert (dropout.dropout_from_table, F.dropout, Store.padded) == (own, of_torch, cut)


def test_the_difference_is_of_pairs():
    of = {"with short cuts": (0.80, 0.79, 0.81), "without": (0.79, 0.80, 0.79)}
    found = [Trained(way=way, seed=seed, accuracy=one, n=100, cpu_s=1.0) for way in of for seed, one in enumerate(of[way])]
    trainings, difference = tables([*found, Trained(way="without", seed=9, accuracy=0.1, n=100, cpu_s=1.0)])
    assert [row[:3] for row in trainings.rows] == [
        (i, 100 * a, 100 * b) for i, (a, b) in enumerate(zip(*of.values(), strict=True))
    ]
    low, high = stats.t.interval(0.95, 2, loc=2 / 3, scale=stats.sem([1, -1, 2]))
    assert difference.rows[0] == pytest.approx((3, 2 / 3, low, high))
