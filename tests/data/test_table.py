import pandas as pd
import pytest

from core.data import table
from core.data.reviews import Reviews


@pytest.fixture
def csv(tmp_path):
    def write(content: str | bytes):
        path = tmp_path / "reviews.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def labelled(frame, label_names=None):
    return table.labelled(frame, "text", "label", label_names, "toy")


def labels_of(values, label_names=None):
    return labelled(pd.DataFrame({"text": ["a"] * len(values), "label": values}), label_names)


@pytest.mark.parametrize("start", ["", "\ufeff"], ids=["plain", "BOM"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_a_csv_keeps_every_text_as_typed(csv, start, newline):
    rows = [
        "text, label ",
        '"said ""no"", left",0',
        "NA,1",
        "3.50,0",
        '"two\nlines",1',
        "这部电影太棒了 🤗,1",
        "None,0",
        "007,1",
    ]
    reviews = labelled(table.read_table(csv(start + newline.join(rows) + newline * 2)))
    assert reviews.texts == ['said "no", left', "NA", "3.50", "two\nlines", "这部电影太棒了 🤗", "None", "007"]
    assert reviews.labels == [0, 1, 0, 1, 1, 0, 1]


def test_a_large_csv_is_text_to_its_end(csv):
    texts = table.text_column(table.read_table(csv("text,label\n" + "007,1\n" * 60_000)), "text")  # read in several pieces
    assert texts == ["007"] * 60_000


def test_parquet_gives_what_csv_gives(csv, tmp_path):
    frame = pd.DataFrame({"label": [0, 1, 1], "text": ["dull", "grand,\n", "fine"]}, index=[5, 3, 9])
    frame.to_parquet(tmp_path / "reviews.parquet")
    frame.to_csv(tmp_path / "reviews.csv", index=False)
    ours = [labelled(table.read_table(tmp_path / name)) for name in ("reviews.parquet", "reviews.csv")]
    assert ours[0] == ours[1]
    assert ours[0].texts == ["dull", "grand,\n", "fine"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "the file is empty"),
        (b"\n \n", "the file is empty"),
        (b"\xef\xbb\xbf", "the file is empty"),
        (b"text,label\n", "a table without rows"),
        ("text,label\ngut,1\nschön,0\n".encode("cp1252"), "byte 0xf6 in line 3, which is not UTF-8"),
        ("text,label\n".encode("utf-16"), "byte 0xff in line 1, which is not UTF-8"),
        (b"text,label\ngood, really,1\n", "no table of comma-separated values: Expected 2 fields in line 2, saw 3"),
        (b'text,label\n"never closed,1\n', "no table of comma-separated values: EOF inside string"),
    ],
)
def test_a_csv_that_cannot_be_used_says_why(csv, content, sentence):
    with pytest.raises(ValueError, match=f"reviews.csv: .*{sentence}") as caught:
        table.read_table(csv(content))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("gone.csv", "No such file"),
        ("folder.csv", "Is a directory"),
        ("reviews.xlsx", "ends in '.xlsx', expected .csv or .parquet"),
        ("reviews", "ends in '', expected .csv or .parquet"),
        ("broken.parquet", "no readable Parquet file"),
        ("empty.parquet", "no readable Parquet file"),
        ("x" * 300 + ".csv", "File name too long"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(tmp_path, name, sentence):
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and no more PAR1")
    (tmp_path / "empty.parquet").touch()
    with pytest.raises(ValueError, match=sentence):
        table.read_table(tmp_path / name)


def test_a_missing_column_names_those_found():
    frame = pd.DataFrame({"review": ["a"], "stars": [1]})
    with pytest.raises(ValueError, match="column 'text': there is no such column; the table has 'review', 'stars'"):
        table.text_column(frame, "text")


def test_equal_column_names_are_refused(csv):
    frame = table.read_table(csv("text,text,label\na,b,1\n"))
    with pytest.raises(ValueError, match="column 'text': 2 columns have this name"):
        table.text_column(frame, "text")
    assert table.text_column(frame, "label") == ["1"]


@pytest.mark.parametrize("blank", ["", "  \t", "\u200b\ufeff", "<br />", None, float("nan"), pd.NA])
def test_rows_without_text_are_counted_and_the_first_is_named(blank):
    frame = pd.DataFrame({"text": pd.Series(["a", blank, "b", blank], dtype=object)})
    with pytest.raises(ValueError, match="column 'text': 2 of 4 rows have no text, the first is row 2"):
        table.text_column(frame, "text")


@pytest.mark.parametrize("content", ["text\na\n\nb\n", "label,text\n1,a\n0\n1,b\n", "label,text\n1,a\n\n1,b\n"])
def test_a_gap_in_a_csv_is_a_row_without_text(csv, content):
    with pytest.raises(ValueError, match="1 of 3 rows have no text, the first is row 2"):
        table.text_column(table.read_table(csv(content)), "text")


@pytest.mark.parametrize("cell", [3, [1, 2], b"bytes"])
def test_a_cell_that_is_no_text_is_refused(cell):
    with pytest.raises(ValueError, match="in row 2, expected text"):
        table.text_column(pd.DataFrame({"text": pd.Series(["a", cell], dtype=object)}), "text")


@pytest.mark.parametrize("values", [[1, 0, 1], ["1", " 0", "1 "], [1.0, 0.0, 1.0], ["1.0", "0.", "1"]])
def test_two_classes_are_negative_and_positive(values):
    reviews = labels_of(values)
    assert (reviews.labels, reviews.label_names) == ([1, 0, 1], ("negative", "positive"))


def test_more_classes_go_by_number():
    assert labels_of(["2", "0", "1"]).label_names == ("class 0", "class 1", "class 2")


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([1, 1], "it holds only 1, expected at least two classes"),
        ([1, 2], "the classes go up to 2 but none is 0"),
        ([0, 4], "the classes go up to 4 but none is 1"),
        ([0, -1], "got -1 in row 2, expected a whole number from 0"),
        ([0, 0.5], "got 0.5 in row 2, expected a whole number from 0"),
        ([0, None], "got no label in row 2"),
        (["0", ""], "got no label in row 2"),
        (["0", "good"], "got 'good' in row 2, expected a whole number from 0"),
        (["0", "9" * 5000], r"got '999\d*\.\.\.9*' in row 2"),
    ],
)
def test_labels_that_are_no_classes_say_why(values, sentence):
    with pytest.raises(ValueError, match=f"column 'label': {sentence}"):
        labels_of(values)


def test_a_models_names_are_labels_too():
    reviews = labels_of(["Positive ", "negative", "1", "0"], ("negative", "positive"))
    assert (reviews.labels, reviews.label_names) == ([1, 0, 1, 0], ("negative", "positive"))


def test_a_model_may_be_evaluated_on_one_class():
    assert labels_of([2, 2], ("bad", "fair", "good")).labels == [2, 2]


@pytest.mark.parametrize("value", ["2", "great", 2])
def test_a_label_the_model_does_not_know_is_refused(value):
    with pytest.raises(ValueError, match="in row 1, expected one of bad, good, or its number from 0"):
        labels_of([value], ("bad", "good"))


def test_reviews_carry_the_name_they_are_given():
    frame = pd.DataFrame({"text": ["a", "b"], "label": [0, 1]})
    assert labelled(frame) == Reviews(name="toy", texts=["a", "b"], labels=[0, 1], label_names=("negative", "positive"))
