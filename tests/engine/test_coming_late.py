"""Queries that come and go among others with coarser or finer panes: what they know, and what may be asked then."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow

LATENESS = 40
SLIDES = (3, 4, 5, 6, 10, 12, 30, 60)


def database(lateness: int = 0) -> windrow.Database:
    db = windrow.connect()
    db.execute(f"CREATE STREAM s (t BIGINT, v BIGINT) TIME t LATENESS {lateness}")
    return db


def push(db: windrow.Database, ticks: list[int]) -> None:
    db.push("s", pa.table({"t": np.array(ticks, np.int64), "v": np.array(ticks, np.int64) * 7 % 11}))


@pytest.mark.parametrize("old", ["MAX(v)", "COUNT(*)", "MEDIAN(v)"])
def test_a_query_does_not_wait_for_the_long_pane_of_another(old: str) -> None:
    db = database()
    hourly = db.query(f"SELECT {old} AS x FROM s [RANGE 7200 SLIDE 3600]")
    push(db, list(range(300)))
    query = db.query("SELECT COUNT(*) AS n, MAX(v) AS x, MEDIAN(v) AS m FROM s [RANGE 10 SLIDE 5]")
    push(db, list(range(300, 4000)))
    assert query.since == 299
    alone = database()
    push(alone, list(range(300)))
    same = alone.query(query.text)
    push(alone, list(range(300, 4000)))
    assert query.answers().equals(same.answers()) and query.answers()["n"][:3].to_pylist() == [1, 6, 10]
    whole = database()
    wanted = whole.query(hourly.text)
    push(whole, list(range(4000)))
    assert hourly.answers().equals(wanted.answers())


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("lateness", [0, 20])
@pytest.mark.parametrize("second", ["SUM(v) AS x FROM s [RANGE 60 SLIDE 60]", "SUM(v) AS x FROM s [RANGE 60 SLIDE 10]"])
def test_an_aggregate_that_comes_late_begins_as_it_would_alone(second: str, lateness: int, ties: bool) -> None:
    """Also if rows at or before that moment come later: they are in a pane of their own."""
    found = []
    for first in ("COUNT(*)", None):
        db = database(lateness)
        if first is not None:
            db.query(f"SELECT {first} AS m FROM s [RANGE 60 SLIDE 60]")
        push(db, list(range(62)))
        query = db.query(f"SELECT {second}")
        more = [61, 61] if ties else []
        push(db, [*more, *(range(50, 62) if lateness else ()), *range(62, 80)])
        for start in range(80, 400, 40):
            push(db, list(range(start, start + 40)))
        db.finish()
        found.append((query.since, query.answers().to_pylist()))
    assert found[0] == found[1] and found[0][0] == 61
    assert "panes of 60" in query.explain() or "panes of 10" in query.explain()


def test_rows_out_of_order_after_a_query_has_gone() -> None:
    db = database(LATENESS)
    db.query("SELECT COUNT(*) AS n FROM s [RANGE 60 SLIDE 5]", name="fine")
    db.query("SELECT COUNT(*) AS n FROM s [RANGE 60 SLIDE 60]", name="coarse")
    push(db, list(range(1, 100)))
    db.drop("fine")
    push(db, [65, 66, 67])  # they are in a pane up to 120, those before in panes of 5
    push(db, [121])
    for length in (5, 10, 60):  # not as of 80, which was an edge before
        assert db.ask(f"SELECT COUNT(*) AS n FROM s [RANGE {length}]").to_pylist() == [{"_time": 60, "n": length}]


@given(st.data())
def test_what_is_asked_is_right_whatever_came_and_went(data: st.DataObject) -> None:
    """Everything that is answered has exactly the rows of its window, also after the panes have changed."""
    db, newest, dropped = database(LATENESS), 0, False
    seen: list[int] = []
    since: dict[str, int] = {}
    for step in range(data.draw(st.integers(4, 14))):
        for turn in range(data.draw(st.integers(0, 2))):
            if since and data.draw(st.booleans()):
                gone = data.draw(st.sampled_from(sorted(since)))
                check(db, gone, seen, since.pop(gone))
                db.drop(gone)
                dropped = True
            else:
                slide = data.draw(st.sampled_from(SLIDES))
                length = slide * data.draw(st.integers(1, 5)) + data.draw(st.sampled_from((0, 0, 1)))
                text = f"SELECT COUNT(*) AS n, SUM(v) AS v FROM s [RANGE {length} SLIDE {slide}]"
                query = db.query(text, name=f"q{step}_{turn}")
                since[query.name] = -LATENESS if query.since is None else query.since
                # As alone, or at the end of one of its own panes, where others came and went while time stood still.
                assert query.since is None or query.since < newest + slide * (1 + step)
                assert query.since is None or dropped or query.since <= newest
        ticks = data.draw(st.lists(st.integers(newest - LATENESS, newest + 25), min_size=1, max_size=30))
        complete = newest - LATENESS - 1 if seen else -LATENESS - 1
        push(db, ticks)
        seen += [tick for tick in ticks if tick > complete]
        newest = max([*seen, newest])
        for length in data.draw(st.lists(st.integers(1, 130), max_size=3)):
            try:
                (row,) = db.ask(f"SELECT COUNT(*) AS n, SUM(v) AS v FROM s [RANGE {length}]").to_pylist()
            except windrow.CoverageError:
                continue
            inside = [tick * 7 % 11 for tick in seen if row["_time"] - length < tick <= row["_time"]]
            assert (row["n"], row["v"]) == (len(inside), sum(inside) if inside else None)
    for name, begin in since.items():
        check(db, name, seen, begin)


def check(db: windrow.Database, name: str, seen: list[int], since: int) -> None:
    """Every answer whose window the query knows."""
    (query,) = [one for one in db.queries() if one.name == name]
    length = int(query.text.split("RANGE ")[1].split()[0])
    for row in query.answers().to_pylist():
        tau = row["_time"]
        if tau - length >= since:
            assert row["n"] == sum(tau - length < tick <= tau for tick in seen), (query.text, tau)
