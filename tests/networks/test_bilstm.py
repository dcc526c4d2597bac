"""The BiLSTM against nn.LSTM with the same weights, one review at a time."""

from dataclasses import fields

import pytest
import torch
from torch import nn

from core.config import BiLSTMArchitecture
from core.data.batches import Cut
from core.networks.bilstm import BiLSTM, mirrored

SMALL = dict(vocab_size=40, d_embedding=6, d_hidden=5, max_len=12, dropout=0.0, embedding_dropout=0.0)
LENGTHS = (4, 9, 1, 9, 6)
every_depth = pytest.mark.parametrize("n_layers", [1, 2])
CHANGED = dict(
    vocab_size=41, n_classes=3, d_embedding=7, d_hidden=4, n_layers=2, max_len=13, dropout=0.5, embedding_dropout=0.5,
    token_dropout=0.5,
)  # fmt: skip


def bilstm(seed=0, **knobs):
    torch.manual_seed(seed)
    return BiLSTM(BiLSTMArchitecture(**SMALL | knobs)).eval()


def reviews(lengths=LENGTHS):
    generator = torch.Generator().manual_seed(1)
    input_ids = torch.randint(4, 40, (len(lengths), max(lengths) + 2), generator=generator)
    token_mask = torch.arange(max(lengths) + 2) < torch.tensor(lengths)[:, None]
    return input_ids * token_mask, token_mask


def states_of(network, input_ids, token_mask=None):
    seen = []
    handle = network.query.register_forward_pre_hook(lambda module, given: seen.append(given[0]))
    logits, weights = network(input_ids, token_mask)
    handle.remove()
    return seen[0], logits, weights


def torch_lstm(network, n_layers):
    """PyTorch's own bidirectional LSTM with this network's weights."""
    lstm = nn.LSTM(6, 5, n_layers, batch_first=True, bidirectional=True)
    weights = {}
    for index, layer in enumerate(network.layers):
        weights |= {name.replace("l0", f"l{index}"): value for name, value in layer.ahead.state_dict().items()}
        weights |= {name.replace("l0", f"l{index}_reverse"): value for name, value in layer.back.state_dict().items()}
    lstm.load_state_dict(weights)
    return lstm


@every_depth
def test_states_are_those_of_an_lstm_run_on_each_review_alone(n_layers):
    network = bilstm(n_layers=n_layers)
    lstm = torch_lstm(network, n_layers)
    input_ids, token_mask = reviews()
    states, _, _ = states_of(network, input_ids, token_mask)
    for row, length in enumerate(LENGTHS):
        out, (h_n, _) = lstm(network.embedding(input_ids[row : row + 1, :length]))
        torch.testing.assert_close(states[row, :length], out[0], atol=1e-6, rtol=1e-5)
        torch.testing.assert_close(states[row, length - 1, :5], h_n[-2, 0], atol=1e-6, rtol=1e-5)  # ahead ends at the end
        torch.testing.assert_close(states[row, 0, 5:], h_n[-1, 0], atol=1e-6, rtol=1e-5)  # back ends at the start


@every_depth
def test_gradients_are_those_of_a_packed_lstm(n_layers):
    network = bilstm(n_layers=n_layers)
    lstm = torch_lstm(network, n_layers)
    input_ids, token_mask = reviews()
    states, _, _ = states_of(network, input_ids, token_mask)
    shown = token_mask[..., None]
    mine = torch.autograd.grad((states * shown).pow(2).sum(), [network.embedding.weight, *network.layers.parameters()])
    packed = nn.utils.rnn.pack_padded_sequence(
        network.embedding(input_ids), torch.tensor(LENGTHS), batch_first=True, enforce_sorted=False
    )
    known = torch.autograd.grad(lstm(packed)[0].data.pow(2).sum(), [network.embedding.weight, *lstm.parameters()])
    torch.testing.assert_close(mine, known, atol=1e-5, rtol=1e-4)


