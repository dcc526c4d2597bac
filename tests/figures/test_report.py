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
