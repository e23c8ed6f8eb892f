"""Summaries and aggregates of the user through Spark; and HyperLogLog sketches that Spark itself has built."""

from __future__ import annotations

from pathlib import Path

import datasketches
import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import windrow
from tests.pipeline.files import TICKS_DDL, write_files
from tests.pipeline.test_spark_answers import TABLE, check, database
from tests.user_aggregates import ALL, Spread
from windrow.kernels.hll import REGISTERS
from windrow.synopses import theta_format
from windrow.synopses.hll import MOST_COUPONS
from windrow.synopses.hll_format import coupons_to_bytes, from_bytes, registers_to_bytes
from windrow.synopses.value_hashes import coupons_of
from windrow.testing import assert_same, cut


@pytest.mark.parametrize("many", [5, 300, 50_000])
@pytest.mark.parametrize("kind", ["BIGINT", "STRING"])
def test_a_sketch_of_spark_is_one_of_ours(spark: SparkSession, kind: str, many: int) -> None:
    """hll_sketch_agg of Spark gives the coupons and registers that we give: they merge, both ways."""
    sql = f"SELECT hll_sketch_agg(CAST(id * 7919 AS {kind}), 12) AS sketch FROM range({many})"
    theirs = bytes(spark.sql(sql).collect()[0]["sketch"])
    numbers = np.arange(many) * 7919
    values = pa.array(numbers) if kind == "BIGINT" else pa.array(numbers.astype(str))
    coupons = np.unique(coupons_of(values))
    registers = np.zeros(REGISTERS, np.uint8)
    np.maximum.at(registers, coupons & (REGISTERS - 1), (coupons >> 26).astype(np.uint8))
    read = from_bytes(theirs)
    assert np.array_equal(read, registers if read.dtype == np.uint8 else coupons)
    ours = coupons_to_bytes(coupons) if len(coupons) <= MOST_COUPONS else registers_to_bytes(registers)
    union = datasketches.hll_union(12)
    for one in (theirs, ours):
        union.update(datasketches.hll_sketch.deserialize(one))
    assert abs(union.get_estimate() / many - 1) < 0.05
    back = spark.createDataFrame([(bytearray(ours), bytearray(theirs))], "ours BINARY, theirs BINARY")
    estimate = back.selectExpr("hll_sketch_estimate(hll_union(ours, theirs)) AS n").collect()[0]["n"]
    assert abs(estimate / many - 1) < 0.05


@pytest.mark.parametrize("many", [5, 50_000])
@pytest.mark.parametrize("kind", ["BIGINT", "STRING"])
def test_spark_reads_our_sketches(spark: SparkSession, kind: str, many: int) -> None:
    """Answers of THETA_SKETCH_AGG and HLL_SKETCH_AGG beside what Spark makes of the same and of other values."""
    db = windrow.connect()
    db.execute(f"CREATE STREAM s (t BIGINT, v {kind}) TIME t")
    query = db.query("SELECT THETA_SKETCH_AGG(v) AS theta, HLL_SKETCH_AGG(v) AS hll FROM s [RANGE 20 SLIDE 20]")
    numbers = np.arange(many) * 7919
    values = pa.array(numbers) if kind == "BIGINT" else pa.array(numbers.astype(str))
    db.push("s", pa.table({"t": np.arange(many) % 20 + 1, "v": values}))
    db.finish()
    (ours,) = query.answers().to_pylist()
    made = "SELECT theta_sketch_agg(v) AS b, hll_sketch_agg(v) AS h FROM (SELECT CAST(id * 7919 AS {}) AS v FROM {})"
    theirs = spark.sql(made.format(kind, f"range({many})")).collect()[0]
    shifted = spark.sql(made.format(kind, f"range({many // 2}, {many // 2 + many})")).collect()[0]
    if many <= 4096:
        mine, other = (theta_format.from_bytes(bytes(one)) for one in (ours["theta"], theirs["b"]))
        assert np.array_equal(mine[0], other[0]) and mine[1] == other[1]
    row = tuple(map(bytearray, (ours["theta"], theirs["b"], shifted["b"], ours["hll"], theirs["h"], shifted["h"])))
    frame = spark.createDataFrame([row], "a BINARY, b BINARY, c BINARY, g BINARY, h BINARY, i BINARY")
    half = many // 2
    expected = {
        "theta_sketch_estimate(a)": many,
        "theta_sketch_estimate(theta_union(a, b))": many,
        "theta_sketch_estimate(theta_union(a, c))": many + half,
        "theta_sketch_estimate(theta_intersection(a, c))": many - half,
        "theta_sketch_estimate(theta_difference(a, c))": half,
        "hll_sketch_estimate(g)": many,
        "hll_sketch_estimate(hll_union(g, h))": many,
        "hll_sketch_estimate(hll_union(g, i))": many + half,
    }
    found = frame.selectExpr(*expected).collect()[0]
    for (text, wanted), answer in zip(expected.items(), found, strict=True):
        assert abs(answer - wanted) <= (0.06 * many if many > 4096 else 0), text


