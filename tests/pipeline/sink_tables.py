"""Answers with every type of column, written to a sink and read back by other tools."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

# Every type that a query can put out, with the words for it in DuckDB and in Spark.
COLUMNS: dict[str, tuple[pa.DataType, str, str]] = {
    "_time": (pa.timestamp("us"), "TIMESTAMP", "timestamp_ntz"),
    "yes": (pa.bool_(), "BOOLEAN", "boolean"),
    "tiny": (pa.int8(), "TINYINT", "tinyint"),
    "small": (pa.int16(), "SMALLINT", "smallint"),
    "whole": (pa.int32(), "INTEGER", "int"),
    "big": (pa.int64(), "BIGINT", "bigint"),
    "real": (pa.float32(), "FLOAT", "float"),
    "double": (pa.float64(), "DOUBLE", "double"),
    "price": (pa.decimal128(9, 2), "DECIMAL(9, 2)", "decimal(9, 2)"),
    "wide": (pa.decimal128(38, 10), "DECIMAL(38, 10)", "decimal(38, 10)"),
    "text": (pa.string(), "VARCHAR", "string"),
    "bytes": (pa.binary(), "BLOB", "binary"),
    "day": (pa.date32(), "DATE", "date"),
    "a column, \"quoted\" 'twice'": (pa.int64(), "BIGINT", "bigint"),
}
SCHEMA = pa.schema([(name, arrow) for name, (arrow, _, _) in COLUMNS.items()])
NAN, INFINITY = float("nan"), float("inf")

EXTREMES = {
    "_time": [datetime(2026, 1, 31, 12, 0, 0, 1), datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)],
    "yes": [True, False, None],
    "tiny": [127, -128, None],
    "small": [32767, -32768, None],
    "whole": [2**31 - 1, -(2**31), None],
    "big": [2**63 - 1, -(2**63), None, 2**53 + 1],
    "real": [3.4028234663852886e38, NAN, INFINITY, None, 1.401298464324817e-45, -0.0, 1.0],
    "double": [1.7976931348623157e308, NAN, INFINITY, -INFINITY, 5e-324, None, 0.1, 1e15, 123456.0, -0.0, 1e22],
    "price": [Decimal("9999999.99"), Decimal("-0.01"), None, Decimal("0.00")],
    "wide": [Decimal("9" * 28 + "." + "9" * 10), Decimal("-1e-10"), None, Decimal("1.5")],
    "text": [
        "",
        None,
        'say "hi"',
        "two\nlines",
        "comma, tab\t",
        "back\\slash",
        "日本語 🙂",
        "'",
        "NULL",
        "\x01\x1b",
        " x ",
    ],
    "bytes": [b"", None, b"\x00\xff", b"abc", b'"'],
    "day": [date(1, 1, 1), date(9999, 12, 31), None],
    "a column, \"quoted\" 'twice'": [1, None],
}


def extremes(rows: int = 40) -> pa.Table:
    """A table in which every special value of every type occurs."""
    columns = [[values[row % len(values)] for row in range(rows)] for values in EXTREMES.values()]
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def read_with_duckdb(directory: Path, format: str) -> pa.Table:
    """All answers of a directory, typed as they were written."""
    types = {name: sql for name, (_, sql, _) in COLUMNS.items()}
    if format == "parquet":
        source, values = f"read_parquet('{directory}/*.parquet')", [_quoted(name) for name in types]
    else:
        # DECIMAL has to come from text: DuckDB reads a JSON number as a double. A BLOB is base64 in both.
        texts = {name: "VARCHAR" if sql == "BLOB" else sql for name, sql in types.items()}
        declared = ", ".join(f"'{name.replace(chr(39), chr(39) * 2)}': '{sql}'" for name, sql in texts.items())
        quoting = "quote = '\"', escape = '\"', delim = ',', allow_quoted_nulls = false, auto_detect = false"
        if format == "csv":
            source = f"read_csv('{directory}/*.csv', columns = {{{declared}}}, header = true, {quoting})"
        else:
            source = f"read_json('{directory}/*.json', columns = {{{declared}}}, format = 'newline_delimited')"
        values = [f"from_base64({_quoted(name)})" if types[name] == "BLOB" else _quoted(name) for name in types]
    with duckdb.connect() as connection:
        return connection.sql(f"SELECT {', '.join(values)} FROM {source}").to_arrow_table().rename_columns(list(types))


def same(found: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Rows in a form in which NaN equals itself, 0.0 and -0.0 differ, 1.5 equals 1.50; in an order of their own."""
    rows = found.to_pylist() if isinstance(found, pa.Table) else found
    return sorted((tuple(_exact(value) for value in row.values()) for row in rows), key=repr)


def _exact(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else struct.pack("<d", value)
    if isinstance(value, Decimal):
        return value.as_integer_ratio()
    return bytes(value) if isinstance(value, bytearray | memoryview) else value


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
