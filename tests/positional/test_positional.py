"""Positions against their formulas; what the encoder makes of them is tested with the encoder."""

import itertools
import math
from dataclasses import replace

import pytest
import torch

from core.catalog import POSITIONAL
from core.config import EncoderArchitecture
from core.positional.alibi import slopes
from core.positional.sinusoidal import table

SMALL = EncoderArchitecture(vocab_size=20, d_model=12, n_heads=3, n_layers=1, d_ff=8, max_len=10)
CPU = torch.device("cpu")


def encoding(name, **knobs):
    torch.manual_seed(0)
    return POSITIONAL[name].resolve()(replace(SMALL, **knobs))


def embedded(positional, x, places):
    return positional.embed(x, positional.codes(places, int(places.max()) + 1))


def rotated(x, places, positional="rotary"):
    """`x` (B, H, T, K), turned."""
    rotary = encoding(positional, d_model=x.shape[1] * x.shape[3], n_heads=x.shape[1])
    return rotary.rotate(x, rotary.codes(places, int(places.max()) + 1))


@pytest.mark.parametrize("length", [1, 2, 3, 64, 65])
def test_sinusoidal_is_the_formula(length):  # PE(p, 2i) = sin(p / 10000^(2i/D)), PE(p, 2i+1) = cos(same)
    codes = embedded(encoding("sinusoidal"), torch.zeros(2, length, 12), torch.arange(length)[None])
    for p in {0, length // 2, length - 1}:
        for i in range(6):
            angle = p / 10_000 ** (2 * i / 12)
            assert codes[1, p, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert codes[1, p, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_sinusoidal_stays_exact_far_out():
    far = table(8192, 4, CPU)[8191]
    expected = [math.sin(8191), math.cos(8191), math.sin(81.91), math.cos(81.91)]
    torch.testing.assert_close(far, torch.tensor(expected), atol=1e-6, rtol=0)


@pytest.mark.parametrize("offset", [1, 7, 200])
def test_one_rotation_moves_every_place_by_an_offset(offset):  # section 3.5: PE(p + k) is a linear function of PE(p)
    codes = table(512, 12, CPU).double()
    angles = [offset / 10_000 ** (2 * i / 12) for i in range(6)]
    moved = torch.block_diag(
        *(torch.tensor([[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]], dtype=torch.double) for a in angles)
    )
    torch.testing.assert_close(codes[:300] @ moved, codes[offset : 300 + offset], atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", ["sinusoidal", "learned"])
def test_a_code_belongs_to_a_place_and_not_to_a_column(name):
    positions = torch.tensor([[0, 0, 1, 2], [2, 1, 0, 0]])
    codes = embedded(encoding(name), torch.zeros(2, 4, 12), positions)
    torch.testing.assert_close(codes[0], codes[1].flip(0), atol=0, rtol=0)
    assert torch.equal(codes[0, 0], codes[0, 1]) and not torch.isclose(codes[0, 1], codes[0, 2]).all()


@pytest.mark.parametrize("name", ["sinusoidal", "learned"])
def test_codes_are_added_to_what_is_there(name):
    x = torch.randn(2, 5, 12, generator=torch.Generator().manual_seed(0))
    places = torch.arange(5)[None]
    added = embedded(encoding(name), x, places) - x
    torch.testing.assert_close(added, embedded(encoding(name), torch.zeros_like(x), places), atol=1e-6, rtol=0)


def test_no_positions_pass_everything():
    x, q = torch.randn(2, 5, 12), torch.randn(2, 3, 5, 4)
    none = encoding("none")
    assert embedded(none, x, torch.arange(5)[None]) is x
    assert rotated(q, torch.arange(5)[None], "none") is q
    assert none.bias(CPU) is None and not list(none.parameters())


def test_learned_positions_end_at_max_len():
    learned = encoding("learned")
    for end in (10, 300):  # places may be known to be below more than there is
        assert learned.embed(torch.zeros(1, 10, 12), learned.codes(torch.arange(10)[None], end)).shape == (1, 10, 12)
        with pytest.raises(ValueError, match="got 11 tokens, expected at most max_len 10: .*; cut the text"):
            learned.codes(torch.arange(11)[None], end + 1)


def test_each_learned_vector_is_trained_by_its_own_place():
    learned = encoding("learned")
    embedded(learned, torch.zeros(1, 3, 12), torch.tensor([[4, 7, 7]])).sum().backward()
    touched = learned.table.weight.grad[:, 0].tolist()
    assert touched == [0, 0, 0, 0, 1, 0, 0, 2, 0, 0]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", POSITIONAL)
def test_half_precision_stays_half_precision(name, dtype):
    x = torch.zeros(1, 4, 12, dtype=dtype)
    assert embedded(encoding(name).to(dtype), x, torch.arange(4)[None]).dtype == dtype


def test_a_table_made_without_gradients_serves_training():
    table.cache_clear()
    with torch.inference_mode():
        embedded(encoding("sinusoidal"), torch.zeros(1, 4, 12), torch.arange(4)[None])
    x = torch.ones(1, 4, 12, requires_grad=True)
    (embedded(encoding("sinusoidal"), x, torch.arange(4)[None]) ** 2).sum().backward()
    assert x.grad is not None and x.grad.isfinite().all()


def test_absolute_places_need_not_start_at_zero():
    """As with a cache: one token, far from the start."""
    for name in ("sinusoidal", "learned"):
        whole = embedded(encoding(name), torch.zeros(1, 10, 12), torch.arange(10)[None])
        torch.testing.assert_close(embedded(encoding(name), torch.zeros(1, 1, 12), torch.tensor([[9]])), whole[:, 9:])
    x = torch.randn(1, 3, 10, 4)
    whole = rotated(x, torch.arange(10)[None])
    torch.testing.assert_close(rotated(x[:, :, 9:], torch.tensor([[9]])), whole[:, :, 9:])


def turned(x, place):
    return rotated(x.view(1, 1, 1, -1), torch.tensor([[place]])).flatten()


def test_rotary_turns_pairs_by_the_formula():
    for place, i in itertools.product([0, 1, 7, 300], range(4)):
        angle = place / 10_000 ** (2 * i / 8)
        out = turned(torch.eye(8)[2 * i], place)
        expected = torch.zeros(8)
        expected[2 * i], expected[2 * i + 1] = math.cos(angle), math.sin(angle)
        torch.testing.assert_close(out, expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("offset", [0, 1, 17])
def test_rotary_scores_depend_on_the_offset_alone(offset):
    generator = torch.Generator().manual_seed(0)
    q, k = torch.randn(8, generator=generator), torch.randn(8, generator=generator)
    scores = [(turned(q, place + offset) @ turned(k, place)).item() for place in (0, 1, 50, 2000)]
    assert scores == pytest.approx([scores[0]] * 4, abs=1e-4)
    assert (turned(q, offset + 1) @ turned(k, 0)).item() != pytest.approx(scores[0], abs=1e-3)
    assert turned(q, 2000).norm().item() == pytest.approx(q.norm().item(), rel=1e-6)


def test_rotary_reads_the_places_it_is_given():
    x, places = torch.randn(2, 3, 4, 8), torch.tensor([[0, 0, 1, 2], [5, 1, 0, 0]])
    out = rotated(x, places)
    for b, t in itertools.product(range(2), range(4)):
        torch.testing.assert_close(out[b, 1, t], turned(x[b, 1, t], places[b, t].item()))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_rotary_is_turned_in_float32(dtype):
    x, places = torch.randn(1, 2, 3, 8).to(dtype), torch.tensor([[0, 1000, 8191]])
    exact = rotated(x.float(), places)
    assert torch.equal(rotated(x, places), exact.to(dtype))


PUBLISHED_SLOPES = {  # arXiv:2108.12409, section 3, and get_slopes of its code for 6 and 12 heads
    1: [2**-8],
    2: [2**-4, 2**-8],
    6: [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3],
    8: [2**-1, 2**-2, 2**-3, 2**-4, 2**-5, 2**-6, 2**-7, 2**-8],
    12: [2**-h for h in range(1, 9)] + [2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5],
    16: [2 ** (-h / 2) for h in range(1, 17)],
}


@pytest.mark.parametrize("n_heads", PUBLISHED_SLOPES)
def test_slopes_are_the_published_ones(n_heads):
    assert slopes(n_heads, CPU).tolist() == pytest.approx(PUBLISHED_SLOPES[n_heads])


@pytest.mark.parametrize("name", POSITIONAL)
def test_an_encoding_opens_one_door(name):
    x, places = torch.ones(1, 3, 12), torch.arange(3)[None]
    q = torch.ones(1, 3, 3, 4)
    opened = {
        "embed": not torch.equal(embedded(encoding(name), x, places), x),
        "rotate": not torch.equal(rotated(q, places, name), q),
        "bias": encoding(name).bias(CPU) is not None,
    }
    doors = {"none": None, "sinusoidal": "embed", "learned": "embed", "rotary": "rotate", "alibi": "bias"}
    assert [door for door in opened if opened[door]] == ([doors[name]] if doors[name] else [])
