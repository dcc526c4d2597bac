"""A page that follows what lives on it, and disturbs nothing else meanwhile."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from core import jobs
from core.presets import flags
from tests import small_runs
from tests.browser.conftest import Server, faults, running


@pytest.fixture
def root(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return tmp_path / "runs"


@pytest.fixture
def compare(root, model_root, tmp_path) -> Iterator[Server]:
    with running(model_root, tmp_path / "log") as server:
        yield server


def test_a_run_is_followed_from_its_place_in_the_queue_to_its_end(compare, root, page, tmp_path):
    config = small_runs.config(small_runs.write_table(tmp_path / "reviews.csv"))
    with jobs.hold(root / "1", "cpu"):  # has the device, so that the other one waits
        jobs.launch(["train", *flags("tiny", config)], root / "2", "<b>mine</b>")
        page.goto(f"{compare.url}/compare?compare_runs=2&compare_runs=models/cls")
        page.wait_for_selector("summary:has-text('<b>mine</b> · 2: queued')")
        state = page.locator("[data-testid=stDataFrame] [role=gridcell]").filter(has_text="queued, 1 ahead")
        state.wait_for(state="attached")
        page.locator("summary").first.click()
        name = page.get_by_label("Name")
        name.fill("typed, and not yet sent")
        page.evaluate("document.querySelector('[data-testid=stMultiSelect]').marked = true")
    page.wait_for_selector("summary:has-text('<b>mine</b> · 2: succeeded')", timeout=90_000)
    assert name.input_value() == "typed, and not yet sent"
    assert page.evaluate("document.querySelector('[data-testid=stMultiSelect]').marked")  # is still the same element
    page.locator("[role=gridcell]").filter(has_text="MiB (VmHWM)").wait_for(state="attached")
    page.wait_for_function("document.querySelectorAll('.js-plotly-plot').length === 6")
    page.get_by_role("button", name="Rename").click()
    page.wait_for_selector("summary:has-text('typed, and not yet sent · 2: succeeded')")
    assert "compare_runs=2&" in page.url
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Undo").click()
    page.wait_for_selector("summary:has-text('typed, and not yet sent · 2: succeeded')")
    assert faults(compare.log) == []


def test_it_is_read_on_a_telephone(compare, root, page):
    page.set_viewport_size({"width": 375, "height": 700})
    page.goto(compare.url + "/compare?compare_runs=models/cls&compare_runs=models/imdb-bilstm")
    page.wait_for_selector("h3:has-text('How training went')")
    assert not page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth > document.body.clientWidth")
