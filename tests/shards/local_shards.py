"""Shards in this process: posts are packed and unpacked as on the way through Spark, without Spark."""

from __future__ import annotations

from collections.abc import Iterable

import windrow
from windrow.errors import QueryError
from windrow.shards.calls import posts
from windrow.shards.delivery import deliveries
from windrow.shards.outbox import Outbox
from windrow.shards.remote import RemoteFlow
from windrow.shards.shard import Shard


class LocalShards:
    """Serves the remote queries of a database; `deliver` after everything that is told to the database."""

    def __init__(self, db: windrow.Database, shards: int, streams: Iterable[str]) -> None:
        self._engine = db._engine
        self._outbox = Outbox(shards)
        self._outbox.streams, self._outbox.open = {name.lower() for name in streams}, True
        self._engine.flows.move_to_shards(self._outbox)
        self.shards = [Shard() for _ in range(shards)]

    def remote(self, name: str) -> RemoteFlow | None:
        """The flow of a query that runs in the shards."""
        query = self._engine.flows.queries.get(name)
        return query.flow if query is not None and isinstance(query.flow, RemoteFlow) else None

    def deliver(self) -> None:
        """Tell the shards what there is to tell, and take their answers."""
        rows = self._outbox.take()
        if rows is None:
            return
        said = []
        for number, shard in enumerate(self.shards):
            own = [tuple(row.values())[1:] for row in rows.to_pylist() if row["shard"] == number]
            for post in posts(own):  # type: ignore[arg-type]
                said += shard.take(post)
            said += shard.held()
        for name, delivery in deliveries(said, self.remote).items():
            query = self._engine.flows.queries[name]
            if delivery.batch is not None:
                query.add(delivery.batch)
            if delivery.error is not None:
                self._engine.stop(query, QueryError(delivery.error))
                self.deliver()

    def reload(self) -> None:
        """Every shard is what its snapshot gives back."""
        self.shards = [Shard.restored(shard.snapshot()) for shard in self.shards]
