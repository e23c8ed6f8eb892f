"""The engine: batches in, answers out. It knows nothing of Spark, text or terminals.

push ─► late rows out ─► one Context per batch ─► every slice's panes ─► watermark ─► due queries ─► answers
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow.answering import answer_newest, answer_slice
from windrow.asking import ask_panes, ask_rows, explain_question
from windrow.compiled import Compiled, check_hint
from windrow.errors import BindError, InputError, QueryError, StateError, UnsupportedError
from windrow.explaining import describe_panes
from windrow.expressions import Context
from windrow.flowing import FlowQuery
from windrow.flows import Flows
from windrow.input import conform, timestamps
from windrow.job import Job, job_of
from windrow.language.bound import BoundQuery
from windrow.language.catalog import Stream
from windrow.numbering.numbering import Numbering
from windrow.operators.answer import AnswerRows
from windrow.parallel import each
from windrow.plan.nodes import Output
from windrow.plan.periodic import ONE_TIME, SUB_WINDOWS, PeriodicAggregate, in_panes, periodic_aggregate
from windrow.row_answers import answer_rows
from windrow.running import Registered, RunningQuery, RunningStream
from windrow.sharing.feeding import Deriving, derive, feed
from windrow.sharing.slice import Slice
from windrow.sharing_report import sharing_table
from windrow.sliced import Sliced
from windrow.slicer import PARALLEL_ROWS, shared_panes
from windrow.snapshots import restore_streams, snapshot_streams
from windrow.state.choice import Strategy
from windrow.synopses.partials import Partials
from windrow.windows.spec import BEGINNING, FARTHEST_TICK
from windrow.windows.watermark import Watermark

MAX_DUE_TIMES = 50_000_000
"""Answers that one batch may make due: a timestamp of the year 9999 must not exhaust the memory."""


class Engine:
    """All streams and queries of one process.

    `synopsis` forces one type of synopsis everywhere; None chooses. Without `optimizer` operators run as written, and
    without `sharing` every query keeps panes of its own: to measure what both are worth.
    """

    def __init__(self, synopsis: str | None = None, *, optimizer: bool = True, sharing: bool = True) -> None:
        self.synopsis, self.optimizer = synopsis, optimizer
        self._compiled = Compiled(synopsis)
        self.streams: dict[str, RunningStream] = {}
        self.flows = Flows(self.streams, self._compiled, optimizer=optimizer, sharing=sharing)
        """Queries that are maintained by operators: continuous ones, joins, negation, relations."""
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
        return [*self.streams[stream.lower()].queries.values(), *self.flows.reading(stream)]

    @property
    def running(self) -> list[Registered]:
        """All running queries."""
        others = (one for stream in self.streams.values() for one in stream.queries.values())
        return [*others, *self.flows.queries.values()]

    def register(self, name: str, query: BoundQuery, plan: Output, strategy: Strategy = "upa") -> Registered:
        """Register a query: from shared panes if they can answer it, else by operators of its own."""
        periodic = in_panes(query, plan)
        asked = query.priority
        if asked is not None and asked.value and (periodic is None or periodic.rows is not None):
            reason = f"{asked}: this query is answered when its tuples come, not by a schedule; give it no priority"
            raise BindError(reason, line=asked.line, column=asked.column)
        if periodic is not None:
            return self.add_query(name, periodic)
        return self.flows.add(name, query, plan, strategy)

    def add_query(self, name: str, plan: PeriodicAggregate) -> RunningQuery:
        """Register a query; it shares the panes that exist already and starts at the next due time."""
        if not self._shares:
            plan = replace(plan, apart=name)
        running = self.streams[plan.stream.name.lower()]
        rows = AnswerRows.of(plan, self._compiled.compiler)
        member = self._compiled.member(plan)
        check_hint(running, plan, member.terms)
        part = self._compiled.slice(plan)
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
            self.flows.remove(query)
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

    def describe_query(self, query: Registered) -> list[tuple[str, str]]:
        """For EXPLAIN: what a registered query keeps, and with whom."""
        if isinstance(query, FlowQuery):
            return self.flows.describe(query)
        assert isinstance(query, RunningQuery)
        return self._describe(query.plan, new=False)

    def describe_new(self, query: BoundQuery, plan: Output) -> list[tuple[str, str]]:
        """The same of a query that is not registered."""
        periodic = in_panes(query, plan)
        if periodic is not None:
            return self._describe(periodic, new=True)
        return [*self.flows.describe_new(query, plan), *self._asked_once(query, plan)]

    def _asked_once(self, query: BoundQuery, plan: Output) -> list[tuple[str, str]]:
        """What would answer a query without SLIDE as a question; nothing if that is not one, or nothing does now."""
        with suppress(UnsupportedError):
            asked = periodic_aggregate(query, plan, one_time=True)
            terms = self._compiled.terms(asked)
            if asked.rows is None and asked.slide == ONE_TIME:
                running = self.streams[asked.stream.name.lower()]
                return explain_question(running, asked, self._compiled.slice(asked), terms)
        return []

    def _describe(self, plan: PeriodicAggregate, *, new: bool) -> list[tuple[str, str]]:
        return describe_panes(self._compiled, self.streams[plan.stream.name.lower()], plan, new=new)

    def plan_of(self, query: BoundQuery, plan: Output) -> Output:
        """The plan that runs, or would run, a query: operators may stand elsewhere than in the query."""
        return plan if in_panes(query, plan) is not None else self.flows.optimized(plan)[0]

    def sharing(self) -> pa.Table:
        """Who shares what with whom, by which rule, and what it has saved so far."""
        return sharing_table(self.streams.values(), self.flows.joins)

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
        self.flows.take(running.stream.name, table, ts)
        running.watermark.observe(oldest, newest)
        failed += self._answer(running, running.watermark.value)
        _raise(failed)

    def job(self, name: str, derived: Sequence[Slice] | None = None) -> Job:
        """What workers elsewhere must know to slice this stream for the queries registered now.

        The `derived` slices need no worker; by default those for which that is cheapest now.
        """
        running = self.streams[name.lower()]
        chosen = self.derived(name) if derived is None else derived
        return job_of(running, chosen, self.flows.kept_columns(running.stream), self.flows.kept_rows(name))

    def derived(self, name: str) -> tuple[Slice, ...]:
        """The slices that workers need not slice in the next batch, as the partials of others have them."""
        running = self.streams[name.lower()]
        mark, batches = running.watermark, max(1, running.batches)
        oldest = None if mark.value is None else mark.value + 1
        span = 0 if mark.newest is None or mark.oldest is None else (mark.newest - mark.oldest) // batches
        newest = None if oldest is None else oldest + span
        return tuple(running.feeding.derived(oldest, newest, running.rows / batches, self.deriving))

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
            self.flows.take(running.stream.name, table, timestamps(running.stream, table))
        if sliced.kept is not None:
            self.flows.see(name, sliced.kept[0])
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
        flows = [query.flow for query in self.flows.reading(running.stream.name)]
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
            return self._move_flows(running)
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
        return [*stopped, *self._move_flows(running)]

    def _move_flows(self, running: RunningStream) -> list[QueryError]:
        """Let the queries that operators maintain go on; one that cannot is stopped alone."""
        return [self.stop(query, error) for query, error in self.flows.move(running.stream.name).items()]

    def ask(self, plan: PeriodicAggregate) -> pa.Table:
        """Answer a one-time query from what the registered ones keep, as of the newest window update."""
        for hint in (plan.hint, plan.priority):
            if hint is not None:
                reason = f"{hint}: a one-time query takes what the registered ones keep; leave the hint out"
                raise BindError(reason, line=hint.line, column=hint.column)
        running = self.streams[plan.stream.name.lower()]
        rows, terms = AnswerRows.of(plan, self._compiled.compiler), self._compiled.terms(plan)
        if plan.rows is None:
            return ask_panes(running, plan, rows, self._compiled.slice(plan), terms)
        return ask_rows(running, plan, rows, self._compiled.slice(plan), terms)

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
        self.flows.snapshot(meta, blobs)
        return meta, blobs

    def restore(self, meta: Mapping[str, Any], blobs: Mapping[str, bytes]) -> None:
        """Go on where the engine of a snapshot was, given the same streams and the queries that were running then.

        Raises CheckpointError, with nothing changed, when others are registered or the snapshot is damaged.
        """
        flows = self.flows.built(meta, blobs)
        restore_streams(self.streams, self.synopsis, meta, blobs)
        self.flows.put_in_place(flows, meta, blobs)


def _raise(failed: list[QueryError]) -> None:
    if len(failed) == 1:
        raise failed[0]
    if failed:
        raise QueryError("; ".join(str(error) for error in failed))
