"""The widgets for any table, in a page of their own."""

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from core.data.uploads import all_uploads, keep

CSV = b"text,label\ngood,1\nbad,0\n"
SOURCES = {"imdb": "Reviews of *films*.", "short": "Others."}


@pytest.fixture(autouse=True)
def runs_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "runs"))


def script(sources: dict[str, str], labelled: bool) -> None:
    import streamlit as st

    from core.data.uploads import Upload
    from ui import loaders, panels, tables

    chosen = tables.choose("t_data", sources)
    st.text(f"chosen: {chosen.name if isinstance(chosen, Upload) else chosen}")
    if isinstance(chosen, Upload):
        with panels.refusals():
            table = loaders.table(chosen.id)
            tables.preview(table)
            texts, label = tables.columns(table, "t_data", labelled)
            st.text(f"columns: {texts} {label}")
            if label is not None:
                tables.summary(loaders.prepared(chosen.id, texts, label))


def page(sources=SOURCES, labelled=True) -> AppTest:
    return AppTest.from_function(script, default_timeout=30, kwargs={"sources": sources, "labelled": labelled})


def upload(app: AppTest, name: str, content: bytes) -> AppTest:
    app.file_uploader[0].set_value((name, content, "text/csv")).run()
    assert not app.exception
    return app


def said(app: AppTest, what: str) -> str:
    return next(line.value for line in app.text if line.value.startswith(what)).removeprefix(what)


def test_the_first_source_is_chosen_and_described():
    app = page().run()
    assert said(app, "chosen: ") == "imdb"
    assert app.caption[0].value == "Reviews of \\*films\\*\\."
    assert "t_data" not in app.query_params  # which says what was chosen, and nothing was


def test_without_sources_nothing_is_chosen():
    app = page({}).run()
    assert said(app, "chosen: ") == "None" and "t_data" not in app.query_params


def test_a_file_is_chosen_as_soon_as_it_is_there():
    app = upload(page().run(), "mine.csv", CSV)
    (kept,) = all_uploads()
    assert said(app, "chosen: ") == "mine.csv"
    assert app.query_params["t_data"] == kept.id
    assert app.selectbox(key="t_data").options[-1].startswith("mine.csv (20")
    app.selectbox(key="t_data").set_value("short").run()
    assert said(app, "chosen: ") == "short" and app.query_params["t_data"] == "short"


def test_an_upload_is_there_for_other_tabs_and_by_its_address():
    kept = keep("mine.csv", CSV)
    other = page().run()
    other.query_params["t_data"] = kept.id
    assert said(other.run(), "chosen: ") == "mine.csv"
    fresh = page()
    fresh.query_params["t_data"] = kept.id
    assert said(fresh.run(), "chosen: ") == "mine.csv"
    assert fresh.query_params["t_data"] == kept.id


def test_an_unknown_address_is_a_sentence():
    app = page()
    app.query_params["t_data"] = "../$x$"
    app.run()
    assert not app.exception
    assert app.warning[0].value == "There is no table \\'\\.\\.\\/\\$x\\$\\' here\\: choose another\\, or upload it again\\."
    assert said(app, "chosen: ") == "imdb"


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.csv", b"text,label\n", "a table without rows"),
        ("a.xlsx", b"PK\x03\x04 an Excel file", "a spreadsheet can be saved as CSV"),
        ("<i>.csv", b"PK\x03\x04 an Excel file", "an Excel workbook"),
        ("a.csv", b"x" * 25_000_000, "got 25\\.0 MB by upload\\, expected at most 20 MB"),
    ],
)
def test_what_is_refused_leaves_the_former_choice(name, content, sentence):
    app = page().run()
    app.selectbox(key="t_data").set_value("short").run()
    upload(app, name, content)
    assert sentence in app.error[0].value and "<" not in app.error[0].value.replace("\\<", "")
    assert said(app, "chosen: ") == "short" and all_uploads() == []
    upload(app, "good.csv", CSV)
    assert not app.error and said(app, "chosen: ") == "good.csv"


def test_uploads_of_one_name_can_be_told_apart():
    ids = [keep("a.csv", CSV + b"fine,1\n" * n).id for n in range(3)]
    app = page({}).run()
    options = app.selectbox(key="t_data").options
    assert len(set(options)) == 3
    for id in ids:
        app.selectbox(key="t_data").set_value(id).run()
        assert app.query_params["t_data"] == id


def test_columns_are_guessed_anew_for_each_table():
    app = upload(page().run(), "a.csv", b"title,review,label,other\nA,good film,1,0\nB,bad film,0,0\nC,a film,0,1\n")
    assert said(app, "columns: ") == "('review',) label"
    app.multiselect(key="t_data_text").set_value(["review", "title"]).run()
    app.selectbox(key="t_data_label").set_value("other").run()
    assert said(app, "columns: ") == "('review', 'title') other"
    upload(app, "b.csv", b"title,text,other,sentiment\nA,good,1,pos\nB,bad,0,neg\nC,so,0,pos\n")
    assert said(app, "columns: ") == "('text',) sentiment"


