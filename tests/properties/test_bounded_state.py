"""Invariant 4: state grows with the window's contents, never with the length of the stream."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import windrow

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.int64()), ("s", pa.string()), ("v", pa.int32())])


def batch(start: int, count: int, keys: np.ndarray) -> pa.Table:
    return pa.table(
        [
            pa.array(np.arange(start, start + count)),
            pa.array(keys),
            pa.array([f"key-{key}" for key in keys]),
            pa.array(np.ones(count, np.int32)),
        ],
        schema=SCHEMA,
    )


@pytest.mark.parametrize("key", ["k", "s", "k, s", "k % 1000"])
def test_groups_that_left_every_window_are_purged(key: str) -> None:
    """Every key is new, so the live groups are those of the last window; ten times the stream, the same state."""
    db = windrow.connect()
    db.stream("s", SCHEMA, time="t")
    query = db.query(f"SELECT COUNT(*) AS n, MAX(v) AS m, MIN(s) AS f FROM s [RANGE 2000 SLIDE 500] GROUP BY {key}")
    sizes = []
    for step in range(60):
        start = step * 1000
        db.push("s", batch(start, 1000, np.arange(start, start + 1000)))
        assert query.take().num_rows or step < 2
        sizes.append(db.metrics()["streams"]["s"]["state_bytes"])
    assert max(sizes[30:]) <= 1.3 * max(sizes[5:15])


@pytest.mark.parametrize("value", ["k", "s"])
@pytest.mark.parametrize("key", ["", "k % 7", "k"])
def test_values_that_left_every_window_are_forgotten(value: str, key: str) -> None:
    """Every value is new; ten times the stream, the same counts, strings and indices."""
    db = windrow.connect()
    db.stream("s", SCHEMA, time="t")
    calls = f"COUNT(DISTINCT {value}) AS n, QUANTILE({value}, 0.5) AS q, TOP_K({value}, 3) AS f"
    query = db.query(f"SELECT {calls} FROM s [RANGE 2000 SLIDE 500]" + (f" GROUP BY {key}" if key else ""))
    sizes = []
    for step in range(60):
        start = step * 1000
        db.push("s", batch(start, 1000, np.arange(start, start + 1000)))
        assert query.take().num_rows or step < 2
        sizes.append(db.metrics()["streams"]["s"]["state_bytes"])
    assert max(sizes[30:]) <= 1.3 * max(sizes[5:15])


def test_answers_can_be_taken_away() -> None:
    db = windrow.connect()
    db.stream("s", SCHEMA, time="t")
    query = db.query("SELECT COUNT(*) AS n FROM s [RANGE 10 SLIDE 10]")
    total = 0
    for step in range(5):
        db.push("s", batch(step * 100, 100, np.zeros(100, np.int64)))
        total += query.take().num_rows
        assert query.answers().num_rows == 0
    db.finish()
    assert total + query.take().num_rows == 51
    assert query.metrics()["answers"] == 51


def test_tiny_answers_are_put_together() -> None:
    db = windrow.connect()
    db.stream("s", SCHEMA, time="t")
    query = db.query("SELECT COUNT(*) AS n FROM s [RANGE 10 SLIDE 1]")
    for step in range(1000):
        db.push("s", batch(step, 1, np.zeros(1, np.int64)))
    db.finish()
    answers = query.answers()
    assert answers.num_rows == 1000
    assert answers.column("_time").num_chunks < 130
    assert answers.column("n").to_pylist() == [min(step + 1, 10) for step in range(1000)]


def test_many_sparse_groups_do_not_cost_groups_times_panes() -> None:
    """200,000 keys that each occur once, over 1,000 panes: far below a dense matrix of 200 million cells."""
    db = windrow.connect()
    db.stream("s", SCHEMA, time="t")
    query = db.query("SELECT k, COUNT(*) AS n FROM s [RANGE 1000000 SLIDE 1000] GROUP BY k LIMIT 1")
    for step in range(20):
        start = step * 50_000
        ts = np.arange(start, start + 50_000, 5)
        table = pa.table(
            [pa.array(ts), pa.array(ts), pa.array(["x"] * len(ts)), pa.array(np.ones(len(ts), np.int32))], schema=SCHEMA
        )
        db.push("s", table)
    db.finish()
    assert query.answers().num_rows == 1001
    assert db.metrics()["streams"]["s"]["state_bytes"] < 100 * 2**20
