"""ROWS windows against the reference: random windows over ties, with late queries, cuts, and the end of the input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow
from tests.come_and_go import check_queries_that_come_and_go
from tests.random_queries import TICKS, tables
from windrow.testing import Reference, assert_same, cut, shuffle_within

CALLS = [
    "COUNT(*)",
    "SUM(a)",
    "MAX(x)",
    "MIN(s)",
    "AVG(a)",
    "COUNT(DISTINCT s)",
    "MEDIAN(a)",
    "SUM(a) FILTER (WHERE f)",
]


@st.composite
def rows_windows(draw: Callable[..., Any], *, slide: bool = True) -> str:
    """Windows that count tuples, of all of the stream or of each key."""
    keys = draw(st.sampled_from(["", "", "", "a", "s", "f, a", "x", "t", "d, b"]))
    parts = [f"PARTITION BY {keys}" if keys else "", f"ROWS {draw(st.integers(1, 25))}"]
    parts += [f"SLIDE {draw(st.integers(1, 12))}"] if slide else []
    offset = draw(st.sampled_from([0, 0, 0, 1, 7, 30]))
    parts += [f"OFFSET {offset}"] if offset else []
    return f"[{' '.join(parts).strip()}]"


@st.composite
def rows_queries(draw: Callable[..., Any], *, slide: bool = True) -> str:
    """Few predicates and groupings, so that queries meet in one slice."""
    key = draw(st.sampled_from(["", "", "a", "s", "a % 2"]))
    calls = draw(st.lists(st.sampled_from(CALLS), min_size=1, max_size=3))
    parts = [f"{key} AS k"] * bool(key) + [f"{call} AS v{i}" for i, call in enumerate(calls)]
    where = draw(st.sampled_from(["", "", "WHERE a > 0", "WHERE f"]))
    text = f"SELECT {', '.join(parts)} FROM s {draw(rows_windows(slide=slide))} {where}"
    if key:
        text += f" GROUP BY {key} {draw(st.sampled_from(['', '', 'HAVING COUNT(*) > 1']))}"
        text += draw(st.sampled_from(["", "", " ORDER BY v0 DESC LIMIT 2"]))
    return " ".join(text.split())


def database(lateness: int = 0, sequence: str | None = None) -> windrow.Database:
    db = windrow.connect()
    db.stream("s", TICKS, time="t", lateness=lateness, sequence=sequence)
    return db


def crowded(most: int = 40) -> st.SearchStrategy[pa.Table]:
    """Few instants, so that many tuples tie."""
    return st.one_of(tables(most), tables(most, span=8))


@given(
    crowded(),
    st.lists(rows_queries(), min_size=1, max_size=4),
    st.integers(0, 2**32),
    st.integers(1, 6),
    st.sampled_from([0, 0, 5, 60]),
    st.sampled_from([None, None, "b", "x"]),
)
def test_random_windows_in_any_cuts(
    table: pa.Table, texts: list[str], seed: int, pieces: int, lateness: int, sequence: str | None
) -> None:
    db = database(lateness, sequence)
    handles = [db.query(text) for text in texts]
    for batch in cut(shuffle_within(table, "t", lateness, seed), seed, pieces):
        db.push("s", batch)
    db.finish()
    assert db.metrics()["streams"]["s"]["late"] == 0
    for query in handles:
        expected = Reference(query.bound, {"s": table}).answers()
        assert_same(query.answers(), expected, ordered="ORDER BY" in query.text, absolute=1e-9)
        assert query.metrics()["due"] == len(Reference(query.bound, {"s": table}).due_times())


@given(crowded(), st.lists(rows_queries(), min_size=2, max_size=6), st.integers(0, 2**32), st.data())
def test_queries_that_come_and_go(table: pa.Table, texts: list[str], seed: int, data: st.DataObject) -> None:
    """A query counts from the first tuple after `since`, which it says."""
    lateness = data.draw(st.sampled_from([0, 0, 6]))
    check_queries_that_come_and_go(database(lateness), table, texts, lateness, seed, data)


#          ts   1   2   2   4   6   6   6   9
#          a    1   2   3   4   5   6   7   8
#   ROWS 3 SLIDE 2  ├───┤       ├───────┤   │   at 2, 4, 6 (of tuples 6 and 8 only … 6), and at the end
SMALL = pa.table({"t": [1, 2, 2, 4, 6, 6, 6, 9], "a": [1, 2, 3, 4, 5, 6, 7, 8]})


def sums(*windows: str, table: pa.Table = SMALL, finish: bool = True) -> list[list[tuple[int, int]]]:
    db = windrow.connect()
    db.stream("s", table.schema, time="t")
    handles = [db.query(f"SELECT SUM(a) AS v FROM s [{window}]") for window in windows]
    db.push("s", table)
    if finish:
        db.finish()
    return [[(row["_time"], row["v"]) for row in query.answers().to_pylist()] for query in handles]


def test_one_instant_brings_several_slides_and_one_answer() -> None:
    ((*found,),) = sums("ROWS 3 SLIDE 1")
    assert found == [(1, 1), (2, 6), (4, 9), (6, 18), (9, 21)]


def test_the_rest_waits_for_the_end_of_the_input() -> None:
    assert sums("ROWS 3 SLIDE 3", finish=False) == [[(2, 6), (6, 15)]]
    assert sums("ROWS 3 SLIDE 3") == [[(2, 6), (6, 15), (9, 21)]]
    assert sums("ROWS 2 SLIDE 8 OFFSET 1", "ROWS 100 SLIDE 100") == [[(9, 13)], [(9, 36)]]


def test_where_applies_after_the_window() -> None:
    db = windrow.connect()
    db.stream("s", SMALL.schema, time="t")
    query = db.query("SELECT COUNT(*) AS n FROM s [ROWS 4 SLIDE 4] WHERE a % 2 = 0")
    db.push("s", SMALL)
    db.finish()
    assert query.answers().column("n").to_pylist() == [2, 2]


def test_a_heartbeat_before_the_end_does_not_answer_an_instant_twice() -> None:
    db = windrow.connect()
    db.stream("s", SMALL.schema, time="t")
    query = db.query("SELECT SUM(a) AS v FROM s [ROWS 2 SLIDE 2]")
    db.push("s", SMALL.slice(0, 7))
    db.advance("s", 50)
    assert query.answers().to_pylist()[-1] == {"_time": 6, "v": 11}
    db.finish()
    assert query.answers().to_pylist()[-2:] == [{"_time": 6, "v": 11}, {"_time": 7, "v": 13}]


def test_late_tuples_have_no_number() -> None:
    db = windrow.connect()
    db.stream("s", SMALL.schema, time="t")
    query = db.query("SELECT SUM(a) AS v FROM s [ROWS 2 SLIDE 2]")
    db.push("s", SMALL.slice(3, 4))
    db.push("s", SMALL.slice(0, 3))
    db.push("s", SMALL.slice(7))
    db.finish()
    assert db.late("s").num_rows == 3
    kept = SMALL.slice(3)
    assert_same(query.answers(), Reference(query.bound, {"s": kept}).answers())


def test_a_value_that_fails_stops_its_query_only() -> None:
    db = windrow.connect()
    db.stream("s", SMALL.schema, time="t")
    windows = ("ROWS 2 SLIDE 2", "PARTITION BY t ROWS 3 SLIDE 2")
    bad = [db.query(f"SELECT SUM(10 // (a - 5)) AS v FROM s [{window}]") for window in windows]
    good = [db.query(f"SELECT SUM(a) AS v FROM s [{window}]") for window in windows]
    with pytest.raises(windrow.QueryError, match=r"query_1 was stopped.*query_2 was stopped"):
        db.push("s", SMALL)
    db.finish()
    assert [query.status for query in (*bad, *good)] == ["stopped", "stopped", "running", "running"]
    for query in good:
        assert_same(query.answers(), Reference(query.bound, {"s": SMALL}).answers())


@pytest.mark.parametrize(
    "text",
    [
        "SELECT DISTINCT a FROM s [ROWS 3 SLIDE 2]",
        "RSTREAM(SELECT SUM(a) AS v FROM s [ROWS 3 SLIDE 2])",
        "SELECT a, COUNT(*) AS n FROM s [ROWS 5 SLIDE 2 INTERNAL] GROUP BY a HAVING COUNT(*) > 0 ORDER BY a LIMIT 2",
        "SELECT COUNT(*) AS n FROM s [ROWS 1 SLIDE 3] WHERE NULL",
        "SELECT COUNT(*) AS n, SUM(a) AS v FROM s [PARTITION BY t ROWS 1 SLIDE 2 OFFSET 1]",
        "SELECT a % 2 AS k, MEDIAN(a) AS m, MAX(t) AS u FROM s [PARTITION BY a ROWS 2 SLIDE 3] GROUP BY 1",
    ],
)
def test_each_kind_of_query(text: str) -> None:
    db = windrow.connect()
    db.stream("s", SMALL.schema, time="t")
    query = db.query(text)
    for row in range(len(SMALL)):
        db.push("s", SMALL.slice(row, 1))
    db.finish()
    expected = Reference(query.bound, {"s": SMALL}).answers()
    assert expected.num_rows
    assert_same(query.answers(), expected, ordered="ORDER BY" in text)


def test_timestamps() -> None:
    db = windrow.connect()
    db.execute("CREATE STREAM s (ts TIMESTAMP, a BIGINT) TIME ts")
    query = db.query("SELECT SUM(a) AS v FROM s [ROWS 2 SLIDE 2]")
    table = pa.table({"ts": pa.array([10, 20, 30], pa.timestamp("us")), "a": [1, 2, 3]})
    db.push("s", table)
    db.finish()
    assert_same(query.answers(), Reference(query.bound, {"s": table}).answers())


def test_explain_says_that_panes_are_counted_in_rows() -> None:
    db = database()
    first = db.query("SELECT SUM(a) AS v FROM s [ROWS 30 SLIDE 10]", name="first")
    db.query("SELECT MAX(a) AS v FROM s [ROWS 20 SLIDE 5]", name="second")
    text = first.explain()
    assert "output  every 10 tuples" in text
    assert "panes: panes of 5 rows, one pass" in text
    assert "rows: a row gets its number when the watermark passes it" in text and "the last 30 rows are kept" in text
    assert "2 queries use these panes (rule SS1): first, second" in text
    keyed = db.query("SELECT SUM(a) AS v FROM s [PARTITION BY s ROWS 3 SLIDE 2 OFFSET 1]").explain()
    assert "panes: none: the last 4 rows of each (s) are kept, and evaluated when 2 rows came" in keyed
    assert "panes of 1 row," in db.execute("EXPLAIN SELECT COUNT(*) FROM s [ROWS 3 SLIDE 2] GROUP BY a")


@pytest.mark.parametrize("window", ["PARTITION BY a ROWS 2 SLIDE 2", "ROWS 3 SLIDE 2", "ROWS 3 SLIDE 100"])
def test_the_time_it_takes_is_measured(window: str) -> None:
    """Also where windows are evaluated from their contents: of each key, and at the end of the input."""
    db = windrow.connect()
    db.stream("s", SMALL.schema, time="t")
    query = db.query(f"SELECT SUM(a) AS v FROM s [{window}]")
    assert query.metrics()["seconds"] == 0
    db.push("s", SMALL)
    db.finish()
    assert query.answers().num_rows and query.metrics()["seconds"] > 0