def test_labels_are_guessed_in_a_table_that_is_sorted_by_them():
    rows = "".join(f"{int(i < 5_000)},review {i}\n" for i in range(7_000))
    app = upload(page().run(), "a.csv", f"label,text\n{rows}".encode())
    assert said(app, "columns: ") == "('text',) label"


def test_columns_come_from_the_address():
    kept = keep("a.csv", b"title,review,label,other\nA,good,1,0\nB,bad,0,0\nC,so,0,1\n")
    app = page()
    app.query_params |= {"t_data": kept.id, "t_data_text": ["title", "gone"], "t_data_label": "other"}
    assert said(app.run(), "columns: ") == "('title',) other"
    assert not app.exception


def test_labels_are_optional_where_none_are_needed():
    app = upload(page({}, labelled=False).run(), "a.csv", CSV)
    assert said(app, "columns: ") == "('text',) None"
    app.selectbox(key="t_data_label").set_value("label").run()
    assert said(app, "columns: ") == "('text',) label"
    app.selectbox(key="t_data_label").set_value(None).run()
    assert said(app, "columns: ") == "('text',) None"


def test_the_preview_shows_five_rows_shortened_and_says_so():
    rows = "".join(f"{'long ' * 100 if i == 1 else 'صفحة 电影'} {i};{i % 2}\n" for i in range(7))
    app = upload(page().run(), "a.csv", ("text;label;label\n" + rows.replace(";", ";x;")).encode("utf-16"))
    shown = app.dataframe[0].value
    assert len(shown) == 5 and list(shown.columns) == ["text", "label (1)", "label (2)"]
    assert shown["text"][0] == "صفحة 电影 0" and len(shown["text"][1]) == 300 and shown["text"][1].endswith("…")
    caption = app.caption[0].value.replace("\\", "")
    for sentence in [
        "7 rows, 3 columns; the first 5 are shown; cells are shown up to 300 characters; UTF-16, as its byte order mark says",
        "semicolons between columns; the first line holds the column names; 2 columns called 'label' are numbered.",
    ]:
        assert sentence in caption


def test_every_row_that_is_left_out_can_be_reached():
    rows = ["good,1", "bad,0", "good,1", ",1", "fine,", *[f"same {i // 2},1" for i in range(400)]]
    app = upload(page().run(), "a.csv", ("text,label\n" + "\n".join(rows)).encode())
    balance, dropped = app.dataframe[1].value, app.dataframe[2].value
    assert balance.to_dict("list")["reviews"] == [1, 201]
    assert len(dropped) == 203 and dropped["row"].is_monotonic_increasing
    assert dropped.iloc[:3].to_numpy().tolist() == [[3, "duplicate text"], [4, "no text"], [5, "no label"]]
    assert app.expander[0].label == "All 203 rows that are left out"
    assert any("left out 201 of 405 rows\\, with the text of an earlier row" in line.value.lower() for line in app.caption)


def test_a_hundred_classes_are_listed_and_one_more_is_refused():
    def table(n: int) -> bytes:
        return ("text,label\n" + "".join(f"review {i},class {i % n}\n" for i in range(2 * n))).encode()

    app = upload(page().run(), "a.csv", table(100))
    assert len(app.dataframe[1].value) == 100 and not app.error
    upload(app, "b.csv", table(101))
    assert app.selectbox(key="t_data_label").value is None  # no column of labels
    app.selectbox(key="t_data_label").set_value("label").run()
    assert "got 101 different labels" in app.error[0].value


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"text,label\ngood,1\nfine,1\n", "it holds only"),
        (b"text,label\ngood,1\n", "1 usable of 1 rows"),
    ],
)
def test_a_table_that_cannot_be_used_says_why(content, sentence):
    app = upload(page().run(), "a.csv", content)
    app.selectbox(key="t_data_label").set_value("label").run()
    assert sentence in app.error[0].value and not app.exception


def test_labels_that_were_taken_for_one_are_named():
    app = upload(page().run(), "a.csv", b'text,label\n"a\nb", Pos\nc,pos\nd,neg\ne,NaN\nf,neg\n')
    captions = "\n".join(line.value.replace("\\", "") for line in app.caption)
    assert "are one class, 'Pos'" in captions or "are one class, 'pos'" in captions
    assert "without a label: row 4" in captions


def test_cells_of_any_type_are_drawn(tmp_path):
    frame = pd.DataFrame({"text": ["good", "bad"], "n": [1.5, None], "list": [np.array([1, 2]), None], "when": pd.Timestamp(0)})
    frame.to_parquet(tmp_path / "a.parquet")
    app = upload(page(labelled=False).run(), "a.parquet", (tmp_path / "a.parquet").read_bytes())
    assert app.dataframe[0].value["list"][0] == "[1 2]"
