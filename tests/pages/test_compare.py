"""Runs in a page: true states, honest differences, and acts that go by id."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from core import jobs, run_folder, runs
from core.checked import to_json
from core.config import BiLSTMArchitecture, DataConfig, RunConfig, TrainingConfig
from core.evaluation.paired import Paired
from core.events import Cancelled, EpochFinished, Event, Failed, Finished, Queued, Started, StepFinished
from core.figures.colors import CATEGORICAL
from core.statistics import Difference
from tests.pages.test_train import STARTED
from ui import compare, launching

CONFIG = RunConfig(reviews=DataConfig(data="/a/place/reviews.csv", limit=5_000))
MARKUP = "<b>x</b> $y$ **z** :red[q] [l](http://x)"
STEP = StepFinished(
    epoch=1, step=40, total_steps=201, loss=0.5, lr=0.001, gradient_norm=1.5, largest_logit=3.0, reviews_per_s=75.2,
    tokens_per_s=9_000.0,
)  # fmt: skip
EPOCH = EpochFinished(epoch=1, step=200, train_loss=0.5, val_loss=0.4, val_accuracy=0.812, elapsed_s=9.0)


def make(root: Path, id: str, *events: Event, config: RunConfig | None = CONFIG, name: str = "", minute: int = 0) -> Path:
    """A run that said so much and is no more."""
    folder = root / id
    folder.mkdir(parents=True)
    created = datetime(2026, 5, 1, 12, minute, tzinfo=UTC).isoformat()
    (folder / "request.json").write_text(json.dumps({"argv": ["train"], "title": name or None, "created": created}))
    if config is not None:
        (folder / "config.json").write_text(json.dumps(to_json(config)))
    for event in (Started(device="cpu"), *events):
        run_folder.append_event(folder, event)
    return folder


def finish(root: Path, id: str, accuracy: float = 0.85, low: float = 0.83, high: float = 0.87, fingerprint: str = "f", **more):
    """A run with a model of that accuracy on the test reviews; `more` is of `make` or takes the place of what is recorded."""
    asked = {key: more.pop(key) for key in ("config", "name", "minute") if key in more}
    folder = make(root, id, STEP, EPOCH, Finished(), **asked)
    record = {
        "metrics": {"test": {"n": 1_200, "accuracy": accuracy, "low": low, "high": high, "f1": 0.8571}},
        "data": {"name": "imdb", "n": {"test": 1_200}, "fingerprint": {"test": fingerprint}},
        "training": {"train_s": 60.0, "reviews_per_s": 75.0},
        "hardware": {"cpu": "A", "threads": 2},
        "peak_memory": {"bytes": 512 * 2**20, "source": "VmHWM"},
        "n_parameters": 1_454_082,
    }
    (folder / "model").mkdir()
    (folder / "model" / "run.json").write_text(json.dumps(record | more))
    return folder


@pytest.fixture
def root(tmp_path, monkeypatch) -> Path:
    """An empty runs/ and no shipped model."""
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(tmp_path / "models"))
    (tmp_path / "runs").mkdir()
    return tmp_path / "runs"


def read(root: Path, *ids: str) -> list[runs.Run]:
    return [runs.read(id, root) for id in ids]


# How a run stands


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ((Queued(ahead=2),), "queued, 2 ahead"),
        ((), "running"),
        ((STEP,), "running, step 40 of 201, 75 reviews/s"),
        ((STEP, EPOCH), "running, epoch 1 validated: 81.2%"),
    ],
)
def test_a_living_run_says_where_it_is(root, events, said):
    with jobs.hold(root / "a", "cpu", CONFIG):
        for event in events:
            run_folder.append_event(root / "a", event)
        assert compare.standing(*read(root, "a")) == said
        jobs.cancel(root / "a")
        assert compare.standing(*read(root, "a")) == f"{said}, asked to stop"


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ((STEP, Finished()), "succeeded"),
        ((STEP, Cancelled()), "cancelled"),
        ((Failed(reason="the loss became nan"),), "failed, the loss became nan"),
        ((STEP,), "interrupted"),
    ],
)
def test_a_run_that_is_over_says_how_it_ended(root, events, said):
    make(root, "a", *events)
    assert compare.standing(*read(root, "a")) == said


def test_a_damaged_folder_says_so(root):
    (finish(root, "a") / "model" / "run.json").write_text("{")
    run = runs.read("a", root)
    assert compare.standing(run).startswith("succeeded; damaged: run.json cannot be read")
    row = compare.overview([run]).iloc[0]
    assert row.isna()[["test", "test 95%", "validation", "training", "parameters"]].all()


def test_the_overview_by_hand(root):
    finish(root, "a", name="first", minute=1)
    make(root, "b", config=replace(CONFIG, model=BiLSTMArchitecture()), minute=2)
    table = compare.overview(read(root, "b", "a"))
    assert table["run"].tolist() == ["b", "first · a"] and table["id"].tolist() == ["b", "a"]
    assert table["model"].tolist() == ["BiLSTM, 1 layer of 2 × 256", "Transformer, 3 layers of 256, 8 heads"]
    assert set(table["data"]) == {"reviews.csv, at most 5,000"}
    row = table.iloc[1]
    assert (row["test"], row["test 95%"], row["training"], row["parameters"]) == (85.0, "83.0 to 87.0%", 60.0, 1_454_082)
    assert table.iloc[0].isna()[["test", "test 95%", "training", "parameters"]].all()
    finish(root, "c", 0.862, 0.84, 0.88)
    finish(root, "d", fingerprint="g")
    found = read(root, "a", "b", "c", "d")
    against = compare.overview(found, found[0])["test vs baseline"].tolist()
    assert against == ["–", "n/a", "+1.2 points", "n/a: other reviews"]


# What differs


def test_only_knobs_that_differ_are_shown_as_people_write_them(root):
    other = replace(CONFIG, training=TrainingConfig(lr=0.01, clip_norm=None), model=replace(CONFIG.model, residual=False))
    make(root, "a")
    make(root, "b", config=other)
    make(root, "c", config=None)
    table = compare.knobs(read(root, "a", "b", "c"))
    assert list(table.columns) == ["a", "b", "c"]
    assert table.to_dict("index") == {
        "residual": {"a": "yes", "b": "no", "c": "n/a"},
        "lr": {"a": "0.0003", "b": "0.01", "c": "n/a"},
        "clip_norm": {"a": "1", "b": "none", "c": "n/a"},
    }
    assert compare.knobs(read(root, "a", "c")).empty


def test_knobs_of_one_kind_of_network_come_after_those_of_both(root):
    make(root, "a")
    make(root, "b", config=replace(CONFIG, model=BiLSTMArchitecture(), training=TrainingConfig(lr=0.01)))
    table = compare.knobs(read(root, "a", "b"))
    assert table.index[:3].tolist() == ["n_layers", "kind", "lr"]
    assert (table.iloc[:3] != "n/a").all(axis=None) and (table.iloc[3:] == "n/a").any(axis=1).all()


def test_runs_of_one_name_keep_a_column_each_and_may_be_called_like_the_table(root):
    for id, name in (("a", "same"), ("b", "same"), ("figure", "figure"), ("knob", "knob")):
        finish(root, id, name=name)
    chosen = read(root, "a", "b", "figure", "knob")
    assert list(compare.figures(chosen, chosen[0]).columns) == ["same · a", "same · b", "figure", "knob"]


# What came of it


def test_figures_against_the_baseline_by_hand(root):
    finish(root, "a")
    finish(root, "b", 0.862, 0.84, 0.88, training={"train_s": 30.0, "reviews_per_s": 150.0}, n_parameters=727_041)
    finish(root, "c", fingerprint="g", peak_memory={"bytes": 2**30, "source": "torch.cuda.max_memory_allocated"})
    make(root, "d", Failed(reason="no"))
    chosen = read(root, "a", "b", "c", "d")
    table = compare.figures(chosen, chosen[0])
    assert not table.isna().any(axis=None) and (table != "").all(axis=None)
    assert table.loc["test accuracy"].tolist() == [
        "85.0% (83.0 to 87.0%, n 1,200)", "86.2% (84.0 to 88.0%, n 1,200)", "85.0% (83.0 to 87.0%, n 1,200)", "n/a",
    ]  # fmt: skip
    assert table.loc["test vs baseline"].tolist() == ["–", "+1.2 points", "n/a: other reviews", "n/a"]
    assert set(table.loc["validation vs baseline"][1:]) == {"n/a"}
    assert table.loc["test F1"].tolist() == ["0.857", "0.857", "0.857", "n/a"]
    assert table.loc["F1 vs baseline"].tolist() == ["–", "+0.000", "n/a: other reviews", "n/a"]
    assert table.loc["training time"].tolist() == ["60.0 s", "30.0 s", "60.0 s", "n/a"]
    assert table.loc["time vs baseline"].tolist() == ["–", "0.500 ×", "1.00 ×", "n/a"]
    assert table.loc["speed vs baseline"].tolist() == ["–", "2.00 ×", "1.00 ×", "n/a"]
    assert table.loc["parameters"].tolist() == ["1,454,082", "727,041", "1,454,082", "n/a"]
    assert table.loc["peak memory"].tolist() == [
        "512 MiB (VmHWM)", "512 MiB (VmHWM)", "1,024 MiB (torch.cuda.max_memory_allocated)", "n/a",
    ]  # fmt: skip
    assert table.loc["memory vs baseline"].tolist() == ["–", "1.00 ×", "n/a", "n/a"]
    assert compare.figures(chosen, chosen[1]).loc["test vs baseline"].tolist() == [
        "-1.2 points",
        "–",
        "n/a: other reviews",
        "n/a",
    ]


def test_against_a_baseline_without_figures_nothing_is_known(root):
    make(root, "a", Failed(reason="no"))
    finish(root, "b")
    chosen = read(root, "a", "b")
    table = compare.figures(chosen, chosen[0])
    against = table.loc[[name for name in table.index if name.endswith("vs baseline")]]
    assert set(against["a"]) == {"–"} and set(against["b"]) == {"n/a"}
    assert compare.findings(chosen, chosen[0], lambda base, run: pytest.fail("nothing is stored")) == []


def better_by(value: float, low: float, high: float, p: float) -> Paired:
    """A comparison with that outcome."""
    f1 = Difference(value=0.0123, low=-0.0041, high=0.03, p=0.2, n=1200)
    return Paired(accuracy=Difference(value=value, low=low, high=high, p=p, n=1200), f1=f1)


F1 = "; F1 +0.012, 95% between -0.004 and +0.030."


NOTHING_SHOWN = "no difference shown: +1.2 points, 95% between -0.4 and +2.8, n = 1,200"


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        ((0.012, -0.004, 0.028, 0.16), f"{NOTHING_SHOWN}, p = 0.160"),
        ((0.05, 0.03, 0.07, 1e-6), "5.0 points better, 95% between +3.0 and +7.0, n = 1,200, p < 0.001"),
        ((-0.05, -0.07, -0.03, 0.0012), "5.0 points worse, 95% between -7.0 and -3.0, n = 1,200, p = 0.001"),
    ],
)
def test_a_verdict_is_of_the_reviews_that_both_read(root, outcome, said):
    finish(root, "a")
    finish(root, "b", name=MARKUP)
    chosen = read(root, "a", "b")
    sentences = compare.findings(chosen, chosen[0], lambda base, run: better_by(*outcome) if base.id == "a" else None)
    assert sentences == [f"{MARKUP} · b against the baseline: {said}{F1}"]


def test_of_several_comparisons_each_has_to_show_more(root):
    for id in "abc":
        finish(root, id)
    chosen = read(root, *"abc")
    outcomes = {"b": better_by(0.02, 0.001, 0.04, 0.03), "c": better_by(0.03, 0.01, 0.05, 0.01)}
    first, second = compare.findings(chosen, chosen[0], lambda base, run: outcomes[run.id])
    assert "b against the baseline: 2.0 points better" in first and first.endswith(f", p = 0.030 (2 comparisons, by Holm){F1}")
    assert "3.0 points better" in second and "p = 0.020" in second
    outcomes["b"] = better_by(0.02, -0.001, 0.04, 0.045)
    outcomes["c"] = better_by(0.03, 0.001, 0.05, 0.03)  # alone it would be shown
    first, second = compare.findings(chosen, chosen[0], lambda base, run: outcomes[run.id])
    assert "no difference shown" in first and "no difference shown" in second and "p = 0.060" in second


def test_what_cannot_be_held_against_the_baseline_says_why(root):
    def refuse(base, run):
        raise ValueError("the test reviews are not the same")

    finish(root, "a")
    finish(root, "b")
    chosen = read(root, "a", "b")
    (said,) = compare.findings(chosen, chosen[0], refuse)
    assert said.endswith("cannot be compared with the baseline: the test reviews are not the same.")


def test_the_page_compares_what_is_stored(page, root, tmp_path):
    for id, right in (("a", 60), ("b", 90)):
        hashes = [f"{i:03}" for i in range(100)]
        logits = [[0.0, 1.0] if i < right else [1.0, 0.0] for i in range(100)]
        stored = pd.DataFrame({"text_hash": hashes, "split": "test", "label": 1, "logits": logits, "words": 1, "tokens": 1})
        measured = {"n": 100, "accuracy": right / 100, "low": 0.5, "high": 0.95, "f1": 0.8}
        folder = finish(root, id, metrics={"test": measured})
        stored.assign(tokens_read=1).to_parquet(folder / "model" / "predictions.parquet")
    choose(page, "a", "b")
    said = [line.value.replace("\\", "") for line in page.markdown if "against the baseline" in line.value]
    better = "b against the baseline: 30.0 points better, 95% between +21.9 and +39.6, n = 100, p < 0.001; F1 +0.197, 95%"
    assert said[0].startswith(better)
    assert page.dataframe[0].value.set_index("id")["test vs baseline"].to_dict() == {"a": "–", "b": "+30.0 points"}
    links = {link.proto.page: link.proto.query_string for link in page.get("page_link")}
    assert "reviews_models=a&reviews_models=b&reviews_which=the+models+disagree" in links["reviews"]
    assert "lengths_models=a&lengths_models=b" in links["lengths"] and "calibration_models=a" in links["calibration"]


def test_other_reviews_are_named_and_not_held_against_each_other(root):
    for id, fingerprint in (("a", "f"), ("b", "g"), ("c", "f")):
        finish(root, id, fingerprint=fingerprint)
    finish(root, "d", data={"name": "imdb"})
    finish(root, "e", data={"name": "imdb"})
    assert compare.other_reviews(read(root, "a", "c")) is None
    assert compare.other_reviews(read(root, "a", "b", "c", "d")) == (
        "These figures are of different reviews and cannot be compared with each other: a, c on 1,200 test reviews of "
        "imdb; b on 1,200 test reviews of imdb; d on reviews that are not on record."
    )
    chosen = read(root, "a", "b", "c")
    findings = compare.findings(chosen, chosen[0], lambda base, run: better_by(0.0, -0.1, 0.1, 1.0))
    assert [sentence[0] for sentence in findings] == ["c"]
    unknown = read(root, "d", "e")
    assert compare.findings(unknown, unknown[0], lambda base, run: pytest.fail("nothing is comparable")) == []
    assert compare.points(unknown[1], unknown[0], "test") == "n/a: other reviews"


def test_other_machines_are_named(root):
    finish(root, "a")
    finish(root, "b", hardware={"cpu": "A", "gpu": "G", "threads": 1})
    finish(root, "c", hardware="not what it should be")
    assert compare.machines(read(root, "a", "c")) is None
    assert compare.machines(read(root, "a", "b")) == (
        "Times and memory are not of the same machine: a on A, 2 threads; b on G, 1 thread."
    )


# The page


@pytest.fixture
def page(root, first_page, monkeypatch) -> AppTest:
    """The page before anything is drawn; runs made in `root` are on it."""
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(root.parent / "models"))
    return first_page.run().switch_page("../pages/compare.py")


def choose(page: AppTest, *ids: str) -> AppTest:
    page.run()
    page.multiselect(key="compare_runs").set_value(list(ids)).run()
    assert not page.exception
    return page


def words(page: AppTest) -> str:
    shown = [*page.markdown, *page.warning, *page.error, *page.info, *page.caption]
    return "\n".join(element.value.replace("\\", "") for element in shown)


def test_nothing_but_the_page_is_shown(page):
    page.run()
    assert page.title[0].value == "Compare" and page.markdown[0].value.startswith("What was set differently")


def test_without_runs_it_says_how_to_make_one(page):
    page.run()
    assert not page.exception and "There is no run yet" in page.info[0].value and not page.multiselect
    (link,) = page.get("page_link")
    assert link.proto.page == "train"


def test_shipped_models_are_rows_that_cannot_be_deleted(page, model_root, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(model_root))
    choose(page, "models/cls", "models/imdb-bilstm")
    assert page.multiselect(key="compare_runs").options[:1] and "There is no run yet" in page.info[0].value
    assert page.dataframe[0].value["run"].tolist().count("cls") == 1
    assert not page.button and "came without its run" in words(page)


def test_the_newest_run_is_first_and_names_are_literal(page, root):
    finish(root, "a", name=MARKUP, minute=1)
    finish(root, "b", name="<b>short</b> $x$ *y*", minute=2)
    choose(page, "a", "b")
    assert page.dataframe[0].value["id"].tolist() == ["b", "a"]
    assert page.multiselect(key="compare_runs").options == ["<b>short</b> $x$ *y* · b", f"{MARKUP} · a"]
    assert [expander.label for expander in page.expander][1] == "\\<b\\>short\\<\\/b\\> \\$x\\$ \\*y\\* · b: succeeded"
    assert "No knob differs." in words(page)
    assert "cannot be compared with the baseline" in words(page)


def test_the_address_holds_ids(page, root):
    for id in "abc":
        finish(root, id, name="same")
    page.query_params["compare_runs"] = ["c", "a", "gone", "../a", "c"]
    page.query_params["compare_baseline"] = "a"
    page.run()
    assert page.multiselect(key="compare_runs").value == ["c", "a"]
    assert page.selectbox(key="compare_baseline").value == "a"
    assert page.dataframe[-1].value.loc["test vs baseline"].tolist() == ["±0.0 points", "–"]
    page.multiselect(key="compare_runs").set_value(["c", "b"]).run()
    assert page.query_params["compare_runs"] == ["c", "b"]
    assert page.selectbox(key="compare_baseline").value == "c"
    assert not page.exception


def test_more_than_eight_in_an_address_are_eight(page, root):
    for id in "abcdefghij":
        make(root, id)
    page.query_params["compare_runs"] = list("abcdefghij")
    page.run()
    assert not page.exception and page.multiselect(key="compare_runs").value == list("abcdefgh")


def test_those_that_are_gone_take_no_place(page, root):
    make(root, "a")
    page.query_params["compare_runs"] = [*(f"gone {i}" for i in range(8)), "a"]
    page.run()
    assert not page.exception and page.multiselect(key="compare_runs").value == ["a"]


def test_the_back_button_leads_to_where_nothing_was_chosen(page, root):
    make(root, "a")
    choose(page, "a")
    page.query_params.clear()
    page.run()
    assert page.multiselect(key="compare_runs").value == [] and "compare_runs" not in page.query_params


def test_a_choice_survives_another_page(page, root):
    finish(root, "a")
    choose(page, "a")
    page.switch_page("../pages/lengths.py").run()
    page.query_params.clear()
    page.switch_page("../pages/compare.py").run()
    assert page.multiselect(key="compare_runs").value == ["a"] and list(page.query_params["compare_runs"]) == ["a"]


def test_curves_are_drawn_in_the_range_of_steps(page, root):
    finish(root, "a", name="<i>a</i>")
    finish(root, "b")
    choose(page, "a", "b")
    page.slider(key="compare_steps_201").set_range(50, 150).run()
    charts = [json.loads(chart.proto.spec) for chart in page.get("plotly_chart")]
    assert [chart["layout"]["yaxis"]["title"]["text"] for chart in charts] == [
        "training loss (nats)", "validation loss (nats)", "validation accuracy", "learning rate", "gradient norm",
        "largest attention logit",
    ]  # fmt: skip
    assert all(chart["layout"]["xaxis"]["range"] == [50, 150] for chart in charts)
    assert [trace["name"] for trace in charts[0]["data"]] == ["&lt;i&gt;a&lt;/i&gt; · a", "b"]
    assert charts[2]["layout"]["yaxis"]["tickformat"] == ".1%"
    assert not page.exception


def test_a_run_keeps_its_colour_and_name_where_another_has_no_curve(page, root):
    make(root, "a", EPOCH)
    make(root, "b", STEP, EPOCH)
    choose(page, "a", "b")
    steps, epochs = (json.loads(chart.proto.spec) for chart in page.get("plotly_chart")[:2])
    assert [[trace["line"]["color"] for trace in chart["data"]] for chart in (steps, epochs)] == [list(CATEGORICAL[:2])] * 2
    assert [len(trace["x"]) for trace in steps["data"]] == [0, 1] and steps["layout"]["showlegend"]


def test_where_a_run_went_on_is_marked_in_its_colour(page, root):
    make(root, "a", STEP, EPOCH)
    make(root, "b", STEP, replace(STARTED, step=STEP.step), replace(STEP, step=STEP.step + 1))
    choose(page, "a", "b")
    chart = json.loads(page.get("plotly_chart")[0].proto.spec)
    (mark,) = chart["layout"]["shapes"]
    line = next(line for line in chart["data"] if line["name"].endswith("b"))
    assert (mark["x0"], mark["line"]["color"]) == (STEP.step, line["line"]["color"])


def test_a_run_without_events_has_no_curves_and_says_so(page, root):
    make(root, "a", Failed(reason="no"))
    choose(page, "a")
    assert "No course of training is on record for a." in words(page) and not page.slider


def test_a_path_is_told_by_its_end(root):
    for id, data in (("a", "/a/long/place/ab12/reviews.csv"), ("b", "imdb"), ("c", "D:\\x\\cd34\\reviews.csv")):
        make(root, id, config=replace(CONFIG, reviews=DataConfig(data=data)))
    found = [runs.read(id) for id in "abc"]
    assert compare.knobs(found).loc["data"].tolist() == ["…/ab12/reviews.csv", "imdb", "…/cd34/reviews.csv"]


# Acts


def test_a_failed_run_opens_on_its_reason_and_the_end_of_its_log(page, root):
    folder = make(root, "a", Failed(reason="`x` is *no* column"))
    (folder / "log.txt").write_text("\n".join(f"line {i} <b>" for i in range(99)))
    choose(page, "a")
    (expander,) = page.expander
    assert expander.proto.expanded
    assert page.error[0].value == "\\`x\\` is \\*no\\* column\\."
    assert page.code[0].value.splitlines()[-1] == "line 98 <b>" and page.code[0].value.count("\n") == launching.LOG_LINES - 1


def test_a_baseline_outlives_a_click_that_cuts_its_first_run_short(page, root):
    for id in "ab":
        finish(root, id)
    choose(page, "a", "b")
    page.query_params["compare_baseline"] = ["b"]
    for _ in range(2):  # the browser may hear of the widget in any run for the first time
        page.run()
        baseline = page.selectbox(key="compare_baseline")
        assert baseline.value == "b"
    assert baseline.proto.default == 1


def test_the_run_that_was_chosen_is_deleted_whatever_arrives_above_it(page, root):
    for minute, id in enumerate("abc"):
        finish(root, id, minute=minute)
    choose(page, "b")
    finish(root, "d", minute=30)
    page.button(key="compare_Delete_b").click().run()
    assert not page.exception
    assert sorted(folder.name for folder in root.iterdir() if folder.name[0] != ".") == ["a", "c", "d"]
    assert page.dataframe[0].value["id"].tolist() == ["d", "c", "a"]
    page.run()  # Undo is still there
    page.button(key="compare_undo_b").click().run()
    assert page.dataframe[0].value["id"].tolist() == ["d", "c", "b", "a"]
    assert page.multiselect(key="compare_runs").value == ["b"]
    assert "compare_undo_b" not in [button.key for button in page.button]


def test_a_run_that_was_deleted_elsewhere_meanwhile_is_gone(page, root):
    finish(root, "a")
    choose(page, "a")
    runs.delete("a", root)
    page.button(key="compare_Delete_a").click().run()
    assert not page.exception and "There is no run yet" in words(page) and not page.dataframe


def test_a_run_is_renamed_by_id_and_stays_chosen(page, root):
    finish(root, "a", minute=1)
    finish(root, "b", minute=2)
    choose(page, "a", "b")
    finish(root, "c", minute=3)
    page.text_input(key="compare_name_a").set_value(f"  {MARKUP} ")
    [submit] = [button for button in page.button if button.label == "Rename" and "compare_rename_a" in button.proto.form_id]
    submit.click().run()
    assert not page.exception
    assert runs.names(root) == {"a": MARKUP, "b": "b", "c": "c"}
    assert page.multiselect(key="compare_runs").value == ["a", "b"]
    runs.rename("b", "from elsewhere", root)
    page.run()
    assert page.multiselect(key="compare_runs").value == ["a", "b"]


LIVING = """
import sys, time
from pathlib import Path
from core import jobs
with jobs.hold(Path(sys.argv[1]), "cpu") as job:
    print("up", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def living(root):
    """A run that does not end when it is asked to."""
    process = subprocess.Popen(
        [sys.executable, "-c", LIVING, str(root / "alive")], stdout=subprocess.PIPE, cwd=jobs.ROOT,
        env=os.environ | {"PYTHONPATH": str(jobs.ROOT)}, start_new_session=True,
    )  # fmt: skip
    assert process.stdout and process.stdout.readline() == b"up\n"
    yield root / "alive"
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_living_run_is_not_deleted_but_stopped(page, root, living):
    choose(page, "alive")
    assert page.dataframe[0].value["state"].tolist() == ["running"]
    page.button(key="compare_Delete_alive").click().run()
    assert "is running; stop it before you delete it" in words(page) and living.is_dir()
    assert "compare_end_alive" not in [button.key for button in page.button]
    page.button(key="compare_stop_alive").click().run()
    assert page.dataframe[0].value["state"].tolist() == ["running, asked to stop"]
    assert page.button(key="compare_stop_alive").disabled  # asking twice is of no use
    page.button(key="compare_end_alive").click().run()
    assert not page.exception
    assert page.dataframe[0].value["state"].tolist()[0].startswith(("cancelled", "failed"))
    page.button(key="compare_Delete_alive").click().run()
    assert not living.exists()


# Models by the names of their runs


def test_lengths_and_inspect_call_a_runs_model_by_its_name(root, first_page, model_root, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(model_root))
    for id in ("one", "two"):
        make(root, id, Finished(), name=MARKUP[:20])
        shutil.copytree(model_root / "one-head", root / id / "model")
    first_page.query_params["lengths_models"] = ["two", "cls"]
    page = first_page.run().switch_page("../pages/lengths.py").run()
    choice = page.multiselect(key="lengths_models")
    assert choice.value == ["two", "cls"]
    assert {"<b>x</b> $y$ **z** : · one", "<b>x</b> $y$ **z** : · two", "imdb-encoder"} <= set(choice.options)
    figure = json.loads(page.get("plotly_chart")[0].proto.spec)
    assert figure["data"][0]["name"] == "&lt;b&gt;x&lt;/b&gt; &#36;y&#36; **z** : · two"
    page.switch_page("../pages/inspect.py").run()
    page.text_area(key="inspect_review").set_value("a good film")
    page.multiselect(key="inspect_models").set_value(["two"]).run()
    assert not page.exception
    assert any("&lt;b&gt;x&lt;/b&gt; $y$ **z** : · two" in element.value for element in page.html)
