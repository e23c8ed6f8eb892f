"""A query in one place and in N shards side by side: the same calls, and the answers compared after every one.

It stands where the engine has the query's flow, so that lateness, heartbeats and updates come as they always do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

import windrow
from tests.flow.scenarios import Scenario, World
from windrow.flow.flow import Flow
from windrow.kernels.jit import Ints
from windrow.relations import every_relation
from windrow.shards.dealing import deal
from windrow.shards.keys import ShardKey, shard_key
from windrow.shards.merging import merge
from windrow.testing import assert_same


class SideBySide:
    """A flow, and the same query in shards."""

    def __init__(self, flow: Flow, key: ShardKey, shards: Sequence[Flow]) -> None:
        self.flow = flow
        self.key = key
        self.shards = shards
        self.answered = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.flow, name)

    def add(self, stream: str, table: pa.Table, ts: Ints) -> None:
        """All see that tuples have come; each shard gets its own."""
        for one in (self.flow, *self.shards):
            one.see(stream, int(ts.min()))
        self.flow.add(stream, table, ts)
        column = self.key.columns[stream.lower()]
        assert column in self.flow.columns(stream), "the key is not among the columns that are brought"
        homes = deal(table[column], len(self.shards))
        for number, one in enumerate(self.shards):
            mine = homes == number
            if mine.any():
                one.add(stream, table.filter(pa.array(mine)), ts[mine])

    def update(self, relation: str, came: Any, gone: Any, time: int | None) -> None:
        """Relations are whole in every shard."""
        for one in (self.flow, *self.shards):
            one.update(relation, came, gone, time)

    def advance(self, upto: int, oldest: int | None) -> list[pa.RecordBatch]:
        """Time moves on everywhere."""
        return self._compared([one.advance(upto, oldest) for one in (self.flow, *self.shards)])

    def finish(self, newest: Mapping[str, int | None], oldest: Mapping[str, int | None]) -> list[pa.RecordBatch]:
        """The end comes everywhere."""
        return self._compared([one.finish(newest, oldest) for one in (self.flow, *self.shards)])

    def _compared(self, answers: list[list[pa.RecordBatch]]) -> list[pa.RecordBatch]:
        """What one place answers; fails if the shards together answer something else."""
        whole, *parts = answers
        expected = pa.Table.from_batches(whole, self.flow.schema)
        self.answered += expected.num_rows
        every = [batch for part in parts for batch in part]
        for apart in {self.key.apart, False}:  # where nothing can cancel, it may be tried
            merged = merge(every, self.flow.schema, self.flow.kind, apart=apart)
            assert_same(pa.Table.from_batches([merged]), expected, absolute=1e-9)
            assert_in_order(merged, self.flow.kind)
        return whole


def assert_in_order(batch: pa.RecordBatch, kind: str) -> None:
    """By time; what goes stands before what comes."""
    times = batch.column(0).view(pa.int64()).to_numpy()
    signs = np.zeros(len(times), np.int64)
    if kind == "changes":
        signs = np.array([word == "+" for word in batch.column(1).to_pylist()], np.int64)
    steps = list(zip(times.tolist(), signs.tolist(), strict=True))
    assert steps == sorted(steps)


def key_of(query: windrow.Query) -> ShardKey | str | None:
    """The key of a registered query; None if it is answered from panes."""
    flow = getattr(query.running, "flow", None)
    return None if flow is None else shard_key(flow.query, flow.plan)


class ShardedWorld(World):
    """A world whose query also runs in so many shards."""

    shards = 1

    def register(self) -> None:
        super().register()
        assert self.query is not None
        flow = self.query.running.flow
        key = shard_key(flow.query, flow.plan)
        assert isinstance(key, ShardKey)
        self.query.running.flow = SideBySide(flow, key, [self._copy(flow) for _ in range(self.shards)])

    def _copy(self, flow: Flow) -> Flow:
        engine = self.db._engine
        copy = Flow(flow.query, flow.plan, engine._compiled.compiler, strategy=flow.strategy, since=flow.since)
        for source in every_relation(flow.query):
            assert source.relation is not None
            rows, updates = engine.flows.relations.seen_from(source.relation, flow.since)
            copy.update(source.name, rows, None, None)
            for time, came, gone in updates:
                copy.update(source.name, came, gone, time)
        return copy

    def _restart(self, event: Any) -> None:
        """The engine knows nothing of the shards: it goes on."""


def play(text: str, scenario: Scenario, strategy: str, shards: int) -> int | str | None:
    """The rows that were compared; why the query stays in one place; None if it is no continuous query at all."""
    world = ShardedWorld(scenario.lateness, text, strategy, others=False)
    world.shards = shards
    try:
        tried = world.db.query(text, name="tried")
    except windrow.Error:
        return None
    key = key_of(tried)
    world.db.drop("tried")
    if not isinstance(key, ShardKey):
        return key
    world.play(scenario)
    return world.query.running.flow.answered
