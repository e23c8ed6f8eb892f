"""What runs inside Spark's stateful operator: a shard, whose state Spark keeps and rolls back with its own.

A snapshot of the shard would be written whole for every micro-batch. So the state is a snapshot and the posts since:
what is written is what came, and now and then a snapshot when the posts have outgrown it. A worker that served the same
shard before has it in memory; a token in the state says whether that is the very one, or a task was tried again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pandas as pd
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from windrow.shards.calls import posts
from windrow.shards.shard import Answer, Shard

OUTPUT = "query string, post bigint, kind string, data binary"
PIECE = 8 << 20
"""Bytes of a snapshot in one value of the state."""
SMALLEST_LOG = 1 << 20
"""Posts of fewer bytes are not worth a snapshot."""

_Row = tuple[int, int, str, bytes]
_in_memory: dict[tuple[str, Any], tuple[str, Shard]] = {}
"""Shards that this worker served, by run and key, with their token."""


class ShardProcessor(StatefulProcessor):  # type: ignore[misc]
    """One key of the state is one shard."""

    def __init__(self, run: str) -> None:
        self._run = run

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state."""
        self._about = handle.getValueState("about", "token string, snapshot bigint, log bigint")
        self._snapshot = handle.getListState("snapshot", "data binary")
        self._log = handle.getListState("log", "post bigint, part int, kind string, data binary")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        """Posts for the shard; gives what it says."""
        new = [row for frame in rows for row in _rows(frame)]
        token, size, logged = self._about.get() if self._about.exists() else ("", 0, 0)
        shard = self._load(key[0], token)
        said: list[Answer] = []
        waiting = posts(new)
        fresh = {post.number for post in waiting if post.number >= shard.next}
        for post in waiting:
            said += shard.take(post)
        said += shard.held()
        # What was done before a crash came again: it is in the state already.
        new = [row for row in new if row[0] in fresh]
        logged += sum(len(row[3]) for row in new)
        token = uuid4().hex
        if logged > max(size, SMALLEST_LOG) and shard.complete:
            data = shard.snapshot()
            size, logged = len(data), 0
            self._snapshot.put([(data[at : at + PIECE],) for at in range(0, len(data), PIECE)])
            self._log.clear()
        elif new:
            self._log.appendList(new)
        self._about.update((token, size, logged))
        _in_memory[self._run, key[0]] = token, shard
        yield pd.DataFrame([vars(one) for one in said], columns=["query", "post", "kind", "data"])

    def _load(self, key: Any, token: str) -> Shard:
        # Taken out: if this task fails half-way, what is in memory is nobody's state.
        known = _in_memory.pop((self._run, key), None)
        if known is not None and known[0] == token:
            return known[1]
        pieces = [bytes(piece) for (piece,) in self._snapshot.get()] if self._snapshot.exists() else []
        shard = Shard.restored(b"".join(pieces)) if pieces else Shard()
        if self._log.exists():
            for post in posts((row[0], row[1], row[2], bytes(row[3])) for row in self._log.get()):
                shard.take(post)
        return shard

    def close(self) -> None:
        """Nothing to let go of: the shards stay for the next micro-batch."""


def _rows(frame: pd.DataFrame) -> Iterator[_Row]:
    for number, part, kind, data in zip(frame["post"], frame["part"], frame["kind"], frame["data"], strict=True):
        yield int(number), int(part), kind, bytes(data)
