"""Who may attend to whom, against the rule said once more, pair by pair."""

import itertools
from dataclasses import replace

import pytest
import torch

from core.attention.bias import AlibiBias
from core.attention.masks import AttentionMask

B, T, K = 2, 9, 4
REAL = torch.tensor([[True] * 6 + [False] * 3, [False] * 2 + [True] * 7])


def tensors(queries=T, keys=T, batch=B):
    return torch.zeros(batch, 3, queries, K), torch.zeros(batch, 3, keys, K)


def said_again(real, causal, window, n_global, starts, i, j):
    """Whether query i sees key j; `starts` are where packed reviews begin."""
    review = [place for place in range(len(real)) if real[place] and _start(starts, place) == _start(starts, i)]
    leading = [place for place in range(len(real)) if place in _first_of_each(real, starts, n_global)]
    near = window is None or abs(i - j) <= window or i in leading or j in leading
    return i == j or (j in review and near and not (causal and j > i))


def _start(starts, place):
    return max(start for start in starts if start <= place)


def _first_of_each(real, starts, n):
    return [place for start in starts for place in [p for p in range(len(real)) if real[p] and _start(starts, p) == start][:n]]


BY_PLACE = [(True, None, 0), *itertools.product([False, True], [1, 3], [0, 1, 2])]


@pytest.mark.parametrize("padded", [False, True], ids=["dense", "padded"])
@pytest.mark.parametrize(("causal", "window", "n_global"), BY_PLACE)
def test_dense_is_the_rule(padded, causal, window, n_global):
    mask = AttentionMask(REAL if padded else None, causal, window, n_global)
    dense = mask.dense(*tensors()).expand(B, 1, T, T)
    for b, i, j in itertools.product(range(B), range(T), range(T)):
        real = REAL[b].tolist() if padded else [True] * T
        assert dense[b, 0, i, j] == said_again(real, causal, window, n_global, [0], i, j), (b, i, j)
    assert dense.any(-1).all()


@pytest.mark.parametrize(("window", "n_global"), [(None, 0), (1, 0), (2, 1), (1, 3)])
@pytest.mark.parametrize("causal", [False, True], ids=["both", "causal"])
def test_packed_reviews_do_not_see_each_other(causal, window, n_global):
    mask = AttentionMask(
        causal=causal, window=window, n_global=n_global, segments=torch.tensor([0, 1, 5, 9], dtype=torch.int32)
    )
    dense = mask.dense(*tensors(batch=1))
    assert dense.shape == (1, 1, T, T)
    for i, j in itertools.product(range(T), range(T)):
        assert dense[0, 0, i, j] == said_again([True] * T, causal, window, n_global, [0, 1, 5], i, j), (i, j)


@pytest.mark.parametrize(
    "mask", [AttentionMask(causal=True), AttentionMask(REAL, causal=True, window=3, n_global=2)], ids=["", "padded"]
)
def test_fewer_queries_are_the_last_ones(mask):
    torch.testing.assert_close(mask.dense(*tensors(queries=2)), mask.dense(*tensors())[:, :, -2:])
    bias = AlibiBias(torch.tensor([0.5, 0.25, 1.0]))
    torch.testing.assert_close(bias.dense(*tensors(queries=2)), bias.dense(*tensors())[:, -2:])


def test_no_mask_is_a_mask_of_ones_and_a_review_without_a_token_sees_all():
    assert AttentionMask().dense(*tensors()) is None
    dense = AttentionMask(torch.tensor([[True, True, False], [False, False, False]])).dense(*tensors(4, 3))
    assert dense.tolist() == [[[[True, True, False]]], [[[True, True, True]]]]


@pytest.mark.parametrize("mask", [AttentionMask(), AttentionMask(REAL)], ids=["dense", "padded"])
@pytest.mark.parametrize(
    ("added", "queries"),
    [(dict(window=T - 1, n_global=2), T), (dict(window=T), 2), (dict(causal=True), 1), (dict(n_global=3), T)],
)
def test_what_hides_nothing_is_no_mask(mask, added, queries):
    given = tensors(queries)
    idle = replace(mask, **added)
    torch.testing.assert_close(idle.dense(*given), mask.dense(*given))
    assert not idle.among(queries, T).by_place


@pytest.mark.parametrize(("added", "queries"), [(dict(window=T - 2), 1), (dict(causal=True), 2), (dict(causal=True), T)])
def test_what_hides_one_key_is_one(added, queries):
    assert not AttentionMask(**added).dense(*tensors(queries)).all()


def test_what_makes_no_mask_is_refused():
    with pytest.raises(ValueError, match="window: got 0, expected at least 1"):
        AttentionMask(window=0)
    with pytest.raises(ValueError, match="n_global: got -1, expected at least 0"):
        AttentionMask(window=3, n_global=-1)
    for place_matters in (AttentionMask(causal=True).dense, AlibiBias(torch.ones(3)).dense):
        with pytest.raises(ValueError, match="got 5 queries for 4 keys, expected at most as many"):
            place_matters(*tensors(5, 4))


def test_alibi_by_hand():
    dense = AlibiBias(torch.tensor([1.0, 0.5, 0.0])).dense(*tensors(2, 3))
    assert dense.tolist() == [[[-1, 0, -1], [-2, -1, 0]], [[-0.5, 0, -0.5], [-1, -0.5, 0]], [[0, 0, 0], [0, 0, 0]]]
    assert dense.dtype == torch.float32


def test_a_mask_is_written_out_once_for_all_layers():
    mask = AttentionMask(torch.arange(5) < torch.tensor([[5], [3]]), window=1)
    q, k = tensors(5, 5)
    dense = mask.dense(q, k)
    assert mask.dense(q, k) is dense and mask.dense(*tensors(2, 5)) is not dense
    other = replace(mask, window=2).dense(q, k)
    assert not torch.equal(other, dense) and torch.equal(mask.dense(q, k), dense)
