"""The decoder: reading by steps is reading at once, no token sees a later one, and padding does nothing."""

from dataclasses import fields

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from core.catalog import BACKENDS, POSITIONAL
from core.config import DecoderArchitecture
from core.networks.decoder import Decoder, KeyValueCache
from tests.backends import able

B, T, LAYERS, WINDOW = 3, 17, 2, 3
SMALL = dict(
    vocab_size=40, d_model=24, n_heads=4, n_layers=LAYERS, d_ff=20, max_len=20, dropout=0.0, embedding_dropout=0.0
)  # fmt: skip
CHUNKS = {"1": [1] * T, "3": [3] * 5 + [2], "7": [7, 7, 3], "mixed": [5, 1, 1, 7, 3]}
KERNELS = [name for name in able(padding=True, places=True, bias=True) if not BACKENDS[name].compiles and "sdpa-" not in name]
"""A kernel of sdpa by name is one of those it chooses from, and compiling takes longer than all of this."""
every_backend = pytest.mark.parametrize("backend", KERNELS)
every_position = pytest.mark.parametrize("positional", POSITIONAL)
every_window = pytest.mark.parametrize("window", [None, WINDOW], ids=["all", "window"])
every_norm = pytest.mark.parametrize("norm", ["post", "pre"])


def decoder(seed=0, **knobs):
    torch.manual_seed(seed)
    return Decoder(DecoderArchitecture(**SMALL | knobs)).eval()


def text(length=T, batch=B, seed=1):
    return torch.randint(4, 40, (batch, length), generator=torch.Generator().manual_seed(seed))


def by_steps(network, input_ids, sizes, token_mask=None, **options):
    """All logits, read in chunks of these sizes with a cache that just holds them."""
    cache = network.new_cache(len(input_ids), input_ids.shape[1])
    masks = [None] * len(sizes) if token_mask is None else token_mask.split(sizes, 1)
    with torch.no_grad():
        parts = [network(ids, real, cache=cache, **options) for ids, real in zip(input_ids.split(sizes, 1), masks, strict=True)]
    assert cache.length == cache.max_len == input_ids.shape[1]
    return torch.cat(parts, dim=1)


# Reading by steps


@every_backend
@every_position
@every_window
@pytest.mark.parametrize("sizes", CHUNKS.values(), ids=CHUNKS)
def test_by_steps_is_at_once(backend, positional, window, sizes):
    network, input_ids = decoder(positional=positional, window=window), text()
    at_once = network(input_ids, backend=backend)
    torch.testing.assert_close(by_steps(network, input_ids, sizes, backend=backend), at_once, atol=1e-5, rtol=1e-5)


@every_backend
@every_position
@pytest.mark.parametrize("autocast", [False, True], ids=["weights", "autocast"])
def test_by_steps_is_near_in_bfloat16(backend, positional, autocast):
    network, input_ids = decoder(positional=positional), text()
    exact = network(input_ids)
    if not autocast:
        network.bfloat16()
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        logits = by_steps(network, input_ids, CHUNKS["mixed"], backend=backend)
    assert logits.dtype == torch.bfloat16
    torch.testing.assert_close(logits.float(), exact, atol=0.1, rtol=0)  # logits have variance 1


def test_a_step_needs_what_was_read_before():
    network, input_ids = decoder(positional="rotary"), text()
    at_once = network(input_ids)[:, -1]
    with torch.no_grad():
        cache = network.new_cache(B, T)
        network(input_ids[:, :-1], cache=cache)
        last = network(input_ids[:, -1:], cache=cache)[:, -1]
        alone = network(input_ids[:, -1:])[:, -1]
    torch.testing.assert_close(last, at_once, atol=1e-5, rtol=1e-5)
    assert (alone - at_once).abs().max() > 0.1


def test_a_start_that_was_read_once_serves_every_continuation():
    network, start = decoder(), text(9)
    cache = network.new_cache(B, T)
    with torch.no_grad():
        network(start, cache=cache)
    for seed in (2, 3):
        cache.length = 9
        rest = text(T - 9, seed=seed)
        with torch.no_grad():
            logits = network(rest, cache=cache)
        torch.testing.assert_close(logits, network(torch.cat([start, rest], 1))[:, 9:], atol=1e-5, rtol=1e-5)


# Padding

TEXTS = [text(length, 1, seed=length)[0] for length in (1, 6, 13)]


def padded(side):
    input_ids, token_mask = torch.zeros(B, 15, dtype=torch.long), torch.zeros(B, 15, dtype=torch.bool)
    for row, ids in enumerate(TEXTS):
        place = slice(0, len(ids)) if side == "right" else slice(15 - len(ids), 15)
        input_ids[row, place], token_mask[row, place] = ids, True
    return input_ids, token_mask


