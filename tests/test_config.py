import json
from dataclasses import FrozenInstanceError, fields, replace

import jaxtyping
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.checked import from_json, to_json
from core.config import (
    BiLSTMArchitecture,
    DataConfig,
    DecoderArchitecture,
    EncoderArchitecture,
    LinearArchitecture,
    RunConfig,
    TrainingConfig,
)
from core.presets import PRESETS, preset

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@pytest.fixture(autouse=True, scope="module")
def no_other_check():
    """Here the configuration alone must find what is wrong: the checks of types in test runs would come first."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_travels_as_json(name):
    config = preset(name)
    assert from_json(RunConfig, json.loads(json.dumps(to_json(config)))) == config
    assert from_json(type(config.model), to_json(config.model)) == config.model
    assert PRESETS[name].__doc__


def test_a_decoder_travels_as_json():
    decoder = DecoderArchitecture(vocab_size=30, norm="pre", attention_dropout=0.5)
    assert from_json(DecoderArchitecture, json.loads(json.dumps(to_json(decoder)))) == decoder
    with pytest.raises(ValueError, match="unknown knobs pooling in DecoderArchitecture"):
        from_json(DecoderArchitecture, to_json(decoder) | {"pooling": "cls"})


@pytest.mark.parametrize("names", ["text", ("title", "body"), ()])
def test_one_column_of_text_or_several_travel_as_json(names):
    config = RunConfig(reviews=DataConfig(text_column=names))
    assert from_json(RunConfig, json.loads(json.dumps(to_json(config)))) == config


@pytest.mark.parametrize("names", [3, ("title", 3), ["title"]])
def test_a_column_has_a_name(names):
    with pytest.raises(ValueError, match="^text_column: got"):
        DataConfig(text_column=names)


def test_presets_differ():
    assert len({json.dumps(to_json(make())) for make in PRESETS.values()}) == len(PRESETS)


def test_an_unknown_preset_names_the_known_ones():
    with pytest.raises(ValueError, match="preset: got 'tinny', expected one of tiny, encoder-small"):
        preset("tinny")


@pytest.mark.parametrize(
    ("make", "knobs", "sentence"),
    [
        (EncoderArchitecture, {"d_model": 0}, "d_model: got 0, expected int from 1 to 1000000"),
        (EncoderArchitecture, {"d_model": 2**53}, "d_model: got 9007199254740992, expected int from 1 to 1000000"),
        (EncoderArchitecture, {"max_len": 10**6 + 1}, "max_len: got 1000001, expected int from 1 to 1000000"),
        (EncoderArchitecture, {"n_layers": 1001}, "n_layers: got 1001, expected int from 1 to 1000"),
        (EncoderArchitecture, {"d_model": 64.0}, "d_model: got 64.0, expected int"),
        (EncoderArchitecture, {"n_layers": True}, "n_layers: got True, expected int"),
        (EncoderArchitecture, {"vocab_size": 7}, "vocab_size: got 7, expected int from 8 to 1000000"),
        (EncoderArchitecture, {"n_classes": 1}, "n_classes: got 1"),
        (EncoderArchitecture, {"dropout": 0.96}, "dropout: got 0.96, expected float from 0 to 0.95"),
        (EncoderArchitecture, {"dropout": -0.1}, "dropout: got -0.1"),
        (EncoderArchitecture, {"dropout": float("nan")}, "dropout: got nan"),
        (EncoderArchitecture, {"activation": "tanh"}, "activation: got 'tanh', expected one of relu, gelu"),
        (EncoderArchitecture, {"residual": 1}, "residual: got 1, expected bool"),
        (EncoderArchitecture, {"kind": "bilstm"}, "kind: got 'bilstm', expected one of encoder"),
        (EncoderArchitecture, {"d_model": 100, "n_heads": 8}, "n_heads: got 8 for d_model 100, .* such as 5"),
        (EncoderArchitecture, {"d_model": 7, "n_heads": 7}, "d_model: got 7, expected an even number for sinusoidal"),
        (EncoderArchitecture, {"d_model": 9, "n_heads": 3, "positional": "rotary"}, "n_heads: got 3 for d_model 9"),
        (EncoderArchitecture, {"window": 0}, "window: got 0, expected int from 1 to 1000000 or none"),
        (EncoderArchitecture, {"n_global": 2}, "n_global: got 2 without a window, expected 0"),
        (DecoderArchitecture, {"d_model": 100, "n_heads": 8}, "n_heads: got 8 for d_model 100, .* such as 5"),
        (DecoderArchitecture, {"kind": "encoder"}, "kind: got 'encoder', expected one of decoder"),
        (BiLSTMArchitecture, {"n_layers": 3}, "n_layers: got 3, expected int from 1 to 2"),
        (DataConfig, {"limit": 0}, "limit: got 0, expected int from 1 to 1000000000 or none"),
        (DataConfig, {"limit": "5"}, "limit: got '5', expected int from 1 to 1000000000 or none"),
        (TrainingConfig, {"seed": 2**32}, "seed: got 4294967296, expected int from 0 to 4294967295"),
        (DataConfig, {"data": None}, "data: got None, expected str"),
        (TrainingConfig, {"lr": float("inf")}, "lr: got inf, expected float from 0 to 10"),
        (TrainingConfig, {"lr": 10**400}, "lr: got 1000*, expected float"),
        (TrainingConfig, {"lr": "3e-4"}, "lr: got '3e-4'"),
        (TrainingConfig, {"betas": (0.9, 1.0)}, "betas: got .*, expected two numbers from 0 to below 1"),
        (TrainingConfig, {"betas": (0.9, "x")}, r"betas: got .*, expected tuple\[float, float\]"),
        (TrainingConfig, {"betas": (0.9,)}, "betas: got"),
        (TrainingConfig, {"device": "tpu"}, "device: got 'tpu', expected one of auto, cpu, cuda"),
        (RunConfig, {"model": TrainingConfig()}, "model: got .*, expected EncoderArchitecture or BiLSTMArchitecture"),
        (RunConfig, {"model": DecoderArchitecture()}, "model: got .*, expected EncoderArchitecture or BiLSTMArchitecture"),
    ],
)  # fmt: skip
def test_a_wrong_knob_says_what_was_expected(make, knobs, sentence):
    with pytest.raises(ValueError, match=sentence):
        make(**knobs)
    with pytest.raises(ValueError, match=sentence):
        replace(make(), **knobs)


@pytest.mark.parametrize(
    ("make", "knobs"),
    [
        (EncoderArchitecture, {"vocab_size": 8, "dropout": 0.0, "attention_dropout": 0.95}),
        (EncoderArchitecture, {"d_model": 7, "n_heads": 7, "positional": "learned"}),
        (DataConfig, {"limit": 1}),
        (TrainingConfig, {"lr": 10, "warmup_ratio": 1.0, "clip_norm": None, "betas": (0, 0.5), "seed": 2**32 - 1}),
    ],
)
def test_bounds_belong_to_the_range(make, knobs):
    config = make(**knobs)
    assert {name: getattr(config, name) for name in knobs} == knobs


def test_a_whole_number_for_a_float_is_the_same_setting():
    whole, real = (to_json(TrainingConfig(lr=lr, betas=betas)) for lr, betas in [(1, (0, 0.5)), (1.0, (0.0, 0.5))])
    assert json.dumps(whole) == json.dumps(real)


def test_a_configuration_does_not_change():
    with pytest.raises(FrozenInstanceError):
        RunConfig().training.lr = 1.0


@pytest.mark.parametrize("part", ["model", "reviews", "training"])
def test_an_unknown_knob_is_refused(part):
    values = to_json(RunConfig())
    values[part]["rope_base"] = 10_000
    with pytest.raises(ValueError, match="unknown knobs rope_base in .*: was this written by a newer version"):
        from_json(RunConfig, values)


def test_an_unknown_part_is_refused():
    with pytest.raises(ValueError, match="unknown knobs sweep in RunConfig"):
        from_json(RunConfig, to_json(RunConfig()) | {"sweep": {}})


def test_a_knob_that_an_older_version_lacked_has_its_default():
    values = to_json(RunConfig())
    del values["training"]["label_smoothing"]
    assert from_json(RunConfig, values) == RunConfig()


@pytest.mark.parametrize("kind", [None, "decoder", ["encoder"], 3])
def test_an_unknown_kind_names_the_known_ones(kind):
    with pytest.raises(ValueError, match="kind: got .*, expected one of encoder, bilstm"):
        from_json(RunConfig, to_json(RunConfig()) | {"model": {"kind": kind}})


@pytest.mark.parametrize("part", ["model", "reviews", "training"])
@pytest.mark.parametrize("damage", [None, [], "x", 3])
def test_a_part_that_holds_no_knobs_is_refused(part, damage):
    values = to_json(RunConfig())
    with pytest.raises(ValueError, match=f"{part}: got .*, expected its knobs"):
        from_json(RunConfig, values | {part: damage})
    with pytest.raises(ValueError, match=f"{part}: got None, expected its knobs"):
        from_json(RunConfig, {name: knobs for name, knobs in values.items() if name != part})


@given(st.data())
def test_any_value_of_a_knob_is_taken_whole_or_refused_in_words(data):
    values = to_json(RunConfig())
    part = data.draw(st.sampled_from([part.name for part in fields(RunConfig)]))
    knob = data.draw(st.sampled_from(sorted(values[part])))
    values[part][knob] = data.draw(JSON)
    try:
        config = from_json(RunConfig, values)
    except ValueError:
        return
    assert to_json(config) == values


# A linear model


@pytest.mark.parametrize("values", [(), (0.0, 1.0), (-1.0,), (1.0, 1.0), (2e6,)], ids=str)
def test_strengths_are_different_numbers_above_zero(values):
    with pytest.raises(ValueError, match="c_values: got .*, expected one or more different numbers above 0, up to 1,000,000"):
        LinearArchitecture(c_values=values)


@pytest.mark.parametrize("knobs", [dict(epochs=3), dict(lr=0.1), dict(clip_norm=None), dict(backend="sdpa")], ids=str)
def test_a_linear_model_refuses_a_knob_that_would_change_nothing(knobs):
    (name,) = knobs
    with pytest.raises(ValueError, match=f"{name}: got .* for a linear model, which has no use for it; leave it out"):
        RunConfig(model=LinearArchitecture(), training=TrainingConfig(**knobs))


def test_a_linear_model_is_fitted_on_a_cpu():
    for knobs in (dict(device="cpu"), dict(device="auto"), dict(weights="float16", seed=4)):
        config = RunConfig(model=LinearArchitecture(c_values=(1.0, 2.0)), training=TrainingConfig(**knobs))
        assert (config.epochs, config.epoch_name) == (2, "fit")
    with pytest.raises(ValueError, match="device: got 'cuda' for a linear model, which is fitted on a CPU"):
        RunConfig(model=LinearArchitecture(), training=TrainingConfig(device="cuda"))
    assert (RunConfig().epochs, RunConfig().epoch_name) == (5, "epoch")
