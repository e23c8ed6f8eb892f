"""The engine: batches in, answers out. It knows nothing of Spark, text or terminals.

push ─► late rows out ─► one Context per batch ─► every slice's panes ─► watermark ─► due queries ─► answers
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from windrow.aggregates import aggregate
from windrow.aggregates.collected import Collected
from windrow.aggregates.sketched import error_of
from windrow.answering import answer_newest, answer_slice
from windrow.asking import ask_panes, ask_rows
from windrow.errors import BindError, InputError, QueryError, StateError, UnsupportedError
from windrow.expressions import Compiler, Context
from windrow.flow.faults import own_faults
from windrow.flow.flow import Flow
from windrow.flow.leaves import BEGINNING as FLOW_BEGINNING
from windrow.flow_snapshots import built_flows, put_flows_in_place, snapshot_flows
from windrow.flowing import FlowQuery
from windrow.input import conform, timestamps
from windrow.job import Job, job_of
from windrow.joined.shape import JoinShape, join_shape
from windrow.joined.share import JoinShare, SharedJoin, shares_of
from windrow.language.bound import BoundQuery
from windrow.language.catalog import Relation, Stream
from windrow.language.hints import Hint
from windrow.language.positions import position
from windrow.language.units import duration_text
from windrow.language.user_functions import marked
from windrow.numbering.numbering import Numbering
from windrow.operators.answer import AnswerRows
from windrow.optimizer.rules import optimized
from windrow.parallel import each
from windrow.plan.build import build
from windrow.plan.nodes import Output
from windrow.plan.periodic import SUB_WINDOWS, Aggregation, PeriodicAggregate, in_panes
from windrow.plan.threshold import Threshold, threshold_of
from windrow.relations import Relations, every_relation
from windrow.row_answers import answer_rows
from windrow.running import Registered, RunningQuery, RunningStream
from windrow.shards.keys import ShardKey, shard_key
from windrow.shards.outbox import Outbox
from windrow.shards.remote import RemoteFlow
from windrow.sharing.derivation import find_derivation
from windrow.sharing.feeding import Deriving, derive, feed
from windrow.sharing.predicates import predicate as rows_of
from windrow.sharing.slice import BEGINNING, Member, Slice, Term, expected
from windrow.sharing_report import derivation_text, explained, sharing_table
from windrow.sliced import Sliced
from windrow.slicer import PARALLEL_ROWS, shared_panes
from windrow.snapshots import restore_streams, snapshot_streams
from windrow.state.choice import Strategy
from windrow.synopses.chooser import Choice, forced
from windrow.synopses.partials import Partials
from windrow.synopses.registry import check, chosen, may_choose, reason
from windrow.synopses.sparse import Sparse
from windrow.windows.grid import Grid, edges_of
from windrow.windows.watermark import Watermark

FARTHEST_TICK = 1 << 61
"""Leaves room for RANGE, OFFSET and SLIDE, which are at most as long, in 64 bits."""
ORDER_NOTE = "a row gets its number when the watermark passes it: by time, SEQUENCE, values"
ROWS_NOTE = f"{ORDER_NOTE}; the last {{reach}} rows are kept for the end of the input and one-time queries"
MAX_DUE_TIMES = 50_000_000
"""Answers that one batch may make due: a timestamp of the year 9999 must not exhaust the memory."""


class Engine:
    """All streams and queries of one process.

    `synopsis` forces one type of synopsis everywhere; None chooses. Without `optimizer` operators run as written, and
    without `sharing` every query keeps panes of its own: to measure what both are worth.
    """

    def __init__(self, synopsis: str | None = None, *, optimizer: bool = True, sharing: bool = True) -> None:
        check(None, synopsis)
        self._compiler = Compiler()
        self.synopsis = synopsis
        self.optimizer = optimizer
        self.streams: dict[str, RunningStream] = {}
        self.flows: dict[str, FlowQuery] = {}
        """Queries that are maintained by operators: continuous ones, joins, negation, relations."""
        self.relations = Relations()
        self.outbox: Outbox | None = None
        """What shards elsewhere have to be told, while a run has some."""
        self._shares = sharing
        self.deriving: Deriving = "cost" if sharing else "never"
        """When slices that can be derived from others take partials instead of rows."""

    # ---- streams and queries come and go --------------------------------------------------------------------------

    def add_stream(self, stream: Stream) -> None:
        """Start to accept a stream."""
        self.streams[stream.name.lower()] = RunningStream(stream, Watermark(stream.lateness))

    def remove_stream(self, name: str) -> None:
        """Forget a stream that no query reads."""
        users = [query.name for query in self.queries_on(name)]
        if users:
            raise StateError(f"stream {name} is read by {', '.join(users)}; drop them first")
        del self.streams[name.lower()]

    def queries_on(self, stream: str) -> list[Registered]:
        """The running queries that read a stream."""
        flows = [query for query in self.flows.values() if stream.lower() in query.streams]
        return [*self.streams[stream.lower()].queries.values(), *flows]

    @property
    def running(self) -> list[Registered]:
        """All running queries."""
        return [*(one for stream in self.streams.values() for one in stream.queries.values()), *self.flows.values()]

    def register(self, name: str, query: BoundQuery, plan: Output, strategy: Strategy = "upa") -> Registered:
        """Register a query: from shared panes if they can answer it, else by operators of its own."""
        periodic = in_panes(query, plan)
        asked = query.priority
        if asked is not None and (periodic is None or periodic.rows is not None):
            reason = f"{asked}: this query is answered when its tuples come, not by a schedule; leave the hint out"
            raise BindError(reason, line=asked.line, column=asked.column)
        if periodic is not None:
            return self.add_query(name, periodic)
        return self.add_flow(name, query, plan, strategy)

    def add_flow(self, name: str, query: BoundQuery, plan: Output, strategy: Strategy = "upa") -> FlowQuery:
        """Register a query that operators maintain; it knows the tuples that come from now on."""
        hint = query.hint
        if hint is not None:
            reason = (
                f"{hint}: this query is maintained by operators, which keep rows and no synopsis; leave the hint out"
            )
            raise BindError(reason, line=hint.line, column=hint.column)
        newest = [self.streams[stream.name.lower()].watermark.newest for stream in query.streams]
        seen = [tick for tick in newest if tick is not None]
        since = max(seen) if seen else FLOW_BEGINNING
        shape = join_shape(query, plan) if self._shares and strategy == "upa" else None
        plan, notes = self._optimized(plan)
        alone = Flow(query, plan, self._compiler, strategy=strategy, since=since, notes=notes)
        flow: Flow | None = None if shape is None else self._with_others(name, alone, shape)
        if flow is None:
            flow = self._flow(name, alone)
            self._begin(flow)
        registered = self.flows[name] = FlowQuery(name, flow, shape=shape)
        return registered

    def _with_others(self, name: str, flow: Flow, shape: JoinShape) -> SharedJoin | None:
        """A query that takes part in the join of others (rule SS3); None when there are none."""
        if self.outbox is not None and not isinstance(self.shard_key(flow.query, flow.plan), str):
            return None
        share = next((one for one in self.joins if one.admits(shape)), None)
        if share is None:
            partners = [one for one in self.flows.values() if one.shape is not None and one.shape.key == shape.key]
            if not partners:
                return None
            share = self._new_share(flow, shape)
            for one in partners:
                if type(one.flow) is Flow and one.flow.untouched and one.shape is not None:
                    one.flow = self._shared_join(one.name, share, one.shape, one.flow)
        return self._shared_join(name, share, shape, flow)

    def _new_share(self, flow: Flow, shape: JoinShape) -> JoinShare:
        return JoinShare(flow.query, shape, flow.since, self._compiler, lambda plan: self._optimized(plan)[0])

    def _shared_join(self, name: str, share: JoinShare, shape: JoinShape, flow: Flow) -> SharedJoin:
        """The same query as part of a join that is shared."""
        about: dict[str, Any] = {"since": flow.since, "notes": flow.notes}
        return SharedJoin(name, share, shape, self._term, flow.query, flow.plan, self._compiler, **about)

    @property
    def joins(self) -> list[JoinShare]:
        """The joins that several queries share, or may share."""
        return shares_of(query.flow for query in self.flows.values())

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

    def _flow(self, name: str, flow: Flow, remote: bool = True) -> Flow:
        """A new flow like this one: in shards if there are some and it can be, else here."""
        key = self.shard_key(flow.query, flow.plan) if remote else "it began here"
        about: dict[str, Any] = {"strategy": flow.strategy, "since": flow.since, "notes": flow.notes}
        if self.outbox is None or isinstance(key, str):
            return Flow(flow.query, flow.plan, self._compiler, **about)
        return RemoteFlow(
            name, key, self.outbox, flow.query, flow.plan, self._compiler, optimizer=self.optimizer, **about
        )  # fmt: skip

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
        for query in self.flows.values():
            old = query.flow
            flow = self._flow(query.name, old) if old.untouched else old
            if isinstance(flow, RemoteFlow):  # the others stay as they are, with the rows of their relations
                if isinstance(old, SharedJoin):
                    old.close()
                query.flow = flow
                self._begin(flow)

    def load_relation(self, relation: Relation, table: pa.Table) -> None:
        """The first rows of a relation; queries that read it have waited for them."""
        self.relations.load(relation, table)
        for query in self.readers(relation):
            query.flow.update(relation.name, self.relations.batch(relation), None, None)

    def readers(self, relation: Relation) -> list[FlowQuery]:
        """The queries that read a relation."""
        return [query for query in self.flows.values() if relation.name.lower() in query.relations]

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
        ticks = [tick for one in self.streams.values() if (tick := one.watermark.newest) is not None]
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

    def add_query(self, name: str, plan: PeriodicAggregate) -> RunningQuery:
        """Register a query; it shares the panes that exist already and starts at the next due time."""
        if not self._shares:
            plan = replace(plan, apart=name)
        running = self.streams[plan.stream.name.lower()]
        rows = AnswerRows.of(plan, self._compiler)
        terms = tuple(self._term(one, plan.hint) for one in plan.aggregations)
        self._check_hint(running, plan, terms)
        part = self._blank_slice(plan)
        member = Member(plan.window, plan.slide, terms, threshold=self._threshold(plan, terms), hint=plan.hint)
        mark = running.watermark
        started = BEGINNING if mark.value is None else mark.value
        query = RunningQuery(name, plan, rows, member, part, started)
        if plan.rows is not None:
            self._count_rows(running, query)
        else:
            query.slice = running.slices.get(plan.share_key) or part
            query.slice.add(member, mark.newest)
            running.slices[plan.share_key] = query.slice
        running.queries[name] = query
        running.plan_sharing(part if query.slice is part and plan.rows is None else None)
        return query

    def _count_rows(self, running: RunningStream, query: RunningQuery) -> None:
        """Put a query on the axis of tuple numbers; it counts from the first tuple that has no number yet."""
        mark, plan, member = running.watermark, query.plan, query.member
        if running.numbering is None:
            running.numbering = Numbering(running.stream, BEGINNING if mark.newest is None else mark.newest)
        numbering = running.numbering
        if numbering.count % plan.slide and any(one.name in SUB_WINDOWS for one in plan.aggregations):
            raise UnsupportedError(
                f"query {query.name}: FREQUENT keeps a list per SLIDE of {plan.slide} tuples, counted from the first, "
                f"and {numbering.count} tuples have been counted; register it before the first, or after a whole slide"
            )
        query.rows_since = query.started if numbering.count else numbering.begin
        member.origin, member.next_due = numbering.count, numbering.count + plan.slide
        if plan.rows is not None and plan.rows.partition_by:
            numbering.partition(plan)
            query.slice.add(member, None)  # only says how to evaluate contents
        else:
            query.slice = numbering.slices.setdefault(plan.share_key, query.slice)
            query.slice.add(member, numbering.count or None, in_order=True)

    def drop_query(self, query: Registered) -> None:
        """Drop a query; what others still use stays."""
        if query.status == "running":
            self._remove(query)
        query.dropped = True

    def _remove(self, query: Registered) -> None:
        if isinstance(query, FlowQuery):
            del self.flows[query.name]
            query.flow.close()
            return
        assert isinstance(query, RunningQuery)
        running = self.streams[query.plan.stream.name.lower()]
        del running.queries[query.name]
        if running.numbering is not None and query.plan.rows is not None:
            running.numbering.leave(query.plan, query.slice, running.row_plans)
        query.slice.remove(query.member)
        if not query.slice.members:
            running.forget_slice(query.slice)
        running.plan_sharing()

    def _check_hint(self, running: RunningStream, plan: PeriodicAggregate, terms: Sequence[Term]) -> None:
        """Refuse a hint where nothing is summarised, or where another query has another one for the same state."""
        hint, part = plan.hint, _slice_of(running, plan)
        if hint is None:
            return
        if plan.rows is not None and plan.rows.partition_by:
            reason = f"{hint}: a window with PARTITION BY keeps rows and no synopsis; leave the hint out"
            raise BindError(reason, line=hint.line, column=hint.column)
        for one, term in zip(plan.aggregations, terms, strict=True):
            other = None if part is None else part.hinting(term)
            if other is not None and other.hint is not None and other.hint.synopsis != hint.synopsis:
                name = running.name_of(other)
                reason = f"{hint}: query {name} shares the panes of {one.text} and has the hint {other.hint}"
                advice = f"; give both the same, or drop {name}"
                raise BindError(reason + advice, line=hint.line, column=hint.column)

    def _term(self, one: Aggregation, hint: Hint | None = None) -> Term:
        program = None if one.value is None else self._compiler.compile(one.value)
        try:
            made = aggregate(one.name, None if program is None else program.type, one.parameters, one.user)
            for component in made.components:
                check(component, self.synopsis if hint is None else hint.synopsis)
            return Term(made, program)
        except ValueError as error:
            line, column = position(one.value) if one.value is not None else (None, None)
            if hint is not None:
                line, column = hint.line, hint.column
            raise UnsupportedError(f"{one.text}: {error}", line=line, column=column) from None

    def describe_query(self, query: Registered) -> list[tuple[str, str]]:
        """For EXPLAIN: what a registered query keeps, and with whom."""
        if isinstance(query, FlowQuery):
            host = []
            if self.outbox is not None and not query.flow.remote:
                key = self.shard_key(query.flow.query, query.flow.plan)
                host = [("host", f"the driver: {key if isinstance(key, str) else 'it had begun here'}")]
            return [*host, *query.flow.describe()]
        assert isinstance(query, RunningQuery)
        return self.describe(query.plan)

    def describe_new(self, query: BoundQuery, plan: Output) -> list[tuple[str, str]]:
        """The same of a query that is not registered."""
        periodic = in_panes(query, plan)
        if periodic is not None:
            return self.describe(periodic)
        plan, notes = self._optimized(plan)
        return Flow(query, plan, self._compiler, notes=notes).describe()

    def plan_of(self, query: BoundQuery, plan: Output) -> Output:
        """The plan that runs, or would run, a query: operators may stand elsewhere than in the query."""
        return plan if in_panes(query, plan) is not None else self._optimized(plan)[0]

    def _optimized(self, plan: Output) -> tuple[Output, list[tuple[str, str]]]:
        return optimized(plan) if self.optimizer else (plan, [])

    def describe(self, plan: PeriodicAggregate) -> list[tuple[str, str]]:
        """For EXPLAIN: the panes, the synopses, and who shares them."""
        running = self.streams[plan.stream.name.lower()]
        if plan.rows is not None and plan.rows.partition_by:
            return self._describe_partitions(plan)
        part = _slice_of(running, plan)
        own = edges_of(plan.window.length, plan.slide, plan.window.offset)
        grid = part.group.grid if part is not None and part.group is not None else Grid.of(own)
        panes = grid.describe()
        if grid.uniform and plan.rows is not None:
            rows = grid.progressions[0][0]
            panes = f"panes of {rows} row{'s' if rows > 1 else ''}"
        elif grid.uniform:
            panes = f"panes of {duration_text(grid.progressions[0][0], timestamps=plan.stream.timestamps)}"
        notes = [("panes", f"{panes}, one pass over each batch fills them for every query of the slice")]
        if plan.rows is not None:
            notes.append(("rows", ROWS_NOTE.format(reach=plan.window.reach)))
        for one in plan.aggregations:
            known = self._choice(running, part, plan, self._term(one, plan.hint), grid)
            error = error_of(one.name, one.parameters)
            bound = "" if error is None else f"; error: {error}"
            notes.append((one.text, f"{known.name} synopsis; {known.reason}{bound}"))
        threshold = self._threshold(plan, tuple(self._term(one, plan.hint) for one in plan.aggregations))
        if threshold is not None:
            notes.append((f"HAVING {threshold.text}", self._describe_search(part, plan, threshold)))
        if part is not None:
            names = [query.name for query in running.queries_of(part)]
            shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
            count = "1 query uses" if len(names) == 1 else f"{len(names)} queries use"
            notes.append(("shared", f"{count} these panes (rule SS1): {shown}"))
            notes += explained(running, part, plan)
        elif plan.rows is None:
            notes += self._would_be_derived(running, plan)
        if plan.priority is not None:
            notes.append(("priority", f"{plan.priority.value}: in live runs the greater goes first at equal deadlines"))
        return notes

    def _would_be_derived(self, running: RunningStream, plan: PeriodicAggregate) -> list[tuple[str, str]]:
        """For EXPLAIN of a query that is not registered: from which slices it would take partials."""
        part = self._blank_slice(plan)
        part.add(Member(plan.window, plan.slide, tuple(self._term(one) for one in plan.aggregations)), None)
        found = find_derivation(part, list(reversed(running.slices.values())))
        return [] if found is None else [("derived", derivation_text(running, part, found))]

    def _blank_slice(self, plan: PeriodicAggregate) -> Slice:
        predicate = None if plan.predicate is None else self._compiler.compile(plan.predicate)
        keys = tuple(self._compiler.compile(one) for one in plan.keys)
        return Slice(predicate, keys, self.synopsis, selected=rows_of(plan.predicate))

    def sharing(self) -> pa.Table:
        """Who shares what with whom, by which rule, and what it has saved so far."""
        return sharing_table(self.streams.values(), self.joins)

    def _choice(
        self, running: RunningStream, part: Slice | None, plan: PeriodicAggregate, term: Term, grid: Grid
    ) -> Choice:
        """How an aggregate is kept, or would be, and why."""
        component = term.aggregate.components[0]
        known = None if part is None else part.explain(term)
        if known is None:
            windows = expected([Member(plan.window, plan.slide, (term,))], grid)
            known = Choice(chosen(component, self.synopsis, windows), reason(component, self.synopsis, windows))
        hint, whose = plan.hint, ""
        other = None if part is None else part.hinting(term)
        if hint is None and other is not None:
            hint, whose = other.hint, f" of query {running.name_of(other)}"
        if hint is None or not may_choose(component):
            return known
        if known.name == Sparse.name:
            return Choice(known.name, f"{known.reason}; the hint {hint}{whose} has nothing to choose there")
        return forced(hint.synopsis, f"the hint {hint}{whose}")

    def _describe_partitions(self, plan: PeriodicAggregate) -> list[tuple[str, str]]:
        assert plan.rows is not None
        keys = ", ".join(plan.rows.partition_by)
        held = f"the last {plan.window.reach} rows of each ({keys}) are kept, and evaluated when {plan.slide} rows came"
        return [("panes", f"none: {held}"), ("rows", ORDER_NOTE)]

    def _threshold(self, plan: PeriodicAggregate, terms: Sequence[Term]) -> Threshold | None:
        """What HAVING says of a count, or of a sum or extreme of integers, where other groups need no look at all."""
        threshold = threshold_of(plan)
        if threshold is None or plan.rows is not None:
            return None
        # A collection finds the groups of a window in its own entries: it cannot be asked for some of them only.
        if any(isinstance(part, Collected) for term in terms for part in term.aggregate.components):
            return None
        return threshold if pa.types.is_integer(terms[threshold.aggregation].aggregate.type) else None

    def _describe_search(self, part: Slice | None, plan: PeriodicAggregate, threshold: Threshold) -> str:
        """How the groups of a HAVING are found."""
        told = "decided in the panes, before anything else of a group is looked up"
        if part is None or part.group is None:
            return told
        running = self.streams[plan.stream.name.lower()]
        places = [query.member.limited for query in running.queries_of(part) if query.member.threshold == threshold]
        search = part.group.search(places[0]) if places and places[0] is not None else None
        return told if search is None else f"{told}; {search.describe(part.group.groups)}"

    # ---- data in --------------------------------------------------------------------------------------------------

    def push(self, name: str, data: Any) -> None:
        """Take in one batch: all of it or, with an InputError, nothing. Late rows are kept apart."""
        running = self._accepting(name)
        table = conform(running.stream, data)
        ts = timestamps(running.stream, table)
        if not len(ts):
            running.batches += 1
            return
        self.check(name, int(np.min(ts)), int(np.max(ts)))
        running.batches += 1
        running.rows += len(ts)
        table, ts = self._set_late_apart(running, table, ts)
        if not len(ts):
            return
        oldest, newest = int(np.min(ts)), int(np.max(ts))
        context = Context.of(table.combine_chunks())
        panes = shared_panes(list(running.slices.values()), ts)
        derived = running.feeding.derived(oldest, newest, len(ts), self.deriving)
        stopped = feed(running.feeding, context, ts, panes, derived, worthwhile=len(ts) >= PARALLEL_ROWS)
        failed = [
            self.stop(query, reasons[query.member])
            for part, reasons in stopped.items()
            if reasons
            for query in running.queries_of(part)
            if query.member in reasons
        ]
        if running.numbering is not None:
            running.numbering.add(table)
        self._feed(running, table, ts)
        running.watermark.observe(oldest, newest)
        failed += self._answer(running, running.watermark.value)
        _raise(failed)

    def _feed(self, running: RunningStream, table: pa.Table, ts: NDArray[np.int64]) -> None:
        """Hand tuples to the queries that keep them."""
        name = running.stream.name
        for query in self.flows.values():
            if name.lower() in query.streams:
                query.flow.add(name, table, ts)

    def job(self, name: str, derived: Sequence[Slice] | None = None) -> Job:
        """What workers elsewhere must know to slice this stream for the queries registered now.

        The `derived` slices need no worker; by default those for which that is cheapest now.
        """
        running = self.streams[name.lower()]
        chosen = self.derived(name) if derived is None else derived
        return job_of(running, chosen, self.kept_columns(name), self.kept_rows(name))

    def derived(self, name: str) -> tuple[Slice, ...]:
        """The slices that workers need not slice in the next batch, as the partials of others have them."""
        running = self.streams[name.lower()]
        mark, batches = running.watermark, max(1, running.batches)
        oldest = None if mark.value is None else mark.value + 1
        span = 0 if mark.newest is None or mark.oldest is None else (mark.newest - mark.oldest) // batches
        newest = None if oldest is None else oldest + span
        return tuple(running.feeding.derived(oldest, newest, running.rows / batches, self.deriving))

    def kept_columns(self, name: str) -> frozenset[str]:
        """The columns of a stream that queries keep tuple by tuple."""
        users = [query.flow for query in self.flows.values() if name.lower() in query.streams]
        return frozenset({self.streams[name.lower()].stream.time} if users else ()).union(
            *(flow.columns(name) for flow in users)
        )

    def kept_rows(self, name: str) -> list[exp.Expr | None]:
        """Which of its tuples they keep: those that do not fail one of these predicates; None wants them all."""
        wanted: dict[str, exp.Expr | None] = {}
        for query in self.flows.values():
            if name.lower() in query.streams:
                wanted |= {"" if one is None else one.sql("cql"): one for one in query.flow.wanted(name)}
        return list(wanted.values())

    def check(self, name: str, oldest: int, newest: int) -> None:
        """Refuse a batch whose timestamps are impossible, before anything of it is taken in."""
        running = self._accepting(name)
        for tick in (oldest, newest):
            self._check_tick(running, tick)
        self._check_cost(running, oldest, newest)

    def absorb(self, name: str, job: Job, sliced: Sliced, *, answer: bool = True) -> None:
        """Take in a batch that workers have sliced by `job`: the same as a push of its rows.

        Without `answer` what is due in the panes waits for `execute`.
        """
        running = self._accepting(name)
        if sliced.oldest is not None and sliced.newest is not None:
            self.check(name, sliced.oldest, sliced.newest)
        running.batches += 1
        running.rows += sliced.rows
        running.late_rows += sliced.late_rows
        running.late += sliced.late
        by_slice: dict[int, list[Partials]] = {}
        for number, partials in sliced.partials:
            by_slice.setdefault(number, []).append(partials)
        worthwhile = sum(len(partials) for _, partials in sliced.partials) >= PARALLEL_ROWS
        each(lambda item: job.slices[item[0]].absorb(item[1]), list(by_slice.items()), worthwhile=worthwhile)
        given = {
            one.part: (one.handout, by_slice.get(number, []))
            for number, one in enumerate(job.slices)
            if one.handout is not None
        }
        each(lambda part: derive(part, given), job.derived, worthwhile=worthwhile)
        reasons: dict[RunningQuery, QueryError] = {}
        for (number, term), why in sorted(sliced.failed.items()):
            one = job.slices[number]
            for query in one.users([query for part in one.parts for query in running.queries_of(part)], term):
                reasons.setdefault(query, QueryError(why))
        for one in job.slices:
            broken = one.part.failures()
            for query in running.queries_of(one.part) if broken else ():
                if query.member in broken:
                    reasons.setdefault(query, broken[query.member])
        failed = [self.stop(query, error) for query, error in reasons.items()]
        for table in sliced.tuples:
            if running.numbering is not None:
                running.numbering.add(table)
            self._feed(running, table, timestamps(running.stream, table))
        if sliced.kept is not None:
            for flow_query in self.flows.values():
                flow_query.flow.see(name, sliced.kept[0])
            running.watermark.observe(*sliced.kept)
            failed += self._answer(running, running.watermark.value, panes=answer)
        _raise(failed)

    def execute(self, name: str, now: int, names: Sequence[str]) -> None:
        """Answer these queries as of `now`, which the watermark has passed; see `answer_newest`."""
        running = self.streams[name.lower()]
        together: dict[Slice, list[RunningQuery]] = {}
        for one in names:
            query = running.queries.get(one)
            if query is not None:
                together.setdefault(query.slice, []).append(query)
        failed = [
            self.stop(query, error)
            for part, queries in together.items()
            for query, error in answer_newest(running.watermark, part, queries, now).items()
        ]
        _raise(failed)

    def forget(self, name: str) -> None:
        """Drop the panes that no query looks at any more, after what is due was executed."""
        for part in self.streams[name.lower()].slices.values():
            if part.group is not None:
                part.forget()

    def advance(self, name: str, to: int) -> None:
        """A heartbeat: the stream is complete up to `to`."""
        running = self._accepting(name)
        to = int(to)  # of NumPy, perhaps, which JSON does not know
        self._check_tick(running, to)
        if running.watermark.oldest is not None:
            self._check_cost(running, running.watermark.oldest, to)
        running.watermark.advance(to)
        _raise(self._answer(running, running.watermark.value))

    def finish(self, names: Collection[str] | None = None) -> None:
        """The end of these or all inputs: every query is answered at the first due time at or after its last tuple."""
        failed: list[QueryError] = []
        ending = None if names is None else {name.lower() for name in names}
        for name, running in self.streams.items():
            if not running.finished and (ending is None or name in ending):
                running.finished = True
                failed += self._answer(running, None)
        _raise(failed)

    def _accepting(self, name: str) -> RunningStream:
        running = self.streams[name.lower()]
        if running.finished:
            raise StateError(f"stream {running.stream.name} has ended (finish was called); it takes no more data")
        return running

    def _set_late_apart(
        self, running: RunningStream, table: pa.Table, ts: NDArray[np.int64]
    ) -> tuple[pa.Table, NDArray[np.int64]]:
        mark = running.watermark.value
        if mark is None or int(np.min(ts)) > mark:
            return table, ts
        late = ts <= mark
        running.late.append(table.filter(pa.array(late)))
        running.late_rows += int(late.sum())
        return table.filter(pa.array(~late)), ts[~late]

    def _check_tick(self, running: RunningStream, tick: int) -> None:
        if abs(tick) > FARTHEST_TICK:
            raise InputError(
                f"time {tick} of stream {running.stream.name} is out of range; ticks go from {-FARTHEST_TICK} to "
                f"{FARTHEST_TICK}. Nothing was taken in."
            )

    def _check_cost(self, running: RunningStream, oldest: int, newest: int) -> None:
        """Refuse to move time so far that the answers of empty windows alone would exhaust the memory."""
        mark = running.watermark
        oldest = oldest if mark.oldest is None else min(oldest, mark.oldest)
        flows = [query.flow for query in self.flows.values() if running.stream.name.lower() in query.streams]
        # Whatever its other streams do, at their end a flow comes to the newest instant of all.
        total = sum(flow.due_at_most(oldest, newest) for flow in flows)
        if total + running.due_at_most(oldest, newest) <= MAX_DUE_TIMES:
            return  # a push must not cost a look at every query
        for query in running.queries.values():
            if query.plan.keys or query.plan.rows is not None:
                continue  # an empty window of a grouped query has no rows, and tuples are counted, not time
            first = query.member.next_due if query.member.next_due is not None else query.first_due(oldest)
            total += max(0, (newest - first) // query.plan.slide + 1)
        if total > MAX_DUE_TIMES:
            raise InputError(
                f"this would move stream {running.stream.name} to {newest} and make {total:,} answers due at once "
                f"(at most {MAX_DUE_TIMES:,}); is a timestamp wrong? Nothing was taken in."
            )

    # ---- answers out ----------------------------------------------------------------------------------------------

    def _answer(self, running: RunningStream, watermark: int | None, *, panes: bool = True) -> list[QueryError]:
        """Answer everything that is due, in the panes too; a watermark of None is the end of the input."""
        if running.watermark.newest is None:
            return self._move(running)
        parts = [
            (part, running.queries_of(part))
            for part in (running.slices.values() if panes else ())
            # Between due times a batch costs its panes only, whatever the number of queries.
            if watermark is None or part.earliest_due is None or part.earliest_due <= watermark
        ]
        size = sum(part.group.groups * len(queries) for part, queries in parts if part.group is not None)
        failed = each(
            lambda item: answer_slice(running.watermark, *item, watermark),
            parts,
            worthwhile=size >= PARALLEL_ROWS,
        )
        if running.numbering is not None:
            failed.append(answer_rows(running, watermark))
        stopped = [self.stop(query, error) for pairs in failed for query, error in pairs.items()]
        return [*stopped, *self._move(running)]

    def _move(self, running: RunningStream) -> list[QueryError]:
        """Let the queries that operators maintain go on; one that cannot is stopped alone."""
        failed = []
        for query in list(self.flows.values()):
            if running.stream.name.lower() in query.streams:
                try:
                    with own_faults():
                        query.move(self.streams)
                except QueryError as error:
                    failed.append(self.stop(query, error))
        return failed

    def ask(self, plan: PeriodicAggregate) -> pa.Table:
        """Answer a one-time query from what the registered ones keep, as of the newest window update."""
        if plan.hint is not None:
            reason = f"{plan.hint}: a one-time query takes what the registered ones keep; leave the hint out"
            raise BindError(reason, line=plan.hint.line, column=plan.hint.column)
        running = self.streams[plan.stream.name.lower()]
        rows = AnswerRows.of(plan, self._compiler)
        terms = tuple(self._term(one) for one in plan.aggregations)
        if plan.rows is None:
            return ask_panes(running, plan, rows, terms)
        return ask_rows(running, plan, rows, self._blank_slice(plan), terms)

    def stop(self, query: Registered, error: QueryError) -> QueryError:
        """A query that cannot be answered exactly is taken out; its answers so far stay, and the others go on."""
        if query.status == "running":
            self._remove(query)
        query.error = QueryError(f"query {query.name} was stopped: {error}")
        return query.error

    # ---- snapshots ------------------------------------------------------------------------------------------------

    def snapshot(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """All that future answers depend on: a JSON-able dict, and named blobs (Arrow IPC).

        Answers and late rows that were not taken away yet are not in it.
        """
        if not self._shares:
            raise StateError("an engine that shares nothing is for experiments, and has no snapshots")
        meta, blobs = snapshot_streams(self.streams, self.synopsis)
        meta["flows"] = snapshot_flows(self.flows, self.relations, blobs)
        if self.outbox is not None:
            meta["outbox"], untold = self.outbox.snapshot()
            blobs |= untold
        return meta, blobs

    def restore(self, meta: Mapping[str, Any], blobs: Mapping[str, bytes]) -> None:
        """Go on where the engine of a snapshot was, given the same streams and the queries that were running then.

        Raises CheckpointError, with nothing changed, when others are registered or the snapshot is damaged.
        """
        flows = built_flows(self.flows, self.synopsis, meta, blobs, self._fresh({}))
        restore_streams(self.streams, self.synopsis, meta, blobs)
        put_flows_in_place(self.flows, self.relations, flows)
        if self.outbox is not None:
            self.outbox.restore(meta["outbox"], blobs)

    def _fresh(self, shares: dict[str, JoinShare]) -> Callable[[Flow, Mapping[str, Any]], Flow]:
        """Makes flows without state for records of a snapshot; `shares` are the joins so far, by their first query."""

        def fresh(flow: Flow, record: Mapping[str, Any]) -> Flow:
            first = record["state"].get("joined")
            if first is None:
                return self._flow(record["name"], flow, record["remote"])
            shape = join_shape(flow.query, build(flow.query))
            if shape is None:
                raise ValueError(f"query {record['name']} cannot share a join")
            if first not in shares:
                shares[first] = self._new_share(flow, shape)
            return self._shared_join(record["name"], shares[first], shape, flow)

        return fresh


def _slice_of(running: RunningStream, plan: PeriodicAggregate) -> Slice | None:
    """The slice that a query shares, or would share; None when there is none yet."""
    slices = running.slices
    if plan.rows is not None:
        slices = {} if running.numbering is None else running.numbering.slices
    return slices.get(plan.share_key)


def _raise(failed: list[QueryError]) -> None:
    if len(failed) == 1:
        raise failed[0]
    if failed:
        raise QueryError("; ".join(str(error) for error in failed))
