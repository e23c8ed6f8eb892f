"""What Spark does by itself with the same files: read them into its noop sink, and its own sliding window()."""

from __future__ import annotations

import tempfile
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.many_queries.workload import SCHEMA

SPARK_SCHEMA = "ts timestamp_ntz, src int, dst int, proto int, port int, length int"
RANGE, SLIDE = "100 seconds", "1 second"


def read_as_stream(spark: SparkSession, path: Path, files_per_batch: int) -> int:
    """The floor: Structured Streaming reads all columns of all files and throws them away."""
    with tempfile.TemporaryDirectory() as scratch:
        query = (
            spark.readStream.schema(SPARK_SCHEMA)
            .option("maxFilesPerTrigger", files_per_batch)
            .parquet(str(path))
            .writeStream.format("noop")
            .option("checkpointLocation", scratch)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    return 0


def read_as_batch(spark: SparkSession, path: Path) -> int:
    """The same without streaming."""
    spark.read.schema(SPARK_SCHEMA).parquet(str(path)).write.format("noop").mode("overwrite").save()
    return 0


def sliding_window(spark: SparkSession, path: Path) -> DataFrame:
    """SUM, COUNT and MAX per source over RANGE 100 s SLIDE 1 s, as a batch job: Spark's best case.

    Spark's windows are [start, end), ours (start, end]: one microsecond less makes them the same.
    """
    frame = spark.read.schema(SPARK_SCHEMA).parquet(str(path))
    shifted = F.expr("ts - INTERVAL 1 MICROSECOND")
    return (
        frame.groupBy(F.window(shifted, RANGE, SLIDE).alias("w"), "src")
        .agg(F.sum("length").alias("total"), F.count("*").alias("n"), F.max("length").alias("most"))
        .select(F.col("w.end").alias("_time"), "src", "total", "n", "most")
    )


OWN_QUERY = (
    "SELECT src, SUM(length) AS total, COUNT(*) AS n, MAX(length) AS most "
    "FROM packets [RANGE 100 SECONDS SLIDE 1 SECOND] GROUP BY src"
)
"""Windrow's text for the same question."""

assert [field.name for field in SCHEMA] == [part.split()[0] for part in SPARK_SCHEMA.split(", ")]
