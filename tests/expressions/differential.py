"""One expression in Windrow and in DuckDB: the same values, or an error in both."""

from __future__ import annotations

import math
from decimal import Decimal

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp

from windrow.errors import QueryError
from windrow.expressions import Compiler, Context
from windrow.language import types
from windrow.language.typing import infer
from windrow.testing.render import to_duckdb

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
NAN, INF = math.nan, math.inf

# Every column has NULLs and its type's extremes; the order is mixed so that rows pair different kinds of values.
COLUMNS: dict[str, pa.Array] = {
    "i": pa.array([0, 1, -1, 7, -7, 2**31, INT64_MAX, INT64_MIN, None, 3, None, 10], pa.int64()),
    "j": pa.array([2, 0, -1, 2, 2, -3, 1, -1, 5, None, None, 63], pa.int64()),
    "n": pa.array([0, 1, -1, 7, -7, 2**31 - 1, -(2**31), 100, None, 3, None, 5], pa.int32()),
    "small": pa.array([0, 1, -1, 7, -7, 127, -128, 100, None, 3, None, 5], pa.int8()),
    "x": pa.array([0.0, 1.5, -0.0, 2.5, -2.5, NAN, INF, -INF, None, 1e300, None, 0.1], pa.float64()),
    "y": pa.array([-0.0, 0.5, NAN, 2.5, -3.0, NAN, -INF, 0.0, 4.0, None, None, -1e-5], pa.float64()),
    "f": pa.array([0.0, 1.5, -0.0, 2.5, 0.1, NAN, INF, -INF, None, 1e30, None, 3.0], pa.float32()),
    "d": pa.array([Decimal(v) if v else None for v in
                   ("0.00", "1.50", "-1.50", "2.55", "99999.99", "-0.01", "7.00", "0.10", "", "3.00", "", "1.05")],
                  pa.decimal128(10, 2)),
    "b": pa.array([True, False, None, True, False, None, True, False, None, True, False, None]),
    "c": pa.array([True, True, True, False, False, False, None, None, None, True, False, None]),
    "s": pa.array(["abc", "", "ABC", "a%b_c", "héllo", "日本語 text", " pad ", "x,y,,z", None, "a\nb", None, "Straße"]),
    "t": pa.array(["abc", "b", None, "%", "é", "本", "pad", ",", "q", "a", None, "ß"]),
    "number": pa.array(["12", "-7", "+5", " 8 ", "1.5", "2.5", "-2.5", "007", None, "0.49", None, ".5"]),
    "junk": pa.array(["abc", "", "-", "12", "1.2.3", "99999999999999999999", "2024-13-01", "t", None, "NO", None, "5"]),
    "when": pa.array(["2024-02-29", "2024-01-07 01:02:03", "1969-12-31 23:59:59.5", "2024-1-7 1:2", "2024/03/04",
                      "1900-02-28T10:11:12.123456", "0001-01-01", "9999-12-31 23:59:59.999999", None, " 2024-01-07",
                      None, "2024-01-07 24:00:00"]),
    "ts": pa.array([0, 1, -1, 1_709_210_096_123_456, -86_400_000_001, 951_782_400_000_000, 4_102_444_800_000_000,
                    -2_208_988_800_000_001, None, 1_704_067_199_999_999, None, 1_735_603_200_000_000],
                   pa.int64()).cast(pa.timestamp("us")),
    "u": pa.array([1, 0, None, 1_709_210_096_123_456, -86_400_000_001, 0, 5, 7, 1, 2, None, 3],
                  pa.int64()).cast(pa.timestamp("us")),
    "day": pa.array([0, -1, 1, 19_782, 19_723, 11_016, -25_567, 47_482, None, 59, None, 365],
                    pa.int32()).cast(pa.date32()),
    "e": pa.array([0, 5, None, 19_782, 19_000, 1, 2, 3, 4, 5, None, 6], pa.int32()).cast(pa.date32()),
}  # fmt: skip
TABLE = pa.table(COLUMNS)
COMPILER = Compiler()
CONNECTION = duckdb.connect()  # opening one takes longer than most checks
CONNECTION.execute("SET threads = 1")


def typed(sql: str, table: pa.Table = TABLE) -> exp.Expr:
    """The expression with the types of the table's columns."""
    expression = sqlglot.parse_one(sql, dialect="duckdb")
    infer(expression, lambda column: types.from_arrow(table.schema.field(column.name).type))
    return expression


def windrow(sql: str, table: pa.Table = TABLE) -> pa.Array:
    """What Windrow computes."""
    return Context.of(table).value(COMPILER.compile(typed(sql, table)))


def reference(sql: str, table: pa.Table = TABLE) -> list[object]:
    """What DuckDB computes."""
    CONNECTION.register("input", table)
    text = to_duckdb(typed(sql, table))
    return [row[0] for row in CONNECTION.execute(f"SELECT {text} FROM input").fetchall()]


def same(left: object, right: object, tolerance: float) -> bool:
    """Equal as SQL values of one type."""
    if isinstance(left, float) and isinstance(right, float):
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) and math.isnan(right)
        return left == right or math.isclose(left, right, rel_tol=tolerance, abs_tol=0.0)
    if type(left) is not type(right):
        return False
    return left == right


def check(sql: str, table: pa.Table = TABLE, tolerance: float = 0.0) -> None:
    """Row by row the same; a row at which one side fails must fail the other."""
    assert windrow(sql, table.slice(0, 0)).type == types.to_arrow(typed(sql, table).type)
    try:
        expected = reference(sql, table)
    except duckdb.Error as error:
        try:
            got = windrow(sql, table)
        except QueryError:
            if table.num_rows > 1:
                for row in range(table.num_rows):
                    check(sql, table.slice(row, 1), tolerance)
            return
        raise AssertionError(f"{sql}: DuckDB fails ({error}), Windrow gives {got.to_pylist()}") from error
    got = windrow(sql, table).to_pylist()
    assert len(got) == len(expected)
    for row, (mine, theirs) in enumerate(zip(got, expected, strict=True)):
        values = {column.name: table[column.name][row].as_py() for column in typed(sql, table).find_all(exp.Column)}
        assert same(mine, theirs, tolerance), f"{sql} with {values}: {mine!r} in Windrow, {theirs!r} in DuckDB"
