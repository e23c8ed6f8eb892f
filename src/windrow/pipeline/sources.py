"""A declared stream → a Spark streaming DataFrame, and how its rows get to the Python workers.

arrow scan: Spark tracks and distributes the files of a Parquet directory; the workers read them with PyArrow.
row path:   Spark reads the rows (any format, any DataFrame) and hands them over as Arrow batches.

A file without a declared column is an error on the arrow scan, and for local Parquet files on the row path
(`batch_files`). It is NULLs, as Spark has it, in json, orc and avro, in Parquet files elsewhere that only Spark can
open, and where the user asked for it with the options select or mergeSchema.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from datetime import timedelta
from glob import glob

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from windrow.errors import InputError, SetupError
from windrow.language import types
from windrow.language.catalog import Relation, Stream, stream_from_schema
from windrow.pipeline import scan
from windrow.pipeline.reader import BINARY_FILE, OWN_OPTIONS, PARSED, Declared, Files, in_utc
from windrow.pipeline.spark_types import declared_columns, from_spark

_FILE_STREAM_OPTIONS = frozenset(
    {"path", "maxfilespertrigger", "maxbytespertrigger", "maxfileage", "latestfirst", "filenameonly",
     "pathglobfilter", "recursivefilelookup", "cleansource", "sourcearchivedir", "maxcachedfiles",
     "discardcachedinputratio", "ignoremissingfiles"}
)  # fmt: skip
_PACE_OPTIONS = frozenset(
    {"scan", "mode", "maxfilespertrigger", "maxbytespertrigger", "maxcachedfiles", "discardcachedinputratio",
     "cleansource", "sourcearchivedir", "ignoremissingfiles", "ignorecorruptfiles", "rowspersecond", "rampuptime",
     "numpartitions", "maxoffsetspertrigger", "minoffsetspertrigger", "maxtriggerdelay", "minpartitions",
     "maxrecordsperpartition", "failondataloss", "fetchoffset.numretries", "fetchoffset.retryintervalms",
     "kafkaconsumer.polltimeoutms"}
)  # fmt: skip
_NEVER_END = frozenset({"rate", "rate-micro-batch", "socket"})


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
    with in_utc(spark), declared.explained(spark):
        files = declared.files(spark)
        way, why = _chosen_scan(stream, declared, files)
        if way == "arrow":
            reader = spark.readStream.format("binaryFile").schema(BINARY_FILE).options(**declared.paced())
            frame = reader.load(files.stream_path if files else None).select("path")
        else:
            frame = declared.frame(spark, files, streaming=True)
    return Source(stream, frame, way, why, declared.format not in _NEVER_END, None if files is None else files.count)


def expected_scan(stream: Stream) -> str:
    """For EXPLAIN without Spark: the `why` that a run will find, as far as the declaration and local files tell."""
    declared = Declared.of(stream)
    path = declared.options.get("path")
    files = None if path is None else Files(0, _first_local_file(path), path)
    try:
        return _chosen_scan(stream, declared, files)[1]
    except (InputError, SetupError) as error:
        return f"none: {error}"


def _first_local_file(path: str) -> str | None:
    """The first file that Spark would list under a local path; None when there is none, or the path is elsewhere."""
    local = scan.local_path(path)
    if local is None:
        return None
    if any(sign in local for sign in "*?[{"):
        matches = sorted(glob(local))
        local = matches[0] if matches else local
    if os.path.isfile(local):
        return local
    for folder, folders, names in os.walk(local):
        folders[:] = sorted(name for name in folders if name[0] not in "._")
        for name in sorted(names):
            if name[0] not in "._":
                return os.path.join(folder, name)
    return None


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
    with in_utc(spark), declared.explained(spark):
        table = declared.frame(spark, declared.files(spark), streaming=False).toArrow()
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


def fingerprint(stream: Stream) -> str:
    """12 hex digits of what makes it another stream: not its name, and no option that only sets the pace."""
    options = {name.lower(): value for name, value in stream.options.items()}
    meaning = {
        "columns": [(column.name, types.type_name(column.type)) for column in stream.columns],
        "time": stream.time,
        "sequence": stream.sequence,
        "lateness": stream.lateness,
        "format": stream.format and stream.format.lower(),
        "options": sorted((name, value) for name, value in options.items() if name not in _PACE_OPTIONS),
    }
    return hashlib.sha256(json.dumps(meaning, sort_keys=True).encode()).hexdigest()[:12]


def total_files(source: Source) -> int | None:
    """How many files the source had when it was opened; None when it is no file source."""
    return source.files


def _ends(frame: DataFrame) -> bool:
    """False when a DataFrame reads a source that never ends."""
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    return not any(str(leaves.apply(place).toString()) in _NEVER_END for place in range(leaves.size()))


# ---- which scan -----------------------------------------------------------------------------------------------------


def _chosen_scan(stream: Stream, declared: Declared, files: Files | None) -> tuple[str, str]:
    asked = declared.options.get("scan")
    if asked == "rows":
        return "rows", "row path: asked for by the option scan"
    against = _against_arrow(stream, declared, files)
    if against is None:
        return "arrow", "arrow scan: Spark tracks the Parquet files, the workers read them with PyArrow"
    if asked == "arrow":
        raise SetupError(f"stream {stream.name}: scan 'arrow' is not possible here: {against}; leave the option out")
    return "rows", f"row path: {against}"


def _against_arrow(stream: Stream, declared: Declared, files: Files | None) -> str | None:
    """Why the workers cannot read the files themselves; None when they can."""
    if declared.format in PARSED:
        return f"{declared.format} is parsed by Spark (its options and NULL rules are Spark's)"
    if declared.format != "parquet" or files is None:
        return f"{declared.format} is read by Spark"
    if declared.select is not None:
        return "the option select is computed by Spark"
    foreign = [name for name in stream.options if name.lower() not in {*_FILE_STREAM_OPTIONS, *OWN_OPTIONS}]
    if foreign:
        return f"the option {foreign[0]} is one of Spark's own reader"
    return _against_files(stream, files.first or files.stream_path, exists=files.first is not None)


def _against_files(stream: Stream, path: str, *, exists: bool) -> str | None:
    if scan.local_path(path) is None:
        try:
            scan.remote_path(path)
        except (pa.ArrowException, OSError) as error:
            return f"PyArrow cannot open {path} ({' '.join(str(error).split())[:120]})"
    if not exists:
        return None
    names = {column.name.lower(): column.name for column in stream.columns}
    for key in re.findall(r"/([^/=]+)=", path):
        if key.lower() in names:
            return f"the column {names[key.lower()]} is in the names of the directories"
    try:
        schema = scan.file_schema(path)
    except (pa.ArrowException, OSError):
        return None  # the worker that comes to this file says what is wrong with it
    scan.file_columns(path, stream, schema)
    return None
