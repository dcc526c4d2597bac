import json

import numpy as np
import pandas as pd
import pytest

from core.evaluation.writing import csv_for_excel, inert, rendered


@pytest.mark.parametrize("text", ["=1+1", "@SUM(A1)", "+cmd", "-2+3", "\t=1", "\r=1", "=", "-", "- a good film", "+44 1"])
def test_what_a_spreadsheet_would_calculate_gets_an_apostrophe(text):
    assert inert([text]) == [f"'{text}"]


@pytest.mark.parametrize("text", ["-1", "+1", "-1.5", "good", "", None, "'=1", " =1", "a=b", "1-2", "评论", "٣"])
def test_other_texts_stay_as_they_are(text):
    assert inert([text]) == [text]


def test_the_mark_for_excel_comes_first_and_the_rest_is_the_table():
    frame = pd.DataFrame({"text": ["bad", "这部\nline"], "n": [1, None]})
    content = csv_for_excel(frame)
    assert content == '\ufefftext,n\r\nbad,1.0\r\n"这部\nline",\r\n'.encode()


def test_json_lines_keep_types_and_say_null_for_nothing():
    frame = pd.DataFrame({"text": ["a/b \u2028", None], "n": [0.1, np.nan], "list": [[1, "x"], None], "p": [1 / 3, 1e-12]})
    rows = [json.loads(line) for line in rendered(frame, ".jsonl").decode().split("\n") if line]
    assert rows[0] == {"text": "a/b \u2028", "n": 0.1, "list": [1, "x"], "p": pytest.approx(1 / 3, abs=1e-15)}
    assert rows[1] == {"text": None, "n": None, "list": None, "p": pytest.approx(1e-12, abs=1e-15)}
