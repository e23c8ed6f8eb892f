"""ROWS windows and state: snapshots at any moment, slicing elsewhere, and state that the windows bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow
from tests.engine.test_slicing_elsewhere import absorb
from tests.engine.test_snapshot import copy_of
from tests.oracle.test_rows_windows import crowded, rows_queries
from tests.random_queries import TICKS
from windrow.testing import assert_same, cut, shuffle_within


def declare(lateness: int) -> Any:
    return lambda db: db.stream("s", TICKS, time="t", lateness=lateness)


@given(
    crowded(),
    st.lists(rows_queries(), min_size=1, max_size=5),
    st.integers(0, 2**32),
    st.sampled_from([0, 0, 6, 60]),
    st.data(),
)
def test_snapshots_at_any_moment(
    table: pa.Table, texts: list[str], seed: int, lateness: int, data: st.DataObject
) -> None:
    """Restored again and again, with queries that come late, it goes on like the undisturbed one."""
    undisturbed = windrow.connect()
    declare(lateness)(undisturbed)
    disturbed = windrow.connect()
    declare(lateness)(disturbed)
    kept: dict[str, list[pa.Table]] = {}
    waiting = [(f"q{number}", text) for number, text in enumerate(texts)]
    for batch in cut(shuffle_within(table, "t", lateness, seed), seed, 6):
        while waiting and data.draw(st.booleans(), label="register one now"):
            name, text = waiting.pop()
            undisturbed.query(text, name=name)
            disturbed.query(text, name=name)
        for db in (undisturbed, disturbed):
            db.push("s", batch)
        if data.draw(st.booleans(), label="restart now"):
            for query in disturbed.queries():
                kept.setdefault(query.name, []).append(query.take())
            before = disturbed
            disturbed = copy_of(before, declare(lateness))
            assert {q.name: q.since for q in disturbed.queries()} == {q.name: q.since for q in before.queries()}
    for db in (undisturbed, disturbed):
        db.finish()
    for ours, theirs in zip(disturbed.queries(), undisturbed.queries(), strict=True):
        assert_same(pa.concat_tables([*kept.get(ours.name, []), ours.answers()]), theirs.answers(), absolute=1e-9)
        assert ours.metrics()["due"] == theirs.metrics()["due"]


def test_a_question_after_a_restart() -> None:
    db = windrow.connect()
    declare(0)(db)
    db.query("SELECT SUM(a) AS v FROM s [ROWS 5 SLIDE 2]", name="q0")
    db.query("SELECT SUM(a) AS v FROM s [PARTITION BY a ROWS 2 SLIDE 2]", name="q1")
    values = [pa.array(range(12), pa.int64()), pa.array([i % 3 for i in range(12)], pa.int32())]
    db.push("s", pa.table([*values, *(pa.nulls(12, field.type) for field in list(TICKS)[2:])], TICKS))
    copy = copy_of(db, declare(0))
    for window in ("ROWS 4", "PARTITION BY a ROWS 2"):
        text = f"SELECT a, COUNT(*) AS n FROM s [{window}] GROUP BY a ORDER BY a"
        assert copy.ask(text) == db.ask(text)
        assert copy.ask(text).num_rows == 3


@given(
    crowded(),
    st.lists(rows_queries(), min_size=1, max_size=3),
    st.integers(0, 2**32),
    st.integers(1, 4),
    st.booleans(),
)
def test_rows_that_workers_read(table: pa.Table, texts: list[str], seed: int, partitions: int, disorder: bool) -> None:
    """Workers cannot number tuples, and bring them; time windows beside them are sliced there as ever."""
    texts = [*texts, "SELECT a, COUNT(*) AS n FROM s [RANGE 9 SLIDE 4] WHERE f GROUP BY a"]
    pushed, absorbed = windrow.connect(), windrow.connect()
    for db in (pushed, absorbed):
        declare(0)(db)
        for text in texts:
            db.query(text)
    pieces = cut(table, seed, 4)
    for number, piece in enumerate(reversed(pieces) if disorder else pieces):
        pushed.push("s", piece)
        absorb(absorbed._engine, "s", cut(piece, seed + number, partitions))
    for db in (pushed, absorbed):
        db.finish()
    assert absorbed.late("s").num_rows == pushed.late("s").num_rows
    for ours, theirs in zip(absorbed.queries(), pushed.queries(), strict=True):
        assert_same(ours.answers(), theirs.answers(), absolute=1e-9)


def test_only_streams_with_rows_windows_bring_tuples() -> None:
    db = windrow.connect()
    declare(0)(db)
    db.query("SELECT COUNT(a) AS n FROM s [RANGE 9 SLIDE 4]")
    assert (db._engine.job("s").columns, db._engine.job("s").tuples) == (("t", "a"), False)
    counted = db.query("SELECT COUNT(a) AS n FROM s [ROWS 9 SLIDE 4]", name="counted")
    assert (db._engine.job("s").columns, db._engine.job("s").tuples) == (tuple(TICKS.names), True)
    db.drop(counted.name)
    assert not db._engine.job("s").tuples


SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.int64()), ("wide", pa.string())])


def batch(start: int, count: int) -> pa.Table:
    numbers = np.arange(start, start + count)
    return pa.table([numbers, numbers % 7, ["x" * 100] * count], SCHEMA)


@pytest.mark.parametrize("window", ["ROWS 2000 SLIDE 500", "PARTITION BY k ROWS 300 SLIDE 500", "ROWS 10 SLIDE 5000"])
def test_state_is_bounded_by_the_windows(window: str) -> None:
    """Ten times the stream, the same state; and columns that nobody reads are not kept."""
    db = windrow.connect()
    db.stream("s", SCHEMA, time="t", lateness=50)
    query = db.query(f"SELECT k, COUNT(*) AS n, MEDIAN(t) AS m FROM s [{window}] GROUP BY k")
    sizes = []
    for step in range(80):
        db.push("s", batch(step * 1000, 1000))
        query.take()
        sizes.append(db.metrics()["streams"]["s"]["state_bytes"])
    assert max(sizes[40:]) <= 1.3 * max(sizes[5:25])
    assert max(sizes) < 700_000
    numbering = db._engine.streams["s"].numbering
    assert numbering is not None
    assert len(numbering.waiting) == 51 and len(numbering.log) <= 4000


def test_one_huge_batch_is_not_kept_for_a_few_rows() -> None:
    db = windrow.connect()
    db.stream("s", SCHEMA, time="t")
    db.query("SELECT MAX(wide) AS w FROM s [ROWS 10 SLIDE 10]")
    db.push("s", batch(0, 50_000))
    assert db.metrics()["streams"]["s"]["state_bytes"] < 50_000


def test_dropping_frees_the_rows() -> None:
    db = windrow.connect()
    db.stream("s", SCHEMA, time="t")
    names = [
        db.query(f"SELECT SUM(k) AS v FROM s [{w}]").name for w in ("ROWS 500 SLIDE 5", "PARTITION BY t ROWS 5 SLIDE 9")
    ]
    db.push("s", batch(0, 5000))
    assert db.metrics()["streams"]["s"]["slices"] == 1
    for name in names:
        db.drop(name)
    metrics = db.metrics()["streams"]["s"]
    assert (metrics["slices"], metrics["state_bytes"]) == (0, 0)
    db.push("s", batch(5000, 100))
    late = db.query("SELECT COUNT(*) AS n FROM s [ROWS 3 SLIDE 2]")
    db.push("s", batch(5100, 5))
    db.finish()
    assert late.since == 5099
    assert late.answers().to_pylist() == [{"_time": 5101, "n": 2}, {"_time": 5103, "n": 3}, {"_time": 5104, "n": 3}]
