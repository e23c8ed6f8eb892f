"""From a database to a run: open the sources, recover what a checkpoint holds, open the sinks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from threading import RLock

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from windrow.engine import Engine
from windrow.errors import SetupError, StateError
from windrow.job import require_importable
from windrow.language.arguments import expect_text
from windrow.language.catalog import Catalog, Relation, Stream
from windrow.live import LiveSchedule
from windrow.pipeline.checkpoint import Checkpoint
from windrow.pipeline.declared import fingerprint
from windrow.pipeline.definitions import QueryDefinition
from windrow.pipeline.exchange import Exchange
from windrow.pipeline.host import Host
from windrow.pipeline.offsets import check_offsets
from windrow.pipeline.outputs import Outputs
from windrow.pipeline.reconcile import Resumption, add_intake, load_relations, reconcile
from windrow.pipeline.run import Run, check_trigger
from windrow.pipeline.sinks import SinkSpec
from windrow.pipeline.sources import Source, open_source
from windrow.progress import OnProgress, Progress
from windrow.running import Registered, RunningQuery
from windrow.scheduling.policy import DEFAULT, EXACT, LIVE
from windrow.shards.outbox import Outbox

FORGETFUL = frozenset({"socket"})
"""Sources that have nothing to say of an earlier run: Spark refuses to go on with the offsets that it noted then."""
MOST_SHARDS = 1024


@dataclass(frozen=True)
class Wanted:
    """A query of the database: its name and text, INTO, and its state in the database's own engine."""

    name: str
    text: str
    into: SinkSpec | None
    running: Registered

    def definition(self, outputs: Outputs) -> QueryDefinition:
        """For the checkpoint, with the place of its answers."""
        return QueryDefinition(self.name, self.text, outputs.resolve(self.name, self.into), self.running.strategy)


@dataclass(frozen=True)
class Request:
    """What the user asks of a run."""

    checkpoint: str | Path | None = None
    output: str | Path | None = None
    format: str = "parquet"
    trigger: str | None = None
    progress: OnProgress | None = None
    shards: int = 0
    """Queries with an equi-key run in so many shards in the executors; none: all run here."""
    policy: str = DEFAULT
    """In a live run: how queries are scheduled."""

    def __post_init__(self) -> None:
        check_policy(self.policy)
        whole = isinstance(self.shards, int) and not isinstance(self.shards, bool)
        if not whole or not 0 <= self.shards <= MOST_SHARDS:
            raise SetupError(f"shards: expected a whole number from 0 (none) to {MOST_SHARDS}, found {self.shards!r}")


def check_policy(policy: str) -> None:
    """Refuse what is no policy of a live run."""
    if expect_text(policy, "the policy of a live run") not in LIVE:
        raise SetupError(f"there is no policy {policy!r}; the policies are {', '.join(LIVE)}")


@dataclass(frozen=True)
class Launched:
    """A run that is ready to start, and what it found in its checkpoint."""

    run: Run
    host: Host
    found: Resumption
    outputs: Outputs


def launch(
    spark: SparkSession,
    engine: Engine,
    catalog: Catalog,
    frames: Mapping[str, DataFrame],
    queries: Sequence[Wanted],
    turn: RLock,
    scratch: Path,
    earlier: Host | None,
    request: Request,
    after_step: Callable[[], None],
    read: Callable[[Relation], pa.Table],
) -> Launched:
    """Prepare a run of all streams that have a source; an error leaves the database and the checkpoint as they were."""
    report = request.progress or (lambda _: None)
    streams = [source for source in catalog if isinstance(source, Stream)]
    with_source = [one for one in streams if one.format is not None or one.name.lower() in frames]
    if not with_source:
        raise StateError(
            "no stream has a source to read; declare one with CREATE STREAM … USING format OPTIONS (…) or "
            "db.stream(name, dataframe, …), or feed the streams with db.push(…)"
        )
    for query in queries:
        if isinstance(query.running, RunningQuery):
            require_importable(query.running.plan)
    if request.trigger is not None:
        check_trigger(spark, request.trigger)
    sources = [open_source(spark, stream, frames.get(stream.name.lower())) for stream in with_source]
    if request.trigger is None:
        _require_bounded(sources)

    def rows_of(relation: Relation) -> pa.Table:
        """The rows that a relation starts with: those of the database, or of its source."""
        if engine.flows.relations.known(relation) or relation.format is None:
            return engine.flows.relations.table(relation)
        return read(relation)

    marks = [(stream, fingerprint(stream) if stream in with_source else "") for stream in streams]
    output = None if request.output is None else Path(request.output)
    checkpoint = None if request.checkpoint is None else Checkpoint.open(request.checkpoint)
    offsets = scratch if checkpoint is None else checkpoint.path
    host: Host | None = None
    try:
        exchange = _exchange(spark, offsets, request, engine, checkpoint)
        outputs = Outputs(spark, output, request.format, None if checkpoint is None else checkpoint.path)
        wanted = [query.definition(outputs) for query in queries]
        if checkpoint is not None and checkpoint.snapshot is not None:
            report(Progress("recovering"))
            host = Host(
                Engine(engine.synopsis, optimizer=engine.optimizer), Catalog(catalog.functions), checkpoint, outputs,
                exchange,
            )  # fmt: skip
            host.recover({definition.name.lower(): definition for definition in wanted})
            _check_fit(host, checkpoint, sources)
            known = {one.name.lower(): one for one in catalog if isinstance(one, Relation)}
            found = reconcile(host, marks, wanted, known, rows_of)
        else:
            host = Host(engine, catalog, checkpoint, outputs, exchange)
            load_relations(host, rows_of)
            if exchange is not None:
                _open_outbox(engine, exchange.shards, {stream.name.lower() for stream in with_source})
            found = _begin(host, outputs, earlier, marks, queries, wanted)
        for source in sources:
            if (source.stream.format or "").lower() in FORGETFUL:
                _read_anew(host, source.stream, offsets)
        run = Run(
            spark, sources, host, turn, offsets, exchange=exchange,
            trigger=request.trigger, progress=request.progress, after_step=after_step,
        )  # fmt: skip
        if request.trigger is not None and request.policy != EXACT:
            host.schedule = LiveSchedule(request.policy, beside=True)
    except BaseException:
        if host is not None:
            host.close()  # sinks that are open already lock their directories
        elif checkpoint is not None:
            checkpoint.close()
        raise
    return Launched(run, host, found, outputs)


