"""Summaries and aggregates of the user through Spark; and HyperLogLog sketches that Spark itself has built."""

from __future__ import annotations

from pathlib import Path

import datasketches
import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, lit

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


@pytest.mark.parametrize("many", [1, 5, 50_000])
def test_spark_reads_our_quantiles(spark: SparkSession, many: int) -> None:
    """Answers of KLL_SKETCH_AGG alone, merged with what Spark makes of other values, and merged by its aggregate."""
    db = windrow.connect()
    db.execute("CREATE STREAM s (t BIGINT, v DOUBLE) TIME t")
    query = db.query("SELECT KLL_SKETCH_AGG(v) AS kll FROM s [RANGE 20 SLIDE 20]")
    values = np.random.default_rng(many).permutation(many) + 0.5
    db.push("s", pa.table({"t": np.arange(many) % 20 + 1, "v": values}))
    db.finish()
    (ours,) = query.answers()["kll"].to_pylist()
    made = f"SELECT kll_sketch_agg_double(id + {many}.5D) AS sketch FROM range({many})"
    theirs = spark.sql(made).collect()[0]["sketch"]
    frame = spark.createDataFrame([(bytearray(ours), theirs)], "a BINARY, b BINARY")
    expected = {
        "kll_sketch_get_n_double(a)": many,
        "kll_sketch_get_n_double(kll_sketch_merge_double(a, b))": 2 * many,
        "kll_sketch_get_quantile_double(a, 0.25D)": many / 4,
        "kll_sketch_get_quantile_double(a, 1.0D)": many,
        "kll_sketch_get_rank_double(a, 0.5D)": 1 / many,
        "kll_sketch_get_quantile_double(kll_sketch_merge_double(a, b), 0.75D)": 1.5 * many,
        "kll_sketch_get_quantile_double(kll_sketch_merge_double(b, a), 0.25D)": many / 2,
    }
    found = frame.selectExpr(*expected).collect()[0]
    for (text, wanted), answer in zip(expected.items(), found, strict=True):
        tolerance = 0 if "get_n" in text else 0.02 if "rank" in text else max(0.04 * many, 1)
        assert abs(answer - wanted) <= tolerance, (text, answer)
    both = spark.createDataFrame([(bytearray(ours),), (theirs,)], "sketch BINARY")
    merged = both.selectExpr("kll_sketch_get_n_double(kll_merge_agg_double(sketch)) AS n").collect()[0]["n"]
    assert merged == 2 * many


@pytest.mark.parametrize("kind", ["BIGINT", "STRING"])
def test_spark_reads_our_frequent_items(spark: SparkSession, kind: str) -> None:
    """An answer of ITEMS_SKETCH_AGG in the state that `approx_top_k_accumulate` makes, alone and combined with it."""
    db = windrow.connect()
    db.execute(f"CREATE STREAM s (t BIGINT, v {kind}) TIME t")
    query = db.query("SELECT ITEMS_SKETCH_AGG(v) AS items FROM s [RANGE 20 SLIDE 20]")
    rng = np.random.default_rng(7)
    numbers = np.concatenate([np.repeat([5, 6, 7], [3000, 2000, 1000]), rng.integers(100, 10**9, 4000)])
    values = pa.array(numbers) if kind == "BIGINT" else pa.array(numbers.astype(str))
    db.push("s", pa.table({"t": np.arange(len(numbers)) % 20 + 1, "v": values}))
    db.finish()
    (ours,) = query.answers()["items"].to_pylist()
    made = f"SELECT approx_top_k_accumulate(CAST(5 AS {kind}), 1000) AS state FROM range(10)"
    # Behind the sketch Spark keeps the number of NULLs.
    state = spark.sql(made).withColumn("ours", lit(bytearray(ours + bytes(8))))
    state = state.select("state", col("state").withField("sketch", col("ours")).alias("ours"))
    (top,) = state.selectExpr("approx_top_k_estimate(ours, 3) AS top").collect()[0]
    bound = len(numbers) / 1024
    for one, item, count in zip(top, (5, 6, 7), (3000, 2000, 1000), strict=True):
        assert int(one["item"]) == item and abs(one["count"] - count) <= bound
    rows = state.selectExpr("state AS one").union(state.selectExpr("ours AS one"))
    (top,) = rows.selectExpr("approx_top_k_estimate(approx_top_k_combine(one, 1000), 1) AS top").collect()[0]
    assert int(top[0]["item"]) == 5 and abs(top[0]["count"] - 3010) <= 2 * len(numbers) / 256


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
    db.query("SELECT f, KLL_SKETCH_AGG(b, 8) AS v, ITEMS_SKETCH_AGG(s) AS w FROM s [RANGE 30 SLIDE 5] GROUP BY f")
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
