"""Spark's stream-stream join on the same tuples: equal keys, and timestamps less than a window apart.

That is all that comes into the answer of a two-way window join (ISTREAM); what leaves it Spark cannot tell. Both read
the same Parquet files, a file of each stream at a time, and count what comes out. Wall-clock seconds, as Spark works
with several threads and processes.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from time import perf_counter, sleep

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import windrow
from benchmarks.joins.floors import COLUMNS, JOIN, Input
from benchmarks.measure import table, verdict

SCHEMA = "t timestamp, k bigint, v bigint"


def run(quick: bool) -> dict[str, float]:
    """Input tuples per wall-clock second, by engine."""
    window, batch, batches = (10_000, 10_000, 2) if quick else (100_000, 100_000, 4)
    given = Input(window, batch, batches, keys=window)
    tuples = 2 * (window + batch * batches)
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    rates, rows = {}, {}
    try:
        with tempfile.TemporaryDirectory() as scratch:
            folders = _written(given, Path(scratch))
            _joined(spark, folders, window, Path(scratch) / "warm")
            began = perf_counter()
            rows["Spark"] = _joined(spark, folders, window, Path(scratch) / "run")
            rates["Spark"] = tuples / (perf_counter() - began)
            _own(folders, window)
            began = perf_counter()
            rows["Windrow"] = _own(folders, window)
            rates["Windrow"] = tuples / (perf_counter() - began)
    finally:
        spark.stop()
    assert rows["Spark"] == rows["Windrow"], f"results differ: {rows}"
    table(
        f"Stream-stream join, windows of {window:,} ticks, {tuples:,} tuples, {rows['Spark']:,} results",
        ["", "tuples per second"],
        [[name, rate] for name, rate in rates.items()],
    )
    ratio = rates["Windrow"] / rates["Spark"]
    verdict(f"Windrow in process is {ratio:.0f} x as fast as Spark's stream-stream join on one core", ratio > 1)
    return rates


def _written(given: Input, scratch: Path) -> dict[str, Path]:
    """A file per stream and batch, ticks as milliseconds."""
    folders = {}
    for name, tuples in given.tables.items():
        folder = folders[name] = scratch / name
        folder.mkdir()
        times = pa.array(tuples["t"].to_numpy() * 1000).cast(pa.timestamp("us", tz="UTC"))
        stamped = tuples.set_column(0, "t", times)
        for number, (since, upto) in enumerate(given.parts):
            pq.write_table(stamped.slice(since, upto - since), folder / f"part-{number:03}.parquet")
            sleep(0.02)  # Spark takes files in the order of their modification times
    return folders


def _joined(spark: SparkSession, folders: dict[str, Path], window: int, checkpoint: Path) -> int:
    sides = {
        name: spark.readStream.schema(SCHEMA)
        .option("maxFilesPerTrigger", 1)
        .parquet(str(folder))
        .withWatermark("t", "0 seconds")
        .alias(name)
        for name, folder in folders.items()
    }
    near = F.expr(
        f"a.k = b.k AND a.t > b.t - INTERVAL {window} MILLISECONDS AND a.t < b.t + INTERVAL {window} MILLISECONDS"
    )
    results = []

    def count(frame: DataFrame, _: int) -> None:
        results.append(frame.count())

    query = (
        sides["a"]
        .join(sides["b"], near)
        .select("a.k", "a.v", F.col("b.v").alias("w"))
        .writeStream.foreachBatch(count)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return sum(results)


def _own(folders: dict[str, Path], window: int) -> int:
    """The same files, read by PyArrow and pushed."""
    db = windrow.connect()
    for name in folders:
        db.execute(f"CREATE STREAM {name} {COLUMNS}")
    text = JOIN.replace("{w}", str(window)).replace("{s}", "")
    query = db.query(f"ISTREAM({text})")
    files = zip(*(sorted(folder.glob("*.parquet")) for folder in folders.values()), strict=True)
    rows = 0
    for pair in files:
        for name, file in zip(folders, pair, strict=True):
            stamped = pq.read_table(file)
            ticks = pa.array(stamped["t"].cast(pa.int64()).to_numpy() // 1000)
            db.push(name, stamped.set_column(0, "t", ticks))
        rows += query.take().num_rows
    db.finish()
    return rows + int(query.take().num_rows)
