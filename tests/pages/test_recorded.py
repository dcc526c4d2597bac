"""Recorded results on the page: all of benchmarks/, and what of a file is not to be believed."""

import pytest

from core import recorded
from core.recorded import Column, Recorded, Table
from ui import recorded as shown

MARKUP = "<b>x</b> $y$"
RESULT = Recorded(
    title=MARKUP, hardware="A card", date="2026-01-02", command="python -m benchmarks.x", versions=("torch 2.13.0",), seed=3,
    notes=(f"A note of {MARKUP}",),
    tables=(Table(name="speed", caption="As measured.", columns=(Column(name="batch"), Column(name="time", unit="ms")),
                  rows=((1, 1.23456), (16, None))),),
)  # fmt: skip


def words(page) -> str:
    kinds = (page.markdown, page.caption, page.warning, page.info)
    return " ".join(element.value for kind in kinds for element in kind).replace("\\", "")


@pytest.fixture
def page(first_page, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "runs"))
    page = first_page.run().switch_page("../pages/memory.py")
    page.query_params["memory_tab"] = "Recorded"
    return page


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(shown, "FOLDER", tmp_path)
    return tmp_path


def test_what_was_recorded_stands_with_its_hardware_date_and_command(page, folder):
    recorded.write(RESULT, folder / "RESULTS_x")
    page.run()
    assert not page.exception
    assert "Recorded on A card, 2026-01-02, with torch 2.13.0, seed 3." in words(page)
    assert f"A note of {MARKUP}" in words(page) and "As measured." in words(page)
    frame = page.dataframe[0].value
    assert list(frame.columns) == ["batch", "time, ms"] and frame["time, ms"].tolist() == ["1.23", "-"]
    assert "python -m benchmarks.x" in [code.value for code in page.code]


def test_a_damaged_file_is_passed_over_in_a_sentence(page, folder):
    recorded.write(RESULT, folder / "RESULTS_x")
    (folder / "RESULTS_y.json").write_text("{")
    page.run()
    assert not page.exception
    assert "RESULTS_y.json is passed over" in words(page) and page.dataframe


def test_an_empty_folder_says_so(page, folder):
    assert "Nothing is recorded" in words(page.run()) and not page.exception


def test_every_result_of_the_lab_can_be_shown():
    told: list[str] = []
    found = recorded.read(shown.FOLDER, told.append)
    assert found and not told
    assert all(len(shown.frame(table).columns) for one in found for table in one.tables)
