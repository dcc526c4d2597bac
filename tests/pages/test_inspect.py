import base64
import json
import shutil
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import core.inspection.reading
from tests import foreign_models
from ui import examples, maps
from ui.controls import IS_LOOKED_AT

PROBES = json.loads((Path(__file__).parents[1] / "probes.json").read_text(encoding="utf-8"))


class Shown(HTMLParser):
    """The text of a piece of HTML, its tags, and the text under each title."""

    def __init__(self, body: str) -> None:
        super().__init__(convert_charrefs=True)
        self.text, self.tags, self.titled, self._title = "", set(), [], None
        self.feed(body)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self._title = dict(attrs).get("title")

    def handle_endtag(self, tag):
        self._title = None

    def handle_data(self, data):
        self.text += data
        if self._title:
            self.titled.append((data, self._title))


def read(app: AppTest, text: str, *models: str, windows: bool = False) -> AppTest:
    """The page after `text` was typed."""
    app.text_area(key="inspect_review").set_value(text)
    app.toggle(key="inspect_windows").set_value(windows)
    if models:
        app.multiselect(key="inspect_models").set_value(list(models))
    app.run()
    assert not app.exception
    return app


@dataclass(frozen=True)
class Review:
    """A shaded review on the page: its pieces with what is said of each, and the unit of each that can be clicked."""

    pieces: list[dict]

    @property
    def text(self) -> str:
        return "".join(piece["text"] for piece in self.pieces)

    @property
    def titled(self) -> list[tuple[str, str]]:
        return [(piece["text"], piece["title"]) for piece in self.pieces if piece["title"]]

    @property
    def units(self) -> dict[int, str]:
        return {piece["unit"]: piece["text"] for piece in self.pieces if piece["unit"] is not None}


def reviews(app: AppTest) -> list[Review]:
    """The shaded reviews on the page."""
    return [Review(json.loads(element.proto.json)["pieces"]) for element in app.get("bidi_component")]


def answers(app: AppTest) -> list[str]:
    """What the page says of each answer."""
    return [Shown(element.value).text for element in app.html if "points" in element.value]


def captions(app: AppTest) -> str:
    return "\n".join(caption.value for caption in app.caption)


