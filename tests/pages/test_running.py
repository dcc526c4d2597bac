"""What runs, said on every page and gone with it."""

import json
from pathlib import Path

import pytest
from filelock import FileLock

from core import run_folder
from core.checked import to_json
from core.config import ClaimConfig, SweepConfig
from core.events import Event, Queued, Started
from core.presets import preset
from tests.pages.test_train import STARTED, step

MARKUP = "<b>x</b> $y$ **z** of a name that is long"


def made(root: Path, id: str, *events: Event, sweep: bool = False) -> Path:
    folder = root / id
    folder.mkdir(parents=True)
    (folder / "request.json").write_text(json.dumps({"argv": ["train"], "title": MARKUP}))
    name, config = ("sweep.json", SweepConfig()) if sweep else ("config.json", preset("tiny"))
    (folder / name).write_text(json.dumps(to_json(config)))
    for event in events:
        run_folder.append_event(folder, event)
    return folder


def said(page) -> list[str]:
    """Links and captions of the sidebar."""
    assert not page.exception
    links = [link.proto.label for link in page.sidebar.get("page_link")]
    return [text.replace("\\", "") for text in links + [caption.value for caption in page.sidebar.caption]]


@pytest.mark.parametrize("name", ["inspect", "compare", "memory"])
def test_every_page_says_what_runs_and_leads_there(first_page, tmp_path, monkeypatch, name):
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "runs"))
    running = made(tmp_path / "runs", "1", Started(device="cpu"), STARTED, step(50))
    waiting = made(tmp_path / "runs", "2", Queued(ahead=1))
    made(tmp_path / "runs", "3", Started(device="cpu"), STARTED, step(50))  # interrupted
    with FileLock(running / "lock"), FileLock(waiting / "lock"):
        page = first_page.run().switch_page(f"../pages/{name}.py").run()
        assert said(page) == [f"{MARKUP[:24]}…", "Step 50 of 100, about 20 s left", "1 run waits for its turn."]
        (link,) = page.sidebar.get("page_link")
        assert link.proto.query_string == "train_run=1"
    assert said(page.run()) == []


def test_a_sweep_leads_to_its_page_and_a_start_has_no_rate_yet(first_page, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "runs"))
    sweep = made(tmp_path / "runs", "1", Started(device="cpu"), sweep=True)
    start = made(tmp_path / "runs", "2", Started(device="cuda"))
    with FileLock(sweep / "lock"), FileLock(start / "lock"):
        page = first_page.run().switch_page("../pages/compare.py").run()
    assert said(page)[2:] == ["Measuring.", "Starting."]
    assert [link.proto.query_string for link in page.sidebar.get("page_link")] == ["memory_run=1", "train_run=2"]


def test_a_claim_leads_to_its_page(first_page, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "runs"))
    claim = tmp_path / "runs" / "1"
    claim.mkdir(parents=True)
    run_folder.write_request(claim, ["claims", "run", "parameters"], "Claim 49")
    run_folder.write_config(claim, ClaimConfig(claim="parameters"))
    run_folder.append_event(claim, Started(device="cpu"))
    with FileLock(claim / "lock"):
        page = first_page.run().switch_page("../pages/compare.py").run()
    assert said(page) == ["Claim 49", "Measuring."]
    assert [link.proto.query_string for link in page.sidebar.get("page_link")] == ["claims_run=1"]


def test_of_those_that_are_over_nothing_is_read(tmp_path, monkeypatch):
    from core import runs

    made(tmp_path, "1", Started(device="cpu"))
    monkeypatch.setattr(runs, "_read", lambda folder: pytest.fail("read"))
    assert runs.alive(tmp_path) == [] == runs.alive(tmp_path / "nowhere")
