"""A whole run: configuration, events, artefact, and the same logits again, here and by transformers."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForSequenceClassification, AutoTokenizer, pipeline

from core import run_folder, runs
from core.artifact import read_predictions, read_run
from core.card import card
from core.checked import from_json
from core.config import RunConfig
from core.data import tokenizer as tokenizers
from core.data.batches import Cut
from core.data.reviews import load, stamp
from core.data.splits import SHARES, side, split, text_hash
from core.evaluation.scoring import score
from core.events import EpochFinished, Started, StepFinished, TableRead, TrainingFinished, TrainingStarted
from core.inspection.reading import read
from core.training import loop
from core.training.run import code, peak_memory, prepare, train
from tests import small_runs

SIDES = ("validation", "test")


@pytest.fixture
def splits(made):
    return split(load(made.config.reviews, made.config.training.seed))


# What a run says and leaves


def test_events_tell_the_run_in_order(made, splits):
    events, _ = run_folder.read_events(made.out)
    started, read, begun, *progress, finished = events
    assert started == Started(device="cpu") and isinstance(read, TableRead)
    assert read.notes == made.model.run["data"]["notes"] == list(splits.train.notes) != []
    assert isinstance(begun, TrainingStarted)
    assert begun.n_parameters == sum(p.numel() for p in made.model.network.parameters())
    assert (begun.n_train, begun.n_validation, begun.epochs) == (len(splits.train), len(splits.validation), 4)
    assert (begun.device, begun.precision) == ("cpu", "float32")
    assert (begun.backend is None) == (made.config.model.kind == "bilstm")
    steps = [event for event in progress if isinstance(event, StepFinished)]
    assert steps[-1].step == steps[-1].total_steps and all(step.lr <= 0.01 for step in steps)
    assert [event.epoch for event in progress if isinstance(event, EpochFinished)] == [1, 2, 3, 4]
    assert isinstance(finished, TrainingFinished) and finished.model_dir == str(made.out / "model")
    assert finished.reviews_per_s == pytest.approx(4 * len(splits.train) / finished.train_s)
    assert finished.val_accuracy == read_run(made.model.folder)["metrics"]["validation"]["accuracy"]


def test_it_learned(made):
    run = made.model.run
    assert run["metrics"]["test"]["accuracy"] > 0.75
    assert run["epochs"][-1]["train_loss"] < run["epochs"][0]["train_loss"]


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="only Linux keeps count of a process's peak memory")
def test_peak_memory_is_that_of_the_process_up_to_then(made):
    recorded, found = made.model.run["peak_memory"], peak_memory("cpu")
    (now,) = [line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:")]
    assert recorded["source"] == found["source"] == "VmHWM"
    assert 4 * made.model.run["n_parameters"] < recorded["bytes"]
    assert found["bytes"] <= 1024 * int(now) < 1.1 * found["bytes"]


def test_nothing_half_done_is_left(made):
    assert sorted(path.name for path in made.out.iterdir() if path.is_dir()) == ["model"]
    assert runs.read("run", made.out.parent).state == "succeeded"


def test_its_record_makes_it_again(made, splits):
    run = made.model.run
    config = from_json(RunConfig, run["config"])
    settled = replace(made.config.model, vocab_size=made.model.tokenizer.get_vocab_size(), n_classes=2)
    assert config == replace(made.config, model=settled)
    assert made.model.architecture == settled
    assert run["command"] == "python -m core train --out 'my run'"
    assert run["data"]["n"] == {name: len(hashes) for name, hashes in splits.hashes.items()}
    assert run["label_names"] == ["negative", "positive"] == list(made.model.label_names)
    assert run["training"]["train_s"] < run["wall_s"] < 600 and len(run["code"]["sha256"]) == 64
    assert (made.model.folder / "README.md").read_text(encoding="utf-8") == card(run)


def test_the_reopened_model_gives_the_stored_logits(made, splits):
    frame, cut = read_predictions(made.model.folder), Cut.of(made.model.architecture)
    for name in SIDES:
        reviews, stored = getattr(splits, name), frame[frame["split"] == name]
        encoded = [tokenizers.encode(made.model.tokenizer, text).ids for text in reviews.texts]
        np.testing.assert_array_equal(score(made.model.network, [cut.ids(ids) for ids in encoded]), np.stack(stored["logits"]))
        assert stored["text_hash"].tolist() == [text_hash(text) for text in reviews.texts]
        assert stored["label"].tolist() == reviews.labels
        assert stored["words"].tolist() == [len(text.split()) for text in reviews.texts]
        assert stored["tokens"].tolist() == [len(ids) for ids in encoded]
        assert stored["tokens_read"].tolist() == [min(len(ids), cut.room) for ids in encoded]
        accuracy = (np.stack(stored["logits"]).argmax(-1) == stored["label"]).mean()
        assert made.model.run["metrics"][name]["accuracy"] == pytest.approx(accuracy)


@pytest.mark.parametrize("text", ["A superb film", "[PAD] dull [CLS]", "the cast and the plot " * 9, "ça 🎬 <br />"])
def test_transformers_reads_it_as_the_lab_does(made, text):
    folder, ours = made.model.folder, read(made.model, text).prediction
    network = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    inputs = tokenizer(text, truncation=True, return_tensors="pt")
    ids = tokenizers.encode(made.model.tokenizer, text).ids
    assert inputs["input_ids"][0].tolist() == Cut.of(made.model.architecture).ids(ids).tolist()
    with torch.no_grad():
        np.testing.assert_allclose(network(**inputs).logits[0].numpy(), ours.logits, atol=1e-5)
    (theirs,) = pipeline("text-classification", model=network, tokenizer=tokenizer, top_k=None)([text], truncation=True)
    assert {answer["label"]: answer["score"] for answer in theirs} == pytest.approx(ours.probabilities, abs=1e-5)


# The same again


def weights(folder):
    return load_file(folder / "model" / "model.safetensors")


def run(config, out):
    train(config, out, lambda event: None, ["train"])
    return weights(out)


def test_the_same_seed_gives_the_same_weights_to_the_bit_and_another_others(table, tmp_path):
    config = small_runs.config(table, epochs=1)
    first, again = run(config, tmp_path / "first"), run(config, tmp_path / "again")
    other = run(small_runs.config(table, epochs=1, seed=1), tmp_path / "other")
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not any(torch.equal(first[name], other[name]) for name in first if first[name].ndim > 1)
    a, b = (read_predictions(tmp_path / name / "model") for name in ("first", "again"))
    np.testing.assert_array_equal(np.stack(a["logits"]), np.stack(b["logits"]))


def test_the_seed_draws_the_first_weights(table, tmp_path):
    rate = dict(epochs=1, lr=1e-12)
    first, other = (run(small_runs.config(table, seed=seed, **rate), tmp_path / f"{seed}") for seed in (0, 1))
    assert (first["network.classifier.weight"] - other["network.classifier.weight"]).abs().max() > 0.1


def test_float16_takes_half_the_room_and_its_figures_are_its_own(table, tmp_path):
    full = run(small_runs.config(table), tmp_path / "full")
    half = run(small_runs.config(table, weights="float16"), tmp_path / "half")
    assert all(torch.equal(full[name].half(), half[name]) for name in full)
    assert {tensor.dtype for tensor in half.values()} == {torch.float16}
    sizes = [(tmp_path / name / "model" / "model.safetensors").stat().st_size for name in ("full", "half")]
    saved = 2 * sum(tensor.numel() for tensor in full.values())
    assert saved <= sizes[0] - sizes[1] <= saved + 100 < sizes[0] / 1.9  # beside the weights, only where each begins
    logits = [np.stack(read_predictions(tmp_path / name / "model")["logits"]) for name in ("full", "half")]
    assert 0 < np.abs(logits[0] - logits[1]).max() < 0.05


@pytest.mark.parametrize(
    ("knob", "max_len", "recomputes"), [("on", 12, True), ("off", 600, False), ("auto", 12, False), ("auto", 600, True)]
)
def test_checkpointing_is_read(table, tmp_path, monkeypatch, knob, max_len, recomputes):
    from core.networks import encoder

    calls, real = [], encoder.checkpoint
    monkeypatch.setattr(encoder, "checkpoint", lambda *args, **knobs: calls.append(1) or real(*args, **knobs))
    config = small_runs.config(table, epochs=1, checkpointing=knob)
    run(replace(config, model=replace(config.model, max_len=max_len)), tmp_path / "run")
    assert bool(calls) == recomputes


def test_checkpointing_changes_no_weight(table, tmp_path):
    on, off = (run(small_runs.config(table, epochs=1, checkpointing=knob), tmp_path / knob) for knob in ("on", "off"))
    for name in on:
        torch.testing.assert_close(on[name], off[name])


# What is refused, and what stays apart


def test_a_place_that_holds_a_model_is_refused_before_anything_is_done(table, tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine.txt").write_text("keep")
    events = []
    with pytest.raises(ValueError, match="there is a model already; choose another folder"):
        train(small_runs.config(table), tmp_path, events.append, ["train"])
    assert events == [] and [path.name for path in tmp_path.rglob("*.*")] == ["mine.txt"]


def test_the_code_is_told_by_its_commit_and_by_its_sources(monkeypatch, tmp_path):
    (tmp_path / "core").mkdir()
    monkeypatch.setattr("core.training.run.ROOT", tmp_path)
    found = []
    for content in ("a = 1", "a = 2", "a = 1"):
        (tmp_path / "core" / "x.py").write_text(content)
        found.append(code())
    assert found[0] == found[2] != found[1] and found[0]["commit"] is None


@pytest.mark.parametrize("change", [lambda path: path.write_text(path.read_text() + "more,1\n"), Path.unlink])
def test_reviews_that_changed_while_the_training_waited_are_refused(table, tmp_path, change):
    mine = tmp_path / "mine.csv"
    mine.write_text(table.read_text())
    config, events = small_runs.config(mine, epochs=1), []
    asked_for = stamp(config.reviews)
    assert asked_for is not None and asked_for == stamp(config.reviews)
    train(config, tmp_path / "same", events.append, ["train"], asked_for=asked_for)
    change(mine)
    with pytest.raises(ValueError, match="mine.csv"):
        train(config, tmp_path / "other", events.append, ["train"], asked_for=asked_for)
    assert not (tmp_path / "other" / "model").exists() and stamp(replace(config.reviews, data="imdb")) is None


def test_reviews_that_changed_since_a_checkpoint_are_refused(table, tmp_path):
    mine = tmp_path / "mine.csv"
    mine.write_text(table.read_text())
    config, steps = small_runs.config(mine, epochs=1, checkpoint_s=0.0), iter(range(99))
    train(config, tmp_path / "run", lambda event: None, ["train"], lambda: next(steps) == 3)
    mine.write_text(table.read_text() + "more and more,1\n")
    with pytest.raises(ValueError, match=r"the checkpoint is of another training \(other reviews\); restore what was changed"):
        train(config, tmp_path / "run", lambda event: None, ["train"])


def test_a_batch_larger_than_the_reviews_is_refused(table, tmp_path):
    with pytest.raises(ValueError, match="batch_size: got 1,000, expected at most the 20. reviews to train on"):
        train(small_runs.config(table, batch_size=1_000), tmp_path, lambda event: None, ["train"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["taken", "taken/inside"])
def test_a_place_that_is_a_file_is_refused(table, tmp_path, place):
    (tmp_path / "taken").write_text("keep")
    with pytest.raises(ValueError, match="the folder cannot be made"):
        train(small_runs.config(table), tmp_path / place, lambda event: None, ["train"])


def test_what_remains_of_a_killed_run_is_no_hindrance(table, tmp_path):
    (tmp_path / "model.partial").mkdir()
    (tmp_path / "model.partial" / "model.safetensors").write_text("half")
    run(small_runs.config(table, epochs=1), tmp_path)
    assert not (tmp_path / "model.partial").exists()


def test_the_tokeniser_sees_the_training_side_alone(tmp_path):
    table = small_runs.write_table(tmp_path / "made.csv")
    lines = table.read_text().splitlines()
    for i, line in enumerate(lines[1:], 1):
        text, label = line.rsplit(",", 1)
        marked = {name: f"{text} {word} {word}" for name, word in zip(SHARES, ("xenial", "жжж", "яяя"), strict=True)}
        lines[i] = next((f"{t},{label}" for name, t in marked.items() if side(text_hash(t)) == name), line)
    table.write_text("\n".join(lines), encoding="utf-8")
    prepared = prepare(small_runs.config(table))
    assert all(
        word in " ".join(getattr(prepared.splits, name).texts)
        for name, word in zip(SHARES, ("xenial", "жжж", "яяя"), strict=True)
    )
    vocabulary = "".join(prepared.tokenizer.get_vocab())
    assert "x" in vocabulary and "ж" not in vocabulary and "я" not in vocabulary
    assert prepared.config.model.vocab_size == prepared.tokenizer.get_vocab_size() <= 150


def test_the_events_are_plain_json(made):
    for line in (made.out / "events.jsonl").read_text(encoding="utf-8").splitlines():
        assert isinstance(json.loads(line), dict)


def test_a_row_without_a_token_is_left_out_and_named(tmp_path):
    table = small_runs.write_table(tmp_path / "made.csv")
    with table.open("a", encoding="utf-8") as file:
        file.write("\u200b\u200b,1\n")
    prepared = prepare(small_runs.config(table))
    assert sum(len(corpus) for corpus in prepared.corpora.values()) == 240
    assert all(corpus.lengths.all() for corpus in prepared.corpora.values())
    assert prepared.splits.train.notes[-1] == "left out 1 of 241 rows, without text: row 241"


@pytest.mark.parametrize(("error", "stays"), [(loop.TrainingDiverged("the loss became nan"), False), (MemoryError(), True)])
def test_of_a_training_that_diverged_nothing_is_kept_to_go_on_from(tmp_path, monkeypatch, error, stays):
    def fails(*given, checkpoints, **knobs):
        checkpoints.write({"step": 1})
        raise error

    monkeypatch.setattr("core.training.run.fit", fails)
    config = small_runs.config(small_runs.write_table(tmp_path / "reviews.csv"))
    with pytest.raises(type(error)):
        train(config, tmp_path / "run", emit=lambda event: None, argv=[])
    assert (tmp_path / "run" / run_folder.CHECKPOINT).exists() == stays
