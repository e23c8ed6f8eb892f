"""USING and OPTIONS of a stream or relation → Spark's readers, for streams and for batches.

The formats and options are Spark's own. Three things are stricter than Spark's defaults: a csv, json or xml record that
does not parse is an error, not a row of NULLs; a csv header must name the columns, not just be skipped; and checksums
in Parquet files are verified.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_sql

from windrow.errors import SetupError
from windrow.language.catalog import Relation, Stream
from windrow.pipeline.spark_errors import FROM_SPARK, file_error, spark_reason
from windrow.pipeline.spark_types import declared_columns, spark_schema

OWN_OPTIONS = ("scan", "select")
"""Windrow's own; all others go to Spark unchanged."""
BYTES_PER_TRIGGER = 1 << 30
"""The default pace of file sources. Spark's own default is everything at once, with availableNow too."""

_KNOW_THEIR_SCHEMA = frozenset({"parquet", "orc", "avro", "binaryfile"})
PARSED = frozenset({"csv", "json", "xml"})
FILE_FORMATS = _KNOW_THEIR_SCHEMA | PARSED | {"text"}
_PACKAGES = {"kafka": "spark-sql-kafka-0-10_2.13", "avro": "spark-avro_2.13"}
_INTEGERS = (spark_sql.ByteType(), spark_sql.ShortType(), spark_sql.IntegerType(), spark_sql.LongType())
"""From narrow to wide."""
BINARY_FILE = "path string, modificationTime timestamp, length long, content binary"
_VERIFY_CHECKSUMS = "parquet.page.verify-checksum.enabled"
_TIME_ZONE = "spark.sql.session.timeZone"


@dataclass(frozen=True)
class Files:
    """What Spark lists under a path; `stream_path` is the path in a form that a streaming reader takes."""

    count: int
    first: str | None
    stream_path: str


@dataclass(frozen=True)
class Declared:
    """USING and OPTIONS of a stream or relation; the names of options are case-insensitive, as Spark's are."""

    source: Stream | Relation
    format: str
    options: dict[str, str]

    @classmethod
    def of(cls, source: Stream | Relation) -> Declared:
        """Read a declaration; a SetupError says what is wrong with its options."""
        kind = "stream" if isinstance(source, Stream) else "relation"
        if source.format is None:
            own = ", or give it a DataFrame" if kind == "stream" else ""
            raise SetupError(f"{kind} {source.name} has no source; declare it with USING … OPTIONS (…){own}")
        found = cls(source, source.format.lower(), {name.lower(): value for name, value in source.options.items()})
        found.check()
        return found

    @property
    def owner(self) -> str:
        """For messages."""
        return f"{'stream' if isinstance(self.source, Stream) else 'relation'} {self.source.name}"

    @property
    def select(self) -> str | None:
        """The user's projection of the source."""
        return self.options.get("select")

    def check(self) -> None:
        """Refuse what Spark would refuse only when the query runs."""
        way = self.options.get("scan")
        if way not in (None, "arrow", "rows"):
            raise SetupError(f"{self.owner}: the option scan must be 'arrow' or 'rows', found {way!r}")
        if self.format in FILE_FORMATS and not self.options.get("path"):
            raise SetupError(f"{self.owner}: {self.format} needs a path; add OPTIONS (path '…')")
        paces = [name for name in ("maxFilesPerTrigger", "maxBytesPerTrigger") if name.lower() in self.options]
        for name in paces:
            value = self.options[name.lower()]
            if self.format in FILE_FORMATS and not (value.isascii() and value.isdigit() and int(value) > 0):
                raise SetupError(f"{self.owner}: the option {name} must be a whole number above 0, found {value!r}")
        if self.format in FILE_FORMATS and len(paces) > 1:
            raise SetupError(f"{self.owner}: give maxFilesPerTrigger or maxBytesPerTrigger, not both")

    def spark_options(self) -> dict[str, str]:
        """What goes to Spark: all but our own and the path, and a strict reading unless the user wants another."""
        own = (*OWN_OPTIONS, "path") if self.format in FILE_FORMATS else OWN_OPTIONS
        options = {name: value for name, value in self.source.options.items() if name.lower() not in own}
        if self.format in PARSED:
            # Spark's own default makes NULLs of what it cannot parse: rows would be lost in silence.
            defaults = {"mode": "FAILFAST", "timeZone": "UTC"}
            if self.format == "csv" and self.has_header:
                defaults["enforceSchema"] = "false"  # the header is checked, not skipped
            options |= {name: value for name, value in defaults.items() if name.lower() not in self.options}
        if self.format == "parquet" and _VERIFY_CHECKSUMS not in self.options:
            options[_VERIFY_CHECKSUMS] = "true"  # Spark's own default gives what a damaged page has
        return options

    def paced(self) -> dict[str, str]:
        """The options of a streaming reader."""
        options = self.spark_options()
        if self.format in FILE_FORMATS and not {"maxfilespertrigger", "maxbytespertrigger"} & set(self.options):
            options["maxBytesPerTrigger"] = str(BYTES_PER_TRIGGER)
        return options

    @property
    def has_header(self) -> bool:
        """Does a csv file name its columns?"""
        return self.options.get("header", "false").lower() == "true"

    # ---- files -----------------------------------------------------------------------------------------------------

    def files(self, spark: SparkSession) -> Files | None:
        """What Spark finds under the path, by its own rules; None for sources that are no files."""
        if self.format not in FILE_FORMATS:
            return None
        path = self.options["path"]
        listing = spark.read.format("binaryFile").schema(BINARY_FILE).options(**self.spark_options()).load(path)
        found = listing._jdf.inputFiles()  # not listing.inputFiles(): that fetches every name from the JVM
        first = unquote(found[0]) if len(found) else None
        return Files(len(found), first, _single_file_as_glob(spark, path))

    # ---- rows ------------------------------------------------------------------------------------------------------

    def frame(self, spark: SparkSession, files: Files | None, *, streaming: bool) -> DataFrame:
        """The declared columns, read by Spark."""
        reader = spark.readStream if streaming else spark.read
        reader = reader.format(self.source.format).options(**(self.paced() if streaming else self.spark_options()))
        schema = self._schema(spark, files)
        if schema is not None:
            reader = reader.schema(schema)
        if files is None:
            frame = reader.load()
        else:
            frame = reader.load(files.stream_path if streaming else self.options["path"])
        if self.select is not None:
            frame = _selected(spark, frame, self.select)
        advice = """cast it with the option select, as in OPTIONS ("select" 'CAST(a AS BIGINT) AS a, b')"""
        return declared_columns(frame, self.source.columns, self.owner, advice)

    def _schema(self, spark: SparkSession, files: Files | None) -> spark_sql.StructType | None:
        """The schema to read with; None when the source knows it."""
        if files is None or self.format == "text":
            return None
        declared = spark_schema(self.source.columns, self.owner)
        if files.first is None:
            if self.select is not None:
                raise SetupError(
                    f"{self.owner}: there is no file under {self.options['path']} yet, so nobody knows the columns "
                    "that the option select reads; put a first file there"
                )
            return declared
        if self.format == "parquet" and self.select is None:
            return _widened(self._found_schema(spark), declared)
        if self.format in _KNOW_THEIR_SCHEMA or self.select is not None:
            return self._found_schema(spark)
        if self.format == "csv" and self.has_header:
            # By name, not by place: the declared type where there is one, text for the columns nobody declared.
            types_ = {field.name.lower(): field.dataType for field in declared}
            names = [field.name for field in self._found_schema(spark, inferSchema="false")]
            fields = [spark_sql.StructField(n, types_.get(n.lower(), spark_sql.StringType())) for n in names]
            return spark_sql.StructType(fields)
        return declared

    def _found_schema(self, spark: SparkSession, **more: str) -> spark_sql.StructType:
        reader = spark.read.format(self.source.format).options(**self.spark_options()).options(**more)
        return reader.load(self.options["path"]).schema

    @contextmanager
    def explained(self, spark: SparkSession) -> Iterator[None]:
        """Spark's errors while a source is opened, in one line that names the stream."""
        try:
            yield
        except FROM_SPARK as error:
            reason = spark_reason(error)
            path = self.options.get("path")
            if "PATH_NOT_FOUND" in str(error):
                raise SetupError(f"{self.owner}: there is nothing at {path}; correct the path, or create it") from error
            unreadable = file_error(self.owner, error)
            if unreadable is not None:
                raise unreadable from error
            if "Failed to find" in reason and self.format in _PACKAGES:
                package = f"org.apache.spark:{_PACKAGES[self.format]}:{spark.version}"
                reason += f"; its connector is not loaded, add --set spark.jars.packages={package}"
            raise SetupError(f"{self.owner}: Spark cannot open the {self.format} source: {reason}") from error


