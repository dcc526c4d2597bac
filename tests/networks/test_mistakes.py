"""What is wrong with each mistake, by number, and that the network without one pays nothing for them."""

import math
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from transformers import AutoModelForSequenceClassification
from transformers.utils import logging

from core.attention.masks import AttentionMask
from core.catalog import BACKENDS
from core.config import MISTAKES_OF_ATTENTION, EncoderArchitecture, Mistake, RunConfig, TrainingConfig
from core.networks import mistakes
from core.networks.auto import build
from core.networks.encoder import Encoder
from core.networks.pooling import POOLINGS, pool
from core.positional.sinusoidal import table
from core.training.estimate import Sample, estimate
from core.training.machine import backend as training_backend
from tests.backends import able

SMALL = dict(
    vocab_size=40, d_model=24, n_heads=4, n_layers=2, d_ff=20, max_len=16, dropout=0.0, embedding_dropout=0.0
)  # fmt: skip
MISTAKES = [mistake for mistake in get_args(Mistake) if mistake != "none"]
every_mistake = pytest.mark.parametrize("mistake", MISTAKES)
every_mistake_of_attention = pytest.mark.parametrize("mistake", MISTAKES_OF_ATTENTION)


def knobs(mistake):
    """The mistake, and what it needs to show."""
    return {"mistake": mistake} | ({"dropout": 0.3} if mistake == "dropout_in_evaluation" else {})


def encoder(mistake="none", **more):
    torch.manual_seed(0)
    return Encoder(EncoderArchitecture(**SMALL | knobs(mistake) | more)).eval()


def review(length=8, batch=1, seed=1):
    return torch.randint(4, 40, (batch, length), generator=torch.Generator().manual_seed(seed))


def padded(input_ids, more):
    """The same reviews with `more` tokens of padding on the right."""
    return F.pad(input_ids, (0, more)), F.pad(torch.ones_like(input_ids), (0, more)).bool()


def gap(a, b):
    return (a - b).abs().max().item()


def by_padding(network, **asked):
    """How far a review's logits move when it is padded from 8 to 14 tokens."""
    with torch.no_grad():
        return gap(network(review(), backend="eager", **asked)[0], network(*padded(review(), 6), backend="eager", **asked)[0])


# All of them


def test_every_mistake_has_its_place():
    assert [*mistakes.WEIGHINGS, "mean_over_padding", *mistakes.PARTS] == MISTAKES
    assert tuple(mistakes.WEIGHINGS) == MISTAKES_OF_ATTENTION


def test_what_is_right_holds_none_of_them():
    network = encoder()
    assert not any(type(module).__module__ == mistakes.__name__ for module in network.modules())
    assert network.poolings is POOLINGS
    for name in BACKENDS:
        assert mistakes.attention("none", name, print) is print


@every_mistake
def test_a_mistake_is_the_only_difference(mistake):
    right, wrong = (
        dict(network.named_parameters()) for network in (encoder(**knobs(mistake) | {"mistake": "none"}), encoder(mistake))
    )
    assert set(right) <= set(wrong) and all(torch.equal(right[name], wrong[name]) for name in right)
    assert set(wrong) - set(right) == ({"positional.table.weight"} if mistake == "positions_as_parameter" else set())


@every_mistake
def test_a_mistake_can_be_counted_without_memory(mistake):
    with torch.device("meta"):
        network = Encoder(EncoderArchitecture(**SMALL | knobs(mistake)))
    shapes = [[parameter.shape for parameter in made.parameters()] for made in (network, encoder(mistake))]
    assert shapes[0] == shapes[1] and all(parameter.is_meta for parameter in network.parameters())


@every_mistake
def test_a_mistake_runs_and_learns(mistake):
    network = encoder(mistake).train()
    input_ids, token_mask = padded(review(6, batch=3), 2)
    loss = F.cross_entropy(network(input_ids, token_mask, backend="eager")[0], torch.tensor([0, 1, 1]))
    gradients = torch.autograd.grad(loss, list(network.parameters()))
    assert all(gradient.isfinite().all() and gradient.any() for gradient in gradients if gradient.ndim > 1)


