"""The public interface: connect, declare streams, register queries, push data, read answers."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args

import pyarrow as pa
from sqlglot import exp

from windrow.aggregates.user import checked
from windrow.engine import Engine
from windrow.errors import (
    BindError,
    CatalogError,
    InputError,
    SetupError,
    SinkError,
    StateError,
    SyntaxError,
    UnsupportedError,
)
from windrow.language import nodes
from windrow.language.arguments import expect_text, expect_whole_number
from windrow.language.binder import bind
from windrow.language.bound import BoundQuery
from windrow.language.catalog import Catalog, Relation, Stream, relation_from_node, stream_from_node, stream_from_schema
from windrow.language.hints import hinted
from windrow.language.parse import parse
from windrow.language.positions import position
from windrow.language.user_functions import user_function
from windrow.live import LiveSchedule
from windrow.plan.build import build
from windrow.plan.explain import explain
from windrow.plan.periodic import periodic_aggregate
from windrow.progress import OnProgress, Summary
from windrow.query import Query
from windrow.relations import every_relation
from windrow.running import Registered
from windrow.scheduling.policy import DEFAULT, LIVE
from windrow.state.choice import Strategy

if TYPE_CHECKING:
    from windrow.pipeline.control import Control
    from windrow.pipeline.launch import Wanted
    from windrow.pipeline.sinks import SinkSpec

_EPOCH = datetime(1970, 1, 1)
MOST_SHARDS = 1024
_Kind = TypeVar("_Kind", Stream, Relation, Query)


def connect(
    *,
    master: str | None = None,
    spark: Any = None,
    settings: Mapping[str, str] | None = None,
    log: str | Path | None = None,
    synopsis: str | None = None,
    optimizer: bool = True,
    sharing: bool = True,
) -> Database:
    """A new, empty database in this process.

    Spark is started when a run first needs it: on this machine, or on `master` (a Spark master URL), with `settings`
    (Spark's own, spark.…), its messages in the file `log`. Or give a SparkSession of your own. `synopsis` (running,
    basic_interval, interval or landmark) takes the choice of the synopses away from Windrow; without `optimizer`
    continuous queries run as they are written, and without `sharing` every query keeps panes of its own (which cannot
    be checkpointed): to measure what they are worth.

    >>> import pyarrow as pa, windrow
    >>> db = windrow.connect()
    >>> db.execute("CREATE STREAM s (t BIGINT, x INT) TIME t")
    >>> q = db.query("SELECT SUM(x) AS total FROM s [RANGE 10 SLIDE 5]", name="totals")
    >>> db.push("s", pa.table({"t": [1, 4, 12], "x": pa.array([1, 2, 3], pa.int32())}))
    >>> db.finish()
    >>> q.answers().to_pylist()
    [{'_time': 5, 'total': 3}, {'_time': 10, 'total': 3}, {'_time': 15, 'total': 3}]
    """
    return Database(
        master=master, spark=spark, settings=settings, log=log, synopsis=synopsis, optimizer=optimizer, sharing=sharing
    )  # fmt: skip


class Database:
    """Streams, relations and queries of one process; its methods may be called from several threads, in turns."""

    def __init__(
        self,
        *,
        synopsis: str | None = None,
        optimizer: bool = True,
        sharing: bool = True,
        master: str | None = None,
        spark: Any = None,
        settings: Mapping[str, str] | None = None,
        log: str | Path | None = None,
    ) -> None:
        self._turn = RLock()
        self.catalog = Catalog()
        try:
            self._engine = Engine(synopsis, optimizer=optimizer, sharing=sharing)
        except ValueError as error:
            raise SetupError(str(error)) from None
        self._frames: dict[str, Any] = {}
        """Streams that are Spark DataFrames of the user."""
        self._queries: dict[str, Query] = {}
        self._into: dict[str, SinkSpec] = {}
        """Where the queries with INTO write."""
        self._unread: set[str] = set()
        """Relations with a source that queries read, and that are read when the first tuples come."""
        self._session = {"master": master, "spark": spark, "settings": settings, "log": log}
        self._control: Control | None = None

    @property
    def _pipeline(self) -> Control:
        """The way to Spark, which is only imported when it is needed."""
        if self._control is None:
            from windrow.pipeline.control import Control, Home

            home = Home(self.catalog, self._turn, self._frames, lambda: self._engine, self._wanted, self._attach)
            self._control = Control(home, **self._session)
        return self._control

    @property
    def spark(self) -> Any:
        """The SparkSession of this database, for DataFrames of your own; one is started unless you gave one."""
        with self._turn:
            return self._pipeline.spark

    @property
    def _running(self) -> bool:
        return self._control is not None and self._control.active

    # ---- declarations ---------------------------------------------------------------------------------------------

    def execute(self, text: str) -> Any:
        """Run a script of CQL statements; gives the result of the last one (a Query, a table, a text, or None).

        A script that fails keeps what its earlier statements did.
        """
        result: Any = None
        statements = parse(expect_text(text, "the script of execute"))
        with self._turn:
            for statement in statements:
                result = self._statement(statement)
        return result

    def stream(
        self,
        name: str,
        schema: Any,
        *,
        time: str,
        sequence: str | None = None,
        lateness: int | str | timedelta = 0,
    ) -> None:
        """Declare a stream: a pyarrow.Schema for pushed data, or a Spark DataFrame that a run reads.

        Lateness is in ticks, a text such as '2 seconds', or a timedelta.
        """
        if hasattr(schema, "isStreaming"):
            from windrow.pipeline.sources import stream_from_frame

            stream = stream_from_frame(name, schema, time=time, sequence=sequence, lateness=lateness)
        else:
            stream = stream_from_schema(name, schema, time=time, sequence=sequence, lateness=lateness)
        with self._turn:
            self._add_stream(stream)
            if hasattr(schema, "isStreaming"):
                self._frames[name.lower()] = schema

    def query(
        self,
        text: str,
        *,
        name: str | None = None,
        synopsis: str | None = None,
        priority: int | None = None,
        strategy: str = "upa",
    ) -> Query:
        """Register a persistent query; it is answered from the next due time on.

        `synopsis` is the hint `SELECT /*+ SYNOPSIS(…) */ …`, `priority` is `/*+ PRIORITY(…) */`: in a live run the
        greater goes first among queries with equal deadlines. Both become part of the text.
        `strategy` is for experiments with continuous queries: upa (state matches the update patterns), nt (negative
        tuples everywhere) or direct (lists that are scanned); the answers are the same.
        """
        expect_text(text, "the text of a query")
        if strategy not in get_args(Strategy):
            raise SetupError(f"there is no strategy {strategy!r}; the strategies are {', '.join(get_args(Strategy))}")
        statement: str | exp.Expr = text
        if synopsis is not None or priority is not None:
            if synopsis is not None:
                expect_text(synopsis, "the synopsis of a query")
            if priority is not None:
                priority = expect_whole_number(priority, "the priority of a query")
            statement = hinted(text, synopsis, priority)
        with self._turn:
            if name is None:
                number = len(self._queries) + 1
                while self._get(f"query_{number}") is not None:
                    number += 1
                name = f"query_{number}"
            return self._add_query(name, statement, strategy=strategy)

    def ask(self, text: str) -> pa.Table:
        """Answer a one-time query now, from what the registered queries keep: `_time` and the select list.

        It has a window without SLIDE, which need not be that of a registered query. `[RANGE T OFFSET d]` needs queries
        with the same stream, WHERE and GROUP BY, or some that have its rows and groups together; `[ROWS n]` needs a
        ROWS query on the stream. A CoverageError says what is kept when that is not enough. `_time` is the newest
        window update.

        >>> import pyarrow as pa, windrow
        >>> db = windrow.connect()
        >>> db.execute("CREATE STREAM s (t BIGINT, x INT) TIME t")
        >>> q = db.query("SELECT SUM(x) AS total FROM s [RANGE 20 SLIDE 5]")
        >>> db.push("s", pa.table({"t": [1, 4, 8, 12], "x": pa.array([1, 2, 3, 4], pa.int32())}))
        >>> db.ask("SELECT SUM(x) AS total FROM s [RANGE 10]").to_pylist()
        [{'_time': 10, 'total': 6}]
        """
        expect_text(text, "the text of a question")
        with self._turn:
            bound = bind(text, self.catalog)
            if bound.periodic:
                raise UnsupportedError("a one-time query has no SLIDE: leave it out, or register it with db.query")
            return self._engine.ask(periodic_aggregate(bound, build(bound), one_time=True))

    def aggregate(self, name: str, implementation: type, *, returns: str = "DOUBLE", takes: str = "a number") -> None:
        """Register an aggregate of your own, a class as `windrow.UserAggregate` says; then `SELECT name(x)` calls it.

        `returns` is a type of the language, `takes` is 'a number', 'a date or time' or 'a boolean'. A name that no
        query uses may be registered anew.
        """
        function = checked(user_function(name, implementation, returns, takes))
        with self._turn:
            known = self.catalog.functions.get(function.name)
            if known is not None and known != function:
                users = [query.name for query in self._queries.values() if known in query.functions]
                if users:
                    raise CatalogError(
                        f"the aggregate {function.name} is {known.place} and is used by {', '.join(users)}; drop "
                        f"{'these queries' if len(users) > 1 else 'that query'} first, or choose another name"
                    )
            self.catalog.functions[function.name] = function

    def drop(self, name: str) -> None:
        """Drop a query: its answers so far stay readable, its share of the state is freed."""
        with self._turn:
            query = self._find(name, Query)
            if self._running:
                self._pipeline.drop(query.name)
            else:
                self._engine.drop_query(query.running)
            del self._queries[name.lower()]
            self._into.pop(name.lower(), None)

    def queries(self) -> list[Query]:
        """The registered queries, in the order of their registration."""
        with self._turn:
            return list(self._queries.values())

    # ---- runs on Spark --------------------------------------------------------------------------------------------

    def run(
        self,
        *,
        checkpoint: str | Path | None = None,
        output: str | Path | None = None,
        format: str = "parquet",
        finish: bool = True,
        shards: int = 0,
        progress: OnProgress | None = None,
    ) -> Summary:
        """Replay: read every source to its end, and answer every query exactly at its due times.

        With `checkpoint` (a directory) a run that was interrupted goes on where it was. With `output` (a directory)
        answers of queries without INTO are written to output/<query>, as parquet, csv or json; else they stay in
        `query.answers()`. `progress` is told how far the run has come; by default a terminal shows it.
        `finish=False` leaves the last windows open for a later run. With `shards`, queries that operators maintain and
        that have an equi-key run in so many shards in Spark's executors, the others here; the answers are the same.
        """
        from windrow.pipeline.launch import Request

        asked = Request(checkpoint, output, format, None, progress, _shards(shards))
        if progress is not None or not sys.stderr.isatty():
            return self._pipeline.replay(asked, finish=finish)
        from windrow.display import display_for

        with display_for(quiet=False, as_json=False) as display:
            return self._pipeline.replay(replace(asked, progress=display), finish=finish)

    def start(
        self,
        trigger: str = "1 second",
        *,
        checkpoint: str | Path | None = None,
        output: str | Path | None = None,
        format: str = "parquet",
        shards: int = 0,
        policy: str = DEFAULT,
        progress: OnProgress | None = None,
    ) -> None:
        """Live: take in what arrives, every `trigger`; queries can be added, dropped and read while it runs.

        An answer comes when the watermark of its stream passes its due time: with a later row, not by the clock. So
        while a stream is idle, its queries are too; the queries of other streams go on. What goes wrong in the
        background is raised by `wait` or `stop`. `shards` as in `run`. `policy` says how queries are scheduled when
        there are more answers due than can be given in time (docs/scheduling.md); `exact` answers every due time, and
        lets the stream wait.
        """
        from windrow.pipeline.launch import Request

        expect_text(trigger, "the trigger of start")
        _check_policy(policy)
        self._pipeline.start(Request(checkpoint, output, format, trigger, progress, _shards(shards), policy))

    def set_policy(self, policy: str) -> None:
        """Schedule the queries of the live run that goes on by another policy."""
        _check_policy(policy)
        self._pipeline.set_policy(policy)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until a live run is over (then True), or for so many seconds; what goes wrong in it is raised here."""
        return self._pipeline.wait(timeout)

    def stop(self) -> Summary:
        """End a live run cleanly: what was taken in is answered as far as it is due, written and checkpointed."""
        return self._pipeline.stop()

    def sql_view(self, query: str | Query) -> Any:
        """The latest answer of a query as a Spark temporary view of its name; a run keeps it up to date.

        Gives the DataFrame of that moment.
        """
        with self._turn:
            found = query if isinstance(query, Query) else self._find(query, Query)
            return self._pipeline.view(found.name, found.running)

    def relation(self, name: str) -> pa.Table:
        """The rows of a relation; those of one with a source are read when they are first asked for."""
        with self._turn:
            declared = self._find(name, Relation)
            if not self._engine.flows.relations.known(declared):
                rows = declared.schema.empty_table()
                if declared.format is not None:
                    rows = self._pipeline.read_relation(declared)
                load = self._pipeline.load if self._running else self._engine.flows.load_relation
                load(declared, rows)
            self._unread.discard(declared.name)
            return self._engine.flows.relations.table(declared)

    def _read_relations(self) -> None:
        """Before tuples come: read the relations that queries join them with."""
        for name in list(self._unread):
            if self._engine.flows.readers(self._find(name, Relation)):
                self.relation(name)
            self._unread.discard(name)

    def update(
        self, relation: str, insert: Any = None, delete: Any = None, *, time: int | datetime | None = None
    ) -> int | None:
        """Rows of a relation come and go, also while queries run; `delete` names whole rows or only some columns.

        They take effect at `time`, by default at the next instant that no query has answered yet; that instant is
        given back, in ticks (None while no query reads the relation and none of its updates has a time). All is done
        or, with an InputError, nothing.
        """
        with self._turn:
            declared = self._find(relation, Relation)
            self.relation(declared.name)
            update = self._pipeline.update if self._running else self._engine.flows.update
            return update(declared, insert, delete, None if time is None else _instant(time))

    def close(self) -> None:
        """Stop a run, and the Spark that was started for it."""
        if self._control is not None:
            self._control.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _wanted(self) -> list[Wanted]:
        """The registered queries, for a run."""
        from windrow.pipeline.launch import Wanted

        return [Wanted(one.name, one.text, self._into.get(name), one.running) for name, one in self._queries.items()]

    def _attach(self, engine: Engine, queries: Mapping[str, Registered]) -> None:
        """Go on with the engine of a run: its own, or one that was recovered from its checkpoint."""
        self._engine = engine
        self._unread.clear()
        for name, query in self._queries.items():
            query.attach(engine, queries[name])

    # ---- data -----------------------------------------------------------------------------------------------------

    def push(self, stream: str, data: Any) -> None:
        """Feed a batch (pyarrow Table or RecordBatch); all of it is taken in or, with an InputError, nothing.

        A QueryError also comes out of here: the batch was taken in, so do not push it again; only the query that the
        error names was stopped, and the others have answered.
        """
        with self._turn:
            declared = self._find(stream, Stream)
            self._check_ours(declared)
            self._read_relations()
            self._engine.push(declared.name, data)

    def advance(self, stream: str, time: int | datetime) -> None:
        """A heartbeat: everything up to `time` has arrived."""
        with self._turn:
            declared = self._find(stream, Stream)
            self._check_ours(declared)
            self._read_relations()
            self._engine.advance(declared.name, _tick(declared, time))

    def finish(self) -> None:
        """The end of all inputs: the last answers are given, and no more data are taken."""
        with self._turn:
            if self._running:
                raise StateError("a run is going on; end it with db.stop()")
            self._read_relations()
            self._engine.finish()

    def _check_ours(self, stream: Stream) -> None:
        if self._running:
            raise StateError(
                f"a run is going on, and its checkpoint would know nothing of what is pushed into stream "
                f"{stream.name}; stop the run first with db.stop()"
            )

    def late(self, stream: str, *, take: bool = False) -> pa.Table:
        """The rows that came at or below the watermark and are in no answer; `take` also forgets them here."""
        with self._turn:
            declared = self._find(stream, Stream)
            kept = self._engine.streams[declared.name.lower()].late
            table = pa.concat_tables([declared.schema.empty_table(), *kept])
            if take:
                kept.clear()
            return table

    def metrics(self) -> dict[str, Any]:
        """Counters per stream and query."""
        with self._turn:
            return {
                "streams": {
                    running.stream.name: {
                        "read": running.rows,
                        "late": running.late_rows,
                        "batches": running.batches,
                        "watermark": running.watermark.value,
                        "slices": len(running.slices)
                        + (0 if running.numbering is None else len(running.numbering.slices)),
                        "state_bytes": running.nbytes,
                    }
                    for running in self._engine.streams.values()
                },
                "queries": {query.name: self._query_metrics(query) for query in self._queries.values()},
                **({} if self._schedule is None else {"schedule": self._schedule.figures()}),
            }

    @property
    def _schedule(self) -> LiveSchedule | None:
        """Of the live run that goes on, or of the last one, if it has one."""
        return None if self._control is None else self._control.schedule

    def _query_metrics(self, query: Query) -> dict[str, Any]:
        schedule = self._schedule
        if schedule is None:
            return query.metrics()
        streams = sorted(query.running.streams)
        return query.metrics() | schedule.query(streams[0], query.name)

    def sharing(self) -> pa.Table:
        """Who shares what with whom, by which rule, and what that has saved so far (also `SHOW SHARING`)."""
        with self._turn:
            return self._engine.sharing()

    # ---- names: one space for streams, relations and queries -------------------------------------------------------

    def _get(self, name: str) -> Stream | Relation | Query | None:
        return self._queries.get(name.lower()) or self.catalog.get(name)

    def _find(self, name: str, kind: type[_Kind]) -> _Kind:
        wanted = kind.__name__.lower()
        found = self._get(expect_text(name, f"the name of a {wanted}"))
        if isinstance(found, kind):
            return found
        if found is not None:
            raise CatalogError(f"{found.name} is a {type(found).__name__.lower()}, not a {wanted}")
        known = ", ".join(query.name for query in self._queries.values())
        hint = f"; there are: {known or 'none'}" if kind is Query else self.catalog.suggestion(name)
        raise CatalogError(f"there is no {wanted} {name}{hint}")

    def _check_free(self, name: str, kind: type[_Kind]) -> None:
        wanted = kind.__name__.lower()
        if not expect_text(name, f"the name of a {wanted}").strip():
            raise CatalogError(f"a {wanted} needs a name that is not blank, found {name!r}")
        found = self._get(name)
        if found is not None:
            what = type(found).__name__.lower()
            raise CatalogError(f"{what} {found.name} already exists; drop it first, or choose another name")

    # ---- statements -----------------------------------------------------------------------------------------------

    def _statement(self, statement: exp.Expr) -> Any:
        match statement:
            case nodes.CreateStream():
                return self._add_stream(stream_from_node(statement))
            case nodes.CreateRelation():
                relation = relation_from_node(statement)
                self._check_free(relation.name, Relation)
                return self.catalog.add(relation)
            case nodes.CreateQuery():
                return self._add_query(statement.this.name, statement.expression, _into(statement))
            case nodes.DropObject():
                return self._drop(statement)
            case nodes.ShowObjects():
                return self._show(statement.args["kind"])
            case nodes.Explain(this=exp.Identifier() as name):
                return self._find(name.name, Query).explain(statement.args.get("format") or "text")
            case nodes.Explain():
                return self._explain(bind(statement.this, self.catalog), statement.args.get("format"))
        line, column = position(statement)
        reason = f"{statement.key.upper()} is not a statement of the language; see docs/language.md"
        if isinstance(statement, (exp.Query, nodes.StreamOperator)):
            reason = "a bare query is not registered; write CREATE QUERY name AS …, or call db.query(…)"
        raise SyntaxError(reason, line=line, column=column)

    def _add_stream(self, stream: Stream) -> None:
        self._check_free(stream.name, Stream)
        if self._running:
            raise StateError(f"a run is going on; stop it with db.stop() before you declare stream {stream.name}")
        self.catalog.add(stream)
        self._engine.add_stream(stream)

    def _add_query(self, name: str, text: str | exp.Expr, into: SinkSpec | None = None, strategy: str = "upa") -> Query:
        self._check_free(name, Query)
        bound = bind(text, self.catalog)
        plan = build(bound)
        for stream in bound.streams:
            if self._engine.streams[stream.name.lower()].finished:
                raise StateError(
                    f"stream {stream.name} has ended (finish was called), so query {name} would get no answers; "
                    "register queries before finish"
                )
        for source in every_relation(bound):
            assert source.relation is not None
            if self._running or source.relation.format is None or self._engine.flows.relations.known(source.relation):
                self.relation(source.name)
            else:
                self._unread.add(source.relation.name)  # a check of a script starts no Spark
        way = cast(Strategy, strategy)
        running = (
            self._pipeline.add(name, bound.text, into, way)
            if self._running
            else self._engine.register(name, bound, plan, way)
        )
        query = self._queries[name.lower()] = Query(
            bound, plan, running, self._engine, self._turn, lambda: self._outside(bound.streams, into)
        )
        if into is not None:
            self._into[name.lower()] = into
        return query

    def _explain(self, bound: BoundQuery, format_: str | None) -> str:
        plan = build(bound)
        try:
            notes = [*self._outside(bound.streams, None), *self._engine.describe_new(bound, plan)]
            plan = self._engine.plan_of(bound, plan)
        except UnsupportedError as error:
            notes = [("engine", error.reason)]
        return explain(plan, notes, (format_ or "text").lower())

    def _outside(self, streams: Sequence[Stream], into: SinkSpec | None) -> list[tuple[str, str]]:
        """For EXPLAIN: where rows come from, and where answers go."""
        notes = []
        for stream in streams:
            topic = "source" if len(streams) == 1 else f"source of {stream.name}"
            if stream.name.lower() in self._frames:
                notes.append((topic, "row path: the rows come from a DataFrame"))
            elif stream.format is not None:
                from windrow.pipeline.scan_choice import expected_scan

                notes.append((topic, expected_scan(stream)))
        if into is not None:
            where = f" in {into.option('path')}" if into.option("path") else ""
            notes.append(("sink", f"{into.format}{where}"))
        return notes

    def doubts(self) -> list[str]:
        """What a run may stumble over, told without Spark: paths with nothing at them, formats nobody knows."""
        from windrow.pipeline.doubts import doubts

        with self._turn:
            return doubts(self.catalog, {self._queries[name].name: into for name, into in self._into.items()})

    def _drop(self, statement: nodes.DropObject) -> None:
        name, kind = statement.this.name, statement.args["kind"]
        if statement.args.get("exists") and self._get(name) is None:
            return
        if kind == "QUERY":
            self.drop(name)
            return
        found = self._find(name, Stream) if kind == "STREAM" else self._find(name, Relation)
        if self._running:
            raise StateError(f"a run is going on; stop it with db.stop() before you drop {kind.lower()} {found.name}")
        if isinstance(found, Stream):
            self._engine.remove_stream(found.name)
            self._frames.pop(found.name.lower(), None)
            if self._control is not None:
                self._control.forget(found.name)
        else:
            users = [query.name for query in self._engine.flows.readers(found)]
            if users:
                raise StateError(f"relation {found.name} is read by {', '.join(users)}; drop them first")
            self._engine.flows.relations.forget(found)
            self._unread.discard(found.name)
        self.catalog.remove(name)

    def _show(self, kind: str) -> pa.Table:
        if kind == "SHARING":
            return self._engine.sharing()
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


