"""The engine: batches in, answers out. It knows nothing of Spark, text or terminals.

push ─► late rows out ─► one Context per batch ─► every slice's panes ─► watermark ─► due queries ─► answers
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow.aggregates import aggregate
from windrow.errors import InputError, QueryError, StateError, UnsupportedError
from windrow.expressions import Compiler, Context
from windrow.input import conform, timestamps
from windrow.kernels.memory import pooled
from windrow.kernels.prefix import repeat_ticks
from windrow.language.catalog import Stream
from windrow.language.positions import position
from windrow.language.units import duration_text
from windrow.operators.answer import AnswerRows
from windrow.parallel import each
from windrow.plan.periodic import Aggregation, PeriodicAggregate
from windrow.sharing.slice import BEGINNING, Member, Slice, Term
from windrow.synopses.registry import chosen, reason
from windrow.windows.due import due_times, due_times_with_panes, first_due, last_due
from windrow.windows.grid import Grid, edges_of
from windrow.windows.spec import MAX_TICK
from windrow.windows.watermark import Watermark

FARTHEST_TICK = 1 << 61
"""Leaves room for RANGE, OFFSET and SLIDE, which are at most as long, in 64 bits."""
MAX_DUE_TIMES = 50_000_000
"""Answers that one batch may make due: a timestamp of the year 9999 must not exhaust the memory."""
LOOKUP_ROWS = 4_000_000
"""Windows times groups that are looked up at once."""
MANY_BATCHES, SMALL_BATCH = 64, 16_384
"""So many neighbouring answers of fewer rows than that are put together."""
PARALLEL_ROWS = 50_000
"""Below this, handing work to threads costs more than it saves."""


@dataclass(eq=False)
class RunningQuery:
    """A registered query: its plan, its place in a slice, its answers so far."""

    name: str
    plan: PeriodicAggregate
    rows: AnswerRows
    member: Member
    slice: Slice
    started: int
    """Only due times after this are answered: the watermark when it was registered."""
    batches: list[pa.RecordBatch] = field(default_factory=list)
    error: QueryError | None = None
    due: int = 0
    answered: int = 0
    seconds: float = 0.0
    dropped: bool = False

    @property
    def status(self) -> str:
        """running, stopped by an error, or dropped by the user."""
        return "dropped" if self.dropped else "stopped" if self.error is not None else "running"

    @property
    def since(self) -> int | None:
        """Tuples at or before this tick are in none of its panes; None when it has seen the whole stream."""
        return None if self.member.since == BEGINNING else self.member.since

    def first_due(self, oldest: int) -> int:
        """The first due time that is not before the stream's oldest tuple, the registration, or what the panes know."""
        return first_due(max(oldest, self.started + 1, self.member.since + 1), self.plan.slide)

    @property
    def reach(self) -> int:
        """How far behind τ its windows begin."""
        assert self.member.window.reach is not None
        return self.member.window.reach

    def add(self, batch: pa.RecordBatch) -> None:
        """Keep the rows of some due times."""
        if batch.num_rows:
            self.batches.append(batch)
            self.answered += batch.num_rows
        if len(self.batches) >= MANY_BATCHES and batch.num_rows < SMALL_BATCH:
            # Tiny pushes make tiny answers: put neighbours together, so that there are never many.
            small = next(
                (i for i, one in enumerate(reversed(self.batches)) if one.num_rows >= SMALL_BATCH), len(self.batches)
            )
            if small >= MANY_BATCHES:
                tail = pa.Table.from_batches(self.batches[-small:]).combine_chunks().to_batches()
                self.batches[-small:] = tail


@dataclass(eq=False)
class RunningStream:
    """A stream's watermark, its slices, its queries and what came too late."""

    stream: Stream
    watermark: Watermark
    slices: dict[tuple[str, str, tuple[str, ...]], Slice] = field(default_factory=dict)
    queries: dict[str, RunningQuery] = field(default_factory=dict)
    late: list[pa.Table] = field(default_factory=list)
    rows: int = 0
    late_rows: int = 0
    batches: int = 0
    finished: bool = False


