"""A table of reviews, from the file to the one review that is looked at."""

import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from tests.browser.conftest import Server, faults, running

ROW, TICK = 35, 20
"""Pixels: the height of a row of a table, and where in it a tick is."""


@pytest.fixture
def server(model_root, tmp_path, monkeypatch) -> Iterator[Server]:
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "runs"))
    with running(model_root, tmp_path / "log") as server:
        yield server


@pytest.fixture
def reviews(tmp_path) -> Path:
    texts = [f"good film {i}" if i % 2 else f"a dull plot, number {i} <b>$x$</b>" for i in range(1, 9)]
    path = tmp_path / "my *reviews*.csv"
    pd.DataFrame({"text": texts, "label": [i % 2 for i in range(8)]}).to_csv(path, index=False)
    return path


def choose(page, server, path, said="8 rows, 2 columns", address="/score"):
    page.goto(server.url + address)
    page.get_by_text("Choose a table", exact=True).click()
    page.locator("input[type=file]").set_input_files(path)
    page.wait_for_selector(f"text={said}")


def score(page):
    page.get_by_role("button", name="Score 8 reviews").click()
    page.get_by_role("button", name="Open in Inspect").wait_for()
    page.wait_for_selector("[data-testid=stDataFrame] >> nth=1")


def click(page, row: int, x: int = TICK):
    """In the table of answers; row 0 is that of the names."""
    page.locator("[data-testid=stDataFrame]").nth(1).click(position={"x": x, "y": ROW * row + ROW // 2})


def test_the_review_that_was_ticked_is_the_one_that_opens(server, page, reviews):
    choose(page, server, reviews)
    score(page)
    click(page, 0, x=60)
    page.get_by_text("Sort descending").click()  # in the browser alone: the last review is on top now
    click(page, 1)
    page.wait_for_selector("text=Row 8: a dull plot, number 8 <b>$x$</b>")
    page.get_by_role("button", name="Open in Inspect").click()
    page.wait_for_selector("h1:has-text('Inspect')")
    page.wait_for_selector("[aria-label='The review']")
    assert page.locator("textarea").input_value() == "a dull plot, number 8 <b>$x$</b>"
    page.get_by_role("link", name="Score").click()
    page.get_by_role("button", name="Open in Inspect").wait_for()  # without being scored again
    assert page.get_by_role("button", name="Score 8 reviews").count() == 0
    assert faults(server.log) == []


def test_a_review_is_opened_from_another_order(server, page, reviews):
    choose(page, server, reviews, address="/score?score_order=least%20confident%20first")
    score(page)
    page.locator("[data-testid=stDataFrame]").nth(1).wait_for()
    click(page, 1)
    ticked = page.get_by_text(re.compile(r"^Row \d: ")).inner_text().partition(": ")[2]
    page.get_by_role("button", name="Open in Inspect").click()
    page.wait_for_selector("h1:has-text('Inspect')")
    page.wait_for_selector("[aria-label='The review']")
    assert page.locator("textarea").input_value() == ticked
    page.go_back()
    page.get_by_role("button", name="Open in Inspect").wait_for()
    assert faults(server.log) == []


def test_what_was_stopped_is_kept(server, page, tmp_path):
    path = tmp_path / "many.csv"
    pd.DataFrame({"text": [f"a good film, number {i}, and not dull at all" for i in range(8000)]}).to_csv(path, index=False)
    choose(page, server, path, "8,000 rows, 1 column")
    page.get_by_role("button", name="Score 8,000 reviews").click()
    page.get_by_text("of 8,000 reviews, about").wait_for()
    page.get_by_role("button", name="Stop", exact=True).click()
    page.get_by_text("of 16,000 answers are there already.").wait_for()
    assert page.get_by_role("button", name="Score 8,000 reviews").is_enabled()
    page.get_by_role("button", name="Stop", exact=True).wait_for(state="detached")


def test_an_upload_outlives_the_tab_and_the_way_back_is_open(server, page, browser, reviews):
    page.goto(server.url + "/lengths")
    page.get_by_role("link", name="Score").click()
    page.get_by_text("Choose a table", exact=True).click()
    page.locator("input[type=file]").set_input_files(reviews)
    page.wait_for_selector("text=8 rows, 2 columns")
    page.wait_for_url("**/score?score_data=*")
    with browser.new_context() as other:
        tab = other.new_page()
        tab.goto(page.url)
        tab.wait_for_selector("text=8 rows, 2 columns")
    for _ in range(3):
        page.go_back()
        if "/lengths" in page.url:
            break
    page.wait_for_selector("h1:has-text('Lengths')")
    assert faults(server.log) == []


def test_nothing_scrolls_sideways_on_a_telephone(server, page, reviews):
    page.set_viewport_size({"width": 375, "height": 700})
    choose(page, server, reviews)
    score(page)
    assert not page.evaluate(
        "[document.documentElement, document.querySelector('[data-testid=stMain]')].some(e => e.scrollWidth > e.clientWidth)"
    )
