"""The host: an engine whose every step is durable before it takes effect. It knows nothing of Spark.

    sliced batch ─► journal ─► engine ─► answers ─► sinks          now and then: sinks ─► snapshot, journal starts anew

The engine is deterministic, so a journal replayed on the last snapshot gives the same state and the same answers. The
journal also says at which steps answers were handed to the sinks, and a sink writes a step once, however often it is
asked to. So a run that is killed at any moment loses nothing and writes nothing twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, Protocol

import pyarrow as pa

from windrow.engine import Engine
from windrow.errors import CheckpointError, QueryError, SinkError
from windrow.flowing import FlowQuery
from windrow.job import Job, require_importable
from windrow.language.binder import bind
from windrow.language.catalog import Catalog, Relation, Stream
from windrow.language.records import relation_from_json, relation_to_json, stream_from_json, stream_to_json
from windrow.live import LiveSchedule, StreamSchedule, Work
from windrow.parallel import each
from windrow.pipeline.checkpoint import Checkpoint
from windrow.pipeline.definitions import QueryDefinition
from windrow.pipeline.sink import NoSink
from windrow.pipeline.sinks import Sink
from windrow.plan.build import build
from windrow.plan.periodic import in_panes
from windrow.running import Registered
from windrow.scheduling.execution import Execution
from windrow.shards.delivery import deliveries
from windrow.shards.outbox import Outbox
from windrow.shards.remote import RemoteFlow
from windrow.shards.shard import Answer
from windrow.sliced import Sliced, unpack
from windrow.windows.spec import FARTHEST_TICK

VERSION = 2


@dataclass(eq=False)
class Hosted:
    """A query of the run; without a sink its answers stay with its handle."""

    definition: QueryDefinition
    running: Registered
    sink: Sink | None = None
    location: str | None = None
    """Where its answers go, for people."""


class Outputs(Protocol):
    """Opens sinks; `fresh` ones must not find answers of somebody else."""

    def open(self, definition: QueryDefinition, schema: pa.Schema, *, fresh: bool) -> Sink:
        """The sink of a query that has one."""

    def open_late(self, stream: Stream) -> Sink | None:
        """Where late rows go; None: they stay in memory."""


class Posts(Protocol):
    """The way to the shards of a run."""

    def put(self, rows: pa.Table) -> None:
        """Hand a post over, once, however often it is asked for."""

    def note_taken(self, post: int) -> None:
        """The answers to all posts up to this one are where they belong."""


@dataclass(frozen=True)
class Intake:
    """Where a stream comes from: what the source was, and the folder of Spark's offsets."""

    fingerprint: str
    folder: str


