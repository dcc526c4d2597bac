"""The command line: what machines read, and one sentence with exit code 2 for what was chosen wrongly."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from core.__main__ import main
from core.artifact import ROOT
from core.config import DataConfig, RunConfig
from core.data.table import open_as_named
from core.events import Cancelled
from core.jobs import Ended
from core.presets import PRESETS, flags, preset
from tests import small_models

PROBES = json.loads((Path(__file__).parent / "probes.json").read_text(encoding="utf-8"))
WORDS = "good bad fine dull plot cast film scene never really".split()


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return small_models.write(tmp_path_factory.mktemp("models"))


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def table(tmp_path) -> Path:
    texts = [f"{WORDS[i % 10]} {WORDS[i // 10 % 10]} {WORDS[i // 100]} number {i}" for i in range(400)]
    path = tmp_path / "reviews.csv"
    pd.DataFrame({"text": texts, "label": [i % 2 for i in range(400)]}).to_csv(path, index=False)
    return path


def answer(capsys, *argv: object) -> dict:
    """The JSON object that a successful command prints."""
    assert main([str(word) for word in argv]) == 0
    return json.loads(capsys.readouterr().out)


def refusal(capsys, *argv: object) -> str:
    """The sentence of a command that is refused; nothing is on stdout."""
    try:
        assert main([str(word) for word in argv]) == 2
    except SystemExit as parsed:  # tyro's own words for a flag that it does not know
        assert parsed.code == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Traceback" not in shown.err
    return shown.err


def test_predict_answers_one_review(capsys, models):
    found = answer(capsys, "predict", "--model", models / "imdb-encoder", "--text", "the film is good", "--json")
    assert list(found) == ["label", "probabilities", "tokens_read", "tokens_left_out"]
    assert sum(found["probabilities"].values()) == pytest.approx(1)
    assert found["label"] == max(found["probabilities"], key=found["probabilities"].get)
    assert (found["tokens_read"], found["tokens_left_out"]) == (4, 0)


@pytest.mark.parametrize("name", ["imdb-encoder", "imdb-bilstm"])
def test_attend_gives_a_row_for_each_query(capsys, models, name):
    found = answer(capsys, "attend", "--model", models / name, "--text", "good film", "--json")
    assert found["tokens"] == ["good", "film"] and found["spans"] == [[0, 4], [5, 9]]
    shape = (2, 3, 2, 2) if name == "imdb-encoder" else (1, 1, 1, 2)
    weights = found["weights"]
    assert (len(weights), len(weights[0]), len(weights[0][0]), len(weights[0][0][0])) == shape
    assert all(sum(row) == pytest.approx(1, abs=1e-4) for layer in weights for head in layer for row in head)


@pytest.mark.parametrize("probe", PROBES)
@pytest.mark.parametrize("verb", ["predict", "attend"])
def test_every_probe_is_answered_or_refused_in_a_sentence(capsys, models, verb, probe):
    command = (verb, "--model", models / "imdb-bilstm", f"--text={PROBES[probe]}", "--json")
    if not PROBES[probe].strip():
        assert "expected a review of at least one word" in refusal(capsys, *command)
        return
    found = answer(capsys, *command)
    if verb == "attend":
        assert all(PROBES[probe][start:end] for start, end in found["spans"])


def test_a_table_is_written_back_with_what_was_predicted(capsys, models, table):
    found = answer(capsys, "predict", "--model", models / "imdb-encoder", "--file", table, "--json")
    labelled = pd.read_csv(found["out"])
    assert found["n"] == len(labelled) == 400
    assert labelled[["text", "label"]].equals(pd.read_csv(table))
    assert labelled["predicted_probability" if "predicted_probability" in labelled else "probability"].between(0.5, 1).all()
    assert "there is a file already" in refusal(capsys, "predict", "--model", models / "imdb-encoder", "--file", table)


@pytest.mark.parametrize("command", [("evaluate", "--data"), ("predict", "--file")])
def test_what_was_assumed_of_a_table_is_said_beside_the_answer(capsys, models, tmp_path, command):
    verb, flag = command
    path = tmp_path / "reviews.csv"
    path.write_text("text;label\ngood;1\n ;0\nbad;0\n", encoding="utf-16")
    said = ["UTF-16, as its byte order mark says", "semicolons between columns", "the first line holds the column names"]
    if verb == "evaluate":
        said.append("left out 1 of 3 rows, without text: the first is row 2")
    assert main([verb, "--model", str(models / "one-head"), flag, str(path)]) == 0
    shown = capsys.readouterr()
    assert [line for line in shown.err.splitlines() if line.startswith("data: ")] == [f"data: {note}" for note in said]
    assert "UTF-16" not in shown.out
    (tmp_path / "reviews.labelled.csv").unlink(missing_ok=True)
    assert answer(capsys, verb, "--model", models / "one-head", flag, path, "--json")["assumed"] == said


@pytest.mark.parametrize("suffix", [".tsv", ".jsonl"])
def test_a_labelled_table_may_be_of_another_format(capsys, models, table, tmp_path, suffix):
    out = tmp_path / f"out{suffix}"
    answer(capsys, "predict", "--model", models / "one-head", "--file", table, "--out", out, "--json")
    assert open_as_named(out).frame["text"].tolist() == pd.read_csv(table)["text"].tolist()


def test_evaluate_measures_a_table(capsys, models, table):
    found = answer(capsys, "evaluate", "--model", models / "imdb-bilstm", "--data", table, "--json")
    assert list(found) == ["n", "accuracy", "low", "high", "f1", "buckets", "assumed"]
    assert found["n"] == 400 and found["low"] < found["accuracy"] < found["high"]
    assert [bucket["name"] for bucket in found["buckets"]] == ["1-32", "33-96", "97-224", "over 224"]
    assert [bucket["n"] for bucket in found["buckets"]] == [400, 0, 0, 0]
    assert found["buckets"][1]["accuracy"] is None


def test_train_takes_every_promised_flag(capsys, table, tmp_path):
    flags = "--epochs 1 --batch-size 16 --lr 1e-3 --warmup-ratio 0.2 --d-model 12 --n-heads 3 --n-layers 2 --d-ff 8"
    more = "--max-len 16 --vocab-size 120 --seed 3 --backend sdpa --device cpu --limit 300"
    command = ["train", "--preset", "tiny", "--data", table, "--out", tmp_path / "run", *flags.split(), *more.split(), "--json"]
    found = answer(capsys, *command)
    assert {"reviews_per_s", "tokens_per_s", "train_s", "val_accuracy", "model_dir"} <= set(found)
    run = json.loads((Path(found["model_dir"]) / "run.json").read_text())
    model, training = run["config"]["model"], run["config"]["training"]
    assert (model["d_model"], model["n_heads"], model["n_layers"], model["d_ff"], model["max_len"]) == (12, 3, 2, 8, 16)
    assert (training["epochs"], training["batch_size"], training["lr"], training["warmup_ratio"]) == (1, 16, 1e-3, 0.2)
    assert (training["seed"], run["training"]["backend"], sum(run["data"]["n"].values())) == (3, "sdpa", 300)
    assert run["command"].startswith("python -m core train --preset tiny")
    assert answer(capsys, "predict", "--model", found["model_dir"], "--text", "good", "--json")["tokens_read"] == 1
    assert "there is a model already" in refusal(capsys, *command)


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("predict --model {models}/gone --text good", "there is no such folder"),
        ("predict --model {models}/imdb-encoder", "expected --text or --file"),
        ("predict --model {models}/imdb-encoder --text good --file {table}", "expected one"),
        ("predict --model {models}/imdb-encoder --file {table} --text-column review", "the table has 'text', 'label'"),
        ("evaluate --model {models}/imdb-encoder --data {table} --label-column text", "expected one of negative, positive"),
        ("evaluate --model {models}/imdb-encoder --data {tmp}/gone.csv", "gone.csv"),
        ("train --preset huge --out {tmp}/run", "expected one of tiny"),
        ("train --n-heads 7 --out {tmp}/run", "expected a divisor of d_model"),
        ("train --data imbd --out {tmp}/run", "expected one of imdb, rotten-tomatoes"),
        ("train --lr 1e6 --out {tmp}/run", "lr: got 1000000"),
        ("train --epochs 0 --out {tmp}/run", "epochs: got 0"),
        ("train --epochs many --out {tmp}/run", "--epochs"),
        ("train --limit 0 --out {tmp}/run", "limit: got 0, expected int from 1 to 1000000000 or none"),
        ("train --dropout 2 --out {tmp}/run", "dropout: got 2.0, expected float from 0 to 0.95"),
        ("train --betas 1 2 --out {tmp}/run", "betas: got (1.0, 2.0), expected two numbers from 0 to below 1"),
        ("train --backend flash --out {tmp}/run", "Expected one of ('auto', 'eager', 'sdpa',"),
        ("train --preset bilstm --d-model 64 --out {tmp}/run", "Unrecognized options: --d-model"),
        ("train --out {tmp}/run --preset", "--preset"),
        ("train --colour red --out {tmp}/run", "--colour"),
        ("train --data {table} --limit 3 --out {tmp}/run", "use 200 or more"),
        ("train --preset tiny --data {table} --out {table}", "choose another"),
    ],
)
def test_a_wrong_choice_is_one_sentence(capsys, models, table, tmp_path, command, sentence):
    words = [word.format(models=models, table=table, tmp=tmp_path) for word in command.split()]
    said = refusal(capsys, *words)
    assert sentence in " ".join(said.replace("│", " ").split())
    assert "dummy" not in said, "what the parser calls its own parts"
    assert said.startswith("error: ") == (said.count("\n") == 1), "a sentence, or the parser's frame about a flag"
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (OSError(28, "No space left on device"), 1, "error: No space left on device"),
        (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB\nmore"), 1, "error: there was not enough memory"),
        (RuntimeError("CUDA driver error\nmore"), 1, "error: RuntimeError: CUDA driver error"),
        (MemoryError(), 1, "error: there was not enough memory"),
        (Ended("the system asked it to end after step 7"), 130, "after step 7; the same command goes on from there"),
        (KeyboardInterrupt(), 130, "stopped from the keyboard; the same command goes on from there"),
    ],
)
def test_what_goes_wrong_is_one_sentence(capsys, table, tmp_path, monkeypatch, error, code, sentence):
    def train(*_: object) -> None:
        raise error

    monkeypatch.setattr("core.training.run.train", train)
    assert main(["train", "--data", str(table), "--out", str(tmp_path / "run"), "--json"]) == code
    shown = capsys.readouterr()
    assert sentence in shown.err and shown.err.count("\n") == 1 and shown.out == ""


def test_the_folder_that_one_is_in_can_be_the_run(capsys, table, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    answer(capsys, "train", "--preset", "tiny", "--epochs", "1", "--data", table, "--out", ".", "--json")
    assert (tmp_path / "here" / "model" / "run.json").is_file()


def test_a_table_of_one_class_is_refused(capsys, models, tmp_path):
    path = tmp_path / "one.csv"
    path.write_text("text,label\ngood film,1\nfine film,1\n")
    assert "at least two classes" in refusal(capsys, "evaluate", "--model", models / "imdb-encoder", "--data", path)
    assert "two classes" in refusal(capsys, "train", "--data", path, "--out", tmp_path / "run")


def test_what_was_left_out_of_a_table_is_said_and_kept(capsys, table, tmp_path):
    lines = table.read_text().splitlines()
    path = tmp_path / "hotel.csv"
    lines[7] = ",1"
    path.write_bytes("\r\n".join([*lines, lines[3].upper(), "schön ist das; wirklich,1"]).encode("cp1252"))
    command = ["train", "--preset", "tiny", "--epochs", "1", "--data", str(path), "--out", str(tmp_path / "run")]
    assert main(command) == 0
    notes = [
        "Windows-1252, since it is no UTF-8",
        "commas between columns",
        "the first line holds the column names",
        "left out 1 of 402 rows, without text: row 7",
        "left out 1 of 402 rows, with the text of an earlier row: row 401",
    ]
    said = capsys.readouterr().err
    assert [line.removeprefix("data: ") for line in said.splitlines() if line.startswith("data: ")] == notes
    run = json.loads((tmp_path / "run" / "model" / "run.json").read_text())
    assert (run["data"]["notes"], sum(run["data"]["n"].values())) == (notes, 400)


def test_the_module_runs_as_a_command():
    command = [sys.executable, "-m", "core", "predict", "--model", "models/imdb-bilstm", "--text", "superb", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["label"] == "positive"
    assert done.stderr == ""


@pytest.mark.parametrize("verb", ["train", "evaluate", "predict", "attend"])
def test_each_verb_explains_itself(capsys, verb):
    with pytest.raises(SystemExit) as done:
        main([verb, "--help"])
    assert done.value.code == 0
    assert "--json" in capsys.readouterr().out


def test_training_tells_a_person_what_it_does(capsys, table, tmp_path):
    assert main(["train", "--preset", "tiny", "--data", str(table), "--epochs", "1", "--out", str(tmp_path / "run")]) == 0
    shown = capsys.readouterr()
    assert "reviews, cpu" in shown.err
    assert "epoch 1: training loss" in shown.err
    assert shown.out.startswith("validation accuracy")


def test_one_process_may_train_in_one_precision_and_then_in_another(capsys, table, tmp_path):
    for precision in ("float32", "bfloat16"):
        out = tmp_path / precision
        command = (
            "train",
            "--preset",
            "tiny",
            "--data",
            table,
            "--epochs",
            "1",
            "--precision",
            precision,
            "--out",
            out,
            "--json",
        )
        assert answer(capsys, *command)["best_epoch"] == 1
        assert json.loads((out / "model/run.json").read_text())["training"]["precision"] == precision


def test_training_never_writes_into_a_folder_that_is_a_model(capsys, models, table):
    folder = models / "one-head"
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    assert "there is a model already" in refusal(capsys, "train", "--preset", "tiny", "--data", table, "--out", folder)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def _changed(name: str) -> RunConfig:
    """A preset with every knob turned, as far as one can be turned without asking for another kind of network."""
    base = preset(name)
    if base.model.kind == "linear":
        model = {"max_len": 77, "truncation": "head+tail", "vocab_size": 123, "longest_run": 3, "c_values": (0.5, 2.0)}
        return replace(base, model=replace(base.model, **model), training=replace(base.training, seed=7))
    model = {"max_len": 77, "token_dropout": 0.05, "truncation": "head+tail", "vocab_size": 123}
    if base.model.kind == "encoder":
        model |= {"residual": False, "embedding_scale": not base.model.embedding_scale, "norm": "pre", "positional": "none"}
    return RunConfig(
        model=replace(base.model, **model),
        reviews=DataConfig(data="a b/$x.csv", text_column=("the title", "body"), label_column="-stars", limit=None),
        training=replace(base.training, betas=(0.8, 0.99), clip_norm=None, lr=1e-5, epochs=2, schedule="linear"),
    )


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("change", [preset, _changed], ids=["as it is", "changed"])
def test_the_flags_of_a_configuration_are_read_as_that_configuration(name, change, tmp_path, monkeypatch):
    heard = []
    monkeypatch.setattr("core.training.run.train", lambda config, *_: heard.append(config) or Cancelled())
    assert main(["train", *flags(name, change(name)), "--out", str(tmp_path / "run")]) == 0
    assert heard == [change(name)]
