"""Classifiers from elsewhere, named in the page or in its address: a real pretrained one, and what cannot be opened."""

from pathlib import Path

import pytest

from tests import minilm

TEXT = "A superb film, never dull: I <b>loved</b> every minute of it."


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    return str(minilm.write(tmp_path_factory.mktemp("foreign") / "mini <b>lm"))


def errors(page) -> list[str]:
    """The sentences of what went wrong, without the strokes that keep Markdown out."""
    assert all("<" not in error.value.replace("\\<", "") for error in page.error)
    return [error.value.replace("\\", "") for error in page.error]


def name(page, key: str, named: str):
    """The page after a classifier was named in its popover."""
    (asked,) = [field for field in page.text_input if field.label == "Folder, or name on the hub"]
    asked.set_value(named)
    (button,) = [button for button in page.button if button.label == "Open"]
    button.click().run()
    assert not page.exception
    return page


def test_a_classifier_that_is_named_is_read_with_and_the_address_restores_it(inspect, folder):
    inspect.text_area(key="inspect_review").set_value(TEXT)
    name(inspect, "inspect_models", folder)
    assert inspect.multiselect(key="inspect_models").value == ["imdb-encoder", folder]
    assert inspect.query_params["inspect_models"] == ["imdb-encoder", folder]
    shown = "".join(element.value for element in inspect.html)
    assert "BERT · mini &lt;b&gt;lm" in shown and "<b>" not in shown
    assert not inspect.error


def test_an_address_opens_what_it_names(first_page, folder):
    first_page.query_params["inspect_models"] = folder
    page = first_page.run().switch_page("../pages/inspect.py")
    page.query_params["inspect_models"] = folder
    page.run()
    assert not page.exception and not page.error
    assert page.multiselect(key="inspect_models").value == [folder]


@pytest.mark.parametrize("named, reason", [
    ("/nowhere/<b>at all</b>", "there is no such folder"), ("owner/name", "there is no such folder"),
    ("hub:owner/name", "the Hugging Face hub does not answer"), ("hub:<b>/x", "expected a name such as hub:OWNER/NAME"),
    ("/" + "x" * 5000, "it cannot be read"), ("/etc/hostname", "there is no such folder"),
], ids=lambda value: value[:20])  # fmt: skip
def test_what_cannot_be_opened_is_a_sentence_and_changes_nothing(inspect, named, reason):
    before = inspect.multiselect(key="inspect_models").value
    name(inspect, "inspect_models", named)
    (error,) = errors(inspect)
    assert reason in error
    assert inspect.multiselect(key="inspect_models").value == before


def test_an_address_that_names_what_is_gone_says_so_and_shows_the_others(first_page):
    page = first_page.run().switch_page("../pages/score.py")
    page.query_params["score_models"] = ["/nowhere", "one-head"]
    page.run()
    assert not page.exception and "/nowhere: there is no such folder" in errors(page)[0]
    assert page.multiselect(key="score_models").value == ["one-head"]


def test_an_address_downloads_nothing(first_page, monkeypatch):
    monkeypatch.setattr("ui.loaders.take_in", lambda name: pytest.fail(f"{name} was opened"))
    page = first_page.run().switch_page("../pages/score.py")
    page.query_params["score_models"] = ["hub:owner/name", "one-head"]
    page.run()
    assert not page.exception and "hub:owner/name: this address names it, and it has not been downloaded" in errors(page)[0]
    assert page.multiselect(key="score_models").value == ["one-head"]


def test_a_table_is_scored_and_lengths_say_what_is_missing(score, folder):
    name(score, "score_models", folder)
    score.text_area(key="score_text").set_value("A superb film.\nDull and endless.").run()
    score.button(key="score_go").click().run()
    assert not score.exception and not score.error
    assert folder in score.multiselect(key="score_models").value
    lengths = score.switch_page("../pages/lengths.py").run()
    name(lengths, "lengths_models", folder)
    assert any("predictions.parquet" in error for error in errors(lengths))
    assert Path(folder).name in "".join(lengths.multiselect(key="lengths_models").options)
