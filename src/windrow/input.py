"""Pushed data held to the stream's declaration: nothing is taken in unless everything fits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow.errors import BindError, InputError
from windrow.language import types
from windrow.language.catalog import Stream


def conform(stream: Stream, data: Any) -> pa.Table:
    """The batch as a table with exactly the declared columns, in their order and types."""
    table = _as_table(stream, data)
    declared = {column.name: column for column in stream.columns}
    found = table.schema.names
    doubled = sorted({name for name in found if found.count(name) > 1})
    missing = [name for name in declared if name not in found]
    extra = [name for name in found if name not in declared]
    if doubled or missing or extra:
        faults = [
            f"{fault} {', '.join(names)}"
            for fault, names in (("twice there is", doubled), ("missing is", missing), ("not declared is", extra))
            if names
        ]
        raise InputError(
            f"the columns do not fit stream {stream.name}: {'; '.join(faults)}. "
            f"Expected {', '.join(declared)}; found {', '.join(found) or 'none'}. Nothing was taken in."
        )
    columns = [_column(stream, table.column(name), name) for name in declared]
    return pa.table(columns, schema=stream.schema)


def timestamps(stream: Stream, table: pa.Table) -> NDArray[np.int64]:
    """The time column as int64 ticks; a NULL in it is an InputError."""
    column = table.column(stream.time)
    if column.null_count:
        where = column.is_null().to_numpy(zero_copy_only=False).argmax()
        raise InputError(
            f"the time column {stream.time} of stream {stream.name} has {column.null_count} NULLs, the first in row "
            f"{where}; a tuple without a time cannot be placed in a window. Nothing was taken in."
        )
    chunks = [chunk.view(pa.int64()).to_numpy() for chunk in column.chunks]
    if len(chunks) == 1:
        return np.asarray(chunks[0])
    return np.concatenate(chunks) if chunks else np.empty(0, np.int64)


def _as_table(stream: Stream, data: Any) -> pa.Table:
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        try:
            return pa.table(data)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise InputError(
                f"stream {stream.name}: expected a table, found {type(data).__name__}, which is none ({error}); "
                "use pa.table({…}). Nothing was taken in."
            ) from None
    raise InputError(
        f"stream {stream.name} takes a pyarrow Table or RecordBatch (or a DataFrame that exports Arrow), "
        f"found {type(data).__name__}; use pa.table({{…}})"
    )


def _column(stream: Stream, column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    declared = stream.column(name).type
    wanted = stream.schema.field(name).type
    try:
        column.validate(full=types.is_text(declared))  # finds text that is no UTF-8, for 5 ns a row
    except pa.ArrowInvalid as error:
        raise InputError(
            f"column {name} of stream {stream.name} is not valid Arrow data: {error}; for bytes that are no text, "
            "declare a BLOB. Nothing was taken in."
        ) from None
    if column.type == wanted:
        return column
    try:
        # Only widening: an int32 fits a BIGINT, a double does not fit an INTEGER.
        fits = types.common_type(types.from_arrow(column.type), declared) == declared
    except BindError:
        fits = False
    if not fits:
        raise InputError(
            f"column {name} of stream {stream.name} must be {types.type_name(declared)} (Arrow {wanted}), "
            f"found Arrow {column.type}; cast it before pushing. Nothing was taken in."
        )
    try:
        return _without_zone(column).cast(wanted)
    except pa.ArrowException as error:
        raise InputError(
            f"column {name} of stream {stream.name} does not fit {types.type_name(declared)}: {error}. "
            "Nothing was taken in."
        ) from None


def _without_zone(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        return column.cast(pa.timestamp(column.type.unit))  # UTC wall time, as from_arrow made sure
    return column
