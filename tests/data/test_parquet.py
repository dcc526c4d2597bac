import io
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
    assert "\n" not in str(caught.value)


def test_the_command_line_reads_files_of_any_size(tmp_path, monkeypatch):
    monkeypatch.setattr(table, "MAX_UNPACKED_BYTES", 10)
    path = tmp_path / "a.parquet"
    path.write_bytes(write({"text": pa.array(["good", "bad"])}))
    assert len(table.open_table(path).frame) == 2
