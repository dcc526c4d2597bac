"""Presets are configurations that can be built, and the shipped models are what their presets say."""

import pytest

from core.artifact import model_folders, read_run
from core.catalog import BACKENDS, POSITIONAL
from core.config import run_config_from_json, to_json
from core.presets import PRESETS, encoder_small, preset


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_survives_json_and_explains_itself(name):
    config = preset(name)
    assert run_config_from_json(to_json(config)) == config
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
    shipped = run_config_from_json(read_run(model_folders()[f"imdb-{kind}"])["config"])
    assert shipped == preset(f"{kind}-best")