@every_depth
def test_a_review_in_a_batch_is_as_alone(n_layers):
    network = bilstm(n_layers=n_layers)
    input_ids, token_mask = reviews()
    logits, weights = network(input_ids, token_mask)
    for row, length in enumerate(LENGTHS):
        alone, alone_weights = network(input_ids[row : row + 1, :length])
        torch.testing.assert_close(logits[row], alone[0], atol=1e-6, rtol=1e-5)
        torch.testing.assert_close(weights[row, :length], alone_weights[0], atol=1e-6, rtol=1e-5)
    assert (weights[~token_mask] == 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(len(LENGTHS)))


@every_depth
def test_padding_changes_nothing_and_every_real_token_does(n_layers):
    network = bilstm(n_layers=n_layers)
    input_ids, token_mask = reviews()
    before, _ = network(input_ids, token_mask)
    assert torch.equal(network(input_ids.masked_fill(~token_mask, 7), token_mask)[0], before)
    for row, place in token_mask.nonzero().tolist():
        edited = input_ids.clone()
        edited[row, place] = 4 if edited[row, place] != 4 else 5
        assert not torch.isclose(network(edited, token_mask)[0][row], before[row]).all(), (row, place)


def test_order_matters():
    network, (input_ids, _) = bilstm(), reviews()
    assert not torch.isclose(network(input_ids.flip(1))[0], network(input_ids)[0]).any()


def test_pooling_is_softmax_over_the_query_by_hand():
    network = bilstm()
    input_ids, token_mask = reviews()
    states, logits, weights = states_of(network, input_ids, token_mask)
    for row, length in enumerate(LENGTHS):
        powers = [(states[row, t] @ network.query.weight[0] + network.query.bias).exp() for t in range(length)]
        pooled = sum(power * states[row, t] for t, power in enumerate(powers)) / sum(powers)
        torch.testing.assert_close(weights[row, :length], torch.cat(powers) / sum(powers))
        torch.testing.assert_close(logits[row], network.classifier(pooled), atol=1e-6, rtol=1e-5)


def test_mirrored_by_hand():
    token_mask = torch.tensor([[1, 1, 1, 0, 0], [1, 0, 0, 0, 0], [1, 1, 1, 1, 1]]).bool()
    assert mirrored(token_mask).tolist() == [[2, 1, 0, 3, 4], [0, 1, 2, 3, 4], [4, 3, 2, 1, 0]]


@pytest.mark.parametrize("row", [[0, 1, 1], [0, 0, 0], [1, 0, 1]], ids=["left", "empty", "hole"])
def test_padding_anywhere_but_on_the_right_is_refused(row):
    token_mask = torch.tensor([[1, 1, 1], row]).bool()
    with pytest.raises(ValueError, match="got reviews padded on the left or without a token, expected padding on the right"):
        bilstm()(torch.full((2, 3), 5), token_mask)


@every_depth
def test_bfloat16_is_what_runs_under_autocast(n_layers):
    network = bilstm(n_layers=n_layers)
    input_ids, token_mask = reviews()
    exact, exact_weights = network(input_ids, token_mask)
    pooled = []
    network.dropout.register_forward_pre_hook(lambda module, given: pooled.append(given[0]))
    with torch.autocast("cpu", torch.bfloat16):
        states, logits, weights = states_of(network, input_ids, token_mask)
    assert (states.dtype, logits.dtype, weights.dtype) == (torch.bfloat16, torch.bfloat16, torch.float32)
    torch.testing.assert_close(logits.float(), exact, atol=2e-2, rtol=2e-2)
    torch.testing.assert_close(weights, exact_weights, atol=1e-2, rtol=1e-2)
    summed = (weights.double()[..., None] * states.double()).sum(1)  # not rounded before the end
    torch.testing.assert_close(pooled[-1].double(), summed, atol=0, rtol=2**-8)
    logits.float().pow(2).sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in network.parameters())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_precision_weights_run_as_they_are(dtype):
    input_ids, token_mask = reviews()
    exact = bilstm()(input_ids, token_mask)[0]
    logits, weights = bilstm().to(dtype)(input_ids, token_mask)
    assert logits.dtype == dtype and weights.dtype == torch.float32
    torch.testing.assert_close(logits.float(), exact, atol=2e-2, rtol=2e-2)


