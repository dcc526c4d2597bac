import base64
import io
import json
import tracemalloc

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.data import parquet, table
from core.data.parquet import unpacked_bytes

N = 3000


def write(columns: dict[str, pa.Array], **how) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer, **{"compression": "zstd"} | how)
    return buffer.getvalue()


BOMBS = {
    "plain": write({"text": pa.array(["x" * 100_000] * N)}, use_dictionary=False),
    "dictionary": write({"text": pa.array(["x" * 100_000] * N)}),
    "binary": write({"text": pa.array([b"x" * 100_000] * N)}),
    "list": write({"text": pa.array([["x" * 100_000]] * N)}),
    "struct": write({"text": pa.array([{"a": ["x" * 100_000], "b": 1}] * N)}),
    "groups": write({"text": pa.array(["x" * 100_000] * N)}, row_group_size=500),
    "numbers": write({"n": pa.array([7] * 40_000_000, pa.int64())}),
}


@pytest.mark.parametrize("kind", BOMBS)
def test_a_file_that_would_blow_up_is_refused_unread(kind, monkeypatch):
    content = BOMBS[kind]
    assert len(content) < 300_000
    monkeypatch.setattr(table, "MAX_UNPACKED_BYTES", 200_000_000)
    monkeypatch.setattr(parquet, "read", lambda _: pytest.fail("unpacked before it was refused"))
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"a.parquet: got 3\d\d.\d MB once it is unpacked, expected at most 200 MB"):
        table.read_upload("a.parquet", content)
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()
    assert pa.total_allocated_bytes() - before < 20_000_000


def test_what_is_counted_are_the_texts_once_for_each_cell():
    """1,000 cells of 26 characters, and of a Greek letter, which are two bytes; a place of 8 bytes for each cell."""
    content = write({"a": pa.array(["abcdefghijklmnopqrstuvwxyz"] * 1000), "b": pa.array(["α"] * 999 + [None])})
    assert unpacked_bytes(content, 10**9) == 26_000 + 2 * 999 + 2 * 8_000


def test_a_large_honest_file_is_read():
    frame = pd.DataFrame({"text": [f"review {i} " * 20 for i in range(10_000)], "label": [i % 2 for i in range(10_000)]})
    content = frame.to_parquet()
    pd.testing.assert_frame_equal(table.read_upload("a.parquet", content).frame, frame)
    texts = int(frame["text"].str.len().sum())
    assert texts < unpacked_bytes(content, 10**9) < 2.5 * texts


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1 and more PAR1", BOMBS["plain"][:-9]])
def test_what_is_no_parquet_file_is_a_sentence(content):
    with pytest.raises(ValueError, match="^a.parquet: this is no readable Parquet file: ") as caught:
        table.read_upload("a.parquet", content)
    assert "\n" not in str(caught.value) and not str(caught.value).endswith(".")


NOTES = {
    "no columns": {},
    "list": [],
    "index": {"index_columns": ["gone"], "columns": [], "column_indexes": []},
    "numbers": {"index_columns": 5, "columns": 3, "column_indexes": 1},
    "type": {"index_columns": [], "columns": [{"name": "text", "field_name": "text", "pandas_type": "x", "numpy_type": "x"}],
             "column_indexes": []},
}  # fmt: skip


@pytest.mark.parametrize(
    "notes", [json.dumps(notes).encode() for notes in NOTES.values()] + [b"[" * 50_000], ids=[*NOTES, "deep"]
)
def test_damaged_notes_of_pandas_are_a_sentence(notes):
    found = pa.table({"text": ["good", "bad"]}).replace_schema_metadata({b"pandas": notes})
    buffer = io.BytesIO()
    pq.write_table(found, buffer)
    with pytest.raises(ValueError, match="^a.parquet: this is no readable Parquet file: "):
        table.read_upload("a.parquet", buffer.getvalue())


def test_a_file_that_would_end_the_process_is_a_sentence():
    """One byte of a table of one cell is another one, and PyArrow 26 throws in C++ where nothing catches it."""
    content = base64.b85decode(
        "P(e~L6#x|$6&5TN0u=xi1{DSz00002000020RaF20AUpb87wsb7zT4=Xk~3-6#@Vi3?>2?1axJ1bR_^x8~^|S76KU@85|}692E>1B?bT)7zA`>cytv2"
        "76KML7Ca^hNgNdb6#x|i06Z1~83q|900IC202VwJ0wxF+JOC&laA9(Bb!BudV{mXSVRCYBcOZ6Ua&u{KZXhx?E-)@J85|q{004*p002-yQZW"
    )
    with pytest.raises(ValueError, match="^a.parquet: this is no readable Parquet file: "):
        table.read_upload("a.parquet", content)


def test_a_column_of_maps_is_read_as_any_other():
    kinds = pa.array([[("stars", "five")], []], pa.map_(pa.string(), pa.string()))
    content = write({"text": pa.array(["good", "bad"]), "more": kinds})
    assert table.read_upload("a.parquet", content).frame["text"].tolist() == ["good", "bad"]
    assert unpacked_bytes(content, 10**9) > len("goodbadstarsfive")


def test_the_command_line_reads_files_of_any_size(tmp_path, monkeypatch):
    monkeypatch.setattr(table, "MAX_UNPACKED_BYTES", 10)
    path = tmp_path / "a.parquet"
    path.write_bytes(write({"text": pa.array(["good", "bad"])}))
    assert len(table.open_table(path).frame) == 2