def _widened(found: spark_sql.StructType, declared: spark_sql.StructType) -> spark_sql.StructType:
    """The schema of one Parquet file, with whole numbers as wide as declared: those of other files may be wider."""
    wanted = {field.name.lower(): field.dataType for field in declared}
    fields = []
    for field in found:
        kind = wanted.get(field.name.lower(), field.dataType)
        wider = kind in _INTEGERS and field.dataType in _INTEGERS[: _INTEGERS.index(kind)]
        fields.append(spark_sql.StructField(field.name, kind if wider else field.dataType))
    return spark_sql.StructType(fields)


def _selected(spark: SparkSession, frame: DataFrame, select: str) -> DataFrame:
    # A view, because spark.sql("… {frame}", frame=frame) would take braces in the user's text for its own.
    view = f"windrow_source_{id(frame)}"
    frame.createOrReplaceTempView(view)
    try:
        return spark.sql(f"SELECT {select} FROM {view}")
    finally:
        spark.catalog.dropTempView(view)


def _single_file_as_glob(spark: SparkSession, path: str) -> str:
    """Spark's streaming reader takes directories and patterns only, so a single file becomes a pattern."""
    jvm: Any = spark._jvm
    where = jvm.org.apache.hadoop.fs.Path(path)
    if re.search(r"[\[{*?\\]", path):
        return path
    if not where.getFileSystem(spark._jsc.hadoopConfiguration()).getFileStatus(where).isFile():
        return path
    return re.sub(r"(\w)(\W*)$", r"[\1]\2", path)


@contextmanager
def in_utc(spark: SparkSession) -> Iterator[None]:
    """Casts between text, dates and timestamps take the zone of the session at the moment they are written."""
    zone = spark.conf.get(_TIME_ZONE)
    spark.conf.set(_TIME_ZONE, "UTC")
    try:
        yield
    finally:
        spark.conf.set(_TIME_ZONE, zone)
