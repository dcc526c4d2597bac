import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from core.data.table import open_as_named
from core.evaluation import table
from core.evaluation.metrics import metrics
from core.evaluation.table import evaluate, label_table
from core.inspection.reading import read
from core.words import count_words
from tests.small_models import TEXTS

LONG = " ".join(TEXTS * 5)  # several windows of the small models
REVIEWS = [*TEXTS, LONG, "good", 'not, a "good" film\nat all']
LABELS = [1, 0, 0, 1, 1, 0]
CSV_NOTES = ("UTF-8", "commas between columns", "the first line holds the column names")


def silent(n: int, total: int) -> None:
    pass


def write(frame: pd.DataFrame, path):
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path, index=False)
    return path


def one_sentence(caught) -> str:
    message = str(caught.value)
    assert "\n" not in message and "Traceback" not in message
    return message


@pytest.fixture
def unscored(monkeypatch):
    """Scoring that must not happen: what is refused is refused before the work."""
    monkeypatch.setattr(table, "score", lambda *_: pytest.fail("scored before it was refused"))


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("labels", [LABELS, ["Positive", "negative", "negative", "positive", "POSITIVE ", "negative"]])
def test_a_table_is_measured_as_its_reviews_are_read(model, tmp_path, suffix, labels):
    path = write(pd.DataFrame({"text": REVIEWS, "label": labels}), tmp_path / f"reviews{suffix}")
    found, assumed = evaluate(model, path, "text", "label", silent)
    logits = np.array([read(model, text).prediction.logits for text in REVIEWS], dtype=np.float32)
    assert found == metrics(logits, np.array(LABELS), np.array([count_words(text) for text in REVIEWS]))
    assert (found.n, found.buckets[0].n, found.buckets[2].n) == (6, 5, 1)  # lengths before anything is cut
    assert assumed == (() if suffix == ".parquet" else CSV_NOTES)


def test_rows_without_text_are_left_out_of_the_measure_and_counted(opened, tmp_path):
    path = write(pd.DataFrame({"text": ["good", " ", "bad", None], "label": [1, 7, 0, None]}), tmp_path / "reviews.parquet")
    found, assumed = evaluate(opened("one-head"), path, "text", "label", silent)
    assert (found.n, assumed) == (2, ("left out 2 of 4 rows, without text: the first is row 2",))


def test_progress_counts_every_review(opened, tmp_path):
    path = write(pd.DataFrame({"text": REVIEWS, "label": LABELS}), tmp_path / "reviews.csv")
    heard = []
    evaluate(opened("imdb-bilstm"), path, "text", "label", lambda n, total: heard.append((n, total)))
    assert sum(n for n, _ in heard) == 6 and {total for _, total in heard} == {6}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"review,label\ngood,1\n", "column 'text': there is no such column; the table has 'review', 'label'"),
        (b"text,stars\ngood,1\n", "column 'label': there is no such column; the table has 'text', 'stars'"),
        (b"text,label\ngood,1\nfine,positive\n", "column 'label': it holds only 'positive', expected at least two classes"),
        (b"text,label\ngood,1\nbad,awful\n", "got 'awful' in row 2, expected one of negative, positive, or its number from 0"),
        (b"text,label\ngood,1\nbad,2\n", "got '2' in row 2, expected one of negative, positive"),
        (b"text,label\ngood,1\nbad,\n", "got no label in row 2"),
        (b"text,label\ngood,1\nnot so good \x81,0\n", "byte 0x81 in line 3, which is neither UTF-8 nor cp1252; save the file"),
        ("text,label\n \t,1\n,0\n\u200b\u200b,1\n".encode(), "column 'text': none of its 3 rows has text"),
        (b"text,label\n,1\ngood,1\n ,0\n", "it holds only 'positive', expected at least two classes"),
        (b"text,label\n", "a table without rows"),
        (b"", "the file is empty"),
    ],
)
def test_a_table_that_cannot_be_used_says_why_in_a_sentence(opened, tmp_path, unscored, content, sentence):
    path = tmp_path / "reviews.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=sentence) as caught:
        evaluate(opened("imdb-encoder"), path, "text", "label", silent)
    one_sentence(caught)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("windows", [False, True])
