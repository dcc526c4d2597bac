import shutil

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from core.artifact import open_model
from core.data.table import MAX_UPLOAD_BYTES, read_content
from core.evaluation.answers import Answer, Scored
from core.inspection.reading import read
from ui import loaders
from ui import score as score_page

REVIEWS = ["good", "the film is good and the plot is not bad", "a dull and terrible film", "not good at all", "3.5/10 really"]


def paste(app: AppTest, text: str, *models: str) -> AppTest:
    if models:
        app.multiselect(key="score_models").set_value(list(models))
    app.text_area(key="score_text").set_value(text).run()
    assert not app.exception
    return app


def press(app: AppTest) -> AppTest:
    app.button(key="score_go").click().run()
    assert not app.exception
    return app


def upload(app: AppTest, content: bytes, name: str = "reviews.csv") -> AppTest:
    app.radio(key="score_from").set_value("Choose a table").run()
    app.file_uploader[0].set_value((name, content, "text/csv")).run()
    assert not app.exception
    return app


def results(app: AppTest) -> pd.DataFrame:
    return next(frame.value for frame in app.dataframe if "row" in frame.value.columns)


def said(app: AppTest) -> str:
    return "\n".join(line.value.replace("\\", "") for line in [*app.markdown, *app.caption, *app.info, *app.error])


def expected(model_root, name: str, texts) -> list[tuple[str, float]]:
    model = open_model(model_root / name)
    answers = [read(model, text).prediction for text in texts]
    return [(answer.label, answer.probabilities[answer.label]) for answer in answers]


def tick(app: AppTest, place: int) -> AppTest:
    """As a person ticks the row that stands at that place."""
    (key,) = [frame.key for frame in app.dataframe if "row" in frame.value.columns]
    app.session_state[key] = {"selection": {"rows": [place], "columns": [], "cells": []}}
    app.run()
    assert not app.exception
    return app


def test_an_empty_page_invites(score):
    assert not score.exception
    assert "Nothing to score yet" in said(score)
    assert [button.label for button in score.button] == ["Open"]


def test_pasted_reviews_are_counted_and_scored_as_alone(score, model_root):
    paste(score, "\n".join(["", *REVIEWS, ""]), "imdb-encoder", "imdb-bilstm")
    assert "Found 5 reviews." in said(score)
    assert score.button(key="score_go").label == "Score 5 reviews"
    found = results(press(score))
    assert found["row"].tolist() == [1, 2, 3, 4, 5] and found["review"].tolist() == REVIEWS
    for name in ("imdb-encoder", "imdb-bilstm"):
        labels, shares = zip(*expected(model_root, name, REVIEWS), strict=True)
        assert found[f"label ({name})"].tolist() == list(labels)
        shown = found[f"probability ({name})"]
        assert all(0 <= 100 * share - value < 0.1 + 1e-3 for share, value in zip(shares, shown, strict=True))
    assert found["disagree"].tolist() == (found["label (imdb-encoder)"] != found["label (imdb-bilstm)"]).tolist()


def test_reviews_of_several_lines_are_parted_by_blank_ones(score):
    score.toggle(key="score_blank_lines").set_value(True)
    paste(score, "good\nfilm\n\nbad\nfilm")
    assert "Found 2 reviews." in said(score)


def test_nothing_is_scored_twice(score, monkeypatch):
    asked, genuine = [], loaders.answer
    monkeypatch.setattr(loaders, "answer", lambda model, texts: asked.extend(texts) or genuine(model, texts))
    press(paste(score, "good\nbad\ngood", "imdb-encoder"))
    assert asked == ["good", "bad"] and len(results(score)) == 3
    paste(score, "good\nfine\nbad")
    assert "2 of 3 answers are there already." in said(score)
    press(score)
    assert asked == ["good", "bad", "fine"]
    paste(score, "good\nbad\ngood")
    assert len(results(score)) == 3  # without a click
    score.switch_page("../pages/lengths.py").run()
    score.switch_page("../pages/score.py").run()
    assert score.text_area(key="score_text").value == "good\nbad\ngood" and len(results(score)) == 3
    assert asked == ["good", "bad", "fine"]


def test_what_was_stopped_goes_on_from_there(score, monkeypatch):
    monkeypatch.setattr(loaders, "ANSWERED_AT_ONCE", 2)
    asked, genuine = [], loaders.answer

    def stopped(model, texts):
        if len(asked) == 2:
            raise ValueError("stopped")
        asked.extend(texts)
        return genuine(model, texts)

    monkeypatch.setattr(loaders, "answer", stopped)
    press(paste(score, "\n".join(REVIEWS), "imdb-encoder"))
    assert "stopped" in said(score) and not score.dataframe
    monkeypatch.setattr(loaders, "answer", lambda model, texts: asked.extend(texts) or genuine(model, texts))
    press(score)
    assert asked == REVIEWS and results(score)["review"].tolist() == REVIEWS


