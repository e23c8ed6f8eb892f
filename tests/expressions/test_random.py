"""Random values and random expressions against DuckDB; seeded by derandomize, so a failure repeats."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.expressions.differential import INT64_MAX, INT64_MIN, check

pytestmark = pytest.mark.skipif(
    duckdb.__version__ < "2", reason="scalar functions mean what they mean in DuckDB 2, which Python 3.10 does not have"
)

quick = settings(
    derandomize=True, deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

integers = st.one_of(
    st.none(),
    st.integers(-10, 10),
    st.integers(INT64_MIN, INT64_MAX),
    st.sampled_from([INT64_MIN, INT64_MAX, 2**53 + 1]),
)
doubles = st.one_of(st.none(), st.floats(), st.sampled_from([0.5, 1.5, -0.5, 2.5, 0.49999999999999994, 1e15 + 0.5]))
texts = st.one_of(st.none(), st.text(alphabet="aAbB%_ .,é日ßİ\n\\", max_size=6))
# Years 1 to 9999, which Python can hold, with room for what is added.
ROOM = 800 * 86_400_000_000
micros = st.one_of(st.none(), st.integers(-62_135_596_800_000_000 + ROOM, 253_402_300_799_999_999 - ROOM))


def rows(**columns: tuple[st.SearchStrategy[object], pa.DataType]) -> st.SearchStrategy[pa.Table]:
    """Tables of 1 to 20 rows with these columns."""
    row = st.tuples(*(values for values, _ in columns.values()))

    def table(drawn: list[tuple[object, ...]]) -> pa.Table:
        arrays = zip(columns.items(), zip(*drawn, strict=True), strict=True)
        return pa.table({name: pa.array(list(values), arrow) for (name, (_, arrow)), values in arrays})

    return st.lists(row, min_size=1, max_size=20).map(table)


INTEGER = [
    "i + j",
    "i - j",
    "i * j",
    "i // j",
    "i % j",
    "-i",
    "abs(i)",
    "i / j",
    "i < j",
    "i << j",
    "i >> j",
    "xor(i, j)",
    "i = x",
    "x < j",
    "cast(i as integer)",
    "try_cast(x as bigint)",
    "cast(i as double)",
    "greatest(i, x)",
    "case when j <> 0 then i // j else 0 end",
    "i in (1, 2, 9007199254740993)",
    "cast(i as varchar)",
    "x + y",
    "x * y",
    "x / y",
    "x % y",
    "x = y",
    "x <= y",
    "x > y",
    "least(x, y)",
    "round(x)",
    "round(x, 2)",
    "ceil(x)",
    "trunc(x)",
    "sign(x)",
    "x is distinct from y",
    "nullif(x, y)",
    "x between y and 1",
    "sqrt(x)",
    "cast(x as tinyint)",
    "cast(x as float)",
]


@quick
@given(rows(i=(integers, pa.int64()), j=(integers, pa.int64()), x=(doubles, pa.float64()), y=(doubles, pa.float64())))
@pytest.mark.parametrize("sql", INTEGER)
def test_numbers(sql: str, table: pa.Table) -> None:
    check(sql, table)


TEXT = [
    "s || t",
    "concat(s, t)",
    "lower(s)",
    "upper(s)",
    "length(s)",
    "trim(s)",
    "left(s, 2)",
    "right(s, -1)",
    "s < t",
    "s = t",
    "substring(s, 2, 2)",
    "substring(s, -3, 2)",
    "strpos(s, 'a')",
    "strpos(s, 'é')",
    "replace(s, 'a', 'é')",
    "split_part(s, ',', 2)",
    "split_part(s, 'a', -2)",
    "lpad(s, 4, 'é')",
    "rpad(s, 3, '.')",
    "s like 'a%'",
    "s like '%a_b%'",
    "s like '%.%'",
    "s ilike '%ß%'",
    r"s like '%\%%' escape '\'",
    "s ilike 'aé%'",
    "starts_with(s, 'a')",
    "contains(s, 'é')",
    "regexp_matches(s, 'a.b|é')",
    "regexp_full_match(s, '[aA]*')",
    "greatest(s, t)",
    "s in ('a', '')",
    "coalesce(s, t)",
    r"s like '\%'",
]


@quick
@given(rows(s=(texts, pa.string()), t=(texts, pa.string())))
@pytest.mark.parametrize("sql", TEXT)
def test_text(sql: str, table: pa.Table) -> None:
    check(sql, table)


TIME = [
    *(f"date_trunc('{unit}', ts)" for unit in ("year", "quarter", "month", "week", "day", "hour", "second")),
    *(f"extract({part} from ts)" for part in ("year", "quarter", "week", "dow", "doy", "hour", "epoch")),
    "ts + interval 1 month",
    "ts - interval 13 months",
    "ts + interval 1 year",
    "ts - interval 36 hours",
    "time_bucket(interval 11 minutes, ts)",
    "cast(ts as date)",
    "cast(ts as varchar)",
    "epoch_ms(ts)",
    "cast(cast(ts as varchar) as timestamp)",
    "ts < '2000-02-29 12:00:00'",
]


@quick
@given(rows(ts=(micros, pa.int64())))
@pytest.mark.parametrize("sql", TIME)
def test_time(sql: str, table: pa.Table) -> None:
    check(sql, pa.table({"ts": table["ts"].cast(pa.timestamp("us"))}))


def _expressions() -> st.SearchStrategy[str]:
    """Nested expressions of BIGINT, DOUBLE and BOOLEAN over columns whose values keep them from overflowing."""
    number = st.sampled_from(["i", "j", "x", "3", "-2", "1.5", "NULL"])
    truth = st.sampled_from(["b", "TRUE", "NULL", "i > j", "x >= 1"])

    def grow(parts: tuple[st.SearchStrategy[str], st.SearchStrategy[str]]) -> tuple[st.SearchStrategy[str], ...]:
        value, test = parts
        values = st.one_of(
            st.builds("({} {} {})".format, value, st.sampled_from(["+", "-", "*", "/"]), value),
            st.builds("CASE WHEN {} THEN {} ELSE {} END".format, test, value, value),
            st.builds("coalesce({}, {})".format, value, value),
            st.builds("greatest({}, {})".format, value, value),
            st.builds("nullif({}, {})".format, value, value),
            st.builds("abs({})".format, value),
            value,
        )
        tests = st.one_of(
            st.builds("({} {} {})".format, value, st.sampled_from(["=", "<>", "<", ">="]), value),
            st.builds("({} {} {})".format, test, st.sampled_from(["AND", "OR"]), test),
            st.builds("(NOT {})".format, test),
            st.builds("({} BETWEEN {} AND {})".format, value, value, value),
            st.builds("({} IN ({}, {}))".format, value, value, value),
            st.builds("({} IS NULL)".format, value),
            st.builds("({} IS DISTINCT FROM {})".format, value, value),
            test,
        )
        return values, tests

    parts = (number, truth)
    for _ in range(4):
        parts = grow(parts)  # type: ignore[assignment]
    return st.one_of(*parts)


@settings(quick, max_examples=200)
@given(
    _expressions(),
    rows(
        i=(st.one_of(st.none(), st.integers(-9, 9)), pa.int64()),
        j=(st.one_of(st.none(), st.integers(-9, 9)), pa.int32()),
        x=(st.sampled_from([None, 0.0, -0.0, 1.5, 2.0, float("nan"), float("inf"), -3.0]), pa.float64()),
        b=(st.sampled_from([None, True, False]), pa.bool_()),
    ),
)
def test_nested_expressions(sql: str, table: pa.Table) -> None:
    check(sql, table)
