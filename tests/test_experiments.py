"""An experiment trains each member once, as a run of its own, goes on where it was, and tells a difference from chance."""

import json
import os
import shlex
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_rel

from core import experiments, run_folder
from core.__main__ import main
from core.ablate import argv
from core.artifact import read_predictions
from core.checked import from_json, to_json
from core.config import ExperimentConfig, RunConfig
from core.events import Cancelled, Event, ExperimentStarted, Failed, Finished, MemberFinished, MemberStarted
from core.experiments import BASE, estimated_s, gather, left_s, members
from core.jobs import Ended, hold
from core.presets import preset
from core.statistics import holm
from core.training import run as training
from tests import small_runs
from tests.processes import events

ON_A_CPU = ExperimentStarted(device="cpu", precision="bfloat16", backend="eager")


@pytest.fixture(scope="module", autouse=True)
def _alone(tmp_path_factory):
    """A cache of its own, and code that stays the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTENTION_LAB_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setattr(training, "code", lambda: {"commit": None, "sha256": "a"})
        yield


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    return small_runs.write_table(tmp_path_factory.mktemp("table") / "made.csv")


def experiment(table: Path, *ablations: str, **knobs) -> ExperimentConfig:
    base = small_runs.config(table, **{"epochs": 1, "backend": "eager"} | knobs)
    return ExperimentConfig(base=base, ablations=ablations, seeds=(0, 1))


def go(config: ExperimentConfig, folder: Path, stopped: Callable[[], bool] = lambda: False) -> list:
    """What an experiment has said when this attempt at it is over."""
    with hold(folder, "cpu", config) as job:
        experiments.run(config, folder, job.emit, stopped, events(folder))
    return events(folder)


def of(said: list[Event], kind: type) -> list:
    return [event for event in said if isinstance(event, kind)]


@pytest.fixture(scope="module")
def done(table, tmp_path_factory) -> tuple[ExperimentConfig, Path]:
    """An experiment that is over."""
    config, folder = experiment(table, "positions-none", "mask-after-softmax"), tmp_path_factory.mktemp("runs") / "a"
    go(config, folder)
    return config, folder


# Members


def test_an_ablation_is_held_against_a_base_of_its_own_backend():
    every = members(ExperimentConfig(ablations=("positions-none", "mask-off"), seeds=(3, 5)))
    named = [(member.ablation, member.base, member.seed) for member in every]
    arms = [(BASE, None), (f"{BASE}, eager", None), ("positions-none", BASE), ("mask-off", f"{BASE}, eager")]
    assert named == [(*arm, seed) for seed in (3, 5) for arm in arms]
    assert [member.config.training.backend for member in every[:4]] == ["auto", "eager", "auto", "eager"]


def test_bases_that_come_to_the_same_are_one():
    every = members(ExperimentConfig(ablations=("positions-none", "mask-off", "float32")), ON_A_CPU)
    bases = dict.fromkeys(member.ablation for member in every if member.base is None)
    assert list(bases) == [BASE]
    assert {member.config.training.backend for member in every} == {"eager"}
    assert Counter(member.config.training.precision for member in every) == {"bfloat16": 9, "float32": 3}


def test_one_base_is_called_so_whatever_it_is():
    every = members(ExperimentConfig(ablations=("mask-off",), seeds=(0,)))
    assert [(member.ablation, member.config.training.backend) for member in every] == [(BASE, "eager"), ("mask-off", "eager")]


def test_what_is_not_settled_does_not_overrule_what_was_chosen():
    base = RunConfig(training=replace(RunConfig().training, backend="sdpa", precision="float32"))
    (first, *_) = members(ExperimentConfig(base=base, ablations=("heads-1",)), ON_A_CPU)
    assert (first.config.training.backend, first.config.training.precision) == ("sdpa", "float32")


def test_a_linear_model_has_nothing_to_settle():
    config = ExperimentConfig(base=preset("nb-svm"), ablations=("max-len-128",), seeds=(0,))
    base, variant = members(config, replace(ON_A_CPU, precision="float32", backend=None))
    assert base.config == config.base and variant.config.model.max_len == 128


@pytest.mark.parametrize(
    ("knobs", "said"),
    [
        ({"ablations": ()}, "ablations: got 0 values, expected from 1 to"),
        ({"ablations": ("heads-1", "heads-1")}, "ablations: got heads-1, heads-1, expected each only once"),
        ({"ablations": ("heads-1",), "seeds": (0, 0)}, "seeds: got 0, 0, expected each only once"),
    ],
)
def test_an_experiment_that_cannot_be_is_refused(knobs, said):
    with pytest.raises(ValueError, match=said):
        ExperimentConfig(**knobs)


def test_an_experiment_is_read_as_it_was_written():
    config = ExperimentConfig(base=preset("bilstm"), ablations=("dropout-off",), seeds=(4, 2))
    assert from_json(ExperimentConfig, json.loads(json.dumps(to_json(config)))) == config


# Training them


def test_each_member_is_trained_once_seed_by_seed(done):
    config, folder = done
    said = events(folder)
    assert [type(event) for event in said[:3]] == [run_folder.EVENTS["Started"], ExperimentStarted, MemberStarted]
    finished = of(said, MemberFinished)
    arms = (BASE, "positions-none", "mask-after-softmax")
    assert [(event.ablation, event.seed) for event in finished] == [(arm, seed) for seed in (0, 1) for arm in arms]
    assert isinstance(said[-1], Finished) and run_folder.state(folder) == "succeeded"
    for event in finished:
        assert event.n and event.why_not is None and 0 < (event.train_s or 0) < (event.elapsed_s or 0)
        assert event.peak_bytes and event.peak_source == "predicted"
        assert (event.run, event.n_parameters) == (f"a/members/{event.fingerprint}", finished[0].n_parameters)


def test_a_member_comes_to_the_same_as_the_run_of_its_command(done, tmp_path, capsys):
    _, folder = done
    event = of(events(folder), MemberFinished)[-1]  # which took over what was prepared for others
    place = folder.parent / event.run
    assert run_folder.state(place) == "succeeded"
    assert main([*run_folder.command(place)[:-1], str(tmp_path / "alone"), "--json"]) == 0
    alone = read_predictions(tmp_path / "alone" / "model")
    assert np.array_equal(np.stack(alone["logits"]), np.stack(read_predictions(place / "model")["logits"]))
    assert json.loads(capsys.readouterr().out)["val_accuracy"] == event.val_accuracy


def test_what_an_experiment_beside_has_trained_is_not_trained_again(done, table):
    _, folder = done
    said = go(experiment(table, "heads-1", "positions-none"), folder.parent / "b")
    assert [(event.ablation, event.seed) for event in of(said, MemberStarted)] == [("heads-1", 0), ("heads-1", 1)]
    first = next(event for event in of(said, MemberFinished) if event.ablation == "positions-none")
    assert first in of(events(folder), MemberFinished) and first.run.startswith("a/members/")


def test_what_is_damaged_beside_counts_for_nothing(done, tmp_path):
    other = tmp_path / "b" / "members" / "f"
    (other / "model").mkdir(parents=True)
    (other / "model" / "run.json").write_text('{"metrics": {}}')
    run_folder.append_event(other, Finished())
    member = members(done[0], ON_A_CPU)[0]
    assert run_folder.state(other) == "succeeded"
    assert experiments._trained(member, tmp_path / "a" / "members" / "f") is None


@pytest.mark.parametrize("change", ["code", "reviews", "knobs"])
def test_what_is_trained_otherwise_has_another_fingerprint(done, table, change):
    config, folder = done
    member = members(config, ON_A_CPU)[0].config
    shared = {"config": member, "reviews": {"train": "x"}, "sources": "a"}
    other = {"code": {"sources": "b"}, "reviews": {"reviews": {"train": "y"}}, "knobs": {"config": replace(member)}}[change]
    if change == "knobs":
        other = {"config": replace(member, training=replace(member.training, lr=0.1))}
    assert experiments.fingerprint(**shared) == experiments.fingerprint(**shared)
    assert experiments.fingerprint(**shared) != experiments.fingerprint(**shared | other)


def stops_after(calls: int) -> Callable[[], bool]:
    """Asked before each member and before each of its steps."""
    asked = iter(range(10**6))
    return lambda: next(asked) >= calls


def figures(said: list[Event]) -> list[tuple]:
    found = {(event.ablation, event.seed): event for event in of(said, MemberFinished)}
    return sorted((*key, event.accuracy, event.val_accuracy, event.n) for key, event in found.items())


def test_a_stopped_experiment_goes_on_with_the_member_that_it_was_at(done, table, tmp_path):
    base = replace(done[0].base, training=replace(done[0].base.training, checkpoint_s=0.0))
    config = replace(done[0], base=base, seeds=(0,))
    said = go(config, tmp_path / "a", stops_after(20))  # 13 steps a member
    assert said[-1] == Cancelled() and len(of(said, MemberFinished)) == 1 and len(of(said, MemberStarted)) == 2
    assert run_folder.state(tmp_path / "a") == "cancelled"
    said = go(config, tmp_path / "a")
    assert [event.ablation for event in of(said, MemberStarted)][:3] == [BASE, "positions-none", "positions-none"]
    resumed = tmp_path / of(said, MemberStarted)[2].run
    began = [event.step for event in of(events(resumed), run_folder.EVENTS["TrainingStarted"])]
    assert began[0] == 0 < began[1] < 13
    assert figures(said) == [found for found in figures(events(done[1])) if found[1] == 0]


def test_an_experiment_whose_process_is_asked_to_end_is_interrupted(done, table, tmp_path):
    midway = stops_after(20)

    def ask() -> bool:
        if midway():
            os.kill(os.getpid(), signal.SIGTERM)
        return False

    with pytest.raises(Ended):
        go(done[0], tmp_path / "a", ask)
    assert run_folder.state(tmp_path / "a") == "interrupted"
    assert (tmp_path / of(events(tmp_path / "a"), MemberStarted)[1].run / run_folder.CHECKPOINT).is_file()


def test_a_member_that_cannot_be_trained_is_a_result(table, tmp_path):
    config = replace(experiment(table, "attention-dropout", backend="chunked"), seeds=(0,))
    said = go(config, tmp_path / "a")
    failed = [event for event in of(said, MemberFinished) if event.why_not]
    assert [event.ablation for event in failed] == ["attention-dropout"] and isinstance(said[-1], Finished)
    assert "it drops no attention weights on cpu" in (failed[0].why_not or "") and failed[0].accuracy is None
    last = run_folder.last_event(tmp_path / failed[0].run)
    assert isinstance(last, Failed) and last.reason == failed[0].why_not
    base, ablation = gather(config, said)
    assert base.mean("accuracy") and ablation.accuracy is None and ablation.mean("train_s") is None
    assert ablation.verdict == f"1 of 1 failed: {failed[0].why_not}"


def test_reviews_that_are_not_there_end_the_experiment(tmp_path):
    with pytest.raises(ValueError, match="none.csv"):
        go(experiment(tmp_path / "none.csv", "heads-1"), tmp_path / "a")
    assert not list(tmp_path.rglob("members"))


def test_another_experiment_does_not_write_over_what_one_has_trained(done, table):
    with pytest.raises(ValueError, match="there is a run of other settings already"):
        go(experiment(table, "heads-1"), done[1])


# What came of them

THREE = ExperimentConfig(ablations=("heads-1", "positions-none", "residual-off"))
ACCURACY = {
    BASE: (0.80, 0.82, 0.81), "heads-1": (0.80, 0.81, 0.83), "positions-none": (0.70, 0.715, 0.705), "residual-off": (0.5,)
}  # fmt: skip


def finished(ablation: str, seed: int, accuracy: float | None, **others) -> MemberFinished:
    made = MemberFinished(ablation=ablation, seed=seed, fingerprint="f", run="a/members/f", n=500, accuracy=accuracy)
    return replace(made, **others)


def said(**figures) -> list[Event]:
    return [finished(name, seed, value, **figures) for name, values in ACCURACY.items() for seed, value in enumerate(values)]


def test_differences_are_those_of_the_same_seeds_and_holm_counts_them_all():
    base, heads, positions, residual = gather(THREE, said(elapsed_s=4.0, train_s=3.0))
    tests = [ttest_rel(ACCURACY[name], ACCURACY[BASE]) for name in ("heads-1", "positions-none")]
    for outcome, test, p in zip((heads, positions), tests, holm([test.pvalue for test in tests]), strict=True):
        assert outcome.difference and outcome.difference.p == pytest.approx(p)
        low, high = test.confidence_interval(0.95)
        assert (outcome.difference.low, outcome.difference.high) == pytest.approx((low, high))
    assert base.difference is None and base.verdict == "" and base.question == ""
    assert base.accuracy and base.accuracy.value == pytest.approx(0.81)
    assert heads.verdict.startswith("no difference shown: +0.3 points, 95% between ") and "3 seeds, p = " in heads.verdict
    assert positions.verdict.startswith("10.3 points worse, 95% between -1")
    assert residual.difference is None and residual.accuracy is None and residual.mean("accuracy") == 0.5
    assert residual.verdict == "not trained yet"
    assert positions.mean("train_s") == 3.0 and positions.mean("peak_bytes") is None


def test_a_seed_that_failed_is_left_out_of_its_pair_and_said():
    events = [*said(), finished("positions-none", 1, None, why_not="the loss became nan at step 3")]
    outcome = gather(THREE, events)[2]
    expected = ttest_rel([0.70, 0.705], [0.80, 0.81])
    assert outcome.difference and outcome.difference.n == 2
    assert outcome.difference.value == pytest.approx(-0.1025) and len(outcome.failed) == 1
    assert (outcome.difference.low, outcome.difference.high) == pytest.approx(tuple(expected.confidence_interval(0.95)))
    assert outcome.verdict.endswith("; 1 of 3 failed: the loss became nan at step 3")


def test_one_seed_has_no_verdict():
    config = replace(THREE, ablations=("heads-1",), seeds=(0,))
    outcome = gather(config, said())[1]
    assert outcome.mean("accuracy") == 0.8 and outcome.accuracy is None
    assert outcome.verdict == "no verdict: two seeds of it and of its base are needed to tell it from chance"


@pytest.mark.parametrize("wrong", [{"accuracy": 7.0}, {"accuracy": None}, {"f1": -1.0}, {"val_accuracy": 1e9}])
def test_figures_that_no_training_has_are_passed_over(wrong):
    others = [event for event in said() if event.ablation != "residual-off"]
    outcome = gather(THREE, [*others, replace(finished("residual-off", 0, 0.6), **wrong)])[3]
    assert outcome.finished == outcome.failed == ()


def test_of_a_member_that_was_trained_twice_the_last_counts():
    assert gather(THREE, [*said(), finished("residual-off", 0, 0.6)])[3].mean("accuracy") == 0.6


def test_what_is_left_goes_at_the_pace_of_what_is_done():
    assert left_s(THREE, []) is None
    assert left_s(THREE, said(elapsed_s=4.0)) == pytest.approx(4.0 * (12 - 10))
    assert left_s(THREE, [*said(elapsed_s=4.0), finished("residual-off", 1, 0.6), finished("residual-off", 2, 0.6)]) == 0


def test_an_estimate_adds_up_what_each_training_takes():
    asked: list[RunConfig] = []

    def seconds(config: RunConfig) -> float:
        asked.append(config)
        return 10.0 * config.model.n_layers

    config = ExperimentConfig(ablations=("layers-1", "layers-6"), seeds=(0, 1))
    assert estimated_s(config, seconds) == 2 * (30 + 10 + 60)
    assert len(asked) == 3


# The command line


def flags(table: Path) -> list[str]:
    model = small_runs.ENCODER
    sizes = {"vocab_size": model.vocab_size, "d_model": model.d_model, "n_heads": model.n_heads, "n_layers": 2, "d_ff": 24}
    words = [word for name, value in sizes.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    return [*words, "--max-len", "12", "--data", str(table), "--epochs", "1", "--batch-size", "16", "--lr", "0.01",
            "--device", "cpu", "--precision", "float32"]  # fmt: skip


def test_the_command_prints_members_and_what_came_of_them(table, tmp_path, capsys):
    asked = ["ablate", "--base", "encoder-small", "--ablations", "heads-1", "--seeds", "2", *flags(table)]
    assert main([*asked, "--out", str(tmp_path / "a"), "--json"]) == 0
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert [(each["ablation"], each["seed"]) for each in found["members"]] == [
        (BASE, 0),
        ("heads-1", 0),
        (BASE, 1),
        ("heads-1", 1),
    ]
    base, heads = found["ablations"]
    assert (base["seeds"], base["difference"]) == (2, None) and heads["difference"]["n"] == 2
    assert heads["low"] <= heads["accuracy"] <= heads["high"] and heads["verdict"] and "1/4" not in shown.err
    assert main([*asked, "--out", str(tmp_path / "a")]) == 0  # goes on, and finds all of it done
    again = capsys.readouterr()
    assert again.err == "" and again.out.splitlines()[1].startswith("heads-1  ")
    assert main([*asked, "--out", str(tmp_path / "b")]) == 0
    assert "4/4 heads-1, seed 1: accuracy " in capsys.readouterr().err


def test_the_command_of_an_experiment_says_all_of_it(table):
    base = preset("tiny")
    base = replace(base, model=replace(base.model, n_layers=2), training=replace(base.training, seed=7, epochs=1))
    config = ExperimentConfig(base=base, ablations=("heads-1", "gelu"), seeds=(7, 8))
    assert shlex.join(argv(config, "tiny")) == (
        "ablate --base tiny --ablations heads-1,gelu --seeds 2 --n-layers 2 --epochs 1 --seed 7"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--base bilstm --ablations heads-1", "ablation 'heads-1': a BiLSTM has no n_heads"),
        ("--base tiny --ablations heads-3", "ablation: got 'heads-3', expected one of heads-1, "),
        ("--base tiny --ablations heads-1,heads-1", "ablations: got heads-1, heads-1, expected each only once"),
        ("--base tiny --ablations heads-1 --seeds 0", "seeds: got 0, expected at least 1"),
        ("--base huge --ablations heads-1", "preset: got 'huge', expected one of tiny, "),
    ],
)
def test_what_was_chosen_wrongly_is_one_sentence_and_leaves_no_run(tmp_path, capsys, words, said):
    assert main(["ablate", *words.split(), "--out", str(tmp_path / "a")]) == 2
    assert said in capsys.readouterr().err and not (tmp_path / "a").exists()


def test_several_processes_are_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    assert main(["ablate", "--base", "tiny", "--ablations", "heads-1", "--out", str(tmp_path / "a")]) == 2
    assert "expected one; start it without" in capsys.readouterr().err