def _exchange(
    spark: SparkSession, place: Path, request: Request, engine: Engine, checkpoint: Checkpoint | None
) -> Exchange | None:
    """The way to the shards, if there are some: those that are asked for, or those that the checkpoint has."""
    if checkpoint is not None and checkpoint.snapshot is not None:
        known = checkpoint.snapshot.meta["engine"].get("outbox", {}).get("shards", 0)
    else:
        known = engine.flows.outbox.shards if engine.flows.outbox is not None else request.shards
    if request.shards not in (0, known):
        had = f"{known} shards" if known else "no shards"
        raise SetupError(
            f"shards: this run goes on where an earlier one with {had} was, and {request.shards} are asked for; ask "
            "for the same, or start afresh (another checkpoint, a new windrow.connect())"
        )
    return Exchange.open(spark, place / "shards", known) if known else None


def _open_outbox(engine: Engine, shards: int, streams: set[str]) -> None:
    if engine.flows.outbox is None:
        outbox = Outbox(shards)
        outbox.streams, outbox.open = streams, True
        engine.flows.move_to_shards(outbox)
    else:
        engine.flows.outbox.open = True


def _require_bounded(sources: Sequence[Source]) -> None:
    endless = [source.stream for source in sources if not source.bounded]
    if endless:
        names = ", ".join(f"{stream.name} ({stream.format})" for stream in endless)
        raise SetupError(f"a replay reads sources to their end, and {names} never ends; use --live or db.start(…)")


def _read_anew(host: Host, stream: Stream, offsets: Path) -> None:
    """Take what a forgetful source sends from now on for its first rows; what it sent before is in the engine."""
    host.done.pop(stream.name.lower(), None)
    rmtree(offsets / host.intakes[stream.name.lower()].folder, ignore_errors=True)


def _check_fit(host: Host, checkpoint: Checkpoint, sources: Sequence[Source]) -> None:
    """Refuse offsets that do not fit the journal while the checkpoint is still as it was found."""
    for stream in (source.stream for source in sources if source.frame.isStreaming):
        intake = host.intakes.get(stream.name.lower())
        if intake is not None and intake.fingerprint == fingerprint(stream):
            check_offsets(checkpoint.path / intake.folder, host.done.get(stream.name.lower(), -1))


def _begin(
    host: Host,
    outputs: Outputs,
    earlier: Host | None,
    marks: Sequence[tuple[Stream, str]],
    queries: Sequence[Wanted],
    wanted: Sequence[QueryDefinition],
) -> Resumption:
    """Run the database's own engine; without a checkpoint it goes on where an earlier run of it was stopped."""
    before = earlier if earlier is not None and earlier.engine is host.engine else None
    if before is not None:
        _require_same_checkpoint(host, before)
        host.done, host.files = before.done, before.files
        host.intakes, host.step = before.intakes, before.step
    for stream, mark in marks:
        if stream.name.lower() not in host.intakes:
            add_intake(host, stream, mark)
    if before is None:
        outputs.require_no_late_rows()
    pairs = list(zip(wanted, queries, strict=True))
    for fresh in (False, True):
        for definition, query in pairs:
            if fresh != _goes_on(before, definition, query):
                host.adopt(definition, query.running)
        host.open_sinks(fresh=fresh)
    host.compact()
    return Resumption()


def _goes_on(before: Host | None, definition: QueryDefinition, query: Wanted) -> bool:
    """Whether the earlier run wrote answers of this very query to this very place."""
    hosted = None if before is None else before.queries.get(query.name.lower())
    return hosted is not None and hosted.running is query.running and hosted.definition.writes_like(definition)


def _require_same_checkpoint(host: Host, before: Host) -> None:
    """What a run has read, only its own checkpoint knows: with another one the same rows would be read again."""
    if before.done and (before.checkpoint is not None or host.checkpoint is not None):
        had = "no checkpoint" if before.checkpoint is None else f"the checkpoint {before.checkpoint.path}"
        has = "no checkpoint" if host.checkpoint is None else f"the empty checkpoint {host.checkpoint.path}"
        raise StateError(
            f"an earlier run of this database has read its streams with {had}, and this one would begin with {has} "
            "and read them again; go on with the same, or start with a new windrow.connect()"
        )
