"""Parquet, CSV and JSON answers: one file per step in a local directory, each answer exactly once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from windrow.errors import SinkError
from windrow.pipeline.sink import Sink, SinkSpec, writing
from windrow.pipeline.sink_directory import AnswerDirectory
from windrow.pipeline.sink_text import csv_lines, interval_text, json_lines

FILE_FORMATS = ("parquet", "csv", "json")
COMPRESSIONS = ("zstd", "snappy", "none")
"""Of Parquet; the first is the default."""


class FileSink(Sink):
    """Writes `part-<step>.<format>`; a step whose file exists was published before and is not written again."""

    exactly_once = True
    independent = True

    def __init__(self, spec: SinkSpec, path: Path, query: str, schema: pa.Schema, *, fresh: bool) -> None:
        self.location = str(path)
        self._query = query
        self._schema = schema
        self._format = spec.format
        self._encode = encoder(spec)
        self._directory = AnswerDirectory(path, query, fresh=fresh)

    def write(self, step: int, table: pa.Table) -> None:
        """Publish the answers of a step as one file; no answers, no file."""
        if not table.num_rows:
            return
        with writing(self._query, self.location):
            answers = table if table.schema.equals(self._schema) else table.cast(self._schema)
            self._directory.publish(f"part-{step:012d}.{self._format}", lambda file: self._encode(answers, file))

    def close(self) -> None:
        """Release the directory."""
        self._directory.close()


def encoder(spec: SinkSpec) -> Callable[[pa.Table, BinaryIO], None]:
    """The function that writes a table in this format."""
    if spec.format == "parquet":
        compression = (spec.option("compression") or COMPRESSIONS[0]).lower()
        return lambda table, file: pq.write_table(storable(table), file, compression=compression)
    lines = csv_lines if spec.format == "csv" else json_lines

    def encode(table: pa.Table, file: BinaryIO) -> None:
        for piece in lines(table):
            file.write(piece)

    return encode


def check_compression(spec: SinkSpec) -> None:
    """Refuse a compression that not every reader of Parquet knows."""
    compression = spec.option("compression")
    if compression is not None and compression.lower() not in COMPRESSIONS:
        raise SinkError(f"compression of parquet is one of {', '.join(COMPRESSIONS)}, not {compression!r}")


def storable(table: pa.Table, timestamp: pa.DataType | None = None) -> pa.Table:
    """The table with types that Parquet, Spark and other readers share.

    INTERVAL becomes text, a column of bare NULLs INTEGER (as in DuckDB), dictionaries their values, and timestamps
    microseconds: without zone, or of the type that is given.
    """
    columns = [_storable(column, timestamp or pa.timestamp("us")) for column in table.columns]
    return pa.table(columns, names=table.column_names)


def _storable(column: pa.ChunkedArray, timestamp: pa.DataType) -> Any:
    kind = column.type
    if pa.types.is_interval(kind):
        return pa.chunked_array([interval_text(chunk) for chunk in column.chunks], pa.large_string()).cast(pa.string())
    if pa.types.is_null(kind):
        return column.cast(pa.int32())
    if pa.types.is_dictionary(kind):
        return column.cast(kind.value_type)
    return column.cast(timestamp) if pa.types.is_timestamp(kind) else column