@pytest.mark.parametrize("scan", ["arrow", "rows"])
def test_answers(spark: SparkSession, tmp_path: Path, scan: str) -> None:
    write_files(tmp_path, cut(TABLE, 3, 5))
    db = database(spark, tmp_path, f", scan '{scan}', maxFilesPerTrigger '2'", lateness=len(TABLE))
    db.query("SELECT a, FREQUENT(s, 2) AS f, APPROX_COUNT_DISTINCT(b) AS n FROM s [RANGE 40 SLIDE 10] GROUP BY a")
    db.query(
        "SELECT APPROX_QUANTILE(x, 0.9) AS q, APPROX_TOP_K(s, 2) AS t, APPROX_MEDIAN(b) AS m FROM s [RANGE 40 SLIDE 7]"
    )
    db.query("SELECT f, APPROX_FREQUENT(a, 3) AS v FROM s [RANGE 30 SLIDE 5] GROUP BY f")
    db.query("SELECT f, THETA_SKETCH_AGG(s, 4) AS v, HLL_SKETCH_AGG(x) AS w FROM s [RANGE 30 SLIDE 5] GROUP BY f")
    db.run()
    check(db, TABLE)


@pytest.mark.parametrize("scan", ["arrow", "rows"])
def test_user_aggregates(spark: SparkSession, tmp_path: Path, scan: str) -> None:
    write_files(tmp_path / "in", cut(TABLE, 3, 5))
    text = "SELECT a, GEOMEAN(x + 1) AS g, SPREAD(b) AS s FROM s [RANGE 40 SLIDE 10] GROUP BY a"
    db = database(spark, tmp_path / "in", f", scan '{scan}', maxFilesPerTrigger '2'", lateness=len(TABLE))
    here = windrow.connect()
    here.execute(f"CREATE STREAM s ({TICKS_DDL}) TIME t")
    for one in (db, here):
        for name, (implementation, returns) in ALL.items():
            one.aggregate(name, implementation, returns=returns)
    query, same = db.query(text, name="q"), here.query(text)
    db.run(checkpoint=tmp_path / "checkpoint")
    here.push("s", TABLE)
    here.finish()
    assert_same(query.answers(), same.answers(), tolerance=1e-9)
    again = database(spark, tmp_path / "in", f", scan '{scan}', maxFilesPerTrigger '2'", lateness=len(TABLE))
    for name, (implementation, returns) in ALL.items():
        again.aggregate(name, implementation, returns=returns)
    again.query(text, name="q")
    assert again.run(checkpoint=tmp_path / "checkpoint").ended


def test_a_class_that_workers_cannot_import_is_refused_at_the_start(spark: SparkSession, tmp_path: Path) -> None:
    class Local(Spread):
        pass

    write_files(tmp_path, [TABLE])
    db = database(spark, tmp_path)
    db.aggregate("LOCAL", Local)
    db.query("SELECT LOCAL(b) AS v FROM s [RANGE 40 SLIDE 10]")
    with pytest.raises(windrow.SetupError, match="which workers cannot import by that name"):
        db.run()
    assert db.metrics()["streams"]["s"]["read"] == 0
