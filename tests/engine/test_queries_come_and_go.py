"""Queries are added and dropped while data flow; a new one uses whatever state exists (thesis 8.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow
from tests.come_and_go import check_queries_that_come_and_go
from tests.random_queries import TICKS, queries, tables

WINDOWS = st.tuples(
    st.sampled_from(["COUNT(*)", "SUM(a)", "MAX(b)", "MIN(s)", "MEDIAN(a)", "COUNT(DISTINCT s)", "TOP_K(s, 2)"]),
    st.sampled_from(["", "", "a"]),
    st.sampled_from([1, 2, 3, 5, 10, 20, 60]),
    st.sampled_from([1, 2, 3, 5, 10, 30]),
    st.sampled_from([0, 0, 3, 10]),
)


@st.composite
def similar(draw: Callable[..., Any]) -> str:
    """Queries of very few slices, so that they meet each other's panes."""
    call, key, length, slide, offset = draw(WINDOWS)
    window = f"[RANGE {length} SLIDE {slide}" + (f" OFFSET {offset}]" if offset else "]")
    return f"SELECT {key + ', ' if key else ''}{call} AS v FROM s {window}" + (f" GROUP BY {key}" if key else "")


@settings(max_examples=2 * settings().max_examples)
@given(
    tables(),
    st.lists(st.one_of(similar(), similar(), queries()), min_size=1, max_size=6),
    st.integers(0, 2**32),
    st.sampled_from([0, 0, 4, 30]),
    st.data(),
)
def test_against_the_reference(
    table: pa.Table, texts: list[str], seed: int, lateness: int, data: st.DataObject
) -> None:
    """Whatever panes a query finds when it comes, its answers are exact from `since` on."""
    db = windrow.connect()
    db.stream("s", TICKS, time="t", lateness=lateness)
    check_queries_that_come_and_go(db, table, texts, lateness, seed, data)


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
    assert late.since == 40  # the newest window of the first query began there; older panes were gone
    assert late.answers().column("n").to_pylist() == [30, 40, 50, 50, 50]


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


def test_refined_panes_lose_nothing_at_the_end() -> None:
    """The pane (0, 10] was open when a query with finer edges came."""
    db = windrow.connect()
    db.stream("s", TICKS, time="t")
    first = db.query("SELECT COUNT(*) AS n FROM s [RANGE 10 SLIDE 10]")
    db.push("s", rows(1))
    db.query("SELECT COUNT(*) AS n FROM s [RANGE 1 SLIDE 1]")
    db.push("s", rows(2))
    db.finish()
    assert first.answers().to_pylist() == [{"_time": 10, "n": 2}]


def test_a_query_that_the_panes_cover_only_from_some_edge_on() -> None:
    """The grid has the edges of the third query, but the first pane, which ends where the second came, had not."""
    db = windrow.connect()
    db.stream("s", TICKS, time="t")
    db.query("SELECT COUNT(*) AS n FROM s [RANGE 10 SLIDE 10]")
    db.push("s", rows(1))
    db.query("SELECT SUM(a) AS n FROM s [RANGE 10 SLIDE 1]")
    third = db.query("SELECT COUNT(*) AS n FROM s [RANGE 100 SLIDE 2]")
    assert third.since == 1
    db.push("s", rows(11, 13))
    db.finish()
    assert third.answers().to_pylist()[-3:] == [{"_time": 10, "n": 0}, {"_time": 12, "n": 1}, {"_time": 14, "n": 2}]


def test_a_new_aggregate_ignores_groups_from_before_it_came() -> None:
    db = windrow.connect()
    db.stream("s", TICKS, time="t")
    db.query("SELECT d, COUNT(*) AS n FROM s [RANGE 60 SLIDE 60] GROUP BY d")
    db.push("s", rows(1))
    db.query("SELECT d, COUNT(*) AS n FROM s [RANGE 10 SLIDE 10] GROUP BY d")
    late = db.query("SELECT d, MAX(t) AS m FROM s [RANGE 60 SLIDE 20] GROUP BY d")
    db.push("s", rows(65))
    db.advance("s", 80)
    assert late.since == 1
    assert late.answers().to_pylist() == [{"_time": 80, "d": None, "m": 65}]


def test_a_query_on_a_fresh_slice_is_answered_at_the_next_due_time() -> None:
    """From what came after it was registered, even in the middle of a pane."""
    db = windrow.connect()
    db.stream("s", TICKS, time="t")
    db.push("s", rows(1))
    query = db.query("SELECT COUNT(*) AS n FROM s [RANGE 100 SLIDE 100]")
    assert query.since == 1
    db.push("s", rows(5, 50))
    db.finish()
    assert query.answers().to_pylist() == [{"_time": 100, "n": 2}]


def test_names_can_be_used_again() -> None:
    db = windrow.connect()
    db.stream("s", TICKS, time="t")
    db.query("SELECT COUNT(*) FROM s [RANGE 20 SLIDE 10]", name="q")
    with pytest.raises(windrow.CatalogError, match="already exists"):
        db.query("SELECT SUM(a) FROM s [RANGE 20 SLIDE 10]", name="Q")
    db.drop("q")
    db.query("SELECT SUM(a) FROM s [RANGE 20 SLIDE 10]", name="Q")
