"""The host: an engine whose every step is durable before it takes effect. It knows nothing of Spark.

    sliced batch ─► journal ─► engine ─► answers ─► sinks          now and then: sinks ─► snapshot, journal starts anew

The engine is deterministic, so a journal replayed on the last snapshot gives the same state and the same answers. The
journal also says at which steps answers were handed to the sinks, and a sink writes a step once, however often it is
asked to. So a run that is killed at any moment loses nothing and writes nothing twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any

import pyarrow as pa

from windrow.engine import Engine
from windrow.errors import CheckpointError, QueryError
from windrow.job import require_importable
from windrow.language.binder import bind
from windrow.language.catalog import Catalog, Relation
from windrow.language.records import relation_from_json, relation_to_json
from windrow.live import LiveSchedule, StreamSchedule, Work
from windrow.pipeline.checkpoint import Checkpoint
from windrow.pipeline.definitions import QueryDefinition
from windrow.pipeline.host_record import HostRecord, Intake
from windrow.pipeline.jobs import Jobs
from windrow.pipeline.outlet import Hosted, OpensSinks, Outlet
from windrow.pipeline.shard_link import Posts, ShardLink
from windrow.pipeline.sink import NoSink
from windrow.plan.build import build
from windrow.plan.periodic import in_panes
from windrow.running import Registered
from windrow.scheduling.execution import Execution
from windrow.shards.shard import Answer
from windrow.sliced import Sliced, unpack
from windrow.windows.spec import FARTHEST_TICK


class Host:
    """One engine, its journal and its sinks. All methods are called in turns, under the database's lock."""

    def __init__(
        self,
        engine: Engine,
        catalog: Catalog,
        checkpoint: Checkpoint | None,
        outputs: OpensSinks,
        posts: Posts | None = None,
    ) -> None:
        self.engine = engine
        self.catalog = catalog
        self.checkpoint = checkpoint
        self.queries: dict[str, Hosted] = {}
        self.outlet = Outlet(engine, self.queries, outputs, checkpointed=checkpoint is not None)
        self.jobs = Jobs(engine)
        self._shards = ShardLink(engine, self.queries, posts)
        self.done: dict[str, int] = {}
        """The last micro-batch of each stream that is taken in."""
        self.files: dict[str, int] = {}
        """How many files of each stream are read, where that is known."""
        self.intakes: dict[str, Intake] = {}
        self.finished = False
        self.step = 0
        self.phases: dict[str, float] = {}
        self._recovering = False
        self._current: Mapping[str, QueryDefinition] = {}
        self.schedule: LiveSchedule | None = None
        """In a live run: when queries are answered. Without it, as soon as they are due."""
        self._chosen: list[tuple[StreamSchedule, Work, Execution]] = []
        """What the schedule wants answered by the step that is being committed."""

    # ---- what is registered ---------------------------------------------------------------------------------------

    def adopt(self, definition: QueryDefinition, running: Registered) -> None:
        """A query that is in the engine already."""
        self.queries[definition.name.lower()] = Hosted(definition, running)

    def open_sinks(self, *, fresh: bool = True) -> None:
        """Open the sinks of all queries that have none open yet; a journal that is replayed has opened them before."""
        self.outlet.open(fresh=fresh and not self._recovering)

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
        left_out = self.jobs.derived(stream) if derived is None else list(derived)
        event = {"kind": "batch", "stream": stream, "batch": batch, "derived": left_out, "flush": flush}
        self._commit(event | {"scheduled": self.schedule is not None}, table, sliced)
        if self.schedule is not None:
            self.schedule.arrived(self.engine.streams[stream.lower()])
        return sliced

    def work(self, seconds: float) -> bool:
        """Answer some of what the schedule says is due, for about so long; False when there was nothing."""
        self._chosen = [] if self.schedule is None else self.schedule.some(seconds)
        if not self._chosen:
            return False
        work = [[one.stream, one.now, one.queries] for _, one, _ in self._chosen]
        self._commit({"kind": "execute", "work": work})
        return True

    def hurry(self) -> None:
        """Of what the schedule is behind with, answer the newest only."""
        if self.schedule is not None:
            self.schedule.hurry()

    def _execute(self, work: Sequence[tuple[str, int, Sequence[str]]]) -> None:
        chosen, self._chosen = self._chosen, []
        for place, (stream, now, names) in enumerate(work):
            began = perf_counter()
            self._answering(partial(self.engine.execute, stream, now, names))
            if self.schedule is not None and chosen:  # else the journal is replayed
                self.schedule.done(chosen[place], perf_counter() - began)

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
                self.register(self._with_secrets(QueryDefinition.from_json(event["query"])))
                self.open_sinks()
            case "relation":
                assert table is not None
                self.engine.flows.load_relation(self._declared(relation_from_json(event["relation"])), table)
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
                self._shards.stop(event["name"], event["why"])
        if event.get("flush"):
            began = perf_counter()
            self.outlet.write(step)
            self.spend("sinks", began)
        if event["kind"] == "drop":
            self.forget(event["name"])
        self._shards.post()

    def _absorb(self, event: Mapping[str, Any], table: pa.Table | None, sliced: Sliced | None) -> None:
        stream = event["stream"]
        if sliced is None:
            assert table is not None
            sliced = unpack(table)
        job = self.jobs.of(stream, event["derived"])
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

    def _with_secrets(self, definition: QueryDefinition) -> QueryDefinition:
        return definition.with_secrets(self._current.get(definition.name.lower()))

    def _plan(self, definition: QueryDefinition) -> Callable[[], Registered]:
        bound = bind(definition.text, self.catalog)
        plan = build(bound)
        periodic = in_panes(bound, plan)
        if periodic is not None:
            require_importable(periodic)
        return lambda: self.engine.register(definition.name, bound, plan, definition.strategy)

    def _declared(self, relation: Relation) -> Relation:
        """What the catalog has by the name of this relation; if there is nothing, this one is declared."""
        known = self.catalog.get(relation.name)
        if isinstance(known, Relation):
            return known
        self.catalog.add(relation)
        return relation

    def forget(self, name: str) -> None:
        """Take a query out of the engine; what it had to say is said."""
        hosted = self.queries.pop(name.lower())
        self.engine.drop_query(hosted.running)
        hosted.close()

    def deliver(self, batch: int, answers: list[Answer]) -> None:
        """What the shards said in a micro-batch of theirs; the same one twice is written once."""
        began = perf_counter()
        self._shards.deliver(batch, answers, self._note_stopped)
        self.spend("shards", began)

    def _note_stopped(self, name: str, why: str) -> None:
        self._commit({"kind": "stopped", "name": name, "why": why})

    # ---- snapshots ------------------------------------------------------------------------------------------------

    def compact(self) -> None:
        """Write a snapshot, from which the journal starts anew; all answers are with the sinks."""
        if self.checkpoint is not None:
            began = perf_counter()
            record, blobs = self._record()
            self.checkpoint.compact(record.to_json(), blobs)
            self.spend("snapshot", began)
        self._shards.post()

    def _record(self) -> tuple[HostRecord, dict[str, bytes]]:
        state, blobs = self.engine.snapshot()
        in_order = [query.name.lower() for query in self.engine.running]
        stopped = [name for name in self.queries if name not in in_order]
        hosted = [self.queries[name] for name in (*in_order, *stopped)]
        record = HostRecord(
            [running.stream for running in self.engine.streams.values()],
            [one for one in self.catalog if isinstance(one, Relation)],
            [(one.definition, None if one.running.error is None else str(one.running.error)) for one in hosted],
            self.done,
            self.files,
            self.intakes,
            self.finished,
            state,
        )
        return record, blobs

    def recover(self, current: Mapping[str, QueryDefinition]) -> None:
        """Become what the checkpoint holds: its last snapshot, and the journal since.

        `current` is what today's script says of the queries; it has the secrets that a checkpoint does not keep.
        """
        assert self.checkpoint is not None
        self._current = current
        found = self.checkpoint.snapshot
        if found is None:
            raise CheckpointError(f"{self.checkpoint.path} has no snapshot; start afresh with another directory")
        self._restore(HostRecord.from_json(found.meta, self.checkpoint.path), found.blobs)
        self.step = found.step
        self._recovering = True
        self.open_sinks()
        self._shards.post()
        for entry in self.checkpoint.entries():
            self._apply(entry.step, entry.meta, entry.table)
            self.step = entry.step
        self._recovering = False

    def _restore(self, record: HostRecord, blobs: Mapping[str, bytes]) -> None:
        self._shards.reopen(record.engine)
        for stream in record.streams:
            self.catalog.add(stream)
            self.engine.add_stream(stream)
        for relation in record.relations:
            self._declared(relation)
        halted = []
        for definition, reason in record.queries:
            running = self.register(self._with_secrets(definition))
            if reason is not None:
                halted.append((running, reason))
        for running, reason in halted:
            self.engine.drop_query(running)
            running.dropped, running.error = False, QueryError(reason)
        self.engine.restore(record.engine, blobs)
        self.done, self.files, self.intakes = record.done, record.files, record.intakes
        self.finished = record.finished

    def close(self) -> None:
        """Close the sinks and the checkpoint."""
        self._shards.close()
        self.outlet.close()
        if self.checkpoint is not None:
            self.checkpoint.close()

    def spend(self, phase: str, began: float) -> None:
        """Time since `began` goes to a phase of the run."""
        self.phases[phase] = self.phases.get(phase, 0.0) + perf_counter() - began
