"""SQL types ⇄ Arrow types, and which types go together.

Windrow keeps few types: every text type is TEXT, every timestamp is microseconds without zone.

>>> to_arrow(exp.DataType.build("DECIMAL(10, 2)"))
Decimal128Type(decimal128(10, 2))
>>> type_name(from_arrow(pa.timestamp("ns", "UTC")))
'TIMESTAMP'
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from windrow.errors import BindError

D = exp.DType

NULL = exp.DataType(this=D.NULL)
BOOLEAN = exp.DataType(this=D.BOOLEAN)
TINYINT = exp.DataType(this=D.TINYINT)
SMALLINT = exp.DataType(this=D.SMALLINT)
INTEGER = exp.DataType(this=D.INT)
BIGINT = exp.DataType(this=D.BIGINT)
FLOAT = exp.DataType(this=D.FLOAT)
DOUBLE = exp.DataType(this=D.DOUBLE)
TEXT = exp.DataType(this=D.TEXT)
BLOB = exp.DataType(this=D.VARBINARY)
DATE = exp.DataType(this=D.DATE)
TIMESTAMP = exp.DataType(this=D.TIMESTAMP)
INTERVAL = exp.DataType(this=D.INTERVAL)

# The canonical form of each type that has no parameters, with its name in messages and its Arrow type.
SIMPLE: dict[exp.DType, tuple[exp.DataType, str, pa.DataType]] = {
    D.NULL: (NULL, "NULL", pa.null()),
    D.BOOLEAN: (BOOLEAN, "BOOLEAN", pa.bool_()),
    D.TINYINT: (TINYINT, "TINYINT", pa.int8()),
    D.SMALLINT: (SMALLINT, "SMALLINT", pa.int16()),
    D.INT: (INTEGER, "INTEGER", pa.int32()),
    D.BIGINT: (BIGINT, "BIGINT", pa.int64()),
    D.FLOAT: (FLOAT, "FLOAT", pa.float32()),
    D.DOUBLE: (DOUBLE, "DOUBLE", pa.float64()),
    D.TEXT: (TEXT, "VARCHAR", pa.string()),
    D.VARBINARY: (BLOB, "BLOB", pa.binary()),
    D.DATE: (DATE, "DATE", pa.date32()),
    D.TIMESTAMP: (TIMESTAMP, "TIMESTAMP", pa.timestamp("us")),
    D.INTERVAL: (INTERVAL, "INTERVAL", pa.month_day_nano_interval()),
}

ALIASES = {
    **dict.fromkeys((D.VARCHAR, D.CHAR, D.NCHAR, D.NVARCHAR, D.BPCHAR, D.NAME), D.TEXT),
    **dict.fromkeys((D.BINARY, D.BLOB), D.VARBINARY),
    **dict.fromkeys(
        (D.TIMESTAMPNTZ, D.TIMESTAMPTZ, D.TIMESTAMPLTZ, D.DATETIME, D.TIMESTAMP_S, D.TIMESTAMP_MS, D.TIMESTAMP_NS),
        D.TIMESTAMP,
    ),
    D.MEDIUMINT: D.INT,
}

# Ordered: a later type holds every value of an earlier one.
INTEGERS = (D.TINYINT, D.SMALLINT, D.INT, D.BIGINT)
DIGITS = {D.TINYINT: 3, D.SMALLINT: 5, D.INT: 10, D.BIGINT: 19}
MAX_DIGITS = 38  # of DECIMAL, in DuckDB and in Arrow's decimal128

FROM_ARROW: dict[pa.DataType, exp.DataType] = {arrow: sql for sql, _, arrow in SIMPLE.values()} | {
    pa.uint8(): SMALLINT,
    pa.uint16(): INTEGER,
    pa.uint32(): BIGINT,
    pa.large_string(): TEXT,
    pa.string_view(): TEXT,
    pa.large_binary(): BLOB,
    pa.binary_view(): BLOB,
    pa.date64(): DATE,
}


def kind(sql: exp.DataType) -> exp.DType:
    """The type without its parameters, synonyms resolved."""
    this = sql.this if isinstance(sql.this, D) else D.USERDEFINED
    return ALIASES.get(this, this)


def canonical(sql: exp.DataType) -> exp.DataType:
    """The one DataType that Windrow uses for `sql` and its synonyms; raises BindError if there is none."""
    simple = SIMPLE.get(kind(sql))
    if simple is not None:
        return simple[0]
    if kind(sql) == D.DECIMAL:
        return decimal(*decimal_digits(sql))
    if kind(sql) in (D.ARRAY, D.LIST) and len(sql.expressions) == 1:
        return list_of(canonical(sql.expressions[0]))
    if kind(sql) == D.STRUCT and sql.expressions:
        return struct_of({field.name: canonical(field.args["kind"]) for field in sql.expressions})
    raise BindError(
        f"type {sql.sql(dialect='duckdb')} is not supported; use BOOLEAN, TINYINT, SMALLINT, INTEGER, BIGINT, FLOAT, "
        "DOUBLE, DECIMAL(p, s), VARCHAR, BLOB, DATE or TIMESTAMP"
    )


def decimal(precision: int, scale: int) -> exp.DataType:
    """DECIMAL(precision, scale)."""
    if not (1 <= precision <= MAX_DIGITS and 0 <= scale <= precision):
        raise BindError(f"DECIMAL({precision}, {scale}) is not valid: 1 <= precision <= 38 and 0 <= scale <= precision")
    parameters = [exp.DataTypeParam(this=exp.Literal.number(number)) for number in (precision, scale)]
    return exp.DataType(this=D.DECIMAL, expressions=parameters)


def decimal_digits(sql: exp.DataType) -> tuple[int, int]:
    """Precision and scale of a DECIMAL; a missing part is DuckDB's default."""
    numbers = [int(parameter.name) for parameter in sql.expressions]
    if not numbers:
        return 18, 3
    return numbers[0], numbers[1] if len(numbers) > 1 else 0


