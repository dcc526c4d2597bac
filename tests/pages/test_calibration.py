import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests import small_models
from tests.evaluation.conftest import made, predictions
from ui.calibration import finding


def sure(confidence: float, right: int, n: int):
    """Of `n` reviews, so many are answered rightly, with one confidence for all."""
    labels = [1] * right + [0] * (n - right)
    return made(labels, np.tile(np.log([1 - confidence, confidence]), (n, 1)))


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (sure(0.9, 350, 500), "calibration error 20.0%, of which chance alone would make up to 2.8%: it is too sure."),
        (sure(0.6, 450, 500), "calibration error 30.0%, of which chance alone would make up to 4.4%: it is not sure enough."),
        (
            sure(0.8, 400, 500),
            "calibration error 0.0%, of which chance alone would make up to 3.6%: it may well be right as often as it says.",
        ),
    ],
)
def test_a_finding_says_how_a_model_errs(found, said):
    assert finding("m", found).endswith(said)


def test_errors_both_ways_are_said_to_be():
    both = made(
        [1] * 100 + [0] * 100 + [1] * 200, np.log(np.r_[np.tile([0.05, 0.95], (200, 1)), np.tile([0.45, 0.55], (200, 1))])
    )
    assert finding("m", both).endswith("it is too sure of some answers and not sure enough of others.")


@pytest.fixture
def page(first_page, model_root, tmp_path, monkeypatch) -> AppTest:
    """Two of the models have answered validation reviews, too."""
    root = tmp_path / "models"
    shutil.copytree(model_root, root)
    for name in ("imdb-encoder", "imdb-bilstm"):
        frame = small_models.predictions()
        frame["split"] = np.where(np.arange(len(frame)) % 2, "test", "validation")
        frame.to_parquet(root / name / "predictions.parquet")
        (root / name / "run.json").write_text(json.dumps({"label_names": ["<b>bad</b>", "$good$"]}))
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(root))
    return first_page.run().switch_page("../pages/calibration.py").run()


def said(page: AppTest) -> str:
    shown = [*page.markdown, *page.caption, *page.info, *page.error]
    return "\n".join(element.value.replace("\\", "") for element in shown)


def test_the_page_shows_curves_histogram_and_threshold(page):
    assert not page.exception and not page.error
    curve, histogram, thresholds = (json.loads(chart.proto.spec) for chart in page.get("plotly_chart"))
    assert [trace["name"] for trace in curve["data"]] == ["as often as it says", "imdb-encoder", "imdb-bilstm"]
    assert [trace["name"] for trace in histogram["data"]] == ["right", "wrong"]
    assert thresholds["layout"]["xaxis"]["title"]["text"] == "probability of &#36;good&#36; asked for"
    assert "imdb-bilstm: 73.1% sure on average, and right in" in said(page)
    assert len(page.get("download_button")) == 6


def test_a_threshold_is_chosen_on_validation_and_measured_on_test(page):
    table = page.dataframe[0].value.set_index("side")
    assert list(table.index) == ["validation", "test"]
    page.slider(key="calibration_threshold").set_value(0.99).run()
    table = page.dataframe[0].value.set_index("side")
    assert table.loc["test", "precision"] == "n/a" and table.loc["test", "recall"].startswith("0.0%")
    page.selectbox(key="calibration_class").set_value("0").run()
    assert not page.exception and page.selectbox(key="calibration_class").options == ["$good$", "<b>bad</b>"]


def test_a_model_without_validation_answers_says_so(page):
    page.multiselect(key="calibration_models").set_value(["cls"]).run()
    assert not page.exception and "got no validation review" in said(page)
    page.multiselect(key="calibration_models").set_value([]).run()
    assert "Choose a model" in said(page)


def test_more_classes_are_asked_about_one_by_one(page, tmp_path):
    found = replace(predictions(60, 0.7, 0, 3), tokens=np.full(60, 9))
    frame = small_models.predictions(60).assign(label=found.labels, logits=list(found.logits))
    frame["split"] = np.where(np.arange(60) < 30, "test", "validation")
    frame.to_parquet(tmp_path / "models" / "imdb-encoder" / "predictions.parquet")
    page.run()
    assert not page.exception and page.selectbox(key="calibration_class").options == ["0", "1", "2"]
