"""Queries in the executors: shards under Spark's stateful operator give the answers of one engine in the driver."""

from __future__ import annotations

from pathlib import Path
from time import monotonic

import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

import windrow
from tests.pipeline.test_flows import QUERIES, TABLES, check, database, expected, write, write_files
from windrow.testing import assert_same

SHARDED = ("joined", "unmatched", "seen", "only_p", "live_counts", "last_of_each", "named")
"""The queries with an equi-key."""


def host_of(query: windrow.Query) -> str:
    """What EXPLAIN says of the place."""
    return next(line for line in query.explain().splitlines() if line.startswith("host"))


def test_every_kind_of_query(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, {"p": 4, "q": 3})
    with database(spark, tmp_path, ", maxFilesPerTrigger '1'") as db:
        for name, text in QUERIES.items():
            db.query(text, name=name)
        summary = db.run(shards=3)
        check(db)
        assert summary.progress.answers == sum(query.answers().num_rows for query in db.queries())
        for query in db.queries():
            if query.name == "panes":
                continue
            assert (query.name in SHARDED) == ("3 shards" in host_of(query)), query.explain()
            assert (query.name not in SHARDED) == ("the driver: " in host_of(query)), query.explain()
            assert query.metrics()["state_rows"] >= 0
        assert db.queries()[0].metrics()["state_rows"] > 0  # what the shards have told


def test_a_query_that_fails_in_a_shard_is_stopped_and_told(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, {"p": 3, "q": 3})
    with database(spark, tmp_path, ", maxFilesPerTrigger '1'") as db:
        good = db.query(QUERIES["joined"], name="good")
        bad = db.query(
            "SELECT x.a, CAST(y.s AS INT) AS v FROM p [RANGE 9] AS x, q [RANGE 9] AS y WHERE x.a = y.a", name="bad"
        )
        summary = db.run(checkpoint=tmp_path / "state", output=tmp_path / "out", shards=2)
        assert bad.status == "stopped" and "cannot be converted" in str(bad.error)
        assert summary.stopped.keys() == {"bad"}
        found = ds.dataset(tmp_path / "out" / "good", format="parquet").to_table()
        assert_same(found, expected(good))


def test_queries_come_and_go_and_the_run_goes_on_later(spark: SparkSession, tmp_path: Path) -> None:
    def declared() -> windrow.Database:
        db = database(spark, tmp_path, ", maxFilesPerTrigger '1'")
        db.query(QUERIES["joined"], name="joined")
        return db

    places = {"checkpoint": tmp_path / "state", "output": tmp_path / "out"}
    for name, table in TABLES.items():
        write_files(tmp_path / name, [table.slice(0, table.num_rows // 2)])
    db = declared()
    db.start("0 seconds", **places, shards=2)
    until = monotonic() + 60
    while db.metrics()["streams"]["p"]["read"] < 75 and monotonic() < until:
        db.wait(0.1)
    later = db.query(QUERIES["seen"], name="seen")
    assert "2 shards" in host_of(later)
    db.drop("seen")
    db.stop()
    for name, table in TABLES.items():
        write_files(tmp_path / name, [table.slice(table.num_rows // 2)], first=1)
    other = declared()
    with pytest.raises(windrow.SetupError, match="2 shards was, and 5 are asked for"):
        other.run(**places, shards=5)
    summary = other.run(**places)  # as many shards as before
    assert (summary.resumed, summary.afresh) == (("joined",), ())
    assert_same(ds.dataset(tmp_path / "out" / "joined", format="parquet").to_table(), expected(other.queries()[0]))


@pytest.mark.parametrize("shards", [-1, 2.0, True, 5000])
def test_how_many_shards_there_can_be(shards: int) -> None:
    with pytest.raises(windrow.SetupError, match="shards: expected a whole number from 0"):
        windrow.connect().run(shards=shards)
