"""A query that is dropped or stopped gives back what only it used: components, value columns, strings."""

from __future__ import annotations

import pyarrow as pa
import pytest

import windrow
from tests.engine.test_queries_come_and_go import rows
from tests.engine.test_snapshot import copy_of, one_stream
from tests.random_queries import TICKS


def kept(db: windrow.Database) -> list[tuple[str, int | None]]:
    """The components that the only slice keeps, with the columns of their values."""
    (part,) = db._engine.streams["s"].slices.values()
    assert part.group is not None
    assert len(part._values) == len({spec.column for spec in part.group.specs} - {None})
    return [(spec.component.name, spec.column) for spec in part.group.specs]


def test_a_dropped_query_frees_components_and_values() -> None:
    db = windrow.connect()
    one_stream()(db)
    window = "FROM s [RANGE 20 SLIDE 10] GROUP BY t"
    db.query(f"SELECT t, SUM(a) AS v, MIN(s) AS m {window}", name="first")
    last = db.query(f"SELECT t, MAX(b) AS w, AVG(a) AS v {window}", name="last")
    assert kept(db) == [("sum_ints", 0), ("count", 0), ("min_text", 1), ("count", 1), ("max", 2), ("count", 2)]
    ones = rows(*range(1, 60)).set_column(1, TICKS.field("a"), pa.array([1] * 59, pa.int32()))
    db.push("s", ones)
    before = db.metrics()["streams"]["s"]["state_bytes"]
    db.drop("first")
    assert kept(db) == [("max", 0), ("count", 0), ("sum_ints", 1), ("count", 1)]
    assert db.metrics()["streams"]["s"]["state_bytes"] < before
    again = db.query(f"SELECT t, SUM(a) AS v, MIN(s) AS m {window}", name="first")
    assert kept(db)[4:] == [("min_text", 2), ("count", 2)]
    assert again.since == 59, "what it forgot cannot come back, though SUM(a) was kept for the other"
    db.push("s", rows(65, 75))
    db.finish()
    assert last.answers().filter(pa.array([tau == 50 for tau in last.answers()["_time"].to_pylist()])).num_rows == 20
    assert again.answers().column("_time").to_pylist() == [70, 80, 80]


def test_queries_that_come_and_go_leave_nothing_behind() -> None:
    db = windrow.connect()
    one_stream()(db)
    db.query("SELECT COUNT(*) AS n FROM s [RANGE 20 SLIDE 10]")
    sizes = []
    for step in range(40):
        query = db.query(f"SELECT SUM(a + {step}) AS v, MAX(s) AS m FROM s [RANGE 20 SLIDE 10]")
        db.push("s", rows(*range(10 * step, 10 * step + 10)))
        db.drop(query.name)
        assert kept(db) == [("count_rows", None)]
        sizes.append(db.metrics()["streams"]["s"]["state_bytes"])
    assert max(sizes[20:]) <= max(sizes[:20])


def test_a_stopped_query_frees_what_only_it_used() -> None:
    db = windrow.connect()
    one_stream()(db)
    fine = db.query("SELECT MAX(b) AS v FROM s [RANGE 10 SLIDE 10]")
    bad = db.query("SELECT SUM(a) AS v, MIN(b * b) AS m FROM s [RANGE 10 SLIDE 10]")
    huge = rows(1, 2).set_column(2, TICKS.field("b"), pa.array([3, 2**62], pa.int64()))
    with pytest.raises(windrow.QueryError):
        db.push("s", huge)
    assert bad.status == "stopped"
    assert kept(db) == [("max", 0), ("count", 0)]
    copy = copy_of(db, one_stream())
    for one in (db, copy):
        one.finish()
    assert fine.answers().to_pylist() == copy.queries()[0].answers().to_pylist() == [{"_time": 10, "v": 2**62}]


def test_strings_are_freed_though_their_column_stays() -> None:
    db = windrow.connect()
    one_stream()(db)
    counted = db.query("SELECT a, COUNT(s) AS n FROM s [RANGE 20 SLIDE 10] GROUP BY a")
    db.query("SELECT a, MIN(s) AS m FROM s [RANGE 20 SLIDE 10] GROUP BY a", name="gone")
    names = pa.array([f"{i}" * 50 for i in range(30)])
    db.push("s", rows(*range(30)).set_column(4, TICKS.field("s"), names))
    before = db.metrics()["streams"]["s"]["state_bytes"]
    db.drop("gone")
    assert kept(db) == [("count", 0)]
    # At least the strings of the window that is still open, of up to 100 characters each.
    assert before - db.metrics()["streams"]["s"]["state_bytes"] > 10 * 100
    db.push("s", rows(*range(100, 200)))  # panes expire, which looks for dead groups and strings
    db.finish()
    assert counted.answers().column("n").to_pylist()[:5] == [1, 11, 20, 19, 9]


def test_what_stays_is_known_since_the_same_tick() -> None:
    """The second query came in the middle; when the first goes, its component does not get the first one's past."""
    db = windrow.connect()
    one_stream()(db)
    db.query("SELECT SUM(a) AS v FROM s [RANGE 100 SLIDE 10]", name="first")
    db.push("s", rows(*range(1, 36)))
    second = db.query("SELECT MAX(b) AS v FROM s [RANGE 100 SLIDE 10]")
    db.drop("first")
    third = db.query("SELECT MAX(b) AS v, COUNT(*) AS n FROM s [RANGE 100 SLIDE 20]")
    fourth = db.query("SELECT MAX(b) AS v FROM s [RANGE 100 SLIDE 20]")
    assert [query.since for query in (second, third, fourth)] == [35, 35, 35]
