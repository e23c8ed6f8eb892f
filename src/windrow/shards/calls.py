"""What travels to the shards: the calls of one post, in order, and the tables that they speak of.

A post is numbered; every shard gets the same calls of it, and of the tables either the same (rows of relations) or the
tuples that are dealt to it. On the wire a post is rows of (shard, post, part, kind, data): one of kind `calls` (JSON),
and one of kind `table` (Arrow IPC) for each table, whose part is its number.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pyarrow as pa

from windrow.sliced import batch_of, ipc

Call: TypeAlias = list[Any]
"""The name of the query, what to do, and its arguments: all of it JSON. A table stands there as its number."""
SCHEMA = pa.schema(
    [("shard", pa.int32()), ("post", pa.int64()), ("part", pa.int32()), ("kind", pa.string()), ("data", pa.binary())]
)
CALLS, TABLE = "calls", "table"


@dataclass(eq=False)
class Post:
    """What one shard is told at once."""

    number: int
    calls: list[Call] = field(default_factory=list)
    tables: dict[int, pa.RecordBatch] = field(default_factory=dict)


def packed(number: int, calls: Sequence[Call], tables: Sequence[Mapping[int, pa.RecordBatch]]) -> pa.Table:
    """The rows of a post; `tables` has what each shard gets."""
    said = json.dumps(calls).encode()
    blobs: dict[int, bytes] = {}  # one that all shards get is written once
    rows: list[tuple[int, int, int, str, bytes]] = []
    for shard, own in enumerate(tables):
        rows.append((shard, number, -1, CALLS, said))
        for part, batch in own.items():
            if id(batch) not in blobs:
                blobs[id(batch)] = ipc(batch)
            rows.append((shard, number, part, TABLE, blobs[id(batch)]))
    columns = zip(*rows, strict=True)
    return pa.table([pa.array(column, one.type) for column, one in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def posts(rows: Iterable[tuple[int, int, str, bytes]]) -> list[Post]:
    """The posts of rows (post, part, kind, data) of one shard, in the order of their numbers."""
    found: dict[int, Post] = {}
    for number, part, kind, data in rows:
        post = found.setdefault(number, Post(number))
        if kind == CALLS:
            post.calls = json.loads(data)
        else:
            post.tables[part] = batch_of(data)
    return [found[number] for number in sorted(found)]
