import numpy as np
import pytest
import torch

from core.inspection.rollout import pooled, rollout, value_norms, weighted_by_values
from core.inspection.subject import replica, subject


def test_rollout_of_two_layers_by_hand():
    first = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    second = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    bare = [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]  # the second layer, through the first
    halves = [[0.625, 0.375, 0.0], [0.125, 0.375, 0.5], [0.5, 0.0, 0.5]]
    weights = np.stack([first, second])[:, None]
    np.testing.assert_allclose(rollout(weights, residual=False), bare)
    np.testing.assert_allclose(rollout(weights), halves)
    np.testing.assert_allclose(pooled(np.array(halves), first=True), [0.625, 0.375, 0.0])
    np.testing.assert_allclose(pooled(np.array(halves), first=False), [1.25 / 3, 0.25, 1 / 3])


def test_heads_are_averaged_and_rows_sum_to_one():
    weights = np.random.default_rng(0).dirichlet(np.ones(5), size=(3, 2, 5))
    averaged = weights.mean(1)
    through = rollout(weights, residual=False)
    np.testing.assert_allclose(through, averaged[2] @ averaged[1] @ averaged[0])
    for found in (through, rollout(weights)):
        np.testing.assert_allclose(found.sum(-1), 1)


def test_values_are_weighted_by_hand():
    weights = np.array([[[[0.5, 0.5], [0.25, 0.75]]]])
    np.testing.assert_allclose(weighted_by_values(weights, np.array([[[2.0, 4.0]]])), [[[[1.0, 2.0], [0.5, 3.0]]]])


@pytest.mark.parametrize("name", ["imdb-encoder", "cls"])
def test_value_norms_of_the_first_layer_by_hand(models, name):
    model = models[name]
    asked, encoder = subject(model, "the plot is good , not the film"), model.network.network
    d_model, n_heads = encoder.architecture.d_model, encoder.architecture.n_heads
    layer, places = encoder.layers[0].attention, torch.arange(len(asked.ids))[None]
    codes = encoder.positional.codes(places, len(asked.ids))
    x = encoder.positional.embed(encoder.embedding(torch.from_numpy(asked.ids).long())[None], codes)[0].double().numpy()
    values = (x @ layer.qkv.weight.double().numpy().T + layer.qkv.bias.double().numpy())[:, -d_model:]
    out, size = layer.out.weight.double().numpy(), d_model // n_heads
    found = value_norms(asked)
    assert found.shape == (encoder.architecture.n_layers, n_heads, len(asked.ids))
    for head in range(n_heads):
        part = slice(size * head, size * (head + 1))
        np.testing.assert_allclose(found[0, head], np.linalg.norm(values[:, part] @ out[:, part].T, axis=1), rtol=1e-5)


def test_values_are_of_self_attention(models):
    with pytest.raises(ValueError, match="imdb-bilstm: expected self-attention"):
        value_norms(subject(models["imdb-bilstm"], "good film"))


def test_values_of_heads_that_are_blocks_of_tokens_are_refused(with_knobs):
    mistaken = with_knobs("imdb-encoder", mistake="reshape_without_transpose")
    with pytest.raises(ValueError, match="expected self-attention, whose heads have values of their own"):
        value_norms(subject(mistaken, "good film"))


def test_a_replica_has_the_weights_and_nothing_else_in_common(models):
    network = models["imdb-encoder"].network
    twin = replica(network)
    twin.train()
    for module in twin.modules():
        module.register_forward_hook(lambda *_: None)
    assert not any(module.training or module._forward_hooks for module in network.modules())
    ours, theirs = dict(network.named_parameters()), dict(twin.named_parameters())
    assert all(ours[name] is theirs[name] for name in ours) and ours.keys() == theirs.keys()
    assert all(a is b for a, b in zip(network.buffers(), twin.buffers(), strict=True))
