"""What a person waits for: a page's first heading, an answer, maps, evidence. Needs Playwright and Chromium."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from benchmarks.pairs import Spread, spread
from benchmarks.suite import ROOT, Setting
from core import artifact
from core.config import EncoderArchitecture, RunConfig
from core.recorded import Column, Table

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

EMPTY = "import streamlit as st\n\nst.title('Empty')\n"
TOKENS = 512
READ = 250
"""Tokens of a review for the encoder that comes along."""
STEPS = ("answer and colours", "all maps", "first evidence", "all evidence", "all evidence and its curves")
"""What a person sees of it, one after another."""
WORDS = ("film", "good", "plot", "bad")
EACH_TOKEN = "inspect_tokens_imdb-encoder=true"
LARGE = "imdb-encoder"
"""Name of a model of random weights that reads so many: under this name Inspect shows it unasked."""
COLOURED = "text => [...document.querySelectorAll('[aria-label=\"The review\"]')].some(e => e.textContent === text)"
DRAWN = """([text, tokens, last]) => {
    const drawn = [...document.querySelectorAll(".js-plotly-plot")].map(e => e.data?.[0].x ?? []);
    return [...document.querySelectorAll("[aria-label='The review']")].some(e => e.textContent === text)
        && drawn.some(x => x.length === tokens && String(x[tokens - 1]).includes(last));
}"""
"""The review, and a map, or a table of evidence, of so many tokens, of which the last is known."""
SMALL = "[...document.querySelectorAll('img[alt^=\"Attention map of\"]')]"
NEW_MAPS = f"old => {SMALL}.length && {SMALL}.every(e => e.complete && !old.includes(e.src))"
CURVES = "[...document.querySelectorAll('.js-plotly-plot')].filter(e => e.data?.[0].name?.includes('random')).length"


def part(setting: Setting) -> Iterator[Table]:
    """Table "pages"."""
    with browsing() as (browser, folder):
        found = _first_headings(browser, folder, setting.rounds) | _maps(browser, folder) | _evidence(browser, folder)
    yield _table(setting, found)


@contextmanager
def browsing() -> Iterator[tuple[Browser, Path]]:
    """A browser, and a folder for what servers leave behind. ValueError where there is no browser."""
    from playwright.sync_api import sync_playwright

    from tests.browser.conftest import CHROMIUM, FLAGS

    if not CHROMIUM:
        raise ValueError("there is no Chromium here: install one, or name it in the environment variable CHROMIUM")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser, Path(folder)
        browser.close()


def _first_headings(browser: Browser, folder: Path, rounds: int) -> dict[str, list[float]]:
    """Of a cold server each, and of an empty app's in the same run."""
    empty = folder / "empty.py"
    empty.write_text(EMPTY)
    scripts = {"first heading, this lab": "app.py", "first heading, empty app": str(empty)}
    found: dict[str, list[float]] = {name: [] for name in scripts}
    for _ in range(rounds):
        for name, script in scripts.items():
            with opened(browser, folder, ROOT / "models", script) as (url, page):
                found[name].append(_seconds(lambda url=url, page=page: (page.goto(url), page.wait_for_selector("h1"))))
    ours, theirs = found.values()
    return found | {"first heading, this lab later by": [a - b for a, b in zip(ours, theirs, strict=True)]}


def texts(tokens: int) -> list[str]:
    """Reviews of so many tokens, each a word, that end in different ones."""
    return [" ".join([*(WORDS * tokens)[: tokens - 1], word]) for word in WORDS]


def _maps(browser: Browser, folder: Path) -> dict[str, list[float]]:
    """An answer by the shipped encoder with its map; a map of many tokens in a new tab, and then again."""
    short, long = [" ".join([word] * 30) for word in WORDS], texts(TOKENS)
    with opened(browser, folder, ROOT / "models", "app.py") as (url, page):
        page.goto(f"{url}/inspect?inspect_models=imdb-encoder")
        _ask(page, short[0], 30)
        warm = [_seconds(lambda text=text: _ask(page, text, 30)) for text in short[1:]]
    with opened(browser, folder, large_model(folder / "large"), "app.py") as (url, page):
        page.goto(f"{url}/inspect?{EACH_TOKEN}")
        _ask(page, long[0], TOKENS)
        again = [_seconds(lambda text=text: _ask(page, text, TOKENS)) for text in long[1:]]
        tab, received = page.context.new_page(), []
        tab.on("websocket", lambda socket: socket.on("framereceived", lambda frame: received.append(len(frame))))
        new_tab = _seconds(lambda: (tab.goto(f"{url}/inspect?{EACH_TOKEN}"), _ask(tab, long[0], TOKENS)))
    return {
        "answer with its map": warm,
        f"map of {TOKENS} tokens in a new tab": [new_tab],
        f"map of {TOKENS} tokens": again,
        f"map of {TOKENS} tokens, MiB sent": [sum(received) / 2**20],
    }