def test_a_table_gets_what_each_review_alone_is_answered(model, tmp_path, suffix, windows):
    path = write(pd.DataFrame({"text": REVIEWS, "id": list("abcdef")}), tmp_path / f"reviews{suffix}")
    before = path.read_bytes()
    summary = label_table(model, path, None, "text", windows, silent)
    out = tmp_path / f"reviews.labelled{suffix}"
    expected = {"n": 6, "without_text": 0, "out": str(out), "columns": ["label", "probability"]}
    expected["assumed"] = [] if suffix == ".parquet" else list(CSV_NOTES)
    assert json.loads(json.dumps(summary)) == expected
    found = open_as_named(out).frame
    assert list(found.columns) == ["text", "id", "label", "probability"]
    assert (found["text"].tolist(), found["id"].tolist()) == (REVIEWS, list("abcdef"))
    answers = [read(model, text, windows=windows).prediction for text in REVIEWS]
    assert found["label"].tolist() == [answer.label for answer in answers]
    expected = [answer.probabilities[answer.label] for answer in answers]
    np.testing.assert_allclose(found["probability"].astype(float), expected, atol=1e-5)
    assert path.read_bytes() == before


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_rows_without_text_keep_their_place_and_get_no_label(opened, tmp_path, suffix):
    texts = ["", REVIEWS[0], " \t", "\u200b", REVIEWS[1]]
    path = write(pd.DataFrame({"text": texts, "id": list("abcde")}), tmp_path / f"reviews{suffix}")
    summary = label_table(opened("one-head"), path, None, "text", False, silent)
    found = open_as_named(Path(summary["out"])).frame
    assert (summary["n"], summary["without_text"], found["text"].tolist()) == (2, 3, texts)
    answers = [read(opened("one-head"), text).prediction.label for text in REVIEWS[:2]]
    labels = [label if isinstance(label, str) and label else None for label in found["label"]]
    assert labels == [None, answers[0], None, None, answers[1]]


def test_windows_read_what_a_cut_leaves_out(opened):
    model = opened("imdb-encoder")
    cut, whole = (table.table_logits(model, REVIEWS, windows=windows, progress=silent) for windows in (False, True))
    np.testing.assert_allclose(whole, [read(model, text, windows=True).prediction.logits for text in REVIEWS], atol=1e-5)
    assert np.abs(cut - whole).max(-1).argmax() == REVIEWS.index(LONG)
    np.testing.assert_allclose(np.delete(cut, 3, axis=0), np.delete(whole, 3, axis=0), atol=1e-5)


@pytest.mark.parametrize(
    ("taken", "ours"),
    [
        (["label"], ["predicted_label", "probability"]),
        (["probability", "label"], ["predicted_label", "predicted_probability"]),
        (["label", "predicted_label"], ["predicted_predicted_label", "probability"]),
    ],
)
def test_columns_that_were_there_are_kept(opened, tmp_path, taken, ours):
    frame = pd.DataFrame({"text": ["good", "bad"]} | {name: ["mine", "=mine"] for name in taken})
    path = write(frame, tmp_path / "reviews.csv")
    assert label_table(opened("one-head"), path, None, "text", False, silent)["columns"] == ours
    found = open_as_named(tmp_path / "reviews.labelled.csv").frame
    assert list(found.columns) == ["text", *taken, *ours]
    pd.testing.assert_frame_equal(found[["text", *taken]], frame)


