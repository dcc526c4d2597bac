"""The encoder: each knob does what it says, padding does nothing, and order matters unless it must not."""

from dataclasses import fields

import pytest
import torch
import torch.nn.functional as F

from core.attention import eager
from core.attention.masks import AttentionMask
from core.catalog import POSITIONAL
from core.config import EncoderArchitecture
from core.data.batches import Cut
from core.networks.encoder import Encoder
from core.networks.pooling import pool
from tests.backends import able

B, T = 3, 9
SMALL = dict(
    vocab_size=40, d_model=24, n_heads=4, n_layers=2, d_ff=20, max_len=12, dropout=0.0, embedding_dropout=0.0
)  # fmt: skip
POOLINGS = ["cls", "mean", "max", "mean+max"]
NORMS = ["post", "pre"]
every_backend = pytest.mark.parametrize("backend", able(gradients=True))
with_dropout = pytest.mark.parametrize("backend", able(gradients=True, dropout=True))
every_position = pytest.mark.parametrize("positional", POSITIONAL)
every_pooling = pytest.mark.parametrize("pooling", POOLINGS)


def encoder(seed=0, **knobs):
    torch.manual_seed(seed)
    return Encoder(EncoderArchitecture(**SMALL | knobs)).eval()


def review(length=T, batch=B, seed=1, vocab_size=40):
    return torch.randint(4, vocab_size, (batch, length), generator=torch.Generator().manual_seed(seed))


def padded(reviews, side):
    """Side by side on `side`, with what is real."""
    longest = max(len(ids) for ids in reviews) + 2
    input_ids, token_mask = torch.zeros(len(reviews), longest, dtype=torch.long), torch.zeros(len(reviews), longest)
    for row, ids in enumerate(reviews):
        place = slice(0, len(ids)) if side == "right" else slice(longest - len(ids), longest)
        input_ids[row, place], token_mask[row, place] = ids, 1
    return input_ids, token_mask.bool()


def gradients(network, loss):
    return torch.autograd.grad(loss, list(network.parameters()), allow_unused=True)


# Every knob

CHANGED = dict(
    vocab_size=41, n_classes=3, d_model=32, n_heads=3, n_layers=3, d_ff=21, max_len=13, activation="gelu", norm="pre",
    positional="learned", residual=False, attention_scale="none", embedding_scale=True, pooling="max", dropout=0.5,
    embedding_dropout=0.5, attention_dropout=0.5, token_dropout=0.5, window=1, mistake="batch_norm",
)  # fmt: skip


def test_every_knob_is_tested_here():
    assert set(CHANGED) | {"kind", "truncation", "n_global"} == {knob.name for knob in fields(EncoderArchitecture)}
    head, tail = (Cut.of(EncoderArchitecture(**SMALL, truncation=t)).kept(100).tolist() for t in ("head", "head+tail"))
    assert head == list(range(12)) and tail == [*range(6), *range(94, 100)]


@pytest.mark.parametrize("knob", [knob for knob in CHANGED if knob != "max_len"])
def test_every_knob_changes_what_the_network_answers_in_training(knob):
    def answer(**knobs):
        network = encoder(**knobs).train()
        torch.manual_seed(2)
        return network(review())[0]

    base, changed = answer(), answer(**{knob: CHANGED[knob]})
    assert torch.equal(base, answer())
    assert base.shape != changed.shape or not torch.isclose(base, changed, atol=1e-3).all()


def test_global_tokens_widen_a_window():
    narrow, wider, full = (encoder(**knobs)(review())[0] for knobs in ({"window": 1}, {"window": 1, "n_global": 2}, {}))
    assert not torch.isclose(narrow, wider, atol=1e-3).all() and not torch.isclose(full, wider, atol=1e-3).all()


@pytest.mark.parametrize("knob", ["dropout", "embedding_dropout", "attention_dropout", "token_dropout"])
@with_dropout
def test_dropout_is_for_training_alone(knob, backend):
    network, input_ids = encoder(**{knob: 0.5}), review()
    assert torch.equal(network(input_ids, backend=backend)[0], encoder()(input_ids, backend=backend)[0])
    probabilities = {tuple(network(input_ids, backend=backend)[0].softmax(-1).flatten().tolist()) for _ in range(20)}
    assert len(probabilities) == 1
    network.train()
    answers = {tuple(network(input_ids, backend=backend)[0].flatten().tolist()) for _ in range(20)}
    assert len(answers) == 20