def test_a_second_model_is_asked_alone(score):
    press(paste(score, "good\nbad", "imdb-encoder"))
    score.multiselect(key="score_models").set_value(["imdb-encoder", "imdb-bilstm"]).run()
    assert (
        "label (imdb-encoder)" in results(score) and score.button(key="score_go").label == "Score 2 reviews with imdb\\-bilstm"
    )
    assert "label (imdb-bilstm)" in results(press(score))


@pytest.mark.parametrize("order", ["as given", "least confident first", "most confident first", "largest difference first"])
@pytest.mark.parametrize("place", [0, 3])
def test_a_ticked_row_opens_its_own_review_in_any_order(score, order, place):
    press(paste(score, "\n".join(REVIEWS), "imdb-encoder", "imdb-bilstm"))
    score.selectbox(key="score_order").set_value(order).run()
    row = int(results(score)["row"][place])
    tick(score, place)
    assert f"Row {row}: {REVIEWS[row - 1]}" in said(score)
    score.button(key="score_open").click().run()
    assert not score.exception
    assert score.title[0].value == "Inspect"
    assert score.text_area(key="inspect_review").value == REVIEWS[row - 1]
    assert score.multiselect(key="inspect_models").value == ["imdb-encoder", "imdb-bilstm"]


def test_a_tick_does_not_move_to_another_review_when_the_order_changes(score):
    press(paste(score, "\n".join(REVIEWS), "imdb-encoder", "imdb-bilstm"))
    tick(score, 0)
    assert "Row 1: good" in said(score)
    score.selectbox(key="score_order").set_value("most confident first").run()
    first = int(results(score)["row"][0])
    assert first == 1 or f"Row {first}:" not in said(score)
    assert score.button(key="score_open").disabled


def test_only_disagreements_are_shown_on_demand(score):
    press(paste(score, "\n".join(REVIEWS), "imdb-encoder", "imdb-bilstm"))
    n = int(results(score)["disagree"].sum())
    assert f"The models disagree on {n} of 5 reviews ({n / 5:.1%})." in said(score)
    score.toggle(key="score_disagree").set_value(True).run()
    assert results(score)["disagree"].all() and len(results(score)) == n if n else "agree on every review" in said(score)


def test_a_table_is_scored_with_blank_rows_kept(score):
    upload(score, b"id,text\n7,good\n8,\n9, \n10,bad\n")
    press(score)
    assert results(score)["review"].dropna().to_dict() == {0: "good", 3: "bad"} and len(results(score)) == 4
    assert "2 rows have no text, of 4: the table keeps such rows" in said(score)
    tick(score, 1)
    assert "Row 2 has no text." in said(score) and score.button(key="score_open").disabled


def test_labels_give_accuracy_and_unknown_ones_are_counted(score, model_root):
    label = expected(model_root, "imdb-encoder", ["good"])[0][0]
    content = f"text,label\ngood, {label.upper()}\ngood,{label}\ngood,unsure\ngood,\n".encode()
    score.multiselect(key="score_models").set_value(["imdb-encoder"])
    press(upload(score, content))
    assert "agree with" not in said(score)
    score.selectbox(key="score_data_label").set_value("label").run()
    assert "100.0% agree with the table's labels (95% interval 34.2% to 100.0%, n = 2)" in said(score)
    assert "1 row has a label other than negative, positive" in said(score) and "1 row has no label" in said(score)


def test_models_of_other_classes_cannot_disagree(score, model_root, tmp_path, monkeypatch):
    shutil.copytree(model_root, tmp_path / "models")
    config = tmp_path / "models" / "imdb-bilstm" / "config.json"
    config.write_text(config.read_text().replace("negative", "<b>bad").replace("positive", "$good$"))
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(tmp_path / "models"))
    press(paste(score, "good\nbad", "imdb-encoder", "imdb-bilstm"))
    assert "it cannot be told where the models disagree" in said(score)
    assert "\\<b\\>bad" in "".join(line.value for line in score.markdown)
    assert "disagree" not in results(score)
    assert "largest difference first" not in score.selectbox(key="score_order").options


def test_a_model_that_vanished_is_named_and_the_other_still_scores(score, model_root, tmp_path, monkeypatch):
    shutil.copytree(model_root, tmp_path / "models")
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(tmp_path / "models"))
    paste(score, "good\nbad", "imdb-encoder", "imdb-bilstm")
    genuine = loaders.unanswered

    def vanished(name, texts):
        found = genuine(name, texts)
        if name == "imdb-encoder":  # after it was listed, and before it is opened
            shutil.rmtree(tmp_path / "models" / "imdb-encoder", ignore_errors=True)
        return found

    monkeypatch.setattr(loaders, "unanswered", vanished)
    press(score)
    assert "imdb-encoder" in "".join(error.value.replace("\\", "") for error in score.error)
    assert "label (imdb-bilstm)" in results(score) and "label (imdb-encoder)" not in results(score)


