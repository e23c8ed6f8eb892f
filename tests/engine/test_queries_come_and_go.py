"""Queries are added and dropped while data flow; a new one uses whatever state exists (thesis 8.2)."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow
from tests.random_queries import TICKS, queries, tables
from windrow.testing import Reference, assert_same, cut


@given(tables(), st.lists(queries(), min_size=1, max_size=6), st.integers(0, 2**32), st.data())
def test_against_the_reference(table: pa.Table, texts: list[str], seed: int, data: st.DataObject) -> None:
    """Whatever panes a query finds when it comes, its answers are exact from `since` on."""
    db = windrow.connect()
    db.stream("s", TICKS, time="t")
    registered: list[tuple[windrow.Query, int | None]] = []
    pushed: list[pa.Table] = []
    waiting = list(texts)
    for batch in cut(table, seed, 6):
        while waiting and data.draw(st.booleans(), label="register one now"):
            registered.append((db.query(waiting.pop()), db.metrics()["streams"]["s"]["watermark"]))
        if len(registered) > 1 and data.draw(st.integers(0, 4), label="drop one at 0") == 0:
            query, start = registered.pop(0)
            before = db.metrics()["streams"]["s"]["watermark"]
            db.drop(query.name)
            seen = pa.concat_tables([TICKS.empty_table(), *pushed])
            if before is not None:
                expected = Reference(query.bound, {"s": seen}, start=start, since=query.since, until=before).answers()
                assert_same(query.answers(), expected, absolute=1e-9)
        db.push("s", batch)
        pushed.append(batch)
    db.finish()
    for query, start in registered:
        expected = Reference(query.bound, {"s": table}, start=start, since=query.since).answers()
        assert_same(query.answers(), expected, absolute=1e-9)


def rows(*times: int) -> pa.Table:
    values = [pa.array(times, pa.int64())] + [pa.nulls(len(times), field.type) for field in list(TICKS)[1:]]
    return pa.table(values, schema=TICKS)


def test_a_new_query_finds_its_window_full() -> None:
    db = windrow.connect()
    db.stream("s", TICKS, time="t")
    db.query("SELECT COUNT(*) FROM s [RANGE 100 SLIDE 10]")
    db.push("s", rows(*range(1, 62)))
    late = db.query("SELECT COUNT(*) AS n FROM s [RANGE 50 SLIDE 10]")
    db.push("s", rows(*range(62, 81)))
    db.finish()
    assert late.since is None
    assert late.answers().to_pylist() == [{"_time": 70, "n": 50}, {"_time": 80, "n": 50}]


def test_a_longer_window_extends_the_panes() -> None:
    db = windrow.connect()
    db.stream("s", TICKS, time="t")
    db.query("SELECT COUNT(*) FROM s [RANGE 20 SLIDE 10]")
    db.push("s", rows(*range(1, 62)))
    late = db.query("SELECT COUNT(*) AS n FROM s [RANGE 50 SLIDE 10]")
    db.push("s", rows(*range(62, 111)))
    db.finish()
    assert late.since == 50  # the next window of the first query began there; older panes were gone
    assert late.answers().column("n").to_pylist() == [20, 30, 40, 50, 50]


def test_dropping_frees_the_state() -> None:
    db = windrow.connect()
    db.stream("s", TICKS, time="t")
    kept = db.query("SELECT COUNT(*) AS n FROM s [RANGE 20 SLIDE 10]", name="kept")
    db.query("SELECT a, COUNT(*) FROM s [RANGE 20 SLIDE 10] GROUP BY a", name="gone")
    db.push("s", rows(*range(1, 62)))
    before = db.metrics()["streams"]["s"]
    db.execute("DROP QUERY gone")
    after = db.metrics()["streams"]["s"]
    assert (before["slices"], after["slices"]) == (2, 1)
    assert after["state_bytes"] < before["state_bytes"]
    db.finish()
    assert kept.answers().num_rows == 7
    with pytest.raises(windrow.CatalogError, match="no query gone"):
        db.drop("gone")


def test_names_can_be_used_again() -> None:
    db = windrow.connect()
    db.stream("s", TICKS, time="t")
    db.query("SELECT COUNT(*) FROM s [RANGE 20 SLIDE 10]", name="q")
    with pytest.raises(windrow.CatalogError, match="already exists"):
        db.query("SELECT SUM(a) FROM s [RANGE 20 SLIDE 10]", name="Q")
    db.drop("q")
    db.query("SELECT SUM(a) FROM s [RANGE 20 SLIDE 10]", name="Q")