class Host:
    """One engine, its journal and its sinks. All methods are called in turns, under the database's lock."""

    def __init__(
        self,
        engine: Engine,
        catalog: Catalog,
        checkpoint: Checkpoint | None,
        outputs: Outputs,
        posts: Posts | None = None,
    ) -> None:
        self.engine = engine
        self._posts = posts
        self.catalog = catalog
        self.checkpoint = checkpoint
        self._outputs = outputs
        self.queries: dict[str, Hosted] = {}
        self.done: dict[str, int] = {}
        """The last micro-batch of each stream that is taken in."""
        self.files: dict[str, int] = {}
        """How many files of each stream are read, where that is known."""
        self.intakes: dict[str, Intake] = {}
        self.finished = False
        self.step = 0
        self.phases: dict[str, float] = {}
        self._late: dict[str, Sink] = {}
        self._jobs: dict[str, tuple[object, Job]] = {}
        self._recovering = False
        self._current: Mapping[str, QueryDefinition] = {}
        self.schedule: LiveSchedule | None = None
        """In a live run: when queries are answered. Without it, as soon as they are due."""
        self._executing: list[tuple[StreamSchedule, Work, Execution]] = []
        self._run_seconds = 1e-3
        """What one run of a query takes, as far as is known."""

    # ---- what is registered ---------------------------------------------------------------------------------------

    def adopt(self, definition: QueryDefinition, running: Registered) -> None:
        """A query that is in the engine already."""
        self.queries[definition.name.lower()] = Hosted(definition, running)

    def open_sinks(self, *, fresh: bool = True) -> None:
        """Open the sinks of all queries that have none open yet."""
        for hosted in self.queries.values():
            if hosted.sink is None and hosted.definition.sink is not None:
                hosted.sink = self._outputs.open(
                    hosted.definition, hosted.running.schema, fresh=fresh and not self._recovering
                )
                hosted.location = hosted.sink.location

    def job(self, stream: str, derived: Sequence[int] | None = None) -> Job:
        """What workers must do for this stream; made anew when its queries or panes have changed.

        `derived` are the numbers of the slices that are derived from others; by default what is cheapest now.
        """
        running = self.engine.streams[stream.lower()]
        if derived is None:
            derived = self.derived(stream)
        panes = tuple(
            (id(part), part.begin, part.group.grid, tuple(map(id, part.members)))
            for part in running.slices.values()
            if part.group is not None
        )
        kept = [None if one is None else one.sql("cql") for one in self.engine.flows.kept_rows(stream)]
        columns = self.engine.flows.kept_columns(running.stream)
        version = panes, tuple(derived), running.numbering is not None, columns, kept
        known = self._jobs.get(stream)
        if known is None or known[0] != version:
            parts = list(running.slices.values())
            known = self._jobs[stream] = version, self.engine.job(stream, [parts[number] for number in derived])
        return known[1]

    def derived(self, stream: str) -> list[int]:
        """The numbers of the slices that workers need not slice now."""
        chosen = set(self.engine.derived(stream))
        slices = self.engine.streams[stream.lower()].slices.values()
        return [number for number, part in enumerate(slices) if part in chosen]

    def watermark(self, stream: str) -> int | None:
        """Rows at or before this are late."""
        return self.engine.streams[stream.lower()].watermark.value

    # ---- events: journaled, then applied --------------------------------------------------------------------------

    def take(
        self, stream: str, batch: int, table: pa.Table, *, flush: bool, derived: Sequence[int] | None = None
    ) -> Sliced:
        """One micro-batch, as the workers have sliced it; an InputError leaves everything as it was.

        `derived` are the numbers of the slices that they have left out.
        """
        sliced = unpack(table)
        if sliced.oldest is not None and sliced.newest is not None:
            self.engine.check(stream, sliced.oldest, sliced.newest)
        flush = flush or self._worth_compacting
        # The workers' partials are those of this job, whatever will be cheapest when the journal is replayed.
        left_out = self.derived(stream) if derived is None else list(derived)
        event = {"kind": "batch", "stream": stream, "batch": batch, "derived": left_out, "flush": flush}
        self._commit(event | {"scheduled": self.schedule is not None}, table, sliced)
        if self.schedule is not None:
            self.schedule.arrived(self.engine.streams[stream.lower()])
        return sliced

    def work(self, seconds: float) -> bool:
        """Answer some of what the schedule says is due, for about so long; False when there was nothing."""
        if self.schedule is None:
            return False
        self._executing = self.schedule.some(max(1, int(seconds / self._run_seconds)))
        if not self._executing:
            return False
        work = [[one.stream, one.now, one.queries] for _, one, _ in self._executing]
        self._commit({"kind": "execute", "work": work})
        return True

    def hurry(self) -> None:
        """Of what the schedule is behind with, answer the newest only."""
        if self.schedule is not None:
            self.schedule.hurry()

    def _execute(self, work: Sequence[tuple[str, int, Sequence[str]]]) -> None:
        executing, self._executing = self._executing, []
        for place, (stream, now, names) in enumerate(work):
            began = perf_counter()
            self._answering(partial(self.engine.execute, stream, now, names))
            if executing:  # else the journal is replayed
                spent = perf_counter() - began
                executing[place][0].done(executing[place][2], spent)
                self._run_seconds += (spent / max(1, len(names)) - self._run_seconds) / 16

    def add(self, definition: QueryDefinition) -> Registered:
        """A query is registered while the run goes on."""
        self._plan(definition)  # whatever is wrong with it is said before it is written down
        self._current = {**self._current, definition.name.lower(): definition}
        self._commit({"kind": "query", "query": definition.to_json()})
        return self.queries[definition.name.lower()].running

    def load(self, relation: Relation, rows: pa.Table) -> None:
        """The first rows of a relation that nobody has read before the run."""
        self._commit({"kind": "relation", "relation": relation_to_json(relation)}, rows)

    def update(self, relation: Relation, came: Any, gone: Any, time: int | None) -> int | None:
        """Rows of a relation come and go; gives the instant. An InputError leaves everything as it was."""
        when, added, removed = self.engine.flows.check_update(relation, came, gone, time)
        event = {"kind": "update", "relation": relation.name, "time": when, "added": added.num_rows}
        self._commit(event, pa.Table.from_batches([added, removed], relation.schema))
        return None if when == -FARTHEST_TICK else when

    def drop(self, name: str) -> None:
        """A query is dropped; its answers so far are written first."""
        self._commit({"kind": "drop", "name": name, "flush": True})

    def finish(self, streams: Iterable[str]) -> None:
        """The end of these streams."""
        self._commit({"kind": "finish", "streams": list(streams), "flush": True})

    def flush(self) -> None:
        """Hand all answers to the sinks."""
        self._commit({"kind": "flush", "flush": True})

    @property
    def _worth_compacting(self) -> bool:
        return self.checkpoint is not None and self.checkpoint.worth_compacting

    def _commit(self, event: Mapping[str, Any], table: pa.Table | None = None, sliced: Sliced | None = None) -> None:
        compact = self._worth_compacting
        began = perf_counter()
        if self.checkpoint is not None:
            self.step = self.checkpoint.append(event, table)
        else:
            self.step += 1
        self.spend("journal", began)
        self._apply(self.step, event, table, sliced)
        if compact:
            self.compact()

    def _apply(
        self, step: int, event: Mapping[str, Any], table: pa.Table | None = None, sliced: Sliced | None = None
    ) -> None:
        """What an event does, now or when the journal is replayed."""
        match event["kind"]:
            case "batch":
                self._absorb(event, table, sliced)
            case "execute":
                self._execute(event["work"])
            case "query":
                self.register(self._definition(event["query"]))
                self.open_sinks()
            case "relation":
                assert table is not None
                self.engine.flows.load_relation(self._relation(event["relation"]), table)
            case "update":
                assert table is not None
                relation = self.catalog.get(event["relation"])
                assert isinstance(relation, Relation)
                came, gone = table.slice(0, event["added"]), table.slice(event["added"])
                self.engine.flows.update(relation, came, gone, event["time"])
            case "finish":
                self._answering(lambda: self.engine.finish(event["streams"]))
                self.finished = all(running.finished for running in self.engine.streams.values())
            case "stopped":
                self._stop(event["name"], event["why"])
        if event.get("flush"):
            self._write_out(step)
        if event["kind"] == "drop":
            self.forget(event["name"])
        self.post()

    def _absorb(self, event: Mapping[str, Any], table: pa.Table | None, sliced: Sliced | None) -> None:
        stream = event["stream"]
        if sliced is None:
            assert table is not None
            sliced = unpack(table)
        job = self.job(stream, event["derived"])
        scheduled = event.get("scheduled", False)
        self._answering(lambda: self.engine.absorb(stream, job, sliced, answer=not scheduled))
        if scheduled:
            self.engine.forget(stream)
        for hosted in self.queries.values():
            if isinstance(hosted.sink, NoSink):
                hosted.running.shown()  # no step to wait for: the next batch can have the memory
        self.done[stream] = event["batch"]
        self.files[stream] = self.files.get(stream, 0) + sliced.files

    def _answering(self, work: Callable[[], None]) -> None:
        """A query that cannot go on is stopped, with its error on its handle; the run goes on without it."""
        began = perf_counter()
        try:
            work()
        except QueryError:
            pass
        finally:
            self.spend("answers", began)

    def register(self, definition: QueryDefinition) -> Registered:
        """Put a query into the engine."""
        running = self._plan(definition)()
        self.adopt(definition, running)
        return running

    def _definition(self, record: Mapping[str, Any]) -> QueryDefinition:
        definition = QueryDefinition.from_json(record)
        return definition.with_secrets(self._current.get(definition.name.lower()))

    def _plan(self, definition: QueryDefinition) -> Callable[[], Registered]:
        bound = bind(definition.text, self.catalog)
        plan = build(bound)
        periodic = in_panes(bound, plan)
        if periodic is not None:
            require_importable(periodic)
        return lambda: self.engine.register(definition.name, bound, plan, definition.strategy)

    def _relation(self, record: Mapping[str, Any]) -> Relation:
        """A relation of the checkpoint or of the script; declared here if it is not."""
        relation = relation_from_json(record)
        known = self.catalog.get(relation.name)
        if isinstance(known, Relation):
            return known
        self.catalog.add(relation)
        return relation

    def redirect(self, definition: QueryDefinition) -> None:
        """Answers of a query go to another sink from now on."""
        hosted = self.queries[definition.name.lower()]
        if hosted.sink is not None:
            hosted.sink.close()
        hosted.definition, hosted.sink, hosted.location = definition, None, None

    def forget(self, name: str) -> None:
        """Take a query out of the engine; what it had to say is said."""
        hosted = self.queries.pop(name.lower())
        self.engine.drop_query(hosted.running)
        if hosted.sink is not None:
            hosted.sink.close()

    # ---- answers out ----------------------------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """Answer rows and late rows that no sink has yet; a snapshot has none of them."""
        with_sink = (hosted for hosted in self.queries.values() if hosted.sink is not None)
        answers = sum(batch.num_rows for hosted in with_sink for batch in hosted.running.batches)
        late = sum(rows.num_rows for running in self.engine.streams.values() for rows in running.late)
        return int(answers + late)

    def _write_out(self, step: int) -> None:
        began = perf_counter()
        full = [hosted for hosted in self.queries.values() if hosted.sink is not None and hosted.running.batches]
        try:
            for together in (True, False):
                some = [hosted for hosted in full if hosted.sink is not None and hosted.sink.independent == together]
                each(lambda hosted: self._write(step, hosted), some, worthwhile=together)
        except SinkError as error:
            if self.checkpoint is not None:
                raise SinkError(f"{error}: the checkpoint has the answers") from error
            raise SinkError(
                f"{error}, with empty output directories: this run has no checkpoint, so it begins at the beginning"
            ) from error
        for running in self.engine.streams.values():
            if running.late:
                self._write_late(step, running.stream, pa.concat_tables(running.late))
        self.spend("sinks", began)

    def _write(self, step: int, hosted: Hosted) -> None:
        assert hosted.sink is not None
        running = hosted.running
        hosted.sink.write(step, pa.Table.from_batches(running.batches, running.schema))
        running.shown()

    def _write_late(self, step: int, stream: Stream, rows: pa.Table) -> None:
        name = stream.name.lower()
        if name not in self._late:
            sink = self._outputs.open_late(stream)
            if sink is None:
                return  # nowhere to write: they stay in memory, where db.late finds them
            self._late[name] = sink
        self._late[name].write(step, rows)
        self.engine.streams[name].late.clear()

    @property
    def late_outputs(self) -> dict[str, str]:
        """Where late rows went, by stream."""
        return {name: sink.location for name, sink in self._late.items()}

    # ---- shards ---------------------------------------------------------------------------------------------------

    def post(self) -> None:
        """Tell the shards what there is to tell. It is in the journal or in a snapshot, and would be told again."""
        outbox = self.engine.flows.outbox
        rows = None if outbox is None or self._posts is None else outbox.take()
        if rows is not None and self._posts is not None:
            self._posts.put(rows)

    def deliver(self, batch: int, answers: list[Answer]) -> None:
        """What the shards said in a micro-batch of theirs; the same one twice is written once."""
        began = perf_counter()
        for name, delivery in deliveries(answers, self._remote).items():
            query = self.engine.flows.queries[name]
            assert isinstance(query.flow, RemoteFlow)
            if delivery.batch is not None:
                self._hand_out(batch, query, delivery.batch)
            if delivery.held is not None:
                query.flow.held = delivery.held
            if delivery.error is not None:
                self._commit({"kind": "stopped", "name": name, "why": delivery.error})
        if answers and self._posts is not None:
            self._posts.note_taken(max(one.post for one in answers))
        self.spend("shards", began)

    def _remote(self, name: str) -> RemoteFlow | None:
        query = self.engine.flows.queries.get(name)
        return query.flow if query is not None and isinstance(query.flow, RemoteFlow) else None

    def _hand_out(self, batch: int, query: FlowQuery, rows: pa.RecordBatch) -> None:
        query.due += 1
        query.add(rows)
        hosted = self.queries[query.name.lower()]
        if hosted.sink is not None:
            hosted.sink.write(batch + 1, pa.Table.from_batches(query.batches, query.schema))
            query.shown()

    def _stop(self, name: str, why: str) -> None:
        query = self.engine.flows.queries.get(name)
        if query is not None:
            self.engine.stop(query, QueryError(why))

    # ---- snapshots ------------------------------------------------------------------------------------------------

    def compact(self) -> None:
        """Write a snapshot, from which the journal starts anew; all answers are with the sinks."""
        if self.checkpoint is not None:
            self._compact(self.checkpoint)
        self.post()

    def _compact(self, checkpoint: Checkpoint) -> None:
        began = perf_counter()
        state, blobs = self.engine.snapshot()
        in_order = [query.name.lower() for query in self.engine.running]
        stopped = [name for name in self.queries if name not in in_order]
        meta = {
            "version": VERSION,
            "streams": [stream_to_json(stream.stream) for stream in self.engine.streams.values()],
            "relations": [relation_to_json(one) for one in self.catalog if isinstance(one, Relation)],
            "queries": [
                self.queries[name].definition.to_json() | {"stopped": _error_of(self.queries[name].running)}
                for name in (*in_order, *stopped)
            ],
            "done": self.done,
            "files": self.files,
            "intakes": {name: [intake.fingerprint, intake.folder] for name, intake in self.intakes.items()},
            "finished": self.finished,
            "engine": state,
        }
        checkpoint.compact(meta, blobs)
        self.spend("snapshot", began)

    def recover(self, current: Mapping[str, QueryDefinition]) -> None:
        """Become what the checkpoint holds: its last snapshot, and the journal since.

        `current` is what today's script says of the queries; it has the secrets that a checkpoint does not keep.
        """
        assert self.checkpoint is not None
        self._current = current
        found = self.checkpoint.snapshot
        if found is None:
            raise CheckpointError(f"{self.checkpoint.path} has no snapshot; start afresh with another directory")
        meta = found.meta
        if meta.get("version") != VERSION:
            raise CheckpointError(
                f"{self.checkpoint.path} was written by another version of Windrow (format {meta.get('version')}, "
                f"this one reads {VERSION}); start afresh with another directory"
            )
        self._reopen_outbox(meta["engine"])
        for record in meta["streams"]:
            stream = stream_from_json(record)
            self.catalog.add(stream)
            self.engine.add_stream(stream)
        for record in meta["relations"]:
            self._relation(record)
        halted = []
        for record in meta["queries"]:
            running = self.register(self._definition(record))
            if record["stopped"] is not None:
                halted.append((running, record["stopped"]))
        for running, reason in halted:
            self.engine.drop_query(running)
            running.dropped, running.error = False, QueryError(reason)
        self.engine.restore(meta["engine"], found.blobs)
        self.done, self.files = dict(meta["done"]), dict(meta["files"])
        self.intakes = {name: Intake(*intake) for name, intake in meta["intakes"].items()}
        self.finished, self.step = meta["finished"], found.step
        self._recovering = True
        self.open_sinks()
        self.post()
        for entry in self.checkpoint.entries():
            self._apply(entry.step, entry.meta, entry.table)
            self.step = entry.step
        self._recovering = False

    def _reopen_outbox(self, state: Mapping[str, Any]) -> None:
        """Let a recovered engine have as many shards as it had."""
        if "outbox" in state:
            outbox = self.engine.flows.outbox = Outbox(state["outbox"]["shards"])
            outbox.streams, outbox.open = set(state["outbox"]["streams"]), True

    def close(self) -> None:
        """Close the sinks and the checkpoint."""
        if self.engine.flows.outbox is not None:
            self.engine.flows.outbox.open = False
        for hosted in self.queries.values():
            if hosted.sink is not None:
                hosted.sink.close()
                hosted.sink = None
        for sink in self._late.values():
            sink.close()
        if self.checkpoint is not None:
            self.checkpoint.close()

    def spend(self, phase: str, began: float) -> None:
        """Time since `began` goes to a phase of the run."""
        self.phases[phase] = self.phases.get(phase, 0.0) + perf_counter() - began


def _error_of(running: Registered) -> str | None:
    return None if running.error is None else str(running.error)
