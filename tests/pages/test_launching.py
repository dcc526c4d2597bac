"""What a page says of a run whatever the run does: that it cannot be started or stopped, and what it printed last."""

import json
from pathlib import Path

import pytest
from filelock import FileLock

from core import jobs, run_folder
from core.checked import to_json
from core.config import SweepConfig
from core.events import Event, Failed, Started
from core.presets import preset

PAGES = {"train": ("config.json", preset("tiny")), "memory": ("sweep.json", SweepConfig(device="cpu"))}


def no_room(*_: object, **__: object) -> None:
    raise OSError(28, "No space left on device")


@pytest.fixture
def root(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr("ui.training.expectation", lambda config: None)
    return tmp_path / "runs"


def write(root: Path, page: str, *events: Event) -> Path:
    folder = root / "a"
    folder.mkdir(parents=True)
    name, config = PAGES[page]
    (folder / name).write_text(json.dumps(to_json(config)))
    for event in events:
        run_folder.append_event(folder, event)
    return folder


def looking(first_page, page: str, id: str | None = None):
    shown = first_page.run().switch_page(f"../pages/{page}.py")
    if id is not None:
        shown.query_params[f"{page}_run"] = id
    return shown.run()


def errors(page) -> str:
    assert not page.exception
    return " ".join(error.value for error in page.error).replace("\\", "")


@pytest.mark.parametrize(("page", "label"), [("train", "Start training"), ("memory", "Measure")])
def test_a_run_whose_folder_cannot_be_made_is_a_sentence(first_page, root, monkeypatch, page, label):
    monkeypatch.setattr(jobs, "launch", no_room)
    shown = looking(first_page, page)
    next(button for button in shown.button if button.label == label).click().run()
    assert "cannot be made (No space left on device); make room there" in errors(shown)
    assert f"{page}_refused" not in shown.session_state  # said once


@pytest.mark.parametrize("page", PAGES)
def test_a_stop_that_finds_no_room_is_a_sentence(first_page, root, monkeypatch, page):
    folder = write(root, page, Started(device="cpu"))
    monkeypatch.setattr(jobs, "cancel", no_room)
    with FileLock(folder / "lock"):
        shown = looking(first_page, page, "a")
        next(button for button in shown.button if button.label == "Stop").click().run()
    assert f"the run cannot be asked to stop in {folder} (No space left on device); make room there" in errors(shown)


def test_an_end_that_finds_no_room_is_a_sentence(first_page, root, monkeypatch):
    folder = write(root, "train", Started(device="cpu"))
    (folder / "cancel").touch()
    monkeypatch.setattr(jobs, "stop", no_room)
    with FileLock(folder / "lock"):
        shown = looking(first_page, "train", "a")
        next(button for button in shown.button if button.label == "End it now").click().run()
    assert f"the run cannot be ended in {folder} (No space left on device); make room there" in errors(shown)


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(("printed", "shown"), [("error: no\n", []), ("at work\nerror: no\n", ["at work"]), ("", [])])
def test_why_it_failed_does_not_stand_twice(first_page, root, page, printed, shown):
    folder = write(root, page, Started(device="cpu"), Failed(reason="no"))
    (folder / "log.txt").write_text(printed)
    found = looking(first_page, page, "a")
    assert "no." in errors(found).lower()
    assert [code.value for code in found.code] == shown
