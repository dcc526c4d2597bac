"""Whether a server's memory levels off: different reviews, one after another, in several sessions at once.

Needs Playwright and Chromium. `python -m benchmarks.cpu --only sessions` records it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import psutil

from benchmarks.pages import browsing, opened, press
from benchmarks.suite import ROOT, Setting
from core.recorded import Column, Table

if TYPE_CHECKING:
    from playwright.sync_api import Page

SESSIONS = 3
REVIEWS = (50, 100, 200, 300)
"""After so many the server is looked at."""
QUICK = (3, 6, 9)
ANSWERED = """text => [...document.querySelectorAll("[aria-label='The review']")].filter(e => e.textContent === text).length > 1
    && document.querySelector("[data-testid=stApp]").dataset.testScriptState === 'notRunning'"""
"""The review twice, once for each model, and a page that is whole."""


def part(setting: Setting) -> Iterator[Table]:
    """Table "sessions"."""
    looks = QUICK if setting.quick else REVIEWS
    with browsing() as (browser, folder), ExitStack() as stack:
        url, first = stack.enter_context(opened(browser, folder, ROOT / "models", "app.py"))
        pages = [first, *(browser.new_page() for _ in range(SESSIONS - 1))]
        for page in pages:
            page.goto(f"{url}/inspect")
        resident = _resident(pages, _texts(looks[-1]), looks)
    yield Table(
        name="sessions",
        caption=f"Memory of a server, resident, while {SESSIONS} sessions take turns to inspect test reviews of films by both "
        "models that come along, each review another one and with its maps, as a person does who types and presses.",
        columns=(
            Column(name="reviews"),
            Column(name="memory", unit="MiB"),
            Column(name="more than at the first look", unit="MiB"),
        ),
        rows=tuple((n, mib, mib - resident[0]) for n, mib in zip(looks, resident, strict=True)),
    )


def _texts(n: int) -> list[str]:
    from core.data.sources.bundled import imdb
    from core.data.splits import split

    return split(imdb()).test.spread(n).texts


def _resident(pages: list[Page], texts: list[str], looks: tuple[int, ...]) -> list[float]:
    """MiB of the server at each look."""
    process, found = server(), []
    for number, text in enumerate(texts, 1):
        page = pages[number % len(pages)]
        press(page, text, "Inspect")
        page.wait_for_function(ANSWERED, arg=page.locator("textarea").input_value(), timeout=120_000)
        if number in looks:
            found.append(process.memory_info().rss / 2**20)
    return found


def server() -> psutil.Process:
    """The server that this process has started."""
    (found,) = [one for one in psutil.Process().children() if "streamlit" in one.cmdline()]
    return found