def test_every_knob_is_tested_here():
    assert set(CHANGED) | {"kind", "truncation"} == {knob.name for knob in fields(BiLSTMArchitecture)}
    head, tail = (Cut.of(BiLSTMArchitecture(**SMALL, truncation=t)).kept(100).tolist() for t in ("head", "head+tail"))
    assert head == list(range(12)) and tail == [*range(6), *range(94, 100)]
    assert Cut.of(BiLSTMArchitecture(**SMALL | {"max_len": 13})).kept(100).tolist() == list(range(13))


@pytest.mark.parametrize("knob", [knob for knob in CHANGED if knob != "max_len"])
def test_every_knob_changes_what_the_network_answers_in_training(knob):
    def answer(**knobs):
        network = bilstm(**knobs).train()
        torch.manual_seed(2)
        return network(*reviews())[0]

    base, changed = answer(), answer(**{knob: CHANGED[knob]})
    assert torch.equal(base, answer())
    assert base.shape != changed.shape or not torch.isclose(base, changed, atol=1e-3).all()


@pytest.mark.parametrize("knob", ["dropout", "embedding_dropout", "token_dropout"])
@every_depth
def test_dropout_is_for_training_alone(knob, n_layers):
    network, batch = bilstm(n_layers=n_layers, **{knob: 0.5}), reviews()
    assert torch.equal(network(*batch)[0], bilstm(n_layers=n_layers)(*batch)[0])
    network.train()
    assert len({tuple(network(*batch)[0].flatten().tolist()) for _ in range(20)}) == 20


def test_dropout_falls_between_the_layers_and_before_the_classifier():
    network = bilstm(n_layers=2, dropout=0.5).train()
    reads = {}
    network.layers[1].register_forward_pre_hook(lambda module, given: reads.__setitem__("between", given[0]))
    network.layers[0].register_forward_pre_hook(lambda module, given: reads.__setitem__("first", given[0]))
    network.classifier.register_forward_pre_hook(lambda module, given: reads.__setitem__("classifier", given[0]))
    network(torch.randint(4, 40, (300, 9)))
    shares = {name: (read == 0).double().mean().item() for name, read in reads.items()}
    assert shares == {"between": pytest.approx(0.5, abs=0.02), "first": 0, "classifier": pytest.approx(0.5, abs=0.05)}


def test_token_dropout_puts_mask_tokens():
    network, seen = bilstm(token_dropout=0.3).train(), []
    network.embedding.register_forward_pre_hook(lambda module, given: seen.append(given[0]))
    input_ids = torch.randint(4, 40, (500, 12))
    network(input_ids)
    dropped = seen[0] != input_ids
    assert (seen[0][dropped] == 3).all() and dropped.double().mean().item() == pytest.approx(0.3, abs=0.025)


@pytest.mark.parametrize("knobs", [{}, *({knob: CHANGED[knob]} for knob in CHANGED)], ids=str)
def test_parameters_are_counted_by_hand(knobs):
    a = BiLSTMArchitecture(**SMALL | knobs)
    sizes = [a.d_embedding] + [2 * a.d_hidden] * (a.n_layers - 1)
    lstms = sum(2 * 4 * a.d_hidden * (d_in + a.d_hidden + 2) for d_in in sizes)  # 4 gates, 2 biases
    expected = a.vocab_size * a.d_embedding + lstms + (2 * a.d_hidden + 1) * (1 + a.n_classes)
    assert sum(parameter.numel() for parameter in BiLSTM(a).parameters()) == expected


def test_both_directions_and_layers_start_different():
    first, second = bilstm(n_layers=2).layers
    assert not torch.equal(first.ahead.weight_hh_l0, first.back.weight_hh_l0)
    assert not torch.equal(first.ahead.weight_hh_l0, second.ahead.weight_hh_l0)
