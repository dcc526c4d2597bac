"""Folders of runs, whole and damaged, read, renamed, deleted and compared."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest

from core import jobs, run_folder, runs
from core.artifact import model_folders
from core.checked import to_json
from core.config import BiLSTMArchitecture, DataConfig, ExperimentConfig, RunConfig, TrainingConfig
from core.events import Failed, Started, TrainingFinished

FINISHED = TrainingFinished(
    reviews_per_s=50.0, tokens_per_s=9000.0, train_s=3.0, best_epoch=1, val_accuracy=0.8, model_dir="model"
)


def make(root: Path, id: str, config: RunConfig | None = None, accuracy: float | None = None, minute: int = 0) -> Path:
    """A run that is over: failed, or with a model of that accuracy."""
    folder = root / id
    folder.mkdir(parents=True)
    request = {"argv": ["train"], "title": None, "created": datetime(2026, 5, 1, 12, minute, tzinfo=UTC).isoformat()}
    (folder / "request.json").write_text(json.dumps(request))
    if config is not None:
        (folder / "config.json").write_text(json.dumps(to_json(config)))
    run_folder.append_event(folder, Started(device="cpu"))
    if accuracy is None:
        run_folder.append_event(folder, Failed(reason="no"))
        return folder
    sides = {"validation": {"n": 40, "accuracy": accuracy, "low": 0.1, "high": 0.9, "f1": 0.5, "buckets": []}}
    (folder / "model").mkdir()
    (folder / "model" / "run.json").write_text(
        json.dumps({"metrics": sides, "training": {"train_s": 3.0, "reviews_per_s": 50.0, "device": "cpu"}})
    )
    run_folder.append_event(folder, FINISHED)
    return folder


def test_a_run_is_read(tmp_path):
    config = RunConfig(training=TrainingConfig(lr=0.01))
    folder = make(tmp_path, "a", config, 0.75)
    run = runs.read("a", tmp_path)
    assert (run.id, run.name, run.folder, run.model) == ("a", "a", folder, folder / "model")
    assert (run.state, run.config, run.problems) == ("succeeded", config, ())
    assert run.created == datetime(2026, 5, 1, 12, tzinfo=UTC)
    assert run.events == (Started(device="cpu"), FINISHED)
    assert run.metrics["validation"]["accuracy"] == 0.75


def test_the_newest_is_first(tmp_path):
    for id, minute in (("b", 1), ("c", 3), ("a", 2)):
        make(tmp_path, id, minute=minute)
    assert [run.id for run in runs.all_runs(tmp_path)] == ["c", "a", "b"]


def test_what_a_run_says_is_read_on_and_begins_anew_with_it(tmp_path):
    folder = make(tmp_path, "a")
    assert runs.read("a", tmp_path).events == (Started(device="cpu"), Failed(reason="no"))
    run_folder.append_event(folder, FINISHED)
    assert runs.read("a", tmp_path).events == (Started(device="cpu"), Failed(reason="no"), FINISHED)
    (folder / "events.jsonl").rename(folder / "old")  # so that no other file is given its number
    assert runs.read("a", tmp_path).events == ()
    for _ in range(9):
        run_folder.append_event(folder, Started(device="cuda"))
    assert runs.read("a", tmp_path).events == (Started(device="cuda"),) * 9


HEADER = b'{"__metadata__":{"step":"48"}}'


@pytest.mark.parametrize(("content", "step"), [
    (len(HEADER).to_bytes(8, "little") + HEADER + b"numbers", 48),
    (b"", None), (b"\xff" * 99, None), ((99).to_bytes(8, "little") + b"[]", None), ((2).to_bytes(8, "little") + b"{}", None),
])  # fmt: skip
def test_a_checkpoint_tells_its_step_and_its_size(tmp_path, content, step):
    folder = make(tmp_path, "a", RunConfig())
    assert runs.read("a", tmp_path).kept is None
    (folder / "checkpoint.safetensors").write_bytes(content)
    kept = runs.read("a", tmp_path).kept
    assert kept == (None if step is None else runs.Kept(step=step, n_bytes=len(content)))


def test_only_what_is_over_and_came_to_no_end_can_go_on(tmp_path):
    make(tmp_path, "failed", RunConfig())
    make(tmp_path, "unknown")
    make(tmp_path, "done", RunConfig(), 0.8)
    assert {run.id: run.can_resume for run in runs.all_runs(tmp_path)} == {"failed": True, "unknown": False, "done": False}
    with jobs.hold(tmp_path / "failed", "cpu", RunConfig()):
        assert not runs.read("failed", tmp_path).can_resume
    assert not runs.read_model(tmp_path / "done" / "model").can_resume


def test_without_runs_there_are_none(tmp_path):
    assert runs.all_runs(tmp_path / "nowhere") == []


def test_the_environment_names_the_root(tmp_path, monkeypatch):
    make(tmp_path, "a")
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path))
    assert [run.id for run in runs.all_runs()] == ["a"]
    monkeypatch.delenv("ATTENTION_LAB_RUNS")
    assert runs.runs_root() == jobs.ROOT / "runs"


def test_a_run_that_was_not_launched_knows_when_it_began(tmp_path):
    with jobs.hold(tmp_path / "mine", "cpu", RunConfig()):
        run = runs.read("mine", tmp_path)
    assert run.state == "running" and run.config == RunConfig()
    assert abs((datetime.now(UTC) - run.created).total_seconds()) < 60


NEWER = to_json(RunConfig()) | {"sails": 3}


@pytest.mark.parametrize(
    ("file", "content", "problem"),
    [
        ("config.json", json.dumps(NEWER), "the configuration is of another version"),
        ("config.json", '{"model": 3, "reviews": {}, "training": {}}', "the configuration is of another version"),
        ("config.json", '{"model": {"kind": ["x"]}, "reviews": {}, "training": {}}', "the configuration is of another version"),
        ("config.json", "{", "config.json cannot be read"),
        ("request.json", "[]", "request.json holds list, expected an object"),
        ("request.json", '{"created": "yesterday"}', "request.json cannot be read"),
        ("request.json", "\0\xff", "request.json cannot be read"),
        ("request.json", "[" * 100_000, "request.json cannot be read"),
        ("config.json", "[" * 100_000, "config.json cannot be read"),
        ("sweep.json", "[" * 100_000, "sweep.json cannot be read"),
        ("name.json", "3", "name.json holds int, expected an object"),
        ("model/run.json", '{"metrics": ', "run.json cannot be read"),
    ],
)
def test_a_damaged_run_is_shown_with_what_is_wrong(tmp_path, file, content, problem):
    folder = make(tmp_path, "a", RunConfig(), 0.5)
    (folder / file).write_bytes(content.encode("latin-1"))
    (run,) = runs.all_runs(tmp_path)
    assert run.id == "a" and run.state == "succeeded"
    assert [text for text in run.problems if text.startswith(problem)] and len(run.problems) == 1
    assert (run.config is None) == (file == "config.json")
    assert len(runs.compare([run])) == 1


def test_an_empty_folder_and_a_file_are_no_runs_and_a_log_alone_is_one_that_was_interrupted(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "log.txt").touch()
    (tmp_path / "notes.txt").touch()
    (run,) = runs.all_runs(tmp_path)
    assert (run.id, run.state, run.config, run.model, run.events, run.metrics) == ("b", "interrupted", None, None, (), {})


def test_events_that_cannot_be_read_are_a_problem_of_their_run_alone(tmp_path):
    folder = make(tmp_path, "a", None, 0.5)
    (folder / "events.jsonl").unlink(missing_ok=True)
    (folder / "events.jsonl").mkdir()
    make(tmp_path, "b", None, 0.5)
    damaged, whole = sorted(runs.all_runs(tmp_path), key=lambda run: run.id)
    assert damaged.problems == ("events.jsonl cannot be read (Is a directory)",) and damaged.events == ()
    assert whole.problems == ()


def test_a_name_without_end_has_one(tmp_path):
    folder = make(tmp_path, "a", None, 0.5)
    (folder / "request.json").write_text(json.dumps({"argv": [], "title": "x" * 10_000}))
    assert runs.read("a", tmp_path).name == "x" * (runs.NAME_LENGTH - 1) + "…"


@pytest.mark.parametrize(
    "model_json", ['{"metrics": [1]}', '{"metrics": {"test": 3}}', '{"training": [1]}', '{"config": [1]}', "[]", "null"]
)
def test_a_strange_record_does_not_stop_a_comparison(tmp_path, model_json):
    folder = make(tmp_path, "a", None, 0.5)
    (folder / "model" / "run.json").write_text(model_json)
    assert runs.compare(runs.all_runs(tmp_path))["validation.accuracy"].isna().all()


def test_a_figure_is_a_finite_number_or_none(tmp_path):
    folder = make(tmp_path, "a", None, 0.5)
    record = {"n": 3, "x": {"share": 0.25, "yes": True, "text": "4", "none": None}}
    (folder / "model" / "run.json").write_text(
        json.dumps(record)[:-1] + ', "nan": NaN, "inf": Infinity, "huge": 1' + "0" * 400 + "}"
    )
    run = runs.read("a", tmp_path)
    assert run.figure("n") == 3 and run.figure("x", "share") == 0.25 and run.recorded("x", "text") == "4"
    for path in (("x",), ("x", "yes"), ("x", "text"), ("x", "none"), ("n", "x"), ("y", "z"), ("nan",), ("inf",), ("huge",)):
        assert run.figure(*path) is None


def test_a_model_without_its_run_reads_as_one_that_succeeded(tmp_path):
    trained = make(tmp_path / "runs", "mine", None, 0.75) / "model"
    trained.rename(tmp_path / "mine")
    record = json.loads((tmp_path / "mine" / "run.json").read_text())
    record |= {"finished": "2026-05-01T12:00:00+00:00", "config": to_json(RunConfig())}
    (tmp_path / "mine" / "run.json").write_text(json.dumps(record))
    (tmp_path / "mine" / "config.json").write_text('{"model_type": "the network\'s own"}')
    model = runs.read_model(tmp_path / "mine")
    assert (model.id, model.name, model.folder, model.model) == ("models/mine", "mine", tmp_path / "mine", tmp_path / "mine")
    assert (model.state, model.config, model.problems, model.is_run) == ("succeeded", RunConfig(), (), False)
    assert model.created == datetime(2026, 5, 1, 12, tzinfo=UTC)
    assert model.figure("metrics", "validation", "accuracy") == 0.75 and model.events == ()
    assert runs.read("mine", tmp_path / "runs").is_run
    with pytest.raises(ValueError, match="there is no run"):
        runs.delete(model.id, tmp_path)
    assert (tmp_path / "mine").is_dir()


def test_a_damaged_model_says_so(tmp_path):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "run.json").write_text('{"finished": "soon", "config": {"model": 3}}')
    assert [problem[:26] for problem in runs.read_model(tmp_path / "m").problems] == [
        "run.json cannot be read (I", "the configuration is of an"
    ]  # fmt: skip


# Names


def test_names_are_read_without_the_rest(tmp_path):
    for id in "ab":
        make(tmp_path, id)
    runs.rename("b", "<b>x</b>", tmp_path)
    assert runs.names(tmp_path) == {"a": "a", "b": "<b>x</b>"}


GIVEN = "20260501-120000-123456-1a2b"


@pytest.mark.parametrize(
    ("names", "titles"),
    [
        ({GIVEN: "first"}, ["first · 1a2b"]),
        ({GIVEN: GIVEN, "b": "b", "models/m": "m"}, [GIVEN, "b", "m"]),
        ({"b": "first", "c": "first"}, ["first · b", "first · c"]),
        ({GIVEN: "x" * 200}, ["x" * 39 + "… · 1a2b"]),
        ({GIVEN: "a", GIVEN.replace("1200", "1300"): "a"}, [f"a · 1a2b ({GIVEN})", "a · 1a2b (20260501-130000-123456-1a2b)"]),
        ({"m": "m", "models/m": "m"}, ["m (m)", "m (models/m)"]),
        ({"c": "x" * 50 + "c", "d" + "x" * 60: "x" * 50 + "d"}, ["x" * 39 + "… · c", "x" * 39 + "… · d" + "x" * 60]),
        ({}, []),
    ],
)
def test_a_title_is_a_name_that_no_other_has(names, titles):
    assert list(runs.titles(names).items()) == list(zip(names, titles, strict=True))


def test_ids_that_are_given_are_shortened():
    id = run_folder.new_id()
    assert runs.titles({id: "x"}) == {id: f"x · {id[-4:]}"}


def test_half_a_sign_in_a_name_can_be_shown(tmp_path):
    (make(tmp_path, "a") / "name.json").write_text('{"name": "a\\ud800\\n b"}')
    assert runs.read("a", tmp_path).name == runs.names(tmp_path)["a"] == "a? b"


def test_half_a_sign_in_what_a_run_was_asked_can_be_shown(tmp_path):
    config = to_json(RunConfig()) | {"reviews": to_json(DataConfig(data="a\ud800.csv"))}
    folder = make(tmp_path, "a")
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "request.json").write_text(json.dumps({"argv": ["train", "--data", "a\ud800.csv"]}))
    run = runs.read("a", tmp_path)
    assert run.config is not None and run.config.reviews.data == "a?.csv"
    assert run.argv == ("train", "--data", "a?.csv")


@pytest.mark.parametrize("name", ["<a href=x>", "../../etc", "$x$ *b* :red[x]", "影 ❤", "a" * 200])
def test_a_name_is_data(tmp_path, name):
    folder = make(tmp_path, "a")
    runs.rename("a", f"  {name}\n", tmp_path)
    assert runs.read("a", tmp_path).name == name
    assert [path.name for path in tmp_path.iterdir()] == ["a"] and folder.is_dir()


def test_without_a_name_a_run_is_called_by_its_title_then_its_id(tmp_path):
    folder = make(tmp_path, "a")
    runs.rename("a", "x", tmp_path)
    runs.rename("a", "  ", tmp_path)
    assert runs.read("a", tmp_path).name == "a"
    (folder / "request.json").write_text('{"title": "a sweep"}')
    assert runs.read("a", tmp_path).name == "a sweep"


def test_a_name_may_be_too_long(tmp_path):
    make(tmp_path, "a")
    with pytest.raises(ValueError, match="got 201 characters"):
        runs.rename("a", "a" * 201, tmp_path)


@pytest.mark.parametrize("id", ["..", ".", "", "../runs/a", "a/", "a/model", ".trash", "b", "a\0"])
def test_an_id_is_never_a_path(tmp_path, id):
    make(tmp_path / "runs", "a", accuracy=0.5)
    (tmp_path / "runs" / ".trash").mkdir()
    for act in (runs.read, runs.delete, lambda id, root: runs.rename(id, "x", root)):
        with pytest.raises(ValueError, match="there is no run"):
            act(id, tmp_path / "runs")
    with pytest.raises(ValueError, match="in the trash"):
        runs.restore(id, tmp_path / "runs")


# The trash


def test_a_deleted_run_can_be_brought_back(tmp_path):
    make(tmp_path, "a", RunConfig(), 0.5)
    make(tmp_path, "b")
    before = runs.read("a", tmp_path)
    runs.delete("a", tmp_path)
    assert [run.id for run in runs.all_runs(tmp_path)] == ["b"]
    runs.restore("a", tmp_path)
    assert runs.read("a", tmp_path) == before


def test_the_same_id_can_be_deleted_twice_and_the_last_comes_back_first(tmp_path):
    for accuracy in (0.5, 0.6):
        make(tmp_path, "a", accuracy=accuracy)
        runs.delete("a", tmp_path)
    runs.restore("a", tmp_path)
    assert runs.read("a", tmp_path).metrics["validation"]["accuracy"] == 0.6
    with pytest.raises(ValueError, match="there is a run 'a' again"):
        runs.restore("a", tmp_path)
    runs.delete("a", tmp_path)
    assert len(list((tmp_path / ".trash").iterdir())) == 2


def test_a_living_run_is_not_deleted(tmp_path):
    with jobs.hold(tmp_path / "a", "cpu"), pytest.raises(ValueError, match="is running; stop it"):
        runs.delete("a", tmp_path)
    runs.delete("a", tmp_path)
    assert runs.all_runs(tmp_path) == []


# Comparing


def test_runs_are_compared_by_what_differs_then_by_figures(tmp_path):
    base = RunConfig(reviews=DataConfig(limit=100))
    make(tmp_path, "a", base, 0.5, minute=1)
    make(tmp_path, "b", replace(base, training=replace(base.training, lr=0.01, clip_norm=None)), 0.6, minute=2)
    make(tmp_path, "c", replace(base, model=BiLSTMArchitecture()), None, minute=3)
    make(tmp_path, "d", None, 0.7, minute=4)
    table = runs.compare(runs.all_runs(tmp_path))
    assert list(table.index) == ["d", "c", "b", "a"]
    assert list(table.columns[:2]) == ["name", "state"] and list(table.columns[-3:]) == list(runs.RATES)
    knobs = list(table.columns[2 : list(table.columns).index("validation.n")])
    assert {"training.lr", "training.clip_norm", "model.kind", "model.d_hidden", "model.n_heads"} <= set(knobs)
    assert not {"training.seed", "reviews.limit", "model.max_len", "training.betas"} & set(knobs)
    assert table["training.lr"].tolist()[1:] == [3e-4, 0.01, 3e-4] and table["training.lr"].isna()["d"]
    assert table["training.clip_norm"].tolist()[1:] == [1.0, "none", 1.0]
    assert table["model.n_heads"].isna().tolist() == [True, True, False, False] and table["model.n_heads"]["a"] == 8
    assert table["validation.accuracy"].dropna().to_dict() == {"d": 0.7, "b": 0.6, "a": 0.5}
    assert table["validation.accuracy"]["c"] is pd.NA
    assert table["state"].to_dict() == {"a": "succeeded", "b": "succeeded", "c": "failed", "d": "succeeded"}
    assert table["train_s"]["a"] == 3.0 and table["test.accuracy"].isna().all()


def test_what_differs_is_told_of_each_run_that_has_it(tmp_path):
    base = RunConfig()
    make(tmp_path, "a", base, minute=3)
    make(tmp_path, "b", replace(base, model=BiLSTMArchitecture()), minute=2)
    make(tmp_path, "c", None, minute=1)
    found = runs.differences(runs.all_runs(tmp_path))
    assert list(found) == ["a", "b", "c"] and found["c"] == {}
    assert found["a"]["model.kind"] == "encoder" and found["b"]["model.kind"] == "bilstm"
    assert "model.n_heads" in found["a"] and "model.n_heads" not in found["b"] and "model.max_len" not in found["a"]
    assert runs.differences([runs.read("a", tmp_path)]) == {"a": {}}


def test_equal_names_stay_two_rows(tmp_path):
    for id in "ab":
        make(tmp_path, id, RunConfig())
        runs.rename(id, "same", tmp_path)
    table = runs.compare(runs.all_runs(tmp_path))
    assert list(table["name"]) == ["same", "same"] and "validation.n" == table.columns[2]


def test_nothing_is_compared_to_nothing():
    assert len(runs.compare([])) == 0


def test_a_hundred_runs_are_listed_without_reading_their_events(tmp_path, monkeypatch):
    for i in range(100):
        make(tmp_path, f"{i}", RunConfig(), 0.5)
    monkeypatch.setattr(run_folder, "read_events", lambda *_: pytest.fail("all events were read"))
    assert len(runs.all_runs(tmp_path)) == 100


@pytest.mark.parametrize("act", ["rename", "delete", "restore"])
def test_a_disk_that_takes_nothing_is_a_sentence_and_nothing_is_lost(tmp_path, monkeypatch, act):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    make(tmp_path, "a")
    runs.rename("a", "mine", tmp_path)
    if act == "restore":
        runs.delete("a", tmp_path)
    with monkeypatch.context() as broken:
        for way in ("write_text", "rename", "replace", "mkdir"):
            broken.setattr(Path, way, full)
        with pytest.raises(ValueError, match="the run 'a' cannot be .* \\(No space left on device\\); make room there"):
            runs.rename("a", "other", tmp_path) if act == "rename" else getattr(runs, act)("a", tmp_path)
    if act == "restore":
        runs.restore("a", tmp_path)
    assert runs.read("a", tmp_path).name == "mine"
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["events.jsonl", "name.json", "request.json"]


def test_a_foreign_file_in_the_trash_does_not_matter(tmp_path):
    make(tmp_path, "a")
    runs.delete("a", tmp_path)
    (tmp_path / ".trash" / ".DS_Store").touch()
    runs.restore("a", tmp_path)
    assert runs.read("a", tmp_path).id == "a"


# Experiments


@pytest.fixture
def experiment(tmp_path) -> ExperimentConfig:
    """One of two members, of which one has a model."""
    config = ExperimentConfig(ablations=("heads-1",), seeds=(0,))
    folder = make(tmp_path, "20261130-120000-000000-ab12")
    (folder / "experiment.json").write_text(json.dumps(to_json(config)))
    for name, accuracy in (("f1", 0.75), ("f2", None)):
        place = make(folder / "members", name, RunConfig(), accuracy)
        (place / "name.json").write_text(json.dumps({"name": f"heads-1, seed {accuracy}"}))
    return config


def test_an_experiment_is_one_run_and_its_members_are_read_beside(tmp_path, experiment):
    make(tmp_path, "b", RunConfig(), 0.75, minute=1)
    other, run = runs.all_runs(tmp_path)
    assert (run.experiment, run.config, run.is_training, other.is_training) == (experiment, None, False, True)
    assert run.can_resume is (run.state == "failed")
    (member,) = runs.members(tmp_path)
    assert (member.id, member.name) == (f"{run.id}/members/f1", "heads-1, seed 0.75")
    assert (member.config, member.is_run, member.is_training) == (RunConfig(), False, False)
    assert member.metrics["validation"]["accuracy"] == 0.75 and member.events == (Started(device="cpu"), FINISHED)
    assert runs.read(member.id, tmp_path).folder == member.folder == tmp_path / run.id / "members" / "f1"
    assert runs.titles(runs.names(tmp_path))[member.id] == "heads-1, seed 0.75 · ab12"


def test_a_member_comes_and_goes_with_its_experiment(tmp_path, experiment):
    (member,) = runs.members(tmp_path)
    for act in (runs.delete, lambda id, root: runs.rename(id, "x", root)):
        with pytest.raises(ValueError, match="there is no run"):
            act(member.id, tmp_path)
    runs.delete(member.id.partition("/")[0], tmp_path)
    assert runs.members(tmp_path) == [] and list(runs.names(tmp_path)) == []


def test_the_models_of_members_are_found_by_their_ids(tmp_path, experiment, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path))
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(tmp_path / "none"))
    (member,) = runs.members(tmp_path)
    assert model_folders() == {member.id: member.model}
