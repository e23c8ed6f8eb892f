"""A running query over lifetimes: tuples in, the watermark moves, output comes out.

tuples ─► leaves ─► graph, epoch by epoch ─► emission ─► rows with their _time
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from windrow.errors import UnsupportedError
from windrow.expressions import Compiler
from windrow.flow.compile import FlowCompiler
from windrow.flow.emission import Emission, Ordering, Stamped
from windrow.flow.graph import Edge, Graph
from windrow.flow.inputs import Input
from windrow.flow.kinds import kind_of
from windrow.flow.leaves import BEGINNING, Leaf, RangeLeaf, RelationLeaf
from windrow.flow.needed import needed_columns
from windrow.flow.notes import notes
from windrow.flow.rows_leaf import RowsLeaf
from windrow.flow.staying import Staying
from windrow.flow.terms import term_of
from windrow.flow.wanted import wanted_tuples
from windrow.kernels.jit import Ints
from windrow.language.bound import BoundQuery, Source
from windrow.language.positions import position
from windrow.operators.group_by import GroupBy
from windrow.operators.nrr_join import NrrJoin
from windrow.plan import nodes
from windrow.plan.patterns import Pattern, walk
from windrow.state.choice import Strategy
from windrow.state.rows import Epoch
from windrow.windows.due import first_due
from windrow.windows.spec import RangeWindow, RowsWindow, Window

TIME = "_time"


class Flow:
    """One query. `since`: tuples at or before it are not there. `strategy` is upa, nt or direct."""

    remote = False
    """Whether its operators run elsewhere."""

    def __init__(
        self,
        query: BoundQuery,
        plan: nodes.Output,
        compiler: Compiler,
        *,
        strategy: Strategy = "upa",
        since: int = BEGINNING,
        notes: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.mixed = _is_mixed(query)
        """Whether only some of the windows are INTERNAL."""
        self.query = query
        self.notes = tuple(notes)
        """What the optimizer did to the plan, for EXPLAIN."""
        self.plan = plan
        self.strategy = strategy
        self.since = since
        self.upto = BEGINNING
        """The end of the last epoch."""
        self._oldest: int | None = None
        self._begun = False
        kind = kind_of(query)
        compiled = FlowCompiler(
            compiler,
            lambda call, resolve: term_of(compiler, call, resolve),
            strategy=strategy,
            slide=query.slide if _may_round(query) else None,
            needed=lambda source: needed_columns(query, source),
            stamped=lambda source: _is_stamped(query, source, mixed=self.mixed),
            mixed=self.mixed,
        )
        edge, terms, top = compiled.root(plan.input, complete=kind == "complete", periodic=query.periodic)
        ordering = None
        if top is not None:
            ordering = Ordering(terms, top.limit, top.offset, [column.name for column in query.columns])
        self.graph = compiled.graph
        _require_comparable(self.graph)
        self._root = edge
        self._emission = Emission(kind, edge, strategy, ordering, periodic=query.periodic)
        self.inputs = [one for one in compiled.inputs if one.source.stream is not None]
        self.relations = compiled.relations
        inner = {node.source.id: node.input for node in walk(plan) if isinstance(node, nodes.SubqueryWindow)}
        self._inner: list[tuple[Flow, Input]] = []
        for one in compiled.inputs:
            if one.source.subquery is not None:
                below = inner[one.source.id]
                assert isinstance(below, nodes.Output)
                flow = Flow(one.source.subquery, below, compiler, strategy=strategy, since=since)
                self._inner.append((flow, one))
        self._wanted = wanted_tuples(plan.input)
        self._rows_leaves = [one.leaf for one in compiled.inputs if isinstance(one.leaf, RowsLeaf)]
        self._tail = self._windowed(query.output_window) if query.operator == "WSTREAM" else None
        emitted = self._emission if self._tail is None else self._tail[1]
        self.kind = emitted.kind
        """What comes out: changes, insertions, deletions, complete answers; see emission.py."""
        time = pa.timestamp("us") if query.timestamps else pa.int64()
        self.schema = pa.schema([pa.field(TIME, time), *emitted.schema])
        self.kind = emitted.kind
        """What comes out (`emission.py`), behind the window of WSTREAM."""

    def _windowed(self, window: Window | None) -> tuple[Leaf, Emission]:
        """WSTREAM: a window over the stream of results (thesis 3.3.3)."""
        assert window is not None
        schema = self._emission.schema
        leaf: Leaf
        if isinstance(window, RowsWindow):
            leaf = RowsLeaf(window, schema, window.partition_by, None)
            edge = Edge(0, schema, Pattern.STR)
        else:
            leaf = RangeLeaf(window, schema)
            edge = Edge(0, schema, Pattern.MON if leaf.lifetime is None else Pattern.WKS)
        kind = "complete" if self.query.periodic else "changes"
        return leaf, Emission(kind, edge, self.strategy, None, periodic=self.query.periodic)

    # ---- input ----------------------------------------------------------------------------------------------------

    @property
    def streams(self) -> set[str]:
        """The streams that it reads, by lower-case name."""
        return {stream.name.lower() for stream in self.query.streams}

    def columns(self, stream: str) -> set[str]:
        """The columns that it reads of a stream."""
        own = {name for one in self.inputs if _is(one, stream) for name in one.columns}
        return own.union(*(inner.columns(stream) for inner, _ in self._inner))

    def wanted(self, stream: str) -> list[exp.Expr | None]:
        """What a tuple of the stream must not fail to be worth bringing: all of these; None wants every tuple."""
        if self.since != BEGINNING and not self._begun:
            return [None]  # the first tuple after `since` begins its life, whether some window takes it or not
        own = [predicate for source, predicate in self._wanted if _reads(source, stream)]
        return [*own, *(one for inner, _ in self._inner for one in inner.wanted(stream))]

    def see(self, stream: str, oldest: int) -> None:
        """Tuples of a stream have come, of which only those that are wanted are handed over."""
        if stream.lower() in self.streams and oldest > self.since:
            if any(_is(one, stream) for one in self.inputs):  # what a subquery reads begins the subquery
                self._see(oldest)
            for inner, _ in self._inner:
                inner.see(stream, oldest)

    def add(self, stream: str, table: pa.Table, ts: Ints) -> None:
        """Tuples of a stream that are not late."""
        fresh = ts > self.since
        if not fresh.all():
            table, ts = table.filter(pa.array(fresh)), ts[fresh]
        if not len(ts):
            return
        batch = table.combine_chunks().to_batches()[0]
        for one in self.inputs:
            if _is(one, stream):
                one.add(batch, ts)
                self._see(int(ts.min()))
        for inner, _ in self._inner:
            if stream.lower() in inner.streams:
                inner.add(stream, table, ts)

    def update(self, relation: str, came: pa.RecordBatch | None, gone: pa.RecordBatch | None, time: int | None) -> None:
        """Rows of a relation come and go at `time`; None: they were there from the beginning."""
        if time is not None and time <= self.since:
            time = None  # the query begins after it
        for source, leaf in self.relations:
            if source.relation is None or source.relation.name.lower() != relation.lower():
                continue
            for batch, comes in ((gone, False), (came, True)):
                if batch is not None and batch.num_rows:
                    _change(leaf, batch, time, comes=comes)
            if time is not None and not source.relation.non_retroactive:
                self._see(time)
        for inner, _ in self._inner:
            inner.update(relation, came, gone, time)

    def _see(self, oldest: int) -> None:
        self._oldest = oldest if self._oldest is None else min(self._oldest, oldest)

    # ---- time -----------------------------------------------------------------------------------------------------

    def advance(self, upto: int, oldest: int | None) -> list[pa.RecordBatch]:
        """The watermark has come to `upto`; `oldest` is the first timestamp of its streams, also before `since`."""
        return self._stamped(self._advance(upto, oldest))

    def finish(self, newest: Mapping[str, int | None], oldest: Mapping[str, int | None]) -> list[pa.RecordBatch]:
        """The end of all its streams."""
        return self._stamped(self._finish(newest, oldest))

    def _finish(self, newest: Mapping[str, int | None], oldest: Mapping[str, int | None]) -> list[Stamped]:
        ends = [newest[name] for name in self.streams]
        times = [end for end in ends if end is not None]
        for inner, one in self._inner:
            times += [self._receive(one, result) for result in inner._finish(newest, oldest)]
        if not times:
            return []
        last = max(times)
        if self.query.rows_slide is not None and last <= self.upto:
            last = self.upto + 1  # a heartbeat was faster, and that instant is answered already
        for leaf in self._rows_leaves:
            leaf.finish(last)
        upto = last if self.query.slide is None else first_due(last, self.query.slide)
        first = [begin for name in self.streams if (begin := oldest[name]) is not None]
        return self._advance(max(upto, self.upto), min(first) if first else None, ended=True)

    def _receive(self, one: Input, result: Stamped) -> int:
        """The output of a subquery is a stream; gives its newest timestamp."""
        batch, when = result
        one.add(batch, when)
        newest = int(when.max())
        self._see(int(when.min()))
        return newest

    def _advance(self, upto: int, oldest: int | None, *, ended: bool = False) -> list[Stamped]:
        for inner, one in self._inner if not ended else ():
            for result in inner._advance(upto, oldest):
                self._receive(one, result)
        due = self._due(upto, oldest)
        if self.query.periodic:
            if not len(due):
                return []
            upto = int(due[-1])
        if upto <= self.upto:
            return []
        out: list[Stamped] = []
        for end in self._ends(upto):
            inside = due[(due > self.upto) & (due <= end)]
            out += self._step(Epoch(self.upto, end), inside)
            self.upto = end
        return out

    def _due(self, upto: int, oldest: int | None) -> Ints:
        """The due times of a periodic query that have come."""
        slide = self.query.slide
        if slide is None:
            if self.query.rows_slide is None:
                return np.empty(0, np.int64)
            found = [leaf.due(upto) for leaf in self._rows_leaves]
            every: Ints = np.unique(np.concatenate([np.empty(0, np.int64), *found]))
            later: Ints = every[every > max(self.upto, self.since)]
            return later
        if oldest is None:
            return np.empty(0, np.int64)
        return np.arange(self._first_due(oldest, slide), upto + 1, slide, dtype=np.int64)

    def _first_due(self, oldest: int, slide: int) -> int:
        first = first_due(max(oldest, self.since + 1), slide)
        return first if self.upto == BEGINNING else max(first, first_due(self.upto + 1, slide))

    def due_at_most(self, oldest: int, newest: int) -> int:
        """No more due times than this come up to `newest`, when the first timestamp of its streams is `oldest`."""
        more = sum(inner.due_at_most(oldest, newest) for inner, _ in self._inner)
        if self.query.slide is None:
            return more
        first = max(oldest, self.since + 1, self.upto + 1)
        return more + max(0, (newest - first) // self.query.slide + 1)

    def _ends(self, upto: int) -> list[int]:
        """Where epochs end: at `upto`, and around every change of a relation, so that no row comes and goes in one."""
        step = self.query.slide if self.query.slide is not None and _may_round(self.query) else 1
        ends = {upto}
        for _, leaf in self.relations:
            for instant in leaf.instants(upto).tolist():
                ends |= {instant - step, instant}
        return sorted(end for end in ends if self.upto < end <= upto)

    def _step(self, epoch: Epoch, due: Ints) -> list[Stamped]:
        every = self._emission.kind.startswith("restored")
        first = int(due[0]) if len(due) and not every else self._oldest
        if not self._begun and first is not None and first <= epoch.upto:
            self._begun = True
            for operator in self.graph.operators:
                if isinstance(operator, (GroupBy, RelationLeaf)):
                    operator.begin(first)
        for operator in self.graph.operators if self.mixed and self.query.rows_slide is not None else ():
            if isinstance(operator, Staying):
                operator.due = due
        deltas = self.graph.step(epoch)
        out = self._emission.step(deltas[self._root.node], epoch, due)
        if self._tail is None:
            return out
        leaf, emission = self._tail
        for batch, times in out:
            leaf.add(batch, times)
        return emission.step(leaf.release(epoch), epoch, due)

    def _stamped(self, out: Iterable[Stamped]) -> list[pa.RecordBatch]:
        kind = self.schema.field(0).type
        return [
            pa.RecordBatch.from_arrays([pa.array(times).view(kind), *batch.columns], schema=self.schema)
            for batch, times in out
        ]

    # ---- state ----------------------------------------------------------------------------------------------------

    @property
    def answered(self) -> int:
        """Up to when its answers are there."""
        return self.upto

    @property
    def untouched(self) -> bool:
        """Whether it has neither tuples nor answers yet; it may know the rows of its relations."""
        held = any(one.leaf.rows for one in self.inputs) or not all(inner.untouched for inner, _ in self._inner)
        return self.upto == BEGINNING and not held

    def close(self) -> None:
        """The query has ended; whoever runs its operators elsewhere must know."""

    @property
    def nbytes(self) -> int:
        """Bytes of all state."""
        tail = 0 if self._tail is None else self._tail[0].nbytes + self._tail[1].nbytes
        return self.graph.nbytes + self._emission.nbytes + tail + sum(inner.nbytes for inner, _ in self._inner)

    @property
    def rows(self) -> int:
        """Rows in all state."""
        tail = 0 if self._tail is None else self._tail[0].rows + self._tail[1].rows
        return self.graph.rows + self._emission.rows + tail + sum(inner.rows for inner, _ in self._inner)

    def snapshot(self) -> tuple[dict[str, Any], dict[str, pa.Table]]:
        """A JSON-able dict and named tables: all that later output depends on."""
        metas, tables = self.graph.snapshot()
        found = {f"graph.{name}": table for name, table in tables.items()}
        found |= {f"emission.{name}": table for name, table in self._emission.snapshot().items()}
        tail = None
        if self._tail is not None:
            tail, own = self._tail[0].snapshot()
            found |= {f"tail.{name}": table for name, table in own.items()}
            found |= {f"shown.{name}": table for name, table in self._tail[1].snapshot().items()}
        inner = []
        for number, (flow, _) in enumerate(self._inner):
            meta, own = flow.snapshot()
            inner.append(meta)
            found |= {f"inner{number}.{name}": table for name, table in own.items()}
        state = [self.since, self.upto, self._oldest, self._begun]
        return {"state": state, "graph": metas, "tail": tail, "inner": inner}, found

    def restore(self, meta: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> None:
        """Become what `snapshot` gave."""
        self.since, self.upto, self._oldest, self._begun = meta["state"]
        self.graph.restore(meta["graph"], _under("graph", tables))
        self._emission.restore(_under("emission", tables))
        if self._tail is not None:
            self._tail[0].restore(meta["tail"], _under("tail", tables))
            self._tail[1].restore(_under("shown", tables))
        for number, (flow, _) in enumerate(self._inner):
            flow.restore(meta["inner"][number], _under(f"inner{number}", tables))

    def describe(self) -> list[tuple[str, str]]:
        """For EXPLAIN: what each operator keeps."""
        return [*self.notes, ("strategy", self.strategy), *notes(self.graph.operators)]


def _change(leaf: RelationLeaf | NrrJoin, batch: pa.RecordBatch, time: int | None, *, comes: bool) -> None:
    if isinstance(leaf, NrrJoin):
        act = leaf.add if comes else leaf.remove
        act(batch, np.full(batch.num_rows, BEGINNING if time is None else time))
        return
    named = pa.RecordBatch.from_arrays(batch.columns, schema=leaf.schema)
    if time is None:
        leaf.start(named, comes=comes)
    else:
        act = leaf.add if comes else leaf.remove
        act(named, np.full(batch.num_rows, time))


def _require_comparable(graph: Graph) -> None:
    """Operators compare whole rows; lists and intervals have no equality here."""
    for operator in graph.operators:
        for one in operator.schema:
            if pa.types.is_nested(one.type) or pa.types.is_duration(one.type) or pa.types.is_interval(one.type):
                what = "a list" if pa.types.is_nested(one.type) else "an interval"
                raise UnsupportedError(
                    f"{one.name} is {what}, which continuous queries, joins and stream operators cannot compare; "
                    "TOP_K runs over one window with SLIDE of one stream"
                )


def _is_mixed(query: BoundQuery) -> bool:
    """Whether only some of the windows are INTERNAL; refuses what then has no meaning."""
    windows = [source.window for source in query.sources if source.window is not None]
    # WSTREAM takes all windows for INTERNAL (thesis 3.4).
    mixed = any(window.internal for window in windows) and not query.internal and query.operator != "WSTREAM"
    rows = [source for source in query.sources if isinstance(source.window, RowsWindow) and not source.window.internal]
    if mixed and rows:
        line, column = position(query.ast)
        raise UnsupportedError(
            f"{rows[0].alias} is a ROWS window beside an INTERNAL one: nobody knows how long a result stays; make "
            "all of them INTERNAL, or none",
            line=line,
            column=column,
        )
    return mixed


def _is_stamped(query: BoundQuery, source: Source, *, mixed: bool) -> bool:
    """Whether the tuples of a source carry their timestamp as a hidden column."""
    if any(one.relation is not None and one.relation.non_retroactive for one in query.sources):
        return True
    window = source.window
    lasting = window is None or window.internal or (isinstance(window, RangeWindow) and window.length is None)
    return mixed and not lasting


def _may_round(query: BoundQuery) -> bool:
    """Whether nobody can see what happens between due times."""
    restored = query.operator is not None and query.operator.endswith("_RESTORE")
    return query.slide is not None and not restored


def _is(one: Input, stream: str) -> bool:
    return _reads(one.source, stream)


def _reads(source: Source, stream: str) -> bool:
    return source.stream is not None and source.stream.name.lower() == stream.lower()


def _under(prefix: str, tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    start = prefix + "."
    return {name[len(start) :]: table for name, table in tables.items() if name.startswith(start)}
