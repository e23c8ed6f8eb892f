"""SQL types, Arrow types, and which go together."""

from __future__ import annotations

import pyarrow as pa
import pytest
from sqlglot import exp

from windrow.errors import BindError
from windrow.language import types


def sql(text: str) -> exp.DataType:
    return exp.DataType.build(text, dialect="duckdb")


PAIRS = [
    ("BOOLEAN", pa.bool_()),
    ("TINYINT", pa.int8()),
    ("SMALLINT", pa.int16()),
    ("INTEGER", pa.int32()),
    ("BIGINT", pa.int64()),
    ("FLOAT", pa.float32()),
    ("DOUBLE", pa.float64()),
    ("DECIMAL(10, 2)", pa.decimal128(10, 2)),
    ("VARCHAR", pa.string()),
    ("BLOB", pa.binary()),
    ("DATE", pa.date32()),
    ("TIMESTAMP", pa.timestamp("us")),
    ("BIGINT[]", pa.list_(pa.int64())),
    ("STRUCT(a BIGINT, b VARCHAR)", pa.struct({"a": pa.int64(), "b": pa.string()})),
]


@pytest.mark.parametrize(("text", "arrow"), PAIRS)
def test_there_and_back(text: str, arrow: pa.DataType) -> None:
    assert types.to_arrow(sql(text)) == arrow
    assert types.from_arrow(arrow) == types.canonical(sql(text))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("STRING", "VARCHAR"),
        ("TEXT", "VARCHAR"),
        ("CHAR(3)", "VARCHAR"),
        ("VARCHAR(10)", "VARCHAR"),
        ("INT", "INTEGER"),
        ("REAL", "FLOAT"),
        ("DATETIME", "TIMESTAMP"),
        ("TIMESTAMP WITH TIME ZONE", "TIMESTAMP"),
        ("BYTEA", "BLOB"),
        ("DECIMAL", "DECIMAL(18, 3)"),
        ("NUMERIC(5)", "DECIMAL(5, 0)"),
        ("INTERVAL", "INTERVAL"),
        ("INT[]", "INT[]"),
    ],
)
def test_synonyms(text: str, name: str) -> None:
    assert types.type_name(types.canonical(sql(text))) == name


@pytest.mark.parametrize(
    ("arrow", "name"),
    [
        (pa.large_string(), "VARCHAR"),
        (pa.string_view(), "VARCHAR"),
        (pa.dictionary(pa.int8(), pa.string()), "VARCHAR"),
        (pa.uint8(), "SMALLINT"),
        (pa.uint16(), "INTEGER"),
        (pa.uint32(), "BIGINT"),
        (pa.timestamp("ns"), "TIMESTAMP"),
        (pa.timestamp("s", "UTC"), "TIMESTAMP"),
        (pa.date64(), "DATE"),
    ],
)
def test_accepted_arrow_types(arrow: pa.DataType, name: str) -> None:
    assert types.type_name(types.from_arrow(arrow)) == name


@pytest.mark.parametrize(
    ("arrow", "hint"),
    [
        (pa.uint64(), "int64"),
        (pa.timestamp("us", "Europe/Paris"), "UTC"),
        (pa.time64("us"), "time64"),
        (pa.dictionary(pa.int8(), pa.int64()), "dictionary"),
        (pa.float16(), "float32"),
        (pa.decimal256(50, 2), "decimal"),
    ],
)
def test_refused_arrow_types(arrow: pa.DataType, hint: str) -> None:
    with pytest.raises(BindError, match=hint):
        types.from_arrow(arrow)


@pytest.mark.parametrize("text", ["HUGEINT", "UBIGINT", "TIME", "UUID", "DECIMAL(50, 2)", "DECIMAL(5, 9)"])
def test_refused_sql_types(text: str) -> None:
    with pytest.raises(BindError):
        types.canonical(sql(text))


@pytest.mark.parametrize(
    ("a", "b", "common"),
    [
        ("INTEGER", "BIGINT", "BIGINT"),
        ("TINYINT", "TINYINT", "TINYINT"),
        ("BIGINT", "FLOAT", "DOUBLE"),
        ("FLOAT", "FLOAT", "FLOAT"),
        ("FLOAT", "DOUBLE", "DOUBLE"),
        ("DECIMAL(5, 2)", "DECIMAL(8, 1)", "DECIMAL(9, 2)"),
        ("DECIMAL(38, 0)", "DECIMAL(38, 30)", "DOUBLE"),
        ("INTEGER", "DECIMAL(5, 2)", "DECIMAL(12, 2)"),
        ("DATE", "TIMESTAMP", "TIMESTAMP"),
        ("NULL", "VARCHAR", "VARCHAR"),
        ("BOOLEAN", "BOOLEAN", "BOOLEAN"),
    ],
)
def test_common_type(a: str, b: str, common: str) -> None:
    for left, right in ((a, b), (b, a)):
        joined = types.common_type(sql(left), sql(right))
        assert joined is not None
        assert types.type_name(joined) == common


@pytest.mark.parametrize(
    ("a", "b"), [("VARCHAR", "INTEGER"), ("BOOLEAN", "INTEGER"), ("DATE", "BIGINT"), ("BLOB", "VARCHAR")]
)
def test_no_common_type(a: str, b: str) -> None:
    assert types.common_type(sql(a), sql(b)) is None
    assert types.common_type(sql(b), sql(a)) is None
