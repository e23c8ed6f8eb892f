"""The shards of a run, on Spark: one streaming query from the exchange through the stateful operator to the answers.

posts ─► Spark, by shard ─► transformWithStateInPandas (shard_worker.py) ─► foreachBatch ─► the host's sinks

Exactly once: Spark notes which posts belong to a micro-batch before it is run, and commits the state of the shards with
it. Run again after a crash it gives the same answers, and a sink writes the answers of one micro-batch once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from windrow.pipeline.callbacks import Callbacks
from windrow.pipeline.exchange import SPARK, Exchange
from windrow.pipeline.shard_worker import OUTPUT, ShardProcessor
from windrow.shards.shard import Answer

STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
"""The only one that knows several states for a key."""
COLUMNS = "shard int, post bigint, part int, kind string, data binary"
MOST_POSTS = 64
"""In one micro-batch: bounds what a worker holds at once."""
_numbers = count(1)

OnAnswers = Callable[[int, list[Answer]], None]


class ShardQuery:
    """Start it, drain it, stop it."""

    def __init__(self, spark: SparkSession, exchange: Exchange, on_answers: OnAnswers) -> None:
        self.exchange = exchange
        self._spark = spark
        self._on_answers = on_answers
        self._callbacks = Callbacks(spark)
        self._query: StreamingQuery | None = None

    def start(self) -> StreamingQuery:
        """Read the posts that are there, and those to come."""
        posts = (
            self._spark.readStream.schema(COLUMNS)
            .option("maxFilesPerTrigger", MOST_POSTS)
            .option("cleanSource", "delete")
            .parquet(self.exchange.posts.as_uri())
        )
        said = posts.groupBy("shard").transformWithStateInPandas(
            ShardProcessor(self.exchange.run), outputStructType=OUTPUT, outputMode="append", timeMode="none"
        )
        with self._settings(
            {
                "spark.sql.streaming.stateStore.providerClass": STATE_STORE,
                "spark.sql.shuffle.partitions": str(self.exchange.shards),
            }
        ):
            self._query = (
                said.writeStream.foreachBatch(self._take)
                .queryName(f"windrow shards {next(_numbers)}")
                .option("checkpointLocation", (self.exchange.path / SPARK).as_uri())
                .start()
            )
        return self._query

    @contextmanager
    def _settings(self, wanted: dict[str, str]) -> Iterator[None]:
        """A streaming query takes the settings of the session when it starts; the session may be the user's."""
        before = {key: self._spark.conf.get(key, None) for key in wanted}
        for key, value in wanted.items():
            self._spark.conf.set(key, value)
        try:
            yield
        finally:
            for key, known in before.items():
                if known is None:
                    self._spark.conf.unset(key)
                else:
                    self._spark.conf.set(key, known)

    def _take(self, frame: DataFrame, batch: int) -> None:
        self._callbacks.note()
        table = frame.toArrow()
        self._on_answers(batch, [Answer(**row) for row in table.to_pylist()])

    def drain(self) -> None:
        """Wait until all posts so far are answered."""
        if self._query is not None:
            self._query.processAllAvailable()

    def stop(self) -> None:
        """End the query; what it has not read is read by the next one."""
        query, self._query = self._query, None
        if query is not None:
            query.stop()
        self._callbacks.close()
