import gzip
import io
import subprocess
import sys
import zipfile
from csv import QUOTE_ALL, QUOTE_MINIMAL
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.data import table
from core.data.reviews import Reviews


@pytest.fixture
def csv(tmp_path):
    def write(content: str | bytes):
        path = tmp_path / "reviews.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def labelled(frame, label_names=("negative", "positive")):
    return table.labelled(frame, "text", "label", label_names, "toy")


def labels_of(values, label_names=("negative", "positive")):
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
    reviews = labelled(table.open_as_named(csv(start + newline.join(rows) + newline * 2)).frame)
    assert reviews.texts == ['said "no", left', "NA", "3.50", "two\nlines", "这部电影太棒了 🤗", "None", "007"]
    assert reviews.labels == [0, 1, 0, 1, 1, 0, 1]


def test_parquet_gives_what_csv_gives(csv, tmp_path):
    frame = pd.DataFrame({"label": [0, 1, 1], "text": ["dull", "grand,\n", "fine"]}, index=[5, 3, 9])
    frame.to_parquet(tmp_path / "reviews.parquet")
    frame.to_csv(tmp_path / "reviews.csv", index=False)
    ours = [labelled(table.open_as_named(tmp_path / name).frame) for name in ("reviews.parquet", "reviews.csv")]
    assert ours[0] == ours[1]
    assert ours[0].texts == ["dull", "grand,\n", "fine"]


ROWS = [["schön, wirklich", "1"], ["007", "0"], ["two\nlines", "NA"]]


@pytest.mark.parametrize(
    ("name", "content", "assumed"),
    [
        ("a.csv", 'text;label\r\nschön, wirklich;1\r\n007;0\r\n"two\nlines";NA'.encode("cp1252"),
         ["Windows-1252, since it is no UTF-8", "semicolons between columns", "the first line holds the column names"]),
        ("a.csv", 'text\tlabel\nschön, wirklich\t1\n007\t0\n"two\nlines"\tNA\n'.encode("utf-16"),
         ["UTF-16, as its byte order mark says", "tabs between columns", "the first line holds the column names"]),
        ("a.TSV", b'text\tlabel\nsch\xc3\xb6n, wirklich\t1\n007\t0\n"two\nlines"\tNA\n',
         ["UTF-8", "tabs between columns", "the first line holds the column names"]),
        ("a.jsonl", '{"text": "schön, wirklich", "label": 1}\n\n{"label": 0, "text": "007"}\r\n'
         '{"text": "two\\nlines", "label": "NA", "id": null}\n'.encode(),
         ["UTF-8", "one JSON object a line, with numbers as typed"]),
    ],
    ids=["cp1252 with semicolons", "UTF-16 with tabs", "TSV", "JSON lines"],
)  # fmt: skip
def test_what_people_bring_is_read_and_what_was_assumed_is_said(name, content, assumed):
    found = table.read_upload(name, content)
    assert found.frame[["text", "label"]].to_numpy().tolist() == ROWS
    assert (found.name, list(found.assumed)) == (name, assumed)


@pytest.mark.parametrize(("name", "cells"), [("a.tsv", ["1,2", "3"]), ("a.csv", ["1", "2\t3"])])
def test_where_two_delimiters_fit_the_name_decides(name, cells):
    assert table.read_content(name, b"a,b\tc\n1,2\t3\n").frame.iloc[0].tolist() == cells


def test_numbers_in_json_stay_as_typed():
    row = b'{"a": 3.50, "b": 1e400, "c": 123456789012345678901234567890, "d": true, "e": "\xe2\x80\xa8"}\n'
    assert table.read_content("a.ndjson", row).frame.iloc[0].tolist() == [
        "3.50", "1e400", "123456789012345678901234567890", True, "\u2028",
    ]  # fmt: skip


def test_equal_and_empty_names_are_made_distinct_visibly(csv, tmp_path):
    found = table.open_table(csv("text,text,label,\na,b,1,\n"))
    assert list(found.frame.columns) == ["text (1)", "text (2)", "label", "column 4"]
    assert list(found.assumed[-2:]) == ["a column without a name is called 'column 4'", "2 columns called 'text' are numbered"]
    pd.DataFrame([["a", 1]], columns=["text", 7]).to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    assert list(table.open_table(tmp_path / "a.jsonl").frame.columns) == ["text", "7"]