def charts(app: AppTest) -> list[dict]:
    return [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")]


def pictures(app: AppTest) -> list[str]:
    return [caption for image in app.image for caption in image.captions]


def test_an_empty_page_invites_and_opens_no_model(inspect):
    assert not inspect.exception
    assert inspect.info[0].value.startswith("Nothing to read yet")
    assert not reviews(inspect)


@pytest.mark.parametrize(
    ("name", "windows"), [*((name, False) for name in PROBES), *((name, True) for name in ("spaces", "emoji", "long_unread"))]
)
def test_every_probe_is_shown_letter_for_letter(inspect, name, windows):
    read(inspect, PROBES[name], windows=windows)
    shown = reviews(inspect)
    assert len(shown) == (2 if PROBES[name].strip() else 0)
    for review in shown:
        assert review.text == PROBES[name]


@pytest.mark.parametrize("model", ["one-head", "cls"])
@pytest.mark.parametrize("name", ["one_word", "repeated", "markup", "emoji", "long_unread", "one_huge_word"])
def test_other_shapes_of_model_draw_the_probes_too(inspect, model, name):
    read(inspect, PROBES[name], model)
    assert reviews(inspect)[0].text == PROBES[name]
    assert len(charts(inspect)) == 1


def test_both_models_answer_first(inspect):
    read(inspect, "the film is good")
    assert [answer.split("positive")[0].split("negative")[0] for answer in answers(inspect)] == [
        "Transformer · imdb-encoder",
        "BiLSTM · imdb-bilstm",
    ]
    assert "Read all 4 tokens (4 words)." in [line.value for line in inspect.markdown]


def test_what_was_not_read_is_said_and_grey(inspect):
    text = "the film is good " * 10 + "and absolutely terrible"
    read(inspect, text, "imdb-bilstm")
    (review,) = reviews(inspect)
    unread = "".join(piece for piece, title in review.titled if title == "not read")
    assert unread.split() == ("the film is good " * 4).split() + ["and", "absolutely", "terrible"]
    said = next(line.value for line in inspect.markdown if line.value.startswith("Read"))
    assert said.startswith("Read 24 of ") and said.endswith("(24 of 43 words); the rest is grey.")


def test_windows_read_the_end_too_and_each_can_be_chosen(inspect):
    text = "the film is good " * 10 + "and terrible"
    read(inspect, text, "imdb-bilstm", windows=True)
    assert not [title for _, title in reviews(inspect)[0].titled if title == "not read"]
    assert any(" in 2 windows; their logits are averaged." in line.value for line in inspect.markdown)
    shaded_first = [piece for piece, title in reviews(inspect)[0].titled if "attention" in title]
    inspect.selectbox(key="inspect_window_imdb-bilstm").set_value("2 of 2").run()
    shaded_last = [piece for piece, title in reviews(inspect)[0].titled if "attention" in title]
    assert (shaded_first[0], shaded_last[-1]) == ("the", "terrible")
    assert "terrible" not in shaded_first


def test_a_window_that_a_shorter_review_lacks_is_forgotten(inspect):
    read(inspect, "the film is good " * 20, "imdb-bilstm", windows=True)
    inspect.selectbox(key="inspect_window_imdb-bilstm").set_value("4 of 4").run()
    read(inspect, "the film is good " * 10, "imdb-bilstm", windows=True)
    assert reviews(inspect)


def test_a_book_is_refused_in_windows_and_read_without(inspect):
    text = "the film is good " * 10_000
    read(inspect, text, windows=True)
    assert not reviews(inspect)
    assert "windows\\, expected at most" in inspect.error[0].value
    read(inspect, text)
    assert len(reviews(inspect)) == 2


def test_layer_and_head_change_words_and_map(inspect):
    read(inspect, "the film is good", "imdb-encoder")
    shown = {}
    for layer, head in [(2, 0), (2, 1), (1, 3), (0, None)]:
        inspect.selectbox(key="inspect_layer_imdb-encoder").set_value(str(layer or "all")).run()
        if head is not None:
            inspect.selectbox(key="inspect_head_imdb-encoder").set_value(str(head or "all")).run()
        assert not inspect.exception
        shown[layer, head] = charts(inspect)[0]["data"][0], reviews(inspect)[0].titled, captions(inspect)
    maps, words, said = zip(*shown.values(), strict=True)
    assert len({str(drawn["z"]) for drawn in maps}) == len({str(titled) for titled in words}) == len(shown)
    assert shown[2, 1][0]["zmax"] == shown[1, 3][0]["zmax"]  # heads share a range, averages do not
    assert shown[2, 0][0]["zmax"] != shown[2, 1][0]["zmax"]
    for sentence, title in zip(
        said,
        ["layer 2, all heads averaged", "layer 2, head 1", "layer 1, head 3", "all layers and heads averaged"],
        strict=True,
    ):
        assert f"Attention received, {title}." in sentence


def test_each_head_has_a_picture_in_order(inspect):
    read(inspect, "the film is good", "imdb-encoder")
    assert pictures(inspect) == [f"layer {layer}, head {head}" for layer in (1, 2) for head in (1, 2, 3)]


def test_a_model_with_one_layer_or_head_asks_nothing(inspect):
    read(inspect, "good", "one-head")
    assert not list(inspect.selectbox)
    assert charts(inspect)[0]["data"][0]["x"] == ["1 good"]
    assert not pictures(inspect)  # the map is the only one there is
    read(inspect, "good", "cls")
    assert [control.label for control in inspect.selectbox] == ["Head", "Word"]


def test_the_recurrent_model_shows_its_pooling_as_one_row(inspect):
    read(inspect, "good good film", "imdb-bilstm")
    (heatmap,) = charts(inspect)[0]["data"]
    assert (heatmap["y"], heatmap["x"]) == (["review"], ["1 good", "2 good", "3 film"])
    assert not pictures(inspect)


def look(app: AppTest, **chosen) -> AppTest:
    """The page after choices for the encoder were made, one after another."""
    for name, value in chosen.items():
        group = app.segmented_control if name == "shown" else app.selectbox
        group(key=f"inspect_{name}_imdb-encoder").set_value(value).run()
    assert not app.exception
    return app


def drawn(app: AppTest) -> np.ndarray:
    """The weights of the first map on the page."""
    z = charts(app)[0]["data"][0]["z"]
    return np.frombuffer(base64.b64decode(z["bdata"]), z["dtype"]).reshape([int(n) for n in z["shape"].split(",")])


def shares(review: Review) -> list[float]:
    """In percent, as they are said of each word."""
    return [float(title.partition("%")[0]) for _, title in review.titled]


def test_a_word_shows_what_it_looks_at_and_what_looks_at_it(inspect):
    read(inspect, "good film good plot", "imdb-encoder")
    look(inspect, layer=2, head=1, word="3 good")
    weights = drawn(inspect)
    assert shares(reviews(inspect)[0]) == pytest.approx(100 * weights[2], abs=0.006)
    assert "Attention of 3 good, layer 2, head 1." in captions(inspect)
    look(inspect, shown=IS_LOOKED_AT)
    assert shares(reviews(inspect)[0]) == pytest.approx(100 * weights[:, 2], abs=0.006)
    assert "the share that 3 good receives, layer 2, head 1." in captions(inspect)
    (outlined,) = [piece for piece in reviews(inspect)[0].pieces if "outline" in piece["style"]]
    assert outlined["unit"] == 2  # and not the other one of the same letters


def test_a_word_of_another_review_is_forgotten_and_never_in_the_address(inspect):
    read(inspect, "good film good plot", "imdb-encoder")
    look(inspect, word="3 good", shown=IS_LOOKED_AT)
    assert "good" not in str(dict(inspect.query_params))
    read(inspect, "a dull plot", "imdb-encoder")
    assert inspect.selectbox(key="inspect_word_imdb-encoder").value == "all"
    assert "Attention received" in captions(inspect)


def test_words_are_chosen_where_they_look_at_one_another(inspect):
    read(inspect, "good film")
    assert [list(review.units.values()) for review in reviews(inspect)] == [["good", "film"], []]  # a BiLSTM asks but once


@pytest.fixture
def opened(first_page) -> AppTest:
    """Inspect with all that is folded unfolded, as its address says."""
    first_page.query_params |= {f"inspect_{what}_imdb-encoder": "true" for what in ("most", "pairs")}
    return first_page.run()


def test_what_is_folded_is_not_made(inspect):
    read(inspect, "good film good plot", "imdb-encoder")
    assert not inspect.dataframe


def test_pairs_of_words_are_told_by_their_places(opened):
    read(opened, "good film good plot", "imdb-encoder")
    look(opened, layer=2, head=1)
    opened.number_input(key="inspect_n_pairs_imdb-encoder").set_value(5).run()
    table, weights = opened.dataframe[1].value, drawn(opened)
    labels = ["1 good", "2 film", "3 good", "4 plot"]
    order = np.argsort(-weights, axis=None)[:5]
    assert list(table["from"]) == [labels[i // 4] for i in order] and list(table["to"]) == [labels[i % 4] for i in order]
    assert list(table["attention"]) == pytest.approx((100 * weights).ravel()[order].tolist())


@pytest.fixture
def few_words(monkeypatch):
    """Maps are by sentences where there are more words than these models read."""
    monkeypatch.setattr(maps, "MOST_WORDS", 8)


def test_a_long_review_is_mapped_by_its_sentences_until_some_are_chosen(inspect, few_words):
    read(inspect, "The film is good. The plot is not bad. A dull film.", "imdb-encoder")
    assert charts(inspect)[0]["data"][0]["x"] == ["1 The film is good.", "2 The plot is not b…", "3 A dull film."]
    np.testing.assert_allclose(drawn(inspect).sum(1), 1, atol=1e-6)
    assert "each row divided by its sum" in captions(inspect)
    inspect.slider(key="inspect_from_imdb-encoder_3").set_value((2, 2)).run()
    assert drawn(inspect).shape == (1, 3)
    inspect.slider(key="inspect_to_imdb-encoder_3").set_value((3, 3)).run()
    heatmap = charts(inspect)[0]["data"][0]
    assert heatmap["y"] == ["6 The", "7 plot", "8 is", "9 not", "10 bad", "11 ."]
    assert heatmap["x"] == ["12 A", "13 dull", "14 film", "15 ."]


def test_every_token_of_a_long_review_is_drawn_when_asked(inspect, few_words):
    read(inspect, "The film is good. The plot is not bad. A dull film.", "imdb-encoder")
    inspect.toggle(key="inspect_tokens_imdb-encoder").set_value(True).run()
    assert drawn(inspect).shape == (15, 15)


def test_many_words_of_one_sentence_are_tokens(inspect, few_words):
    read(inspect, "!" * 20, "imdb-encoder")
    assert drawn(inspect).shape == (20, 20)


def test_a_map_says_its_strongest_weight_to_who_cannot_see_it(inspect):
    read(inspect, "good <b> film", "imdb-encoder")
    weights, labels = drawn(inspect), ["1 good", "2 <", "3 b", "4 >", "5 film"]
    i, j = np.unravel_index(weights.argmax(), weights.shape)
    said = inspect.get("plotly_chart")[0].proto.alt
    assert said.endswith(f"the largest weight, {weights.max():.2g}, is from {labels[i]} to {labels[j]}")


def test_added_tokens_are_named_with_their_share(inspect):
    read(inspect, "good film", "cls")
    assert "\\[CLS\\], which nobody typed, receives" in captions(inspect)
    assert charts(inspect)[0]["data"][0]["x"][0] == "1 [CLS]"


def test_two_added_tokens_receive_theirs_together(inspect, tmp_path):
    folder = str(foreign_models.write(tmp_path) / "bert")
    inspect.query_params["inspect_models"] = folder
    inspect.text_area(key="inspect_review").set_value("good film").run()
    assert "\\[CLS\\] and \\[SEP\\], which nobody typed, receive " in captions(inspect)


def test_what_the_vocabulary_lacks_is_marked(inspect):
    read(inspect, "a ⭢ film", "imdb-bilstm")
    assert [piece for piece, title in reviews(inspect)[0].titled if "unknown to the model" in title] == ["⭢"]
    assert "Dotted: unknown to the model." in captions(inspect)


def test_rows_that_sum_to_one_are_said_to(inspect):
    read(inspect, "the film is good", "imdb-encoder")
    shown = " ".join(line.value for line in inspect.markdown)
    assert "rows sum to 1 within" in shown and "evaluation mode" in shown
    assert not inspect.warning


@pytest.mark.parametrize(("broken", "said"), [("training", "training mode"), ("rows", "miss 1 by up to 3e-01")])
def test_a_reading_that_cannot_be_trusted_warns(inspect, monkeypatch, broken, said):
    genuine = core.inspection.reading.read

    def spoilt(model, text, **how):
        reading = genuine(model, text, **how)
        if broken == "training":
            return replace(reading, training_mode=True)
        (window,) = reading.windows
        return replace(reading, windows=(replace(window, weights=np.float32(1.25) * window.weights),))

    monkeypatch.setattr(core.inspection.reading, "read", spoilt)
    read(inspect, "the film is good", "one-head")
    assert said in inspect.warning[0].value
    assert not any("rows sum to 1" in line.value for line in inspect.markdown)


def test_a_choice_outlives_a_click_that_cuts_its_first_run_short(inspect):
    for _ in range(2):  # the browser may hear of the widget in any run for the first time
        inspect.run()
        choice = inspect.multiselect(key="inspect_models")
        assert [choice.options[i] for i in choice.proto.default] == choice.value == ["imdb-encoder", "imdb-bilstm"]


def test_at_most_two_models_are_shown(inspect):
    assert inspect.multiselect(key="inspect_models").value == ["imdb-encoder", "imdb-bilstm"]
    inspect.query_params["inspect_models"] = ["cls", "one-head", "imdb-bilstm"]
    read(inspect, "good film")
    assert len(reviews(inspect)) <= 2


def test_the_first_page_takes_its_choices_from_the_url(first_page):
    first_page.query_params |= {"inspect_models": "cls", "inspect_head_cls": "2", "inspect_windows": "true"}
    first_page.run()
    first_page.text_area(key="inspect_review").set_value("good film").run()
    assert first_page.multiselect(key="inspect_models").value == ["cls"]
    assert "Layer 1, head 2:" in captions(first_page)
    assert first_page.toggle(key="inspect_windows").value


def test_choices_that_do_not_exist_are_told_of(first_page):
    first_page.query_params |= {"inspect_models": "nowhere", "inspect_layer_imdb-encoder": "99", "inspect_windows": "perhaps"}
    first_page.run()
    told = "The address asks for {} ({}), which cannot be shown here: {} shown instead."
    models = told.format("nowhere", "inspect_models", "imdb-encoder and imdb-bilstm are")
    assert [warning.value.replace("\\", "") for warning in first_page.warning] == [models]
    first_page.text_area(key="inspect_review").set_value("good film").run()
    assert not first_page.exception
    assert len(reviews(first_page)) == 2
    assert {warning.value.replace("\\", "") for warning in first_page.warning} == {
        told.format("perhaps", "inspect_windows", "false is"), told.format("99", "inspect_layer_imdb-encoder", "2 is")
    }  # fmt: skip
    first_page.run()
    assert not first_page.warning


def test_no_model_chosen_asks_for_one(inspect):
    inspect.text_area(key="inspect_review").set_value("good")
    inspect.multiselect(key="inspect_models").set_value([]).run()
    assert inspect.info[0].value == "Choose a model to read the review."
    assert inspect.text_area(key="inspect_review").value == "good"


@pytest.mark.parametrize("name", examples.NAMES)
def test_an_example_is_read_at_one_click(inspect, name):
    inspect.button(key=f"inspect_example_{name}").click().run()
    assert not inspect.exception
    assert reviews(inspect)[0].text == inspect.text_area(key="inspect_review").value


def test_the_text_survives_a_visit_to_another_page(inspect):
    read(inspect, "the film is good")
    inspect.switch_page("../pages/lengths.py").run()
    inspect.switch_page("../pages/inspect.py").run()
    assert inspect.text_area(key="inspect_review").value == "the film is good"
    assert reviews(inspect)


@pytest.mark.parametrize("text", ["\u200b", "\u200d\u200d"])
def test_a_text_without_a_token_is_answered_with_a_sentence(inspect, text):
    read(inspect, text)
    assert inspect.error or inspect.info
    assert inspect.text_area(key="inspect_review").value == text


def test_a_damaged_model_is_named_and_the_other_still_answers(inspect, model_root, tmp_path, monkeypatch):
    shutil.copytree(model_root, tmp_path / "models")
    (tmp_path / "models" / "imdb-encoder" / "model.safetensors").write_bytes(b"damaged")
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(tmp_path / "models"))
    read(inspect, "good film")
    assert "imdb\\-encoder" in inspect.error[0].value
    assert len(reviews(inspect)) == 1


def test_a_model_trained_anew_is_opened_anew(inspect, model_root, tmp_path, monkeypatch):
    root = tmp_path / "models"
    shutil.copytree(model_root / "imdb-bilstm", root / "one")
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(root))
    read(inspect, "good film", "one")
    assert pictures(inspect) == []
    shutil.rmtree(root / "one")
    shutil.copytree(model_root / "imdb-encoder", root / "one", copy_function=shutil.copyfile)
    inspect.run()
    assert len(pictures(inspect)) == 6


def test_without_models_it_says_how_to_train_one(inspect, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(tmp_path))
    inspect.run()
    assert not inspect.exception
    assert "no trained model yet" in inspect.info[0].value
    assert inspect.get("page_link")[0].proto.label == "Train one"


def test_names_of_models_and_labels_are_text(inspect, model_root, tmp_path, monkeypatch):
    name = "$x$ <b>a</b> *b*".replace("/", "∕")
    shutil.copytree(model_root / "one-head", tmp_path / "models" / name)
    config = tmp_path / "models" / name / "config.json"
    config.write_text(config.read_text().replace("negative", "<i>bad</i>").replace("positive", "<i>good</i>"))
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(tmp_path / "models"))
    read(inspect, "film", name)
    assert "<i>bad</i>" in answers(inspect)[0] and name in answers(inspect)[0]
    assert "\\$x\\$" in inspect.subheader[0].value
