"""Whether a server and its tabs keep their size while a training is followed.

Needs Playwright and Chromium. `python -m benchmarks.cpu --only followed` records it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from math import sin
from statistics import mean
from typing import TYPE_CHECKING
from unittest.mock import patch

from filelock import FileLock

from benchmarks.pages import browsing, opened
from benchmarks.sessions import server
from benchmarks.suite import ROOT, Setting
from core import run_folder
from core.events import Started, StepFinished, TrainingStarted
from core.recorded import Column, Table

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

TABS = 5
MINUTES = (1, 2, 4, 6, 8, 10)
"""After so many server and tabs are looked at."""
QUICK = (0.05, 0.1)
BEFORE, A_SECOND, STEPS = 2_000, 5, 20_000
"""Steps that the training has made before, that it makes in a second, and that it is to make."""


def part(setting: Setting) -> Iterator[Table]:
    """Table "followed"."""
    minutes = QUICK if setting.quick else MINUTES
    with browsing() as (browser, folder), patch.dict(os.environ, {"ATTENTION_LAB_RUNS": str(folder / "runs")}):
        run = folder / "runs" / "followed"
        _begin(run)
        with FileLock(run / "lock"), ExitStack() as stack:
            url, first = stack.enter_context(opened(browser, folder, ROOT / "models", "app.py"))
            tabs = [first, *(browser.new_context().new_page() for _ in range(TABS - 1))]
            for tab in tabs:
                tab.goto(f"{url}/train?train_run={run.name}")
                tab.get_by_text("gradient norm").first.wait_for(timeout=120_000)
            rows = tuple(_looks(run, tabs, minutes))
    yield Table(
        name="followed",
        caption=f"Memory while {TABS} tabs follow a training that makes {A_SECOND} steps a second, each with five curves that "
        "are drawn again every second: the server's, resident, and of the tabs the mean of their JavaScript heaps after a "
        "collection.",
        columns=(
            Column(name="time", unit="min"),
            Column(name="step"),
            Column(name="server", unit="MiB"),
            Column(name="a tab", unit="MiB"),
        ),
        rows=rows,
    )


def _begin(run: Path) -> None:
    run.mkdir(parents=True)
    run_folder.write_request(run, ["train"], "followed")
    run_folder.append_event(run, Started(device="cpu"))
    run_folder.append_event(run, TrainingStarted(
        n_parameters=1, n_train=40_000, n_validation=1, epochs=1, device="cpu", precision="float32", backend="eager"
    ))  # fmt: skip
    for step in range(1, BEFORE + 1):
        _make(run, step)


def _make(run: Path, step: int) -> None:
    run_folder.append_event(run, StepFinished(
        epoch=1, step=step, total_steps=STEPS, loss=1 / step, lr=1e-3 * (1 - step / STEPS), gradient_norm=2 + sin(step),
        largest_logit=2 + sin(step / 7), reviews_per_s=1.0, tokens_per_s=1.0,
    ))  # fmt: skip


def _looks(run: Path, tabs: list[Page], minutes: tuple[float, ...]) -> Iterator[tuple[float, int, float, float]]:
    """Minutes, step, MiB of the server and of a tab at each look."""
    process, began, step = server(), time.monotonic(), BEFORE
    for after in minutes:
        while time.monotonic() - began < 60 * after:
            for _ in range(A_SECOND):
                step += 1
                _make(run, step)
            time.sleep(1)
        yield after, step, process.memory_info().rss / 2**20, mean(_heap(tab) for tab in tabs)


def _heap(tab: Page) -> float:
    inspector = tab.context.new_cdp_session(tab)
    inspector.send("HeapProfiler.collectGarbage")
    used = inspector.send("Runtime.getHeapUsage")["usedSize"]
    inspector.detach()
    return used / 2**20
