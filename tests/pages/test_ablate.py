"""The page Ablate: what is chosen becomes a command, members fill a matrix as they land, and a verdict says what they show."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from core import jobs, run_folder
from core.config import ExperimentConfig
from core.data import uploads
from core.events import (
    Cancelled,
    EpochFinished,
    Event,
    Failed,
    Finished,
    MemberFinished,
    MemberStarted,
    Queued,
    Started,
    StepFinished,
    TrainingFinished,
)
from core.experiments import BASE, as_table, gather
from core.presets import PRESETS, preset
from core.recorded import Recorded
from core.recorded import write as write_results
from tests import small_runs
from ui import loaders, recorded
from ui.running import how_far, page_of
from ui.training import preset_of

CONFIG = ExperimentConfig(base=preset("tiny"), ablations=("positions-none", "heads-1"))
ACCURACY = {BASE: (0.80, 0.82, 0.81), "positions-none": (0.70, 0.715, 0.705), "heads-1": (0.80, 0.81, 0.83)}
ID = "20261130-120000-000000-ab12"
OTHER = "20261130-110000-000000-cd34"


def member(name: str, seed: int, accuracy: float | None, why_not: str | None = None) -> MemberFinished:
    run = f"{ID}/members/{name}-{seed}"
    return MemberFinished(
        ablation=name, seed=seed, fingerprint=f"{name}-{seed}", run=run, why_not=why_not, n=500, accuracy=accuracy, f1=accuracy,
        val_accuracy=accuracy, train_s=3.0, elapsed_s=4.0, peak_bytes=2**30, peak_source="predicted", n_parameters=1_000,
    )  # fmt: skip


ALL = [member(name, seed, ACCURACY[name][seed]) for seed in range(3) for name in ACCURACY]


@pytest.fixture
def root(tmp_path, monkeypatch) -> Path:
    """Without runs, and without recorded results."""
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr(recorded, "FOLDER", tmp_path)
    monkeypatch.setattr("ui.experiments.estimated_s", lambda config, seconds: 7200.0)
    return tmp_path / "runs"


@pytest.fixture
def launched(monkeypatch) -> list[tuple]:
    """What would have been started."""
    asked = []
    monkeypatch.setattr(jobs, "launch", lambda argv, folder, title, config: asked.append((argv, folder, title, config)))
    return asked


def write(root: Path, *said: Event, id: str = ID, title: str | None = "<b>why</b>") -> Path:
    folder = root / id
    folder.mkdir(parents=True)
    run_folder.write_request(folder, ["ablate", "--base", "tiny", "--out", str(folder)], title)
    run_folder.write_config(folder, CONFIG)
    for event in said:
        run_folder.append_event(folder, event)
    return folder


def write_member(root: Path, event: MemberFinished, said: Callable[[int], Event] | None = None) -> None:
    """The folder of a member, with two steps, or two of what else it has `said`, and a model without weights."""
    folder = root / event.run
    (folder / "model").mkdir(parents=True)
    run_folder.write_request(
        folder, ["train", "--preset", "tiny", "--out", str(folder)], f"{event.ablation}, seed {event.seed}"
    )
    run_folder.write_config(folder, CONFIG.base)
    (folder / "model" / "run.json").write_text(json.dumps({"metrics": {"test": {"n": 500, "accuracy": event.accuracy}}}))
    for number in (1, 2):
        run_folder.append_event(folder, (said or step)(number))
    run_folder.append_event(folder, TrainingFinished(
        reviews_per_s=50.0, tokens_per_s=900.0, train_s=3.0, best_epoch=1, val_accuracy=0.8, model_dir=str(folder / "model")
    ))  # fmt: skip


def fit(number: int) -> EpochFinished:
    return EpochFinished(epoch=number, step=number, train_loss=0.2, val_loss=0.3 / number, val_accuracy=0.8, elapsed_s=1.0)


def step(number: int) -> StepFinished:
    return StepFinished(
        epoch=1, step=number, total_steps=90, loss=0.7 / number, lr=1e-3, gradient_norm=2.0, largest_logit=None,
        reviews_per_s=50.0, tokens_per_s=9000.0,
    )  # fmt: skip


@pytest.fixture
def page(first_page, root):
    return first_page.run().switch_page("../pages/ablate.py")


def opened(page, id: str = ID):
    page.query_params["ablate_run"] = id
    page.run()
    assert not page.exception
    return page


def said(page) -> str:
    """All that is said, without the escapes of Markdown."""
    kinds = (page.subheader, page.markdown, page.info, page.error, page.warning, page.caption)
    return " ".join(element.value for kind in kinds for element in kind).replace("\\", "")


def buttons(page) -> list[str]:
    return [button.label for button in page.button]


def frame(page, column: str):
    """The first table that has this column."""
    return next(table.value for table in page.dataframe if column in table.value)


# Before


def test_what_is_chosen_is_started_by_its_command(page, root, launched):
    page.run()
    assert not page.exception
    page.multiselect(key="ablate_ablations").set_value(["gelu", "heads-2"]).run()
    page.number_input(key="ablate_seeds").set_value(2).run()
    page.number_input(key="ablate_limit_tiny").set_value(1_000).run()
    next(button for button in page.button if button.label == "Start").click().run()
    (argv, folder, title, config) = launched[0]
    assert argv[:7] == ["ablate", "--base", "tiny", "--ablations", "gelu,heads-2", "--seeds", "2"]
    assert folder.parent == root and title == "tiny: gelu, heads-2"
    assert isinstance(config, ExperimentConfig) and (config.ablations, config.seeds) == (("gelu", "heads-2"), (0, 1))
    assert config.base.reviews.limit == 1_000 and argv[argv.index("--limit") + 1] == "1000"
    from core.ablate import argv as command

    assert command(config, "tiny") == argv


def test_a_table_of_ones_own_is_swept(page, root, launched, tmp_path):
    upload = uploads.keep("mine.csv", small_runs.write_table(tmp_path / "reviews.csv").read_bytes())
    page.query_params |= {"ablate_data": upload.id, "ablate_data_text": ["text"], "ablate_data_label": "label"}
    page.run()
    assert not page.exception and "240 usable reviews in 2 classes" in said(page)
    next(button for button in page.button if button.label == "Start").click().run()
    reviews = launched[0][3].base.reviews
    assert (reviews.data, reviews.text_column, reviews.label_column) == (str(upload.path), "text", "label")
    page.multiselect(key="ablate_data_text").set_value([]).run()
    assert "Choose the column of the texts" in said(page) and "Start" not in buttons(page) and not page.exception


def test_the_form_says_what_it_takes_and_offers_what_the_base_can_be(page):
    page.run()
    assert "12 trainings, one after the other." in said(page) and "Expected here: **about 2.0 h**" in said(page)
    offered = page.multiselect(key="ablate_ablations").options
    assert "heads-1: Is one head, with all of a token's numbers, as good as several?" in offered
    page.selectbox(key="ablate_base").set_value("bilstm").run()
    assert not page.exception
    offered = page.multiselect(key="ablate_ablations").options
    assert not any(name.startswith(("heads", "positions")) for name in offered) and "dropout-off" in " ".join(offered)


def test_where_something_runs_nothing_is_tried(page, root):
    folder = write(root, Started(device="cpu"), id=OTHER)
    with FileLock(folder / "lock"):
        page.run()
    assert "Another run has the machine" in said(page) and "Expected here" not in said(page)


@pytest.mark.parametrize("base", PRESETS)
def test_every_preset_has_something_to_be_changed(page, base):
    page.query_params["ablate_base"] = base
    page.run()
    assert not page.exception and not page.error and "Start" in buttons(page)


def test_no_ablation_is_asked_for(page):
    page.run().multiselect(key="ablate_ablations").set_value([]).run()
    assert "choose at least one ablation" in said(page) and "Start" not in buttons(page)


def test_a_run_that_is_not_there_is_said(page):
    page.query_params["ablate_run"] = "x<b>"
    page.run()
    assert "There is no experiment 'x<b>' here" in said(page) and not page.exception


# While it goes


def test_a_matrix_fills_as_members_land(page, root):
    started = MemberStarted(ablation="heads-1", seed=1, run=f"{ID}/members/heads-1-1")
    folder = write(root, Started(device="cpu"), *ALL[:5], started)
    write_member(root, member("heads-1", 1, 0.81))
    with FileLock(folder / "lock"):
        opened(page)
    found = frame(page, "test accuracy").set_index("test accuracy")
    assert list(found.columns) == ["seed 0", "seed 1", "seed 2", "mean"]
    assert list(found.loc["positions-none"]) == ["70.0%", "71.5%", "·", "70.8%"]
    assert list(found.loc["heads-1"]) == ["80.0%", "training…", "·", "80.0%"]
    assert "5 of 9 trained, about 16 s left: heads-1, seed 1, step 2 of 90" in progress(page)
    assert "Stop" in buttons(page)


def progress(page) -> str:
    return page.get("progress")[0].proto.text.replace("\\", "")


def test_a_queued_experiment_waits(page, root):
    folder = write(root, Queued(ahead=1))
    with FileLock(folder / "lock"):
        assert "Queued: 1 run goes first" in said(opened(page))


@pytest.mark.parametrize(
    ("last", "told"),
    [
        (Cancelled(), "Stopped after 4 of 9 trainings."),
        (Failed(reason="data: <b>gone</b>"), "Failed after 4 of 9 trainings: data: <b>gone</b>."),
        (None, "Interrupted after 4 of 9 trainings: the process is gone"),
    ],
)
def test_one_that_is_over_before_its_end_says_so_and_goes_on(page, root, last, told):
    write(root, Started(device="cpu"), *ALL[:4], *([last] if last else []))
    assert told in said(opened(page)) and "Resume" in buttons(page)


# What came of it


@pytest.fixture
def whole(root) -> Path:
    folder = write(root, Started(device="cpu"), *ALL, Finished())
    for event in ALL:
        write_member(root, event)
    return folder


def test_of_a_linear_model_only_the_curve_that_there_is_is_offered(page, root):
    """It is fitted and not trained step by step, so that it has no training loss."""
    write(root, Started(device="cpu"), *ALL[:2], Finished())
    for event in ALL[:2]:
        write_member(root, event, fit)
    opened(page)
    (curve,) = [control for control in page.segmented_control if control.label == "Curve"]
    assert curve.options == ["validation loss"] and curve.value == "validation loss"
    assert "Validation loss" in said(page)


def test_what_matters_is_said_first_with_its_interval_and_drawn(page, root, whole):
    text = said(opened(page))
    first, second = (text.index(f"{name}: ") for name in ("positions-none", "heads-1"))
    assert first < second and "<b>why</b>" in text
    assert "More than chance: 1 of 2 differences." in text
    assert "positions-none: 10.3 points worse, 95% between -11.1 and -9.6, 3 seeds, p = 0.001 by Holm." in text
    assert "heads-1: no difference shown: +0.3 points" in text
    spec = json.loads(next(chart.proto.spec for chart in page.get("plotly_chart") if "differences" in chart.proto.id))
    assert [(trace["name"], trace["y"]) for trace in spec["data"]] == [
        ("more than chance", ["positions-none"]), ("no difference shown", ["heads-1"]),
    ]  # fmt: skip


def test_each_ablation_has_its_curves_on_one_range_and_a_way_to_compare(page, root, whole):
    opened(page)
    specs = [json.loads(chart.proto.spec) for chart in page.get("plotly_chart") if "ablate_loss" in chart.proto.id]
    assert [spec["layout"]["yaxis"]["range"] for spec in specs] == [pytest.approx([0.33, 0.72])] * 3
    assert [trace["name"] for trace in specs[0]["data"]] == ["seed 0", "seed 1", "seed 2"]
    (link,) = [link for link in page.main.get("page_link") if "Compare" in link.proto.label]
    assert link.proto.query_string.count("compare_runs=") == 3


def test_the_table_has_all_of_it(page, root, whole):
    found = frame(opened(page), "ablation").set_index("ablation")
    assert list(found["seeds"]) == ["3 of 3"] * 3
    row = found.loc["positions-none"]
    assert row["accuracy"] == pytest.approx(70.667, abs=1e-3) and row["difference"] == pytest.approx(-10.333, abs=1e-3)
    assert row["from"] < row["difference"] < row["to"] < 0
    assert (row["training"], row["times the base"], row["memory"], row["parameters"]) == (3.0, 1.0, 1024.0, 1000)
    assert found["difference"].isna().tolist() == [True, False, False] and row["memory is"] == "predicted"
    labels = [button.proto.label for button in page.get("download_button")]
    assert labels == [f"Download {of}" for of in ("CSV", "Markdown", "HTML")]


def test_members_that_are_gone_are_no_trouble(page, root):
    failed = member("heads-1", 2, None, "the loss became nan at step 3")
    write(root, Started(device="cpu"), *ALL[:-1], failed, Finished())
    text = said(opened(page))
    assert "1 of 3 failed: the loss became nan at step 3" in text and "How training went" not in text
    assert frame(page, "test accuracy").set_index("test accuracy").loc["heads-1", "seed 2"] == "failed"


def test_a_member_is_compared_like_a_run_and_deleted_with_its_experiment(page, root, whole, first_page):
    compare = first_page.switch_page("../pages/compare.py")
    compare.query_params["compare_runs"] = [ALL[0].run, ALL[1].run]
    compare.run()
    assert not compare.exception
    text = said(compare)
    assert "with which it is deleted" in text and f"compare_Delete_{ALL[0].run}" not in [b.key for b in compare.button]
    assert {"base, seed 0 · ab12", "positions-none, seed 0 · ab12"} <= {name for t in compare.dataframe for name in t.value}


def test_the_models_of_members_come_after_all_others(root, whole, model_root, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(model_root))
    names = loaders.model_names()
    assert names[:2] == list(loaders.SHIPPED)
    assert [name.startswith(f"{ID}/members/") for name in names] == [False] * (len(names) - 9) + [True] * 9
    assert loaders.model_titles()[ALL[0].run] == "base, seed 0 · ab12"


# Recorded


def test_what_was_recorded_is_shown_as_such(page, root):
    bases = {outcome.ablation: outcome.base for outcome in gather(CONFIG, ALL)}
    one = Recorded(
        title="Ablations of a small encoder", hardware="<b>EPYC</b>", date="2026-11-30", command="python -m core ablate",
        versions=("torch 2.13.0",), tables=(as_table(bases, ALL),), notes=("Times are of a busy machine.",),
    )  # fmt: skip
    write_results(one, root.parent / "RESULTS_ablations")
    text = said(page.run())
    assert not page.exception
    assert (
        "Recorded: Ablations of a small encoder" in text
        and "Recorded on <b>EPYC</b>, 2026-11-30" in text
        and "Times are of a busy machine." in text
    )
    assert "positions-none: 10.3 points worse, 95% between -11.1 and -9.6" in text
    assert list(frame(page, "ablation")["ablation"]) == [BASE, "positions-none", "heads-1"]


# Elsewhere


def test_an_experiment_is_followed_by_its_own_page(root):
    from core import runs

    write(root, Started(device="cpu"), *ALL[:4])
    run = runs.read(ID)
    assert page_of(run) == "ablate" and how_far(run) == "4 of 9 trained."
    assert preset_of(run) is None and not run.is_training and run.experiment == CONFIG


def test_training_knows_nothing_of_experiments(first_page, root, whole):
    train = first_page.run().switch_page("../pages/train.py").run()
    assert not train.exception
    assert [box.options for box in train.selectbox if box.key == "train_run"] == []
