"""Where the answers of a query go: parquet, csv, json, console, memory, or any batch writer of Spark.

>>> sink_spec("CSV", {"path": "out/busy"})
SinkSpec(format='csv', options={'path': 'out/busy'})
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from windrow.errors import SinkError
from windrow.pipeline.sink import MemorySink, NoSink, Sink, SinkSpec
from windrow.pipeline.sink_console import DEFAULT_ROWS, ConsoleSink
from windrow.pipeline.sink_directory import local_path, move_aside, safe_name
from windrow.pipeline.sink_files import FILE_FORMATS, FileSink, check_compression

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Sink", "SinkSpec", "open_sink", "output_spec", "set_aside", "sink_spec"]

SparkOrMaker: TypeAlias = "SparkSession | Callable[[], SparkSession] | None"

OWN_OPTIONS = {
    "parquet": ("path", "compression"),
    "csv": ("path",),
    "json": ("path",),
    "console": ("rows",),
    "memory": (),
    "noop": (),
}
"""The formats that need no Spark, and the options that each takes."""


def sink_spec(format: str, options: Mapping[str, str]) -> SinkSpec:
    """What `INTO format OPTIONS (…)` says; raises SinkError for what no sink can do."""
    name = format.strip().lower()
    if not name:
        raise SinkError(f"INTO needs a format: {', '.join(OWN_OPTIONS)}, or a batch writer of Spark")
    if name not in OWN_OPTIONS:
        return SinkSpec(name, dict(options))
    known = OWN_OPTIONS[name]
    for option in options:
        if option.lower() not in known:
            raise SinkError(f"{name} has no option {option}; its options: {', '.join(known) or 'none'}")
    spec = SinkSpec(name, {option.lower(): value for option, value in options.items()})
    if name in FILE_FORMATS:
        _own_directory(spec)
        check_compression(spec)
    if name == "console":
        _console_rows(spec)
    return spec


def output_spec(directory: Path, query: str, format: str) -> SinkSpec:
    """What `--output DIR --format F` says for one query: files in a directory of DIR that is named like the query.

    >>> output_spec(Path("out"), "busy/hosts", "csv").options
    {'path': 'out/busy%2Fhosts'}
    """
    name = format.strip().lower()
    if name not in FILE_FORMATS:
        raise SinkError(
            f"--format is one of {', '.join(FILE_FORMATS)}, not {format!r}; for others use INTO in the script"
        )
    return sink_spec(name, {"path": str(directory / safe_name(query))})


def open_sink(spec: SinkSpec, query: str, schema: pa.Schema, spark: SparkOrMaker = None, *, fresh: bool = True) -> Sink:
    """Open the sink of a query. `fresh`: the run starts afresh, so a directory that has files already is refused."""
    if spec.format in FILE_FORMATS:
        return FileSink(spec, _own_directory(spec), query, schema, fresh=fresh)
    if spec.format == "console":
        return ConsoleSink(query, _console_rows(spec))
    if spec.format == "memory":
        return MemorySink()
    if spec.format == "noop":
        return NoSink()
    from windrow.pipeline.sink_spark import SparkSink, StagedSink, staged_path

    if spark is None:
        raise SinkError(f"query {query} writes {spec.format}, which needs Spark, but this run has no Spark session")
    session = spark if callable(spark) else lambda: spark
    path = staged_path(spec)
    if path is not None:
        return StagedSink(spec, path, query, session, fresh=fresh)
    return SparkSink(spec, query, session)


def set_aside(spec: SinkSpec, query: str, label: str) -> Path | None:
    """Move the answers of an earlier query away, because a changed query starts afresh; None if there are none."""
    if spec.format in FILE_FORMATS:
        return move_aside(_own_directory(spec), query, label)
    if spec.format in OWN_OPTIONS:
        return None
    from windrow.pipeline.sink_spark import staged_path

    path = staged_path(spec)
    return None if path is None else move_aside(path, query, label)


def _own_directory(spec: SinkSpec) -> Path:
    given = (spec.option("path") or "").strip()
    if not given:
        raise SinkError(f"{spec.format} needs the option path: the directory for the answers")
    path = local_path(given)
    if path is None:
        raise SinkError(
            f"{spec.format} answers are written to a directory of this machine, but path is {given}; use a mounted "
            "directory, or another format that Spark writes there (orc, delta, …)"
        )
    return path


def _console_rows(spec: SinkSpec) -> int:
    given = spec.option("rows")
    if given is None:
        return DEFAULT_ROWS
    if not given.strip().isdecimal() or int(given) < 1:
        raise SinkError(f"the option rows of console is a whole number from 1 on, not {given!r}")
    return int(given)