def _evidence(browser: Browser, folder: Path) -> dict[str, list[float]]:
    """What comes of a review of `READ` tokens, in the order in which it comes, since the button was pressed."""
    found: dict[str, list[float]] = {f"{step}, {READ} tokens": [] for step in STEPS}
    with opened(browser, folder, ROOT / "models", "app.py") as (url, page):
        page.goto(f"{url}/inspect?inspect_models=imdb-encoder&{EACH_TOKEN}")
        waited = [_inspected(page, text) for text in texts(READ)]
        page.goto(f"{url}/evidence?evidence_models=imdb-encoder")
        waited = [a + b for a, b in zip(waited, [_explained(page, text) for text in texts(READ)], strict=True)]
    for name, seconds in zip(found, zip(*waited[1:], strict=True), strict=True):  # the first one is to warm up
        found[name] += seconds
    return found


def _inspected(page: Page, text: str) -> list[float]:
    """Seconds until the words are coloured, and until all maps are there."""
    old = page.evaluate(f"{SMALL}.map(e => e.src)")
    start = press(page, text, "Inspect")
    page.wait_for_function(COLOURED, arg=text)
    coloured = time.perf_counter() - start
    page.wait_for_function(DRAWN, arg=[text, READ, text.split()[-1]])
    page.wait_for_function(NEW_MAPS, arg=old)
    return [coloured, time.perf_counter() - start]


def _explained(page: Page, text: str) -> list[float]:
    """Seconds until the first evidence is there, and all of it, and its curves."""
    start = press(page, text, "Explain")
    page.wait_for_function(COLOURED, arg=text)
    first = time.perf_counter() - start
    page.wait_for_function(DRAWN, arg=[text, READ, text.split()[-1]])
    everything = time.perf_counter() - start
    page.wait_for_function(f"{CURVES} === 0")  # those of the review before go when the page is whole
    page.get_by_role("button", name="Test the evidence").click()
    page.wait_for_function(f"{CURVES} === 2")
    return [first, everything, time.perf_counter() - start]


def large_model(root: Path) -> Path:
    """A folder of models that holds one of random weights, which reads `TOKENS`."""
    from core.data import tokenizer as tokenizers
    from core.networks.auto import build
    from tests.small_models import TEXTS, predictions

    tokenizer = tokenizers.train(TEXTS * 3, 200)
    architecture = EncoderArchitecture(
        vocab_size=tokenizer.get_vocab_size(), max_len=TOKENS, d_model=128, n_heads=4, n_layers=2
    )
    torch.manual_seed(0)
    artifact.write_network(
        root / LARGE, build(architecture, ("negative", "positive")).eval(), tokenizer, RunConfig(model=architecture)
    )
    (root / LARGE / "run.json").write_text("{}")
    predictions().to_parquet(root / LARGE / "predictions.parquet")
    return root


@contextmanager
def opened(browser: Browser, folder: Path, models: Path, script: str) -> Iterator[tuple[str, Page]]:
    """A fresh server, and a page of a browser that has kept nothing."""
    from tests.browser.conftest import running

    with running(models, folder / "log", script) as server:
        context = browser.new_context(viewport={"width": 1400, "height": 900})
        page = context.new_page()
        page.set_default_timeout(120_000)
        yield server.url, page
        context.close()


def _ask(page: Page, text: str, tokens: int) -> None:
    """Types and presses the button; until text and map are on the screen."""
    press(page, text, "Inspect")
    page.wait_for_function(DRAWN, arg=[text, tokens, text.split()[-1]])


def press(page: Page, text: str, button: str) -> float:
    """Types and presses; when that was."""
    page.locator("textarea").fill(text)
    start = time.perf_counter()
    page.get_by_role("button", name=button, exact=True).click()
    return start


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _table(setting: Setting, found: dict[str, list[float]]) -> Table:
    spreads: dict[str, Spread] = {name: spread(values) for name, values in found.items()}
    return Table(
        name="pages",
        caption="Seconds in Chromium, browser and server on this machine: median and range. First headings are of "
        f"{setting.rounds} cold servers each, an empty Streamlit app in turn; answers are of a warm server, until text and map "
        "are drawn.",
        columns=(Column(name="what"), *(Column(name=name, unit="s") for name in ("median", "lowest", "highest"))),
        rows=tuple((name, *each.cells) for name, each in spreads.items()),
    )
