"""The reference evaluator: what every answer of Windrow must be, found in the slowest and most obvious way.

At an instant τ it takes the tuples that each window holds, gives them to DuckDB as tables, and lets it answer the
same SQL without windows (thesis, Definitions 2.1 and 3.1). Everything else is the comparison of such answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import InputError, UnsupportedError
from windrow.language import types
from windrow.language.bound import BoundQuery, Source
from windrow.language.catalog import Stream
from windrow.language.restrictions import has_aggregates, is_plain
from windrow.testing import emission
from windrow.testing.emission import State
from windrow.testing.evaluator import Evaluator, connect, sort_feed
from windrow.testing.feed import Feed, held
from windrow.testing.instants import change_instants, multiples, next_multiple, slide_instants
from windrow.testing.multiset import difference
from windrow.testing.query_render import EXPIRY, render_query
from windrow.testing.relation_state import RelationHistory, RelationUpdate
from windrow.windows.spec import RowsWindow

Relations = Mapping[str, Sequence[RelationUpdate] | pa.Table]


class Reference:
    """Judges a bound query over all tuples that its streams accepted, in any order.

    `since`: tuples with ts <= since are not there (the query came later and they were not kept), and nothing is due
    before it. `start`: due times and changes are reported only after it. `until`: the watermark stops there; None is
    a bounded input that ended.

    >>> from windrow.language.binder import bind
    >>> from windrow.language.catalog import Catalog, stream_from_schema
    >>> rows = pa.table({"ts": [1, 4, 7], "a": [10, 20, 30]})
    >>> catalog = Catalog()
    >>> catalog.add(stream_from_schema("s", rows.schema, time="ts"))
    >>> reference = Reference(bind("SELECT SUM(a) AS total FROM s [RANGE 5 SLIDE 5]", catalog), {"s": rows})
    >>> reference.answers().to_pylist()
    [{'_time': 5, 'total': 30}, {'_time': 10, 'total': 30}]
    """

    def __init__(
        self,
        query: BoundQuery,
        streams: Mapping[str, pa.Table],
        relations: Relations | None = None,
        *,
        start: int | None = None,
        since: int | None = None,
        until: int | None = None,
    ) -> None:
        self._query = query
        self._start = start
        self._since = since
        self._until = until
        self._connection = connect()
        self._feeds: dict[int, Feed] = {}
        self._histories: dict[int, RelationHistory] = {}
        self._extent: list[int] = []
        """The smallest and the largest timestamp of all tuples; empty when there are none."""
        extent: list[int] = []
        tables = {name.lower(): table for name, table in streams.items()}
        updates = {name.lower(): content for name, content in (relations or {}).items()}
        for source in query.sources:
            if source.stream is not None:
                table = self._tuples(source.stream, tables)
                times = table[source.stream.time].cast(pa.int64())
                extent += times.to_pylist()  # due times begin with the stream, whatever the query knows of it
                if since is not None:
                    table, times = (column.filter(pc.greater(times, since)) for column in (table, times))
                self._feeds[source.id] = sort_feed(
                    self._connection, table, times.to_pylist(), source.stream.sequence
                )  # fmt: skip
            elif source.subquery is not None:
                inner = Reference(source.subquery, streams, relations, start=start, since=since, until=until)
                self._feeds[source.id] = self._output_feed(inner.answers())
                extent += [*inner._extent, *self._feeds[source.id].times]
            elif source.relation is not None:
                self._histories[source.id] = RelationHistory(source.relation, updates.get(source.relation.name.lower()))
        if extent:
            self._extent = [min(extent), max(extent)]
        last = self._extent[1] if self._extent and until is None else None
        self._evaluator = Evaluator(query, self._feeds, self._histories, self._connection, last)
        self._mixed = self._is_mixed()
        self._rendered = render_query(query)

    # ---- one instant ----------------------------------------------------------------------------------------------

    def contents(self, source_id: int, tau: int) -> pa.Table:
        """What the window (or relation) of that source holds at τ."""
        return self._evaluator.contents(self._source(source_id), tau)

    def answer(self, tau: int) -> pa.Table:
        """Q(τ): the select list over the window contents at τ, unordered unless there is an ORDER BY."""
        return self._evaluator.answer(self._rendered, tau)

    # ---- all instants ---------------------------------------------------------------------------------------------

    def due_times(self) -> list[int]:
        """When a periodic query is due: the multiples of its SLIDE, or the instants at which a slide is full."""
        if not self._extent:
            return []
        first, last = self._extent
        slide, start = self._query.slide, self._start
        if slide is not None:
            due = multiples(slide, first, next_multiple(slide, last) if self._until is None else self._until)
        else:
            due = self._full_slides(last)
        bounds = [bound for bound in (start, self._since) if bound is not None]
        return [tau for tau in due if all(tau > bound for bound in bounds)]

    def answers(self) -> pa.Table:
        """All that the query puts out: _time, [_change,] and the select list."""
        query = self._query
        empty = self._empty()
        operator = query.operator
        if operator == "WSTREAM":
            return self._windowed_output()
        if operator == "ISTREAM_RESTORE":
            due = self.due_times()
            return self._stamped(emission.restored_insertions(self._states(self._instants(due)), due, empty))
        if operator == "RSTREAM_RESTORE":
            due = self.due_times()
            every = self._states(self._instants(due))
            return self._stamped(emission.restored_answers(every, self._states(due), empty))
        if operator is None and query.internal:
            return self._stamped(self._appended())
        if operator is None and not query.periodic:
            return self._changes(self._states(self._instants()))
        return self._stamped(self._emitted(operator))

    def _emitted(self, operator: str | None) -> Iterable[State]:
        states, empty = self._states(self._due_or_change_instants()), self._empty()
        if operator == "ISTREAM":
            return emission.insertions(states, empty)
        if operator == "DSTREAM":
            return emission.deletions(states, empty)
        return emission.complete(states) if self._query.periodic else emission.complete_when_changed(states, empty)

    def _appended(self) -> Iterable[State]:
        """The output of INTERNAL windows, append-only (thesis 3.3.2): every new aggregate value is a new result."""
        again = self._query.periodic and has_aggregates(self._query.ast)
        if is_plain(self._query.ast):
            return self._made()
        return self._emitted("RSTREAM" if again else "ISTREAM")

    def _made(self) -> Iterator[State]:
        """All results with a tuple that was not there at the instant before, also if an equal result leaves."""
        before: int | None = None
        for tau in self._due_or_change_instants():
            now = self.answer(tau)
            yield tau, now if before is None else difference(now, self._evaluator.answer(self._rendered, tau, before))
            before = tau

    def _windowed_output(self) -> pa.Table:
        """WSTREAM: a window over the append-only output (thesis 3.3.3)."""
        window = self._query.output_window
        assert window is not None
        feed = self._output_feed(self._stamped(self._appended()))
        instants = self.due_times() if self._query.periodic else self._until_end(change_instants(feed, window))
        states = ((tau, feed.take(held(feed, window, tau, ended=False))) for tau in instants)
        return self._stamped(states) if self._query.periodic else self._changes(states)

    # ---- instants -------------------------------------------------------------------------------------------------

    def _full_slides(self, last: int) -> list[int]:
        due: set[int] = set()
        for source in self._query.sources:
            if isinstance(source.window, RowsWindow) and source.window.slide is not None:
                feed = self._feeds[source.id]
                due.update(slide_instants(feed, source.window))
                if self._until is None and len(feed.times) % source.window.slide:
                    due.add(last)  # the end of the input: the rest that fills no slide
        return sorted(tau for tau in due if self._until is None or tau <= self._until)

    def _due_or_change_instants(self) -> list[int]:
        return self.due_times() if self._query.periodic else self._instants()

    def _instants(self, due: Sequence[int] | None = None) -> list[int]:
        """Where a continuous query can change, up to its end or, between re-evaluations, to the last due time."""
        instants: set[int] = set()
        for source in self._query.sources:
            if source.window is not None:
                instants.update(change_instants(self._feeds[source.id], source.window))
            elif source.relation is not None and not source.relation.non_retroactive:
                instants.update(self._histories[source.id].times)
        if due is None:
            return self._until_end(instants)
        reported = {tau for tau in instants if due and tau <= due[-1]}
        if self._start is not None:
            # The query began then, with what its windows held.
            reported = {max(tau, self._start) for tau in reported}
        return sorted(reported)

    def _until_end(self, instants: Iterable[int]) -> list[int]:
        end = self._until
        if end is None:
            end = self._extent[1] if self._extent else None
        return sorted({tau for tau in instants if end is not None and tau <= end})

    # ---- states ---------------------------------------------------------------------------------------------------

    def _states(self, instants: Iterable[int]) -> Iterator[State]:
        if self._mixed:
            return self._mixed_states(instants)
        return ((tau, self.answer(tau)) for tau in instants)

    def _mixed_states(self, instants: Iterable[int]) -> Iterator[State]:
        """Some windows are INTERNAL: a result stays until an external window drops one of its constituents."""
        rendered = render_query(self._query, with_expiry=True)
        before = alive = None
        for tau in instants:
            now = self._evaluator.answer(rendered, tau)
            came = now if before is None else difference(now, before)
            alive = came if alive is None else pa.concat_tables([alive, came])
            expiry = alive[EXPIRY]
            alive = alive.filter(pc.or_(pc.is_null(expiry), pc.fill_null(pc.greater(expiry, tau), False)))
            before = now
            yield tau, alive.drop_columns([EXPIRY])

    def _is_mixed(self) -> bool:
        windows = [source.window for source in self._query.sources if source.window is not None]
        # WSTREAM takes all windows for INTERNAL (thesis 3.4).
        append_only = self._query.internal or self._query.operator == "WSTREAM"
        mixed = any(window.internal for window in windows) and not append_only
        if mixed and any(history.takes_back for history in self._histories.values()):
            raise UnsupportedError(
                "only some of the windows are INTERNAL, and a retroactive relation has deletions: "
                "that has no reference answer"
            )
        return mixed

    # ---- tables ---------------------------------------------------------------------------------------------------

    def _source(self, source_id: int) -> Source:
        return next(source for source in self._query.sources if source.id == source_id)

    def _tuples(self, stream: Stream, tables: Mapping[str, pa.Table]) -> pa.Table:
        if stream.name.lower() not in tables:
            raise InputError(f"the tuples of stream {stream.name} are missing; given are {', '.join(tables)}")
        given = tables[stream.name.lower()]
        names = {name.lower(): name for name in given.schema.names}
        columns = [given[names[field.name.lower()]].cast(field.type) for field in stream.schema]
        return pa.Table.from_arrays(columns, schema=stream.schema)

    def _output_feed(self, output: pa.Table) -> Feed:
        """The append-only output of a query as a stream: _time is its timestamp and no column."""
        times = output["_time"].cast(pa.int64()).to_pylist()
        return sort_feed(self._connection, output.drop_columns(["_time"]), times)

    def _empty(self) -> pa.Table:
        fields = [pa.field(column.name, types.to_arrow(column.type)) for column in self._query.columns]
        return pa.schema(fields).empty_table()

    def _changes(self, states: Iterable[State]) -> pa.Table:
        """What goes ('-') and what comes ('+') at each instant, in this order."""
        changes = (
            (tau, pa.concat_tables([_signed(gone, "-"), _signed(came, "+")]))
            for tau, gone, came, _ in emission.steps(states, self._empty())
        )
        return self._stamped(changes, _signed(self._empty(), "+"))

    def _stamped(self, states: Iterable[State], empty: pa.Table | None = None) -> pa.Table:
        time = pa.timestamp("us") if self._query.timestamps else pa.int64()
        tables = [_with_front(self._empty() if empty is None else empty, "_time", pa.array([], time))]
        for tau, table in states:
            if self._start is None or tau > self._start:
                stamp = pa.array([tau] * table.num_rows, pa.int64()).cast(time)
                tables.append(_with_front(table, "_time", stamp))
        return pa.concat_tables(tables)


def _signed(table: pa.Table, change: str) -> pa.Table:
    return _with_front(table, "_change", pa.array([change] * table.num_rows, pa.string()))


def _with_front(table: pa.Table, name: str, column: pa.Array) -> pa.Table:
    return table.add_column(0, pa.field(name, column.type), column)