@every_mistake
@pytest.mark.parametrize("name", [name for name in able(gradients=True, padding=True, dropout=True) if name != "eager"])
def test_other_backends_are_refused_what_only_eager_can_do(mistake, name):
    network = encoder(mistake)
    if mistake in MISTAKES_OF_ATTENTION:
        with pytest.raises(ValueError, match=f"backend: got '{name}', expected 'eager': mistake '{mistake}' is made in"):
            network(review(), backend=name)
    else:
        torch.manual_seed(3)
        answer = network(review(), backend=name)[0]
        torch.manual_seed(3)
        torch.testing.assert_close(answer, network(review(), backend="eager")[0], atol=1e-5, rtol=1e-5)


@every_mistake
def test_stored_and_opened_a_mistake_is_still_made(mistake, tmp_path):
    logging.disable_progress_bar()
    torch.manual_seed(0)
    network = build(EncoderArchitecture(**SMALL | knobs(mistake)), ("bad", "good")).train()
    network(review(batch=3))  # moves the running means of batch norm
    network.eval().save_pretrained(tmp_path)
    again = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    assert again.config.architecture.mistake == mistake
    answers = []
    for opened in (network, again):
        torch.manual_seed(3)
        input_ids, token_mask = padded(review(), 3)
        answers.append(opened(input_ids, token_mask.long()).logits)
    assert torch.equal(*answers)


@every_mistake
def test_where_no_backend_is_named_one_is_taken_that_can(mistake):
    network = encoder(mistake)
    torch.manual_seed(3)
    answer = network(*padded(review(), 3))[0]
    torch.manual_seed(3)
    torch.testing.assert_close(answer, network(*padded(review(), 3), backend="eager")[0], atol=1e-5, rtol=1e-5)


@every_mistake
def test_what_a_training_of_a_mistake_takes_can_be_estimated(mistake):
    config = RunConfig(model=EncoderArchitecture(**SMALL | knobs(mistake)), training=TrainingConfig(precision="float32"))
    assert estimate(config, Sample(n=100, n_classes=2, tokens=np.array([5, 9, 16]))).seconds > 0


@every_mistake_of_attention
def test_a_run_of_such_a_mistake_is_on_eager(mistake):
    model = EncoderArchitecture(mistake=mistake)
    for backend in ("auto", "eager"):
        config = RunConfig(model=model, training=TrainingConfig(backend=backend))
        assert training_backend(config, "cuda", "bfloat16") == "eager"
    for config in (RunConfig(), RunConfig(model=replace(model, mistake="batch_norm"))):
        assert training_backend(config, "cuda", "float32") == "sdpa"
    with pytest.raises(ValueError, match=f"backend: got 'sdpa' for mistake '{mistake}', .* expected 'eager' or 'auto'"):
        RunConfig(model=model, training=TrainingConfig(backend="sdpa"))


@pytest.mark.parametrize("mistake, without, need", [
    ("mean_over_padding", {"pooling": "max"}, "pooling by mean"),
    ("mean_over_padding", {"pooling": "cls"}, "pooling by mean"),
    ("reshape_without_transpose", {"n_heads": 1}, "several heads"),
    ("positions_as_parameter", {"positional": "rotary"}, "sinusoidal positions"),
    ("dropout_in_evaluation", {"dropout": 0.0, "embedding_dropout": 0.0}, "dropout"),
])  # fmt: skip
def test_a_mistake_that_would_change_nothing_is_refused(mistake, without, need):
    EncoderArchitecture(mistake=mistake)
    with pytest.raises(ValueError, match=f"mistake: got '{mistake}', which without {need} changes nothing"):
        EncoderArchitecture(mistake=mistake, **without)


# Attention


def weights_of(mistake, logits, allowed):
    """Weights of one query with these logits, by the mistake or ("none") by eager."""
    q, k = torch.ones(1, 1, 1, 1), logits[None, None, :, None]
    eager = BACKENDS["eager"].resolve()
    attend = mistakes.attention(mistake, "eager", eager)
    return attend(q, k, torch.ones_like(k), AttentionMask(allowed[None]))[1].flatten()


