import pandas as pd
import plotly.graph_objects as go

from core.figures import report

MARKUP = "<script>alert(1)</script>"


def test_a_report_is_one_file_in_which_nothing_foreign_is_markup():
    charts = {"One": go.Figure(go.Scatter(y=[1, 2])), MARKUP: go.Figure(go.Scatter(y=[3]))}
    text = report.page(MARKUP, [MARKUP], charts, pd.DataFrame({"a": [MARKUP, None], "b": [1.234, None]}), [MARKUP], MARKUP)
    assert MARKUP not in text and text.count("&lt;script&gt;alert(1)") == 7
    assert "<script src" not in text and 'rel="stylesheet"' not in text
    assert text.count("Plotly.newPlot") >= 2 and text.count("plotly.js v") == 1  # the library is there once
    assert "1.23" in text and text.count("<td>n/a</td>") == 2


def test_a_report_has_long_cells_whole_and_the_way_back():
    table = pd.DataFrame({"what": ["word " * 50], "p": [0.000123], "n": [12_345]})
    text = report.page("T", [], {}, table, [], address="http://localhost:8501/lengths?a=1&b=2")
    assert "word " * 49 in text and "<td>0.000123</td>" in text and "<td>12,345</td>" in text and "<pre>" not in text
    assert '<a href="http://localhost:8501/lengths?a=1&amp;b=2">' in text


def test_a_report_in_markdown_takes_nothing_for_markup():
    table = pd.DataFrame({"a|b": ["1. *x*\n|", None, "88.0% (n 3)"], "n": [1.5, None, -3.0]})
    text = report.markdown(
        "# T", ["- a <b>", "12. c", "-0.5 points"], table, ["$x$ [y](z)"], "python -m core", "http://h/x?a=1"
    )
    assert text == (
        "# # T\n\n\\- a \\<b\\>\n\n12\\. c\n\n-0.5 points\n\n"
        "| a\\|b | n |\n| --- | ---: |\n| 1. \\*x\\* \\| | 1.50 |\n| n/a | n/a |\n| 88.0% (n 3) | -3.00 |\n\n"
        "\\$x\\$ \\[y\\](z)\n\n<http://h/x?a=1>\n\n    python -m core\n"
    )