VARIANTS = [
    {},
    *({knob: CHANGED[knob]} for knob in CHANGED),
    {"positional": "learned", "max_len": 13},
    {"pooling": "mean+max", "norm": "pre"},
]


@pytest.mark.parametrize("knobs", VARIANTS, ids=str)
def test_parameters_are_counted_by_hand(knobs):
    a = EncoderArchitecture(**SMALL | knobs)
    attention = 4 * a.d_model**2 + 4 * a.d_model
    feed_forward = 2 * a.d_model * a.d_ff + a.d_ff + a.d_model
    norms = 2 * 2 * a.d_model
    expected = a.vocab_size * a.d_model + a.n_layers * (attention + feed_forward + norms)
    expected += a.max_len * a.d_model if a.positional == "learned" else 0
    expected += 2 * a.d_model if a.norm == "pre" else 0
    expected += (2 * a.d_model if a.pooling == "mean+max" else a.d_model) * a.n_classes + a.n_classes
    assert sum(parameter.numel() for parameter in Encoder(a).parameters()) == expected


def first_layer_reads(network, input_ids):
    seen = []
    handle = network.layers[0].register_forward_pre_hook(lambda module, arguments: seen.append(arguments[0]))
    network(input_ids)
    handle.remove()
    return seen[0]


def test_embedding_scale_multiplies_by_the_root_of_d_model():
    plain, scaled = encoder(positional="none"), encoder(positional="none", embedding_scale=True)
    plain.embedding.weight = scaled.embedding.weight
    input_ids = review()
    torch.testing.assert_close(first_layer_reads(scaled, input_ids), 24**0.5 * first_layer_reads(plain, input_ids))
    wide = encoder(vocab_size=4000, embedding_scale=True, positional="none")
    spread = first_layer_reads(wide, review(4000, 1, vocab_size=4000)).std().item()
    assert spread == pytest.approx(1, abs=0.02)  # as without the knob, and like the positions


def test_embedding_dropout_falls_on_what_the_first_layer_reads():
    network = encoder(embedding_dropout=0.3).train()
    torch.manual_seed(0)
    read = first_layer_reads(network, review(12, 500))
    assert (read == 0).double().mean().item() == pytest.approx(77 / 256, abs=0.005)


def test_dropout_falls_on_sublayers_hidden_units_and_the_pooled_vector():
    network = encoder(dropout=0.5, n_layers=1, positional="none").train()
    reads = {}
    layer = network.layers[0]
    watched = {"hidden": layer.feed_forward[3], "classifier": network.classifier}
    for name, module in watched.items():
        module.register_forward_pre_hook(lambda module, given, name=name: reads.__setitem__(name, given[0]))
    layer.attention_norm.register_forward_pre_hook(lambda module, given: reads.__setitem__("attended", given[0]))
    embedded = network.embedding(review(12, 200))
    network(review(12, 200))
    assert (reads["classifier"] == 0).double().mean().item() == pytest.approx(0.5, abs=0.03)
    assert (reads["hidden"] == 0).double().mean().item() > 0.7  # half of what ReLU leaves
    assert (reads["attended"] == embedded).double().mean().item() == pytest.approx(0.5, abs=0.02)


@every_pooling
def test_token_dropout_puts_mask_tokens_and_spares_cls(pooling):
    network = encoder(token_dropout=0.3, pooling=pooling)
    seen = []
    network.embedding.register_forward_pre_hook(lambda module, arguments: seen.append(arguments[0]))
    input_ids, token_mask = padded([ids for ids in review(12, 800)], "left")
    torch.manual_seed(0)
    for training in (True, False):
        network.train(training)(input_ids, token_mask)
    dropped = seen[0] != input_ids
    assert torch.equal(seen[1], input_ids) and (seen[0][dropped] == 3).all()
    assert dropped[:, 3:].double().mean().item() == pytest.approx(0.3, abs=0.02)
    assert dropped[:, 2].any() == (pooling != "cls")


# Pooling

