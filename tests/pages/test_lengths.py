import json
import shutil
from types import SimpleNamespace

import pytest

from core.data.reviews import Reviews
from core.evaluation.lengths import ends
from core.records import CalibrationError, Estimate, LengthRange
from core.statistics import Difference
from tests import small_models
from ui import loaders
from ui.lengths import Measured, changes, rows, verdicts


def one(name: str, n: int, right: float, low: float, high: float) -> LengthRange:
    return LengthRange(
        name=name, n=n, accuracy=Estimate(value=right, low=low, high=high), f1=None,
        calibration=CalibrationError(value=0.05, by_chance=0.02), cut=0.25,
    )  # fmt: skip


NONE = LengthRange(name="1-32", n=0, accuracy=None, f1=None, calibration=None, cut=None)
SHORT = one("33-96", 200, 0.9, 0.85, 0.93)
BETTER = Difference(value=0.02, low=0.01, high=0.03, p=0.0004, n=200)
SAME = Difference(value=0.001, low=-0.02, high=0.02, p=0.9, n=1500)


LONG = one("over 224", 300, 0.8, 0.75, 0.84)


def test_the_longest_reviews_are_compared_with_the_shortest_by_a_test():
    """Of 200 reviews and 300: Newcombe's interval and Pearson's p, made larger for two models by Holm."""
    middle, same = one("97-224", 500, 0.5, 0.4, 0.6), one("over 224", 300, 0.9, 0.86, 0.93)
    falls, stays = changes({"m": ends([NONE, SHORT, middle, LONG]), "k": ends([NONE, SHORT, middle, same])})
    assert falls == (
        "m, over 224 words (80.0%, n = 300) against 33-96 words (90.0%, n = 200): "
        "10.0 points worse, 95% between -16.0 and -3.6, n = 500, p = 0.006 (2 comparisons, by Holm)."
    )
    assert stays.startswith(
        "k, over 224 words (90.0%, n = 300) against 33-96 words (90.0%, n = 200): no difference shown: +0.0"
    )
    (alone,) = changes({"m": ends([SHORT, LONG])})
    assert alone.endswith("n = 500, p = 0.003.")


def test_overlapping_intervals_may_yet_differ():
    """89.5 to 95.2% and 84.6 to 89.9% overlap, and are 5.3 points apart by more than chance."""
    short, long = one("1-32", 400, 0.9275, 0.8977, 0.9491), one("over 32", 800, 0.875, 0.8503, 0.8961)
    assert ends([short, long]).gain.p < 0.01
    close = one("over 32", 400, 0.885, 0.8500, 0.9127)
    assert close.accuracy.high > short.accuracy.low and ends([short, close]).gain.is_shown


def test_a_range_of_few_reviews_makes_no_sentence():
    few = one("over 224", 7, 0.5, 0.2, 0.8)
    assert changes({"m": ends([NONE, SHORT, few])}) == ["m: fewer than two ranges hold 100 test reviews, too few to compare."]


def test_a_verdict_names_the_ranges_in_which_a_difference_is_shown():
    assert verdicts("b", "a", ["1-32", "33-96", "over 96"], [None, BETTER, SAME], 2) == (
        "b against a: at 33-96 words 2.0 points better, 95% between +1.0 and +3.0, n = 200, p < 0.001 (2 comparisons, by Holm)."
    )
    assert verdicts("b", "a", ["1-32"], [SAME], 1) == "b against a: no difference shown in any range, p = 0.900 or more."
    assert verdicts("b", "a", ["1-32"], [None], 0) == "b against a: there is no review to compare."


def test_rows_hold_percents_and_leave_out_what_is_unknown():
    found = [
        Measured(name="a", of="test", model=0, title="a", rows=[NONE, SHORT]),
        Measured(name="b", of="test", model=1, title="b", rows=[NONE, SHORT], gains=[None, BETTER]),
        Measured(name="c", of="test", model=2, title="c", rows=[NONE, SHORT]),
    ]
    table = rows(found, "a")
    assert table["model"].tolist() == ["a", "b", "c"] * 2 and table["n"].tolist() == [0] * 3 + [200] * 3
    figures = ["accuracy", "from", "to", "calibration error", "by chance", "read in part"]
    assert table.loc[:2, figures].isna().all(axis=None) and table["F1"].isna().all()
    assert table.loc[3, figures].tolist() == pytest.approx([90, 85, 93, 5, 2, 25])
    assert table["vs baseline"].tolist() == ["–", "no data", "n/a", "–", "+2.0 points", "n/a"]


def said(app) -> str:
    shown = [*app.markdown, *app.error, *app.info, *app.caption]
    return "\n".join(element.value.replace("\\", "") for element in shown)