def _check_policy(policy: str) -> None:
    if expect_text(policy, "the policy of a live run") not in LIVE:
        raise SetupError(f"there is no policy {policy!r}; the policies are {', '.join(LIVE)}")


def _shards(asked: int) -> int:
    if isinstance(asked, bool) or not isinstance(asked, int) or not 0 <= asked <= MOST_SHARDS:
        raise SetupError(f"shards: expected a whole number from 0 (none) to {MOST_SHARDS}, found {asked!r}")
    return asked


def _into(statement: exp.Expr) -> SinkSpec | None:
    """INTO format OPTIONS (…); an error points at the format."""
    place = statement.args.get("format")
    if place is None:
        return None
    from windrow.pipeline.sinks import sink_spec

    try:
        return sink_spec(
            place.name, {one.this.name: one.expression.name for one in statement.args.get("options") or ()}
        )
    except SinkError as error:
        line, column = position(place)
        raise BindError(str(error), line=line, column=column) from None


def _instant(time: int | datetime) -> int:
    if not isinstance(time, datetime):
        return expect_whole_number(time, "the time of update", "a datetime or a whole number of ticks")
    epoch = _EPOCH if time.utcoffset() is None else _EPOCH.replace(tzinfo=timezone.utc)
    return (time - epoch) // timedelta(microseconds=1)


def _tick(stream: Stream, time: int | datetime) -> int:
    if not isinstance(time, datetime):
        return expect_whole_number(time, "the time of advance", "a datetime or a whole number of ticks")
    if not stream.timestamps:
        raise InputError(f"stream {stream.name} counts BIGINT ticks; give advance a whole number, not a datetime")
    epoch = _EPOCH if time.utcoffset() is None else _EPOCH.replace(tzinfo=timezone.utc)
    return (time - epoch) // timedelta(microseconds=1)
