"""Answers through Spark's batch writers: files of other formats exactly once, everything else at least once.

A file format (orc, avro, xml, text) is written to a hidden staging directory of the step, then published:

    Spark writes .staging-<step>/ ─► manifest with the final names ─► rename file by file ─► staging is .published

The manifest says that all of the step is on the disk. A crash before it leaves nothing visible, and the step is
written again; after it, the next open finishes the renames, which may be repeated. So no answer is lost or doubled.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from windrow.errors import SinkError
from windrow.pipeline.sink import Sink, SinkSpec, failed_write, opening, writing
from windrow.pipeline.sink_directory import AnswerDirectory, local_path, remove_tree, sync_directory, sync_file
from windrow.pipeline.sink_files import storable
from windrow.pipeline.sink_text import TEXT, json_objects, plain_column
from windrow.pipeline.spark_errors import FROM_SPARK, plain, spark_reason

STAGED_FORMATS = ("orc", "avro", "xml", "text")
"""Formats whose output is a directory of files and nothing more; tables with a log of their own are not among them."""
MANIFEST = "_manifest.json"
PART = re.compile(r"part-(\d{12,})-")

Session: TypeAlias = Callable[[], SparkSession]


class SparkSink(Sink):
    """Appends every step with a batch writer of Spark (kafka, jdbc, …): after a crash a step may be there twice."""

    exactly_once = False

    def __init__(self, spec: SinkSpec, query: str, session: Session) -> None:
        self.location = location(spec)
        self._spec = spec
        self._query = query
        self._session = session
        self._last: int | None = None

    def write(self, step: int, table: pa.Table) -> None:
        """Append the answers; a step that this process has written already is not written again."""
        if not table.num_rows or (self._last is not None and step <= self._last):
            return
        with writing(self._query, self.location), spark_writing(self._query, self.location, self._spec.format):
            options = dict(self._spec.options)
            if self._spec.format == "kafka":
                key = next((options.pop(option) for option in list(options) if option.lower() == "key"), None)
                table = kafka_table(table, key, self._query)
            save(dataframe(self._session(), table), self._spec.format, options)
        self._last = step


class StagedSink(Sink):
    """Files of a format that Spark writes, `part-<step>-<n>.<ext>`, each answer exactly once."""

    exactly_once = True

    def __init__(self, spec: SinkSpec, path: Path, query: str, session: Session, *, fresh: bool) -> None:
        self.location = str(path)
        self._format = spec.format
        self._options = {key: value for key, value in spec.options.items() if key.lower() != "path"}
        if spec.format == "xml" and "rowtag" not in {key.lower() for key in self._options}:
            self._options["rowTag"] = "row"  # Spark's writer has no default
        self._query = query
        self._session = session
        self._directory = AnswerDirectory(path, query, fresh=fresh)
        self._steps: set[int] = set()
        try:
            with opening(query, self.location):
                self._recover(fresh)
        except BaseException:
            self._directory.close()
            raise

    def write(self, step: int, table: pa.Table) -> None:
        """Publish the answers of a step, unless they were published before a crash."""
        staging = self._staging(step)
        with writing(self._query, self.location):
            if (staging / MANIFEST).exists():  # an earlier call failed among the renames
                self.expose(staging)
            if not table.num_rows or step in self._steps:
                return
            try:
                self.stage(step, table)
            except BaseException:
                with suppress(OSError):
                    remove_tree(staging)
                raise
            self.expose(staging)

    def close(self) -> None:
        """Release the directory."""
        self._directory.close()

    def stage(self, step: int, table: pa.Table) -> None:
        """Let Spark write the step into its staging directory; complete when the manifest is there."""
        staging = self._staging(step)
        remove_tree(staging)
        if self._format == "text":
            table = pa.table({"value": json_objects(table)})
        with spark_writing(self._query, self.location, self._format):
            # The scheme matters on a cluster, where a bare path means its default file system. One task writes, so
            # that the files of a step are all here or all elsewhere.
            target = {**self._options, "path": f"file://{staging.resolve()}"}
            save(dataframe(self._session(), table).coalesce(1), self._format, target)
        parts = sorted(staging.glob("part-*")) if staging.is_dir() else []
        if not parts:
            raise SinkError(
                f"Spark wrote the answers of query {self._query} to {self.location}, but they are not there on the "
                "driver's machine; choose a directory that the driver and the executors share"
            )
        names = {}
        for number, part in enumerate(parts):
            sync_file(part)
            extension = part.name.partition(".")[2]
            names[part.name] = f"part-{step:012d}-{number:05d}.{extension}"
        unfinished = staging / f"{MANIFEST}.tmp"
        unfinished.write_text(json.dumps(names))
        sync_file(unfinished)
        unfinished.rename(staging / MANIFEST)
        sync_directory(staging)

    def expose(self, staging: Path) -> None:
        """Give the staged files their names; can be repeated after a crash in the middle."""
        for name, final in json.loads((staging / MANIFEST).read_text()).items():
            if (staging / name).exists():
                (staging / name).replace(self._directory.path / final)
        self._directory.sync()
        self._steps.add(int(staging.name.rpartition("-")[2]))
        done = staging.with_name(staging.name.replace(".staging", ".published"))
        staging.rename(done)
        self._directory.sync()
        with suppress(OSError):  # what remains is hidden, and removed by the next open
            remove_tree(done)

    def _recover(self, fresh: bool) -> None:
        path = self._directory.path
        for done in path.glob(".published-*"):
            remove_tree(done)
        for staging in sorted(path.glob(".staging-*")):
            if (staging / MANIFEST).exists() and not fresh:
                self.expose(staging)
            else:
                remove_tree(staging)
        self._steps |= {int(found[1]) for entry in self._directory.visible() if (found := PART.match(entry.name))}

    def _staging(self, step: int) -> Path:
        return self._directory.path / f".staging-{step:012d}"


def staged_path(spec: SinkSpec) -> Path | None:
    """The directory of a format that can be staged and renamed; None when Spark has to append by itself."""
    path = spec.option("path")
    return local_path(path) if path and spec.format in STAGED_FORMATS else None


def location(spec: SinkSpec) -> str:
    """The place for people: the format and its table, topic or path (never a URL, which may hold a password).

    >>> location(SinkSpec("kafka", {"topic": "busy"}))
    'kafka topic busy'
    """
    for option, word in (("topic", "topic"), ("dbtable", "table"), ("table", "table"), ("path", "")):
        value = spec.option(option)
        if value is not None:
            return " ".join(filter(None, (spec.format, word, value)))
    return spec.format


def dataframe(spark: SparkSession, table: pa.Table) -> DataFrame:
    """The answers as a DataFrame; timestamps are instants, whatever the session's time zone."""
    return spark.createDataFrame(storable(table, pa.timestamp("us", "UTC")))


