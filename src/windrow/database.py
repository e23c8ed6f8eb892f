"""The public interface: connect, declare streams, register queries, push data, read answers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from threading import RLock
from typing import Any, cast, get_args

import pyarrow as pa
from sqlglot import exp

from windrow.aggregates.user import checked
from windrow.engine import Engine
from windrow.errors import InputError, SetupError, UnsupportedError
from windrow.language.arguments import expect_instant, expect_text, expect_whole_number
from windrow.language.binder import bind
from windrow.language.catalog import Relation, Stream, stream_from_schema
from windrow.language.hints import hinted
from windrow.language.parse import parse
from windrow.language.user_functions import user_function
from windrow.plan.build import build
from windrow.plan.periodic import periodic_aggregate
from windrow.progress import OnProgress, Summary
from windrow.query import Query
from windrow.scheduling.policy import DEFAULT
from windrow.state.choice import Strategy
from windrow.workspace.metrics import metrics
from windrow.workspace.registration import Registration
from windrow.workspace.registry import Registry
from windrow.workspace.relation_rows import RelationRows
from windrow.workspace.runs import Runs
from windrow.workspace.statements import carry_out


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
        try:
            engine = Engine(synopsis, optimizer=optimizer, sharing=sharing)
        except ValueError as error:
            raise SetupError(str(error)) from None
        self._turn = RLock()
        self._registry = Registry(engine, self._turn)
        self.catalog = self._registry.catalog
        self._runs = Runs(self._registry, master=master, spark=spark, settings=settings, log=log)
        self._relations = RelationRows(self._registry, self._runs)
        self._registration = Registration(self._registry, self._runs, self._relations)

    @property
    def _engine(self) -> Engine:
        return self._registry.engine

    @property
    def spark(self) -> Any:
        """The SparkSession of this database, for DataFrames of your own; one is started unless you gave one."""
        with self._turn:
            return self._runs.control.spark

    # ---- declarations ---------------------------------------------------------------------------------------------

    def execute(self, text: str) -> Any:
        """Run a script of CQL statements; gives the result of the last one (a Query, a table, a text, or None).

        A script that fails keeps what its earlier statements did.
        """
        result: Any = None
        statements = parse(expect_text(text, "the script of execute"))
        with self._turn:
            for statement in statements:
                result = carry_out(self._registration, statement)
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
            self._registration.add_stream(stream)
            if hasattr(schema, "isStreaming"):
                self._registry.frames[name.lower()] = schema

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
            name = self._registry.new_name() if name is None else name
            return self._registration.add_query(name, statement, strategy=cast(Strategy, strategy))

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
            self._registration.add_aggregate(function)

    def drop(self, name: str) -> None:
        """Drop a query: its answers so far stay readable, its share of the state is freed."""
        with self._turn:
            self._registration.drop_query(self._registry.find(name, Query))

    def queries(self) -> list[Query]:
        """The registered queries, in the order of their registration."""
        with self._turn:
            return list(self._registry.queries.values())

    def doubts(self) -> list[str]:
        """What a run may stumble over, told without Spark: paths with nothing at them, formats nobody knows."""
        from windrow.pipeline.doubts import doubts

        with self._turn:
            queries, into = self._registry.queries, self._registry.into
            return doubts(self.catalog, {queries[name].name: spec for name, spec in into.items()})

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

        return self._runs.replay(Request(checkpoint, output, format, None, progress, shards), finish=finish)

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
        self._runs.control.start(Request(checkpoint, output, format, trigger, progress, shards, policy))

    def set_policy(self, policy: str) -> None:
        """Schedule the queries of the live run that goes on by another policy."""
        self._runs.control.set_policy(policy)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until a live run is over (then True), or for so many seconds; what goes wrong in it is raised here."""
        return self._runs.control.wait(timeout)

    def stop(self) -> Summary:
        """End a live run cleanly: what was taken in is answered as far as it is due, written and checkpointed."""
        return self._runs.control.stop()

    def sql_view(self, query: str | Query) -> Any:
        """The latest answer of a query as a Spark temporary view of its name; a run keeps it up to date.

        Gives the DataFrame of that moment.
        """
        with self._turn:
            found = query if isinstance(query, Query) else self._registry.find(query, Query)
            return self._runs.control.view(found.name, found.running)

    def close(self) -> None:
        """Stop a run, and the Spark that was started for it."""
        self._runs.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # ---- data -----------------------------------------------------------------------------------------------------

    def push(self, stream: str, data: Any) -> None:
        """Feed a batch (pyarrow Table or RecordBatch); all of it is taken in or, with an InputError, nothing.

        A QueryError also comes out of here: the batch was taken in, so do not push it again; only the query that the
        error names was stopped, and the others have answered.
        """
        with self._turn:
            declared = self._registry.find(stream, Stream)
            self._check_ours(declared)
            self._relations.fill_expected()
            self._engine.push(declared.name, data)

    def advance(self, stream: str, time: int | datetime) -> None:
        """A heartbeat: everything up to `time` has arrived."""
        with self._turn:
            declared = self._registry.find(stream, Stream)
            self._check_ours(declared)
            self._relations.fill_expected()
            if isinstance(time, datetime) and not declared.timestamps:
                raise InputError(
                    f"stream {declared.name} counts BIGINT ticks; give advance a whole number, not a datetime"
                )
            self._engine.advance(declared.name, expect_instant(time, "the time of advance"))

    def finish(self) -> None:
        """The end of all inputs: the last answers are given, and no more data are taken."""
        with self._turn:
            self._runs.require_none("; end it with db.stop()")
            self._relations.fill_expected()
            self._engine.finish()

    def _check_ours(self, stream: Stream) -> None:
        self._runs.require_none(
            f", and its checkpoint would know nothing of what is pushed into stream {stream.name}; stop the run first "
            "with db.stop()"
        )

    def relation(self, name: str) -> pa.Table:
        """The rows of a relation; those of one with a source are read when they are first asked for."""
        with self._turn:
            return self._relations.rows(self._registry.find(name, Relation))

    def update(
        self, relation: str, insert: Any = None, delete: Any = None, *, time: int | datetime | None = None
    ) -> int | None:
        """Rows of a relation come and go, also while queries run; `delete` names whole rows or only some columns.

        They take effect at `time`, by default at the next instant that no query has answered yet; that instant is
        given back, in ticks (None while no query reads the relation and none of its updates has a time). All is done
        or, with an InputError, nothing.
        """
        with self._turn:
            declared = self._registry.find(relation, Relation)
            self._relations.fill(declared)
            instant = None if time is None else expect_instant(time, "the time of update")
            return self._runs.update(declared, insert, delete, instant)

    def late(self, stream: str, *, take: bool = False) -> pa.Table:
        """The rows that came at or below the watermark and are in no answer; `take` also forgets them here."""
        with self._turn:
            declared = self._registry.find(stream, Stream)
            kept = self._engine.streams[declared.name.lower()].late
            table = pa.concat_tables([declared.schema.empty_table(), *kept])
            if take:
                kept.clear()
            return table

    def metrics(self) -> dict[str, Any]:
        """Counters per stream and query, and whether a run goes on or has failed."""
        with self._turn:
            return metrics(self._registry, self._runs)

    def sharing(self) -> pa.Table:
        """Who shares what with whom, by which rule, and what that has saved so far (also `SHOW SHARING`)."""
        with self._turn:
            return self._engine.sharing()