def list_of(element: exp.DataType) -> exp.DataType:
    """LIST with elements of one type."""
    return exp.DataType(this=D.ARRAY, expressions=[element.copy()], nested=True)


def struct_of(fields: dict[str, exp.DataType]) -> exp.DataType:
    """STRUCT with named fields, in order."""
    columns = [exp.ColumnDef(this=exp.to_identifier(name), kind=sql.copy()) for name, sql in fields.items()]
    return exp.DataType(this=D.STRUCT, expressions=columns, nested=True)


def to_arrow(sql: exp.DataType) -> pa.DataType:
    """The Arrow type of a column of this SQL type."""
    sql = canonical(sql)
    if kind(sql) in SIMPLE:
        return SIMPLE[kind(sql)][2]
    if kind(sql) == D.DECIMAL:
        return pa.decimal128(*decimal_digits(sql))
    if kind(sql) == D.ARRAY:
        return pa.list_(to_arrow(sql.expressions[0]))
    return pa.struct([pa.field(field.name, to_arrow(field.args["kind"])) for field in sql.expressions])


def from_arrow(arrow: pa.DataType) -> exp.DataType:
    """The SQL type that Windrow gives to an Arrow column; raises BindError for what it cannot hold exactly."""
    if arrow in FROM_ARROW:
        return FROM_ARROW[arrow]
    if pa.types.is_timestamp(arrow) and arrow.tz in (None, "UTC", "Etc/UTC", "GMT", "Z", "+00:00"):
        return TIMESTAMP
    if pa.types.is_decimal(arrow) and arrow.precision <= MAX_DIGITS and 0 <= arrow.scale <= arrow.precision:
        return decimal(arrow.precision, arrow.scale)
    if pa.types.is_dictionary(arrow):
        value = from_arrow(arrow.value_type)
        if is_text(value):
            return value
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
        return list_of(from_arrow(arrow.value_type))
    if pa.types.is_struct(arrow):
        return struct_of({field.name: from_arrow(field.type) for field in arrow})
    hint = ""
    if pa.types.is_timestamp(arrow):
        hint = "; convert it to UTC"
    elif pa.types.is_integer(arrow):
        hint = "; cast it to int64 or decimal128(20, 0)"
    elif pa.types.is_float16(arrow):
        hint = "; cast it to float32"
    raise BindError(f"Arrow type {arrow} has no type in Windrow{hint}")


