import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from core.data.reviews import Reviews
from core.data.splits import split
from core.figures.colors import AGAINST, ink
from core.inspection import edits
from core.inspection.checklist import Checked
from core.inspection.deletions import Deletions
from core.inspection.edits import Weighed
from core.inspection.rewrites import Rewrite
from core.records import Prediction, Word
from tests import foreign_models
from tests.pages.test_inspect import PROBES, Shown
from ui import contrast, loaders, whatif
from ui.contrast import GONE, NEW
from ui.review_text import STRONGEST

TEXT = "the film is good and the plot is not bad"


@pytest.fixture
def page(first_page) -> AppTest:
    """With every number unfolded."""
    page = first_page.run().switch_page("../pages/whatif.py")
    page.query_params["whatif_words_numbers"] = page.query_params["whatif_models_numbers"] = "true"
    return page.run()


def tried(page: AppTest, what: str, text: str = TEXT, **widgets: str | bool) -> AppTest:
    """The page of a review and of one way to change it; AppTest forgets what was typed in the run before."""
    page.text_area(key="inspect_review").set_value(text)
    page.segmented_control(key="whatif_try").set_value(what).run()
    if widgets:
        page.text_area(key="inspect_review").set_value(text)
        for key, value in widgets.items():
            kinds = (page.text_area, page.selectbox, page.toggle)
            next(widget for kind in kinds for widget in kind if widget.key == key).set_value(value)
        page.run()
    assert not page.exception
    return page


def texts(page: AppTest) -> list[str]:
    """What is on the page as HTML with the text of a review in it."""
    return [one.value for one in page.html if 'aria-label="The review"' in one.value]


def chart(page: AppTest) -> dict:
    (found,) = page.get("plotly_chart")
    return json.loads(found.proto.spec)["data"][0]


def said(page: AppTest) -> str:
    """Everything in Markdown, without the strokes that keep markup out."""
    return "\n".join(one.value for one in page.markdown).replace("\\", "")


def errors(page: AppTest) -> str:
    return "\n".join(one.value for one in page.error).replace("\\", "")


def buttons(page: AppTest) -> set[str]:
    return {button.key for button in page.get("download_button")}


def test_an_empty_page_invites(page):
    assert not page.exception and page.info[0].value.startswith("Nothing to change yet")


def test_the_review_beside_itself_is_the_same(page):
    tried(page, "other words")
    assert page.text_area(key=whatif.EDITED).value == TEXT
    first, second = (Shown(one) for one in texts(page))
    assert first.text == second.text == TEXT
    assert "(±0.0 points)" in said(page) and "(+0.00 nats)" in said(page) and "No word differs." in said(page)
    assert page.dataframe[0].value["difference"].abs().max() == 0 and page.dataframe[0].value["as typed"].abs().max() > 0
    assert chart(page)["y"] == ["as typed", "changed", "difference"]
    assert {"whatif_words_csv", "whatif_words_md", "whatif_words_html"} <= buttons(page)


def test_numbers_are_made_when_they_are_looked_at(first_page):
    folded = tried(first_page.run().switch_page("../pages/whatif.py").run(), "other words")
    assert not folded.dataframe and not buttons(folded)


def test_a_changed_word_is_marked_in_both(page):
    tried(page, "other words", whatif_edited=TEXT.replace("good", "dull"))
    first, second = texts(page)
    assert f'{GONE}" title' in first and first.count(GONE) == 1 and ">good<" in first
    assert second.count(NEW) == 1 and ">dull<" in second and GONE not in second
    table = page.dataframe[0].value
    assert "Words: 1 added, 1 removed." in said(page)
    assert table.loc[table["in"] != "both", ["word", "in"]].to_numpy().tolist() == [["good", "as typed"], ["dull", "changed"]]
    gone = table.set_index("word").loc["good"]
    assert gone["difference"] == -gone["as typed"] and np.isnan(gone["changed"])


def test_the_second_field_follows_the_review_until_it_is_changed(page):
    tried(page, "other words")
    tried(page, "other words", "a dull film")
    assert page.text_area(key=whatif.EDITED).value == "a dull film"
    tried(page, "other words", "a dull film", whatif_edited="a good film")
    tried(page, "other words", "a terrible film")
    assert page.text_area(key=whatif.EDITED).value == "a good film"
    page.text_area(key="inspect_review").set_value("a terrible film")
    page.button(key="whatif_again").click().run()
    assert page.text_area(key=whatif.EDITED).value == "a terrible film"


@pytest.mark.parametrize("name", ["markup", "attribute", "chinese", "arabic", "line_ends"])
def test_typed_text_is_shown_letter_for_letter(page, name):
    text = PROBES.get(name, "a\r\n\tb  c")
    tried(page, "other words", text, whatif_edited=f"{text} not")
    first, second = (Shown(one) for one in texts(page))
    assert (first.text, second.text) == (text, f"{text} not")
    assert first.tags <= {"div", "span"} and "<b>" not in said(page)


