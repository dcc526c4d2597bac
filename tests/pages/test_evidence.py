import json

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import core.inspection.evidence
from core.catalog import EVIDENCE
from core.records import Attribution, Evidence, Prediction, Word
from tests.pages.test_inspect import PROBES, Shown
from ui import evidence
from ui.review_text import units_of_words

TEXT = "the film is good and the plot is not bad"
ANSWER = Prediction(label="<b>", probabilities={"<b>": 0.9, "c": 0.1}, logits=(2.0, 0.0), tokens_read=3, tokens_left_out=1)
FOUND = Evidence(
    text="good, bad film",
    prediction=ANSWER,
    words=tuple(Word(span=span, read=read, unknown=False) for span, read in
                [((0, 4), True), ((4, 5), True), ((6, 9), True), ((10, 14), False)]),
    found={"occlusion": Attribution(values=np.array([3.0, 0.0, -1.0, 0.0])),
           "attention": Attribution(values=np.array([0.2, 0.2, 0.6, 0.0]), note="a note")},
)  # fmt: skip


@pytest.fixture
def page(first_page) -> AppTest:
    return first_page.run().switch_page("../pages/evidence.py").run()


def explained(page: AppTest, text: str = TEXT, *models: str) -> AppTest:
    """The page of a review, after what else was chosen; AppTest forgets what was typed in the run before."""
    page.text_area(key="inspect_review").set_value(text)
    if models:
        page.multiselect(key="evidence_models").set_value(list(models))
    page.run()
    assert not page.exception
    return page


def coloured(page: AppTest) -> Shown:
    (review,) = [Shown(one.value) for one in page.html if 'aria-label="The review"' in one.value]
    return review


def charts(page: AppTest) -> list[dict]:
    return [json.loads(chart.proto.spec) for chart in page.get("plotly_chart")]


def test_an_empty_page_invites(page):
    assert not page.exception and page.info[0].value.startswith("Nothing to explain yet")


def test_every_method_is_shown_on_the_same_words(page):
    explained(page)
    assert coloured(page).text == TEXT
    (chart,) = charts(page)
    titles = [method.title for method in EVIDENCE.values() if method.of_networks]
    assert chart["data"][0]["y"] == titles
    assert len(chart["data"][0]["x"]) == len(TEXT.split())
    assert page.get("button_group")  # of the methods
    assert "Kendall's tau" in "".join(one.value for one in page.markdown).replace("\\", "")


def test_the_first_evidence_is_on_the_page_while_the_rest_is_looked_for(page, monkeypatch):
    genuine = core.inspection.evidence.evidence

    def refuse_the_rest(model, text, methods, *heard):
        if methods != ["occlusion"]:
            raise ValueError("no more today")
        return genuine(model, text, methods, *heard)

    monkeypatch.setattr(core.inspection.evidence, "evidence", refuse_the_rest)
    explained(page)
    assert coloured(page).text == TEXT and "no more today" in page.error[0].value
    monkeypatch.undo()
    explained(page)
    assert coloured(page).text == TEXT and not page.error and len(charts(page)) == 1


def test_every_number_is_there_to_take_away_when_it_is_unfolded(page):
    explained(page)
    assert not page.dataframe and not page.get("download_button")
    page.query_params["evidence_numbers_imdb-encoder"] = "true"
    page.switch_page("../pages/evidence.py").run()
    explained(page)
    assert list(page.dataframe[0].value["word"]) == TEXT.split()
    assert len(page.get("download_button")) == 3


def test_evidence_is_tested_when_asked(page):
    explained(page)
    page.button(key="evidence_test_imdb-encoder").click()
    explained(page)
    assert len(charts(page)) == 3
    table = page.dataframe[-1].value
    assert set(table["here"]) <= {
        "better than random", "better than random in deletion alone", "better than random in insertion alone",
        "no better than random",
    }  # fmt: skip
    explained(page)
    assert len(charts(page)) == 3  # what was asked once stays
    explained(page, "a dull film")
    assert len(charts(page)) == 1


def test_a_bilstm_is_explained_without_layers(page):
    explained(page, TEXT, "imdb-bilstm")
    (chart,) = charts(page)
    assert "Attention rollout" not in chart["data"][0]["y"] and "Occlusion" in chart["data"][0]["y"]


@pytest.mark.parametrize("name", ["markup", "attribute", "chinese", "arabic"])
def test_typed_text_is_shown_letter_for_letter(page, name):
    explained(page, PROBES[name])
    assert coloured(page).text == PROBES[name] and coloured(page).tags <= {"div", "span"}


def test_colours_are_of_the_sign_and_the_legend_names_the_strongest():
    units = units_of_words(FOUND.words, FOUND.found["occlusion"].shares)
    assert {unit.span: unit.share for unit in units} == {(0, 4): 0.75, (4, 5): 0.0, (6, 9): -0.25}  # what was not read has none
    legend = evidence._legend(FOUND, "occlusion")
    assert "Orange speaks for \\<b\\>, blue against it; full colour at 75.0% of all evidence (good)" in legend
    unsigned = evidence._legend(FOUND, "attention")
    assert "not for which class" in unsigned and unsigned.endswith("A note\\.")
