"""A declared stream → a Spark streaming DataFrame, and how its rows get to the Python workers.

A file without a declared column is an error on the arrow scan, and for local Parquet files on the row path
(`batch_files`). It is NULLs, as Spark has it, in json, orc and avro, in Parquet files elsewhere that only Spark can
open, and where the user asked for it with the options select or mergeSchema.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from windrow.errors import InputError, SetupError
from windrow.language import types
from windrow.language.catalog import Relation, Stream, stream_from_schema
from windrow.pipeline import scan
from windrow.pipeline.declared import NEVER_END, Declared
from windrow.pipeline.reader import BINARY_FILE, Reader, in_utc
from windrow.pipeline.scan_choice import chosen_scan
from windrow.pipeline.spark_types import declared_columns, from_spark


@dataclass(frozen=True)
class Source:
    """A stream that is ready to be read."""

    stream: Stream
    frame: DataFrame
    """The declared columns, or, for the arrow scan, the single column `path`."""
    scan: str
    """arrow or rows."""
    why: str
    """For EXPLAIN: which scan, and why."""
    bounded: bool
    """False when the source never ends by itself."""
    files: int | None = None
    """How many files it had when it was opened; None when it is no file source."""


def open_source(spark: SparkSession, stream: Stream, given: DataFrame | None = None) -> Source:
    """The stream's source, checked against its declaration; `given` is the user's own DataFrame for it."""
    if given is not None:
        with in_utc(spark):
            frame = declared_columns(given, stream.columns, f"stream {stream.name}", "cast it in the DataFrame")
        return Source(stream, frame, "rows", "row path: the rows come from a DataFrame", _ends(given))
    declared = Declared.of(stream)
    source = Reader(spark, declared)
    with in_utc(spark), source.explained():
        files = source.files()
        way, why = chosen_scan(stream, declared, files)
        if way == "arrow":
            reader = spark.readStream.format("binaryFile").schema(BINARY_FILE).options(**declared.paced())
            frame = reader.load(files.stream_path if files else None).select("path")
        else:
            frame = source.frame(files, streaming=True)
    return Source(stream, frame, way, why, declared.format not in NEVER_END, None if files is None else files.count)


def stream_from_frame(
    name: str, frame: DataFrame, *, time: str, sequence: str | None = None, lateness: int | str | timedelta = 0
) -> Stream:
    """Declare a stream with the columns of a DataFrame."""
    fields = []
    for field in frame.schema:
        sql = from_spark(field.dataType)
        if sql is None:
            raise InputError(
                f"stream {name}: the column {field.name} is {field.dataType.simpleString()}, which no stream can "
                "have; drop it, or give each of its parts a column"
            )
        fields.append((field.name, types.to_arrow(sql)))
    return stream_from_schema(name, pa.schema(fields), time=time, sequence=sequence, lateness=lateness)


def read_relation(spark: SparkSession, relation: Relation) -> pa.Table:
    """All rows of a relation's source, with exactly the declared columns and types; its KEY must be unique."""
    declared = Declared.of(relation)
    if "scan" in declared.options:
        raise SetupError(f"{declared.owner}: the option scan is for streams; Spark reads relations, leave it out")
    source = Reader(spark, declared)
    with in_utc(spark), source.explained():
        table = source.frame(source.files(), streaming=False).toArrow()
    rows = scan.fit_columns(table, relation.columns, f"the source of {declared.owner}")
    if relation.key and rows.num_rows:
        counts = rows.group_by(list(relation.key)).aggregate([([], "count_all")])
        doubled = counts.filter(pc.greater(counts["count_all"], 1))
        if doubled.num_rows:
            first = ", ".join(f"{name} = {doubled[name][0].as_py()!r}" for name in relation.key)
            raise InputError(
                f"the KEY ({', '.join(relation.key)}) of {declared.owner} must be unique, but its source has "
                f"{doubled['count_all'][0].as_py()} rows with {first}; remove all but one, or declare no KEY"
            )
    return rows


def _ends(frame: DataFrame) -> bool:
    """False when a DataFrame reads a source that never ends."""
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    return not any(str(leaves.apply(place).toString()) in NEVER_END for place in range(leaves.size()))