def test_a_table_by_path_may_be_larger_than_an_upload(tmp_path):
    path = tmp_path / "large.csv"
    path.write_text("text,label\n" + f"{'long review ' * 2083},1\n" * 1000)
    assert path.stat().st_size > 24.9e6
    assert len(table.open_table(path).frame) == 1000
    with pytest.raises(ValueError, match="large.csv: got 25.0 MB by upload, expected at most 20 MB; use a smaller file"):
        table.read_upload("large.csv", path.read_bytes())
    assert table.MAX_UPLOAD_BYTES == 20_000_000


def _workbook() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.csv", b"", "the file is empty"),
        ("a.csv", b"\n \n", "the file is empty"),
        ("a.csv", b"\xef\xbb\xbf", "the file is empty"),
        ("a.csv", b"\xff\xfe", "the file is empty"),
        ("a.tsv", b"", "the file is empty"),
        ("a.jsonl", b"\xef\xbb\xbf\n", "the file is empty"),
        ("a.parquet", b"", "no readable Parquet file"),
        ("a.csv", b"text,label\n", "a table without rows"),
        ("a.csv", b"text,label\ngood, really,1\n", "row 1 has 3 cells, expected 2"),
        ("a.csv", b'text,label\n"never, closed,1\n', "line 2: a quotation mark is never closed"),
        ("a.csv", _workbook(), "an Excel workbook or another ZIP archive; save the sheet as CSV"),
        ("a.jsonl", _workbook(), "an Excel workbook or another ZIP archive"),
        ("a.csv", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500), "an Excel workbook of an older format"),
        ("a.csv", pd.DataFrame({"text": ["a"]}).to_parquet(), "a Parquet file; let its name end in .parquet"),
        ("a.csv", gzip.compress(b"text,label\ngood,1\n"), "compressed by gzip"),
        ("a.csv", b"%PDF-1.7\n%\xe2\xe3", "a PDF document"),
        ("a.csv", b"\n<!DOCTYPE html><html><body>Log in</body></html>", "a web page"),
        ("a.csv", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\xff\xfe", "save the (table|file) as"),
        ("a.csv", bytes(1000), "characters that only machines write"),
        ("a.csv", b'{"text": "good", "label": 1}\n', "holds JSON, not cells; let its name end in .jsonl"),
        ("a.parquet", b"text,label\ngood,1\n", "no readable Parquet file"),
        ("a.jsonl", b"text,label\ngood,1\n", "line 1 is no JSON: Expecting value at character 1"),
        ("a.jsonl", b'{"text": "good"}\n[1, 2]\n', "line 2: got .*, expected a JSON object"),
        ("a.jsonl", b'{"text": "good", "text": "bad"}\n', "line 1: two values are called 'text'"),
        ("a.jsonl", b'{"text": "\\ud83d"}\n', "line 1 holds half a character"),
        ("a.jsonl", b"[" * 100_000, "line 1 is nested too deeply"),
        ("a.xlsx", b"", "ends in '.xlsx', expected .csv, .tsv, .jsonl, .ndjson or .parquet"),
        ("", b"text", "ends in '', expected .csv"),
    ],
)  # fmt: skip
def test_what_is_no_usable_table_says_why_in_a_sentence(name, content, sentence):
    with pytest.raises(ValueError, match=f"^{name}: .*{sentence}") as caught:
        table.read_upload(name, content)
    assert "\n" not in str(caught.value)


@given(st.binary(max_size=200), st.sampled_from([".csv", ".tsv", ".jsonl"]))
def test_any_bytes_are_a_table_or_refused(content, suffix):
    try:
        found = table.read_content(f"a{suffix}", content)
    except ValueError as error:
        assert str(error).startswith(f"a{suffix}: ")
    else:
        assert len(found.frame) and len(set(found.frame.columns)) == len(found.frame.columns) and found.assumed


