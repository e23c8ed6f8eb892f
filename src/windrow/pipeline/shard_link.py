"""A host and its shards: posts go there after every step, answers come back in micro-batches of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import pyarrow as pa

from windrow.engine import Engine
from windrow.errors import QueryError
from windrow.pipeline.outlet import Hosted
from windrow.shards.delivery import deliveries
from windrow.shards.outbox import Outbox
from windrow.shards.remote import RemoteFlow
from windrow.shards.shard import Answer


class Posts(Protocol):
    """The way to the shards of a run."""

    def put(self, rows: pa.Table) -> None:
        """Hand a post over, once, however often it is asked for."""

    def note_taken(self, post: int) -> None:
        """The answers to all posts up to this one are where they belong."""


class ShardLink:
    """What an engine tells its shards, and what they say; without `posts` there are none."""

    def __init__(self, engine: Engine, queries: Mapping[str, Hosted], posts: Posts | None) -> None:
        self._engine = engine
        self._queries = queries
        self._posts = posts

    def post(self) -> None:
        """Tell the shards what there is to tell. It is in the journal or in a snapshot, and would be told again."""
        outbox = self._engine.flows.outbox
        rows = None if outbox is None or self._posts is None else outbox.take()
        if rows is not None and self._posts is not None:
            self._posts.put(rows)

    def deliver(self, batch: int, answers: list[Answer], stop: Callable[[str, str], None]) -> None:
        """Write what the shards said, the same micro-batch once; `stop` is told which query failed, and why."""
        for name, delivery in deliveries(answers, self._remote).items():
            query = self._engine.flows.queries[name]
            assert isinstance(query.flow, RemoteFlow)
            if delivery.batch is not None:
                query.due += 1
                query.add(delivery.batch)
                self._queries[name.lower()].write(batch + 1)
            if delivery.held is not None:
                query.flow.held = delivery.held
            if delivery.error is not None:
                stop(name, delivery.error)
        if answers and self._posts is not None:
            self._posts.note_taken(max(one.post for one in answers))

    def _remote(self, name: str) -> RemoteFlow | None:
        query = self._engine.flows.queries.get(name)
        return query.flow if query is not None and isinstance(query.flow, RemoteFlow) else None

    def stop(self, name: str, why: str) -> None:
        """A query failed in a shard: it is stopped here too."""
        query = self._engine.flows.queries.get(name)
        if query is not None:
            self._engine.stop(query, QueryError(why))

    def reopen(self, state: Mapping[str, Any]) -> None:
        """Let an engine that is to be restored from this state have as many shards as it had."""
        if "outbox" in state:
            outbox = self._engine.flows.outbox = Outbox(state["outbox"]["shards"])
            outbox.streams, outbox.open = set(state["outbox"]["streams"]), True

    def close(self) -> None:
        """Nobody takes posts any more."""
        if self._engine.flows.outbox is not None:
            self._engine.flows.outbox.open = False