def require_writer(spark: SparkSession, format: str, query: str) -> None:
    """Refuse a format that Spark does not know before the run begins, not when the first answers are there."""
    jvm: Any = spark._jvm
    try:
        settings = spark._jsparkSession.sessionState().conf()
        jvm.org.apache.spark.sql.execution.datasources.DataSource.lookupDataSource(format, settings)
    except FROM_SPARK as error:
        raise SinkError(
            f"query {query} writes {format}, and Spark has no such format ({spark_reason(error)}); check the name, or "
            "bring its package with --set spark.jars.packages=…"
        ) from error


def save(frame: DataFrame, format: str, options: Mapping[str, str]) -> None:
    """Append a DataFrame with a batch writer."""
    frame.write.format(format).options(**options).mode("append").save()


def kafka_table(table: pa.Table, key: str | None, query: str) -> pa.Table:
    """The columns that Kafka's writer takes: `value` is the answer's own text or bytes, else the row as JSON.

    `key` names a column of the answer; a text column `topic` of the answer chooses the topic of each row.
    """
    own = {name: table.column(name) for name in ("value", "topic") if name in table.column_names}
    columns = {name: column for name, column in own.items() if _is_text_or_bytes(column.type)}
    columns.setdefault("value", json_objects(table))
    if key is not None:
        if key not in table.column_names:
            raise SinkError(
                f"the option key of query {query} names no column of its answer: {key!r}; "
                f"there are: {', '.join(table.column_names)}"
            )
        chosen = table.column(key)
        text = [chunk if _is_text_or_bytes(chosen.type) else plain_column(chunk) for chunk in chosen.chunks]
        columns["key"] = pa.chunked_array(text, chosen.type if _is_text_or_bytes(chosen.type) else TEXT)
    return pa.table(columns)


@contextmanager
def spark_writing(query: str, place: str, format: str) -> Iterator[None]:
    """Turn what Spark raises while it writes into a SinkError with the innermost cause."""
    try:
        yield
    except FROM_SPARK as error:
        what_to_do = "remove the cause"
        if "DATA_SOURCE_NOT_FOUND" in str(error):
            what_to_do = f"check the name of the format, or bring the package of {format} (spark.jars.packages)"
        raise failed_write(query, place, cause(error), what_to_do) from error


def cause(error: Exception) -> str:
    """The innermost reason that Spark gives, in one line."""
    inside = getattr(error, "_cause", None)  # of an exception that came from the JVM
    if isinstance(inside, Exception) and str(inside).strip():
        return cause(inside)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    inner = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    outer = [line.removeprefix(": ") for line in lines if not line.startswith("An error occurred while calling")]
    return plain((inner[-1:] or outer[:1] or [type(error).__name__])[0])


def _is_text_or_bytes(kind: Any) -> bool:
    return kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
