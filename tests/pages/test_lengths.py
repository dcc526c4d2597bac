import json
import shutil

import pandas as pd
import pytest

from core.records import Bucket
from ui.lengths import finding, on_test, table


def bucket(name: str, n: int, right: float, low: float, high: float) -> Bucket:
    return Bucket(name=name, n=n, accuracy=right, low=low, high=high)


NONE = Bucket(name="1-32", n=0, accuracy=None, low=None, high=None)
SHORT = bucket("33-96", 200, 0.9, 0.85, 0.93)


def test_accuracy_is_of_test_reviews_alone():
    frame = pd.DataFrame(
        {
            "split": ["test", "test", "test", "validation"],
            "label": [1, 0, 1, 0],
            "logits": [[0.0, 1.0], [0.0, 1.0], [-1.0, 2.0], [0.0, 1.0]],
            "words": [10, 20, 300, 10],
        }
    )
    found = on_test(frame)
    assert [(row.name, row.n, row.accuracy) for row in found if row.n] == [("1-32", 2, 0.5), ("over 224", 1, 1.0)]


@pytest.mark.parametrize(
    ("long", "said"),
    [
        (bucket("over 224", 300, 0.8, 0.75, 0.84), "10.0 points lower; the intervals do not overlap, so length matters here."),
        (bucket("over 224", 300, 0.88, 0.84, 0.91), "2.0 points lower; the intervals overlap, which shows no difference."),
        (bucket("over 224", 300, 0.97, 0.94, 0.98), "7.0 points higher; the intervals do not overlap, so length matters here."),
        (bucket("over 224", 300, 0.9, 0.86, 0.93), "no change; the intervals overlap, which shows no difference."),
    ],
)
def test_the_finding_compares_the_shortest_range_with_the_longest(long, said):
    sentence = finding("m", [NONE, SHORT, bucket("97-224", 500, 0.5, 0.4, 0.6), long])
    assert sentence.startswith("m: 90.0% at 33-96 words (n = 200) and ")
    assert sentence.endswith(said)


def test_a_range_of_few_reviews_makes_no_sentence():
    few = bucket("over 224", 7, 0.5, 0.2, 0.8)
    assert finding("m", [NONE, SHORT, few]) == "m: fewer than two ranges hold 100 test reviews, too few to compare."


def test_table_holds_percents_and_leaves_out_what_is_unknown():
    rows = table({"a": [NONE, SHORT], "b": [NONE, SHORT]})
    assert rows["model"].tolist() == ["a", "b", "a", "b"]
    assert rows["accuracy"].isna().tolist() == [True, True, False, False]
    assert rows.iloc[2][["n", "accuracy", "from", "to"]].tolist() == pytest.approx([200, 90, 85, 93])


def test_the_page_shows_chart_sentence_and_table(lengths):
    assert not lengths.exception
    (chart,) = lengths.get("plotly_chart")
    figure = json.loads(chart.proto.spec)
    assert [trace["name"] for trace in figure["data"]][:2] == ["imdb-encoder", "imdb-bilstm"]
    assert [(note["x"], note["text"]) for note in figure["layout"]["annotations"]] == [("1-32", "no data")]
    said = [line.value for line in lengths.markdown if line.value.startswith("imdb\\-encoder")]
    assert "100\\.0\\% at 97\\-224" in said[0]
    assert "length matters here" in said[0]
    assert lengths.dataframe[0].value["n"].sum() == 4 * 400


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


def test_without_models_it_says_how_to_train_one(lengths, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(tmp_path))
    lengths.run()
    assert not lengths.exception
    assert "no trained model yet" in lengths.info[0].value