def test_two_models_are_compared_on_one_scale(page):
    tried(page, "another model")
    assert page.selectbox(key="whatif_other").value == "imdb-bilstm"
    assert chart(page)["y"] == ["imdb-encoder", "imdb-bilstm", "difference"]
    tried(page, "another model", whatif_other="imdb-encoder")
    assert chart(page)["y"] == ["imdb-encoder", "imdb-encoder again", "difference"]
    table = page.dataframe[0].value
    assert (table["difference"] == 0).all() and (table["imdb-encoder"] == table["imdb-encoder again"]).all()


def test_words_go_until_the_answer_turns_or_it_is_said_that_it_does_not(page):
    for cut in (True, False):
        tried(page, "fewer words", whatif_cut=cut)
        (review,) = texts(page)
        assert Shown(review).text == TEXT
        if "the answer turns from" in said(page):
            table = page.dataframe[0].value
            assert review.count(GONE) == len(table) - 1 and table.iloc[-1, 1] < 50 <= table.iloc[0, 1]
            assert "whatif_fewer_csv" in buttons(page)
        else:
            assert "no set of up to 10 words was found" in said(page) and GONE not in review


def test_checks_say_what_should_be_and_what_is(page):
    tried(page, "not and names", "John thinks the film is good and the plot is not bad")
    table = page.dataframe[0].value
    assert table["change"].tolist() == ["is → is not", "is not → is", "John → Robert"]
    assert set(table["as it should"]) <= {"yes", "no"}
    for kind, should in (("negation", "of 2 move it, as each should; "), ("name", "of 1 leave it as it is, as each should; ")):
        assert re.search(rf"By {kind}: \d {should}", said(page))
    assert "40 first names" in page.caption[-1].value and "whatif_rules_csv" in buttons(page)


def test_where_no_rule_applies_it_is_said(page):
    tried(page, "not and names", "这部电影太棒了")
    assert page.info[0].value.startswith("No rule applies") and not page.dataframe


def test_a_change_that_is_not_read_is_no_verdict(page):
    tried(page, "not and names", "film " * 60 + "is good")
    assert page.dataframe[0].value["as it should"].tolist() == ["not read"]
    assert "1 more is where the model does not read." in said(page)


def test_similar_reviews_are_found_when_asked_and_stay(page, monkeypatch, tmp_path):
    monkeypatch.setenv("ATTENTION_LAB_CACHE", str(tmp_path))
    rng = np.random.default_rng(0)
    words = ["<b>good</b>", "bad", "film", "$plot$"]
    made_up = [" ".join(rng.choice(words, n)) for n in rng.integers(3, 200, 300)]
    reviews = split(Reviews(name="made up", texts=made_up, labels=[0, 1] * 150, label_names=("negative", "positive")))
    monkeypatch.setattr(loaders, "splits", lambda name: reviews)
    tried(page, "similar reviews", made_up[0])
    assert not page.dataframe and "none of its test" in page.caption[-1].value
    page.button(key="whatif_every").click()
    tried(page, "similar reviews", reviews.train.texts[5])
    table = page.dataframe[0].value
    assert table.iloc[0, 1] == 1.0 and len(table) == 10 and not set(table.iloc[:, 3]) & set(reviews.test.texts)
    assert all(len(text) <= whatif.SHOWN or text.endswith("…") for text in table.iloc[:, 3])
    assert "one of the training" in said(page)
    assert Shown(texts(page)[0]).text == reviews.train.texts[5] and Shown(texts(page)[0]).tags <= {"div", "span"}
    assert f"all {len(reviews.train):,} reviews" in page.caption[-1].value
    tried(page, "similar reviews", "bad film")  # what was read once is there for every review
    assert len(page.dataframe[0].value) == 10 and "whatif_similar_csv" in buttons(page)


def test_similar_reviews_that_cannot_be_found_are_a_sentence(page):
    tried(page, "similar reviews")
    page.button(key="whatif_some").click()
    tried(page, "similar reviews")
    assert "not on record" in errors(page)


def test_a_classifier_from_elsewhere_is_asked_the_same(page, tmp_path):
    folder = str(foreign_models.write(tmp_path) / "bert")
    page.query_params["whatif_model"] = folder
    for what in ("other words", "fewer words", "not and names"):
        tried(page, what, "the film is good")
        assert not page.error and page.selectbox(key="whatif_model").value == folder
    tried(page, "similar reviews", "the film is good")
    assert "was trained elsewhere" in errors(page)
    tried(page, "another model", "the film is good", whatif_other="imdb-encoder")
    assert "imdb-encoder knows no class 'LABEL_" in errors(page)