PIECES = [*"ab 7,;\t|\"\n'", "schön", "Straße"]  # a line of "ß" alone could be in many an encoding
CELLS = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)


@given(
    rows=st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=5),
    suffix=st.sampled_from([".csv", ".tsv", ".jsonl", ".parquet"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"]),
    delimiter=st.sampled_from(",;\t|"),
    quoting=st.sampled_from([QUOTE_MINIMAL, QUOTE_ALL]),
)
def test_a_table_written_in_any_format_comes_back(rows, suffix, encoding, delimiter, quoting):
    frame = pd.DataFrame(rows, columns=["text", "other"], dtype="str")
    if suffix == ".parquet":
        content = frame.to_parquet()
    elif suffix == ".jsonl":
        content = frame.to_json(orient="records", lines=True, force_ascii=False).encode(encoding)
    else:
        written = frame.to_csv(index=False, sep=delimiter, quoting=quoting, lineterminator="\r\n")
        content = written.encode(encoding)
    found = table.read_content(f"a{suffix}", content).frame
    assert found.to_numpy().tolist() == [list(row) for row in rows]
    assert list(found.columns) == list(frame.columns)


def test_reading_needs_neither_torch_nor_a_tokeniser():
    code = "import sys, core.data.table, core.data.preparation; from core.data.columns import guess; "
    code += "guess(core.data.table.read_content('a.csv', b'text,label\\na,1\\nb,0').frame); "
    code += "assert not {'torch', 'transformers', 'datasets', 'tokenizers'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("gone.csv", "No such file"),
        ("folder.csv", "Is a directory"),
        ("reviews.xlsx", "ends in '.xlsx', expected .csv"),
        ("reviews", "ends in '', expected .csv"),
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
        table.open_as_named(tmp_path / name)


def test_a_missing_column_names_those_found():
    frame = pd.DataFrame({"review": ["a"], "stars": [1]})
    with pytest.raises(ValueError, match="column 'text': there is no such column; the table has 'review', 'stars'"):
        table.texts_of(frame, "text")


def test_equal_column_names_are_refused(csv):
    frame = table.open_as_named(csv("text,text,label\na,b,1\n")).frame
    with pytest.raises(ValueError, match="column 'text': 2 columns have this name"):
        table.texts_of(frame, "text")
    assert table.texts_of(frame, "label") == ([1], ["1"])


@pytest.mark.parametrize("blank", ["", "  \t", "\u200b\ufeff", "<br />", None, float("nan"), pd.NA])
def test_rows_without_text_are_left_out_and_the_others_keep_their_number(blank):
    frame = pd.DataFrame({"text": pd.Series(["a", blank, "b", blank], dtype=object), "label": [0, 7, 1, 7]})
    assert table.texts_of(frame, "text") == ([1, 3], ["a", "b"])
    reviews = labelled(frame)
    assert (reviews.texts, reviews.labels) == (["a", "b"], [0, 1])
    assert reviews.notes == ("left out 2 of 4 rows, without text: the first is row 2",)


def test_a_table_without_any_text_is_refused():
    with pytest.raises(ValueError, match="column 'text': none of its 2 rows has text"):
        table.texts_of(pd.DataFrame({"text": ["", None]}), "text")


def test_rows_are_named_by_their_place_in_the_file():
    frame = pd.DataFrame({"text": pd.Series([" ", "a", "b"], dtype=object), "label": [0, 1, "odd"]})
    with pytest.raises(ValueError, match="got 'odd' in row 3"):
        labelled(frame)


@pytest.mark.parametrize("content", ["text\na\n\nb\n", "label,text\n1,a\n0\n1,b\n", "label,text\n1,a\n\n1,b\n"])
def test_a_gap_in_a_csv_is_a_row_without_text(csv, content):
    assert table.texts_of(table.open_as_named(csv(content)).frame, "text") == ([1, 3], ["a", "b"])


@pytest.mark.parametrize("cell", [3, [1, 2], b"bytes"])
def test_a_cell_that_is_no_text_is_refused(cell):
    with pytest.raises(ValueError, match="in row 2, expected text"):
        table.texts_of(pd.DataFrame({"text": pd.Series(["a", cell], dtype=object)}), "text")


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
