"""ROWS windows and one-time questions through Spark: the driver numbers what the workers bring."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import windrow
from tests.pipeline.files import TICKS_DDL, write_files
from tests.pipeline.test_spark_answers import TABLE, check, database
from windrow.language.binder import bind
from windrow.testing import Reference, assert_same, cut, shuffle_within

TEXTS = [
    "SELECT s, SUM(x) AS v, COUNT(*) AS n FROM s [ROWS 50 SLIDE 20] WHERE a > 2 GROUP BY s",
    "SELECT MAX(b) AS m FROM s [ROWS 10 SLIDE 7 OFFSET 3]",
    "SELECT s, SUM(a) AS v FROM s [PARTITION BY s ROWS 4 SLIDE 30] GROUP BY s",
    "SELECT COUNT(*) AS n FROM s [RANGE 20 SLIDE 5] WHERE a > 2",
]


@pytest.mark.parametrize("scan", ["arrow", "rows"])
def test_a_run_and_questions_after_it(spark: SparkSession, tmp_path: Path, scan: str) -> None:
    write_files(tmp_path / "in", cut(shuffle_within(TABLE, "t", 5, 1), 2, 5))
    db = database(spark, tmp_path / "in", f", scan '{scan}', maxFilesPerTrigger '2'", lateness=5)
    for text in TEXTS:
        db.query(text)
    summary = db.run()
    assert (summary.progress.rows, summary.progress.late) == (TABLE.num_rows, 0)
    check(db, TABLE)
    last = TABLE["t"].to_pylist()[-1]
    for text in ("SELECT SUM(b) AS v FROM s [ROWS 8]", "SELECT COUNT(*) AS n FROM s [RANGE 10] WHERE a > 2"):
        found = db.ask(text)
        (tau,) = found["_time"].to_pylist()
        assert tau == last if "ROWS" in text else tau >= last
        assert_same(found.drop_columns(["_time"]), Reference(bind(text, db.catalog), {"s": TABLE}).answer(tau))


def test_from_checkpoint_to_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    """Each micro-batch in a run of its own: the tuples that wait, the last rows and the numbers survive."""
    pieces = cut(TABLE, 4, 3)
    for number, piece in enumerate(pieces):
        write_files(tmp_path / "in", [piece], first=number)
        db = database(spark, tmp_path / "in")
        for place, text in enumerate(TEXTS):
            db.query(text, name=f"q{place}")
        db.run(checkpoint=tmp_path / "state", output=tmp_path / "out", finish=number == len(pieces) - 1)
    for query in db.queries():
        written = pa.parquet.read_table(tmp_path / "out" / query.name)
        assert_same(written, Reference(query.bound, {"s": TABLE}).answers(), absolute=1e-9)


def test_questions_while_a_run_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    db = windrow.connect(spark=spark)
    write_files(tmp_path / "in", [TABLE.slice(0, 300)])
    db.execute(f"CREATE STREAM s ({TICKS_DDL}) TIME t USING parquet OPTIONS (path '{tmp_path / 'in'}')")
    db.query("SELECT SUM(b) AS v FROM s [RANGE 20 SLIDE 5]")
    db.query("SELECT SUM(b) AS v FROM s [ROWS 20 SLIDE 5]")
    db.start(trigger="200 milliseconds")
    try:
        until = time.monotonic() + 60
        while db.metrics()["streams"]["s"]["read"] < 300 and time.monotonic() < until:
            time.sleep(0.05)
        mark = db.metrics()["streams"]["s"]["watermark"]
        (over_time,) = db.ask("SELECT SUM(b) AS v FROM s [RANGE 10]").to_pylist()
        (over_rows,) = db.ask("SELECT SUM(b) AS v FROM s [ROWS 6]").to_pylist()
    finally:
        db.stop()
    rows = [(t, b) for t, b in zip(TABLE["t"].to_pylist(), TABLE["b"].to_pylist(), strict=True) if t <= mark]
    tau = mark // 5 * 5
    assert over_time == {"_time": tau, "v": sum(b for t, b in rows if tau - 10 < t <= tau)}
    assert over_rows == {"_time": mark, "v": sum(b for _, b in rows[-6:])}