HALF = torch.tensor([True, True, False, False])
SCORES = torch.tensor([0.0, math.log(3), math.log(4), math.log(2)])  # e to the logits: 1, 3, 4, 2
BY_HAND = {
    "none": [1 / 4, 3 / 4, 0, 0],
    "mask_after_softmax": [0.1, 0.3, 0, 0],
    "no_mask": [0.1, 0.3, 0.4, 0.2],
    "fill_-1e9": [1 / 4, 3 / 4, 0, 0],
    "fill_-inf": [1 / 4, 3 / 4, 0, 0],
    "fill_finfo_min": [1 / 4, 3 / 4, 0, 0],
}
NOTHING_LEFT = {  # what a query gives to the keys of a review without one token
    "none": [0.1, 0.3, 0.4, 0.2],  # as if all were real: numbers, of no meaning
    "mask_after_softmax": [0, 0, 0, 0],
    "no_mask": [0.1, 0.3, 0.4, 0.2],
    "fill_-1e9": [1 / 4] * 4,  # all alike: padding is attended to
    "fill_-inf": [math.nan] * 4,
    "fill_finfo_min": [1 / 4] * 4,
}


@pytest.mark.parametrize("mistake", BY_HAND)
def test_weights_by_hand(mistake):
    torch.testing.assert_close(weights_of(mistake, SCORES, HALF), torch.tensor(BY_HAND[mistake]))
    emptied = weights_of(mistake, SCORES, torch.zeros(4, dtype=torch.bool))
    torch.testing.assert_close(emptied, torch.tensor(NOTHING_LEFT[mistake], dtype=torch.float32), equal_nan=True)


def test_a_bias_and_a_window_reach_the_mistakes_too():
    for knob in ({"positional": "alibi"}, {"window": 1, "n_global": 1}):
        right = encoder(**knob)(*padded(review(), 2), backend="eager")[0]
        torch.testing.assert_close(encoder("fill_-inf", **knob)(*padded(review(), 2), backend="eager")[0], right)
    wide, narrow = (encoder("mask_after_softmax", window=w)(review(), backend="eager")[0] for w in (None, 1))
    assert gap(wide, narrow) > 1e-3


def test_mask_after_softmax_rows_fall_short_of_one_and_padding_moves_a_review():
    _, (weights, _) = encoder("mask_after_softmax")(*padded(review(), 6), backend="eager", output_attentions=True)
    sums = weights.sum(-1)
    assert 0.3 < sums.min() and sums.max() < 0.9  # about 8 of 14
    assert by_padding(encoder("mask_after_softmax")) > 1e-2 > 1e-5 > by_padding(encoder())


def test_no_mask_alone_and_padded_differ():
    _, (weights, _) = encoder("no_mask")(*padded(review(), 6), backend="eager", output_attentions=True)
    torch.testing.assert_close(weights.sum(-1), torch.ones(1, 4, 14))
    assert weights[..., 8:].sum(-1).mean() > 0.3  # of every row
    assert by_padding(encoder("no_mask")) > 1e-2 > 1e-5 > by_padding(encoder())


@pytest.mark.parametrize("mistake", ["fill_-1e9", "fill_-inf", "fill_finfo_min"])
def test_a_fill_is_right_where_a_query_sees_something(mistake):
    asked = dict(backend="eager", output_attentions=True)
    torch.testing.assert_close(encoder(mistake)(*padded(review(), 6), **asked), encoder()(*padded(review(), 6), **asked))


def test_fill_inf_makes_one_empty_review_the_end_of_a_training():
    input_ids, token_mask = padded(review(batch=2), 6)
    token_mask[1] = False
    found = {}
    for mistake in ("none", "fill_-1e9", "fill_finfo_min", "fill_-inf"):
        network = encoder(mistake)
        logits, _ = network(input_ids, token_mask, backend="eager")
        gradients = torch.autograd.grad(logits.sum(), [layer.attention.qkv.weight for layer in network.layers])
        found[mistake] = [logits[0].isfinite().all(), logits[1].isfinite().all(), *(g.isfinite().all() for g in gradients)]
    assert all(all(finite) for mistake, finite in found.items() if mistake != "fill_-inf")
    assert found["fill_-inf"] == [True, False, False, False]  # the weights learn NaN from the other review, too


