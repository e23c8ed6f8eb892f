"""One instant of a query: the window contents at τ as tables, and DuckDB's answer over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duckdb
import pyarrow as pa

from windrow.errors import QueryError
from windrow.language import types
from windrow.language.bound import BoundQuery, Source
from windrow.testing.feed import Feed, held
from windrow.testing.frequent import frequent
from windrow.testing.multiset import difference
from windrow.testing.query_render import EXPIRY, PANE, TIME, RenderedQuery, quoted, table_name
from windrow.testing.relation_state import RelationHistory
from windrow.testing.sketches import sketch
from windrow.windows.spec import RangeWindow, RowsWindow

_OUR_OWN_FAULT = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException, duckdb.InternalException)


def connect() -> duckdb.DuckDBPyConnection:
    """DuckDB as the reference needs it: one thread keeps sums in order, and no name is looked up in Python."""
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET python_enable_replacements = false")
    # A filter that is pushed into the scan of an Arrow table is Arrow's, to whom NaN is not greater than 1.
    connection.execute("SET disabled_optimizers = 'filter_pushdown'")
    return connection


class Evaluator:
    """Answers a bound query at any instant, over feeds (windowed sources) and histories (relations) by source id."""

    def __init__(
        self,
        query: BoundQuery,
        feeds: Mapping[int, Feed],
        histories: Mapping[int, RelationHistory],
        connection: duckdb.DuckDBPyConnection,
        last: int | None,
    ) -> None:
        self._query = query
        self._feeds = feeds
        self._histories = histories
        self._connection = connection
        self._last = last  # the end of a bounded input, None if it may go on
        self._memo: dict[object, pa.Table] = {}
        for source in query.sources:
            if source.relation is not None and source.relation.non_retroactive:
                self._register(source, histories[source.id].with_validity())

    def positions(self, source: Source, tau: int) -> Sequence[int]:
        """Which tuples of its feed the source's window holds at τ."""
        assert source.window is not None
        ended = self._last is not None and tau >= self._last
        return held(self._feeds[source.id], source.window, tau, ended=ended)

    def contents(self, source: Source, tau: int) -> pa.Table:
        """What the source is at τ: the tuples of the window, or the rows of the relation."""
        if source.window is None:
            return self._histories[source.id].at(tau)
        return self._feeds[source.id].take(self.positions(source, tau))

    def answer(self, rendered: RenderedQuery, tau: int, since: int | None = None) -> pa.Table:
        """Q(τ), by the rendered SQL, with the types of the query's columns; of what was there `since` already only."""
        if since is not None:
            return self._evaluate(rendered, tau, since)
        state = tuple(
            tuple(self.positions(source, tau)) if source.window is not None else self._version(source, tau)
            for source in self._query.sources
        )
        # The same contents have the same answer, except that FREQUENT looks at the age of tuples.
        key = (rendered.sql, state, tau if rendered.frequent else None)
        if key not in self._memo:
            self._memo = {key: self._evaluate(rendered, tau)}
        return self._memo[key]

    def _version(self, source: Source, tau: int) -> int:
        return sum(time <= tau for time in self._histories[source.id].times)

    def _evaluate(self, rendered: RenderedQuery, tau: int, since: int | None = None) -> pa.Table:
        for source in self._query.sources:
            if source.window is not None:
                self._register(source, self._with_hidden_columns(source, tau, since))
            elif source.relation is not None and not source.relation.non_retroactive:
                rows = self._histories[source.id].at(tau)
                if since is not None:
                    rows = difference(rows, difference(rows, self._histories[source.id].at(since)))
                self._register(source, rows)
        return self._typed(run(self._connection, rendered.sql), rendered)

    def _with_hidden_columns(self, source: Source, tau: int, since: int | None) -> pa.Table:
        feed, positions, window = self._feeds[source.id], self.positions(source, tau), source.window
        if since is not None:
            before = set(self.positions(source, since))
            positions = [position for position in positions if position in before]
        times = [feed.times[position] for position in positions]
        table = feed.take(positions).append_column(TIME, pa.array(times, pa.int64()))
        panes: list[int] = []
        if isinstance(window, RangeWindow) and window.slide is not None:
            panes = [(window.end(tau) - time) // window.slide for time in times]
        elif isinstance(window, RowsWindow) and window.slide is not None:
            panes = [(position + window.offset) // window.slide for position in positions]
        return table.append_column(PANE, pa.array(panes, pa.int64())) if panes or not times else table

    def _register(self, source: Source, table: pa.Table) -> None:
        self._connection.register(table_name(source.id), table)

    def _typed(self, table: pa.Table, rendered: RenderedQuery) -> pa.Table:
        fields = [pa.field(column.name, types.to_arrow(column.type)) for column in self._query.columns]
        if EXPIRY in table.schema.names:
            fields.append(pa.field(EXPIRY, pa.int64()))
        columns = []
        for name, field in zip(table.schema.names, fields, strict=True):
            column = table[name]
            if name in rendered.frequent:
                k = rendered.frequent[name]
                column = pa.chunked_array([[_frequent(group, k) for group in column.to_pylist()]], field.type)
            if name in rendered.sketches:
                made = [sketch(group or [], *rendered.sketches[name]) for group in column.to_pylist()]
                column = pa.chunked_array([made], field.type)
            if pa.types.is_null(field.type):  # DuckDB gives an untyped NULL as INTEGER
                column = pa.chunked_array([pa.nulls(table.num_rows)])
            columns.append(column.cast(field.type))
        return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def run(connection: duckdb.DuckDBPyConnection, sql: str) -> pa.Table:
    """DuckDB's answer; what the data are to blame for (an overflow, a bad cast) is a QueryError."""
    try:
        return connection.sql(sql).to_arrow_table()
    except _OUR_OWN_FAULT:
        raise
    except duckdb.Error as error:
        raise QueryError(str(error).split("\n")[0]) from error


def sort_feed(
    connection: duckdb.DuckDBPyConnection, table: pa.Table, times: Sequence[int], sequence: str | None = None
) -> Feed:
    """Put tuples in ROWS order: by ts, by the sequence column, by the values in column order with NULLs last."""
    connection.register("__unsorted", table.append_column(TIME, pa.array(times, pa.int64())))
    names = [TIME, *([sequence] if sequence else []), *table.schema.names]
    order = ", ".join(f"{quoted(name)} ASC NULLS LAST" for name in names)
    ordered = run(connection, f"SELECT * FROM __unsorted ORDER BY {order}")
    connection.unregister("__unsorted")
    return Feed(ordered.drop_columns([TIME]).cast(table.schema), ordered[TIME].to_pylist())


def _frequent(group: list[dict[str, object]] | None, k: int) -> list[dict[str, object]] | None:
    if group is None:
        return None
    pairs = [(int(str(item["pane"])), item["value"]) for item in group]
    return [{"value": value, "count": count} for value, count in frequent(pairs, k)]
