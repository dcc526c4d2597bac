import json
from dataclasses import replace

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core.data.splits import Splits
from core.inspection.heads import Importance
from core.records import Head, Prediction, Reading
from tests.small_models import TEXTS
from ui import heads, loaders

TEXT = "the film is good and the plot is not bad"
HEAD = dict(entropy=1.0, distance=2.0, added=0.0, first=0.1, signs=0.2, stop_words=0.3)
FOUND = [Head(layer=0, head=0, effect=0.5, **HEAD), Head(layer=0, head=1, effect=-0.9, **HEAD | {"entropy": 3.0})]


@pytest.fixture
def page(first_page) -> AppTest:
    return first_page.run().switch_page("../pages/heads.py").run()


def looked(page: AppTest) -> AppTest:
    """The page of a review, after what else was chosen; AppTest forgets what was typed in the run before."""
    page.text_area(key="inspect_review").set_value(TEXT).run()
    assert not page.exception
    return page


def charts(page: AppTest) -> list[dict]:
    return [json.loads(chart.proto.spec) for chart in page.get("plotly_chart")]


def test_an_empty_page_invites(page):
    assert not page.exception and page.info[0].value.startswith("Nothing to look at yet")


def test_every_head_is_in_the_table_and_has_its_map(page):
    looked(page)
    (table,) = page.dataframe
    assert sorted(table.value["head"]) == [f"layer {layer}, head {head}" for layer in (1, 2) for head in (1, 2, 3)]
    assert (table.value["effect, nats"].abs().diff().dropna() <= 0).all()
    assert [caption for image in page.image for caption in image.captions] == list(table.value["head"])
    page.selectbox(key="heads_sort").set_value("entropy, nats")
    looked(page)
    assert (page.dataframe[0].value["entropy, nats"].diff().dropna() <= 0).all()


def test_heads_that_are_switched_off_change_the_answer_and_the_map_above(page):
    looked(page)
    assert "Choose heads to switch off" in page.info[0].value
    page.multiselect(key="heads_off").set_value(["1.1", "1.2"])
    looked(page)
    page.selectbox(key="heads_seen").set_value("2.1")
    looked(page)
    said = next(one.value for one in page.markdown if "without those" in one.value)
    assert "with all heads" in said
    _, before, after = charts(page)
    assert before["data"][0]["zmax"] == after["data"][0]["zmax"]
    assert before["data"][0]["z"] != after["data"][0]["z"]
    page.selectbox(key="heads_seen").set_value("1.3")
    looked(page)
    _, before, after = charts(page)
    assert before["data"][0]["z"] == after["data"][0]["z"]
    assert any("No head below this one is off" in caption.value for caption in page.caption)


def test_a_network_without_heads_says_so(page):
    page.selectbox(key="heads_model").set_value("imdb-bilstm")
    looked(page)
    assert "has no self\\-attention" in page.error[0].value


def test_test_reviews_are_asked_once_and_kept(page, monkeypatch):
    asked = []

    def splits(name: str) -> Splits:
        asked.append(name)
        raise ValueError("the reviews of c:/x cannot be found")

    monkeypatch.setattr(loaders, "splits", splits)
    looked(page)
    assert asked == []
    page.button(key="heads_ask").click()
    looked(page)
    assert asked == ["imdb-encoder"] and "cannot be found" in page.error[0].value


def test_what_a_sample_says():
    labels = np.arange(200) % 2
    missed = np.where(np.arange(200) < 20, 1 - labels, labels)
    without, effect = np.stack([labels, missed])[None], np.array([[0.1, 2.0]])
    found = Importance(labels=labels, answers=labels, answers_without=without, effect=effect, n_classes=2)
    differences = found.differences()
    said = heads.finding(found, differences)
    assert said.startswith("100.0% of 200 reviews are right with all heads; without layer 1, head 2 10.0 points worse")
    assert "head 1" not in said.replace("layer 1, head 2", "")
    table = heads.importance_frame(found, differences)
    assert list(table["accuracy"]) == [100, 90] and list(table["points"]) == ["±0.0", "-10.0"]
    idle = replace(found, answers_without=np.stack([labels, labels])[None])
    assert "no single head is missed by more than chance" in heads.finding(idle, idle.differences())


def answered(p: float) -> Reading:
    label = "up" if p > 0.5 else "down"
    prediction = Prediction(
        label=label, probabilities={"up": p, "down": 1 - p}, logits=(0.0, 0.0), tokens_read=1, tokens_left_out=0
    )
    return Reading(text="a", prediction=prediction, windows=(), read=((0, 1),), training_mode=False)


def test_an_answer_that_is_not_certain_is_not_said_to_be():
    assert heads.effect(answered(0.9999), answered(0.4)) == (
        "up: over 99.9% with all heads, 40.0% without those (-60.0 points), and the answer turns to down."
    )
    assert heads.effect(answered(0.9), answered(0.8999)) == "up: 90.0% with all heads, 90.0% without those (±0.0 points)."


def test_heads_are_sorted_by_the_size_of_an_effect_and_in_their_places():
    assert [one.head for one in heads.ordered(FOUND, "effect, nats")] == [1, 0]
    assert [one.head for one in heads.ordered(FOUND, heads.PLACE)] == [0, 1]
    assert list(heads.frame(FOUND)["on stop words, %"]) == [30.0, 30.0]


def test_the_sample_of_a_small_model_is_read_once_with_and_once_without_each_head(page, monkeypatch):
    from core.data.reviews import Reviews

    reviews = Reviews(name="x", texts=TEXTS, labels=[1, 0, 1], label_names=("negative", "positive"))
    sides = Splits(train=reviews, validation=reviews, test=reviews, hashes={}, duplicates_dropped=0)
    monkeypatch.setattr(loaders, "splits", lambda name: sides)
    looked(page)
    page.button(key="heads_ask").click()
    looked(page)
    assert not page.error
    assert any("of 3 reviews are right with all heads" in one.value for one in page.markdown)
    assert len(page.dataframe[1].value) == 6
    looked(page)
    assert len(page.dataframe) == 2  # what was asked once stays
