from pathlib import Path

import pytest
import streamlit
from streamlit.testing.v1 import AppTest

from tests import small_models

MAIN = Path(__file__).parents[2] / "ui" / "main.py"


@pytest.fixture(scope="session")
def model_root(tmp_path_factory) -> Path:
    return small_models.write(tmp_path_factory.mktemp("models"))


@pytest.fixture(autouse=True)
def nothing_kept():
    """Every test is a session of its own, which AppTest's are not to the caches."""
    yield
    streamlit.cache_resource.clear()


@pytest.fixture
def first_page(model_root, monkeypatch) -> AppTest:
    """The app before its first run."""
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(model_root))
    return AppTest.from_file(str(MAIN), default_timeout=30)


@pytest.fixture
def inspect(first_page) -> AppTest:
    return first_page.run().switch_page("../pages/inspect.py").run()


@pytest.fixture
def lengths(first_page) -> AppTest:
    return first_page.run().switch_page("../pages/lengths.py").run()


@pytest.fixture
def score(first_page, tmp_path, monkeypatch) -> AppTest:
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "runs"))
    return first_page.run().switch_page("../pages/score.py").run()
