"""Watermarks, lateness, heartbeats and due times (design section 1)."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pytest

import windrow

SCHEMA = pa.schema([("t", pa.int64()), ("v", pa.int32())])


def rows(*times: int) -> pa.Table:
    return pa.table([pa.array(times, pa.int64()), pa.array([1] * len(times), pa.int32())], schema=SCHEMA)


def stream(lateness: int = 0) -> windrow.Database:
    db = windrow.connect()
    db.stream("s", SCHEMA, time="t", lateness=lateness)
    return db


def counts(query: windrow.Query) -> dict[int, Any]:
    return {row["_time"]: row["n"] for row in query.answers().to_pylist()}


def test_an_answer_is_due_once_the_watermark_reaches_it() -> None:
    db = stream()
    query = db.query("SELECT COUNT(*) AS n FROM s [RANGE 10 SLIDE 5]")
    db.push("s", rows(1, 5))
    assert counts(query) == {}  # ties at 5 may still come
    db.push("s", rows(5, 6))
    assert counts(query) == {5: 3}
    db.finish()
    assert counts(query) == {5: 3, 10: 4}


def test_every_tuple_is_in_at_least_one_answer() -> None:
    db = stream()
    query = db.query("SELECT COUNT(*) AS n FROM s [RANGE 5 SLIDE 5]")
    db.push("s", rows(1, 10, 11))
    db.finish()
    assert counts(query) == {5: 1, 10: 1, 15: 1}


def test_no_tuples_no_answers() -> None:
    db = stream()
    query = db.query("SELECT COUNT(*) AS n FROM s [RANGE 5 SLIDE 5]")
    db.push("s", rows())
    db.advance("s", 100)
    db.finish()
    assert counts(query) == {}


def test_heartbeat() -> None:
    db = stream()
    query = db.query("SELECT COUNT(*) AS n FROM s [RANGE 10 SLIDE 5]")
    db.push("s", rows(3))
    db.advance("s", 20)
    assert counts(query) == {5: 1, 10: 1, 15: 0, 20: 0}
    db.advance("s", 7)  # a watermark never goes back
    assert counts(query) == {5: 1, 10: 1, 15: 0, 20: 0}


def test_heartbeat_in_time() -> None:
    db = windrow.connect()
    db.execute("CREATE STREAM s (ts TIMESTAMP, v INT) TIME ts LATENESS 1 MINUTE")
    query = db.query("SELECT COUNT(*) AS n FROM s [RANGE 10 SECONDS SLIDE 5 SECONDS]")
    table = pa.table({"ts": pa.array([datetime(2024, 1, 1)], pa.timestamp("us")), "v": pa.array([1], pa.int32())})
    db.push("s", table)
    db.advance("s", datetime(2024, 1, 1, 0, 0, 10, tzinfo=timezone.utc))
    assert [row["n"] for row in query.answers().to_pylist()] == [1, 1, 0]


def test_late_rows_are_counted_and_kept() -> None:
    db = stream(lateness=3)
    query = db.query("SELECT COUNT(*) AS n FROM s [RANGE 100 SLIDE 10]")
    db.push("s", rows(20))  # the watermark is 20 - 3 - 1 = 16
    db.push("s", rows(17, 16, 5))
    db.finish()
    metrics = db.metrics()["streams"]["s"]
    assert (metrics["read"], metrics["late"]) == (4, 2)
    assert db.late("s", take=True).column("t").to_pylist() == [16, 5]
    assert db.late("s").num_rows == 0
    assert counts(query) == {20: 2}


def test_out_of_order_within_one_batch_is_never_late() -> None:
    db = stream()
    query = db.query("SELECT COUNT(*) AS n FROM s [RANGE 100 SLIDE 10]")
    db.push("s", rows(50, 1, 30))
    db.finish()
    assert db.metrics()["streams"]["s"]["late"] == 0
    assert counts(query) == {10: 1, 20: 1, 30: 2, 40: 2, 50: 3}


def test_after_the_end() -> None:
    db = stream()
    db.finish()
    with pytest.raises(windrow.StateError, match="has ended"):
        db.push("s", rows(1))
    with pytest.raises(windrow.StateError, match="has ended"):
        db.advance("s", 1)


def test_a_silence_of_years_costs_nothing() -> None:
    db = stream()
    query = db.query("SELECT v, COUNT(*) AS n FROM s [RANGE 10 SLIDE 1] GROUP BY v")
    db.push("s", rows(1, 10**15))
    db.finish()
    assert len(query.answers()) == 11
    assert query.metrics()["due"] == 10**15


def test_a_wrong_timestamp_is_refused_before_it_costs_anything() -> None:
    db = stream()
    query = db.query("SELECT COUNT(*) AS n FROM s [RANGE 10 SLIDE 1]")
    db.push("s", rows(1))
    with pytest.raises(windrow.InputError, match="is a timestamp wrong"):
        db.push("s", rows(2, 10**15))
    db.push("s", rows(2))
    db.finish()
    assert counts(query) == {1: 1, 2: 2}


@pytest.mark.parametrize("tick", [2**61 + 1, -(2**61) - 1, 2**63 - 1, -(2**63)])
def test_ticks_out_of_range(tick: int) -> None:
    db = stream()
    query = db.query("SELECT COUNT(*) AS n FROM s [RANGE 10 SLIDE 5]")
    with pytest.raises(windrow.InputError, match="out of range"):
        db.push("s", rows(1, tick))
    with pytest.raises(windrow.InputError, match="out of range"):
        db.advance("s", tick)
    db.push("s", rows(1))
    db.finish()
    assert counts(query) == {5: 1}


def test_a_wrong_timestamp_in_the_first_batch() -> None:
    db = stream()
    query = db.query("SELECT COUNT(*) AS n FROM s [RANGE 10 SLIDE 1]")
    with pytest.raises(windrow.InputError, match="is a timestamp wrong"):
        db.push("s", rows(1, 10**15))
    db.push("s", rows(5))
    db.finish()
    assert counts(query) == {5: 1}


def test_the_lateness_does_not_hide_a_wrong_timestamp() -> None:
    db = stream(lateness=2 * 10**15)
    db.query("SELECT COUNT(*) AS n FROM s [RANGE 10 SLIDE 1]")
    db.push("s", rows(1))
    with pytest.raises(windrow.InputError, match="is a timestamp wrong"):
        db.push("s", rows(10**15))
    db.finish()


def test_negative_and_extreme_timestamps() -> None:
    db = stream()
    query = db.query("SELECT v, COUNT(*) AS n FROM s [RANGE 10 SLIDE 5] GROUP BY v")
    db.push("s", rows(-(2**61), -7, 0, 2**61))
    db.finish()
    assert counts(query)[-5] == 1
    assert counts(query)[0] == 2
