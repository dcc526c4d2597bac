"""One sweep of small cells as a person starts it: five quick clicks, one run, found again after a reload, shown to a room."""

import re

import pytest

from tests.browser.conftest import faults, running

NAMES = "e => e.data.map(trace => trace.name)"
OVERLAPS = """() => [...document.querySelectorAll('.js-plotly-plot')].some(plot => {
    const [tools, legend] = ['.modebar', '.legend'].map(part => plot.querySelector(part)?.getBoundingClientRect())
    return tools && legend && tools.bottom > legend.top && legend.bottom > tools.top
})"""


@pytest.fixture
def own_server(model_root, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "runs"))
    with running(model_root, tmp_path / "log") as server:
        yield server


def test_five_clicks_measure_once_a_reload_finds_it_and_a_projector_shows_it(own_server, page, tmp_path):
    page.goto(own_server.url + "/memory?memory_lengths=128&memory_n_heads=2")
    page.wait_for_selector(".js-plotly-plot")
    page.get_by_role("button", name="Measure").evaluate("button => { for (let i = 0; i < 5; i++) button.click() }")
    page.wait_for_url(re.compile("memory_run="))
    page.wait_for_selector("text=In time, at 128 tokens", timeout=300_000)  # two cells, on a machine that may be busy
    page.reload()
    page.wait_for_selector("text=In time, at 128 tokens")
    names = page.locator(".js-plotly-plot").first.evaluate(NAMES)
    assert names == ["eager, predicted", "sdpa, predicted", "eager, measured", "sdpa, measured"]
    assert len([folder for folder in (tmp_path / "runs").iterdir() if not folder.name.startswith(".")]) == 1
    page.set_viewport_size({"width": 375, "height": 700})
    page.wait_for_function("document.querySelector('[data-testid=stMain]').scrollWidth <= 375")  # once the charts have followed
    page.wait_for_selector(".js-plotly-plot .legend", state="attached")
    assert not page.evaluate(OVERLAPS)
    page.set_viewport_size({"width": 1400, "height": 900})
    page.get_by_role("tab", name="All figures").click()
    files = [page.expect_download(lambda file, end=end: file.suggested_filename.endswith(end)) for end in ("csv", "html")]
    with files[0], files[1]:  # in quick succession, the one does not undo the other
        page.get_by_role("button", name="Download CSV").click()
        page.get_by_role("button", name="Download HTML").click()
    with page.expect_popup() as opened:
        page.get_by_role("link", name="Present").click()
    projector = opened.value
    projector.get_by_role("heading", name=re.compile("^Measured at 128 tokens")).wait_for(timeout=90_000)
    projector.wait_for_function("document.querySelectorAll('.js-plotly-plot').length === 2", timeout=90_000)
    assert "present=1" in projector.url and projector.get_by_role("tab").count() == 0
    assert projector.locator("[data-testid=stSidebarNav]").count() == 0
    assert faults(own_server.log) == []
