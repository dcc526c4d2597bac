"""Whether a training fits: said before it starts and after it ran out of memory, with one button to go on."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from core import jobs, run_folder
from core.checked import to_json
from core.config import RunConfig
from core.events import Failed, Started
from core.measure.planner import Plan, needed_bytes
from core.presets import preset
from ui import planning

TINY = preset("tiny")


def with_training(**knobs) -> RunConfig:
    return replace(TINY, training=replace(TINY.training, **knobs))


def plan_of(*alternatives: RunConfig, needed: int = 9, memory: int = 3) -> Plan:
    return Plan(
        needed_bytes=needed, memory_bytes=memory, largest_batch=2, alternatives=alternatives,
        sentence="needs about 9.0 GiB, and there are 3.0 GiB; fits at batch 2, or at batch 8 with sdpa",
    )  # fmt: skip


NARROW = plan_of(with_training(batch_size=2), with_training(batch_size=8, backend="sdpa"))


@pytest.fixture
def root(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr("ui.training.expectation", lambda config: None)
    monkeypatch.setattr("ui.planning.device_memory", lambda device: 3)
    monkeypatch.setattr("ui.loaders.mean_length", lambda config: 100.0)
    return tmp_path / "runs"


@pytest.fixture
def planned(monkeypatch):
    """Says what the planner answers; what it was asked for is kept."""
    asked = []

    def answer(*plans: Plan | None) -> list:
        following = iter(plans)
        monkeypatch.setattr("ui.planning.plan", lambda *given: (asked.append(given), next(following, plans[-1]))[1])
        return asked

    return answer


def train(first_page, id: str | None = None):
    page = first_page.run().switch_page("../pages/train.py")
    if id is not None:
        page.query_params["train_run"] = id
    page.run()
    assert not page.exception
    return page


def failed(root: Path, event: Failed, config: RunConfig = TINY) -> None:
    folder = root / "a"
    folder.mkdir(parents=True)
    request = {"argv": ["train", "--preset", "tiny", "--out", str(folder)], "title": "mine"}
    (folder / "request.json").write_text(json.dumps(request | {"created": "2026-05-01T12:00:00+00:00"}))
    (folder / "config.json").write_text(json.dumps(to_json(config)))
    for said in (Started(device="cpu"), event):
        run_folder.append_event(folder, said)


def fitting(page):
    return [button for button in page.button if button.key and button.key.startswith("train_fitting")]


def test_before_a_start_the_page_says_what_fits_and_a_button_sets_the_knobs(first_page, root, planned):
    asked = planned(NARROW)
    page = train(first_page)
    assert NARROW.sentence in page.warning[0].value.replace("\\", "")
    assert asked[0][1:] == (3,) and asked[1][1:] == (3, 100.0)  # asked again with the lengths of these very reviews
    (button,) = fitting(page)
    assert button.label == "Choose batch 8 and sdpa"
    planned(plan_of(needed=1))
    button.click().run()
    assert not page.exception and not page.warning
    chosen = {each.label: each.value for each in [*page.number_input, *page.selectbox]}
    assert (chosen["batch_size"], chosen["backend"]) == (8, "sdpa")


@pytest.mark.parametrize("plans", [(plan_of(needed=1),), (NARROW, plan_of(needed=1)), (None,)], ids=["fits", "mean", "unknown"])
def test_nothing_is_said_of_what_fits_or_is_not_known(first_page, root, planned, plans):
    planned(*plans)
    page = train(first_page)
    assert not page.warning and not fitting(page)


def test_where_nothing_fits_no_button_promises_that_it_would(first_page, root, planned):
    planned(plan_of())
    page = train(first_page)
    assert page.warning and not fitting(page)


def test_after_memory_ran_out_one_button_trains_what_fits(first_page, root, planned, monkeypatch):
    planned(NARROW)
    failed(root, Failed(reason="there was not enough memory", kind="memory"))
    started = []
    monkeypatch.setattr(jobs, "launch", lambda argv, folder, title, config: started.append((argv, title)))
    page = train(first_page, "a")
    (button,) = fitting(page)
    assert button.label == "Train with batch 8 and sdpa"
    assert any("fits at batch 2, or at batch 8 with sdpa" in caption.value.replace("\\", "") for caption in page.caption)
    button.click().run()
    assert started == [(["train", "--preset", "tiny", "--batch-size", "8", "--backend", "sdpa"], "mine")]


@pytest.mark.parametrize(
    ("takes", "chosen"),
    [
        (lambda config: config.training.batch_size, f"batch {TINY.training.batch_size // 2}"),
        (lambda config: 9 - (config.training.batch_size == 1), "batch 1"),
        (lambda config: 9 - (config.training.checkpointing == "on"), "checkpointing"),
        (lambda config: config.model.max_len, f"max_len {TINY.model.max_len // 2}"),
    ],
)
def test_where_the_prediction_was_wrong_what_takes_less_is_offered(first_page, root, planned, monkeypatch, takes, chosen):
    planned(plan_of(needed=1))
    monkeypatch.setattr("ui.planning.needed_bytes", takes)
    failed(root, Failed(reason="there was not enough memory", kind="memory"))
    (button,) = fitting(train(first_page, "a"))
    assert button.label == f"Train with {chosen}"


def test_another_failure_is_no_matter_of_memory(first_page, root, planned):
    planned(NARROW)
    failed(root, Failed(reason="the loss became nan"))
    assert not fitting(train(first_page, "a"))


@pytest.mark.parametrize("takes", [9, None])
def test_nothing_is_promised_where_nothing_takes_less_or_is_known_to(first_page, root, planned, monkeypatch, takes):
    planned(None)
    monkeypatch.setattr("ui.planning.needed_bytes", lambda config: takes)
    failed(root, Failed(reason="x", kind="memory"))
    assert not fitting(train(first_page, "a"))


def test_what_differs_is_named():
    other = with_training(batch_size=8, backend="sdpa", checkpointing="on")
    assert planning.described(TINY, other) == "batch 8, sdpa and checkpointing"


@pytest.mark.parametrize("name", ["tiny", "encoder-local-global", "bilstm", "bilstm-best"])
def test_each_network_has_something_that_takes_less_on_a_cpu(name):
    asked = preset(name)
    asked = replace(asked, training=replace(asked.training, device="cpu"))
    other = planning._frugal(asked)
    assert other is not None and (needed_bytes(other) or 0) < (needed_bytes(asked) or 0)
    assert planning.described(asked, other)
