"""Parquet files, which a few bytes can blow up to many: how large one is, known before its cells are unpacked."""

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

ROOT = Path(__file__).parents[2]
# the last ones are what pandas stumbles over in what other programs, or damage, left of its notes on a table
_REFUSALS = (pa.ArrowException, OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError)
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT96": 12}  # bytes of a cell; 8 for the others, which of texts is the place


def read(content: bytes) -> pd.DataFrame:
    """The table of a file. ValueError if it is none."""
    try:
        return pd.read_parquet(io.BytesIO(content))
    except _REFUSALS as error:
        raise ValueError(_unreadable(error)) from error


def unpacked_bytes_apart(content: bytes, most: int) -> int:
    """`unpacked_bytes` as found by another process, since a damaged file can make PyArrow end the one that reads it."""
    command = [sys.executable, "-m", "core.data.parquet", str(most)]
    done = subprocess.run(command, input=content, capture_output=True, cwd=ROOT)
    if done.returncode < 0:
        raise ValueError(_unreadable("it is damaged"))
    if done.returncode:
        raise ValueError(done.stderr.decode(errors="replace").strip())
    return int(done.stdout)


def unpacked_bytes(content: bytes, most: int) -> int:
    """Bytes of all cells: of what the metadata says, if that is over `most` already, else with every text repeated as often
    as its column repeats it. Neither takes more memory than `most`. ValueError if the file is none of this format."""
    try:
        by_metadata = sum(map(_cells, _chunks(pq.ParquetFile(io.BytesIO(content)).metadata)))
        if by_metadata > most:
            return by_metadata
        return by_metadata + _repeated_texts(content)
    except _REFUSALS as error:
        raise ValueError(_unreadable(error)) from error


def _chunks(metadata: pq.FileMetaData) -> Iterator[pq.ColumnChunkMetaData]:
    for group in range(metadata.num_row_groups):
        yield from (metadata.row_group(group).column(i) for i in range(metadata.num_columns))


def _cells(chunk: pq.ColumnChunkMetaData) -> int:
    """At least so many bytes: a run of one value is stored as one, and counts here as all of its cells."""
    return max(chunk.total_uncompressed_size, chunk.num_values * _WIDTHS.get(chunk.physical_type, 8))


def _repeated_texts(content: bytes) -> int:
    """Bytes of the texts that were stored once for many cells: read as they are stored, and counted without being repeated."""
    metadata = pq.ParquetFile(io.BytesIO(content)).metadata
    texts = sorted({chunk.path_in_schema for chunk in _chunks(metadata) if chunk.physical_type == "BYTE_ARRAY"})
    table = pq.ParquetFile(io.BytesIO(content), read_dictionary=texts).read()
    return sum(_text_bytes(chunk) for column in table.columns for chunk in column.chunks)


def _text_bytes(array: pa.Array) -> int:
    if pa.types.is_dictionary(array.type):
        lengths = pc.call_function("binary_length", [array.dictionary])
        return int(np.nansum(lengths.take(array.indices).to_numpy(zero_copy_only=False)))
    if pa.types.is_map(array.type):
        return _text_bytes(array.keys) + _text_bytes(array.items)
    if pa.types.is_nested(array.type):
        return sum(map(_text_bytes, array.flatten() if pa.types.is_struct(array.type) else [array.flatten()]))
    return 0


def _unreadable(error: Exception | str) -> str:
    return f"this is no readable Parquet file: {' '.join(str(error).split()).rstrip('.')}"


if __name__ == "__main__":
    try:
        print(unpacked_bytes(sys.stdin.buffer.read(), int(sys.argv[1])), flush=True)
    except ValueError as refusal:
        print(refusal, file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)  # at a usual end PyArrow's threads, which may be at work still, can abort the process