CELLS = [
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1",
    '"quoted"',
    "a,b",
    "line\nbreak",
    "line\rbreak",
    "both\r\n",
    "007",
    "NA",
    " x ",
    "",
]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        *((".csv", after) for after in (".csv", ".parquet", ".tsv", ".jsonl", ".ndjson")),
        *((".parquet", after) for after in (".csv", ".tsv", ".jsonl")),
    ],
)
def test_every_cell_comes_back_as_typed(opened, tmp_path, before, after):
    frame = pd.DataFrame({"text": [f"good {cell}" for cell in CELLS], "note": CELLS})
    path = tmp_path / f"reviews{before}"
    if before == ".csv":
        path.write_bytes(frame.to_csv(index=False, lineterminator="\r\n").encode())
    else:
        frame.to_parquet(path)
    label_table(opened("one-head"), path, tmp_path / f"out{after}", "text", False, silent)
    found = open_as_named(tmp_path / f"out{after}").frame
    assert (found["text"].tolist(), found["note"].tolist()) == (frame["text"].tolist(), CELLS)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_a_named_index_is_kept(opened, tmp_path, suffix):
    frame = pd.DataFrame({"text": ["good", "bad"]}, index=pd.Index([7, 3], name="id"))
    frame.to_parquet(tmp_path / "reviews.parquet")
    label_table(opened("one-head"), tmp_path / "reviews.parquet", tmp_path / f"out{suffix}", "text", False, silent)
    assert open_as_named(tmp_path / f"out{suffix}").frame.reset_index()["id"].astype(int).tolist() == [7, 3]


@pytest.mark.parametrize(
    ("out", "sentence"),
    [
        ("out.xlsx", "out: got a name that ends in '.xlsx', expected .csv, .tsv, .jsonl, .ndjson or .parquet"),
        ("out", "out: got a name that ends in '', expected .csv, .tsv, .jsonl, .ndjson or .parquet"),
        ("taken.csv", "there is a file already; name another with --out"),
        ("reviews.csv", "there is a file already"),
        ("folder.csv", "there is a file already"),
        ("gone/out.csv", "there is no folder .*gone; make it first"),
        ("twice.parquet", "a .parquet file cannot hold this table: Duplicate column names"),
        ("twice.jsonl", "a .jsonl file cannot hold this table: .*columns must be unique"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_before_the_work(opened, tmp_path, unscored, out, sentence):
    (tmp_path / "reviews.csv").write_text("text,note,note\ngood,a,b\n")
    (tmp_path / "taken.csv").write_text("mine")
    (tmp_path / "folder.csv").mkdir()
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ValueError, match=sentence) as caught:
        label_table(opened("one-head"), tmp_path / "reviews.csv", tmp_path / out, "text", False, silent)
    one_sentence(caught)
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "taken.csv").read_text() == "mine"


def test_a_file_that_came_meanwhile_is_left_alone(opened, tmp_path):
    path = write(pd.DataFrame({"text": ["good"]}), tmp_path / "reviews.csv")
    out = tmp_path / "out.csv"
    with pytest.raises(ValueError, match="cannot be written there: File exists"):
        label_table(opened("one-head"), path, out, "text", False, lambda n, total: out.write_text("theirs") and None)
    assert out.read_text() == "theirs"


def test_labelled_again_the_earlier_table_stays(opened, tmp_path):
    path = write(pd.DataFrame({"text": ["good"]}), tmp_path / "reviews.csv")
    label_table(opened("one-head"), path, None, "text", False, silent)
    first = (tmp_path / "reviews.labelled.csv").read_bytes()
    with pytest.raises(ValueError, match="reviews.labelled.csv: there is a file already"):
        label_table(opened("cls"), path, None, "text", False, silent)
    assert (tmp_path / "reviews.labelled.csv").read_bytes() == first


@pytest.mark.parametrize(
    ("suffix", "written"), [(".csv", "'=good"), (".tsv", "'=good"), (".jsonl", "=good"), (".parquet", "=good")]
)
def test_a_label_is_no_formula_where_a_spreadsheet_would_calculate_it(opened, tmp_path, suffix, written):
    model = opened("one-head")
    model.network.config.id2label = {0: "=good", 1: "=good "}
    path = write(pd.DataFrame({"text": ["good"], "note": ["=1+1"]}), tmp_path / "reviews.csv")
    label_table(model, path, tmp_path / f"out{suffix}", "text", False, silent)
    found = open_as_named(tmp_path / f"out{suffix}").frame
    assert (found["label"][0].strip(), found["note"][0]) == (written, "=1+1")
