"""A training from its form to its end, in a page: one click is one run, and each state says what it is."""

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from filelock import FileLock
from streamlit.testing.v1 import AppTest

from core import jobs, run_folder
from core.checked import to_json
from core.config import BiLSTMArchitecture, DataConfig, EncoderArchitecture, RunConfig, SweepConfig
from core.data import uploads
from core.events import (
    Cancelled,
    EpochFinished,
    Event,
    Failed,
    Interrupted,
    Queued,
    Started,
    StepFinished,
    TableRead,
    TrainingFinished,
    TrainingStarted,
)
from core.presets import PRESETS, preset
from core.training.estimate import Estimate
from core.training.machine import Execution
from tests import small_runs
from ui import knobs, launching, live, training

STARTED = TrainingStarted(
    n_parameters=1_234_567, n_train=1_000, n_validation=50, epochs=2, device="cpu", precision="bfloat16", backend="eager"
)
EPOCH = EpochFinished(epoch=1, step=50, train_loss=0.6, val_loss=0.55, val_accuracy=0.7123, elapsed_s=9.0)
DONE = TrainingFinished(
    reviews_per_s=100.0, tokens_per_s=9e3, train_s=20.0, best_epoch=1, val_accuracy=0.71, model_dir="x/model"
)
ESTIMATE = Estimate(
    seconds=130.0, memory_bytes=50 * 2**20, n_parameters=1_234_567, steps=99,
    execution=Execution(device="cpu", precision="bfloat16", backend="eager"),
)  # fmt: skip
MARKUP = "<b>x</b> $y$ **z** :red[q]"


def step(n: int) -> StepFinished:
    return StepFinished(
        epoch=1, step=n, total_steps=100, loss=0.5, lr=0.001, gradient_norm=1.5, largest_logit=3.25, reviews_per_s=50.0,
        tokens_per_s=9e3,
    )  # fmt: skip


