import http.client
import json
from contextlib import closing
from pathlib import Path

import pytest
from filelock import FileLock

from core import run_folder
from core.events import Started
from tests.browser.conftest import ROOT, faults, running

PROBES = json.loads((Path(__file__).parents[1] / "probes.json").read_text(encoding="utf-8"))
SHADED = "[aria-label='The review']"


def inspect(page, text):
    """Types `text` and presses the button at once."""
    page.locator("textarea").fill(text)
    page.get_by_role("button", name="Inspect", exact=True).click()
    page.wait_for_function(
        "([selector, text]) => [...document.querySelectorAll(selector)].filter(e => e.textContent === text).length === 2",
        arg=[SHADED, text],
    )


def scrolls_sideways(page) -> bool:
    return page.evaluate(
        "[document.documentElement, document.querySelector('[data-testid=stMain]')].some(e => e.scrollWidth > e.clientWidth)"
    )


def test_a_tab_that_looks_for_its_server_does_not_keep_it(fresh_server):
    """uvicorn waits for a connection that was opened as it began to end, for as long as something is asked on it."""
    for path, lasts in (("/_stcore/health", False), ("/_stcore/host-config", False), ("/", True)):
        with closing(http.client.HTTPConnection(fresh_server.url.removeprefix("http://"))) as connection:
            connection.request("GET", path)
            answer = connection.getresponse()
            assert answer.status == 200 and answer.read()
            assert (connection.sock is not None) is lasts, path


def test_what_went_wrong_is_found_in_a_log(tmp_path):
    log = tmp_path / "log"
    hung_up = "Traceback (most recent call last):\n  File 'a'\n    b()\nstarlette.websockets.WebSocketDisconnected: closed\n"
    log.write_text(f"You can now view it.\nException in ASGI application\n{hung_up}\nDuring it, another:\n\n{hung_up}")
    assert faults(log) == []
    log.write_text(
        f"{hung_up}2026-11-30 error: Traceback (most recent call last):\n  File 'c'\n\n    d[0]\nIndexError: d\n{hung_up}"
    )
    assert faults(log) == ["IndexError: d"]


TITLES = [
    "Inspect", "Evidence", "Heads", "What if", "Score", "Lengths", "Reviews", "Calibration", "Train", "Compare", "Ablate",
    "Memory", "Backends", "Claims",
]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "title"),
    [("/", "Inspect"), ("/inspect", "Inspect"), ("/score", "Score"), ("/compare", "Compare"), ("/lengths", "Lengths")],
)
def test_a_fresh_server_is_first_asked_for_any_page(fresh_server, page, path, title):
    page.goto(fresh_server.url + path)
    page.wait_for_selector(f"h1:has-text('{title}')")
    page.wait_for_selector("[data-testid=stMultiSelect]")
    assert page.title() == f"{title} - Attention lab"
    links = page.locator("[data-testid=stSidebarNavLink]")
    shown = [link.splitlines()[-1] for link in links.all_inner_texts()]
    assert title in shown and shown == [name for name in TITLES if name in shown]
    assert page.get_by_text("The tab's symbol").count() == 0  # what a script says of itself is not drawn
    assert page.locator("[role=dialog]").count() == 0  # "Page not found"
    assert faults(fresh_server.log) == []


def test_markup_is_drawn_and_not_run(server, page):
    dialogs = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.goto(server.url + "/inspect")
    for text in (PROBES["markup"], PROBES["attribute"], PROBES["whitespace"], "<img src=x onerror=alert(1)>$x$ **b** :smile:"):
        inspect(page, text)
        assert page.locator(f"{SHADED} *:not(span)").count() == 0
        labels = page.locator(".js-plotly-plot").first.evaluate("e => e.data[0].x.length")
        assert labels > 1
    assert dialogs == []
    drawn = page.locator(".js-plotly-plot .xtick text, .js-plotly-plot .xaxislayer-above text").all_text_contents()
    assert any("<" in label for label in drawn)  # a tick, too, is what was typed
    assert faults(server.log) == []
    assert "alert" not in server.log.read_text()  # what a person types is not written down


def test_a_copied_address_shows_the_same_view(server, page):
    page.goto(server.url + "/?inspect_models=imdb-encoder&inspect_layer_imdb-encoder=1&inspect_head_imdb-encoder=3")
    page.wait_for_selector("textarea")
    page.get_by_role("button", name="Short", exact=True).click()
    page.wait_for_selector("text=Attention received, layer 1, head 3.")
    page.wait_for_selector("img[alt='Attention map of layer 2, head 3']")
    page.get_by_role("link", name="Lengths").click()
    page.wait_for_selector("h1:has-text('Lengths')")
    page.get_by_role("link", name="Inspect").click()
    page.wait_for_selector("text=Attention received, layer 1, head 3.")
    assert faults(server.log) == []


SLOW = """
import gc, time
import streamlit as st
from ui import running

running.SECONDS_BETWEEN_LOOKS = 0.2
gc.collect = lambda *_: time.sleep(0.4)
app = st.App({main!r})
"""
"""The app where most clicks come when a look at what runs is over and its thread is not: Streamlit collects garbage then."""


def test_a_page_that_is_asked_for_while_the_sidebar_is_drawn_is_drawn_in_its_place(model_root, tmp_path, page, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "runs"))
    folder = tmp_path / "runs" / "a"
    folder.mkdir(parents=True)
    run_folder.write_request(folder, ["train"], "mine")
    run_folder.append_event(folder, Started(device="cpu"))
    (tmp_path / "slow.py").write_text(SLOW.format(main=str(ROOT / "ui" / "main.py")))
    sidebar = page.get_by_test_id("stSidebar")
    with FileLock(folder / "lock"), running(model_root, tmp_path / "log", str(tmp_path / "slow.py")) as server:
        page.goto(server.url + "/claims")
        for title in ("Compare", "Claims", "Compare", "Claims"):
            sidebar.get_by_role("link", name="mine").wait_for()
            sidebar.get_by_role("link", name=title, exact=True).click()
            page.wait_for_selector(f"h1:has-text('{title}')")
            assert sidebar.locator("h1").count() == 0
    assert faults(tmp_path / "log") == []


def test_nothing_scrolls_sideways_on_a_telephone(server, page):
    page.set_viewport_size({"width": 375, "height": 700})
    page.goto(server.url + "/inspect")
    inspect(page, PROBES["one_huge_word"] + " " + PROBES["chinese"])
    page.wait_for_selector(".js-plotly-plot")
    assert not scrolls_sideways(page)
    page.goto(server.url + "/lengths")
    page.wait_for_selector(".js-plotly-plot")
    assert not scrolls_sideways(page)


def test_nothing_is_asked_of_another_server(fresh_server, page):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(fresh_server.url + "/inspect")
    inspect(page, "a good film")
    page.wait_for_selector(".js-plotly-plot")
    page.goto(fresh_server.url + "/lengths")
    page.wait_for_selector(".js-plotly-plot")
    own = (fresh_server.url, fresh_server.url.replace("http", "ws"), "data:", "blob:")
    assert [url for url in asked if not url.startswith(own)] == []