def numpy_dtype(arrow: pa.DataType) -> np.dtype[Any]:
    """The NumPy type of an Arrow number (pyarrow's own way needs pandas in some versions)."""
    return np.dtype({"float": "float32", "double": "float64"}.get(str(arrow), str(arrow)))


def type_name(sql: exp.DataType) -> str:
    """The type as users write it, for messages."""
    simple = SIMPLE.get(kind(sql))
    if simple is not None:
        return simple[1]
    if kind(sql) == D.DECIMAL:
        return "DECIMAL({}, {})".format(*decimal_digits(sql))
    return sql.sql(dialect="duckdb")


def is_null(sql: exp.DataType) -> bool:
    """Is it the type of a bare NULL, which fits everywhere?"""
    return kind(sql) == D.NULL


def is_integer(sql: exp.DataType) -> bool:
    """Is it one of the four integer types?"""
    return kind(sql) in INTEGERS


def is_floating(sql: exp.DataType) -> bool:
    """Is it FLOAT or DOUBLE?"""
    return kind(sql) in (D.FLOAT, D.DOUBLE)


def is_decimal(sql: exp.DataType) -> bool:
    """Is it DECIMAL(p, s)?"""
    return kind(sql) == D.DECIMAL


def is_numeric(sql: exp.DataType) -> bool:
    """Is it an integer, floating or decimal type?"""
    return is_integer(sql) or is_floating(sql) or is_decimal(sql)


def is_text(sql: exp.DataType) -> bool:
    """Is it a text type?"""
    return kind(sql) == D.TEXT


def is_boolean(sql: exp.DataType) -> bool:
    """Is it BOOLEAN?"""
    return kind(sql) == D.BOOLEAN


def is_temporal(sql: exp.DataType) -> bool:
    """Is it DATE or TIMESTAMP?"""
    return kind(sql) in (D.DATE, D.TIMESTAMP)


def common_type(a: exp.DataType, b: exp.DataType) -> exp.DataType | None:
    """The type in which values of both are compared or mixed; None when they do not go together.

    >>> type_name(common_type(BIGINT, exp.DataType.build("DECIMAL(5, 2)")))
    'DECIMAL(21, 2)'
    """
    a, b = canonical(a), canonical(b)
    if a == b or is_null(b):
        return a
    if is_null(a):
        return b
    if is_integer(a) and is_integer(b):
        return a if INTEGERS.index(kind(a)) > INTEGERS.index(kind(b)) else b
    if is_numeric(a) and is_numeric(b):
        return DOUBLE if is_floating(a) or is_floating(b) else _common_decimal(a, b)
    if is_temporal(a) and is_temporal(b):
        return TIMESTAMP
    return None


def _common_decimal(a: exp.DataType, b: exp.DataType) -> exp.DataType:
    (digits_a, scale_a), (digits_b, scale_b) = (
        (DIGITS[kind(sql)], 0) if is_integer(sql) else decimal_digits(sql) for sql in (a, b)
    )
    scale = max(scale_a, scale_b)
    digits = max(digits_a - scale_a, digits_b - scale_b) + scale
    return decimal(digits, scale) if digits <= MAX_DIGITS else DOUBLE


def common_types(every: Iterable[exp.DataType]) -> exp.DataType:
    """The type that all of them share, when infer() has checked that there is one."""
    result = NULL
    for sql in every:
        joined = common_type(result, sql)
        if joined is None:
            raise ValueError(f"{type_name(result)} and {type_name(sql)} have no common type")
        result = joined
    return result
