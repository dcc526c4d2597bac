"""The layers against PyTorch's own with the same weights, and what a head adds by hand."""

from collections import Counter

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.profiler import ProfilerActivity, profile

from core.attention.masks import AttentionMask
from core.config import BiLSTMArchitecture, DecoderArchitecture, EncoderArchitecture
from core.networks.bilstm import BiLSTM
from core.networks.blocks import MASK_ID, EncoderLayer, SelfAttention, attention_function, drop_tokens, refuse_no_batch
from core.networks.decoder import Decoder
from core.networks.encoder import Encoder
from core.positional.base import PositionalEncoding
from tests.backends import able

D_MODEL, B, T = 24, 2, 7
TOKEN_MASK = torch.arange(T) < torch.tensor([[T], [4]])
every_backend = pytest.mark.parametrize("name", able(gradients=True))


def architecture(**knobs):
    small = dict(vocab_size=20, d_model=D_MODEL, n_heads=3, n_layers=1, d_ff=40, max_len=T, dropout=0.0)
    return EncoderArchitecture(**small | knobs)


def context(arch, name="eager", token_mask=TOKEN_MASK, head_gain=None):
    attend = attention_function(name, weights=False)
    return torch.arange(T)[None], AttentionMask(token_mask), PositionalEncoding(arch), attend, head_gain


def drawn(module_type, arch, seed=0):
    torch.manual_seed(seed)
    module = module_type(arch)
    for parameter in module.parameters():  # biases and norms of their own, so that none can be left out unseen
        nn.init.normal_(parameter, std=0.3)
    return module, torch.randn(B, T, D_MODEL, requires_grad=True)


def copy_attention(ours, theirs):
    theirs.load_state_dict(
        {
            "in_proj_weight": ours.qkv.weight,
            "in_proj_bias": ours.qkv.bias,
            "out_proj.weight": ours.out.weight,
            "out_proj.bias": ours.out.bias,
        }
    )


@every_backend
@pytest.mark.parametrize("n_heads", [1, 3, 6])
@pytest.mark.parametrize("padded", [False, True], ids=["dense", "padded"])
def test_self_attention_is_multihead_attention(name, n_heads, padded):
    arch = architecture(n_heads=n_heads)
    ours, x = drawn(SelfAttention, arch)
    theirs = nn.MultiheadAttention(D_MODEL, n_heads, batch_first=True)
    copy_attention(ours, theirs)
    out, weights = ours(x, *context(arch, name, TOKEN_MASK if padded else None))
    hidden = ~TOKEN_MASK if padded else None  # there, True means hidden
    expected, expected_weights = theirs(x, x, x, key_padding_mask=hidden, average_attn_weights=False)
    torch.testing.assert_close(out, expected, atol=1e-5, rtol=1e-5)
    if weights is not None:
        torch.testing.assert_close(weights, expected_weights, atol=1e-6, rtol=1e-5)
    upstream = torch.randn(out.shape, generator=torch.Generator().manual_seed(1))
    mine = torch.autograd.grad(out, [x, ours.qkv.weight, ours.qkv.bias, ours.out.weight], upstream)
    known = torch.autograd.grad(expected, [x, theirs.in_proj_weight, theirs.in_proj_bias, theirs.out_proj.weight], upstream)
    torch.testing.assert_close(mine, known, atol=2e-5, rtol=1e-4)


