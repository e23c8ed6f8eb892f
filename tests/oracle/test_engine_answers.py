"""Invariant 1: every answer of the engine equals DuckDB's on the window contents at that τ."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow
from tests.random_queries import TICKS, queries, tables
from tests.random_schemas import Case, cases
from windrow.testing import Reference, assert_same, cut


def answers(texts: list[str], batches: list[pa.Table], lateness: int = 0) -> list[windrow.Query]:
    """Register the queries, push the batches, end the input."""
    db = windrow.connect()
    db.stream("s", TICKS, time="t", lateness=lateness)
    handles = [db.query(text) for text in texts]
    for batch in batches:
        db.push("s", batch)
    db.finish()
    return handles


@given(tables(), st.lists(queries(), min_size=1, max_size=4))
def test_random_query_sets(table: pa.Table, texts: list[str]) -> None:
    for query in answers(texts, [table]):
        expected = Reference(query.bound, {"s": table}).answers()
        assert_same(query.answers(), expected, ordered="ORDER BY" in query.text, absolute=1e-9)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM s [RANGE 10 SLIDE 5]",
        "SELECT a, COUNT(*) FROM s [RANGE 3 SLIDE 10] GROUP BY a",  # a sampling window
        "SELECT a, SUM(b) FROM s [RANGE 7 SLIDE 5] GROUP BY a",  # RANGE is no multiple of SLIDE
        "SELECT a, MAX(x) FROM s [RANGE 10 SLIDE 5 OFFSET 12] GROUP BY a",  # a historical window
        "SELECT COUNT(*) FROM s [NOW SLIDE 4]",
        "SELECT COUNT(*) FROM s [RANGE 10 SLIDE 5] WHERE NULL",
        "SELECT DISTINCT s, f FROM s [RANGE 10 SLIDE 5]",
        "SELECT DISTINCT a % 2 AS m FROM s [RANGE 10 SLIDE 5] ORDER BY m DESC LIMIT 1",
        "SELECT a FROM s [RANGE 10 SLIDE 5] GROUP BY a HAVING COUNT(*) > 1",
        "RSTREAM(SELECT SUM(a) AS total FROM s [RANGE 10 SLIDE 5])",
        "SELECT Rstream(SUM(a)) FROM s [RANGE 10 SLIDE 5 INTERNAL]",
        "SELECT SUM(a) / COUNT(*) AS ratio, SUM(a) // COUNT(*) AS whole FROM s [RANGE 10 SLIDE 5] GROUP BY f",
        "SELECT upper(s) AS u, length(s) AS n, AVG(x * 2 + a) AS v FROM s [RANGE 9 SLIDE 3] GROUP BY u, length(s)",
    ],
)
def test_each_kind_of_query(text: str) -> None:
    table = pa.table(
        [
            pa.array([1, 2, 2, 5, 9, 10, 11, 30, 31, 47], pa.int64()),
            pa.array([1, None, 3, 1, 1, 3, 4, 4, 1, 2], pa.int32()),
            pa.array([10, 20, 30, None, 50, 60, 70, 80, 90, 1], pa.int64()),
            pa.array([0.5, float("nan"), 1.5, 2.5, None, 1e300, -1e300, 3.0, float("inf"), 1.0]),
            pa.array(["u", "v", None, "u", "w", "v", "v", "u", "ü", "x"]),
            pa.array([True, False, None, True, True, False, False, None, True, True]),
            pa.array([None] * 10, pa.timestamp("us")),
        ],
        schema=TICKS,
    )
    (query,) = answers([text], [table])
    expected = Reference(query.bound, {"s": table}).answers()
    assert expected.num_rows
    assert_same(query.answers(), expected, ordered="ORDER BY" in text)


@given(cases())
def test_random_schemas(case: Case) -> None:
    db = windrow.connect()
    db.execute(case.declaration)
    handles = [db.query(text) for text in case.queries]
    for batch in cut(case.table, seed=len(case.table), pieces=3):
        db.push("s", batch)
    db.finish()
    for query in handles:
        assert_same(query.answers(), Reference(query.bound, {"s": case.table}).answers(), absolute=1e-9)


def test_strings_of_several_columns_do_not_mix() -> None:
    """Without NULLs the codes of keys and values may lie in the same memory one after the other."""
    schema = pa.schema([("t", pa.int64()), *((name, pa.string()) for name in "kuv")])
    rows = range(500)
    parts = {"k": (1, 4), "u": (7, 61), "v": (5, 97)}
    columns = [[f"{name}{i * step % modulus}" for i in rows] for name, (step, modulus) in parts.items()]
    table = pa.table([pa.array([i // 3 for i in rows]), *map(pa.array, columns)], schema=schema)
    db = windrow.connect()
    db.stream("s", schema, time="t")
    calls = "COUNT(DISTINCT u) AS n, MODE(v) AS m, MIN(u) AS f, QUANTILE(v, 0.5) AS q"
    query = db.query(f"SELECT k, {calls} FROM s [RANGE 40 SLIDE 9] GROUP BY k")
    db.push("s", table)
    db.finish()
    assert_same(query.answers(), Reference(query.bound, {"s": table}).answers())


def test_a_distinct_sum_that_overflows_stops_its_query_only() -> None:
    db = windrow.connect()
    db.execute("CREATE STREAM s (t BIGINT, a BIGINT) TIME t")
    bad = db.query("SELECT SUM(DISTINCT a) AS v FROM s [RANGE 10 SLIDE 5]")
    good = db.query("SELECT AVG(DISTINCT a) AS v, COUNT(DISTINCT a) AS n FROM s [RANGE 10 SLIDE 5]")
    table = pa.table({"t": [1, 2, 3, 7], "a": [2**62, 2**62, -5, 2**62 + 6]})
    db.push("s", table)
    with pytest.raises(windrow.QueryError, match="64-bit"):
        db.finish()
    assert (bad.status, good.status) == ("stopped", "running")
    assert bad.answers().column("v").to_pylist() == [2**62 - 5]
    assert_same(good.answers(), Reference(good.bound, {"s": table}).answers())
