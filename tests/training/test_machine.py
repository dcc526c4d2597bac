"""A kernel that cannot train a network here is refused before anything starts."""

from dataclasses import replace

import pytest

from core.catalog import BACKENDS
from core.config import EncoderArchitecture, RunConfig, TrainingConfig
from core.training import machine
from tests.backends import able


def chosen(backend, model=None, device="cpu", precision="float32"):
    training = TrainingConfig(backend=backend, device="cpu")
    return machine.backend(RunConfig(model=model or EncoderArchitecture(), training=training), device, precision)


@pytest.mark.parametrize("name", BACKENDS)
def test_a_kernel_is_taken_as_asked_or_refused_in_a_sentence(name):
    if name in able(gradients=True):
        assert chosen(name) == name
    else:
        with pytest.raises(ValueError, match=f"^backend: got '{name}', but it (runs on cuda alone|has no backward pass)"):
            chosen(name)


@pytest.mark.parametrize(
    ("name", "knobs", "sentence"),
    [
        ("chunked", {"attention_dropout": 0.1}, "it drops no attention weights on cuda; set attention_dropout to 0"),
        ("varlen", {"positional": "alibi"}, "it adds no bias, which ALiBi needs, on cuda"),
        ("varlen", {"window": 4, "n_global": 2}, "it knows no global tokens"),
        ("varlen", {"mistake": "mean_over_padding"}, "it reads packed reviews, which have no padding"),
        ("varlen", {"d_model": 528, "n_heads": 2}, "it takes heads of at most 256 numbers, and these have 264; use 'eager'"),
        ("sdpa-flash", {"positional": "alibi"}, "it adds no bias, which ALiBi needs, on cuda"),
        ("cudnn", {"window": 4}, "it hides no padding on cuda"),
    ],
)
def test_what_the_network_needs_is_asked_of_the_kernel(name, knobs, sentence):
    with pytest.raises(ValueError, match=sentence):
        chosen(name, replace(EncoderArchitecture(), **knobs), "cuda", "bfloat16")


@pytest.mark.parametrize("knobs", [{}, {"window": 4}, {"mistake": "batch_norm"}], ids=str)
def test_reviews_are_packed_for_a_kernel_that_hides_no_padding(knobs):
    assert chosen("varlen", replace(EncoderArchitecture(), **knobs), "cuda", "bfloat16") == "varlen"


def test_the_format_is_asked_of_the_kernel():
    with pytest.raises(ValueError, match="it takes bfloat16 and float16 on cuda, not float32"):
        chosen("sdpa-flash", device="cuda")


@pytest.mark.parametrize(
    ("knobs", "name"),
    [
        ({}, "varlen"),
        ({"window": 4, "positional": "rotary"}, "varlen"),
        ({"mistake": "batch_norm"}, "varlen"),
        ({"positional": "alibi"}, "sdpa"),
        ({"window": 4, "n_global": 2}, "sdpa"),
        ({"attention_dropout": 0.1}, "sdpa"),
        ({"mistake": "mean_over_padding"}, "sdpa"),
        ({"mistake": "no_mask"}, "eager"),
        ({"n_heads": 1, "d_model": 264}, "sdpa"),
    ],
    ids=str,
)
def test_a_gpu_packs_reviews_where_it_can(knobs, name):
    assert chosen("auto", replace(EncoderArchitecture(), **knobs), "cuda", "bfloat16") == name
    assert chosen("auto", replace(EncoderArchitecture(), **knobs), "cuda", "float32") == (
        "eager" if name == "eager" else "sdpa"
    )


@pytest.mark.parametrize("positional", ["sinusoidal", "rotary", "alibi"])
@pytest.mark.parametrize("attention_dropout", [0.0, 0.1])
def test_what_is_chosen_by_itself_can_do_it(positional, attention_dropout):
    model = EncoderArchitecture(positional=positional, attention_dropout=attention_dropout, window=3, n_global=1)
    for precision in ("float32", "bfloat16"):
        name = chosen("auto", model, precision=precision)
        assert chosen(name, model, precision=precision) == name in ("eager", "sdpa")
