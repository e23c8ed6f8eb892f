"""From a database to a run: open the sources, recover what a checkpoint holds, open the sinks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import RLock

from pyspark.sql import DataFrame, SparkSession

from windrow.engine import Engine
from windrow.errors import StateError
from windrow.language.catalog import Catalog, Stream
from windrow.pipeline.checkpoint import Checkpoint
from windrow.pipeline.definitions import QueryDefinition
from windrow.pipeline.host import Host
from windrow.pipeline.outputs import Outputs
from windrow.pipeline.reconcile import Resumption, add_intake, reconcile
from windrow.pipeline.run import Run
from windrow.pipeline.sinks import SinkSpec
from windrow.pipeline.sources import fingerprint, open_source
from windrow.progress import OnProgress, Progress
from windrow.running import RunningQuery


@dataclass(frozen=True)
class Wanted:
    """A query of the database: its name and text, INTO, and its state in the database's own engine."""

    name: str
    text: str
    into: SinkSpec | None
    running: RunningQuery


@dataclass(frozen=True)
class Request:
    """What the user asks of a run."""

    checkpoint: str | Path | None = None
    output: str | Path | None = None
    format: str = "parquet"
    trigger: str | None = None
    progress: OnProgress | None = None


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
    sources = [open_source(spark, stream, frames.get(stream.name.lower())) for stream in with_source]
    marks = [(stream, fingerprint(stream) if stream in with_source else "") for stream in streams]
    output = None if request.output is None else Path(request.output)
    checkpoint = None if request.checkpoint is None else Checkpoint.open(request.checkpoint)
    try:
        outputs = Outputs(spark, output, request.format, None if checkpoint is None else checkpoint.path)
        wanted = [QueryDefinition(one.name, one.text, outputs.resolve(one.name, one.into)) for one in queries]
        if checkpoint is not None and checkpoint.snapshot is not None:
            report(Progress("recovering"))
            host = Host(Engine(engine.synopsis), Catalog(), checkpoint, outputs)
            host.recover({definition.name.lower(): definition for definition in wanted})
            found = reconcile(host, marks, wanted)
        else:
            host, found = _begin(engine, catalog, checkpoint, outputs, earlier, marks, queries, wanted)
        offsets = scratch if checkpoint is None else checkpoint.path
        run = Run(
            spark, sources, host, turn, offsets,
            trigger=request.trigger, progress=request.progress, after_step=after_step,
        )  # fmt: skip
    except BaseException:
        if checkpoint is not None:
            checkpoint.close()
        raise
    return Launched(run, host, found, outputs)


def _begin(
    engine: Engine,
    catalog: Catalog,
    checkpoint: Checkpoint | None,
    outputs: Outputs,
    earlier: Host | None,
    marks: Sequence[tuple[Stream, str]],
    queries: Sequence[Wanted],
    wanted: Sequence[QueryDefinition],
) -> tuple[Host, Resumption]:
    """A host for the database's own engine; without a checkpoint it goes on where an earlier run of it was stopped."""
    host = Host(engine, catalog, checkpoint, outputs)
    goes_on = earlier is not None and checkpoint is None and earlier.engine is engine
    if goes_on and earlier is not None:
        host.done, host.files = earlier.done, earlier.files
        host.intakes, host.step = earlier.intakes, earlier.step
    for definition, query in zip(wanted, queries, strict=True):
        host.adopt(definition, query.running)
    for stream, mark in marks:
        if stream.name.lower() not in host.intakes:
            add_intake(host, stream, mark)
    if not goes_on:
        outputs.require_no_late_rows()
    host.open_sinks(fresh=not goes_on)
    host.compact()
    return host, Resumption()
