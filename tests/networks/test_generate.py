"""Continuing texts: which token is taken, against the whole forward and probabilities by hand."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from core.catalog import POSITIONAL
from core.config import DecoderArchitecture
from core.networks.decoder import Decoder, choose, generate, nucleus, tempered

B, T, NEW, VOCABULARY = 3, 6, 8, 40
SMALL = dict(vocab_size=VOCABULARY, d_model=24, n_heads=4, n_layers=2, d_ff=20, max_len=20, norm="pre")
every_backend = pytest.mark.parametrize("backend", ["eager", "sdpa", "chunked"])
every_position = pytest.mark.parametrize("positional", POSITIONAL)
cached = pytest.mark.parametrize("use_cache", [True, False], ids=["cache", "no cache"])


def decoder(**knobs):
    torch.manual_seed(0)
    network = Decoder(DecoderArchitecture(**SMALL | knobs)).eval()
    for name, parameter in network.named_parameters():  # as drawn at first, it mostly repeats the last token
        if parameter.ndim > 1 and name != "embedding.weight":
            nn.init.normal_(parameter)
    return network


def prompts(length=T, batch=B, seed=1):
    return torch.randint(4, VOCABULARY, (batch, length), generator=torch.Generator().manual_seed(seed))


def drawn(network, ids, seed=0, **options):
    return generate(network, ids, max_new_tokens=NEW, generator=torch.Generator().manual_seed(seed), **options)


def as_often_as(tokens: Tensor, expected: Tensor) -> bool:
    """Whether each token was drawn as often as its probability says, within 4 standard deviations."""
    counts, n = tokens.bincount(minlength=len(expected)), len(tokens)
    return bool(((counts - n * expected).abs() <= 4 * (n * expected * (1 - expected)).sqrt()).all())


# Which token


@cached
@every_backend
@every_position
@pytest.mark.parametrize("window", [None, 3], ids=["all", "window"])
def test_greedy_is_the_argmax_of_the_whole_forward(use_cache, backend, positional, window):
    network, ids = decoder(positional=positional, window=window), prompts()
    new = generate(network, ids, max_new_tokens=NEW, use_cache=use_cache, backend=backend)
    assert new.shape == (B, NEW) and len(new.unique()) > 4
    text = ids
    for place in range(NEW):
        text = torch.cat([text, network(text, backend=backend)[:, -1:].argmax(-1)], dim=1)
        assert torch.equal(new[:, place], text[:, -1]), place


@every_position
@pytest.mark.parametrize("settings", [{}, {"top_p": 0.7}, {"temperature": 3.0, "top_p": 0.9}], ids=str)
def test_without_the_cache_the_tokens_are_the_same(positional, settings):
    network, ids = decoder(positional=positional), prompts()
    options = {"temperature": 1.0} | settings
    assert torch.equal(drawn(network, ids, **options), drawn(network, ids, use_cache=False, **options))


@cached
def test_a_seed_is_a_text(use_cache):
    network, ids = decoder(), prompts()
    options = dict(temperature=1.0, use_cache=use_cache)
    before = torch.get_rng_state()
    first = drawn(network, ids, seed=3, **options)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(drawn(network, ids, seed=3, **options), first)
    assert len({tuple(drawn(network, ids, seed=seed, **options).flatten().tolist()) for seed in range(10)}) == 10


def test_a_generator_goes_on_where_it_was():
    network, ids, generator = decoder(), prompts(), torch.Generator().manual_seed(0)
    first, second = (generate(network, ids, max_new_tokens=NEW, temperature=1.0, generator=generator) for _ in range(2))
    assert not torch.equal(first, second)


@cached
@every_position
def test_prompts_of_unequal_length_are_as_alone(use_cache, positional):
    network = decoder(positional=positional, window=4)
    alone = [prompts(length, 1, seed=length)[0] for length in (1, 4, 6)]
    ids, token_mask = torch.zeros(B, T, dtype=torch.long), torch.zeros(B, T, dtype=torch.bool)
    for row, prompt in enumerate(alone):
        ids[row, T - len(prompt) :], token_mask[row, T - len(prompt) :] = prompt, True
    together = generate(network, ids, max_new_tokens=NEW, token_mask=token_mask, use_cache=use_cache)
    assert torch.equal(together, torch.cat([generate(network, prompt[None], max_new_tokens=NEW) for prompt in alone]))


def test_with_the_cache_each_token_is_read_once_and_there_is_room_for_no_more(monkeypatch):
    network, read, caches, new_cache = decoder(), [], [], Decoder.new_cache
    monkeypatch.setattr(Decoder, "new_cache", lambda *given: caches.append(new_cache(*given)) or caches[-1])
    network.layers[0].register_forward_pre_hook(lambda module, given: read.append(given[0].shape[1]))
    generate(network, prompts(), max_new_tokens=NEW)
    assert read == [T] + [1] * (NEW - 1)
    assert [(cache.length, cache.max_len) for cache in caches] == [(T + NEW - 1, T + NEW - 1)]
    read.clear()
    generate(network, prompts(), max_new_tokens=NEW, use_cache=False)
    assert read == list(range(T, T + NEW))


def test_the_prompt_is_left_as_it_was():
    ids = prompts()
    before = ids.clone()
    generate(decoder(), ids, max_new_tokens=NEW)
    assert torch.equal(ids, before)


@cached
@pytest.mark.parametrize("autocast", [False, True], ids=["weights", "autocast"])
def test_bfloat16_continues_too(use_cache, autocast):
    network = decoder() if autocast else decoder().bfloat16()
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        new = generate(network, prompts(), max_new_tokens=NEW, use_cache=use_cache, temperature=0.5)
    assert new.shape == (B, NEW) and (0 <= new).all() and (new < VOCABULARY).all()


# Temperature and nucleus

LOGITS = torch.tensor([[0.0, math.log(2), math.log(4)]])  # softmax: 1/7, 2/7, 4/7


@pytest.mark.parametrize(
    ("temperature", "expected"),
    [(1.0, [1 / 7, 2 / 7, 4 / 7]), (0.5, [1 / 21, 4 / 21, 16 / 21]), (2.0, [1.0, 2**0.5, 2.0]), (1e9, [1.0, 1.0, 1.0])],
)
def test_temperature_by_hand(temperature, expected):
    expected = torch.tensor([expected], dtype=torch.double)
    torch.testing.assert_close(tempered(LOGITS, temperature), expected / expected.sum(), atol=1e-7, rtol=0)


@pytest.mark.parametrize("temperature", [1e-3, 1e-30, 5e-324])
@pytest.mark.parametrize("scale", [1.0, 1e30])
def test_a_small_temperature_takes_the_likeliest(temperature, scale):
    assert tempered(LOGITS * scale, temperature).tolist()[0] == pytest.approx([0, 0, 1], abs=1e-12)


PROBABILITIES = torch.tensor([[0.05, 0.5, 0.15, 0.3], [0.25, 0.25, 0.25, 0.25]], dtype=torch.double)


@pytest.mark.parametrize(
    ("top_p", "kept"),
    [(1e-9, [1]), (0.5, [1]), (0.51, [1, 3]), (0.8, [1, 3]), (0.81, [1, 2, 3]), (0.96, [0, 1, 2, 3]), (1.0, [0, 1, 2, 3])],
)
def test_nucleus_by_hand(top_p, kept):
    first, _ = nucleus(PROBABILITIES, top_p)
    expected = torch.zeros(4, dtype=torch.double)
    expected[kept] = PROBABILITIES[0, kept] / PROBABILITIES[0, kept].sum()
    torch.testing.assert_close(first, expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize(("top_p", "size"), [(0.1, 1), (0.25, 1), (0.3, 2), (0.5, 2), (0.76, 4), (1.0, 4)])
def test_of_equal_tokens_no_more_are_kept_than_needed(top_p, size):
    assert (nucleus(PROBABILITIES, top_p)[1] > 0).sum() == size


def test_all_of_the_probability_is_every_token():
    probabilities = torch.tensor([[1e-20, 1.0]], dtype=torch.double)  # the sum is 1 before the last token
    assert torch.equal(nucleus(probabilities, 1.0), probabilities)


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=30), st.floats(1e-6, 1.0))
def test_a_nucleus_is_the_smallest_set_that_reaches_p(weights, top_p):
    probabilities = torch.tensor([weights], dtype=torch.double) / sum(weights)
    kept = nucleus(probabilities, top_p)
    inside = kept > 0
    reached = probabilities[inside].sum().item()
    assert kept.sum().item() == pytest.approx(1)
    assert reached >= top_p - 1e-9
    assert reached - probabilities[inside].min().item() < top_p + 1e-9  # without its last one it falls short
    assert inside.all() or probabilities[inside].min() >= probabilities[~inside].max()


@pytest.mark.parametrize(
    ("temperature", "top_p", "expected"),
    [
        (1.0, 1.0, [1 / 7, 2 / 7, 4 / 7]),
        (0.5, 1.0, [1 / 21, 4 / 21, 16 / 21]),
        (1.0, 0.6, [0, 1 / 3, 2 / 3]),
        (1.0, 0.5, [0, 0, 1]),
        (0.0, 1.0, [0, 0, 1]),
    ],
)
def test_tokens_are_drawn_as_often_as_they_should_be(temperature, top_p, expected):
    tokens = choose(LOGITS.expand(20_000, 3), temperature, top_p, torch.Generator().manual_seed(0))
    assert as_often_as(tokens, torch.tensor(expected, dtype=torch.double))


def test_what_is_drawn_is_drawn_of_the_networks_own_probabilities():
    network, ids = decoder(vocab_size=8), torch.tensor([[4, 5, 6]])
    expected = (network(ids)[0, -1].detach().double() / 2.5).softmax(-1)
    assert expected.max() < 0.8
    generator = torch.Generator().manual_seed(0)
    new = generate(network, ids.expand(5000, -1), max_new_tokens=1, temperature=2.5, generator=generator)
    assert as_often_as(new[:, 0], expected)


# Where a text ends


@cached
def test_a_text_ends_with_its_stop_and_is_padded_until_all_have_ended(use_cache):
    network, ids = decoder(), prompts()
    free = generate(network, ids, max_new_tokens=NEW)
    ends = [int(free[0, 1]), int(free[1, 4])]
    expected = free.clone()
    for row in expected:
        stops = [place for place, token in enumerate(row.tolist()) if token in ends]
        row[min(stops, default=NEW) + 1 :] = 0
    assert not torch.equal(expected, free)
    assert torch.equal(generate(network, ids, max_new_tokens=NEW, stop=ends, use_cache=use_cache), expected)


def test_nothing_is_read_after_all_have_ended():
    network, ids = decoder(), prompts(batch=1)
    free = generate(network, ids, max_new_tokens=NEW)
    end = next(place for place in range(1, NEW) if free[0, place] not in free[0, :place])
    read = []
    network.layers[0].register_forward_pre_hook(lambda *_: read.append(1))
    new = generate(network, ids, max_new_tokens=NEW, stop={int(free[0, end])})
    assert torch.equal(new, free[:, : end + 1]) and len(read) == end + 1


# What cannot be asked


@pytest.mark.parametrize(("settings", "sentence"), [
    ({"temperature": -0.1}, "temperature: got -0.1, expected at least 0, which takes the likeliest token"),
    ({"temperature": math.nan}, "temperature: got nan"),
    ({"temperature": math.inf}, "temperature: got inf"),
    ({"top_p": 0.0}, "top_p: got 0, expected above 0 and at most 1"),
    ({"top_p": -0.5}, "top_p: got -0.5"),
    ({"top_p": 1.01}, "top_p: got 1.01"),
    ({"top_p": math.nan}, "top_p: got nan"),
    ({"max_new_tokens": 0}, "max_new_tokens: got 0, expected at least 1"),
    ({"token_mask": torch.arange(T).expand(B, T) < T - 1}, "padding on the right, .* pad prompts on the left"),
    ({"token_mask": torch.ones(B, T).index_fill(1, torch.tensor(2), 0).bool()}, "got padding between tokens"),
    ({"token_mask": torch.ones(B, T).index_fill(0, torch.tensor(1), 0).bool()}, "got an empty prompt, expected at least one"),
    ({"ids": prompts(0)}, "got an empty prompt"),
    ({"ids": prompts(batch=0)}, "got an empty prompt"),
    ({"backend": "flash"}, "backend: got 'flash', expected one of eager, sdpa"),
    ({"backend": "varlen"}, "backend 'varlen': it runs on cuda alone, not on cpu"),
])  # fmt: skip
@cached
def test_what_means_nothing_is_refused_in_a_sentence(settings, sentence, use_cache):
    with pytest.raises(ValueError, match=sentence):
        generate(decoder(), **{"ids": prompts(), "max_new_tokens": 2, "use_cache": use_cache} | settings)


@cached
def test_learned_positions_end_a_text_before_it_begins(use_cache):
    network, read = decoder(positional="learned", max_len=10), []
    assert generate(network, prompts(), max_new_tokens=5, use_cache=use_cache).shape == (B, 5)  # the last one is not read
    network.layers[0].register_forward_pre_hook(lambda *_: read.append(1))
    with pytest.raises(ValueError, match="got 11 tokens, expected at most max_len 10: .*; ask for fewer"):
        generate(network, prompts(), max_new_tokens=6, use_cache=use_cache)
    assert not read


def test_a_network_in_training_is_refused():
    with pytest.raises(ValueError, match="got a network in training, .* after network.eval"):
        generate(decoder().train(), prompts(), max_new_tokens=1)


def test_a_memorised_sentence_is_recited():
    torch.manual_seed(0)
    network, sentence = Decoder(DecoderArchitecture(**SMALL)).train(), prompts(12, 1)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-2)
    for _ in range(60):
        loss = F.cross_entropy(network(sentence[:, :-1])[0], sentence[0, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    recited = generate(network.eval(), sentence[:, :2], max_new_tokens=10)
    assert torch.equal(recited, sentence[:, 2:])
