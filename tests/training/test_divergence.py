"""The likely cause of a divergence, and the variant without it."""

from dataclasses import replace

import pytest

from core.config import BiLSTMArchitecture, RunConfig
from core.training.divergence import remedy

BASE = RunConfig()


def of(model=None, **training) -> RunConfig:
    return replace(BASE, model=model or BASE.model, training=replace(BASE.training, **training))


@pytest.mark.parametrize(
    ("config", "cause", "safer"),
    [
        (of(replace(BASE.model, mistake="fill_-inf"), lr=5.0), "the mistake fill_-inf", of(lr=5.0)),
        (of(replace(BASE.model, attention_scale="none"), warmup_ratio=0.0), "nothing scales them", of(warmup_ratio=0.0)),
        (of(warmup_ratio=0.0, clip_norm=None), "no warm-up", of(clip_norm=None)),
        (of(clip_norm=None), "not clipped", of()),
        (of(), "learning rate of 0.0003 is too high", of(lr=3e-5)),
        (of(lr=10.0, warmup_ratio=0.0), "learning rate of 10 is too high", of(lr=1.0, warmup_ratio=0.0)),
        (of(BiLSTMArchitecture(), warmup_ratio=0.0), "no warm-up", of(BiLSTMArchitecture())),
    ],
)
def test_one_likely_cause_is_taken_away_at_a_time(config, cause, safer):
    found = remedy(config)
    assert cause in found.cause and found.config == safer


def test_what_is_offered_again_and_again_comes_to_an_end():
    config = of(replace(BASE.model, mistake="no_mask", attention_scale="none"), lr=2.0, warmup_ratio=0.0, clip_norm=None)
    said = []
    for _ in range(6):
        found = remedy(config)
        config = found.config
        said.append(found.change)
    assert said[:2] == ["make no mistake", "scale attention"] and said[-2:] == ["use a warm-up", "clip the gradient"]
    assert config.training.lr == 0.02