X = torch.tensor([[[1.0, -8.0], [3.0, -2.0], [100.0, 50.0]], [[100.0, -90.0], [4.0, -6.0], [6.0, -4.0]]])
REAL = torch.tensor([[True, True, False], [False, True, True]])
BY_HAND = {
    "cls": [[1, -8], [4, -6]],
    "mean": [[2, -5], [5, -5]],
    "max": [[3, -2], [6, -4]],
    "mean+max": [[2, -5, 3, -2], [5, -5, 6, -4]],
}


@every_pooling
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_pooling_by_hand(pooling, dtype):
    pooled = pool(X.to(dtype), AttentionMask(REAL), pooling)
    assert pooled.dtype == dtype and pooled.tolist() == BY_HAND[pooling]
    assert torch.equal(pool(X, AttentionMask(), pooling), pool(X, AttentionMask(torch.ones_like(REAL)), pooling))


def test_the_mean_is_summed_in_float32():
    x = torch.full((1, 2000, 1), 100.0, dtype=torch.float16)  # a float16 sum ends at 65504
    assert pool(x, AttentionMask(), "mean").tolist() == [[100.0]]


@every_backend
@every_pooling
@pytest.mark.parametrize("norm", NORMS)
def test_a_review_without_a_token_gives_numbers(backend, pooling, norm):
    network = encoder(pooling=pooling, norm=norm)
    token_mask = torch.ones(B, T, dtype=torch.bool)
    token_mask[1] = False
    logits, _ = network(review(), token_mask, backend=backend)
    loss = F.cross_entropy(logits, torch.tensor([0, 1, 1]))
    assert logits.abs().max() < 1000 and loss.isfinite()
    assert all(gradient.isfinite().all() for gradient in gradients(network, loss))
    alone = [0, 2]
    torch.testing.assert_close(logits[alone], network(review()[alone], token_mask[alone], backend=backend)[0])


# Padding

REVIEWS = [review(length, 1, seed=length)[0] for length in (1, 4, 9)]


@every_backend
@every_position
@every_pooling
@pytest.mark.parametrize("norm", NORMS)
def test_padded_on_either_side_is_as_alone(backend, positional, pooling, norm):
    network = encoder(positional=positional, pooling=pooling, norm=norm)
    alone = torch.cat([network(ids[None], backend=backend)[0] for ids in REVIEWS])
    for side in ("left", "right"):
        together = network(*padded(REVIEWS, side), backend=backend)[0]
        torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-5)


@every_backend
@every_pooling
def test_padding_changes_nothing_and_every_real_token_does(backend, pooling):
    network = encoder(pooling=pooling)
    for side in ("left", "right"):
        input_ids, token_mask = padded(REVIEWS, side)
        before = network(input_ids, token_mask, backend=backend)[0]
        assert torch.equal(network(input_ids.masked_fill(~token_mask, 7), token_mask, backend=backend)[0], before)
        for row, place in token_mask.nonzero().tolist():
            edited = input_ids.clone()
            edited[row, place] = 4 if edited[row, place] != 4 else 5
            after = network(edited, token_mask, backend=backend)[0]
            assert not torch.isclose(after[row], before[row]).all(), (side, row, place)
            others = torch.arange(len(REVIEWS)) != row
            assert torch.equal(after[others], before[others])


def test_a_mask_of_ones_is_no_mask():
    network, input_ids = encoder(), review()
    torch.testing.assert_close(network(input_ids, torch.ones(B, T, dtype=torch.bool))[0], network(input_ids)[0])


def test_padding_is_never_attended_and_rows_sum_to_one():
    input_ids, token_mask = padded(REVIEWS, "left")
    _, attentions = encoder()(input_ids, token_mask, backend="eager", output_attentions=True)
    assert [weights.shape for weights in attentions] == [(3, 4, 11, 11)] * 2
    for weights in attentions:
        torch.testing.assert_close(weights.sum(-1), torch.ones(3, 4, 11))
        assert (weights.masked_select(~token_mask[:, None, None, :]) == 0).all()


# Window


@every_backend
@every_position
def test_a_window_wide_enough_is_full_attention(positional, backend):
    given = padded(REVIEWS, "right")
    full = encoder(positional=positional)(*given, backend=backend)[0]
    wide = encoder(positional=positional, window=10)(*given, backend=backend)[0]
    torch.testing.assert_close(wide, full, atol=1e-5, rtol=1e-5)
    assert not torch.isclose(encoder(positional=positional, window=2)(*given, backend=backend)[0][2], full[2]).all()


