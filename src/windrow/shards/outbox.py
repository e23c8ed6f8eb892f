"""What the shards have to be told, collected while the engine takes in a batch, and handed over as one post."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.errors import StateError
from windrow.kernels.jit import Ints
from windrow.shards.calls import Call, packed
from windrow.shards.dealing import deal
from windrow.sliced import batch_of, ipc

TIMES = "__ts"
"""The timestamps of tuples, beside their columns."""


class Outbox:
    """Calls and tables for `shards` shards. Tuples that several queries want alike travel once."""

    def __init__(self, shards: int) -> None:
        self.shards = shards
        self.streams: set[str] = set()
        """The streams (lower-case) that a run reads, so that what is said of them is said again after a crash."""
        self.open = False
        """Whether somebody takes the posts."""
        self.number = 0
        """Of the next post."""
        self._calls: list[Call] = []
        self._tables: dict[int, list[pa.RecordBatch]] = {}
        """By number: what each shard gets of a table."""
        self._known: dict[tuple[Any, ...], tuple[int, Any]] = {}
        """Tables of this post by identity, which are kept so that an identity is not used again."""

    def call(self, query: str, what: str, *arguments: Any) -> None:
        """All shards do this."""
        self._require_open(query)
        self._calls.append([query, what, *arguments])

    def add(self, query: str, stream: str, key: str, table: pa.Table, ts: Ints) -> None:
        """Tuples of a stream go to the shards by their key."""
        self._require_open(query)
        same = stream.lower(), key, id(table)
        if same not in self._known:
            self._known[same] = self._number(self._dealt(table, ts, key)), table
        self._calls.append([query, "add", stream, self._known[same][0]])

    def rows(self, batch: pa.RecordBatch | None) -> int | None:
        """The number of rows that every shard gets whole."""
        if batch is None or not batch.num_rows:
            return None
        if (id(batch),) not in self._known:
            self._known[id(batch),] = self._number([batch] * self.shards), batch
        return self._known[id(batch),][0]

    def _number(self, tables: list[pa.RecordBatch]) -> int:
        number = len(self._tables)
        self._tables[number] = tables
        return number

    def _dealt(self, table: pa.Table, ts: Ints, key: str) -> list[pa.RecordBatch]:
        home = deal(table.column(key), self.shards)
        order = np.argsort(home, kind="stable")
        whole = table.append_column(TIMES, pa.array(ts)).combine_chunks().to_batches()[0].take(pa.array(order))
        ends = np.cumsum(np.bincount(home, minlength=self.shards))
        return [whole.slice(int(begin), int(end - begin)) for begin, end in zip([0, *ends[:-1]], ends, strict=True)]

    def _require_open(self, query: str) -> None:
        if not self.open:
            raise StateError(
                f"query {query} lives in the shards of a run, and no run is going on; go on with db.run(…) or "
                "db.start(…), or ask it again under another name"
            )

    def take(self) -> pa.Table | None:
        """The rows of the next post, which are then forgotten here; None when there is nothing to tell."""
        if not self._calls:
            return None
        own: list[dict[int, pa.RecordBatch]] = [
            {number: tables[shard] for number, tables in self._tables.items() if tables[shard].num_rows}
            for shard in range(self.shards)
        ]
        rows = packed(self.number, self._calls, own)
        self.number += 1
        self._calls, self._tables, self._known = [], {}, {}
        return rows

    def snapshot(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """What was not handed over yet; between batches this is little."""
        blobs = {
            f"outbox-{number}-{shard}": ipc(batch)
            for number, tables in self._tables.items()
            for shard, batch in enumerate(tables)
        }
        meta = {"shards": self.shards, "streams": sorted(self.streams), "number": self.number}
        return meta | {"calls": json.loads(json.dumps(self._calls))}, blobs

    def restore(self, meta: Mapping[str, Any], blobs: Mapping[str, bytes]) -> None:
        """Become what `snapshot` gave."""
        self.number, self._calls, self._known = meta["number"], list(meta["calls"]), {}
        numbers = {int(name.split("-")[1]) for name in blobs if name.startswith("outbox-")}
        self._tables = {
            number: [batch_of(blobs[f"outbox-{number}-{shard}"]) for shard in range(self.shards)]
            for number in sorted(numbers)
        }