def test_fill_inf_and_a_window_lose_every_padded_review():
    for mistake, lost in (("none", False), ("fill_-1e9", False), ("fill_finfo_min", False), ("fill_-inf", True)):
        logits = encoder(mistake, window=1)(*padded(review(), 3), backend="eager")[0]
        assert logits.isnan().all() if lost else logits.isfinite().all()  # far from words, padding has nothing left to see


def test_fill_1e9_is_no_number_of_float16_and_not_below_every_logit():
    keys = torch.zeros(1, 1, 4, 1, dtype=torch.float16)
    attend = mistakes.attention("fill_-1e9", "eager", BACKENDS["eager"].resolve())
    with pytest.raises(RuntimeError, match="overflow"):
        attend(keys[:, :, :1], keys, keys, AttentionMask(HALF[None]))
    low = torch.full((4,), -2e9)
    assert weights_of("fill_-1e9", low, HALF).tolist() == [0, 0, 0.5, 0.5]  # padding gets it all
    assert weights_of("fill_finfo_min", low, HALF).tolist() == [0.5, 0.5, 0, 0]
    lowest = torch.full((4,), torch.finfo(torch.float32).min)
    assert weights_of("fill_finfo_min", lowest, HALF).tolist() == [0.25] * 4


def test_no_mask_lets_packed_reviews_hear_each_other():
    together, ends = review(12), torch.tensor([0, 8, 12], dtype=torch.int32)
    edited = together.clone()
    edited[0, 9] = 4 if edited[0, 9] != 4 else 5
    for mistake, hears in (("none", False), ("no_mask", True)):
        first = [encoder(mistake)(ids, cu_seqlens=ends, backend="eager")[0][0] for ids in (together, edited)]
        assert (gap(*first) > 1e-4) == hears


# Pooling


def test_mean_over_padding_depends_on_the_longest_of_the_batch():
    x = torch.tensor([[[2.0], [4.0], [9.0], [9.0]]])
    mask = AttentionMask(HALF[None])
    wrong = mistakes.poolings("mean_over_padding")
    assert pool(x, mask, "mean").tolist() == [[3.0]] and pool(x, mask, "mean", wrong).tolist() == [[6.0]]
    assert pool(x, mask, "mean+max", wrong).tolist() == [[6.0, 4.0]]
    assert by_padding(encoder("mean_over_padding")) > 1e-2 > 1e-5 > by_padding(encoder())
    assert gap(encoder("mean_over_padding")(review())[0], encoder()(review())[0]) < 1e-6  # right where nothing is padded


@pytest.mark.parametrize(
    ("mistake", "reason"), [("mean_over_padding", "no padding"), ("reshape_without_transpose", "tokens of several")]
)
def test_a_mistake_of_padded_reviews_is_not_made_in_packed_ones(mistake, reason):
    with pytest.raises(ValueError, match=f"mistake '{mistake}': got packed reviews, .* {reason}; expected padded"):
        encoder(mistake)(review(), cu_seqlens=torch.tensor([0, 3, review().shape[1]], dtype=torch.int32))


# Parts


def test_reshape_without_transpose_keeps_tokens_from_each_other():
    reached = {}
    for mistake in ("none", "reshape_without_transpose"):
        network = encoder(mistake, n_layers=1, positional="none")
        states = {}
        network.layers[0].register_forward_hook(lambda module, given, out, kept=states: kept.update(read=given[0], out=out[0]))
        network(review(), backend="eager")
        (gradient,) = torch.autograd.grad(states["out"][0, 0].square().sum(), states["read"])
        reached[mistake] = gradient[0].abs().amax(-1) > 0
    assert reached["none"].all()  # the first token hears all 8
    assert reached["reshape_without_transpose"].tolist() == [True] * 2 + [False] * 6  # 8 tokens in 4 blocks


