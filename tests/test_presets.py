"""Presets are configurations that can be built, and the shipped models are what their presets say."""

from dataclasses import replace

import pytest

from core.artifact import model_folders, read_run
from core.catalog import BACKENDS, POSITIONAL
from core.checked import from_json, to_json
from core.config import DataConfig, RunConfig
from core.presets import PRESETS, encoder_small, flags, preset


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_survives_json_and_explains_itself(name):
    config = preset(name)
    assert from_json(RunConfig, to_json(config)) == config
    assert PRESETS[name].__doc__


def test_an_unknown_preset_names_the_known_ones():
    with pytest.raises(ValueError, match="preset: got 'huge', expected one of tiny, encoder-small"):
        preset("huge")


def test_encoder_small_is_the_encoder_of_article_a():
    model = encoder_small().model
    assert (model.vocab_size, model.d_model, model.n_heads, model.d_ff, model.n_layers) == (20_000, 256, 8, 1024, 3)
    assert (model.activation, model.norm, model.positional, model.pooling) == ("relu", "post", "sinusoidal", "mean")
    assert set(BACKENDS) >= {"eager", "sdpa"} and model.positional in POSITIONAL


@pytest.mark.parametrize("kind", ["encoder", "bilstm"])
def test_a_shipped_model_is_its_preset(kind):
    shipped = from_json(RunConfig, read_run(model_folders()[f"imdb-{kind}"])["config"])
    assert shipped == preset(f"{kind}-best")


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_needs_no_flag_but_its_name(name):
    assert flags(name, preset(name)) == ["--preset", name]


def test_flags_name_what_differs_alone():
    base = encoder_small()
    config = replace(
        base, model=replace(base.model, residual=False, n_layers=2), training=replace(base.training, clip_norm=None)
    )
    assert flags("encoder-small", config) == [
        "--preset", "encoder-small", "--n-layers", "2", "--no-residual", "--clip-norm", "None",
    ]  # fmt: skip


def test_flags_of_another_kind_of_network_are_refused():
    with pytest.raises(ValueError, match="preset: got 'bilstm', a BiLSTM, for an encoder"):
        flags("bilstm", encoder_small())


def test_several_names_that_look_like_flags_are_refused():
    with pytest.raises(ValueError, match="text-column: got '-b' among several names"):
        flags("tiny", replace(preset("tiny"), reviews=DataConfig(text_column=("a", "-b"), limit=5_000)))


@pytest.mark.parametrize("name", ["a\0b", "語" * 50_000], ids=["zero", "long"])
@pytest.mark.parametrize("columns", ["label", "text", "several"])
def test_names_that_no_command_can_be_given_are_refused(name, columns):
    knobs = {"label": {"label_column": name}, "text": {"text_column": name}, "several": {"text_column": ("a", name)}}[columns]
    with pytest.raises(ValueError, match="-column: got .*expected no zero character and at most 100,000 bytes") as caught:
        flags("tiny", replace(preset("tiny"), reviews=DataConfig(limit=5_000, **knobs)))
    assert len(str(caught.value)) < 300
