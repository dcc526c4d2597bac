"""A real server and a real browser, for what only they show: drawing, URLs, scrolling and the log."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests import small_models

ROOT = Path(__file__).parents[2]
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
# as root, and without a network to look for updates in
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip


TRACEBACK = re.compile(r"^.*Traceback \(most recent call last\):\n(?:\s.*\n|\n)*(.*)", re.MULTILINE)
HUNG_UP = "starlette.websockets.WebSocketDisconnect"
"""What a server logs, with a traceback, of a tab that was closed while it was being written to."""


@dataclass(frozen=True)
class Server:
    """A running app."""

    url: str
    log: Path


def faults(log: Path) -> list[str]:
    """What went wrong in a server, the last line of each traceback; a tab that was closed is no fault of the app."""
    return [error for error in TRACEBACK.findall(log.read_text()) if not error.startswith(HUNG_UP)]


@contextmanager
def running(models: Path, log: Path, script: str = "app.py") -> Iterator[Server]:
    """The app, or another, as a person starts it, on a free port, until the block ends."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    argv = [sys.executable, "-m", "streamlit", "run", script, "--server.headless=true", f"--server.port={port}"]
    environment = os.environ | {"ATTENTION_LAB_MODELS": str(models), "OMP_NUM_THREADS": "1"}
    with log.open("w") as output:
        process = subprocess.Popen(argv, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT)
    try:
        _wait_for(f"http://localhost:{port}/_stcore/health", process)
        yield Server(f"http://localhost:{port}", log)
    finally:
        process.terminate()
        try:
            process.wait(timeout=60)
        finally:
            process.kill()
            process.wait()


def _wait_for(url: str, process: subprocess.Popen) -> None:
    for _ in range(300):
        assert process.poll() is None, "the server ended"
        try:
            urllib.request.urlopen(url, timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(url)


@pytest.fixture(scope="session")
def model_root(tmp_path_factory) -> Path:
    return small_models.write(tmp_path_factory.mktemp("models"))


@pytest.fixture
def fresh_server(model_root, tmp_path) -> Iterator[Server]:
    with running(model_root, tmp_path / "log") as server:
        yield server


@pytest.fixture(scope="module")
def server(model_root, tmp_path_factory) -> Iterator[Server]:
    with running(model_root, tmp_path_factory.mktemp("server") / "log") as server:
        yield server


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if not CHROMIUM:
        pytest.skip("there is no Chromium here: install one, or name it in the environment variable CHROMIUM")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(browser) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.set_default_timeout(90_000)  # a machine may be busy with other things
    yield page
    page.close()
