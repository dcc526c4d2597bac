"""What is taken away from a page says what it is of, and runs nothing where it is opened."""

import io

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from streamlit.testing.v1 import AppTest

from core import runs
from tests.pages.conftest import MAIN
from tests.pages.test_compare import finish
from ui import export
from ui.export import Export

ADDRESS = "http://localhost:8501/lengths?lengths_models=a&lengths_models=b"
FOUND = Export(
    title="=Title",
    table=pd.DataFrame({"model": ["=1+1", "b"], "n": [3, 0], "accuracy": [87.5, np.nan], "source": ["x", "+y"]}),
    of=["a: run a, seed 0."],
    said=["<b>good</b>"],
    charts={"Chart": go.Figure(go.Scatter(y=[1, 2]))},
)


def test_a_spreadsheet_calculates_nothing_and_each_row_says_what_it_is_of():
    table = pd.read_csv(io.BytesIO(export.as_csv(FOUND, ADDRESS)), encoding="utf-8-sig")
    assert list(table) == ["model", "n", "accuracy %", "source", "predicted_source"]
    assert table["model"].tolist() == ["'=1+1", "b"] and table["source"].tolist() == ["x", "'+y"]
    assert table["accuracy %"].tolist()[0] == 87.5 and table["accuracy %"].isna().tolist() == [False, True]
    assert all("a: run a, seed 0. Taken on 20" in source and ADDRESS in source for source in table["predicted_source"])


def test_markdown_and_html_say_what_they_are_of():
    markdown, page = export.as_markdown(FOUND, ADDRESS), export.as_html(FOUND, ADDRESS)
    assert "| b | 0 | n/a |" in markdown and "a: run a, seed 0." in markdown and f"<{ADDRESS}>" in markdown
    assert "a: run a, seed 0." in page and "Plotly.newPlot" in page and "<b>good</b>" not in page
    assert "<script src" not in page and 'href="http://localhost:8501/lengths?lengths_models=a&amp;' in page


def test_an_index_with_a_name_is_a_column():
    found = Export(title="T", table=pd.DataFrame({"a": ["1"]}, index=pd.Index(["accuracy"], name="figure")), of=[])
    assert export.as_csv(found, "").decode("utf-8-sig").startswith("figure,a,source")


def test_a_run_is_named_with_its_data_its_seed_and_its_reviews(tmp_path):
    finish(tmp_path, "a", name="mine", code={"commit": "0123456789abcdef"}, fingerprint="f" * 64)
    (sentence,) = export.of_runs([runs.read("a", tmp_path)])
    assert sentence == (
        "mine · a: run a, Transformer, 3 layers of 256, 8 heads, data imdb, 1,200 test, "
        "fingerprint of the test reviews ffffffffffff, seed 0, code 0123456789ab."
    )


def test_runs_that_are_compared_and_the_list_of_them_can_be_taken_away(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path))
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(tmp_path / "none"))
    for id, accuracy in (("a", 0.85), ("b", 0.86)):
        finish(tmp_path, id, accuracy=accuracy)
    page = AppTest.from_file(str(MAIN), default_timeout=60)
    page.query_params["compare_runs"] = ["a", "b"]
    page.run().switch_page("../pages/compare.py").run(timeout=120)
    assert not page.exception
    labels = [button.proto.label for button in page.get("download_button")]
    assert labels == 2 * ["Download CSV", "Download Markdown", "Download HTML"]


def test_buttons_leave_the_page_as_it_is():
    def page():
        from tests.pages.test_export import FOUND
        from ui import export

        export.downloads(FOUND, "lengths_all")

    app = AppTest.from_function(page, default_timeout=30).run()
    assert not app.exception
    buttons = [button.proto for button in app.get("download_button")]
    assert [button.label for button in buttons] == ["Download CSV", "Download Markdown", "Download HTML"]
    assert all(button.ignore_rerun for button in buttons)  # or the second of two quick clicks would find no file
