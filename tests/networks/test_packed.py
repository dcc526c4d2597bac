"""Packed reviews get the answers that padded ones get, each its own, with gradients."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from core.attention.masks import AttentionMask
from core.catalog import POSITIONAL
from core.config import EncoderArchitecture
from core.data.batches import collate, pack
from core.networks.auto import build
from core.networks.encoder import Encoder
from core.networks.pooling import pool
from tests import backends
from tests.backends import able

SMALL = dict(
    vocab_size=40, d_model=24, n_heads=3, n_layers=2, d_ff=20, max_len=13, dropout=0.0, embedding_dropout=0.0
)  # fmt: skip
POOLINGS = ["cls", "mean", "max", "mean+max"]
REACHES = [{}, {"window": 2}, {"window": 1, "n_global": 2}]
LENGTHS = (5, 1, 13, 2, 7)  # more in all than max_len
REVIEWS = [np.random.default_rng(length).integers(4, 40, length) for length in LENGTHS]
every_backend = pytest.mark.parametrize("backend", able(gradients=True, padding=True, places=True))
every_pooling = pytest.mark.parametrize("pooling", POOLINGS)


def encoder(**knobs):
    torch.manual_seed(0)
    network = Encoder(EncoderArchitecture(**SMALL | knobs)).eval()
    for parameter in network.parameters():  # larger than drawn, so that heads look somewhere and nothing is lost in rounding
        parameter.data.add_(torch.randn_like(parameter), alpha=0.1)
    return network


def packed(network, reviews=REVIEWS, **asked):
    together = pack(reviews)
    return network(together.input_ids[None], cu_seqlens=together.cu_seqlens, **asked)


def padded(network, reviews=REVIEWS, **asked):
    batch = collate(reviews)
    return network(batch.input_ids, batch.token_mask, **asked)


def gradients(network, logits):
    upstream = torch.randn(logits.shape, generator=torch.Generator().manual_seed(1))
    return torch.autograd.grad(logits, list(network.parameters()), upstream, allow_unused=True)


def assert_alike(network, backend, **asked):
    mine, known = (layout(network, backend=backend, **asked)[0] for layout in (packed, padded))
    torch.testing.assert_close(mine, known, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(gradients(network, mine), gradients(network, known), atol=1e-5, rtol=1e-4)


@every_backend
@pytest.mark.parametrize("positional", POSITIONAL)
@pytest.mark.parametrize("reach", REACHES, ids=str)
def test_packed_is_padded_in_values_and_gradients(backend, positional, reach):
    assert_alike(encoder(positional=positional, n_heads=2, **reach), backend)


@every_backend
@every_pooling
def test_every_pooling_keeps_to_its_review(backend, pooling):
    assert_alike(encoder(pooling=pooling), backend)


@every_backend
@pytest.mark.parametrize("positional", POSITIONAL)
def test_packed_is_padded_under_bfloat16(backend, positional):
    network = encoder(positional=positional, n_heads=2)
    with torch.autocast("cpu", torch.bfloat16):
        mine, known = packed(network, backend=backend)[0], padded(network, backend=backend)[0]
    assert mine.dtype == torch.bfloat16
    torch.testing.assert_close(mine, known, atol=4e-2, rtol=4e-2)
    for gradient, expected in zip(gradients(network, mine.float()), gradients(network, known.float()), strict=True):
        size = max(expected.abs().max().item(), 1.0)
        torch.testing.assert_close(gradient / size, expected / size, atol=4e-2, rtol=4e-2)


@every_backend
@pytest.mark.parametrize("positional", POSITIONAL)
@pytest.mark.parametrize("reach", REACHES, ids=str)
def test_no_review_hears_another(backend, positional, reach):
    network = encoder(positional=positional, n_heads=2, pooling="mean+max", **reach)
    before = packed(network, backend=backend)[0]
    for i, review in enumerate(REVIEWS):
        edited = [*REVIEWS[:i], (review - 3) % 36 + 4, *REVIEWS[i + 1 :]]
        after = packed(network, edited, backend=backend)[0]
        others = torch.arange(len(REVIEWS)) != i
        assert torch.equal(after[others], before[others])
        assert not torch.isclose(after[i], before[i]).any()


@every_backend
def test_the_order_of_reviews_is_that_of_answers(backend):
    network, order = encoder(), [3, 0, 4, 2, 1]
    in_order = packed(network, backend=backend)[0]
    torch.testing.assert_close(packed(network, [REVIEWS[i] for i in order], backend=backend)[0], in_order[order])


@every_backend
@pytest.mark.parametrize("positional", POSITIONAL)
def test_a_longest_review_that_is_known_changes_nothing(backend, positional):
    network = encoder(positional=positional, n_heads=2)
    torch.testing.assert_close(packed(network, backend=backend, max_seqlen=13), packed(network, backend=backend))


def test_one_review_packed_is_itself():
    network = encoder()
    for review in REVIEWS:
        torch.testing.assert_close(packed(network, [review])[0], padded(network, [review])[0], atol=1e-6, rtol=1e-6)


def test_weights_stay_within_their_review():
    network = encoder(n_layers=1)
    (mine,), (known,) = (layout(network, backend="eager", output_attentions=True)[1] for layout in (packed, padded))
    assert mine.shape == (1, 3, sum(LENGTHS), sum(LENGTHS))
    start, seen = 0, torch.zeros_like(mine)
    for i, length in enumerate(LENGTHS):
        own = slice(start, start + length)
        torch.testing.assert_close(mine[0, :, own, own], known[i, :, :length, :length])
        seen[..., own, own] = 1
        start += length
    assert not mine[seen == 0].any()


def test_learned_positions_end_by_review():
    network = encoder(positional="learned")
    assert packed(network, [*REVIEWS, *REVIEWS])[0].isfinite().all()
    with pytest.raises(ValueError, match="got 14 tokens, expected at most max_len 13"):
        packed(network, [*REVIEWS, np.full(14, 5)])


@every_backend
@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_a_training_step_is_that_of_padded_reviews_with_checkpointing_too(backend, pooling):
    network = encoder(pooling=pooling, norm="pre").train()
    known = gradients(network, padded(network, backend=backend)[0])
    for network.checkpointing in (False, True):
        mine = gradients(network, packed(network, backend=backend)[0])
        torch.testing.assert_close(mine, known, atol=1e-5, rtol=1e-4)


def test_token_dropout_spares_each_cls():
    network = encoder(pooling="cls", token_dropout=0.9).train()
    seen = []
    network.embedding.register_forward_pre_hook(lambda module, given: seen.append(given[0][0]))
    packed(network, REVIEWS * 20)
    first = pack(REVIEWS * 20).cu_seqlens[:-1].long()
    dropped = seen[0] == 3
    assert not dropped[first].any()
    dropped[first] = True
    assert 0.8 < dropped.double().mean() < 1


def test_transformers_users_may_pack():
    torch.manual_seed(0)
    network = build(EncoderArchitecture(**SMALL), ("bad", "good")).eval()
    labels, together, batch = torch.tensor([0, 1, 1, 0, 1]), pack(REVIEWS), collate(REVIEWS)
    output = network(together.input_ids[None], labels=labels, cu_seqlens=together.cu_seqlens)
    known = network(batch.input_ids, batch.token_mask.long(), labels=labels)
    torch.testing.assert_close(output.logits, known.logits, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(output.loss, known.loss, atol=1e-5, rtol=1e-5)
    assert output.loss == F.cross_entropy(output.logits, labels)


# Packed on the way in


@pytest.fixture
def packing(monkeypatch):
    return backends.packing(monkeypatch)


@pytest.mark.parametrize("positional", POSITIONAL)
@pytest.mark.parametrize("side", ["left", "right"])
def test_padded_reviews_are_packed_for_a_kernel_that_hides_no_padding(positional, side, packing):
    network, (name, masks) = encoder(positional=positional, n_heads=2), packing
    batch = collate(REVIEWS)
    turned = (batch.input_ids, batch.token_mask) if side == "right" else (batch.input_ids.flip(1), batch.token_mask.flip(1))
    mine, known = (network(*turned, backend=backend)[0] for backend in (name, "eager"))
    assert masks[0].segments.tolist() == [0, 5, 6, 19, 21, 28]
    torch.testing.assert_close(mine, known, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(gradients(network, mine), gradients(network, known), atol=1e-5, rtol=1e-4)


def test_reviews_of_one_length_stay_side_by_side(packing):
    network, (name, masks) = encoder(), packing
    alike = torch.from_numpy(np.stack([REVIEWS[4], REVIEWS[4][::-1]]))
    torch.testing.assert_close(network(alike, backend=name)[0], network(alike)[0], atol=1e-5, rtol=1e-5)
    assert masks[0].segments is None


@every_pooling
def test_a_review_without_a_token_gives_numbers_when_it_is_packed(pooling, packing):
    network, (name, _) = encoder(pooling=pooling), packing
    batch = collate(REVIEWS)
    token_mask = batch.token_mask.clone()
    token_mask[1] = False
    logits = network(batch.input_ids, token_mask, backend=name)[0]
    assert logits.isfinite().all() and all(g.isfinite().all() for g in gradients(network, logits))
    known = network(batch.input_ids, token_mask, backend="eager")[0]
    torch.testing.assert_close(logits[[0, 2, 3, 4]], known[[0, 2, 3, 4]], atol=1e-5, rtol=1e-5)


# Heads


@every_backend
def test_switched_heads_are_switched_by_review(backend):
    gain = torch.tensor([[1.0, 0.0, 1.0], [0.5, 1.0, 1.0]])
    means = torch.tensor([[True, False, False], [True, True, False]])
    network = encoder(norm="pre")
    for asked in ({"head_gain": gain}, {"head_mean": means}, {"head_gain": gain, "head_mean": means}):
        assert_alike(network, backend, **asked)
        changed = ~torch.isclose(packed(network, backend=backend, **asked)[0], packed(network, backend=backend)[0]).all(-1)
        assert changed.tolist() == [True, "head_gain" in asked, True, True, True]  # the mean over one token is itself


# Pooling

X = torch.tensor([[[1.0, -8.0], [3.0, -2.0], [4.0, -6.0], [6.0, -4.0], [8.0, -5.0]]])
SEGMENTS = torch.tensor([0, 2, 5], dtype=torch.int32)
BY_HAND = {
    "cls": [[1, -8], [4, -6]],
    "mean": [[2, -5], [6, -5]],
    "max": [[3, -2], [8, -4]],
    "mean+max": [[2, -5, 3, -2], [6, -5, 8, -4]],
}


@every_pooling
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_pooling_by_hand(pooling, dtype):
    pooled = pool(X.to(dtype), AttentionMask(segments=SEGMENTS), pooling)
    assert pooled.dtype == dtype and pooled.tolist() == BY_HAND[pooling]


def test_the_mean_is_summed_in_float32():
    x = torch.full((1, 2000, 1), 100.0, dtype=torch.float16)  # a float16 sum ends at 65504
    assert pool(x, AttentionMask(segments=torch.tensor([0, 1000, 2000])), "mean").tolist() == [[100.0], [100.0]]


@pytest.mark.parametrize("above", [1.0, -1.0])
@pytest.mark.parametrize("largest", [2.0, 0.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_equal_largest_values_share_their_gradient(largest, above, dtype):
    x = torch.tensor([[[largest], [largest], [largest - 1], [5.0]]], dtype=dtype, requires_grad=True)
    pooled = pool(x, AttentionMask(segments=torch.tensor([0, 3, 4])), "max")
    (mine,) = torch.autograd.grad(pooled.sum() * above, x)
    assert mine.flatten().tolist() == [above / 2, above / 2, 0, above]  # as amax does for padded ones


@pytest.mark.parametrize("ends", [[0, 5], [1, 13], [0, 5, 5, 13], [0, 9, 5, 13], [0, 13, 20], [0]], ids=str)
def test_ends_that_are_not_those_of_the_reviews_are_refused(ends):
    with pytest.raises(ValueError, match=r"cu_seqlens: got \[.*\] for ids of \(1, 13\), expected rising ends, from 0 to all"):
        encoder()(torch.from_numpy(REVIEWS[2])[None], cu_seqlens=torch.tensor(ends, dtype=torch.int32))


def test_packed_reviews_lie_in_one_row_without_a_mask():
    ids, ends = torch.from_numpy(REVIEWS[2])[None], torch.tensor([0, 13], dtype=torch.int32)
    with pytest.raises(ValueError, match=r"cu_seqlens: got \[0, 13\] for ids of \(2, 13\), expected .* one row"):
        encoder()(ids.expand(2, -1), cu_seqlens=ends)
    with pytest.raises(ValueError, match=r"cu_seqlens: got .* and a token_mask, expected"):
        encoder()(ids, torch.ones_like(ids, dtype=torch.bool), cu_seqlens=ends)
