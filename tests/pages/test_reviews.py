"""From a figure to the reviews behind it, and on to Inspect."""

import io
import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from core.checked import to_json
from core.data.reviews import load
from core.data.splits import split
from core.words import count_words
from tests import small_runs
from ui import behind, export

MODELS = ("imdb-encoder", "imdb-bilstm")
RIGHT = {"imdb-encoder": 3, "imdb-bilstm": 4}
"""Of so many reviews in turn, the last one is answered wrongly."""
MARKUP = "<b>good</b> $x$ film"


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    path = small_runs.write_table(tmp_path_factory.mktemp("data") / "reviews.csv")
    frame = pd.read_csv(path)
    frame["text"] = [f"{MARKUP} {text}" for text in frame["text"]]
    frame.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def splits(table):
    config = small_runs.config(table)
    return split(load(config.reviews, config.training.seed))


@pytest.fixture(scope="module")
def measured(model_root, table, splits, tmp_path_factory) -> Path:
    """Two models with the record and the answers of a training on the table."""
    root = tmp_path_factory.mktemp("measured")
    for name in MODELS:
        shutil.copytree(model_root / name, root / name)
        record = {"config": to_json(small_runs.config(table)), "label_names": ["negative", "positive"]}
        (root / name / "run.json").write_text(json.dumps(record))
        sides = [answers(splits, side, RIGHT[name]) for side in ("validation", "test")]
        pd.concat(sides, ignore_index=True).to_parquet(root / name / "predictions.parquet")
    return root


def answers(splits, side: str, right: int) -> pd.DataFrame:
    reviews = splits.side(side)
    labels, n = np.array(reviews.labels), np.arange(len(reviews))
    logits = np.where(n % right == right - 1, 1 - labels, labels)[:, None] == np.arange(2)
    frame = pd.DataFrame({"text_hash": splits.hashes[side], "split": side, "label": labels})
    words = [count_words(text) for text in reviews.texts]
    return frame.assign(logits=list((n + 1)[:, None] / 10 * logits), words=words, tokens=20, tokens_read=12)


@pytest.fixture
def page(first_page, measured, monkeypatch) -> AppTest:
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(measured))
    return first_page.run().switch_page("../pages/reviews.py").run()


def said(page: AppTest) -> str:
    shown = [*page.markdown, *page.caption, *page.info, *page.warning, *page.error]
    return "\n".join(element.value.replace("\\", "") for element in shown)


def rows(page: AppTest) -> pd.DataFrame:
    return next(frame.value for frame in page.dataframe if "row" in frame.value.columns)


def tick(page: AppTest, frame, **selection) -> None:
    page.session_state[frame.key] = {"selection": {"rows": [], "columns": [], "cells": []} | selection}
    page.run()
    assert not page.exception


def test_every_review_is_there_the_surest_answers_first(page, splits):
    assert not page.exception and not page.error and not page.warning
    found = rows(page)
    assert sorted(found["review"]) == sorted(splits.test.texts)  # none is longer than a cell
    assert found["row"].tolist() == list(range(len(splits.test), 0, -1)) and (found["read (imdb-bilstm)"] == 60).all()
    first = page.dataframe[0].value
    n = len(splits.test)
    assert first.to_numpy().sum() == n and np.trace(first.to_numpy()) == n - n // 3
    share = max(np.mean(splits.test.labels), 1 - np.mean(splits.test.labels))
    assert f"right in {1 - n // 3 / n:.1%} of {n} reviews (95% interval" in said(page)
    assert f"would be right in {share:.1%}." in said(page)


def test_a_cell_leads_to_its_reviews(page):
    matrix = page.dataframe[1]
    tick(page, matrix, cells=[[0, "answered positive"]])
    assert page.selectbox(key="reviews_label").value == "0" and page.selectbox(key="reviews_answer_2").value == "1"
    found = rows(page)
    assert len(found) == matrix.value.iloc[0]["answered positive"] > 0
    assert set(found["label"]) == {"negative"} and set(found["label (imdb-bilstm)"]) == {"positive"}


def test_a_disagreement_and_a_range_of_lengths(page, splits):
    page.selectbox(key="reviews_which").set_value("only the second is right").run()
    assert page.selectbox(key="reviews_which").options[3] == "only imdb-bilstm is right"
    found = rows(page)
    assert len(found) and (found["label"] == found["label (imdb-bilstm)"]).all()
    assert (found["label"] != found["label (imdb-encoder)"]).all() and found["disagree"].all()
    page.selectbox(key="reviews_which").set_value("every review").run()
    page.number_input(key="reviews_from").set_value(12)
    page.number_input(key="reviews_to").set_value(14).run()
    assert set(rows(page)["words"]) <= {12, 13, 14} and len(rows(page)) < len(splits.test)
    page.number_input(key="reviews_to").set_value(1).run()
    assert "There is no such review." in said(page)


