"""The queries that operators maintain (continuous ones, joins, negation, relations), and where each of them runs.

    here, by itself  ·  here, in a join that it shares with others  ·  in shards elsewhere

Tuples, relations and time are told to all of them in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from windrow.compiled import Compiled
from windrow.errors import BindError, InputError, QueryError, UnsupportedError
from windrow.flow.faults import own_faults
from windrow.flow.flow import Flow
from windrow.flow.leaves import BEGINNING
from windrow.flow_snapshots import Built, built_flows, put_flows_in_place, snapshot_flows
from windrow.flowing import FlowQuery
from windrow.joined.shape import JoinShape, join_shape
from windrow.joined.share import JoinShare
from windrow.joined.shared_join import SharedJoin, shares_of, would_share
from windrow.joined.worth import pays
from windrow.language.bound import BoundQuery
from windrow.language.catalog import Relation, Stream
from windrow.language.user_functions import marked
from windrow.optimizer.rules import optimized
from windrow.plan.build import build
from windrow.plan.nodes import Output
from windrow.relations import Relations, every_relation
from windrow.running import RunningStream
from windrow.shards.keys import ShardKey, shard_key
from windrow.shards.outbox import Outbox
from windrow.shards.remote import RemoteFlow
from windrow.state.choice import Strategy
from windrow.windows.spec import FARTHEST_TICK


class Flows:
    """All of them, by name, and the relations that they read; `streams` are those of the engine."""

    def __init__(
        self, streams: Mapping[str, RunningStream], compiled: Compiled, *, optimizer: bool, sharing: bool
    ) -> None:
        self._streams, self._compiled, self._compiler = streams, compiled, compiled.compiler
        self._optimizes, self._shares = optimizer, sharing
        self.queries: dict[str, FlowQuery] = {}
        self.relations = Relations()
        self.outbox: Outbox | None = None
        """What shards elsewhere have to be told, while a run has some."""

    # ---- queries come and go --------------------------------------------------------------------------------------

    def add(self, name: str, query: BoundQuery, plan: Output, strategy: Strategy = "upa") -> FlowQuery:
        """Register a query; it knows the tuples that come from now on."""
        hint = query.hint
        if hint is not None:
            reason = (
                f"{hint}: this query is maintained by operators, which keep rows and no synopsis; leave the hint out"
            )
            raise BindError(reason, line=hint.line, column=hint.column)
        newest = [self._streams[stream.name.lower()].watermark.newest for stream in query.streams]
        seen = [tick for tick in newest if tick is not None]
        since = max(seen) if seen else BEGINNING
        shape = join_shape(query, plan) if self._shares and strategy == "upa" else None
        plan, notes = self.optimized(plan)
        alone = Flow(query, plan, self._compiler, strategy=strategy, since=since, notes=notes)
        flow: Flow | None = None if shape is None else self._with_others(name, alone, shape)
        if flow is None:
            flow = self._placed(name, alone)
            self._begin(flow)
        registered = self.queries[name] = FlowQuery(name, flow, shape=shape)
        return registered

    def remove(self, query: FlowQuery) -> None:
        """A query goes, with what only it used."""
        del self.queries[query.name]
        query.flow.close()

    def reading(self, stream: str) -> list[FlowQuery]:
        """The queries that read a stream."""
        return [query for query in self.queries.values() if stream.lower() in query.streams]

    def optimized(self, plan: Output) -> tuple[Output, list[tuple[str, str]]]:
        """The plan that runs, and what was done to it."""
        return optimized(plan) if self._optimizes else (plan, [])

    def _placed(self, name: str, flow: Flow, remote: bool = True) -> Flow:
        """A new flow like this one: in shards if there are some and it can be, else here."""
        key = self.shard_key(flow.query, flow.plan) if remote else "it began here"
        about: dict[str, Any] = {"strategy": flow.strategy, "since": flow.since, "notes": flow.notes}
        if self.outbox is None or isinstance(key, str):
            return Flow(flow.query, flow.plan, self._compiler, **about)
        return RemoteFlow(
            name, key, self.outbox, flow.query, flow.plan, self._compiler, optimizer=self._optimizes, **about
        )  # fmt: skip

    def _begin(self, flow: Flow) -> None:
        """Tell a new flow the rows of its relations."""
        if isinstance(flow, RemoteFlow):
            flow.open()
        for source in every_relation(flow.query):
            assert source.relation is not None
            rows, updates = self.relations.seen_from(source.relation, flow.since)
            flow.update(source.name, rows, None, None)
            for time, came, gone in updates:
                flow.update(source.name, came, gone, time)

    # ---- joins that are shared ------------------------------------------------------------------------------------

    @property
    def joins(self) -> list[JoinShare]:
        """The joins that several queries share, or may share."""
        return shares_of(query.flow for query in self.queries.values())

    def _with_others(self, name: str, flow: Flow, shape: JoinShape) -> SharedJoin | None:
        """A query that takes part in the join of others (rule SS3); None when there are none."""
        if self.outbox is not None and not isinstance(self.shard_key(flow.query, flow.plan), str):
            return None
        share = next((one for one in self.joins if one.admits(shape)), None)
        if share is None:
            alike = self._alike(shape)
            others = _not_begun(alike)
            if not alike or not pays([shape, *(one.shape for one in others if one.shape is not None)]):
                return None
            share = self._new_share(flow, shape)
            for one in others:
                assert one.shape is not None
                one.flow = self._shared_join(one.name, share, one.shape, one.flow)
        return self._shared_join(name, share, shape, flow)

    def _alike(self, shape: JoinShape) -> list[FlowQuery]:
        """Queries with the same join."""
        return [one for one in self.queries.values() if one.shape is not None and one.shape.key == shape.key]

    def _new_share(self, flow: Flow, shape: JoinShape) -> JoinShare:
        return JoinShare(flow.query, shape, flow.since, self._compiler, lambda plan: self.optimized(plan)[0])

    def _shared_join(self, name: str, share: JoinShare, shape: JoinShape, flow: Flow) -> SharedJoin:
        """The same query as part of a join that is shared."""
        about: dict[str, Any] = {"since": flow.since, "notes": flow.notes}
        return SharedJoin(name, share, shape, self._compiled.term, flow.query, flow.plan, self._compiler, **about)

    # ---- shards ---------------------------------------------------------------------------------------------------

    def shard_key(self, query: BoundQuery, plan: Output) -> ShardKey | str:
        """By what the tuples of a query are dealt to shards, or why it stays in one place."""
        unread = [one.name for one in query.streams if self.outbox and one.name.lower() not in self.outbox.streams]
        if unread:
            return f"stream {unread[0]} is fed by push, in this process"
        if any(marked(call) for call in query.ast.find_all(exp.Func)):
            return "its user's aggregate is known in this process only"
        return shard_key(query, plan)

    def move_to_shards(self, outbox: Outbox) -> None:
        """Queries with a key run in shards from now on, unless they have begun here."""
        self.outbox = outbox
        for query in self.queries.values():
            old = query.flow
            flow = self._placed(query.name, old) if old.untouched else old
            if isinstance(flow, RemoteFlow):  # the others stay as they are, with the rows of their relations
                if isinstance(old, SharedJoin):
                    old.close()
                query.flow = flow
                self._begin(flow)

    # ---- relations ------------------------------------------------------------------------------------------------

    def readers(self, relation: Relation) -> list[FlowQuery]:
        """The queries that read a relation."""
        return [query for query in self.queries.values() if relation.name.lower() in query.relations]

    def load_relation(self, relation: Relation, table: pa.Table) -> None:
        """The first rows of a relation; queries that read it have waited for them."""
        self.relations.load(relation, table)
        for query in self.readers(relation):
            query.flow.update(relation.name, self.relations.batch(relation), None, None)

    def update(self, relation: Relation, came: Any, gone: Any, time: int | None) -> int | None:
        """Rows of a relation come and go at `time`; by default, and at the earliest, at the next instant that no query
        has answered yet, which is before all others when none has begun (then None is returned, else that instant). An
        InputError leaves everything as it was.
        """
        when = self._update_time(relation, gone, time)
        added, removed = self.relations.update(relation, came, gone, when, past=self._past)
        seen = None if when == -FARTHEST_TICK else when
        for query in self.readers(relation):
            query.flow.update(relation.name, added, removed, seen)
        return seen

    def check_update(
        self, relation: Relation, came: Any, gone: Any, time: int | None
    ) -> tuple[int, pa.RecordBatch, pa.RecordBatch]:
        """What `update` would do: its instant, and the whole rows that come and go."""
        when = self._update_time(relation, gone, time)
        return when, *self.relations.check(relation, came, gone, when, past=self._past)

    @property
    def _past(self) -> int:
        """No query will begin before this."""
        ticks = [tick for one in self._streams.values() if (tick := one.watermark.newest) is not None]
        return min(ticks, default=-FARTHEST_TICK)

    def _update_time(self, relation: Relation, gone: Any, time: int | None) -> int:
        readers = self.readers(relation)
        first = max([-FARTHEST_TICK, *(query.flow.upto + 1 for query in readers)])
        last = self.relations.updated(relation)
        when = max(first, first if last is None else last) if time is None else int(time)
        if when < first:
            raise InputError(
                f"an update of relation {relation.name} at {when} comes too late: its queries are answered up to "
                f"{first - 1}. Nothing was changed"
            )
        mixed = [query.name for query in readers if query.flow.mixed]
        if gone is not None and mixed and not relation.non_retroactive:
            raise UnsupportedError(
                f"rows of relation {relation.name} cannot be deleted while query {mixed[0]} reads it: only some of its "
                "windows are INTERNAL, and nobody knows how long its results stay. Nothing was changed"
            )
        return when

    # ---- tuples in, time passes -----------------------------------------------------------------------------------

    def kept_columns(self, stream: Stream) -> frozenset[str]:
        """The columns of a stream that queries keep tuple by tuple."""
        users = [query.flow for query in self.reading(stream.name)]
        return frozenset({stream.time} if users else ()).union(*(flow.columns(stream.name) for flow in users))

    def kept_rows(self, stream: str) -> list[exp.Expr | None]:
        """Which of its tuples they keep: those that do not fail one of these predicates; None wants them all."""
        wanted: dict[str, exp.Expr | None] = {}
        for query in self.reading(stream):
            wanted |= {"" if one is None else one.sql("cql"): one for one in query.flow.wanted(stream)}
        return list(wanted.values())

    def take(self, stream: str, table: pa.Table, ts: NDArray[np.int64]) -> None:
        """Hand tuples to the queries that keep them."""
        for query in self.reading(stream):
            query.flow.add(stream, table, ts)

    def see(self, stream: str, oldest: int) -> None:
        """Tuples of a stream have come, whether or not somebody keeps them."""
        for query in self.queries.values():
            query.flow.see(stream, oldest)

    def move(self, stream: str) -> dict[FlowQuery, QueryError]:
        """The watermark of a stream has moved: let its queries go on, and say which of them cannot."""
        moved = {query: self._move(query) for query in self.reading(stream)}
        return {query: error for query, error in moved.items() if error is not None}

    def _move(self, query: FlowQuery) -> QueryError | None:
        try:
            with own_faults():
                query.move(self._streams)
        except QueryError as error:
            return error
        return None

    # ---- EXPLAIN, snapshots ---------------------------------------------------------------------------------------

    def describe(self, query: FlowQuery) -> list[tuple[str, str]]:
        """For EXPLAIN: what a registered query keeps, and where."""
        host = []
        if self.outbox is not None and not query.flow.remote:
            key = self.shard_key(query.flow.query, query.flow.plan)
            host = [("host", f"the driver: {key if isinstance(key, str) else 'it had begun here'}")]
        return [*host, *query.flow.describe()]

    def describe_new(self, query: BoundQuery, plan: Output) -> list[tuple[str, str]]:
        """The same of a query that is not registered."""
        shape = join_shape(query, plan) if self._shares and self.outbox is None else None
        plan, notes = self.optimized(plan)
        would = [] if shape is None else would_share(shape, self.joins, _not_begun(self._alike(shape)))
        return [*Flow(query, plan, self._compiler, notes=notes).describe(), *would]

    def snapshot(self, meta: dict[str, Any], blobs: dict[str, bytes]) -> None:
        """Add the state of all these queries, of the relations, and what shards have not been told yet."""
        meta["flows"] = snapshot_flows(self.queries, self.relations, blobs)
        if self.outbox is not None:
            meta["outbox"], untold = self.outbox.snapshot()
            blobs |= untold

    def built(self, meta: Mapping[str, Any], blobs: Mapping[str, bytes]) -> Built:
        """The flows of a snapshot, not in place yet; CheckpointError when it has other queries, or is damaged."""
        return built_flows(self.queries, self._compiled.synopsis, meta, blobs, self._fresh({}))

    def put_in_place(self, built: Built, meta: Mapping[str, Any], blobs: Mapping[str, bytes]) -> None:
        """Go on with these."""
        put_flows_in_place(self.queries, self.relations, built)
        if self.outbox is not None:
            self.outbox.restore(meta["outbox"], blobs)

    def _fresh(self, shares: dict[str, JoinShare]) -> Callable[[Flow, Mapping[str, Any]], Flow]:
        """Makes flows without state for records of a snapshot; `shares` are the joins so far, by their first query."""

        def fresh(flow: Flow, record: Mapping[str, Any]) -> Flow:
            first = record["state"].get("joined")
            if first is None:
                return self._placed(record["name"], flow, record["remote"])
            shape = join_shape(flow.query, build(flow.query))
            if shape is None:
                raise ValueError(f"query {record['name']} cannot share a join")
            if first not in shares:
                shares[first] = self._new_share(flow, shape)
            return self._shared_join(record["name"], shares[first], shape, flow)

        return fresh


def _not_begun(queries: Sequence[FlowQuery]) -> list[FlowQuery]:
    """Those that run alone and have not begun, so that they can still be made part of a shared join."""
    return [one for one in queries if type(one.flow) is Flow and one.flow.untouched]