@every_backend
@every_position
@every_window
@pytest.mark.parametrize("side", ["left", "right"])
def test_padded_on_either_side_is_as_alone(backend, positional, window, side):
    network = decoder(positional=positional, window=window)
    input_ids, token_mask = padded(side)
    at_once = network(input_ids, token_mask, backend=backend)
    stepwise = by_steps(network, input_ids, [7, 1, 4, 1, 1, 1], token_mask, backend=backend)
    for row, ids in enumerate(TEXTS):
        alone = network(ids[None], backend=backend)[0]
        for together in (at_once, stepwise):
            torch.testing.assert_close(together[row, token_mask[row]], alone, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("cached", [False, True])
def test_padding_within_a_text_is_refused(cached):
    network, (input_ids, token_mask) = decoder(), padded("right")
    cache = network.new_cache(B, 20) if cached else None
    with torch.no_grad(), pytest.raises(ValueError, match="got padding between tokens, .* pad it on the left"):
        if cache is None:
            network(input_ids, token_mask.index_fill(1, torch.tensor(14), True))
        else:
            network(input_ids, token_mask, cache=cache)
            network(input_ids[:, :1], cache=cache)
    assert cache is None or cache.length == 15


# Order


@every_backend
@every_position
@every_window
def test_a_token_changes_no_earlier_logit_and_every_later_one_in_reach(backend, positional, window):
    network, input_ids = decoder(positional=positional, window=window), text()
    before = network(input_ids, backend=backend)
    for place in range(T):
        edited = input_ids.clone()
        edited[:, place] = 4 + (edited[:, place] - 3) % 36
        after = network(edited, backend=backend)
        seen = torch.arange(T) >= place
        if window is not None:
            seen &= torch.arange(T) <= place + LAYERS * window
        changed = (after != before).any(-1)
        assert torch.equal(changed, seen.expand(B, T)), place


@every_position
def test_gradients_flow_from_a_logit_to_the_tokens_it_sees(positional):
    network, input_ids = decoder(positional=positional), text()
    read = []
    network.layers[0].register_forward_pre_hook(lambda module, given: read.append(given[0]))
    logits = network(input_ids)
    for place in (0, 8, T - 1):
        (gradient,) = torch.autograd.grad(logits[:, place].pow(2).sum(), read[0], retain_graph=True)
        reached = (gradient != 0).any(-1)
        assert torch.equal(reached, (torch.arange(T) <= place).expand(B, T))


# Against PyTorch's own, and by hand


@every_backend
@every_norm
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_it_is_pytorchs_layers_with_a_causal_mask(backend, norm, activation):
    network, input_ids = decoder(norm=norm, activation=activation, positional="learned"), text()
    weight = network.embedding.weight
    x = F.embedding(input_ids, weight) * 24**0.5 + network.positional.table.weight[:T]
    hidden = nn.Transformer.generate_square_subsequent_mask(T)
    for ours in network.layers:
        theirs = nn.TransformerEncoderLayer(24, 4, 20, 0.0, activation, batch_first=True, norm_first=norm == "pre")
        theirs.self_attn.in_proj_weight, theirs.self_attn.in_proj_bias = ours.attention.qkv.weight, ours.attention.qkv.bias
        theirs.self_attn.out_proj = ours.attention.out
        theirs.linear1, theirs.linear2 = ours.feed_forward[0], ours.feed_forward[3]
        theirs.norm1, theirs.norm2 = ours.attention_norm, ours.feed_forward_norm
        x = theirs(x, src_mask=hidden, is_causal=True)
    expected = network.final_norm(x) @ weight.T
    torch.testing.assert_close(network(input_ids, backend=backend), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("knobs", [{}, {"norm": "pre"}, {"positional": "learned"}, {"n_layers": 3, "d_ff": 21}], ids=str)
def test_parameters_are_counted_by_hand_and_the_output_layer_has_none(knobs):
    a = DecoderArchitecture(**SMALL | knobs)
    layer = 4 * a.d_model**2 + 4 * a.d_model + 2 * a.d_model * a.d_ff + a.d_ff + a.d_model + 4 * a.d_model
    expected = a.vocab_size * a.d_model + a.n_layers * layer
    expected += a.max_len * a.d_model if a.positional == "learned" else 0
    expected += 2 * a.d_model if a.norm == "pre" else 0
    assert sum(parameter.numel() for parameter in Decoder(a).parameters()) == expected


CHANGED = dict(
    vocab_size=41, d_model=32, n_heads=3, n_layers=3, d_ff=21, activation="gelu", norm="pre", positional="learned",
    residual=False, attention_scale="none", window=1, dropout=0.5, embedding_dropout=0.5, attention_dropout=0.5,
)  # fmt: skip


def test_every_knob_is_tested_here():
    assert set(CHANGED) | {"kind", "max_len"} == {knob.name for knob in fields(DecoderArchitecture)}


@pytest.mark.parametrize("knob", CHANGED)
def test_every_knob_changes_what_the_network_answers_in_training(knob):
    def answer(**knobs):
        network = decoder(**knobs).train()
        torch.manual_seed(2)
        return network(text())

    base, changed = answer(), answer(**{knob: CHANGED[knob]})
    assert torch.equal(base, answer())
    assert base.shape != changed.shape or not torch.isclose(base, changed, atol=1e-3).all()


@pytest.mark.parametrize("knob", ["dropout", "embedding_dropout", "attention_dropout"])
def test_dropout_is_for_training_alone(knob):
    assert torch.equal(decoder(**{knob: 0.5})(text()), decoder()(text()))


def test_what_is_read_and_what_is_scored_start_with_variance_one():
    network = decoder(vocab_size=4000, d_model=64, positional="none")
    read = []
    network.layers[0].register_forward_pre_hook(lambda module, given: read.append(given[0]))
    logits = network(torch.arange(2000).view(4, 500))
    assert read[0].std().item() == pytest.approx(1, abs=0.02)
    assert logits.std().item() == pytest.approx(1, abs=0.1)


# The cache


def test_bytes_by_hand():
    a = DecoderArchitecture(**SMALL)
    assert KeyValueCache(a, batch=5, max_len=11).n_bytes == 2 * LAYERS * 5 * 4 * 11 * 6 * 4
    assert KeyValueCache(a, batch=5, max_len=11, dtype=torch.bfloat16).n_bytes == 2 * LAYERS * 5 * 4 * 11 * 6 * 2


def test_keys_and_values_are_written_in_place_once(monkeypatch):
    network, given = decoder(), []
    eager = BACKENDS["eager"].resolve()
    monkeypatch.setattr("core.attention.eager.attend", lambda q, k, v, *rest: given.append((k, v)) or eager(q, k, v, *rest))
    cache = network.new_cache(B, T)
    places = cache.keys.data_ptr(), cache.values.data_ptr()
    input_ids = text()
    with torch.no_grad():
        network(input_ids[:, :9], cache=cache, backend="eager")
        first = cache.keys[:, :, :, :9].clone()
        cache.keys[:, :, :, 9:] = 7.0
        network(input_ids[:, 9:11], cache=cache, backend="eager")
    assert (cache.keys.data_ptr(), cache.values.data_ptr()) == places
    assert torch.equal(cache.keys[:, :, :, :9], first)
    assert (cache.keys[:, :, :, 9:11] != 7).all() and (cache.keys[:, :, :, 11:] == 7).all()
    for index, (k, v) in enumerate(given[LAYERS:]):
        assert k.shape == v.shape == (B, 4, 11, 6)
        assert (k.data_ptr(), v.data_ptr()) == (cache.keys[index].data_ptr(), cache.values[index].data_ptr())


def test_a_full_cache_says_so_and_stays_as_it_was():
    network, input_ids = decoder(), text()
    cache = network.new_cache(B, T - 1)
    with torch.no_grad():
        network(input_ids[:, :12], cache=cache)
        with pytest.raises(ValueError, match="got 17 tokens, 12 of them held, expected at most max_len 16; make a longer"):
            network(input_ids[:, 12:], cache=cache)
        assert cache.length == 12
        logits = network(input_ids[:, 12:16], cache=cache)
    torch.testing.assert_close(logits, network(input_ids)[:, 12:16], atol=1e-5, rtol=1e-5)


def test_learned_positions_end_in_a_longer_cache_too():
    network = decoder(positional="learned")
    cache = network.new_cache(B, 30)
    with torch.no_grad():
        network(text(20), cache=cache)
        with pytest.raises(ValueError, match="got 21 tokens, expected at most max_len 20: learned positions end there"):
            network(text(1), cache=cache)
    assert cache.length == 20


def test_a_cache_is_for_its_own_texts_format_and_no_training():
    network = decoder()
    cache = network.new_cache(B, T)
    with torch.no_grad(), pytest.raises(ValueError, match="got 2 texts, expected the 3 of this cache"):
        network(text(batch=2), cache=cache)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16), pytest.raises(ValueError, match="got keys of torch.bfloat16"):
        network(text(), cache=cache)
    with pytest.raises(ValueError, match="while gradients are taken, expected torch.no_grad"):
        network(text(), cache=cache)
    assert cache.length == 0 and not cache.keys.requires_grad


# The rest


@every_backend
@every_norm
def test_a_sentence_can_be_memorised(backend, norm):
    network, sentence = decoder(norm=norm, positional="learned").train(), text(12, 1)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-2)
    for step in range(40):
        loss = F.cross_entropy(network(sentence[:, :-1], backend=backend)[0], sentence[0, 1:])
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            assert loss.item() > 2
            assert all(parameter.grad is not None and parameter.grad.any() for parameter in network.parameters())
        optimizer.step()
    assert loss.item() < 0.2
