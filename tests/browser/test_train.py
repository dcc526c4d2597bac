"""A training as a person starts it, leaves it and comes back to it."""

import os
import random
import signal
from pathlib import Path

import pytest
from filelock import FileLock
from playwright.sync_api import Locator

from core import run_folder, runs
from core.events import Started, StepFinished, TrainingStarted
from tests import small_runs
from tests.browser.conftest import ROOT, faults, running

ADJECTIVES = (("öde", "schlecht", "langweilig", "trüb"), ("schön", "großartig", "bewegend", "hell"))


@pytest.fixture
def root(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("ATTENTION_LAB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "runs"


def semicolons(n: int = 400) -> bytes:
    """A table as a German spreadsheet writes it: semicolons, cp1252, a quoted line break, one row without text."""
    rng = random.Random(0)
    words = "der Film hat eine Handlung und Schauspieler die wir im Kino sahen".split()
    lines = ["Titel;Bewertungstext;Note"]
    for i in range(n):
        chosen = rng.choices(words, k=rng.randint(4, 12)) + rng.choices(ADJECTIVES[i % 2], k=2)
        rng.shuffle(chosen)
        lines.append(f'"Nr. {i}";"{" ".join(chosen)},\nso war es – {i}";{"gut" if i % 2 else "übel"}')
    return "\r\n".join([*lines, '"leer";"";gut', ""]).encode("cp1252")


def start(page, epochs: int) -> str:
    """Starts a training from the form, five clicks at once, and returns its id."""
    page.get_by_role("spinbutton", name="epochs").fill(str(epochs))
    page.get_by_role("spinbutton", name="epochs").press("Enter")
    page.get_by_text(f"--epochs {epochs}").first.wait_for(state="attached")
    button = page.get_by_role("button", name="Start training")
    button.evaluate("button => { for (let i = 0; i < 5; i++) button.click() }")
    page.wait_for_url("**train_run=2*")
    return page.url.partition("train_run=")[2].partition("&")[0]


def button(page, name: str) -> Locator:
    """A button of the page; the toolbar can have one of that name, too."""
    return page.get_by_test_id("stMain").get_by_role("button", name=name, exact=True)


def test_a_run_is_found_again_after_reload_in_another_tab_and_after_a_restart(root, model_root, tmp_path, page, browser):
    table = small_runs.write_table(tmp_path / "reviews.csv", 400)
    with running(model_root, tmp_path / "log") as server:
        page.goto(server.url + "/train")
        page.locator("input[type=file]").set_input_files(str(table))
        page.get_by_text("400 rows, 2 columns").wait_for()
        id = start(page, 9_000)
        assert [folder.name for folder in root.iterdir() if not folder.name.startswith(".")] == [id]
        progress = page.get_by_text("reviews/s")
        progress.wait_for(timeout=60_000)
        page.reload()
        progress.wait_for()
        with browser.new_page() as other:
            other.goto(page.url)
            other.get_by_text("reviews/s").wait_for()
        page.bring_to_front()  # a page behind another one is not drawn
        page.goto("about:blank")  # as if the tab were closed
    assert run_folder.state(root / id) == "running"  # though its server is gone
    with running(model_root, tmp_path / "second log") as server:
        page.goto(f"{server.url}/train?train_run={id}")
        progress.wait_for()
        os.kill(int((root / id / "pid").read_text()), signal.SIGTERM)  # of the training itself
        page.get_by_text("Interrupted: the system asked it to end after step").wait_for()
        stored = runs.read(id).kept
        assert stored is not None and stored.step > 0
        page.get_by_text(f"Resume goes on after step {stored.step:,} of").wait_for()
        button(page, "Resume").click()  # its process may take a while to end
        button(page, "Stop").wait_for()
        progress.wait_for()
        begun = [event.step for event in runs.read(id).events if isinstance(event, TrainingStarted)]
        assert begun == [0, stored.step]
        page.get_by_role("link", name="Memory").click()  # every page says what runs
        page.wait_for_selector("h1:has-text('Memory')")
        page.get_by_test_id("stSidebar").get_by_role("link", name="reviews.csv").click()
        page.wait_for_selector("h1:has-text('Train')")
        button(page, "Stop").click()
        page.get_by_text("Stopped. Trained for").wait_for()
        page.wait_for_function("document.querySelectorAll('.js-plotly-plot').length === 5")
        page.locator("[data-testid=stMain]").get_by_role("link", name="Compare").click()
        page.wait_for_selector("h3:has-text('What came of it')")
        assert runs.read(id).state == "cancelled" and runs.read(id).model is not None
    for log in ("log", "second log"):
        assert faults(tmp_path / log) == []


SLOW = """
import time
import streamlit as st
from ui import live

live._origin = lambda run: time.sleep(2)
app = st.App({main!r})
"""
"""The app where a page goes on being drawn after its buttons can be pressed."""


PROGRESS = (
    TrainingStarted(n_parameters=7, n_train=40, n_validation=5, epochs=2, device="cpu", precision="float32", backend="eager"),
    StepFinished(
        epoch=1, step=3, total_steps=6, loss=0.7, lr=0.01, gradient_norm=0.9, largest_logit=0.3, reviews_per_s=8.0,
        tokens_per_s=90.0,
    ),
)  # fmt: skip


def test_a_button_that_is_pressed_while_the_page_is_drawn_is_heard_and_stays_in_its_place(root, model_root, tmp_path, page):
    (root / "a").mkdir(parents=True)
    run_folder.write_request(root / "a", ["train"], "mine")
    run_folder.append_event(root / "a", Started(device="cpu"))
    (tmp_path / "slow.py").write_text(SLOW.format(main=str(ROOT / "ui" / "main.py")))
    with FileLock(root / "a" / "lock"), running(model_root, tmp_path / "log", str(tmp_path / "slow.py")) as server:
        page.goto(f"{server.url}/train?train_run=a")
        button(page, "Stop").click()
        page.get_by_text("Asked to stop").wait_for()
        place = button(page, "Stop").bounding_box()
        for event in PROGRESS:
            run_folder.append_event(root / "a", event)
        page.get_by_text("gradient norm").wait_for()
        assert button(page, "Stop").bounding_box() == place
    assert (root / "a" / "cancel").exists()


def test_a_table_of_semicolons_in_cp1252_is_trained_on_and_inspected(root, model_root, tmp_path, page):
    with running(model_root, tmp_path / "log") as server:
        page.goto(server.url + "/train")
        page.locator("input[type=file]").set_input_files(
            {"name": "Bewertungen.csv", "mimeType": "text/csv", "buffer": semicolons()}
        )
        page.get_by_text("401 rows, 3 columns").wait_for()
        said = page.locator("[data-testid=stMain]").inner_text()
        assert "semicolons between columns" in said and "Windows-1252" in said
        assert "Left out 1 of 401 rows, without text: row 401." in said
        start(page, 5)
        page.get_by_text("Trained for").wait_for(timeout=90_000)
        page.locator("[data-testid=stMain]").get_by_role("link", name="Inspect").click()
        page.get_by_role("textbox", name="Review").fill("ein großartig schöner Film – bewegend, schön, hell")
        page.get_by_role("button", name="Inspect").click()
        page.get_by_text("Read all").first.wait_for()
        page.get_by_text("gut").first.wait_for()
        page.get_by_text("übel").first.wait_for()
    assert faults(tmp_path / "log") == []


def test_a_run_that_is_over_leads_to_the_next_one(root, model_root, tmp_path, page):
    table = small_runs.write_table(tmp_path / "reviews.csv", 400)
    with running(model_root, tmp_path / "log") as server:
        page.goto(server.url + "/train")
        page.locator("input[type=file]").set_input_files(str(table))
        page.get_by_text("400 rows, 2 columns").wait_for()
        first = start(page, 2)
        page.get_by_role("button", name="Train again").click(timeout=90_000)
        page.wait_for_url(lambda url: first not in url)
        second = page.url.partition("train_run=")[2].partition("&")[0]
        page.get_by_text(f"runs/{second}").wait_for()
        page.get_by_role("button", name="Change and train").click(timeout=90_000)
        page.get_by_role("button", name="Start training").wait_for()
        assert page.get_by_role("spinbutton", name="epochs").input_value() == "2"
    assert faults(tmp_path / "log") == []


def test_the_form_is_filled_in_on_a_telephone(root, model_root, tmp_path, page):
    page.set_viewport_size({"width": 375, "height": 700})
    with running(model_root, tmp_path / "log") as server:
        page.goto(server.url + "/train")
        page.get_by_text("Expected here").wait_for(timeout=60_000)
        assert not page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth > document.body.clientWidth")
