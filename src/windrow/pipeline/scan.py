"""The arrow scan, in the Python worker: Spark hands out file names, PyArrow reads the files. No Spark here.

Every file is held to the declaration, with all its columns, also those that no query reads: a change of the schema
in the middle of a stream is found at once, whatever the queries are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from sqlglot import exp

from windrow.errors import BindError, InputError
from windrow.language import types
from windrow.language.catalog import Column, Stream

PIECE_ROWS = 1 << 20
"""Rows per piece: so many that the cost of a piece is small, so few that a worker's memory is."""
_REMOTE = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)/(.*)", re.DOTALL)
_HADOOP_ONLY = {"s3a": "s3", "s3n": "s3"}

Piece: TypeAlias = "pa.Table | pa.RecordBatch"


def read_file(path: str, stream: Stream, columns: Sequence[str]) -> Iterator[pa.Table]:
    """The file in pieces of about a million rows: the named columns, in declared order and exactly declared types."""
    wanted = [column for column in stream.columns if column.name in set(columns)]
    with _reading(path, stream):
        try:
            file = _open(path)
        except FileNotFoundError:
            if _may_be_gone(stream):
                return
            raise
        schema = file.schema_arrow
    with file:
        found = file_columns(path, stream, schema)
        names = [found[column.name] for column in wanted]
        pieces = _pieces(file, names)
        while True:
            with _reading(path, stream):
                piece = next(pieces, None)
            if piece is None:
                return
            yield fit_columns(piece, wanted, f"{_shown(path)}, a file of stream {stream.name}", names)


def fit(batch: Piece, stream: Stream, columns: Sequence[str]) -> pa.Table:
    """What Spark hands to a worker on the row path, held to the declaration in the same way."""
    wanted = [column for column in stream.columns if column.name in set(columns)]
    return fit_columns(batch, wanted, f"the source of stream {stream.name}")


def file_schema(path: str) -> pa.Schema:
    """The Arrow schema of a Parquet file; raises what PyArrow raises."""
    with _open(path) as file:
        return file.schema_arrow


def file_columns(path: str, stream: Stream, schema: pa.Schema) -> dict[str, str]:
    """Which column of the file each declared column is; an InputError names the first that is not there or not fit."""
    found: dict[str, str] = {}
    for column in stream.columns:
        name = _required_name(path, stream, schema, column)
        if not fits(schema.field(name).type, column.type):
            raise InputError(
                f"column {column.name} of stream {stream.name} must be {types.type_name(column.type)} (Arrow "
                f"{types.to_arrow(column.type)}), the file {_shown(path)} has {schema.field(name).type}; {_REPLACE}"
            )
        found[column.name] = name
    return found


def require_columns(path: str, stream: Stream, columns: Sequence[Column]) -> None:
    """For the row path, where Spark does not miss a column: the file can be read and has these columns."""
    with _reading(path, stream):
        schema = file_schema(path)
    for column in columns:
        _required_name(path, stream, schema, column)


def _required_name(path: str, stream: Stream, schema: pa.Schema, column: Column) -> str:
    name = _name_in(schema.names, column.name)
    if name is None:
        listed = ", ".join(schema.names) or "no columns"
        raise InputError(
            f"column {column.name} of stream {stream.name} is not in the file {_shown(path)}, which has {listed}; "
            f"{_REPLACE}"
        )
    return name


_REPLACE = "replace the file, or declare the stream as its files are"


def fits(found: pa.DataType, declared: exp.DataType) -> bool:
    """Only widening: an int32 fits a BIGINT, a double does not fit an INTEGER. A zone is fine: Arrow keeps UTC."""
    try:
        return types.common_type(types.from_arrow(_without_zone(found)), declared) == declared
    except BindError:
        return False


def _name_in(names: Sequence[str], declared: str) -> str | None:
    """Names are case-insensitive, as in Spark; an exact match goes first."""
    if names.count(declared) == 1:
        return declared
    same = [name for name in names if name.lower() == declared.lower()]
    return same[0] if len(same) == 1 else None


def _pieces(file: pq.ParquetFile, names: Sequence[str]) -> Iterator[Piece]:
    """Small row groups are read together, big ones are cut."""
    # PySpark tells its workers by OMP_NUM_THREADS how many cores are theirs; Arrow follows it.
    threads = pa.cpu_count() > 1
    together: list[int] = []
    rows = 0
    for group in range(file.num_row_groups):
        size = file.metadata.row_group(group).num_rows
        if together and rows + size > PIECE_ROWS:
            yield file.read_row_groups(together, columns=names, use_threads=threads)
            together, rows = [], 0
        if size > 2 * PIECE_ROWS:
            yield from file.iter_batches(PIECE_ROWS, row_groups=[group], columns=names, use_threads=threads)
        else:
            together.append(group)
            rows += size
    if together:
        yield file.read_row_groups(together, columns=names, use_threads=threads)


