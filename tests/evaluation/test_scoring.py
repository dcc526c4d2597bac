import numpy as np
import pytest
import torch

from core.config import BiLSTMArchitecture, EncoderArchitecture
from core.evaluation import scoring
from core.evaluation.scoring import score
from core.networks.auto import build

SIZES = dict(vocab_size=50, max_len=40, dropout=0.5, embedding_dropout=0.5, token_dropout=0.5)
ARCHITECTURES = {
    "encoder": EncoderArchitecture(**SIZES, d_model=12, n_heads=3, n_layers=2, d_ff=8, attention_dropout=0.5),
    "bilstm": BiLSTMArchitecture(**SIZES, d_embedding=7, d_hidden=5),
}
NAMES = ("bad", "fair", "good")


@pytest.fixture(params=ARCHITECTURES)
def network(request):
    torch.manual_seed(0)
    return build(ARCHITECTURES[request.param], NAMES)  # in training mode, as a new network is


def reviews(n: int, longest: int = 40) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    return [rng.integers(4, 50, size=rng.integers(1, longest + 1)).astype(np.int32) for _ in range(n)]


@pytest.mark.parametrize("tokens_per_batch", [1, 100, 4096])
def test_a_batch_answers_what_each_review_alone_does_in_the_order_given(network, monkeypatch, tokens_per_batch):
    monkeypatch.setattr(scoring, "TOKENS_PER_BATCH", tokens_per_batch)
    some = reviews(37)
    network.eval()
    with torch.no_grad():
        alone = np.stack([network(torch.from_numpy(ids).long()[None]).logits[0].numpy() for ids in some])
    found = score(network, some)
    assert (found.dtype, found.shape) == (np.float32, (37, 3))
    assert np.abs(alone[0] - alone[1]).max() > 1e-3
    np.testing.assert_allclose(found, alone, atol=1e-5)
    np.testing.assert_allclose(score(network, some[::-1]), found[::-1], atol=1e-5)


def test_every_review_of_1001_is_counted_once(network, monkeypatch):
    monkeypatch.setattr(scoring, "TOKENS_PER_BATCH", 64 * 8)
    heard = []
    logits = score(network, reviews(1001, longest=8), heard.append)
    assert len(logits) == sum(heard) == 1001
    assert len(heard) > 5


@pytest.mark.parametrize("training", [True, False])
def test_the_mode_is_what_it_was(network, training):
    network.train(training)
    score(network, reviews(3))
    assert {module.training for module in network.modules()} == {training}


def test_the_mode_is_what_it_was_after_an_interruption(network):
    def interrupt(n: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        score(network, reviews(3), interrupt)
    assert all(module.training for module in network.modules())


def test_nothing_is_dropped_and_no_random_number_drawn(network):
    some = reviews(5)
    state = torch.get_rng_state()
    first = score(network, some)
    assert torch.equal(torch.get_rng_state(), state)
    np.testing.assert_array_equal(score(network, some), first)


def test_no_gradient_is_kept(network):
    outputs = []
    network.register_forward_hook(lambda module, inputs, output: outputs.append(output.logits))
    score(network, reviews(3))
    assert all(parameter.requires_grad and parameter.grad is None for parameter in network.parameters())
    assert [logits.grad_fn for logits in outputs] == [None]
