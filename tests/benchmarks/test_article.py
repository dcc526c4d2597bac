"""The articles' plain networks compute what ours do with the same weights, so that their times may be compared."""

from dataclasses import replace

import pytest
import torch

from benchmarks import article, others
from core.networks.bilstm import BiLSTM
from core.networks.encoder import Encoder
from core.presets import preset
from core.training.machine import n_parameters

A = replace(preset("encoder-small").model, vocab_size=50, d_model=12, n_heads=3, d_ff=20, n_layers=2, max_len=9)
D = replace(A, norm="pre", activation="gelu", pooling="cls", embedding_scale=True)


def ours_with_weights_of(theirs: article.Transformer) -> Encoder:
    ours = Encoder(theirs.architecture).eval()
    copies = [(ours.embedding, theirs.embedding), (ours.classifier, theirs.classifier), (ours.final_norm, theirs.norm)]
    for mine, layer in zip(ours.layers, theirs.layers, strict=True):
        mine.attention.qkv.weight.data = torch.cat(
            [f.weight.data for f in (layer.attention.q, layer.attention.k, layer.attention.v)]
        )
        mine.attention.qkv.bias.data = torch.cat(
            [f.bias.data for f in (layer.attention.q, layer.attention.k, layer.attention.v)]
        )
        copies += [(mine.attention.out, layer.attention.out), (mine.attention_norm, layer.norms[0])]
        copies += [(mine.feed_forward_norm, layer.norms[1])]
        copies += [(mine.feed_forward[0], layer.feed_forward[0]), (mine.feed_forward[3], layer.feed_forward[3])]
    for mine, layer in copies:
        mine.load_state_dict(layer.state_dict())
    return ours


@pytest.mark.parametrize("architecture", [A, D], ids=["A", "D"])
def test_the_encoder_of_an_article_is_ours(architecture):
    torch.manual_seed(0)
    theirs = article.Transformer(architecture).eval()
    ours = ours_with_weights_of(theirs)
    ids = torch.randint(4, 50, (3, 7))
    torch.testing.assert_close(theirs(ids), ours(ids)[0])
    assert n_parameters(theirs) == n_parameters(ours)


def test_a_mask_hides_padding_from_the_encoder_of_article_d():
    torch.manual_seed(0)
    theirs = article.Transformer(D).eval()
    ids, mask = article.padded([torch.randint(4, 50, (n,)).numpy() for n in (3, 7)], 9)
    other = ids.masked_fill(~mask, 7)
    torch.testing.assert_close(theirs(ids, mask), theirs(other, mask))
    assert (theirs(ids) - theirs(other)).abs().max() > 1e-3


def test_the_bilstm_of_article_a_is_ours():
    torch.manual_seed(0)
    architecture = replace(preset("bilstm").model, vocab_size=50, d_embedding=5, d_hidden=7)
    theirs, ours = article.BiLSTM(architecture).eval(), BiLSTM(architecture).eval()
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    for direction, suffix in ((ours.layers[0].ahead, ""), (ours.layers[0].back, "_reverse")):
        for name in names:
            getattr(direction, name).data = getattr(theirs.lstm, name + suffix).data
    for mine, layer in ((ours.embedding, theirs.embedding), (ours.query, theirs.score), (ours.classifier, theirs.classifier)):
        mine.load_state_dict(layer.state_dict())
    ids = torch.randint(4, 50, (3, 11))
    torch.testing.assert_close(theirs(ids), ours(ids)[0])
    assert n_parameters(theirs) == n_parameters(ours)


def test_networks_of_others_are_of_the_same_size():
    ours = n_parameters(Encoder(A))
    assert n_parameters(others.TorchEncoder(A)) == ours
    pooler_norm_and_places = A.d_model * (A.d_model + 1) + 2 * A.d_model + (A.max_len + 2) * A.d_model
    assert n_parameters(others.bert(A)) == ours + pooler_norm_and_places


def test_a_step_lowers_the_loss_of_its_batch():
    torch.manual_seed(0)
    network = article.Transformer(A).train()
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-2)
    ids, labels = torch.randint(4, 50, (8, 9)), torch.arange(8) % 2
    losses = [article.step(network, optimizer, ids, None, labels) for _ in range(30)]
    assert losses[-1] < losses[0] / 2
