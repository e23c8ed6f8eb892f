"""A small Spark for tests, on loopback, and streams read to their end with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import windrow
from tests.pipeline.shared_spark import shared_spark
from windrow.language.catalog import Stream, stream_from_node
from windrow.language.parse import parse_one
from windrow.plan.periodic import PeriodicAggregate


@contextmanager
def local_spark() -> Iterator[SparkSession]:
    """The session of this process."""
    yield shared_spark()


def declared(text: str) -> Stream:
    """The stream of a CREATE STREAM statement."""
    return stream_from_node(parse_one(text))


def plans(stream: str, *queries: str) -> list[PeriodicAggregate]:
    """The physical plans of queries over one declared stream."""
    db = windrow.connect()
    db.execute(stream)
    return [db.query(text).running.plan for text in queries]


def read_all(frame: DataFrame, checkpoint: Path) -> list[pa.Table]:
    """Every micro-batch of a streaming DataFrame until its source ends."""
    batches: list[pa.Table] = []
    query = (
        frame.writeStream.foreachBatch(lambda batch, _: batches.append(batch.toArrow()))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return batches