@every_backend
@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
def test_layer_is_a_transformer_encoder_layer(name, norm, activation, training):
    arch = architecture(norm=norm, activation=activation)
    ours, x = drawn(EncoderLayer, arch)
    theirs = nn.TransformerEncoderLayer(
        D_MODEL, 3, 40, dropout=0.0, activation=activation, batch_first=True, norm_first=norm == "pre"
    )
    copy_attention(ours.attention, theirs.self_attn)
    theirs.linear1.load_state_dict(ours.feed_forward[0].state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward[3].state_dict())
    theirs.norm1.load_state_dict(ours.attention_norm.state_dict())
    theirs.norm2.load_state_dict(ours.feed_forward_norm.state_dict())
    with torch.set_grad_enabled(training):  # without gradients theirs takes its fused path
        out, _ = ours.train(training)(x, *context(arch, name))
        expected = theirs.train(training)(x, src_key_padding_mask=~TOKEN_MASK)
    torch.testing.assert_close(out[TOKEN_MASK], expected[TOKEN_MASK], atol=1e-5, rtol=1e-5)
    if training:
        shown = TOKEN_MASK[..., None].float()
        mine = torch.autograd.grad((out * shown).pow(2).sum(), [x, ours.attention.qkv.weight, ours.feed_forward[0].weight])
        known = torch.autograd.grad(
            (expected * shown).pow(2).sum(), [x, theirs.self_attn.in_proj_weight, theirs.linear1.weight]
        )
        torch.testing.assert_close(mine, known, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_without_residual_nothing_passes_beside_the_sublayers(norm):
    arch = architecture(norm=norm, residual=False)
    layer, x = drawn(EncoderLayer, arch)
    normed = layer.attention_norm if norm == "pre" else nn.Identity()
    attended = layer.attention(normed(x), *context(arch))[0]
    if norm == "pre":
        expected = layer.feed_forward(layer.feed_forward_norm(attended))
    else:
        expected = layer.feed_forward_norm(layer.feed_forward(layer.attention_norm(attended)))
    torch.testing.assert_close(layer(x, *context(arch))[0], expected)


@pytest.mark.parametrize("knob, factor", [("sqrt_d_head", 8**-0.5), ("sqrt_d_model", 24**-0.5), ("none", 1.0)])
@every_backend
def test_attention_logits_are_divided_as_named(name, knob, factor):
    arch = architecture(attention_scale=knob)
    ours, x = drawn(SelfAttention, arch)
    q, k, v = (part.unflatten(-1, (3, 8)).transpose(1, 2) for part in ours.qkv(x).chunk(3, dim=-1))
    heads = (q @ k.mT * factor).softmax(-1) @ v
    expected = ours.out(heads.transpose(1, 2).reshape(B, T, D_MODEL))
    torch.testing.assert_close(ours(x, *context(arch, name, None))[0], expected, atol=1e-5, rtol=1e-5)


def test_attention_dropout_is_handed_on_in_training_alone():
    arch = architecture(attention_dropout=0.4)
    ours, x = drawn(SelfAttention, arch)
    seen = []

    def attend(q, k, v, mask, bias, scale, dropout_p):
        seen.append(dropout_p)
        return v, None

    for training in (True, False):
        ours.train(training)(x, torch.arange(T)[None], AttentionMask(), PositionalEncoding(arch), attend)
    assert seen == [0.4, 0.0]


@every_backend
def test_a_gain_of_one_changes_nothing(name):
    arch = architecture()
    ours, x = drawn(SelfAttention, arch)
    assert torch.equal(ours(x, *context(arch, name, head_gain=torch.ones(3)))[0], ours(x, *context(arch, name))[0])


@every_backend
@pytest.mark.parametrize("head", [0, 1, 2])
def test_a_gain_of_zero_removes_what_the_head_added(name, head):
    arch = architecture()
    ours, x = drawn(SelfAttention, arch)
    columns = slice(8 * head, 8 * head + 8)
    q, k, v = (part[..., columns] for part in ours.qkv(x).chunk(3, dim=-1))
    weights = (q @ k.mT * 8**-0.5).masked_fill(~TOKEN_MASK[:, None, :], float("-inf")).softmax(-1)
    added = weights @ v @ ours.out.weight[:, columns].T
    gain = torch.ones(3).index_fill(0, torch.tensor(head), 0.0)
    whole, without = (ours(x, *context(arch, name, head_gain=g))[0] for g in (None, gain))
    torch.testing.assert_close(whole - without, added, atol=1e-5, rtol=1e-5)
    assert added.abs().min(-1).values.max() > 1e-3


@every_backend
def test_gains_have_gradients_and_all_heads_may_go(name):
    arch = architecture()
    ours, x = drawn(SelfAttention, arch)
    gain = torch.zeros(3, requires_grad=True)
    out, _ = ours(x, *context(arch, name, head_gain=gain))
    torch.testing.assert_close(out, ours.out.bias.expand_as(out))
    out.pow(2).sum().backward()
    assert gain.grad is not None and gain.grad.isfinite().all() and (gain.grad != 0).all()


def test_tokens_are_dropped_at_their_rate_and_kept_where_asked():
    torch.manual_seed(0)
    input_ids = torch.randint(4, 20, (200, 500))
    kept = torch.zeros_like(input_ids, dtype=torch.bool).index_fill(1, torch.tensor(3), True)
    out = drop_tokens(input_ids, 0.3, kept)
    changed = out != input_ids
    assert MASK_ID == 3 and (out[changed] == 3).all() and not changed[:, 3].any()
    assert changed.double().mean().item() == pytest.approx(0.3 * 499 / 500, abs=4 * (0.21 / 100_000) ** 0.5)
    assert not torch.equal(out, drop_tokens(input_ids, 0.3, kept))


def test_an_unknown_backend_is_told_the_known_ones():
    with pytest.raises(ValueError, match="backend: got 'flash', expected one of eager, sdpa"):
        attention_function("flash", weights=False)


def test_weights_asked_of_a_backend_without_any_name_one_that_has_them():
    with pytest.raises(ValueError, match="backend 'sdpa': it computes no weights; to inspect, use 'eager'"):
        attention_function("sdpa", weights=True)


def test_logits_are_what_the_softmax_is_taken_of():
    attention, x = drawn(SelfAttention, architecture())
    positions, mask, positional, _, _ = context(architecture())
    logits = attention.logits(x, positions, mask, positional)
    q, k, _ = (part.unflatten(-1, (3, 8)) for part in attention.qkv(x).chunk(3, dim=-1))
    expected = torch.einsum("bqhk,bthk->bhqt", q, k) / 8**0.5
    torch.testing.assert_close(logits, expected * TOKEN_MASK[:, None, None, :])
    _, weights = attention(x, positions, mask, positional, attention_function("eager", weights=True))
    hidden = logits.masked_fill(~TOKEN_MASK[:, None, None, :], float("-inf"))
    torch.testing.assert_close(hidden.softmax(-1), weights)


# Heads switched to their mean

MEANS = torch.tensor([False, True, False])


@every_backend
def test_a_head_at_its_mean_by_hand(name):
    arch = architecture()
    ours, x = drawn(SelfAttention, arch)
    q, k, v = (part.unflatten(-1, (3, 8)).transpose(1, 2) for part in ours.qkv(x).chunk(3, dim=-1))
    heads = (q @ k.mT * 8**-0.5).masked_fill(~TOKEN_MASK[:, None, None], float("-inf")).softmax(-1) @ v
    for review, length in enumerate((T, 4)):  # of real queries alone
        heads[review, 1] = heads[review, 1, :length].mean(0)
    expected = ours.out(heads.transpose(1, 2).reshape(B, T, D_MODEL))
    out, _ = ours(x, *context(arch, name), head_mean=MEANS)
    torch.testing.assert_close(out, expected, atol=1e-5, rtol=1e-5)
    inputs = [x, ours.qkv.weight, ours.out.weight]
    mine, known = (torch.autograd.grad(o[TOKEN_MASK].square().sum(), inputs, retain_graph=True) for o in (out, expected))
    torch.testing.assert_close(mine, known, atol=1e-3, rtol=1e-4)


@every_backend
def test_no_head_at_its_mean_changes_nothing_and_gains_come_after(name):
    arch = architecture()
    ours, x = drawn(SelfAttention, arch)
    plain, none = (ours(x, *context(arch, name), head_mean=means)[0] for means in (None, torch.zeros(3, dtype=torch.bool)))
    assert torch.equal(plain, none)
    off = ours(x, *context(arch, name, head_gain=(~MEANS).float()))[0]
    half, whole = (
        ours(x, *context(arch, name, head_gain=torch.where(MEANS, gain, 1.0)), head_mean=MEANS)[0] for gain in (0.5, 1.0)
    )
    torch.testing.assert_close(half, (off + whole) / 2, atol=1e-5, rtol=1e-5)
    assert (whole - off).abs().amax(-1).min() > 1e-3


@every_backend
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_all_heads_at_their_means_give_every_token_the_same_even_of_nothing(name, dtype):
    arch = architecture()
    ours, x = drawn(SelfAttention, arch)
    nothing = torch.stack([TOKEN_MASK[1], torch.zeros(T, dtype=torch.bool)])
    out, _ = ours.to(dtype)(x.to(dtype), *context(arch, name, nothing), head_mean=torch.ones(3, dtype=torch.bool))
    assert torch.equal(out, out[:, :1].expand_as(out)) and out.isfinite().all()
    found = torch.autograd.grad(out.float().square().sum(), [x, ours.qkv.weight])
    assert all(gradient.isfinite().all() and gradient.any() for gradient in found)


# Cost

WRAPPERS = {"aten::flatten", "aten::unflatten", "aten::reshape", "aten::to", "aten::dropout"}
"""Names for views, or for nothing: what they compute, if they do, is counted by its own name (clone, _to_copy, bernoulli_)."""


def written_by_hand(layer, x, fused):
    attention, (up, _, _, down) = layer.attention, layer.feed_forward
    q, k, v = attention.qkv(x).view(B, T, 3, 3, 8).permute(2, 0, 3, 1, 4)
    if fused:
        heads = F.scaled_dot_product_attention(q, k, v, scale=8**-0.5)
    else:
        heads = ((q * 8**-0.5) @ k.transpose(-2, -1)).softmax(-1) @ v
    x = layer.attention_norm(x + attention.out(heads.transpose(1, 2).reshape(B, T, D_MODEL)))
    return layer.feed_forward_norm(x + down(F.relu(up(x))))


def operations(layer, forward):
    layer.zero_grad()
    x = torch.randn(B, T, D_MODEL, requires_grad=True)
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        forward(x).sum().backward()
    names = (event.name for event in profiled.events())
    return Counter(name for name in names if name.startswith("aten::") and name not in WRAPPERS)


@pytest.mark.parametrize("name", ["eager", "sdpa"])
def test_the_seams_add_no_operation_to_a_block_written_by_hand(name):
    arch = architecture()
    layer, _ = drawn(EncoderLayer, arch)
    given = context(arch, name, None)
    expected = operations(layer, lambda x: written_by_hand(layer, x, name == "sdpa"))
    assert operations(layer, lambda x: layer(x, *given)[0]) == expected
    assert expected["aten::addmm"] == 4 and expected["aten::native_layer_norm_backward"] == 2
    gained = operations(layer, lambda x: layer(x, *given[:-1], torch.ones(3))[0])
    assert (gained - expected)["aten::mul"] == 2  # what a seam is used for is seen: forward and backward


@pytest.mark.parametrize("name", ["eager", "sdpa"])
def test_the_block_written_by_hand_is_the_same(name):
    arch = architecture()
    layer, x = drawn(EncoderLayer, arch)
    expected = written_by_hand(layer, x, name == "sdpa")
    torch.testing.assert_close(layer(x, *context(arch, name, None))[0], expected, atol=1e-5, rtol=1e-5)


def test_what_is_no_batch_is_refused():
    ids = torch.ones(2, 3, dtype=torch.long)
    refuse_no_batch(ids, None)
    refuse_no_batch(ids, ids.bool())
    with pytest.raises(ValueError, match="got a text without a token, expected at least one"):
        refuse_no_batch(ids[:, :0], None)
    for other in (ids[:1], ids[:, :2]):  # the first would be taken for the mask of all
        with pytest.raises(ValueError, match=r"token_mask: got \(.*\), expected that of the ids, \(2, 3\)"):
            refuse_no_batch(ids, other.bool())


@pytest.mark.parametrize(
    ("network", "architecture"),
    [(Encoder, EncoderArchitecture), (Decoder, DecoderArchitecture), (BiLSTM, BiLSTMArchitecture)],
)
def test_every_network_refuses_a_text_without_a_token(network, architecture):
    network = network(architecture(vocab_size=8))
    with pytest.raises(ValueError, match="got a text without a token, expected at least one"):
        network(torch.ones(2, 0, dtype=torch.long))
