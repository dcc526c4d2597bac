"""The largest attention logit: the right number, seen without changing what is seen."""

from dataclasses import replace

import pytest
import torch

from core.data.batches import collate, pack
from core.networks.auto import build
from core.training.watch import REVIEWS, LargestLogit
from tests.small_runs import ARCHITECTURES

IDS = torch.randint(4, 150, (REVIEWS + 2, 9), generator=torch.Generator().manual_seed(1))
QUIET = replace(ARCHITECTURES["mean"], dropout=0.0, embedding_dropout=0.0)


def network_of(name: str = "mean"):
    torch.manual_seed(0)
    return build(QUIET if name == "mean" else ARCHITECTURES[name], ("negative", "positive"))


def gradients(precision: str, watched: bool) -> torch.Tensor:
    network, largest = network_of(), LargestLogit()
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
        if watched:
            with largest.watching(network):
                loss = network(IDS).logits.float().square().sum()
        else:
            loss = network(IDS).logits.float().square().sum()
    loss.backward()
    return torch.cat([parameter.grad.flatten() for parameter in network.parameters()])


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_watching_changes_no_gradient(precision):
    torch.testing.assert_close(gradients(precision, True), gradients(precision, False), rtol=0, atol=0)


def test_one_exploding_head_of_one_review_is_seen():
    network, largest = network_of(), LargestLogit()
    with largest.watching(network):
        network(IDS)
    before = largest.value
    with torch.no_grad():
        attention = network.network.layers[1].attention
        attention.qkv.weight[:8] *= 1000  # the queries of one head
    with largest.watching(network):
        network(IDS)
    assert before is not None and largest.value is not None
    assert before < 20 < largest.value


def test_padding_does_not_count():
    network, largest = network_of(), LargestLogit()
    ids = IDS.clone()
    with largest.watching(network):
        network(ids[:, :6])
    alone = largest.value
    with largest.watching(network), torch.no_grad():
        network.network.embedding.weight[0] = 100.0  # [PAD]
        padded = ids.index_fill(1, torch.arange(6, 9), 0)
        network(padded, (padded != 0).long())
    assert largest.value == pytest.approx(alone, rel=1e-5)


@pytest.mark.parametrize("positional", ["sinusoidal", "rotary", "alibi"])
def test_of_packed_reviews_it_is_that_of_padded_ones(positional):
    torch.manual_seed(0)
    network, largest = build(replace(QUIET, positional=positional), ("negative", "positive")), LargestLogit()
    reviews = [ids[:length].clamp(max=148).numpy() for ids, length in zip(IDS, (5, 9, 2, 7, 9, 9), strict=True)]
    for review in reviews[REVIEWS:]:  # whose logits are larger, but which are not looked at
        review[:] = 149
    with torch.no_grad():
        network.network.embedding.weight[149] *= 100
    found = []
    for batch in (collate(reviews), pack(reviews)):
        with largest.watching(network):
            network(**batch.arguments)
        found.append(largest.value)
    with largest.watching(network):
        network(**collate(reviews[:REVIEWS]).arguments)
    assert found == pytest.approx([largest.value] * 2, rel=1e-5)


def test_a_network_without_self_attention_has_none():
    largest = LargestLogit()
    network = network_of("bilstm")
    with largest.watching(network):
        network(IDS)
    assert largest.value is None


def test_nothing_is_watched_afterwards():
    network, largest = network_of(), LargestLogit()
    with largest.watching(network):
        network(IDS)
    seen = largest.value
    largest.value = None
    network(IDS)
    assert seen is not None and largest.value is None
