"""Answers as text: JSON Lines and CSV, exact and without a Python loop per row.

Every column becomes a column of text with Arrow's kernels, then the columns are joined row by row, and the bytes of
the joined column are the bytes of the file. How values are written:

| type               | JSON                                   | CSV                        |
|--------------------|----------------------------------------|----------------------------|
| NULL               | null                                   | nothing between the commas |
| integers           | number, all digits                     | the same                   |
| FLOAT, DOUBLE      | shortest number that reads back equal  | the same                   |
| NaN, ±Infinity     | "NaN", "Infinity", "-Infinity"         | the same, no quotes        |
| DECIMAL            | string: "12.50" (a number would be     | number                     |
|                    | rounded to a double by most readers)   |                            |
| VARCHAR            | string                                 | always in quotes           |
| TIMESTAMP          | "2026-01-31T12:00:00.000001"           | 2026-01-31 12:00:00.000001 |
| DATE               | "2026-01-31"                           | 2026-01-31                 |
| BLOB               | string, base64                         | base64, always in quotes   |
| INTERVAL           | "14 months 3 days 7 microseconds"      | the same                   |
| lists, structs     | arrays, objects                        | their JSON, in quotes      |

An empty VARCHAR is "" in CSV, which is not NULL. Some readers have to be told: `allow_quoted_nulls=false` in DuckDB;
in Spark `nullValue` with a word that does not occur, and `escape='"'` and `multiLine=true` for texts with quotes and
line ends.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

TEXT = pa.large_string()  # offsets of 64 bits: a joined column may be longer than 2 GiB
ROWS_AT_ONCE = 65_536
"""Rows that are joined together: enough to forget the overhead, few enough to stay in the caches."""
CYCLE_DAYS = 146_097
"""The calendar repeats every 400 years."""
MICROSECONDS_OF_DAY = 86_400_000_000
JSON_ESCAPES = {"\\": "\\\\", '"': '\\"'} | {chr(code): json.dumps(chr(code))[1:-1] for code in range(32)}
INTERVAL_PARTS = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanoseconds", "<i8")])


def json_lines(table: pa.Table) -> Iterator[memoryview]:
    """One JSON object per line and row, with a key per column; in pieces."""
    return (_bytes(objects) for objects in _json_objects(table, "}\n"))


def csv_lines(table: pa.Table) -> Iterator[memoryview]:
    """A header, then one line per row (RFC 4180, with LF); in pieces."""
    header = ",".join('"' + name.replace('"', '""') + '"' for name in table.column_names)
    yield memoryview(f"{header}\n".encode())
    for columns in _pieces(table, csv_column):
        parts = [part for column in columns for part in (column, ",")][:-1]
        yield _bytes(pc.binary_join_element_wise(*map(_text, parts), _text("\n"), _text("")))


def json_objects(table: pa.Table) -> pa.ChunkedArray:
    """The same JSON objects as a column of text."""
    return pa.chunked_array(list(_json_objects(table, "}")), TEXT)


def json_column(array: pa.Array) -> pa.Array:
    """The JSON of every value."""
    array, kind = _decoded(array), array.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        found = _json_list(array)
    elif pa.types.is_struct(kind):
        found = _json_struct(array)
    else:
        found = plain_column(array)
        if _is_text(kind):
            found = _quoted(_escaped(found))
        elif pa.types.is_timestamp(kind):
            found = _quoted(pc.replace_substring(found, " ", "T", max_replacements=1))
        elif pa.types.is_floating(kind):
            found = pc.if_else(pc.is_finite(array), found, _quoted(found))
        elif not (pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
            found = _quoted(found)
    return pc.fill_null(found, "null")


def csv_column(array: pa.Array) -> pa.Array:
    """The CSV of every value."""
    found = plain_column(array)
    if _is_text(array.type) or _is_binary(array.type) or pa.types.is_nested(array.type):
        found = _quoted(pc.replace_substring(found, '"', '""'))
    return pc.fill_null(found, "")


def plain_column(array: pa.Array) -> pa.Array:
    """Every value as text without quotes; NULL stays NULL."""
    array, kind = _decoded(array), array.type
    if pa.types.is_floating(kind):
        return _floats(array)
    if pa.types.is_timestamp(kind):
        return _calendar(array.cast(pa.timestamp("us")), CYCLE_DAYS * MICROSECONDS_OF_DAY)
    if pa.types.is_date(kind):
        return _calendar(array.cast(pa.date32()), CYCLE_DAYS)
    if _is_binary(kind):
        return _base64(array)
    if pa.types.is_interval(kind):
        return interval_text(array)
    if pa.types.is_nested(kind):
        return pc.if_else(array.is_valid(), json_column(array), pa.scalar(None, TEXT))
    return array.cast(TEXT)


def interval_text(array: pa.Array) -> pa.Array:
    """Intervals in words that DuckDB, Spark and PostgreSQL read: 14 months 3 days 7 microseconds."""
    _, values = array.buffers()
    parts = np.frombuffer(values, INTERVAL_PARTS, len(array), array.offset * INTERVAL_PARTS.itemsize)
    numbers = [parts["months"], parts["days"], parts["nanoseconds"] // 1000]
    months, days, microseconds = (pa.array(number).cast(TEXT) for number in numbers)
    units = _text(" months "), _text(" days "), _text(" microseconds")
    text = pc.binary_join_element_wise(months, units[0], days, units[1], microseconds, units[2], _text(""))
    return pc.if_else(array.is_valid(), text, pa.scalar(None, TEXT))


def _pieces(table: pa.Table, convert: Callable[[pa.Array], pa.Array]) -> Iterator[list[pa.Array]]:
    for start in range(0, table.num_rows, ROWS_AT_ONCE):
        # A slice of many small chunks becomes one batch, so that the kernels run once per column.
        for batch in table.slice(start, ROWS_AT_ONCE).combine_chunks().to_batches():
            yield [convert(column) for column in batch.columns]


def _json_objects(table: pa.Table, end: str) -> Iterator[pa.Array]:
    keys = [json.dumps(name, ensure_ascii=False) for name in table.column_names]
    before = [("," if place else "{") + key + ":" for place, key in enumerate(keys)]
    for columns in _pieces(table, json_column):
        parts = [part for pair in zip(before, columns, strict=True) for part in pair]
        yield pc.binary_join_element_wise(*map(_text, parts), _text(end), _text(""))


def _text(value: Any) -> Any:
    return pa.scalar(value, TEXT) if isinstance(value, str) else value


def _bytes(lines: pa.Array) -> memoryview:
    _, offsets, values = lines.buffers()
    bounds = np.frombuffer(offsets, np.int64, len(lines) + 1, lines.offset * 8)
    return memoryview(values)[int(bounds[0]) : int(bounds[-1])]


def _decoded(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return kind in (pa.string(), TEXT, pa.string_view())


def _is_binary(kind: pa.DataType) -> bool:
    return kind in (pa.binary(), pa.large_binary(), pa.binary_view())


def _quoted(text: pa.Array) -> pa.Array:
    quote = _text('"')
    return pc.binary_join_element_wise(quote, text, quote, _text(""))


def _escaped(text: pa.Array) -> pa.Array:
    if not pc.any(pc.match_substring_regex(text, r'[\x00-\x1f"\\]')).as_py():
        return text
    for character, escape in JSON_ESCAPES.items():  # the backslash is first
        if pc.any(pc.match_substring(text, character)).as_py():
            text = pc.replace_substring(text, character, escape)
    return text


def _floats(array: pa.Array) -> pa.Array:
    text = array.cast(TEXT)
    # 1.0 instead of 1, so that a reader that guesses types sees a float in every file; large ones have an exponent.
    whole = pc.and_(pc.equal(pc.floor(array), array), pc.invert(pc.match_substring(text, "e")))
    text = pc.if_else(whole, pc.binary_join_element_wise(text, _text(".0"), _text("")), text)
    if pc.all(pc.is_finite(array)).as_py() is False:
        # Java's words, which Spark needs; DuckDB and pandas know them too.
        infinite = pc.if_else(pc.greater(array, 0), _text("Infinity"), _text("-Infinity"))
        text = pc.if_else(pc.is_inf(array), infinite, text)
        text = pc.if_else(pc.is_nan(array), _text("NaN"), text)
    return text


def _calendar(array: pa.Array, cycle: int) -> pa.Array:
    text = array.cast(TEXT)
    far = pc.starts_with(text, "<")  # "<value out of range: …>", beyond the year 32767
    if not pc.any(far).as_py():
        return text
    numbers = array.cast(pa.int32() if pa.types.is_date(array.type) else pa.int64()).fill_null(0)
    ticks = numbers.to_numpy(zero_copy_only=False)
    eras, near = np.divmod(ticks, cycle)
    shifted = pa.array(near, numbers.type).cast(array.type).cast(TEXT)
    years = pc.utf8_slice_codeunits(shifted, 0, 4).cast(pa.int64()).to_numpy() + 400 * eras.astype(np.int64)
    rest = pc.utf8_slice_codeunits(shifted, 4)
    return pc.if_else(far, pc.binary_join_element_wise(pa.array(years).cast(TEXT), rest, _text("")), text)


def _base64(array: pa.Array) -> pa.Array:
    # Arrow has no kernel for it: each different value is encoded once.
    coded = array.dictionary_encode()
    words = [b64encode(value).decode() for value in coded.dictionary.to_pylist()]
    return pa.array(words, TEXT).take(coded.indices)


def _json_list(array: pa.Array) -> pa.Array:
    offsets = array.offsets.cast(pa.int64())
    first = offsets[0].as_py()
    inner = json_column(array.values.slice(first, offsets[-1].as_py() - first))
    lists = pa.LargeListArray.from_arrays(pc.subtract(offsets, first), inner)
    text = pc.binary_join_element_wise(_text("["), pc.binary_join(lists, _text(",")), _text("]"), _text(""))
    return pc.if_else(array.is_valid(), text, pa.scalar(None, TEXT))


def _json_struct(array: pa.Array) -> pa.Array:
    parts: list[Any] = []
    for place, field in enumerate(array.type):
        key = json.dumps(field.name, ensure_ascii=False)
        parts += [_text(("," if place else "{") + key + ":"), json_column(array.field(place))]
    text = pc.binary_join_element_wise(*parts, _text("}"), _text(""))
    return pc.if_else(array.is_valid(), text, pa.scalar(None, TEXT))
