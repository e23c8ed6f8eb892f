"""The public interface: connect, declare streams, register queries, push data, read answers."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from threading import RLock
from typing import Any

import pyarrow as pa
from sqlglot import exp

from windrow.engine import Engine
from windrow.errors import CatalogError, InputError, SyntaxError, UnsupportedError
from windrow.language import nodes
from windrow.language.binder import bind
from windrow.language.bound import BoundQuery
from windrow.language.catalog import Catalog, Relation, Stream, relation_from_node, stream_from_node, stream_from_schema
from windrow.language.parse import parse
from windrow.plan.build import build
from windrow.plan.explain import explain
from windrow.plan.periodic import periodic_aggregate
from windrow.query import Query

_EPOCH = datetime(1970, 1, 1)


def connect() -> Database:
    """A new, empty database in this process.

    >>> import pyarrow as pa, windrow
    >>> db = windrow.connect()
    >>> db.execute("CREATE STREAM s (t BIGINT, x INT) TIME t")
    >>> q = db.query("SELECT SUM(x) AS total FROM s [RANGE 10 SLIDE 5]", name="totals")
    >>> db.push("s", pa.table({"t": [1, 4, 12], "x": pa.array([1, 2, 3], pa.int32())}))
    >>> db.finish()
    >>> q.answers().to_pylist()
    [{'_time': 5, 'total': 3}, {'_time': 10, 'total': 3}, {'_time': 15, 'total': 3}]
    """
    return Database()


class Database:
    """Streams, relations and queries of one process; its methods may be called from several threads, in turns."""

    def __init__(self, *, synopsis: str | None = None) -> None:
        self._turn = RLock()
        self.catalog = Catalog()
        self._engine = Engine(synopsis)
        self._queries: dict[str, Query] = {}

    # ---- declarations ---------------------------------------------------------------------------------------------

    def execute(self, text: str) -> Any:
        """Run a script of CQL statements; gives the result of the last one (a Query, a table, a text, or None)."""
        result: Any = None
        statements = parse(text)
        with self._turn:
            for statement in statements:
                result = self._statement(statement)
        return result

    def stream(
        self, name: str, schema: pa.Schema, *, time: str, sequence: str | None = None, lateness: int | str = 0
    ) -> None:
        """Declare a stream for pushed data; lateness in ticks, or as text such as '2 seconds'."""
        if not isinstance(schema, pa.Schema):
            raise InputError(f"stream {name}: expected a pyarrow.Schema, found {type(schema).__name__}")
        stream = stream_from_schema(name, schema, time=time, sequence=sequence, lateness=lateness)
        with self._turn:
            self._add_stream(stream)

    def query(self, text: str, *, name: str | None = None) -> Query:
        """Register a persistent query; it is answered from the next due time on."""
        with self._turn:
            if name is None:
                number = len(self._queries) + 1
                while f"query_{number}" in self._queries:
                    number += 1
                name = f"query_{number}"
            return self._add_query(name, text)

    def drop(self, name: str) -> None:
        """Drop a query: its answers so far stay readable, its share of the state is freed."""
        with self._turn:
            query = self._find(name)
            self._engine.drop_query(query.running)
            del self._queries[name.lower()]

    def queries(self) -> list[Query]:
        """The registered queries, in the order of their registration."""
        return list(self._queries.values())

    # ---- data -----------------------------------------------------------------------------------------------------

    def push(self, stream: str, data: Any) -> None:
        """Feed a batch (pyarrow Table or RecordBatch); all of it is taken in or, with an InputError, nothing."""
        with self._turn:
            self._engine.push(self.catalog.stream(stream).name, data)

    def advance(self, stream: str, time: int | datetime) -> None:
        """A heartbeat: everything up to `time` has arrived."""
        declared = self.catalog.stream(stream)
        with self._turn:
            self._engine.advance(declared.name, _tick(declared, time))

    def finish(self) -> None:
        """The end of all inputs: the last answers are given, and no more data are taken."""
        with self._turn:
            self._engine.finish()

    def late(self, stream: str, *, take: bool = False) -> pa.Table:
        """The rows that came at or below the watermark and are in no answer; `take` also forgets them here."""
        declared = self.catalog.stream(stream)
        kept = self._engine.streams[declared.name.lower()].late
        table = pa.concat_tables([declared.schema.empty_table(), *kept])
        if take:
            kept.clear()
        return table

    def metrics(self) -> dict[str, Any]:
        """Counters per stream and query."""
        return {
            "streams": {
                running.stream.name: {
                    "read": running.rows,
                    "late": running.late_rows,
                    "batches": running.batches,
                    "watermark": running.watermark.value,
                    "slices": len(running.slices),
                    "state_bytes": sum(part.group.nbytes for part in running.slices.values() if part.group is not None),
                }
                for running in self._engine.streams.values()
            },
            "queries": {query.name: query.metrics() for query in self._queries.values()},
        }

    # ---- statements -----------------------------------------------------------------------------------------------

    def _statement(self, statement: exp.Expr) -> Any:
        match statement:
            case nodes.CreateStream():
                return self._add_stream(stream_from_node(statement))
            case nodes.CreateRelation():
                return self.catalog.add(relation_from_node(statement))
            case nodes.CreateQuery():
                return self._add_query(statement.this.name, statement.expression)
            case nodes.DropObject():
                return self._drop(statement)
            case nodes.ShowObjects():
                return self._show(statement.args["kind"])
            case nodes.Explain(this=exp.Identifier() as name):
                return self._find(name.name).explain(format=(statement.args.get("format") or "text").lower())
            case nodes.Explain():
                return self._explain(bind(statement.this, self.catalog), statement.args.get("format"))
            case exp.Query() | nodes.StreamOperator():
                raise SyntaxError("a bare query is not registered; write CREATE QUERY name AS …, or call db.query(…)")
        raise SyntaxError(f"{statement.key.upper()} is not a statement of the language; see docs/language.md")

    def _add_stream(self, stream: Stream) -> None:
        self._check_free(stream.name)
        self.catalog.add(stream)
        self._engine.add_stream(stream)

    def _add_query(self, name: str, text: str | exp.Expr) -> Query:
        self._check_free(name)
        bound = bind(text, self.catalog)
        plan = build(bound)
        running = self._engine.add_query(name, periodic_aggregate(bound, plan))
        query = self._queries[name.lower()] = Query(bound, plan, running, self._engine)
        return query

    def _explain(self, bound: BoundQuery, format_: str | None) -> str:
        plan = build(bound)
        try:
            notes = self._engine.describe(periodic_aggregate(bound, plan))
        except UnsupportedError as error:
            notes = [("engine", error.reason)]
        return explain(plan, notes, (format_ or "text").lower())

    def _check_free(self, name: str) -> None:
        if name.lower() in self._queries:
            raise CatalogError(f"query {name} already exists; drop it first, or choose another name")
        if self.catalog.get(name) is not None:
            raise CatalogError(f"{name} already exists as a stream or relation; choose another name")

    def _find(self, name: str) -> Query:
        if name.lower() not in self._queries:
            known = ", ".join(query.name for query in self._queries.values())
            raise CatalogError(f"there is no query {name}; there are: {known or 'none'}")
        return self._queries[name.lower()]

    def _drop(self, statement: nodes.DropObject) -> None:
        name, kind = statement.this.name, statement.args["kind"]
        found = self.catalog.get(name)
        there = name.lower() in self._queries if kind == "QUERY" else found is not None
        if not there and statement.args.get("exists"):
            return
        if kind == "QUERY":
            self.drop(name)
            return
        if not isinstance(found, Stream if kind == "STREAM" else Relation):
            raise CatalogError(f"there is no {kind.lower()} {name}{self.catalog.suggestion(name)}")
        if isinstance(found, Stream):
            self._engine.remove_stream(found.name)
        self.catalog.remove(name)

    def _show(self, kind: str) -> pa.Table:
        if kind == "QUERIES":
            rows = [{"name": q.name, "status": q.status, "text": q.text} for q in self._queries.values()]
            return pa.Table.from_pylist(rows, pa.schema([("name", "string"), ("status", "string"), ("text", "string")]))
        wanted = Stream if kind == "STREAMS" else Relation
        rows = [
            {"name": one.name, "columns": ", ".join(f"{c.name} {c.type.sql('cql')}" for c in one.columns)}
            for one in self.catalog
            if isinstance(one, wanted)
        ]
        return pa.Table.from_pylist(rows, pa.schema([("name", "string"), ("columns", "string")]))


def _tick(stream: Stream, time: int | datetime) -> int:
    if isinstance(time, datetime):
        if not stream.timestamps:
            raise InputError(f"stream {stream.name} counts BIGINT ticks; give advance a whole number, not a datetime")
        if time.tzinfo is not None:
            time = time.astimezone(timezone.utc).replace(tzinfo=None)
        return (time - _EPOCH) // timedelta(microseconds=1)
    if isinstance(time, bool) or not isinstance(time, int):
        raise InputError(f"advance needs a datetime or a whole number of ticks, found {type(time).__name__}")
    return time
