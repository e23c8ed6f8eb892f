"""Where the answers of a run go: what a query says with INTO, else what the run says with --output and --format."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from windrow.errors import SinkError
from windrow.language.catalog import Stream
from windrow.pipeline.definitions import QueryDefinition
from windrow.pipeline.sink_spark import require_writer
from windrow.pipeline.sinks import OWN_OPTIONS, Sink, SinkSpec, open_sink, output_spec, sink_spec

LATE = "_late"
"""The folder of late rows, beside the folders of the queries."""


class Outputs:
    """Resolves and opens the sinks of one run."""

    def __init__(self, spark: SparkSession, output: Path | None, format_: str, keep_late: Path | None) -> None:
        self._spark = spark
        self._output = output
        self._format = format_
        late = output if output is not None else keep_late
        self._late = None if late is None else late / LATE

    def resolve(self, name: str, into: SinkSpec | None) -> SinkSpec | None:
        """The sink of a query; None: its answers stay with its handle."""
        if into is not None:
            return None if into.format == "memory" else into
        if self._output is not None:
            return output_spec(self._output, name, self._format)
        return sink_spec(self._format, {}) if self._format in ("console", "noop") else None

    def open(self, definition: QueryDefinition, schema: pa.Schema, *, fresh: bool) -> Sink:
        """The sink of a query that has one."""
        assert definition.sink is not None
        if definition.sink.format not in OWN_OPTIONS:
            require_writer(self._spark, definition.sink.format, definition.name)
        return open_sink(definition.sink, definition.name, schema, self._spark, fresh=fresh)

    def open_late(self, stream: Stream) -> Sink | None:
        """A folder of Parquet files; None when the run has no folder at all."""
        if self._late is None:
            return None
        return open_sink(
            output_spec(self._late, stream.name, "parquet"),
            f"late rows of {stream.name}",
            stream.schema,
            self._spark,
            fresh=False,
        )

    def require_no_late_rows(self) -> None:
        """A run that starts afresh must not mix its late rows with those of another."""
        if self._late is not None and any(self._late.rglob("part-*")):
            raise SinkError(
                f"{self._late} already holds late rows of another run; choose another directory, or remove it"
            )
