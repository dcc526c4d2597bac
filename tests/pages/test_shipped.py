"""The pages with the models that come along."""

import pytest
from streamlit.testing.v1 import AppTest

from core.artifact import ROOT
from tests.pages.conftest import MAIN

SHIPPED = ("imdb-encoder", "imdb-bilstm")


@pytest.fixture
def app(monkeypatch) -> AppTest:
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(ROOT / "models"))
    return AppTest.from_file(str(MAIN), default_timeout=60).run()


def test_they_read_an_example_and_can_be_trusted(app):
    app.switch_page("../pages/inspect.py").run()
    app.button(key="inspect_example_Positive").click().run()
    assert not app.exception and not app.error and not app.warning
    answers = [element.value for element in app.html if "margin" in element.value and "points" in element.value]
    assert len(answers) == len(SHIPPED)
    assert all(f"· {name}<" in answer for name, answer in zip(SHIPPED, answers, strict=True))


def test_their_accuracy_by_length_is_of_the_same_reviews(app):
    app.switch_page("../pages/lengths.py").run()
    assert not app.exception and not app.error
    table = app.dataframe[0].value
    shipped = table[table["model"].isin(SHIPPED)]
    assert shipped.groupby("words")["n"].nunique().eq(1).all()
    assert (shipped["from"] <= shipped["accuracy"]).all() and (shipped["accuracy"] <= shipped["to"]).all()
