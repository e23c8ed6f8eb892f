"""Invariant 6: bad input gives one clear message, takes nothing in, and leaves everything registered running."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import windrow

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.int32())])
GOOD = pa.table({"t": [1, 2], "k": ["a", "b"], "v": pa.array([1, 2], pa.int32())})


@pytest.fixture
def db() -> Iterator[windrow.Database]:
    """A database with a running query; whatever the test does, the query's answers are complete in the end."""
    result = windrow.connect()
    result.stream("s", SCHEMA, time="t")
    query = result.query("SELECT SUM(v) AS total FROM s [RANGE 10 SLIDE 5]", name="witness")
    result.push("s", GOOD)
    yield result
    result.push("s", GOOD.set_column(0, "t", pa.array([3, 7])))
    result.finish()
    assert query.answers().to_pylist() == [{"_time": 5, "total": 4}, {"_time": 10, "total": 6}]


def with_column(name: str, array: pa.Array) -> pa.Table:
    return GOOD.set_column(GOOD.schema.get_field_index(name), name, array)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (GOOD.drop_columns(["k"]), "missing is k"),
        (GOOD.append_column("extra", pa.array([1, 2])), "not declared is extra"),
        (GOOD.append_column("v", pa.array([1, 2])), "twice there is v"),
        (GOOD.rename_columns(["t", "K", "v"]), "missing is k; not declared is K"),
        (
            with_column("v", pa.array(["1", "2"])),
            r"column v of stream s must be INTEGER \(Arrow int32\), found Arrow string",
        ),
        (with_column("v", pa.array([1.5, 2.5])), "column v of stream s must be INTEGER"),
        (with_column("v", pa.array([1, 2], pa.int64())), "column v of stream s must be INTEGER"),
        (with_column("t", pa.array([3, None], pa.int64())), "has 1 NULLs, the first in row 1"),
        (with_column("t", pa.array([3, 4], pa.timestamp("us"))), "column t of stream s must be BIGINT"),
        ([1, 2, 3], "takes a pyarrow Table or RecordBatch"),
        ({"t": [1]}, "takes a pyarrow Table or RecordBatch"),
    ],
)
def test_a_batch_that_does_not_fit(db: windrow.Database, table: Any, message: str) -> None:
    before = db.metrics()["streams"]["s"]
    with pytest.raises(windrow.InputError, match=message):
        db.push("s", table)
    assert db.metrics()["streams"]["s"] == before


@pytest.mark.parametrize(
    "table",
    [
        with_column("v", pa.array([1, 2], pa.int16())),
        with_column("v", pa.array([1, 2], pa.uint8())),
        with_column("k", pa.array(["a", "b"], pa.large_string())),
        with_column("k", pa.array(["a", "b"]).dictionary_encode()),
        with_column("k", pa.nulls(2)),
        GOOD.select(["v", "t", "k"]),
        GOOD.to_batches()[0],
        pa.concat_tables([GOOD.slice(0, 1), GOOD.slice(1)]),
        GOOD.slice(1),
        GOOD.slice(0, 0),
        SCHEMA.empty_table(),
    ],
)
def test_a_batch_that_fits(table: Any) -> None:
    db = windrow.connect()
    db.stream("s", SCHEMA, time="t")
    query = db.query("SELECT k, SUM(v) AS total FROM s [RANGE 10 SLIDE 5] GROUP BY k")
    db.push("s", table)
    db.finish()
    assert sum(query.answers().column("total").to_pylist()) == sum(table.column("v").to_pylist())