def states_of_layers(network):
    seen = []
    for layer in network.layers:
        layer.register_forward_hook(lambda module, given, out: seen.append(out[0]))
    return seen


@every_backend
@pytest.mark.parametrize("window", [1, 3])
def test_a_token_is_felt_as_far_as_the_windows_of_its_layers_reach(window, backend):
    network, input_ids = encoder(window=window), review(12, 1)
    seen = states_of_layers(network)
    network(input_ids, backend=backend)
    input_ids[0, 0] = 4 if input_ids[0, 0] != 4 else 5
    network(input_ids, backend=backend)
    for depth, (before, after) in enumerate(zip(seen[:2], seen[2:], strict=True), 1):
        changed = (before != after).any(-1)[0]
        assert changed.tolist() == [place <= depth * window for place in range(12)]


@every_backend
@every_position
@pytest.mark.parametrize("knobs", [{}, {"window": 1}, {"window": 2, "n_global": 1}], ids=str)
def test_what_stands_in_padding_stays_finite_in_every_layer(positional, backend, knobs):
    network = encoder(positional=positional, **knobs)
    seen = states_of_layers(network)
    input_ids, token_mask = padded(REVIEWS, "left")
    token_mask[0] = False
    logits, _ = network(input_ids, token_mask, backend=backend)
    assert len(seen) == 2 and all(states.isfinite().all() for states in seen)
    assert all(gradient.isfinite().all() for gradient in gradients(network, logits.sum()) if gradient is not None)


# Order


@every_backend
@every_position
def test_only_no_position_is_blind_to_order(positional, backend):
    network, input_ids = encoder(positional=positional, pooling="mean+max"), review()
    states = {}
    network.final_norm.register_forward_hook(lambda module, given, out: states.__setitem__("now", out))
    shuffle = torch.randperm(T, generator=torch.Generator().manual_seed(3))
    logits, _ = network(input_ids, backend=backend)
    in_order = states["now"]
    shuffled, _ = network(input_ids[:, shuffle], backend=backend)
    blind = positional == "none"
    assert torch.isclose(shuffled, logits, atol=1e-5).all().item() == blind
    assert torch.isclose(states["now"], in_order[:, shuffle], atol=1e-5).all().item() == blind


@every_position
def test_max_len_ends_learned_positions_alone(positional):
    network = encoder(positional=positional)
    assert network(review(12))[0].shape == (B, 2)
    if positional == "learned":
        with pytest.raises(ValueError, match="got 13 tokens, expected at most max_len 12: .*rotary or alibi"):
            network(review(13))
    else:
        assert network(review(13))[0].isfinite().all()


# The rest


@every_backend
@pytest.mark.parametrize("norm", NORMS)
def test_backends_agree_in_logits_and_gradients(backend, norm):
    network = encoder(norm=norm)
    input_ids, token_mask = padded(REVIEWS, "right")
    results = []
    for name in (backend, "eager"):
        logits, _ = network(input_ids, token_mask, backend=name)
        results.append((logits, gradients(network, logits.pow(2).sum())))
    torch.testing.assert_close(*results, atol=1e-4, rtol=1e-4)


@every_backend
def test_backends_agree_under_bfloat16(backend):
    network, (input_ids, token_mask) = encoder(), padded(REVIEWS, "right")
    exact = network(input_ids, token_mask, backend="eager")[0]
    with torch.autocast("cpu", torch.bfloat16):
        logits = network(input_ids, token_mask, backend=backend)[0]
    assert logits.dtype == torch.bfloat16
    torch.testing.assert_close(logits.float(), exact, atol=4e-2, rtol=4e-2)


def test_layers_start_different():
    first, second = encoder().layers
    for (name, a), (_, b) in zip(first.named_parameters(), second.named_parameters(), strict=True):
        assert torch.equal(a, b) == (a.ndim == 1), name  # biases and norms alone are equal


def test_linear_layers_start_as_drawn_by_glorot():
    network = encoder(d_model=64, d_ff=192)
    for layer in network.layers:
        linear = layer.feed_forward[0]
        assert linear.weight.abs().max() <= (6 / (64 + 192)) ** 0.5 and not linear.bias.any()
        assert linear.weight.std().item() == pytest.approx((2 / (64 + 192)) ** 0.5, rel=0.05)