def charts(app) -> list[dict]:
    return [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")]


TAKEN = ["Download CSV", "Download Markdown", "Download HTML"]


def test_the_page_shows_charts_sentences_and_table(lengths):
    assert not lengths.exception and not lengths.error
    figure, gains = charts(lengths)
    names = [trace["name"] for trace in figure["data"]]
    assert names[:4] == ["imdb-encoder", "imdb-bilstm", "cls", "one-head"]
    assert names[4] == "imdb-encoder reads up to about 24 words"
    assert figure["layout"]["xaxis"]["ticktext"] == [
        "1-32<br>no data",
        "33-96<br>n = 64",
        "97-224<br>n = 128",
        "over 224<br>n = 208",
    ]
    assert [trace["name"] for trace in gains["data"]] == names[1:4]
    assert "imdb-encoder, over 224 words (33.7%, n = 208) against 97-224 words (100.0%, n = 128): 66.3 points worse" in said(
        lengths
    )
    assert "cls against imdb-encoder: no difference shown in any range, p = 1.000 (9 comparisons, by Holm)." in said(lengths)
    assert lengths.dataframe[0].value["n"].sum() == 4 * 400
    assert [button.proto.label for button in lengths.get("download_button")] == TAKEN


def test_another_figure_and_another_baseline(lengths):
    for figure in ("F1", "calibration error"):
        lengths.segmented_control(key="lengths_figure").set_value(figure).run()
        assert not lengths.exception and charts(lengths)[0]["layout"]["yaxis"]["title"]["text"] == figure
    lengths.selectbox(key="lengths_baseline").set_value("cls").run()
    assert "imdb-encoder against cls: no difference shown" in said(lengths)
    assert charts(lengths)[1]["layout"]["yaxis"]["title"]["text"] == "points above cls"


def test_ranges_of_equally_many_reviews_and_ones_own(lengths):
    lengths.segmented_control(key="lengths_ranges").set_value("equally many reviews").run()
    assert [text.partition("<br>")[2] for text in charts(lengths)[0]["layout"]["xaxis"]["ticktext"]] == ["n = 100"] * 4
    lengths.segmented_control(key="lengths_ranges").set_value("your own").run()
    lengths.text_input(key="lengths_edges").set_value("50, 60").run()
    assert lengths.dataframe[0].value["words"].unique().tolist() == ["1-50", "51-60", "over 60"]
    lengths.text_input(key="lengths_edges").set_value("60, 50 <b>").run()
    assert not lengths.exception and not charts(lengths)
    assert "edges: got '60, 50 <b>', expected one to 11 whole numbers that rise" in said(lengths)


def test_one_sentence_reviews_are_a_series_of_their_own(lengths, monkeypatch):
    short = Reviews(
        name="s", texts=["good film", "a bad film", "good  film"], labels=[1, 0, 1], label_names=("negative", "positive")
    )
    entry = SimpleNamespace(resolve=lambda: lambda: short)
    monkeypatch.setitem(loaders.SOURCES, "rotten-tomatoes", entry)
    lengths.multiselect(key="lengths_models").set_value(["imdb-encoder", "cls"]).run()
    lengths.toggle(key="lengths_short").set_value(True).run()
    assert not lengths.exception and not lengths.error
    table = lengths.dataframe[0].value
    own = table[table["model"].str.endswith("on rotten-tomatoes")]
    assert own["n"].tolist() == [2, 2, 0, 0, 0, 0, 0, 0]
    assert [trace["marker"]["symbol"] for trace in charts(lengths)[0]["data"][:4]] == [
        "circle",
        "diamond",
        "circle-open",
        "diamond-open",
    ]
    assert "cls on rotten-tomatoes against imdb-encoder" in said(lengths)


def test_a_row_leads_to_its_reviews(lengths):
    lengths.multiselect(key="lengths_models").set_value(["imdb-encoder", "cls"]).run()
    for place, asked in (
        (0, "reviews_models=imdb-encoder&reviews_of=test&reviews_to=32"),
        (3, "reviews_models=imdb-encoder&reviews_models=cls&reviews_of=test&reviews_from=33&reviews_to=96"),
        (6, "reviews_models=imdb-encoder&reviews_of=test&reviews_from=225"),
    ):
        lengths.session_state[lengths.dataframe[0].key] = {"selection": {"rows": [place], "columns": [], "cells": []}}
        lengths.run()
        (link,) = lengths.get("page_link")
        assert link.proto.query_string == asked and link.proto.disabled == (place == 0)
    assert not lengths.exception


def test_models_without_predictions_are_named_and_the_others_drawn(lengths, model_root, tmp_path, monkeypatch):
    root = tmp_path / "models"
    shutil.copytree(model_root, root)
    (root / "cls" / "predictions.parquet").unlink()
    (root / "one-head" / "predictions.parquet").write_bytes(b"damaged")
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(root))
    lengths.run()
    assert not lengths.exception
    assert len(lengths.error) == 2
    assert "predictions" in lengths.error[0].value
    lengths.multiselect(key="lengths_models").set_value([]).run()
    assert lengths.info


def test_models_of_other_reviews_are_not_held_against_each_other(lengths, model_root, tmp_path, monkeypatch):
    shutil.copytree(model_root, tmp_path / "models")
    for name in ("cls", "one-head"):
        small_models.predictions(300).to_parquet(tmp_path / "models" / name / "predictions.parquet")
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(tmp_path / "models"))
    lengths.multiselect(key="lengths_models").set_value(["imdb-encoder", "cls", "one-head"]).run()
    assert not lengths.exception and len(charts(lengths)) == 1
    (told,) = [info.value for info in lengths.info]  # models of the same reason are named together
    plain = told.replace("\\", "")
    assert plain.startswith(
        "cls, one-head cannot be compared with imdb-encoder: the test reviews are not the same: 400 and 300"
    )
    table = lengths.dataframe[0].value
    assert set(table[table["model"] == "cls"]["vs baseline"]) == {"n/a"}


def test_without_models_it_says_how_to_train_one(lengths, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(tmp_path))
    lengths.run()
    assert not lengths.exception
    assert "no trained model yet" in lengths.info[0].value