def test_nanoseconds_are_taken_when_nothing_is_lost() -> None:
    db = windrow.connect()
    db.execute("CREATE STREAM s (ts TIMESTAMP) TIME ts")
    db.push("s", pa.table({"ts": pa.array([1000], pa.timestamp("ns"))}))
    db.push("s", pa.table({"ts": pa.array([1000], pa.timestamp("ms", "UTC"))}))
    with pytest.raises(windrow.InputError, match="does not fit TIMESTAMP"):
        db.push("s", pa.table({"ts": pa.array([1_000_001_001], pa.timestamp("ns"))}))


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("SELECT SUM(v) FROM nowhere [RANGE 5 SLIDE 5]", windrow.BindError, "unknown stream or relation nowhere"),
        ("SELECT SUM(w) FROM s [RANGE 5 SLIDE 5]", windrow.BindError, "unknown column w"),
        ("SELECT SUMM(v) FROM s [RANGE 5 SLIDE 5]", windrow.BindError, "no function summ"),
        ("SELECT SUM(k) FROM s [RANGE 5 SLIDE 5]", windrow.BindError, "SUM needs a number, but s.k is VARCHAR"),
        ("SELECT SUM(v) FROM s [RANGE 5 SLIDE 0]", windrow.BindError, "SLIDE must be positive"),
        ("SELECT SUM(v) FROM s [RANGE 5 SLIDE -1]", windrow.BindError, "SLIDE must be positive"),
        ("SELECT SUM(v) FROM s [RANGE 5 SECONDS SLIDE 1]", windrow.BindError, "has a time unit"),
        ("SELECT SUM(MAX(v)) FROM s [RANGE 5 SLIDE 5]", windrow.BindError, "SUM of an aggregate"),
        ("SELECT SUM(v) FROM s [RANGE 5 SLIDE 5", windrow.SyntaxError, "Expected"),
        ("SELECT SUM(v FROM s [RANGE 5 SLIDE 5]", windrow.SyntaxError, "Expect"),
        ("", windrow.SyntaxError, "expected one statement"),
        ("SELECT FREQUENT(v, 3) FROM s [ROWS 5]", windrow.UnsupportedError, "runs over one window with SLIDE"),
        ("SELECT SUM(v) FROM s [ROWS 5 SLIDE 0]", windrow.BindError, "SLIDE must be a whole number of tuples"),
        ("SELECT SUM(v) FROM s [ROWS 5 SLIDE 1 SECOND]", windrow.SyntaxError, "Expected"),
        ("SELECT (SELECT 1) AS x, v FROM s [RANGE 5]", windrow.BindError, "no FROM"),
        (
            "SELECT v FROM s [RANGE 5] WHERE v > (SELECT MAX(u.v) FROM s [RANGE 5] AS u)",
            windrow.UnsupportedError,
            "a subquery can stand in FROM",
        ),
        (
            "SELECT v FROM s [RANGE 5] WHERE v = 1 OR v IN (SELECT u.v FROM s [NOW] AS u)",
            windrow.UnsupportedError,
            "line 1, column 42: .*not under OR. Write one SELECT for each side of the OR .* with UNION",
        ),
        (
            "SELECT v FROM s [RANGE 5] WHERE NOT (v = 1 AND EXISTS (SELECT u.v FROM s [NOW] AS u))",
            windrow.UnsupportedError,
            "not under the NOT of an AND, which is an OR",
        ),
        ("SELECT MEDIAN(k) FROM s [RANGE 5 SLIDE 5]", windrow.BindError, "MEDIAN needs a number"),
        ("SELECT QUANTILE(v, 2) FROM s [RANGE 5 SLIDE 5]", windrow.BindError, "a fraction between 0 and 1"),
        ("SELECT MODE(v, TRUE) FROM s [RANGE 5 SLIDE 5]", windrow.BindError, "MODE takes 1 argument, found 2"),
        ("SELECT MODE(DISTINCT v) FROM s [RANGE 5 SLIDE 5]", windrow.BindError, "DISTINCT is not defined for MODE"),
        (
            "SELECT a.v FROM s [RANGE 5 INTERNAL] a, s [ROWS 5] b WHERE a.k = b.k",
            windrow.UnsupportedError,
            "b is a ROWS window beside an INTERNAL one",
        ),
    ],
)
def test_a_query_that_cannot_be_registered(db: windrow.Database, text: str, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        db.query(text)
    assert [query.name for query in db.queries()] == ["witness"]


def test_a_query_that_fails_stops_alone(db: windrow.Database) -> None:
    bad = db.query("SELECT SUM(10 // (v - 5)) AS r FROM s [RANGE 10 SLIDE 5]", name="bad")
    also = db.query("SELECT k, MAX(v) AS m FROM s [RANGE 10 SLIDE 5] GROUP BY k", name="also")
    poisoned = GOOD.set_column(0, "t", pa.array([2, 2])).set_column(2, "v", pa.array([5, -5], pa.int32()))
    with pytest.raises(windrow.QueryError, match=r"query bad was stopped: .*//.*zero"):
        db.push("s", poisoned)
    assert (bad.status, also.status) == ("stopped", "running")
    assert bad.error is not None
    db.drop("bad")
    assert bad.status == "dropped"


def test_rows_that_where_drops_cannot_fail() -> None:
    db = windrow.connect()
    db.stream("s", SCHEMA, time="t")
    query = db.query("SELECT SUM(10 // v) AS r FROM s [RANGE 10 SLIDE 5] WHERE v <> 0")
    cased = db.query("SELECT SUM(CASE WHEN v <> 0 THEN 10 // v END) AS r FROM s [RANGE 10 SLIDE 5]")
    kept = db.query("SELECT SUM(10 // v) FILTER (WHERE v <> 0) AS r FROM s [RANGE 10 SLIDE 5]")
    db.push("s", GOOD.set_column(2, "v", pa.array([0, 3], pa.int32())))
    db.finish()
    assert query.answers().column("r").to_pylist() == [3]
    assert cased.answers().column("r").to_pylist() == [3]
    assert kept.answers().column("r").to_pylist() == [3]


def test_statements(db: windrow.Database) -> None:
    for text, error in [
        ("CREATE STREAM s (t BIGINT) TIME t", windrow.CatalogError),
        ("CREATE STREAM witness (t BIGINT) TIME t", windrow.CatalogError),
        ("CREATE STREAM u (t BIGINT) TIME x", windrow.BindError),
        ("CREATE STREAM u (t VARCHAR) TIME t", windrow.BindError),
        ("CREATE STREAM u (t BIGINT, T INT) TIME t", windrow.BindError),
        ("CREATE STREAM u (t BIGINT, _time INT) TIME t", windrow.BindError),
        ("CREATE STREAM u (t BIGINT) TIME t LATENESS -1", windrow.BindError),
        ("CREATE STREAM u (t BIGINT)", windrow.SyntaxError),
        ("CREATE STREAM u (t MONEY) TIME t", windrow.BindError),
        ("DROP STREAM s", windrow.StateError),
        ("DROP STREAM nowhere", windrow.CatalogError),
        ("DROP RELATION s", windrow.CatalogError),
        ("DROP QUERY nowhere", windrow.CatalogError),
        ("EXPLAIN nowhere", windrow.CatalogError),
        ("SELECT SUM(v) FROM s [RANGE 5 SLIDE 5]", windrow.SyntaxError),
        ("INSERT INTO s VALUES (1)", windrow.SyntaxError),
        ("CREATE TABLE x (a INT)", windrow.SyntaxError),
        ("SHOW TABLES", windrow.SyntaxError),
    ]:
        with pytest.raises(error):
            db.execute(text)
    assert db.execute("DROP QUERY IF EXISTS nowhere") is None
    assert db.execute("SHOW STREAMS").column("name").to_pylist() == ["s"]
    assert db.execute("SHOW QUERIES").column("status").to_pylist() == ["running"]
    with pytest.raises(windrow.CatalogError, match="no stream nowhere"):
        db.push("nowhere", GOOD)
    with pytest.raises(windrow.InputError, match="whole number"):
        db.advance("s", 1.5)  # type: ignore[arg-type]
