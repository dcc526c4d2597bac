"""Recorded results: written, read back, shown, and passed over where they are damaged."""

import json
import re
from dataclasses import asdict, replace

import pytest

from core.recorded import Column, Recorded, Table, file_name, markdown, read, read_file, shown, write

TABLE = Table(
    name="inference",
    caption="Median of five.",
    columns=(Column(name="backend"), Column(name="time", unit="ms"), Column(name="runs")),
    rows=(("eager", 12.3456, 5), ("sdpa", None, 1234)),
)
RECORDED = Recorded(
    title="Speed", hardware="AMD EPYC, 1 of 2 cores", date="2026-11-30", command="python -m x", versions=("torch 2",),
    tables=(TABLE,), seed=3, notes=("Others used the machine.",),
)  # fmt: skip


def test_what_is_written_is_read(tmp_path):
    write(RECORDED, tmp_path / "RESULTS_v1.2_x")
    assert read(tmp_path) == [RECORDED]
    assert (tmp_path / "RESULTS_v1.2_x.md").read_text() == markdown(RECORDED)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["RESULTS_v1.2_x.json", "RESULTS_v1.2_x.md"]


def test_the_newest_comes_first(tmp_path):
    for day in ("2026-11-29", "2027-01-02", "2026-12-24"):
        write(replace(RECORDED, date=day), tmp_path / f"RESULTS_{day}")
    assert [recorded.date for recorded in read(tmp_path)] == ["2027-01-02", "2026-12-24", "2026-11-29"]


def test_as_markdown():
    assert markdown(RECORDED) == (
        "# Speed\n\n`python -m x`, 2026-11-30. AMD EPYC, 1 of 2 cores; torch 2. Seed 3.\n\nOthers used the machine.\n\n"
        "## inference\n\nMedian of five.\n\n"
        "| backend | time, ms | runs |\n| --- | ---: | ---: |\n| eager | 12.3 | 5 |\n| sdpa | - | 1,234 |\n"
    )


@pytest.mark.parametrize("value, text", [
    (None, "-"), ("a", "a"), (20_000, "20,000"), (0.0, "0.00"), (0.05817, "0.0582"), (2.0, "2.00"), (99.94, "99.9"),
    (1234.5, "1,234"),
])  # fmt: skip
def test_values_have_three_digits_that_count(value, text):
    assert shown(value) == text


def test_a_bar_in_a_value_makes_no_column():
    table = replace(TABLE, rows=(("a|b", 1.0, 1),))
    assert "| a/b | 1.00 | 1 |" in markdown(replace(RECORDED, tables=(table,)))


def test_the_name_of_the_file_has_hardware_and_date():
    assert file_name(RECORDED) == "RESULTS_AMD-EPYC_2026-11-30"
    assert file_name(replace(RECORDED, hardware="../x y(R)"), "attention") == "RESULTS_attention_x-y-R_2026-11-30"


def test_tables_and_columns_are_found_by_name():
    assert RECORDED.table("inference").column("time") == [12.3456, None]
    with pytest.raises(ValueError, match="got table 'x', expected one of inference"):
        RECORDED.table("x")
    with pytest.raises(ValueError, match="got column 'x', expected one of backend, time, runs"):
        TABLE.column("x")


def test_a_table_takes_the_place_of_the_one_of_its_name():
    other, newer = replace(TABLE, name="other"), replace(TABLE, caption="Newer.")
    assert RECORDED.with_table(other).with_table(newer).tables == (newer, other)


VALUES = json.loads(json.dumps(asdict(RECORDED)))


@pytest.mark.parametrize("values", [
    [], None, 3, "text", {}, VALUES | {"title": 3}, VALUES | {"date": "yesterday"}, VALUES | {"tables": None},
    VALUES | {"tables": [3]}, VALUES | {"tables": [{}]}, VALUES | {"unknown": 1}, VALUES | {"versions": 3},
    VALUES | {"seed": 1.5},
    VALUES | {"tables": [VALUES["tables"][0] | {"rows": [[1]]}]}, VALUES | {"tables": [VALUES["tables"][0] | {"rows": [3]}]},
    VALUES | {"tables": [VALUES["tables"][0] | {"rows": [[[], 1, 1]]}]},
    VALUES | {"tables": [VALUES["tables"][0] | {"columns": [{"name": "a", "unit": None}]}]},
])  # fmt: skip
def test_what_is_no_result_is_passed_over_with_a_note(tmp_path, values):
    write(RECORDED, tmp_path / "RESULTS_good")
    (tmp_path / "RESULTS_bad.json").write_text(json.dumps(values))
    notes = []
    assert read(tmp_path, notes.append) == [RECORDED]
    (note,) = notes
    assert note.startswith("RESULTS_bad.json is passed over: ") and "Error" not in note
    assert note.endswith("; write it again by its benchmark, or take it away")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"date": "yesterday"}, "date: got 'yesterday', expected a day, as in 2026-11-30"),
        ({"tables": [VALUES["tables"][0] | {"rows": [[1]]}]}, "table inference: got a row of 1 values, expected 3"),
        ({"tables": 3}, "it holds something else than results of this lab"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path, change, told):
    (tmp_path / "RESULTS_bad.json").write_text(json.dumps(VALUES | change))
    with pytest.raises(ValueError, match=f"^{re.escape(told)}; write it again"):
        read_file(tmp_path / "RESULTS_bad.json")


def test_where_a_file_is_cut_off_is_said(tmp_path):
    write(RECORDED, tmp_path / "RESULTS_x")
    lines = (tmp_path / "RESULTS_x.json").read_text().splitlines()
    (tmp_path / "RESULTS_x.json").write_text("\n".join(lines[:7]))
    with pytest.raises(ValueError, match="^it is cut off or was changed by hand, in line 7; write it again"):
        read_file(tmp_path / "RESULTS_x.json")


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\xfe\x00", b"[" * 100_000, json.dumps(VALUES).replace("12.3456", "NaN").encode()]
)
def test_what_is_no_json_is_passed_over_with_a_note(tmp_path, content):
    (tmp_path / "RESULTS_bad.json").write_bytes(content)
    notes = []
    assert read(tmp_path, notes.append) == [] and len(notes) == 1


def test_other_files_and_a_missing_folder_are_nothing(tmp_path, caplog):
    (tmp_path / "other.json").write_text("{")
    (tmp_path / "RESULTS_folder.json").mkdir()
    assert read(tmp_path) == [] and "RESULTS_folder.json is passed over" in caplog.text
    assert read(tmp_path / "missing") == []
    with pytest.raises(ValueError, match=r"^it cannot be read \(No such file or directory\)"):
        read_file(tmp_path / "missing.json")