@pytest.fixture
def root(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr("ui.loaders.estimate", lambda config: ESTIMATE)
    return tmp_path / "runs"


@pytest.fixture
def launched(monkeypatch) -> list[tuple[list[str], Path, str]]:
    """What was started, without starting it: its folder is made, as `jobs.launch` does."""
    started = []

    def launch(argv, folder, title=None, config=None):
        if not folder.exists():
            folder.mkdir(parents=True)
            started.append((argv, folder, title))

    monkeypatch.setattr(jobs, "launch", launch)
    return started


@pytest.fixture
def form(first_page, root) -> AppTest:
    return first_page.run().switch_page("../pages/train.py").run()


def made(root: Path, id: str, *events: Event, name: str = "mine", config: RunConfig | None = None) -> Path:
    """A run that said so much and is no more."""
    folder = root / id
    folder.mkdir(parents=True)
    argv = ["train", "--preset", "tiny", "--out", str(folder)]
    request = {"argv": argv, "title": name, "created": "2026-05-01T12:00:00+00:00"}
    (folder / "request.json").write_text(json.dumps(request))
    (folder / "config.json").write_text(json.dumps(to_json(config or preset("tiny"))))
    for event in events:
        run_folder.append_event(folder, event)
    return folder


def looking_at(page: AppTest, id: str) -> AppTest:
    page.run()
    page.switch_page("../pages/train.py")
    page.query_params["train_run"] = id
    page.run()
    assert not page.exception
    return page


def words(page: AppTest) -> str:
    """All that is said, without the escapes of Markdown."""
    kinds = ("markdown", "caption", "info", "success", "warning", "error", "code", "subheader")
    shown = [element.value for kind in kinds for element in page.get(kind)]
    shown += [element.proto.text for element in page.get("progress")]
    return "\n".join(shown).replace("\\", "")


# The form


def test_the_form_starts_from_the_smallest_preset_and_says_what_to_expect(form):
    assert not form.exception and not form.error
    assert {w.label: w.value for w in form.number_input}["batch_size"] == preset("tiny").training.batch_size
    assert "about 2 min for 99 steps, and about 50 MiB for 1,234,567 parameters" in words(form).replace("**", "")


def test_one_form_starts_one_run_and_the_address_finds_it(form, launched):
    button = next(b for b in form.button if b.label == "Start training")
    token = form.session_state["train_token"]
    button.click().run()
    assert [(argv, folder.name, title) for argv, folder, title in launched] == [
        (["train", "--preset", "tiny"], token, "tiny on imdb")
    ]
    assert form.query_params["train_run"] in (token, [token])
    launching.launch("train", token, launched[0][0], "again")  # a second click on the same drawn form
    assert len(launched) == 1


def test_the_command_names_the_folder_that_it_will_have(form, launched, root):
    command = form.code[0].value
    next(button for button in form.button if button.label == "Start training").click().run()
    assert shlex.split(command)[-2:] == ["--out", str(root / launched[0][1].name)]


def test_knobs_that_were_turned_are_in_the_command(form, launched):
    by_label = {w.label: w for w in [*form.number_input, *form.selectbox, *form.text_input]}
    by_label["epochs"].set_value(7)
    by_label["clip_norm"].set_value(None)
    by_label["residual"].set_value(False)
    by_label["betas"].set_value("0.8, 0.95")
    by_label["Name"].set_value(MARKUP)
    form.run()
    next(b for b in form.button if b.label == "Start training").click().run()
    argv, _, title = launched[0]
    assert shlex.join(argv) == "train --preset tiny --no-residual --epochs 7 --betas 0.8 0.95 --clip-norm None"
    assert title == MARKUP


@pytest.mark.parametrize(
    ("knob", "value", "sentence"),
    [
        ("lr", 1e6, "lr: got 1000000.0, expected float from 0 to 10"),
        ("n_heads", 7, "n_heads: got 7 for d_model 64, expected a divisor of d_model"),
        ("epochs", 0, "epochs: got 0, expected int from 1 to 1000000"),
        ("betas", "0.9; 1", "betas: got '0.9; 1', expected numbers with a comma between them"),
        ("betas", "0.9, 1", "betas: got (0.9, 1.0), expected two numbers from 0 to below 1"),
    ],
)
def test_a_knob_that_no_run_can_have_is_a_sentence_and_nothing_starts(form, knob, value, sentence):
    next(w for w in [*form.number_input, *form.text_input] if w.label == knob).set_value(value).run()
    assert not form.exception
    assert sentence in words(form)
    assert "Start training" not in [b.label for b in form.button]
    kept = {w.label: w.value for w in [*form.number_input, *form.text_input]}
    assert kept[knob] == value and {"lr", "d_model", "seed", "betas"} <= set(kept)  # what was typed is not lost


def test_knobs_are_kept_while_another_page_is_visited(form):
    next(w for w in form.number_input if w.label == "epochs").set_value(7)
    next(w for w in form.number_input if w.label == "limit").set_value(None).run()
    form.switch_page("../pages/lengths.py").run()
    form.switch_page("../pages/train.py").run()
    found = {w.label: w.value for w in form.number_input}
    assert (found["epochs"], found["limit"], found["clip_norm"]) == (7, None, 1.0)


def test_a_table_is_trained_on_by_its_own_columns(form, launched, tmp_path):
    table = small_runs.write_table(tmp_path / "my reviews.csv")
    upload = uploads.keep("my <b>reviews</b>.csv", table.read_bytes())
    form.query_params["train_data"] = upload.id
    form.run()
    assert not form.exception
    assert "240 rows, 2 columns" in words(form)
    next(b for b in form.button if b.label == "Start training").click().run()
    argv, _, title = launched[0]
    assert argv == ["train", "--preset", "tiny", "--data", str(upload.path)]
    assert title == "tiny on my <b>reviews</b>.csv"


def test_a_folder_that_cannot_be_made_is_a_sentence(form, monkeypatch):
    def launch(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(jobs, "launch", launch)
    next(b for b in form.button if b.label == "Start training").click().run()
    assert not form.exception
    assert "No space left on device" in words(form)
    assert "train_run" not in form.query_params or form.query_params["train_run"] == ["/new"]


@pytest.mark.parametrize("measures", [False, True])
def test_beside_a_training_a_time_is_tried_and_beside_a_measurement_not(first_page, root, measures):
    folder = made(root, "1", Started(device="cpu"))
    if measures:
        (folder / "config.json").unlink()
        run_folder.write_config(folder, SweepConfig())
    with FileLock(folder / "lock"):
        form = first_page.run().switch_page("../pages/train.py").run()
        assert "One run goes first" in words(form)
        assert ("alone, a run is faster" not in words(form)) == ("Expected here" not in words(form)) == measures


# A run


def test_a_queued_run_says_how_many_go_first(first_page, root):
    folder = made(root, "1", Queued(ahead=2))
    with FileLock(folder / "lock"):
        page = looking_at(first_page, "1")
        assert "Queued: 2 runs go first" in words(page) and "Stopping takes it out of the queue." in words(page)
        next(b for b in page.button if b.label == "Stop").click().run()
        assert (folder / "cancel").exists()
        assert "End it now" in [b.label for b in page.button]


def test_a_running_one_says_where_it_is(first_page, root):
    folder = made(root, "1", Started(device="cpu"), STARTED, step(25), step(50), EPOCH, name=MARKUP)
    with FileLock(folder / "lock"):
        page = looking_at(first_page, "1")
    assert "Epoch 1 of 2, step 50 of 100 · 50 reviews/s · about 20 s left · cpu, bfloat16, attention by eager" in words(page)
    assert {m.label: m.value for m in page.metric} == {
        "training loss": "0.500", "learning rate": "0.001", "gradient norm": "1.50", "largest attention logit": "3.2",
        "validation accuracy": "71.2%",
    }  # fmt: skip
    assert MARKUP in words(page)
    assert len(page.get("plotly_chart")) == 5


def test_a_single_loss_says_which_it_is(first_page, root):
    made(root, "1", Started(device="cpu"), STARTED, EPOCH)
    chart = json.loads(looking_at(first_page, "1").get("plotly_chart")[0].proto.spec)
    assert chart["layout"]["yaxis"]["title"]["text"] == "validation loss (nats)"


def test_a_run_that_ends_early_is_still_drawn_when_it_was_followed(first_page, root):
    folder = made(root, "1", Started(device="cpu"), STARTED, step(25), step(50))
    with FileLock(folder / "lock"):
        page = looking_at(first_page, "1")
        page.slider[0].set_range(10, 90).run()
    run_folder.append_event(folder, Cancelled())
    page.run()
    assert not page.exception and page.slider[0].value == (10, 90)
    made(root, "2", Started(device="cpu"), replace(step(7), total_steps=8), name="shorter")
    page.query_params["train_run"] = "2"
    page.run()
    assert not page.exception and page.slider[0].value == (0, 8)


def test_what_was_made_of_a_table_is_said(first_page, root):
    made(
        root, "1", Started(device="cpu"), TableRead(notes=["left out 2 of 9 rows, without text: rows 3, 4"]), Failed(reason="x")
    )
    assert "Left out 2 of 9 rows, without text: rows 3, 4." in words(looking_at(first_page, "1"))


def test_a_failed_run_opens_on_its_reason_and_the_end_of_its_log(first_page, root):
    folder = made(root, "1", Started(device="cpu"), Failed(reason=f"the loss became nan {MARKUP}", step=3))
    (folder / "log.txt").write_text(f"last words <b>\nerror: the loss became nan {MARKUP}\n")
    page = looking_at(first_page, "1")
    assert page.error[0].value.replace("\\", "") == f"The loss became nan {MARKUP}."
    assert [c.value for c in page.code][0] == "last words <b>"  # the reason does not stand twice
    assert {"Train again", "Change and train"} <= {b.label for b in page.button}


def test_an_interrupted_run_says_so_and_what_is_lost(first_page, root):
    made(root, "1", Started(device="cpu"), STARTED, step(25))
    assert "Interrupted: the process is gone" in words(looking_at(first_page, "1"))


def kept(folder: Path, step: int = 48) -> None:
    """A checkpoint of three MiB."""
    header = json.dumps({"__metadata__": {"step": str(step)}}).encode()
    (folder / run_folder.CHECKPOINT).write_bytes(len(header).to_bytes(8, "little") + header + bytes(3 * 2**20))


def labels(page: AppTest) -> list[str]:
    return [button.label for button in page.button]


@pytest.mark.parametrize("reason", ["the system asked it to end after step 50", None])
def test_an_interrupted_run_says_what_is_not_lost_and_goes_on(first_page, root, monkeypatch, reason):
    said = [] if reason is None else [Interrupted(reason=reason)]
    folder = made(root, "1", Started(device="cpu"), STARTED, step(50), *said)
    kept(folder)
    page, resumed = looking_at(first_page, "1"), []
    why = reason or "the process is gone, and it did not say why"
    assert f"Interrupted: {why}" in words(page)
    assert "Resume goes on after step 48 of 100, which takes 3.0 MiB on disk." in words(page)
    monkeypatch.setattr(jobs, "resume", resumed.append)
    next(button for button in page.button if button.label == "Resume").click().run()
    assert resumed == [folder]


@pytest.mark.parametrize(("last", "stored", "resumes"), [
    (Cancelled(), True, True),
    (Cancelled(), False, False),
    (Failed(reason="no room", kind="disk"), True, True),
    (Failed(reason="no room", kind="disk"), False, True),
    (Failed(reason="OSError"), True, True),
    (Failed(reason="data: got x"), False, False),
    (Failed(reason="nan", kind="diverged"), True, False),
    (Failed(reason="no memory", kind="memory"), True, False),
    (DONE, False, False),
])  # fmt: skip
def test_resume_is_offered_where_it_leads_on(first_page, root, last, stored, resumes):
    folder = made(root, "1", Started(device="cpu"), STARTED, step(50), last)
    if stored:
        kept(folder)
    page = looking_at(first_page, "1")
    assert ("Resume" in labels(page)) == resumes == ("Resume" in words(page))


def test_a_run_that_diverged_offers_the_safe_variant(first_page, root, launched):
    config = replace(preset("tiny"), training=replace(preset("tiny").training, warmup_ratio=0.0))
    made(root, "1", Started(device="cpu"), Failed(reason="the loss became nan", kind="diverged"), config=config)
    page = looking_at(first_page, "1")
    next(button for button in page.button if button.label == "Train again, but use a warm-up").click().run()
    argv, _, title = launched[0]
    assert argv == ["train", "--preset", "tiny"] and title == "mine, safer"


def test_a_run_whose_end_diverged_says_so_beside_the_model_of_an_earlier_epoch(first_page, root):
    wild = replace(EPOCH, epoch=2, step=100, train_loss=9.0, val_loss=12.0)
    for id, last in (("1", wild), ("2", replace(wild, train_loss=0.1))):  # that one has overfitted
        folder = made(root, id, Started(device="cpu"), STARTED, step(100), EPOCH, last, DONE)
        (folder / "model").mkdir()
        (folder / "model" / "run.json").write_text(json.dumps({"config": to_json(preset("tiny"))}))
    page = looking_at(first_page, "1")
    assert "Later it diverged: the loss is 12 after epoch 2, step 100, where guessing costs 0.69" in words(page)
    assert "Train again, but use a learning rate of 0.0002" in labels(page) and not page.success
    page = looking_at(first_page, "2")
    assert "it diverged" not in words(page) and page.success and not any("but use" in label for label in labels(page))


@pytest.mark.parametrize(("lr", "answers", "says"), [(10.0, "alike", True), (0.002, "alike", True), (10.0, "right", False)])
def test_a_model_that_is_no_better_than_a_guess_has_learned_nothing(first_page, root, launched, lr, answers, says):
    config = replace(preset("tiny"), training=replace(preset("tiny").training, lr=lr))
    folder = made(root, "1", Started(device="cpu"), STARTED, step(100), EPOCH, DONE, config=config)
    classes = [0, 1] * 20
    logits = [[1.0, 0.0] if answers == "alike" or label == 0 else [0.0, 1.0] for label in classes]
    hashes = [f"{i:064}" for i in range(40)]
    frame = pd.DataFrame({"split": "test", "text_hash": hashes, "label": classes, "logits": logits})
    (folder / "model").mkdir()
    frame.assign(words=9, tokens=9, tokens_read=9).to_parquet(folder / "model" / "predictions.parquet")
    (folder / "model" / "run.json").write_text(json.dumps({"config": to_json(config)}))
    page = looking_at(first_page, "1")
    said = "It has learned nothing that shows: it answers every review alike"
    assert (said in words(page)) == bool(page.warning) == (not page.success) == says
    blamed = "most likely since a learning rate of 10 is too high" in words(page)
    assert blamed == ("Train again, but use a learning rate of 0.003" in labels(page)) == (says and lr == 10)


def test_a_running_run_says_what_is_safe(first_page, root):
    folder = made(root, "1", Started(device="cpu"), STARTED, step(50))
    kept(folder)
    with FileLock(folder / "lock"):
        assert "Step 48 is safe: it takes 3.0 MiB on disk." in words(looking_at(first_page, "1"))


def test_a_stopped_run_without_a_model_says_so(first_page, root):
    made(root, "1", Started(device="cpu"), STARTED, Cancelled())
    assert "Stopped. There is no model of it." in words(looking_at(first_page, "1"))


def test_a_finished_run_says_how_good_it_is(first_page, root):
    folder = made(root, "1", Started(device="cpu"), STARTED, step(100), EPOCH, DONE)
    (folder / "model").mkdir()
    measured = {"accuracy": 0.7123, "low": 0.69, "high": 0.73, "n": 1_234}
    (folder / "model" / "run.json").write_text(json.dumps({"metrics": {"test": measured}, "training": {"train_s": 100.0}}))
    said = words(looking_at(first_page, "1"))
    assert "Trained for 2 min. Accuracy: test 71.2% (95% interval 69.0% to 73.0%, n = 1,234)." in said
    assert f"python -m core train --preset tiny --out {folder}" in said


def test_a_run_of_the_name_of_another_model_or_preset_leads_to_itself_alone(first_page, root):
    for id in ("imdb-encoder", "tiny", "new"):
        folder = made(root, id, Started(device="cpu"), DONE, config=replace(preset("tiny"), reviews=DataConfig(limit=77)))
        (folder / "model").mkdir()
        (folder / "model" / "run.json").write_text(json.dumps({"n_parameters": 1}))
    page = looking_at(first_page, "imdb-encoder")
    links = [link.proto.label for link in page.get("page_link")]
    assert "Compare" in links and "Inspect" not in links  # there is a shipped model of that name
    assert "Start training" not in [button.label for button in looking_at(page, "new").button]
    page = looking_at(page, "/new")
    assert {w.label: w.value for w in page.number_input}["limit"] == preset("tiny").reviews.limit
    page.query_params["train_from"] = "/tiny"
    assert {w.label: w.value for w in page.run().number_input}["limit"] == 77


def test_training_again_runs_the_same_command_elsewhere(first_page, root, launched):
    made(root, "1", Started(device="cpu"), Failed(reason="x"), name="mine")
    page = looking_at(first_page, "1")
    next(b for b in page.button if b.label == "Train again").click().run()
    argv, folder, title = launched[0]
    assert (argv, title) == (["train", "--preset", "tiny"], "mine") and folder.name != "1"


def test_changing_a_run_starts_from_its_knobs_and_its_reviews(first_page, root):
    config = replace(preset("tiny"), reviews=DataConfig(data="rotten-tomatoes", limit=777))
    made(root, "1", Started(device="cpu"), Failed(reason="x"), config=config)
    page = looking_at(first_page, "1")
    next(b for b in page.button if b.label == "Change and train").click().run()
    assert not page.exception
    assert {w.label: w.value for w in page.number_input}["limit"] == 777
    assert {w.label: w.value for w in page.selectbox}["Reviews"] == "rotten-tomatoes"


def test_an_unknown_run_in_the_address_is_a_sentence(first_page, root):
    page = looking_at(first_page, "../../etc")
    assert "There is no training '../../etc' here" in words(page)
    assert "Start training" in [b.label for b in page.button]


# By hand


def test_the_last_moment_is_not_about_under_a_second():
    assert live.time_left(STARTED, replace(step(50), reviews_per_s=1e6)) == "under 1 s left"


def test_numbers_of_a_wild_training_have_room(first_page, root):
    wild = replace(step(25), loss=20_440.0, gradient_norm=18_395_312.0, largest_logit=148_981.5)
    folder = made(root, "1", Started(device="cpu"), STARTED, wild)
    with FileLock(folder / "lock"):
        found = {metric.label: metric.value for metric in looking_at(first_page, "1").metric}
    wanted = {"training loss": "2e+04", "gradient norm": "1.8e+07", "largest attention logit": "1.5e+05"}
    assert wanted.items() <= found.items()


def test_time_left_is_that_of_the_reviews_to_come():
    assert live.seconds_left(STARTED, step(50)) == pytest.approx(1_000 * 2 * 0.5 / 50.0)
    assert live.seconds_left(STARTED, step(100)) is None


def test_a_command_is_taken_without_its_folder():
    assert training.without_folder(["train", "--out", "a b", "--lr", "1"]) == ["train", "--lr", "1"]
    assert training.without_folder(["train", "--out=a", "--lr", "1"]) == ["train", "--lr", "1"]


def test_every_knob_has_a_widget_or_is_settled_elsewhere():
    for part in (preset("tiny").model, BiLSTMArchitecture(), preset("tiny").training, DataConfig()):
        known = set(knobs.explanations(type(part)))
        assert known <= set(vars(part))
    assert knobs.explanations(BiLSTMArchitecture)["max_len"] == "Tokens read of one review."
    assert knobs.explanations(EncoderArchitecture)["max_len"] == "Tokens read of one text."  # from what it shares


@pytest.mark.parametrize("name", PRESETS)
def test_widgets_left_alone_are_the_preset(name):
    def page(name: str) -> None:
        import streamlit as st

        from core.config import DataConfig
        from core.presets import preset
        from ui import knobs

        st.session_state["made"] = knobs.choose(preset(name), DataConfig(), "k")

    run = AppTest.from_function(page, args=(name,), default_timeout=30).run()
    assert not run.exception
    assert run.session_state["made"] == preset(name)


def test_more_steps_than_a_browser_can_count_are_drawn_without_a_slider(form, root):
    made(root, "a", STARTED, replace(step(7), total_steps=10**18))
    assert not looking_at(form, "a").slider


def test_what_each_preset_costs_is_told_when_asked(form, monkeypatch):
    def estimate(config):
        if config.model.kind == "bilstm":
            raise ValueError("a reason")
        return replace(ESTIMATE, n_parameters=config.model.vocab_size)

    assert not form.dataframe
    monkeypatch.setattr("ui.loaders.estimate", estimate)
    form.toggle(key="train_costs").set_value(True).run()
    assert not form.exception
    table = form.dataframe[-1].value.set_index("preset")
    assert list(table.index) == list(PRESETS)
    assert tuple(table.loc["tiny"]) == ("about 2 min", "50 MiB", "4,000")
    assert tuple(table.loc["bilstm"]) == ("n/a", "n/a", "a reason")
