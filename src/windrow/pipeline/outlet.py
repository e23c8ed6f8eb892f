"""Where answers and late rows leave the engine: they wait in it until a step of the run hands them to the sinks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from windrow.engine import Engine
from windrow.errors import SinkError
from windrow.language.catalog import Stream
from windrow.parallel import each
from windrow.pipeline.definitions import QueryDefinition
from windrow.pipeline.sinks import Sink
from windrow.running import Registered


@dataclass(eq=False)
class Hosted:
    """A query of the run; without a sink its answers stay with its handle."""

    definition: QueryDefinition
    running: Registered
    sink: Sink | None = None
    location: str | None = None
    """Where its answers go, for people."""

    def write(self, step: int) -> None:
        """Hand its answers to its sink, if it has one."""
        if self.sink is not None:
            self.sink.write(step, pa.Table.from_batches(self.running.batches, self.running.schema))
            self.running.shown()

    def redirect(self, definition: QueryDefinition) -> None:
        """Its answers go to another sink from now on, which is to be opened."""
        self.close()
        self.definition, self.location = definition, None

    def close(self) -> None:
        """Close its sink."""
        if self.sink is not None:
            self.sink.close()
            self.sink = None


class OpensSinks(Protocol):
    """Opens sinks; `fresh` ones must not find answers of somebody else."""

    def open(self, definition: QueryDefinition, schema: pa.Schema, *, fresh: bool) -> Sink:
        """The sink of a query that has one."""

    def open_late(self, stream: Stream) -> Sink | None:
        """Where late rows go; None: they stay in memory."""


class Outlet:
    """The open sinks of a run: those of its `queries`, which come and go, and those of late rows."""

    def __init__(
        self, engine: Engine, queries: Mapping[str, Hosted], outputs: OpensSinks, *, checkpointed: bool
    ) -> None:
        self._engine = engine
        self._queries = queries
        self._outputs = outputs
        self._checkpointed = checkpointed
        self._late: dict[str, Sink] = {}

    def open(self, *, fresh: bool) -> None:
        """Open the sinks of all queries that have none open yet."""
        for hosted in self._queries.values():
            if hosted.sink is None and hosted.definition.sink is not None:
                hosted.sink = self._outputs.open(hosted.definition, hosted.running.schema, fresh=fresh)
                hosted.location = hosted.sink.location

    @property
    def waiting(self) -> int:
        """Answer rows and late rows that no sink has yet; a snapshot has none of them."""
        with_sink = (hosted for hosted in self._queries.values() if hosted.sink is not None)
        answers = sum(batch.num_rows for hosted in with_sink for batch in hosted.running.batches)
        late = sum(rows.num_rows for running in self._engine.streams.values() for rows in running.late)
        return int(answers + late)

    def write(self, step: int) -> None:
        """Hand all that waits to the sinks, which write a step once, however often they are asked to."""
        full = [hosted for hosted in self._queries.values() if hosted.sink is not None and hosted.running.batches]
        try:
            for together in (True, False):
                some = [hosted for hosted in full if hosted.sink is not None and hosted.sink.independent == together]
                each(lambda hosted: hosted.write(step), some, worthwhile=together)
        except SinkError as error:
            if self._checkpointed:
                raise SinkError(f"{error}: the checkpoint has the answers") from error
            raise SinkError(
                f"{error}, with empty output directories: this run has no checkpoint, so it begins at the beginning"
            ) from error
        for running in self._engine.streams.values():
            if running.late:
                self._write_late(step, running.stream, pa.concat_tables(running.late))

    def _write_late(self, step: int, stream: Stream, rows: pa.Table) -> None:
        name = stream.name.lower()
        if name not in self._late:
            sink = self._outputs.open_late(stream)
            if sink is None:
                return  # nowhere to write: they stay in memory, where db.late finds them
            self._late[name] = sink
        self._late[name].write(step, rows)
        self._engine.streams[name].late.clear()

    @property
    def late_outputs(self) -> dict[str, str]:
        """Where late rows went, by stream."""
        return {name: sink.location for name, sink in self._late.items()}

    def close(self) -> None:
        """Close all sinks."""
        for hosted in self._queries.values():
            hosted.close()
        for sink in self._late.values():
            sink.close()