def test_a_damaged_model_is_named_and_the_answers_of_the_other_stay(score, model_root, tmp_path, monkeypatch):
    shutil.copytree(model_root, tmp_path / "models")
    (tmp_path / "models" / "imdb-encoder" / "model.safetensors").write_bytes(b"damaged")
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(tmp_path / "models"))
    press(paste(score, "good\nbad", "imdb-encoder", "imdb-bilstm"))
    assert "imdb-encoder" in score.error[0].value.replace("\\", "")
    score.run()
    assert "label (imdb-bilstm)" in results(score)


@pytest.mark.parametrize(
    ("content", "name", "sentence"),
    [
        (b"text,label\n", "a.csv", "a table without rows"),
        (b"PK\x03\x04workbook", "a.csv", "an Excel workbook"),
        (b"x" * (MAX_UPLOAD_BYTES + 1), "a.csv", "expected at most 20 MB"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "a.csv", "save the file as UTF-8"),
    ],
)
def test_a_file_that_is_no_table_is_refused_in_a_sentence(score, content, name, sentence):
    upload(score, content, name)
    assert sentence in said(score)
    assert "Choose a table" in said(score)


@pytest.mark.parametrize(
    ("content", "reviews"),
    [
        (b"text\ngood\n", ["good"]),
        ("text;note\ngood;x\n评论;y\n".encode("utf-16"), ["good", "评论"]),
        (b'text,n\n"good\nfilm",1\n"bad ""film""",2\n', ["good\nfilm", 'bad "film"']),
        (b"text,text\ngood,x\nbad film,y\n", ["good", "bad film"]),
        (b"text,n\n12,1\n34.5,2\n", ["12", "34.5"]),
    ],
    ids=["one row", "UTF-16", "quoted newlines", "equal names", "numbers as text"],
)
def test_odd_tables_are_scored(score, content, reviews):
    press(upload(score, content))
    assert results(score)["review"].tolist() == reviews


def test_numbers_in_a_column_of_text_are_rows_without_text(score):
    content = "\n".join(f'{{"text": {value}}}' for value in ('"good"', "[3]", "null")).encode()
    press(upload(score, content, "a.jsonl"))
    assert results(score)["review"].dropna().to_dict() == {0: "good"} and len(results(score)) == 3


def test_a_column_without_text_is_refused(score):
    content = pd.DataFrame({"n": [1, 2], "text": ["good", "bad"]}).to_parquet()
    upload(score, content, "a.parquet")
    score.multiselect(key="score_data_text").set_value(["n"]).run()
    assert "no row has text in 'n'" in said(score) and not score.exception
    score.multiselect(key="score_data_text").set_value([]).run()
    assert "Choose the column" in said(score)


def test_more_rows_than_the_page_takes_go_by_the_command_line(score, monkeypatch):
    monkeypatch.setattr(score_page, "MOST", 3)
    paste(score, "a\nb\nc\nd")
    assert "got 4 rows, expected at most 3 in this page" in said(score) and "python -m core predict" in said(score)
    upload(score, b"text\na\nb\nc\nd\n")
    assert "got 4 rows" in said(score)


def test_without_models_it_says_how_to_train_one(score, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(tmp_path / "none"))
    score.run()
    assert not score.exception and "no trained model yet" in said(score)


def test_no_model_chosen_asks_for_one(score):
    paste(score, "good")
    score.multiselect(key="score_models").set_value([]).run()
    assert "Choose a model" in said(score) and score.text_area(key="score_text").value == "good"


def scored(n: int) -> list[Scored]:
    return [
        Scored(model="m", label_names=("bad", "good"), answers=[Answer(probabilities=(0.25, 0.75), words=3, words_read=2)] * n)
    ]


def reviews(frame: pd.DataFrame, pasted: bool) -> score_page.Reviews:
    texts = frame.iloc[:, 0].tolist()
    return score_page.Reviews(original=frame, texts=texts, labels=None, name="a", pasted=pasted, key="a")


CELLS = ["=1+1", "- a film", "这部\nfilm", "007"]


def test_the_files_hold_an_upload_as_it_was_and_ours_beside_it():
    frame = pd.DataFrame({"text": CELLS, "label": CELLS})
    found = reviews(frame, pasted=False)
    csv, parquet = score_page.as_csv(scored(4), found), score_page.as_parquet(scored(4), found)
    assert csv.startswith(b"\xef\xbb\xbf")  # by which Excel knows UTF-8
    for name, content in [("a.csv", csv), ("a.parquet", parquet)]:
        table = read_content(name, content).frame
        assert table.columns.tolist() == ["text", "label", "predicted_label", "probability", "words_left_out", "words"]
        assert table["text"].tolist() == table["label"].tolist() == CELLS
        assert table["predicted_label"].tolist() == ["good"] * 4
        assert table["probability"].astype(float).tolist() == [0.75] * 4


def test_pasted_lines_become_no_formulas_in_a_spreadsheet():
    found = reviews(pd.DataFrame({"review": CELLS}), pasted=True)
    assert read_content("a.csv", score_page.as_csv(scored(4), found)).frame["review"].tolist() == [
        "'=1+1",
        "'- a film",
        *CELLS[2:],
    ]
    assert read_content("a.parquet", score_page.as_parquet(scored(4), found)).frame["review"].tolist() == CELLS