def test_head_gain_reaches_its_layer_and_head():
    network, input_ids = encoder(), review()
    logits, attentions = network(input_ids, backend="eager", output_attentions=True)
    ones = torch.ones(2, 4)
    assert torch.equal(network(input_ids, backend="eager", head_gain=ones)[0], logits)
    ones[1, 2] = 0
    gained, second = network(input_ids, backend="eager", output_attentions=True, head_gain=ones)
    assert torch.equal(second[1], attentions[1]) and not torch.isclose(gained, logits).any()
    ones = torch.ones(2, 4)
    ones[0, 2] = 0
    _, first = network(input_ids, backend="eager", output_attentions=True, head_gain=ones)
    assert torch.equal(first[0], attentions[0]) and not torch.equal(first[1], attentions[1])


@every_backend
def test_all_heads_off_leaves_numbers(backend):
    logits, _ = encoder(positional="none")(review(), backend=backend, head_gain=torch.zeros(2, 4))
    assert logits.isfinite().all()


def test_head_mean_reaches_its_layer_and_head():
    network, input_ids = encoder(), review()
    logits, attentions = network(input_ids, backend="eager", output_attentions=True)
    means = torch.zeros(2, 4, dtype=torch.bool)
    assert torch.equal(network(input_ids, backend="eager", head_mean=means)[0], logits)
    means[0, 2] = True
    switched, (first, second) = network(input_ids, backend="eager", output_attentions=True, head_mean=means)
    assert torch.equal(first, attentions[0]) and not torch.equal(second, attentions[1])
    assert not torch.isclose(switched, logits).any()
    alone = review(1)
    torch.testing.assert_close(network(alone, head_mean=means)[0], network(alone)[0])  # of one token, the mean is it


@every_backend
def test_means_of_heads_leave_padding_out(backend):
    network, means = encoder(), torch.ones(2, 4, dtype=torch.bool)
    alone = torch.cat([network(ids[None], backend=backend, head_mean=means)[0] for ids in REVIEWS])
    for side in ("left", "right"):
        together = network(*padded(REVIEWS, side), backend=backend, head_mean=means)[0]
        torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-5)


@every_backend
@pytest.mark.parametrize("norm", NORMS)
def test_all_heads_at_their_means_leave_numbers_and_gradients(backend, norm):
    network, token_mask = encoder(norm=norm), torch.arange(T) < torch.tensor([[T], [0], [2]])
    logits, _ = network(review(), token_mask, backend=backend, head_mean=torch.ones(2, 4, dtype=torch.bool))
    assert logits.isfinite().all() and all(gradient.isfinite().all() for gradient in gradients(network, logits.sum()))


@with_dropout
@pytest.mark.parametrize("norm", NORMS)
def test_checkpointing_changes_neither_loss_nor_gradients(backend, norm):
    network = encoder(norm=norm, dropout=0.3, embedding_dropout=0.2, attention_dropout=0.2, token_dropout=0.3).train()
    input_ids, token_mask = padded(REVIEWS, "right")
    calls = []
    network.layers[1].attention.register_forward_hook(lambda *_: calls.append(1))
    results = []
    for network.checkpointing in (False, True):
        torch.manual_seed(5)
        logits, _ = network(input_ids, token_mask, backend=backend)
        loss = F.cross_entropy(logits, torch.tensor([0, 1, 1]))
        results.append((loss, gradients(network, loss)))
    torch.testing.assert_close(*results, atol=0, rtol=0)
    assert len(calls) == 1 + 2  # once, and with checkpointing once more in the backward pass


def test_sdpa_runs_where_none_is_named(monkeypatch):
    monkeypatch.setattr(eager, "attend", None)
    assert encoder()(review())[1] is None


@pytest.mark.parametrize("shape", [(2, 1), (1, 4), (3, 4), (4, 2)], ids=str)
@pytest.mark.parametrize("name", ["head_gain", "head_mean"])
def test_heads_are_switched_by_layer_and_head_or_not_at_all(name, shape):
    given = torch.ones(shape, dtype=torch.bool) if name == "head_mean" else torch.ones(shape)
    with pytest.raises(ValueError, match=rf"{name}: got \(.*\), expected a value for each layer and head, \(2, 4\)"):
        encoder()(review(), **{name: given})