def test_reshape_without_transpose_answers_something_else_and_hears_padding():
    assert gap(encoder("reshape_without_transpose")(review())[0], encoder()(review())[0]) > 1e-2
    input_ids, token_mask = padded(review(), 6)
    edited = input_ids.masked_fill(~token_mask, 7)
    for mistake, hears in (("none", False), ("reshape_without_transpose", True)):
        network = encoder(mistake)
        assert (gap(network(edited, token_mask)[0], network(input_ids, token_mask)[0]) > 1e-4) == hears


def test_reshaped_by_hand():
    qkv = torch.arange(24.0).reshape(1, 4, 6)  # 4 tokens, 2 heads of 1
    q, _, _ = mistakes.split_by_reshape(qkv, 2)
    assert q.tolist() == [[[[0.0], [1.0], [6.0], [7.0]], [[12.0], [13.0], [18.0], [19.0]]]]
    assert mistakes.merge_by_reshape(q).tolist() == qkv[..., :2].tolist()


def test_batch_norm_makes_a_review_depend_on_its_neighbours():
    for mistake, depends in (("none", False), ("batch_norm", True)):
        network = encoder(mistake).train()
        answers = [network(torch.cat([review(), review(batch=3, seed=seed)]))[0][0] for seed in (2, 3)]
        assert (gap(*answers) > 1e-2) == depends
        network.eval()
        answers = [network(torch.cat([review(), review(batch=3, seed=seed)]))[0][0] for seed in (2, 3)]
        assert gap(*answers) < 1e-5


def test_layer_norm_over_a_text_by_hand():
    norm = mistakes.LayerNormOverText(2, eps=0.0)
    torch.testing.assert_close(norm(torch.tensor([[[1.0, 3.0], [5.0, 7.0]]])),
                               torch.tensor([[[-3.0, -1.0], [1.0, 3.0]]]) / 5**0.5)  # mean 4, variance 5  # fmt: skip


def test_layer_norm_over_a_text_makes_its_answer_depend_on_padding():
    assert by_padding(encoder()) < 1e-5 < 1e-3 < by_padding(encoder("layer_norm_over_text"))


def test_batch_norm_by_hand():
    norm = mistakes.BatchNorm(1)
    x = torch.tensor([[[1.0], [3.0]], [[5.0], [7.0]]])
    expected = (x - 4) / 5**0.5  # mean 4, variance 5 of all tokens of all reviews
    torch.testing.assert_close(norm(x), expected, atol=1e-5, rtol=1e-5)
    assert sum(isinstance(module, nn.LayerNorm) for module in encoder("batch_norm", norm="pre").modules()) == 0


def test_positions_as_parameter_start_as_sines_and_leave_them():
    right, wrong = encoder(), encoder("positions_as_parameter")
    torch.testing.assert_close(wrong(review())[0], right(review())[0])
    sizes = [sum(parameter.numel() for parameter in network.parameters()) for network in (right, wrong)]
    assert sizes[1] - sizes[0] == 16 * 24
    sines = table(16, 24, torch.device("cpu"))
    assert torch.equal(wrong.positional.table.weight, sines)
    F.cross_entropy(wrong(review(batch=2))[0], torch.tensor([0, 1])).backward()
    torch.optim.SGD(wrong.parameters(), lr=0.1).step()
    moved = (wrong.positional.table.weight - sines).abs().amax(-1) > 0
    assert moved.tolist() == [True] * 8 + [False] * 8  # those that were read
    right(review(17))
    with pytest.raises(ValueError, match="got 17 tokens, expected at most max_len 16"):
        wrong(review(17))


@pytest.mark.parametrize("knob", ["dropout", "embedding_dropout", "attention_dropout"])
@pytest.mark.parametrize("backend", ["eager", "sdpa"])
def test_dropout_in_evaluation_gives_two_answers(knob, backend):
    for mistake, differs in (("none", False), ("dropout_in_evaluation", True)):
        network = encoder(mistake, **{"dropout": 0.0} | {knob: 0.5})
        first, second = (network(review(), backend=backend)[0] for _ in range(2))
        assert (gap(first, second) > 1e-3) == differs
