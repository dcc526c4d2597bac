"""Each experiment finds what its claim's rule reads; and what is known of some of them beforehand."""

from dataclasses import replace

import pandas as pd
import pytest
import torch

from core.claims.catalog import CLAIMS
from core.claims.claim import OUTCOMES, Measured
from core.claims.experiments import learning, maps, masks, sizes, timing, trained
from core.claims.experiments.gradients import by_distance
from core.claims.figures import of_loss, of_state
from core.config import DataConfig, EncoderArchitecture, RunConfig, TrainingConfig
from core.recorded import Column, Table
from tests import small_runs

MEASURED = {name: claim for name, claim in CLAIMS.items() if isinstance(claim, Measured)}
TRAINED = [name for name, claim in MEASURED.items() if claim.experiment.startswith(trained.__name__)]
AT_ONCE = [name for name in MEASURED if name not in TRAINED]
HOLDS, FAILS, ONLY, UNKNOWN = OUTCOMES


def judged(name, more=None):
    """The verdict on what the experiment of a claim finds, which can be recorded."""
    figures = dict(MEASURED[name].measure()) | (more or {})
    Table(name="x", caption="", columns=(Column(name="value"),), rows=tuple((value,) for value in figures.values()))
    return MEASURED[name].verdict(figures)


@pytest.fixture
def small(monkeypatch):
    """As little as shows what an experiment does."""
    monkeypatch.setattr(maps, "REVIEWS", 3)
    monkeypatch.setattr(masks, "PASSES", 2)
    monkeypatch.setattr(timing, "PAIRS", 1)
    monkeypatch.setattr(timing, "LAYERS", replace(timing.LAYERS, batch=1, length=16, n_layers=1))
    cells = list(sizes._training_cells())[:2]
    monkeypatch.setattr(sizes, "_training_cells", lambda: cells)


ALIKE_EVERYWHERE = {  # what no machine and no model changes
    "flash-saves-7.5": ONLY, "scores-1.5-gb": HOLDS, "layer-1-gb": HOLDS, "matrix-4-gb": ONLY, "attention-30-40-percent": ONLY,
    "flash-reads-linear": ONLY, "batch-rule": FAILS, "parameters": FAILS, "softmax-saturates": HOLDS, "inf-makes-nan": ONLY,
    "fp16-overflows": ONLY, "mask-after-softmax": HOLDS, "mask-broadcasts": ONLY, "view-after-transpose": ONLY,
    "reshape-is-wrong": HOLDS, "eval-forgotten": HOLDS, "slice-beyond-max-len": ONLY, "shift-is-linear": HOLDS,
    "order-without-positions": HOLDS, "from-scratch-91.6": UNKNOWN,
}  # fmt: skip


@pytest.mark.parametrize("name", AT_ONCE)
def test_an_experiment_of_seconds_comes_to_a_verdict(name, small):
    verdict = judged(name)
    assert verdict.outcome == ALIKE_EVERYWHERE.get(name, verdict.outcome), verdict.why


def test_flash_attention_saves_what_its_matrices_take():
    found = sizes.flash_saves()
    assert found["training at 512, eager over sdpa"] == pytest.approx(31 / 9, rel=0.01)  # 3 S + 7 X over 9 X, with S = 8 X
    assert found["training at 2048, eager over sdpa"] == pytest.approx(103 / 9, rel=0.01)


def test_no_head_learns_where_nothing_was_learned(small):
    found = maps.stop_words()
    assert found["attention received, untrained, %"] == pytest.approx(found["share of the tokens, %"], abs=3)


# What is trained


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return small_runs.write_table(tmp_path_factory.mktemp("data") / "reviews.csv", n=200)


@pytest.fixture
def quick(table, monkeypatch):
    """All networks trained once over a small table, with two seeds."""

    def config(model, limit, training=learning.ON_ONE_CORE):
        knobs = dict(vocab_size=120, max_len=min(model.max_len, 12), n_layers=min(model.n_layers, 2))
        return RunConfig(
            model=replace(model, **knobs), reviews=DataConfig(data=str(table)), training=replace(training, epochs=1)
        )

    monkeypatch.setattr(trained, "_config", config)
    monkeypatch.setattr(trained, "of_seeds", lambda config: learning.of_seeds(config, (0, 1)))
    monkeypatch.setattr(trained, "RATES", trained.RATES[:1])
    monkeypatch.setattr(trained, "LONG", 9)
    monkeypatch.setattr(trained, "TRAINED_AT", 4)
    monkeypatch.setattr(trained, "TESTED_AT", 12)


@pytest.mark.parametrize("name", TRAINED)
def test_an_experiment_that_trains_finds_what_its_rule_reads(name, quick):
    if name == "bilstm-drops-with-length":
        figures = trained.by_length()
        assert {f"{network} up to 9 words, %" for network in trained.PAIR} <= set(figures)
        return
    assert judged(name, {"seeds": 3}).outcome in OUTCOMES
    assert judged(name).outcome == UNKNOWN  # two seeds show nothing


def config(table, **knobs) -> RunConfig:
    training = TrainingConfig(device="cpu", precision="float32", backend="sdpa", batch_size=16, lr=0.01, epochs=5)
    return RunConfig(model=replace(small_runs.ENCODER, **knobs), reviews=DataConfig(data=str(table)), training=training)


def test_what_is_learned_is_told_on_reviews_that_were_not_trained_on(table):
    one, again = learning.of_seeds(config(table), (0, 1))
    assert learning.held_out(one).labels.tolist() == learning.held_out(again).labels.tolist()
    trained_on = {tuple(ids) for ids in one.prepared.examples("train").ids}
    assert not trained_on & {tuple(ids[:12]) for ids in learning.held_out(one).ids}
    assert len(one.losses) == len(again.losses) > 20 and one.losses != again.losses
    assert one.final_loss < 0.7 * one.losses[0]
    assert min(learning.accuracies([one, again])) > 0.7


def test_reviews_that_are_held_out_and_looked_at_are_of_both_classes(table, tmp_path, monkeypatch):
    frame = pd.read_csv(table).sort_values("label")
    frame.to_csv(tmp_path / "sorted.csv", index=False)
    monkeypatch.setattr(learning, "HELD_OUT", 10)
    labels = learning._test.__wrapped__(DataConfig(data=str(tmp_path / "sorted.csv")))[0].labels
    assert len(labels) == 10 and 2 <= sum(labels) <= 8
    assert 10 <= sum(maps._test_reviews().labels[: maps.REVIEWS]) <= 30


def test_a_training_that_leaves_the_finite_numbers_ends_there(table):
    found = learning.learned(replace(config(table), training=replace(config(table).training, lr=10.0, clip_norm=None)))
    assert all(torch.isfinite(torch.tensor(found.losses)))
    assert 0 < len(found.losses) < len(learning.learned(config(table)).losses)


def test_gradients_reach_as_far_as_a_window(table):
    windowed = learning.of_seeds(config(table, window=1, n_layers=1, positional="none"), (0,))
    everything = learning.of_seeds(config(table, n_layers=1, positional="none"), (0,))
    near, far = (by_distance({"x": networks}, reviews=3) for networks in (windowed, everything))
    assert near[of_state("x", 0)] == 1 and near[of_state("x", 1)] > 0
    assert near[of_state("x", 2)] == near[of_state("x", 10)] == 0 < far[of_state("x", 10)]
    assert near[of_loss("x", 10)] > 0  # by the mean over all tokens
    assert isinstance(windowed[0].config.model, EncoderArchitecture)
