"""What was inspected in a tab comes back by one click, and is nowhere else."""

from tests.pages.test_inspect import captions, look, read, reviews
from ui import history
from ui.controls import IS_LOOKED_AT
from ui.history import Inspected

FIRST = "the film is <b>good</b> and $x$ **not** bad"


def kept(text: str) -> Inspected:
    return Inspected(text=text, models=("a",), answers=(), view={})


def offered(app) -> list[str]:
    return [button.label for button in app.button if str(button.key).startswith("inspect_again_")]


def unfolded(app):
    app.query_params["inspect_before"] = "true"
    return app


def test_a_click_brings_back_the_review_its_models_and_the_view(inspect):
    read(unfolded(inspect), FIRST, "imdb-encoder")
    look(inspect, layer="1", head="2", word="3 is", shown=IS_LOOKED_AT)
    assert offered(inspect) == []  # what is on the page is none of what was before
    read(inspect, "a dull plot", "cls", windows=True)
    look(inspect)
    assert [label.replace("\\", "") for label in offered(inspect)] == [FIRST]
    inspect.button(key="inspect_again_0").click().run()
    assert not inspect.exception
    assert inspect.text_area(key="inspect_review").value == FIRST and reviews(inspect)[0].text == FIRST
    assert inspect.multiselect(key="inspect_models").value == ["imdb-encoder"]
    assert "the share that 3 is receives, layer 1, head 2." in captions(inspect)
    assert not inspect.toggle(key="inspect_windows").value
    assert inspect.query_params["inspect_layer_imdb-encoder"] == "1"
    assert offered(inspect) == ["a dull plot"]


def test_answers_are_told_and_typed_text_is_not_in_the_address(inspect):
    read(unfolded(inspect), FIRST, "imdb-encoder")
    read(inspect, "a dull plot", "imdb-encoder")
    assert "imdb\\-encoder\\: " in captions(inspect)
    assert not any(word in str(dict(inspect.query_params)) for word in ("film", "dull"))


def test_the_same_review_is_kept_once_as_it_was_looked_at_last(inspect):
    for text in ("a dull plot", FIRST, "a dull plot"):
        read(unfolded(inspect), text, "imdb-encoder")
    assert len(inspect.session_state[history.KEY]) == 2
    inspect.button(key="inspect_forget").click().run()
    assert offered(inspect) == []


def test_it_is_bounded_in_number_and_in_characters():
    assert [one.text for one in history.bounded([kept(str(i)) for i in range(20)])] == [str(i) for i in range(history.MOST)]
    long = "x" * history.MOST_CHARACTERS
    assert [len(one.text) for one in history.bounded([kept(long), kept("a")])] == [len(long)]
    assert [one.text for one in history.bounded([kept("a"), kept(long), kept("b")])] == ["a"]


def test_a_long_review_is_cut_and_says_so():
    assert history.cut("a\n b") == "a b"
    said = history.cut("word " * 100)
    assert said.startswith("word word") and said.endswith("… (500 characters)") and len(said) < 120