def test_a_ticked_review_stands_below_letter_for_letter_and_opens_in_inspect(page):
    page.selectbox(key="reviews_order").set_value("least confident first").run()
    frame = next(frame for frame in page.dataframe if "row" in frame.value.columns)
    text = frame.value["review"].iloc[2]
    tick(page, frame, rows=[2])
    shown = "".join(element.value for element in page.html)
    assert "&lt;b&gt;good&lt;/b&gt; $x$ film" in shown and "<b>good" not in shown
    page.button(key="reviews_open").click().run()
    assert page.title[0].value == "Inspect" and page.text_area(key="inspect_review").value == text
    assert page.multiselect(key="inspect_models").value == list(MODELS)


def test_what_is_shown_can_be_taken_away(page, splits, monkeypatch):
    taken: list[export.Export] = []
    monkeypatch.setattr(behind.export, "downloads", lambda found, key: taken.append(found))
    page.selectbox(key="reviews_label").set_value("1")
    page.selectbox(key="reviews_which").set_value("both are right").run()
    page.number_input(key="reviews_to").set_value(14).run()
    found, n = taken[-1], len(rows(page))
    assert found.of[0] == (
        f"{n} of {len(splits.test)} reviews: test reviews, both are right, label positive, from 0 to 14 words."
    )
    assert [sentence.partition(":")[0] for sentence in found.said] == list(MODELS)
    table = pd.read_csv(io.BytesIO(export.as_csv(found, "http://x")), encoding="utf-8-sig")
    assert len(table) == n and table["review"].str.startswith(MARKUP).all() and set(table["label"]) == {"positive"}
    assert "<b>good</b>" not in export.as_html(found, "") and r"\<b\>good" in export.as_markdown(found, "")


def test_checks_are_made_on_demand(page, splits):
    page.toggle(key="reviews_checks").set_value(True).run()
    assert not page.exception and not page.error
    checked = page.dataframe[-1].value.set_index("side")
    assert checked["reviews"].to_dict() == {side: str(len(own)) for side, own in splits.hashes.items()}
    assert checked.loc["test", "also in training"] == "0" and checked.loc["train", "also in training"] == "–"
    assert checked["unknown to imdb-encoder"].str.endswith("%").all()


def test_reviews_that_are_gone_are_said_to_be(page, measured, table, tmp_path, monkeypatch):
    root = tmp_path / "models"
    shutil.copytree(measured, root)
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(root))
    record = json.loads((root / "imdb-encoder" / "run.json").read_text())
    record["config"]["reviews"]["data"] = str(tmp_path / "gone.csv")
    (root / "imdb-encoder" / "run.json").write_text(json.dumps(record))
    page.run()
    assert not page.exception and "The texts cannot be found" in said(page) and "gone.csv" in said(page)
    assert rows(page)["review"].isna().all() and page.button(key="reviews_open").disabled
    frame = pd.read_csv(table)
    frame.head(180).to_csv(tmp_path / "gone.csv", index=False)
    page.run()
    n = rows(page)["review"].isna().sum()
    assert 0 < n < len(rows(page)) and f"The texts of {n} of these {len(rows(page))} reviews cannot be found" in said(page)
    (root / "imdb-encoder" / "run.json").write_text("{}")
    page.run()
    assert "the configuration of imdb-encoder is not on record" in said(page) and not page.exception


def test_a_model_of_other_reviews_is_refused_and_the_first_is_shown(page, measured, splits, tmp_path, monkeypatch):
    root = tmp_path / "models"
    shutil.copytree(measured, root)
    answers(splits, "test", 3).head(5).to_parquet(root / "imdb-bilstm" / "predictions.parquet")
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(root))
    page.run()
    assert not page.exception and "the test reviews are not the same" in said(page)
    assert "label (imdb-encoder)" in rows(page) and "label (imdb-bilstm)" not in rows(page)
    (root / "imdb-encoder" / "predictions.parquet").unlink()
    page.multiselect(key="reviews_models").set_value(["imdb-encoder"]).run()
    assert "Choose a model whose test answers are on record" in said(page) and not page.exception
