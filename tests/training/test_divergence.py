"""When a training has diverged, the likely cause, and the variant without it."""

from dataclasses import replace

import pytest

from core.config import BiLSTMArchitecture, RunConfig
from core.events import EpochFinished
from core.training.divergence import described, diverged, remedy

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
        (of(lr=10.0, warmup_ratio=0.0), "learning rate of 10 is too high", of(lr=0.003, warmup_ratio=0.0)),
        (of(BiLSTMArchitecture(), warmup_ratio=0.0), "no warm-up", of(BiLSTMArchitecture())),
    ],
)
def test_one_likely_cause_is_taken_away_at_a_time(config, cause, safer):
    found = remedy(config)
    assert cause in found.cause and found.config == safer


def test_what_is_offered_again_and_again_comes_to_an_end():
    config = of(replace(BASE.model, mistake="no_mask", attention_scale="none"), lr=2.0, warmup_ratio=0.0, clip_norm=None)
    said = []
    for _ in range(5):
        found = remedy(config)
        config = found.config
        said.append(found.change)
    lr = "use a learning rate of 0.003"
    assert said == ["make no mistake", "scale attention", lr, "use a warm-up", "clip the gradient"]
    assert config.training.lr == 0.003


@pytest.mark.parametrize(
    ("train_loss", "val_loss", "n_classes", "is_diverged"),
    [
        (5_000.0, 26_145.0, 2, True),
        (1.39, 1.39, 2, True),  # 2 ln 2 = 1.386
        (1.38, 1.39, 2, False),
        (1.39, 1.38, 2, False),
        (0.02, 1.8, 2, False),  # overfitted
        (6.6, 0.69, 2, False),  # its first steps were too long, and it came back
        (0.693, 0.693, 2, False),  # it learned nothing
        (1.5, 1.5, 5, False),
        (3.3, 3.3, 5, True),  # 2 ln 5 = 3.22
    ],
)
def test_far_above_guessing_on_its_own_reviews_and_on_others_is_diverged(train_loss, val_loss, n_classes, is_diverged):
    assert diverged(replace(EPOCH, train_loss=train_loss, val_loss=val_loss), n_classes) == is_diverged


EPOCH = EpochFinished(epoch=3, step=99, train_loss=9.0, val_loss=26_145.4, val_accuracy=0.5, elapsed_s=1.0)


def test_it_is_said_where_by_how_much_why_and_what_to_do():
    assert described(EPOCH, of(lr=10.0), 2) == (
        "the loss is 26,145 after epoch 3, step 99, where guessing costs 0.69, most likely since a learning rate of 10 is too "
        "high; use a learning rate of 0.003"
    )
    assert "is 2.5e+09 after" in described(replace(EPOCH, val_loss=2.5e9), of(), 2)
