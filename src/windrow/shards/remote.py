"""A flow whose operators run in shards: to the engine it looks like any other, but it only passes on what it is told.

engine ─► RemoteFlow ─► Outbox ─► shards, each with a Flow of its own ─► answers, some time later
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from windrow.expressions import Compiler
from windrow.flow.flow import Flow
from windrow.flow.leaves import BEGINNING
from windrow.kernels.jit import Ints
from windrow.language.bound import BoundQuery
from windrow.language.records import relation_to_json, stream_to_json
from windrow.plan import nodes
from windrow.relations import every_relation
from windrow.shards.keys import ShardKey
from windrow.shards.outbox import Outbox
from windrow.state.choice import Strategy
from windrow.windows.due import first_due


@dataclass(frozen=True)
class Held:
    """What the shards hold for a query, as far as they have told."""

    upto: int = BEGINNING
    rows: int = 0
    nbytes: int = 0


class RemoteFlow(Flow):
    """Made like a flow, for its schema, columns and notes; its own operators stay empty."""

    remote = True

    def __init__(
        self,
        name: str,
        key: ShardKey,
        outbox: Outbox,
        query: BoundQuery,
        plan: nodes.Output,
        compiler: Compiler,
        *,
        optimizer: bool,
        strategy: Strategy = "upa",
        since: int = BEGINNING,
        notes: Sequence[tuple[str, str]] = (),
    ) -> None:
        super().__init__(query, plan, compiler, strategy=strategy, since=since, notes=notes)
        self.held = Held()
        self._name, self.key, self._outbox = name, key, outbox
        self._optimizer = optimizer

    def open(self) -> None:
        """Have the shards make flows for the query."""
        self._outbox.call(
            self._name,
            "open",
            {
                "text": self.query.text,
                "strategy": self.strategy,
                "optimizer": self._optimizer,
                "since": self.since,
                "streams": [stream_to_json(stream) for stream in self.query.streams],
                "relations": [relation_to_json(one.relation) for one in every_relation(self.query) if one.relation],
            },
        )

    def close(self) -> None:
        """The query has ended."""
        if self._outbox.open:
            self._outbox.call(self._name, "drop")

    def see(self, stream: str, oldest: int) -> None:
        if stream.lower() in self.streams and oldest > self.since:
            self._see(oldest)
            self._outbox.call(self._name, "see", stream, oldest)

    def add(self, stream: str, table: pa.Table, ts: Ints) -> None:
        fresh = ts[ts > self.since]
        if len(fresh):
            # All shards must know when the query begins, also those that get none of its first tuples.
            self.see(stream, int(fresh.min()))
            self._outbox.add(self._name, stream, self.key.columns[stream.lower()], table, ts)

    def update(self, relation: str, came: pa.RecordBatch | None, gone: pa.RecordBatch | None, time: int | None) -> None:
        numbers = self._outbox.rows(came), self._outbox.rows(gone)
        self._outbox.call(self._name, "update", relation, *numbers, time)

    def advance(self, upto: int, oldest: int | None) -> list[pa.RecordBatch]:
        self._outbox.call(self._name, "advance", upto, oldest)
        if self.query.periodic:
            due = self._due(upto, oldest)
            upto = int(due[-1]) if len(due) else self.upto
        self._reach(upto)
        return []

    def finish(self, newest: Mapping[str, int | None], oldest: Mapping[str, int | None]) -> list[pa.RecordBatch]:
        self._outbox.call(self._name, "finish", dict(newest), dict(oldest))
        last = max((end for name in self.streams if (end := newest[name]) is not None), default=self.upto)
        self._reach(last if self.query.slide is None else first_due(last, self.query.slide))
        return []

    def _reach(self, upto: int) -> None:
        self.upto = max(self.upto, upto)
        self._begun = self._begun or (self._oldest is not None and self._oldest <= self.upto)

    # ---- state ----------------------------------------------------------------------------------------------------

    @property
    def answered(self) -> int:
        return self.held.upto

    @property
    def nbytes(self) -> int:
        return self.held.nbytes

    @property
    def rows(self) -> int:
        return self.held.rows

    def snapshot(self) -> tuple[dict[str, Any], dict[str, pa.Table]]:
        state = [self.since, self.upto, self._oldest, self._begun]
        return {"state": state, "held": [self.held.upto, self.held.rows, self.held.nbytes]}, {}

    def restore(self, meta: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> None:
        self.since, self.upto, self._oldest, self._begun = meta["state"]
        self.held = Held(*meta["held"])

    def describe(self) -> list[tuple[str, str]]:
        return [("host", f"{self._outbox.shards} shards in the executors, dealt by {self.key}"), *super().describe()]