def fit_columns(piece: Piece, columns: Sequence[Column], where: str, names: Sequence[str] | None = None) -> pa.Table:
    """The columns in exactly their types; they may have other `names` in the piece, and `where` tells messages."""
    table = pa.Table.from_batches([piece]) if isinstance(piece, pa.RecordBatch) else piece
    found = names if names is not None else [column.name for column in columns]
    arrays = [_fit_column(table.column(name), column, where) for column, name in zip(columns, found, strict=True)]
    return pa.table(arrays, schema=pa.schema([(column.name, types.to_arrow(column.type)) for column in columns]))


def _fit_column(values: pa.ChunkedArray, column: Column, where: str) -> pa.ChunkedArray:
    wanted = types.to_arrow(column.type)
    try:
        if types.is_text(column.type):
            values.validate(full=True)  # PyArrow takes bytes that are no UTF-8 for text
        return values if values.type == wanted else values.cast(_without_zone(values.type)).cast(wanted)
    except pa.ArrowException as error:
        raise InputError(
            f"column {column.name} of {where} does not fit {types.type_name(column.type)}: {_line(error)}; "
            "convert it before it is read"
        ) from None


def _without_zone(found: pa.DataType) -> pa.DataType:
    """A timestamp with a zone is the same instant in UTC without it: Arrow's cast keeps the number."""
    return pa.timestamp(found.unit) if pa.types.is_timestamp(found) else found


# ---- where the file is ---------------------------------------------------------------------------------------------


def _open(path: str) -> pq.ParquetFile:
    local = local_path(path)
    if local is not None:
        source: object = local
    else:
        filesystem, inner = remote_path(path)
        source = filesystem.open_input_file(inner)
    # No memory map: a file that is cut short meanwhile would kill the process instead of raising an error.
    # INT96, Spark's old timestamps, in nanoseconds would end in 2262.
    return pq.ParquetFile(
        source, pre_buffer=local is None, page_checksum_verification=True, coerce_int96_timestamp_unit="us"
    )


def local_path(path: str) -> str | None:
    """The file of this machine behind a plain path or a file: URI, None for other URIs.

    Spark's binaryFile source writes paths as they are, other places of Spark percent-encode them.
    """
    if path.startswith("file:"):
        path = re.sub(r"^//[^/]*", "", path.removeprefix("file:"))
    elif _REMOTE.fullmatch(path):
        return None
    return path if Path(path).exists() or not Path(unquote(path)).exists() else unquote(path)


def remote_path(path: str) -> tuple[pafs.FileSystem, str]:
    """PyArrow's file system for a URI, and the path in it; raises what PyArrow raises when it knows none."""
    match = _REMOTE.fullmatch(path)
    assert match is not None
    scheme, authority, inner = match.groups()
    # The path itself stays out of the URI: Hadoop does not encode it.
    filesystem, base = pafs.FileSystem.from_uri(f"{_HADOOP_ONLY.get(scheme, scheme)}://{authority}")
    return filesystem, f"{base.rstrip('/')}/{inner}"


def _may_be_gone(stream: Stream) -> bool:
    options = {name.lower(): value.lower() for name, value in stream.options.items()}
    return options.get("ignoremissingfiles") == "true"


@contextmanager
def _reading(path: str, stream: Stream) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise missing_file(path, f"stream {stream.name}") from None
    except PermissionError:
        raise InputError(
            f"{_shown(path)}, a file of stream {stream.name}, may not be read by this user; give the right to read "
            "it and start again"
        ) from None
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"{_shown(path)}, a file of stream {stream.name}, cannot be read as Parquet: {_line(error)}; "
            "replace it and start again"
        ) from None


def missing_file(path: str, owner: str) -> InputError:
    """The error of a file that Spark has seen and that is not there any more; `owner` is as in "stream s"."""
    return InputError(
        f"{_shown(path)}, a file of {owner}, is gone; put it back, or set OPTIONS (ignoreMissingFiles 'true') to go on "
        "without it, and start again"
    )


def _shown(path: str) -> str:
    return local_path(path) or path


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300].rstrip(".")
