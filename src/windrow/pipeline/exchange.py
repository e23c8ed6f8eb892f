"""The way to the shards: a directory with a file for each post, which Spark reads as a stream.

    shards.json                     how many shards there are, and the key under which Spark knows each of them
    posts/000000000012.parquet      post 12: rows of (shard, post, part, kind, data)
    taken                           all posts up to this one are answered, and the answers are where they belong
    spark/                          what Spark notes: which posts were read, and the state of the shards

A post that is written again after a crash is the same as before, because the journal gives the same posts again; so one
that is there, or was taken, is left alone.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from windrow.errors import CheckpointError
from windrow.pipeline import durable

SETTINGS, POSTS, TAKEN, SPARK = "shards.json", "posts", "taken", "spark"
CANDIDATES = 64
"""Keys that are tried for each shard."""


class Exchange:
    """One directory. The number of its shards never changes: their state is dealt by it."""

    def __init__(self, path: Path, run: str, keys: list[int]) -> None:
        self.path = path
        self.run = run
        """Tells these shards from all others, in the memory of a worker."""
        self._keys = keys

    @classmethod
    def open(cls, spark: SparkSession, path: Path, shards: int) -> Exchange:
        """The exchange of a directory, made if it is not there."""
        settings = path / SETTINGS
        if not settings.exists():
            durable.make_directory(path / POSTS)
            made = {"run": uuid4().hex, "keys": _keys(spark, shards)}
            durable.write_file(settings, [json.dumps(made).encode()])
        found = json.loads(settings.read_text())
        if len(found["keys"]) != shards:
            raise CheckpointError(
                f"{path} has the state of {len(found['keys'])} shards, and {shards} are asked for; go on with "
                f"{len(found['keys'])}, or start afresh with another checkpoint"
            )
        durable.remove(durable.leftovers(path / POSTS))
        for post in (path / POSTS).iterdir():
            # Spark passes over files that are much older than the newest one, however long the run was interrupted.
            os.utime(post)
        return cls(path, found["run"], found["keys"])

    @property
    def shards(self) -> int:
        """How many."""
        return len(self._keys)

    @property
    def posts(self) -> Path:
        """The directory that Spark reads."""
        return self.path / POSTS

    @property
    def taken(self) -> int:
        """The last post whose answers are where they belong."""
        try:
            return int((self.path / TAKEN).read_text())
        except FileNotFoundError:
            return -1

    def put(self, rows: pa.Table) -> None:
        """Post these rows, unless that was done before a crash."""
        number = rows.column("post")[0].as_py()
        file = self.posts / f"{number:012}.parquet"
        if number <= self.taken or file.exists():
            return
        keys = pa.array(self._keys, pa.int32()).take(rows.column("shard").combine_chunks())
        sink = pa.BufferOutputStream()
        pq.write_table(rows.set_column(0, "shard", keys), sink, compression="none")
        durable.write_file(file, [memoryview(sink.getvalue())])

    def note_taken(self, post: int) -> None:
        """All posts up to this one are done with."""
        if post > self.taken:
            durable.write_file(self.path / TAKEN, [str(post).encode()])


def _keys(spark: SparkSession, shards: int) -> list[int]:
    """A key for each shard, such that Spark's hash puts every shard into a partition of its own."""
    frame = spark.range(CANDIDATES * shards).selectExpr("id", f"pmod(hash(cast(id as int)), {shards}) as place")
    rows = frame.groupBy("place").min("id").orderBy("place").collect()
    if len(rows) == shards:
        return [int(row[1]) for row in rows]
    return list(range(shards))
