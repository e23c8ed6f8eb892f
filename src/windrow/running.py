"""What runs: a registered query with its answers so far, and a stream with its watermark and slices."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import QueryError
from windrow.language.catalog import Stream
from windrow.numbering.numbering import Numbering
from windrow.operators.answer import AnswerRows
from windrow.plan.periodic import PeriodicAggregate
from windrow.sharing.derivation import plan_sharing
from windrow.sharing.feeding import Feeding
from windrow.sharing.member import Member
from windrow.sharing.saved import Probed
from windrow.sharing.slice import Slice
from windrow.state.choice import Strategy
from windrow.windows.due import first_due
from windrow.windows.spec import BEGINNING
from windrow.windows.watermark import Watermark

MANY_BATCHES, SMALL_BATCH = 64, 16_384
"""So many neighbouring answers of fewer rows than that are put together."""


@dataclass(eq=False)
class Registered:
    """A registered query and its answers so far, whoever makes them."""

    name: str
    batches: list[pa.RecordBatch] = field(default_factory=list, kw_only=True)
    """The answers that nobody has taken away yet."""
    latest: pa.RecordBatch | None = field(default=None, kw_only=True)
    """The last rows that were taken away, which may be those of the newest due time."""
    error: QueryError | None = field(default=None, kw_only=True)
    due: int = field(default=0, kw_only=True)
    answered: int = field(default=0, kw_only=True)
    seconds: float = field(default=0.0, kw_only=True)
    dropped: bool = field(default=False, kw_only=True)

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns of its answers."""

    @property
    @abstractmethod
    def since(self) -> int | None:
        """Tuples at or before this tick are in none of its windows; None when it has seen the whole stream."""

    @property
    @abstractmethod
    def next_due(self) -> int | None:
        """When it is due next, if that is known."""

    @property
    @abstractmethod
    def streams(self) -> set[str]:
        """The streams that it reads, by lower-case name."""

    @property
    def strategy(self) -> Strategy:
        """How its operators keep their state, if it has operators of its own."""
        return "upa"

    @property
    @abstractmethod
    def _newest_instant(self) -> int | None:
        """The newest due time."""

    @property
    def state(self) -> dict[str, int]:
        """How much it keeps for itself, if it does not share all that it needs."""
        return {}

    @property
    def status(self) -> str:
        """running, stopped by an error, or dropped by the user."""
        return "dropped" if self.dropped else "stopped" if self.error is not None else "running"

    def shown(self) -> None:
        """The answers so far have been taken away; only the newest are remembered."""
        if self.batches:
            last = self.batches[-1]
            # A copy of the newest instant alone: a slice would keep the memory of all answers of its lookup.
            times = last.column(0).view(pa.int64()).to_numpy()
            first = int(np.searchsorted(times, times[-1]))
            self.latest = last.take(pa.array(np.arange(first, len(times))))
        self.batches.clear()

    def newest(self) -> pa.Table:
        """The answer at the newest due time; no rows if it was empty or there was none."""
        last = self.batches[-1] if self.batches else self.latest
        newest = self._newest_instant
        if last is None or newest is None:
            return self.schema.empty_table()
        table = pa.Table.from_batches([last])
        return table.filter(pc.equal(table.column(0).cast(pa.int64()), newest))

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
class RunningQuery(Registered):
    """A query that is answered from panes: its plan, its place in a slice."""

    plan: PeriodicAggregate
    rows: AnswerRows
    member: Member
    slice: Slice
    started: int
    """Only due times after this are answered: the watermark when it was registered."""
    rows_since: int = BEGINNING
    """Of a ROWS query, whose member counts tuples: those with ts at or before this are in none of its windows."""
    newest_time: int | None = None
    """Of a ROWS query: the instant of its newest answer."""
    skipped: int = 0
    """Due times that an overloaded live run left out."""
    answered_at: int | None = None
    """The newest instant that a schedule has answered."""
    taken: int = 0
    """Windows that were not looked up, because another query had the answer (rule CS8)."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of its answers."""
        return self.rows.schema

    @property
    def state(self) -> dict[str, int]:
        """What an overloaded live run left out; all that it keeps it shares."""
        return {"skipped": self.skipped} if self.skipped else {}

    @property
    def since(self) -> int | None:
        """Tuples at or before this tick are in none of its panes; None when it has seen the whole stream."""
        since = self.member.since if self.plan.rows is None else self.rows_since
        return None if since == BEGINNING else since

    @property
    def next_due(self) -> int | None:
        """When it is due next: an instant, or a number of tuples."""
        return self.member.next_due

    @property
    def streams(self) -> set[str]:
        """The one stream that it reads."""
        return {self.plan.stream.name.lower()}

    @property
    def _newest_instant(self) -> int | None:
        if self.member.next_due is None:
            return None
        if self.plan.rows is not None:
            return self.newest_time
        own = self.member.next_due - self.plan.slide
        return own if self.answered_at is None else max(own, self.answered_at)

    def first_due(self, oldest: int) -> int:
        """The first due time that is not before the stream's oldest tuple, the registration, or what the panes know."""
        return first_due(max(oldest, self.started + 1, self.member.since + 1), self.plan.slide)

    @cached_property
    def output(self) -> tuple[object, ...]:
        """What an answer of a slice is made of but the period: queries with the same have the same answers."""
        plan = self.plan
        parts = [plan.having, *plan.outputs, *(term.value for term in plan.order)]
        return (
            (plan.window.length, plan.window.offset, plan.rows is None),
            tuple((one.name, one.text, one.parameters) for one in plan.aggregations),
            tuple("" if one is None else one.sql("cql") for one in parts),
            tuple((term.descending, term.nulls_first) for term in plan.order),
            (plan.limit, plan.offset),
            tuple((field.name, str(field.type)) for field in self.rows.schema),
        )

    @property
    def reach(self) -> int:
        """How far behind τ its windows begin."""
        assert self.member.window.reach is not None
        return self.member.window.reach


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
    changes: int = 0
    """How often queries have come or gone."""
    probed: dict[str, Probed] = field(default_factory=dict)
    """By rules: the questions that were answered from several slices, and what that has saved."""
    numbering: Numbering | None = None
    """The axis of tuple numbers, while there are ROWS queries."""
    _finest: int | None = None
    """The shortest SLIDE; None when queries have come or gone since it was known."""
    _feeding: Feeding | None = None
    """How batches go into the slices; None when queries have come or gone since."""

    @property
    def row_plans(self) -> list[PeriodicAggregate]:
        """The plans of the ROWS queries."""
        return [query.plan for query in self.queries.values() if query.plan.rows is not None]

    @property
    def nbytes(self) -> int:
        """Bytes of all state of the stream."""
        panes = sum(part.group.nbytes for part in self.slices.values() if part.group is not None)
        return panes + (0 if self.numbering is None else self.numbering.nbytes)

    def changed(self) -> None:
        """A query has come or gone."""
        self.changes += 1
        self._finest = None
        self._feeding = None

    def plan_sharing(self, fresh: Slice | None = None) -> None:
        """A query has come or gone, with a slice that is `fresh` or not: decide which are derived from others."""
        plan_sharing(list(self.slices.values()), fresh)
        self.changed()

    @property
    def feeding(self) -> Feeding:
        """How batches go into the slices."""
        if self._feeding is None:
            self._feeding = Feeding(list(self.slices.values()))
        return self._feeding

    def due_at_most(self, oldest: int, newest: int) -> int:
        """No more answers than this come due up to `newest`; found without a look at every query."""
        if self._finest is None:
            timed = [query.plan.slide for query in self.queries.values() if query.plan.rows is None]
            self._finest = min(timed, default=0)
        if not self._finest:
            return 0  # only tuples are counted here, not time
        known = [part.earliest_due for part in self.slices.values()]
        since = min([oldest if due is None else due for due in known], default=oldest)
        return len(self.queries) * max(0, (newest - since) // self._finest + 1)

    def queries_of(self, part: Slice) -> list[RunningQuery]:
        """The queries that share a slice."""
        return [query for query in self.queries.values() if query.slice is part]

    def slice_of(self, plan: PeriodicAggregate) -> Slice | None:
        """The slice that a query shares, or would share; None when there is none yet."""
        slices = self.slices
        if plan.rows is not None:
            slices = {} if self.numbering is None else self.numbering.slices
        return slices.get(plan.share_key)

    def name_of(self, member: Member) -> str:
        """The query whose share of a slice this is."""
        return next(query.name for query in self.queries.values() if query.member is member)

    def forget_slice(self, part: Slice) -> None:
        """Nobody uses this slice any more; with the last ROWS query the numbers of tuples go too."""
        self.slices = {key: one for key, one in self.slices.items() if one is not part}
        if self.numbering is not None and not self.row_plans:
            self.numbering = None
