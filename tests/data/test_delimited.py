import csv
import io

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from core.data.delimited import DELIMITERS, parse

NAMED = "the first line holds the column names"


def test_everything_is_as_typed():
    parsed = parse('text, label \r\n"said ""no"", left",0\r\nNA,1\r\n3.50,0\r\n"two\r\nlines",1\r\n007, x \r\n\r\n')
    assert parsed.names == ["text", "label"]
    assert parsed.rows == [['said "no", left', "0"], ["NA", "1"], ["3.50", "0"], ["two\r\nlines", "1"], ["007", " x "]]
    assert parsed.assumed == ["commas between columns", NAMED]


@pytest.mark.parametrize("delimiter", DELIMITERS)
def test_a_delimiter_is_told_by_rows_of_equal_width(delimiter):
    others = " ".join(d for d in DELIMITERS if d != delimiter)
    lines = [("text", "label"), (f"good{others}{others}", "1"), ("bad", "0"), (f"fine {others[0]}", "1")]
    parsed = parse("\n".join(map(delimiter.join, lines)))
    assert [parsed.names, *parsed.rows] == [list(line) for line in lines]
    assert parsed.assumed == [f"{DELIMITERS[delimiter]} between columns", NAMED]


def test_of_two_that_fit_the_likely_one_is_taken():
    assert parse("a,b\tc\n1,2\t3\n").rows == [["1", "2\t3"]]
    assert parse("a,b\tc\n1,2\t3\n", likely="\t").rows == [["1,2", "3"]]


def test_commas_in_the_names_do_not_hide_the_semicolons():
    parsed = parse("text, as typed;label\ngood, really, good;1\nbad;0\n")
    assert (parsed.names, parsed.rows) == (["text, as typed", "label"], [["good, really, good", "1"], ["bad", "0"]])


def test_excel_may_say_its_delimiter():
    assert parse("sep=;\r\na,b;c,d\r\n1,2;3,4\r\n").rows == [["1,2", "3,4"]]


def test_one_column_needs_no_delimiter():
    parsed = parse('review\ngood, really\n"bad; ""very"""\n')
    assert (parsed.rows, parsed.assumed[0]) == ([["good, really"], ['bad; "very"']], "one column")


def test_quotation_marks_that_do_not_pair_are_text():
    parsed = parse('text\tlabel\n"Great" film\t1\n"never closed\t0\n')
    assert parsed.rows == [['"Great" film', "1"], ['"never closed', "0"]]
    assert "quotation marks are part of the cells, since they do not pair" in parsed.assumed


@pytest.mark.parametrize(
    ("text", "nameless"),
    [
        ("good film,1\nbad film,0\nfine,1\n", True),  # a number above numbers
        ("good film,pos\nbad film,neg\nfine,pos\n", True),  # a value that comes again
        ("a film that I would not have wanted to miss for anything at all in the world,x\nbad,y\n", True),
        ("text,1\ngood,0\n", False),  # a usual name
        ("0,1\ngood film,1\nbad film,0\n", False),  # as pandas calls columns
        ("film,verdict\ngood,pos\nbad,neg\n", False),
        ("2019,film\n7,good\nold,bad\nnew,fine\n", False),  # a number above words, but for one
        ("2019,2020\ngood,pos\nbad,neg\n", False),
        (",x\n0,good\n1,bad\n", False),  # as pandas writes its index
    ],
)
def test_a_line_of_names_is_told_from_a_row(text, nameless):
    parsed = parse(text)
    assert (parsed.names == ["column 1", "column 2"]) == nameless
    assert len(parsed.rows) == text.count("\n") - (not nameless)
    assert (NAMED in parsed.assumed) != nameless


def test_cells_missing_at_the_end_are_said_and_empty_lines_are_rows():
    parsed = parse("label,text\n1,a\n0\n\n1,b\n")
    assert parsed.rows == [["1", "a"], ["0", ""], ["", ""], ["1", "b"]]
    assert parsed.assumed[-1] == "cells missing at the end of a row are empty: 1 of 4 rows, the first is row 2"


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_any_line_end(newline):
    assert parse(newline.join(["text,label", '"a b",1', "c,0", ""])).rows == [["a b", "1"], ["c", "0"]]


def test_a_long_cell_is_read():
    assert parse("text,label\n" + "x" * 200_000 + ",1\n").rows == [["x" * 200_000, "1"]]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "the file is empty"),
        ("\r\n \n", "the file is empty"),
        ("text,label\ngood, really,1\n", "row 1 has 3 cells, expected 2; put quotation marks around"),
        ('text,label\na,1\n"never, closed,1\n', "line 3: a quotation mark is never closed"),
        ('text,label\n"said "no", left",1\n', "line 2: a cell goes on after its closing quotation mark"),
    ],
)
def test_what_cannot_be_cut_into_cells_says_why(text, sentence):
    with pytest.raises(ValueError, match=sentence):
        parse(text)


CELLS = st.text(st.sampled_from("ab 7,;\t|\"\n\r'é這🤗"), max_size=8)


@given(
    rows=st.integers(2, 4).flatmap(lambda n: st.lists(st.lists(CELLS, min_size=n, max_size=n), min_size=1, max_size=6)),
    delimiter=st.sampled_from(list(DELIMITERS)),
    newline=st.sampled_from(["\n", "\r\n"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
@example(rows=[["", ""]], delimiter=",", newline="\n", quoting=csv.QUOTE_MINIMAL)
@example(rows=[["a", "b\n"]], delimiter="\t", newline="\n", quoting=csv.QUOTE_ALL)
def test_what_was_written_comes_back(rows, delimiter, newline, quoting):
    assume((newline, quoting) != ("\n", csv.QUOTE_MINIMAL) or "\r" not in "".join(sum(rows, [])))  # csv writes it unquoted
    names = ["text", "label", "third", "fourth"][: len(rows[0])]
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter, lineterminator=newline, quoting=quoting).writerows([names, *rows])
    parsed = parse(out.getvalue())
    assert (parsed.names, parsed.rows) == (names, rows)
    assert parsed.assumed == [f"{DELIMITERS[delimiter]} between columns", NAMED]