Due: TypeAlias = tuple[RunningQuery, NDArray[np.int64]]
"""A query and the instants at which it is to be answered."""


class Engine:
    """All streams and queries of one process. `synopsis` forces one synopsis type everywhere (tests compare them)."""

    def __init__(self, synopsis: str | None = None) -> None:
        self._compiler = Compiler()
        self._synopsis = synopsis
        self.streams: dict[str, RunningStream] = {}

    # ---- streams and queries come and go --------------------------------------------------------------------------

    def add_stream(self, stream: Stream) -> None:
        """Start to accept a stream."""
        self.streams[stream.name.lower()] = RunningStream(stream, Watermark(stream.lateness))

    def remove_stream(self, name: str) -> None:
        """Forget a stream that no query reads."""
        running = self.streams[name.lower()]
        if running.queries:
            raise StateError(f"stream {name} is read by {', '.join(running.queries)}; drop them first")
        del self.streams[name.lower()]

    def add_query(self, name: str, plan: PeriodicAggregate) -> RunningQuery:
        """Register a query; it shares the panes that exist already and starts at the next due time."""
        running = self.streams[plan.stream.name.lower()]
        rows = AnswerRows.of(plan, self._compiler)
        terms = tuple(self._term(one) for one in plan.aggregations)
        key = plan.share_key
        predicate = None if plan.predicate is None else self._compiler.compile(plan.predicate)
        keys = tuple(self._compiler.compile(one) for one in plan.keys)
        part = running.slices.get(key) or Slice(predicate, keys, self._synopsis)
        member = Member(plan.window, plan.slide, terms)
        mark = running.watermark
        part.add(member, mark.newest)
        running.slices[key] = part
        started = BEGINNING if mark.value is None else mark.value
        query = running.queries[name] = RunningQuery(name, plan, rows, member, part, started)
        return query

    def drop_query(self, query: RunningQuery) -> None:
        """Drop a query; what others still use stays."""
        if query.status == "running":
            self._remove(query)
        query.dropped = True

    def _remove(self, query: RunningQuery) -> None:
        running = self.streams[query.plan.stream.name.lower()]
        del running.queries[query.name]
        query.slice.remove(query.member)
        if not query.slice.members:
            running.slices = {key: one for key, one in running.slices.items() if one is not query.slice}

    def _term(self, one: Aggregation) -> Term:
        program = None if one.value is None else self._compiler.compile(one.value)
        try:
            return Term(aggregate(one.name, None if program is None else program.type), program)
        except ValueError as error:
            line, column = position(one.value) if one.value is not None else (None, None)
            raise UnsupportedError(f"{one.text}: {error}", line=line, column=column) from None

    def describe(self, plan: PeriodicAggregate) -> list[tuple[str, str]]:
        """For EXPLAIN: the panes, the synopses, and who shares them."""
        running = self.streams[plan.stream.name.lower()]
        part = running.slices.get(plan.share_key)
        timestamps_ = plan.stream.timestamps
        own = edges_of(plan.window.length, plan.slide, plan.window.offset)
        grid = part.group.grid if part is not None and part.group is not None else Grid.of(own)
        panes = grid.describe()
        if grid.uniform:
            panes = f"panes of {duration_text(grid.progressions[0][0], timestamps=timestamps_)}"
        notes = [("panes", f"{panes}, one pass over each batch fills them for every query of the slice")]
        for one in plan.aggregations:
            term = self._term(one)
            component = term.aggregate.components[0]
            notes.append((one.text, f"{chosen(component, self._synopsis)} synopsis; {reason(component)}"))
        if part is not None:
            names = [query.name for query in self._queries_of(running, part)]
            shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
            notes.append(("shared", f"{len(names)} queries use these panes (rule SS1): {shown}"))
        return notes

    # ---- data in --------------------------------------------------------------------------------------------------

    def push(self, name: str, data: Any) -> None:
        """Take in one batch: all of it or, with an InputError, nothing. Late rows are kept apart."""
        running = self._accepting(name)
        table = conform(running.stream, data)
        ts = timestamps(running.stream, table)
        if not len(ts):
            running.batches += 1
            return
        oldest, newest = int(np.min(ts)), int(np.max(ts))
        for tick in (oldest, newest):
            self._check_tick(running, tick)
        self._check_cost(running, oldest, newest)
        running.batches += 1
        running.rows += len(ts)
        table, ts = self._set_late_apart(running, table, ts)
        if not len(ts):
            return
        oldest, newest = int(np.min(ts)), int(np.max(ts))
        context = Context.of(table.combine_chunks())
        parts = list(running.slices.values())
        stopped = each(lambda part: part.insert(context, ts), parts, worthwhile=len(ts) >= PARALLEL_ROWS)
        failed = [
            self._stop(running, query, reasons[query.member])
            for part, reasons in zip(parts, stopped, strict=True)
            if reasons
            for query in self._queries_of(running, part)
            if query.member in reasons
        ]
        running.watermark.observe(oldest, newest)
        failed += self._answer(running, running.watermark.value)
        _raise(failed)

    def advance(self, name: str, to: int) -> None:
        """A heartbeat: the stream is complete up to `to`."""
        running = self._accepting(name)
        self._check_tick(running, to)
        if running.watermark.oldest is not None:
            self._check_cost(running, running.watermark.oldest, to)
        running.watermark.advance(to)
        _raise(self._answer(running, running.watermark.value))

    def finish(self) -> None:
        """The end of all inputs: every query is answered at the first due time at or after its last tuple."""
        failed: list[QueryError] = []
        for running in self.streams.values():
            if not running.finished:
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
        total = 0
        for query in running.queries.values():
            if query.plan.keys:
                continue  # an empty window of a grouped query has no rows
            first = query.member.next_due if query.member.next_due is not None else query.first_due(oldest)
            total += max(0, (newest - first) // query.plan.slide + 1)
        if total > MAX_DUE_TIMES:
            raise InputError(
                f"this would move stream {running.stream.name} to {newest} and make {total:,} answers due at once "
                f"(at most {MAX_DUE_TIMES:,}); is a timestamp wrong? Nothing was taken in."
            )

    # ---- answers out ----------------------------------------------------------------------------------------------

    def _answer(self, running: RunningStream, watermark: int | None) -> list[QueryError]:
        """Answer everything that is due; a watermark of None is the end of the input."""
        if running.watermark.newest is None:
            return []
        parts = [
            (part, self._queries_of(running, part))
            for part in running.slices.values()
            # Between due times a batch costs its panes only, whatever the number of queries.
            if watermark is None or part.earliest_due is None or part.earliest_due <= watermark
        ]
        size = sum(part.group.groups * len(queries) for part, queries in parts if part.group is not None)
        failed = each(
            lambda item: self._answer_part(running.watermark, *item, watermark),
            parts,
            worthwhile=size >= PARALLEL_ROWS,
        )
        return [self._stop(running, query, error) for pairs in failed for query, error in pairs.items()]

    def _answer_part(
        self, mark: Watermark, part: Slice, queries: list[RunningQuery], watermark: int | None
    ) -> dict[RunningQuery, QueryError]:
        """Close the slice's panes, answer its queries, forget what is behind them; touches nothing but the slice."""
        assert part.group is not None and mark.newest is not None and mark.value is not None
        part.close(watermark if watermark is not None else MAX_TICK)
        due = []
        for query in queries:
            taus = self._due(mark, query, watermark)
            if len(taus):
                due.append((query, taus))
        failed = self._answer_due(part, due)
        part.forget()
        return failed

    def _due(self, mark: Watermark, query: RunningQuery, watermark: int | None) -> NDArray[np.int64]:
        """The due times that the watermark has reached since the last call."""
        member, slide = query.member, query.plan.slide
        until = watermark
        if until is None:
            assert mark.newest is not None and mark.value is not None
            until = max(first_due(mark.newest, slide), last_due(mark.value, slide))
        if member.next_due is None:
            if mark.oldest is None or mark.oldest > until:
                return np.empty(0, np.int64)  # an older tuple may still come, and with it an earlier due time
            member.next_due = query.first_due(mark.oldest)
        if member.next_due > until:
            return np.empty(0, np.int64)
        count = (until - member.next_due) // slide + 1
        assert query.slice.group is not None
        edges = query.slice.group.closed_edges
        if query.plan.keys and count > 2 * len(edges) + 16:
            taus = due_times_with_panes(member.next_due, until, slide, edges, query.reach, member.window.offset)
        else:
            taus = due_times(member.next_due, until, slide)
        query.due += count
        member.next_due = last_due(until, slide) + slide
        return taus

    def _answer_due(self, part: Slice, due: Sequence[Due]) -> dict[RunningQuery, QueryError]:
        """Queries with the same aggregates are looked up together, whatever their windows (thesis 8.3.1)."""
        alike: dict[tuple[object, ...], list[Due]] = defaultdict(list)
        assert part.group is not None
        most = max(1, LOOKUP_ROWS // max(1, part.group.groups))
        for query, taus in due:
            names = tuple(term.aggregate.name for term in query.member.terms)
            for start in range(0, len(taus), most):
                alike[names, query.member.positions].append((query, taus[start : start + most]))
        failed: dict[RunningQuery, QueryError] = {}
        for together in alike.values():
            waiting: list[Due] = []
            for one in together:
                if waiting and sum(len(taus) for _, taus in waiting) + len(one[1]) > most:
                    failed |= self._look_up(part, waiting)
                    waiting = []
                if one[0] not in failed:
                    waiting.append(one)
            failed |= self._look_up(part, waiting)
        return failed

    def _look_up(self, part: Slice, due: Sequence[Due]) -> dict[RunningQuery, QueryError]:
        """One lookup for all these windows; then each query makes its answer rows of its part."""
        if not due:
            return {}
        began = perf_counter()
        assert part.group is not None
        ends = np.concatenate([taus - query.member.window.offset for query, taus in due])
        starts = np.concatenate([np.maximum(taus - query.reach, query.member.since) for query, taus in due])
        member = due[0][0].member
        places = [place for term in member.positions for place in term]
        found = part.group.lookup(starts, ends, places)
        words = dict(zip(places, found.words, strict=True))
        keys = part.group.dictionary.keys(found.group) if part.keys else []
        try:
            values = [
                term.aggregate.lower([words[place] for place in term_places])
                for term, term_places in zip(member.terms, member.positions, strict=True)
            ]
        except QueryError as error:
            if len(due) == 1:
                return {due[0][0]: error}
            # Find out whose window it was, so that only that query stops.
            failed: dict[RunningQuery, QueryError] = {}
            for alone in due:
                if alone[0] not in failed:
                    failed |= self._look_up(part, [alone])
            return failed
        ticks = pooled(len(found), np.int64)
        repeat_ticks(np.concatenate([taus for _, taus in due]), found.offsets, ticks)
        time = pa.array(ticks).view(due[0][0].rows.schema.field(0).type)
        spent = perf_counter() - began
        failed = {}
        window = 0
        for query, taus in due:
            began = perf_counter()
            offsets = found.offsets[window : window + len(taus) + 1]
            window += len(taus)
            start, length = int(offsets[0]), int(offsets[-1] - offsets[0])
            columns = [array.slice(start, length) for array in (*keys, *values)]
            try:
                query.add(query.rows.rows(time.slice(start, length), offsets, columns))
            except QueryError as error:
                failed[query] = error
            query.seconds += perf_counter() - began + spent * length / max(1, len(found))
        return failed

    def _queries_of(self, running: RunningStream, part: Slice) -> list[RunningQuery]:
        return [query for query in running.queries.values() if query.slice is part]

    def _stop(self, running: RunningStream, query: RunningQuery, error: QueryError) -> QueryError:
        """A query that cannot be answered exactly is taken out; its answers so far stay, and the others go on."""
        query.error = QueryError(f"query {query.name} was stopped: {error}")
        if query.name in running.queries:
            self._remove(query)
        return query.error


def _raise(failed: list[QueryError]) -> None:
    if len(failed) == 1:
        raise failed[0]
    if failed:
        raise QueryError("; ".join(str(error) for error in failed))