def weighed() -> Weighed:
    answer = Prediction(label="up", probabilities={"up": 0.9, "down": 0.1}, logits=(2.2, 0.0), tokens_read=3, tokens_left_out=1)
    words = tuple(Word(span=span, read=i < 3, unknown=False) for i, span in enumerate([(0, 1), (2, 5), (6, 7), (8, 9)]))
    values = np.array([1.0, 0.5, -0.5, 0.0])
    return Weighed(
        text="a <b> a z", prediction=answer, label="up", log_odds=2.2, words=words, values=values, together=1
    )  # fmt: skip


def test_it_is_said_where_words_were_hidden_together():
    alone, grouped = weighed(), replace(weighed(), together=3)
    assert "at a time" not in contrast.explained(edits.contrast(alone, alone))
    assert contrast.explained(edits.contrast(alone, grouped)).endswith(
        "Words were hidden 3 at a time, since there are so many."
    )


def test_what_turns_an_answer_is_named_in_the_order_of_the_text():
    found = Deletions(words=(2, 0), probabilities=np.array([0.9, 0.6, 0.2]), label="down")
    assert whatif.without(weighed(), found).startswith(
        "Without 2 of the 3 words and signs read, 'a', 'a', the answer turns from up (90.0%) to down. "
        "With any of them back it is up again; another set may be smaller."
    )
    table = whatif.steps(weighed(), found)
    assert table["without"].tolist() == ["(the whole review)", "a", "and a"]
    np.testing.assert_allclose(table["up, %"], [90, 60, 20])


def test_one_word_is_the_least_there_can_be():
    found = Deletions(words=(1,), probabilities=np.array([0.9, 0.2]), label="down")
    assert "to down. Looked for among" in whatif.without(weighed(), found)


def test_what_turns_nothing_is_said_with_its_limit():
    found = Deletions(words=(), probabilities=np.array([0.9]), label="up")
    said = whatif.without(weighed(), found)
    assert said.startswith("The answer stays up (90.0%): no set of up to 3 words was found")
    assert said.endswith("Looked for among all that was read, the strongest first, up to 3 at once.")


def test_of_one_word_and_of_many_it_is_said_how_many_were_tried():
    none = Deletions(words=(), probabilities=np.array([0.9]), label="up")
    one = replace(weighed(), words=weighed().words[:1], values=np.array([1.0]))
    assert "no set of up to 1 word was found" in whatif.without(one, none)
    gone = replace(none, words=(0,), probabilities=np.array([0.9, 0.2]), label="down")
    assert whatif.without(one, gone).startswith("Without the one word read, 'a', the answer turns")
    many = replace(weighed(), words=weighed().words[:1] * 65, values=np.ones(65))
    assert "among the 64 words that speak most for it, the strongest first, up to 20 at once" in whatif.without(many, none)


def test_only_where_a_kind_has_more_changes_than_are_tried_it_is_said():
    answer = weighed().prediction
    changes = [Rewrite(kind=kind, at=0, before="a", after="b", text="b") for kind in ("negation", "name")]
    found = [Checked(rewrite=change, before=answer, after=answer, is_read=True) for change in changes]
    assert "At most" not in " ".join(whatif.judged(found, 2))
    assert whatif.judged(found, 1)[-1] == "At most 1 of each kind are tried."


def test_colours_are_on_one_scale_and_words_that_were_not_read_are_marked_too():
    drawn = contrast.as_html(weighed(), [1, 3], GONE, limit=2.0)
    assert Shown(drawn).text == "a <b> a z" and drawn.count(GONE) == 2
    assert f"background:{ink(STRONGEST / 2)}" in drawn and f"background:{ink(STRONGEST / 4, AGAINST)}" in drawn
    assert Shown(contrast.as_html(weighed(), [], GONE, limit=0.0)).text == "a <b> a z"


def test_the_chart_is_told_in_words():
    found = pd.DataFrame({"word": ["a", "<b>", "c"], "difference": [0.5, -2.0, 0.0]})
    assert contrast.largest_difference(found) == "the largest difference, -2.00 nats, is in <b>"
    assert contrast.largest_difference(found.assign(difference=0.0)) == "no word differs in worth"
    assert contrast.largest_difference(found[:0]) == "no word differs in worth"


def test_a_book_is_shown_without_a_mark_for_each_word_that_was_not_read(page):
    text = "good film " * 2_000
    tried(page, "other words", text, whatif_edited="bad " * 3_000)
    first, second = texts(page)
    assert Shown(first).text == text and len(first) < 2 * len(text) and first.count(GONE) < 100
    assert len(page.dataframe[0].value) < 100 and len(chart(page)["x"]) < 100
    assert "3000 added, 4000 removed" in said(page)
