"""Whatever Python hands over: a windrow.Error says what was expected and what was found, and nothing is ignored."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta, timezone, tzinfo
from threading import Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import windrow

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.int32())])
COUNT = "SELECT COUNT(*) AS n FROM s [RANGE 10 SLIDE 5]"
Call = Callable[[Any], Any]


@pytest.fixture
def db() -> windrow.Database:
    result = windrow.connect()
    result.stream("s", SCHEMA, time="t")
    result.execute("CREATE STREAM p (ts TIMESTAMP, v INT) TIME ts; CREATE RELATION r (a INT)")
    result.query(COUNT, name="keep")
    return result


def batch(*times: int, k: pa.Array | None = None) -> pa.Table:
    keys = pa.nulls(len(times), pa.string()) if k is None else k
    return pa.table({"t": pa.array(times, pa.int64()), "k": keys, "v": pa.array([1] * len(times), pa.int32())})


# ---- types ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda db: db.execute(None), "the script of execute: expected a str, found NoneType"),
        (lambda db: db.execute(5), "expected a str, found int"),
        (lambda db: db.execute(object()), "expected a str, found object"),
        (lambda db: db.execute([]), "expected a str, found list"),
        (lambda db: db.execute("SHOW \ud800"), "half a character .* at index 5"),
        (lambda db: db.query(None), "the text of a query: expected a str, found NoneType"),
        (lambda db: db.query(5), "expected a str, found int"),
        (lambda db: db.query(COUNT.encode()), "expected a str, found bytes"),
        (lambda db: db.query(COUNT, name=5), "the name of a query: expected a str, found int"),
        (lambda db: db.query(COUNT, name=[]), "expected a str, found list"),
        (lambda db: db.query(COUNT, name=b"x"), "expected a str, found bytes"),
        (lambda db: db.drop(None), "the name of a query: expected a str, found NoneType"),
        (lambda db: db.drop(5), "expected a str, found int"),
        (lambda db: db.push(None, batch(1)), "the name of a stream: expected a str, found NoneType"),
        (lambda db: db.push([], batch(1)), "expected a str, found list"),
        (lambda db: db.push("s", pa.array([1])), "stream s: expected a table, found Int64Array"),
        (lambda db: db.advance(5, 1), "the name of a stream: expected a str, found int"),
        (lambda db: db.advance("s", None), "expected a datetime or a whole number of ticks, found NoneType"),
        (lambda db: db.advance("s", True), "found bool"),
        (lambda db: db.advance("s", np.bool_(True)), "whole number of ticks, found bool"),
        (lambda db: db.advance("s", np.float64(1)), "whole number of ticks, found float64"),
        (lambda db: db.advance("s", datetime(2020, 1, 1)), "stream s counts BIGINT ticks"),
        (lambda db: db.late(None), "the name of a stream: expected a str, found NoneType"),
        (lambda db: db.late([]), "expected a str, found list"),
        (lambda db: db.stream(None, SCHEMA, time="t"), "the name of a stream: expected a str, found NoneType"),
        (lambda db: db.stream(5, SCHEMA, time="t"), "expected a str, found int"),
        (lambda db: db.stream("x", {}, time="t"), "stream x: expected a pyarrow.Schema or a Spark Data"),
        (lambda db: db.stream("x", SCHEMA, time=None), "time of stream x: expected a str, found NoneType"),
        (lambda db: db.stream("x", SCHEMA, time="t", sequence=5), "sequence of stream x: expected a str, found int"),
        (lambda db: db.stream("x", SCHEMA, time="t", lateness=None), "lateness: expected .* found NoneType"),
        (lambda db: db.stream("x", SCHEMA, time="t", lateness=True), "lateness: expected .* found bool"),
        (lambda db: db.stream("x", SCHEMA, time="t", lateness=1.0), "lateness: expected .* found float"),
        (lambda db: db.queries()[0].explain(5), "the format of explain: expected a str, found int"),
    ],
)  # fmt: skip
def test_wrong_types(db: windrow.Database, call: Call, message: str) -> None:
    with pytest.raises(windrow.InputError, match=message):
        call(db)
    assert [query.name for query in db.queries()] == ["keep"]
    assert db.execute("SHOW STREAMS").column("name").to_pylist() == ["s", "p"]


def test_the_time_of_advance(db: windrow.Database) -> None:
    db.advance("s", np.int32(7))
    assert db.metrics()["streams"]["s"]["watermark"] == 7
    db.advance("p", datetime(1970, 1, 1, 2, tzinfo=timezone(timedelta(hours=1))))
    assert db.metrics()["streams"]["p"]["watermark"] == 3_600_000_000
    db.advance("p", datetime.max.replace(tzinfo=timezone(timedelta(hours=-14))))
    last = (datetime.max - datetime(1970, 1, 1)) // timedelta(microseconds=1) + 14 * 3_600_000_000
    assert db.metrics()["streams"]["p"]["watermark"] == last


def test_a_zone_without_an_offset_is_none(db: windrow.Database) -> None:
    class Nowhere(tzinfo):
        def utcoffset(self, _: datetime | None) -> None:
            return None

    db.advance("p", datetime(1970, 1, 1, 1, tzinfo=Nowhere()))
    assert db.metrics()["streams"]["p"]["watermark"] == 3_600_000_000


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string()])
def test_text_that_is_no_utf8(db: windrow.Database, type_: pa.DataType) -> None:
    for bad in (b"\xff\xfe", "a\ud800".encode("utf-8", "surrogatepass")):
        values = pa.array([b"fine", None, bad], pa.large_binary() if type_ == pa.large_string() else pa.binary())
        text = pa.Array.from_buffers(type_, 3, values.buffers())
        for keys in (text, pa.DictionaryArray.from_arrays(pa.array([0, 2, 2]), text)):
            with pytest.raises(windrow.InputError, match=r"column k of stream s is not valid .*UTF8.* declare a BLOB"):
                db.push("s", batch(1, 2, 3, k=keys))
        db.push("s", batch(1, 2, k=text.slice(0, 2)))
    assert db.metrics()["streams"]["s"]["read"] == 4


# ---- names ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda db: db.stream("", SCHEMA, time="t"),
        lambda db: db.stream(" \t", SCHEMA, time="t"),
        lambda db: db.execute('CREATE STREAM "" (t BIGINT) TIME t'),
        lambda db: db.execute('CREATE RELATION " " (a INT)'),
        lambda db: db.execute(f'CREATE QUERY " " AS {COUNT}'),
        lambda db: db.query(COUNT, name=""),
        lambda db: db.stream("x", pa.schema([("t", pa.int64()), ("", pa.int64())]), time="t"),
        lambda db: db.execute('CREATE STREAM x (t BIGINT, " " INT) TIME t'),
        lambda db: db.execute('CREATE RELATION x ("" INT)'),
        lambda db: db.query(COUNT.replace("AS n", 'AS ""')),
    ],
)
def test_blank_names(db: windrow.Database, call: Call) -> None:
    with pytest.raises(windrow.Error, match="needs a name that is not blank, found '"):
        call(db)


@pytest.mark.parametrize(("name", "kind"), [("S", "stream"), ("R", "relation"), ("KEEP", "query")])
def test_one_space_of_names(db: windrow.Database, name: str, kind: str) -> None:
    for call in (
        lambda: db.stream(name, SCHEMA, time="t"),
        lambda: db.execute(f"CREATE STREAM {name} (t BIGINT) TIME t"),
        lambda: db.execute(f"CREATE RELATION {name} (a INT)"),
        lambda: db.execute(f"CREATE QUERY {name} AS {COUNT}"),
        lambda: db.query(COUNT, name=name),
    ):
        with pytest.raises(windrow.CatalogError, match=f"{kind} {name.lower()} already exists"):
            call()


def test_names_that_are_given_to_queries_are_free(db: windrow.Database) -> None:
    db.stream("Query_2", SCHEMA, time="t")
    db.execute("CREATE RELATION query_3 (a INT)")
    assert [db.query(COUNT).name for _ in range(2)] == ["query_4", "query_5"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda db: db.push("r", batch(1)), "r is a relation, not a stream"),
        (lambda db: db.late("R"), "r is a relation, not a stream"),
        (lambda db: db.advance("keep", 1), "keep is a query, not a stream"),
        (lambda db: db.drop("s"), "s is a stream, not a query"),
        (lambda db: db.execute("DROP STREAM r"), "r is a relation, not a stream"),
        (lambda db: db.execute("DROP RELATION s"), "s is a stream, not a relation"),
        (lambda db: db.execute("DROP QUERY IF EXISTS s"), "s is a stream, not a query"),
        (lambda db: db.execute("EXPLAIN r"), "r is a relation, not a query"),
        (lambda db: db.push("ss", batch(1)), "there is no stream ss; did you mean s?"),
    ],
)
def test_names_of_something_else(db: windrow.Database, call: Call, message: str) -> None:
    with pytest.raises(windrow.CatalogError) as caught:
        call(db)
    assert message in str(caught.value)


# ---- declarations ---------------------------------------------------------------------------------------------------


def test_lateness(db: windrow.Database) -> None:
    stamped = pa.schema([("ts", pa.timestamp("us"))])
    db.stream("a", SCHEMA, time="t", lateness=np.int64(2))
    db.stream("b", SCHEMA, time="t", lateness=2**61)
    db.stream("c", stamped, time="ts", lateness=timedelta(seconds=1.5))
    assert [db.catalog.get(name).lateness for name in "abc"] == [2, 2**61, 1_500_000]
    for schema, time, lateness, message in (
        (SCHEMA, "t", -1, "must not be negative"),
        (SCHEMA, "t", 2**61 + 1, "is too long; at most 2305843009213693952 ticks"),
        (SCHEMA, "t", timedelta(seconds=1), "the time column counts BIGINT ticks; give an int"),
        (stamped, "ts", timedelta(seconds=-1), "must not be negative"),
        (stamped, "ts", timedelta.max, "is too long"),
    ):
        with pytest.raises(windrow.BindError, match=message):
            db.stream("x", schema, time=time, lateness=lateness)


def test_a_failing_script_keeps_what_it_did(db: windrow.Database) -> None:
    with pytest.raises(windrow.CatalogError):
        db.execute("CREATE STREAM x (t BIGINT) TIME t; DROP STREAM nowhere; CREATE STREAM y (t BIGINT) TIME t")
    assert db.execute("SHOW STREAMS").column("name").to_pylist() == ["s", "p", "x"]


# ---- queries --------------------------------------------------------------------------------------------------------


def test_a_bare_query_has_a_place(db: windrow.Database) -> None:
    with pytest.raises(windrow.SyntaxError, match="line 2, column 3: a bare query is not registered"):
        db.execute(f"SHOW STREAMS;\n  {COUNT}")


def test_a_query_after_the_end(db: windrow.Database) -> None:
    db.finish()
    with pytest.raises(windrow.StateError, match=r"stream s has ended .* register queries before finish"):
        db.query(COUNT)
    with pytest.raises(windrow.StateError, match="query x would get no answers"):
        db.execute(f"CREATE QUERY x AS {COUNT}")
    assert [query.name for query in db.queries()] == ["keep"]
    assert "panes" in db.execute(f"EXPLAIN {COUNT}")


def test_explain_in_any_case_and_at_any_time(db: windrow.Database) -> None:
    query = db.query("SELECT SUM(10 // v) AS n FROM s [RANGE 10 SLIDE 5]", name="fails")
    kept = db.queries()[0]
    assert json.loads(query.explain("JSON")) == json.loads(query.explain("json"))
    with pytest.raises(windrow.BindError, match="EXPLAIN knows the formats text, json, mermaid; found xml"):
        query.explain("XML")
    with pytest.raises(windrow.QueryError):
        db.push("s", batch(1).set_column(2, "v", pa.array([0], pa.int32())))
    assert "status: stopped: " in query.explain() and "zero" in query.explain()
    assert db.execute("EXPLAIN fails") == query.explain()
    db.drop("fails")
    db.drop("keep")
    db.execute("DROP STREAM s")
    for one in (query, kept):
        assert one.explain().splitlines()[0].startswith("output")
        assert one.explain().endswith("status: dropped")
        assert json.loads(one.explain("json"))["notes"] == [{"topic": "status", "text": "dropped"}]


def test_comments_are_no_part_of_a_query(db: windrow.Database) -> None:
    query = db.query("SELECT k /* the key */, count(*) /* hi */ FROM s [RANGE 10 SLIDE 5] GROUP BY k -- end")
    grouped = db.query("SELECT v + 1 /* x */, count(*) FROM s [RANGE 10 SLIDE 5] GROUP BY v + 1 /* y */")
    assert query.answers().schema.names == ["_time", "k", "count(*)"]
    assert grouped.answers().schema.names == ["_time", "v + 1", "count(*)"]
    assert query.text.endswith("-- end")
    assert "2 queries use these panes" in db.query(COUNT.replace("COUNT(*)", "/* one */ COUNT(*)")).explain()


def test_several_threads_read_while_one_pushes(db: windrow.Database) -> None:
    query = db.queries()[0]
    stop, seen, errors = False, [0], []

    def read() -> None:
        try:
            while not stop:
                db.metrics()
                db.late("s")
                db.queries()
                seen[0] += query.take().num_rows
        except Exception as error:
            errors.append(error)

    reader = Thread(target=read)
    reader.start()
    for start in range(0, 2000, 10):
        db.push("s", batch(*range(start, start + 10)))
        db.execute(f"CREATE STREAM x{start} (t BIGINT) TIME t")
    db.finish()
    stop = True
    reader.join()
    assert errors == []
    assert seen[0] + query.take().num_rows == query.metrics()["answers"] == 401
