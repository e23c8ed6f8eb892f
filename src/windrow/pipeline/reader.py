"""A declaration → Spark's readers, for streams and for batches."""

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
from windrow.pipeline.declared import FILE_FORMATS, KNOW_THEIR_SCHEMA, Declared
from windrow.pipeline.scan_choice import Files
from windrow.pipeline.spark_errors import FROM_SPARK, file_error, spark_reason
from windrow.pipeline.spark_types import declared_columns, spark_schema

BINARY_FILE = "path string, modificationTime timestamp, length long, content binary"
"""The schema of Spark's binaryFile: with it, Spark lists files and opens none."""
_PACKAGES = {"kafka": "spark-sql-kafka-0-10_2.13", "avro": "spark-avro_2.13"}
_INTEGERS = (spark_sql.ByteType(), spark_sql.ShortType(), spark_sql.IntegerType(), spark_sql.LongType())
"""From narrow to wide."""
_TIME_ZONE = "spark.sql.session.timeZone"


@dataclass(frozen=True)
class Reader:
    """Reads what a declaration names, with Spark."""

    spark: SparkSession
    declared: Declared

    def files(self) -> Files | None:
        """What Spark finds under the path, by its own rules; None for sources that are no files."""
        declared = self.declared
        if declared.format not in FILE_FORMATS:
            return None
        path = declared.options["path"]
        listing = (
            self.spark.read.format("binaryFile").schema(BINARY_FILE).options(**declared.spark_options()).load(path)
        )
        found = listing._jdf.inputFiles()  # not listing.inputFiles(): that fetches every name from the JVM
        first = unquote(found[0]) if len(found) else None
        return Files(len(found), first, _single_file_as_glob(self.spark, path))

    def frame(self, files: Files | None, *, streaming: bool) -> DataFrame:
        """The declared columns, read by Spark."""
        declared = self.declared
        reader = self.spark.readStream if streaming else self.spark.read
        reader = reader.format(declared.source.format).options(
            **(declared.paced() if streaming else declared.spark_options())
        )
        schema = self._schema(files)
        if schema is not None:
            reader = reader.schema(schema)
        if files is None:
            frame = reader.load()
        else:
            frame = reader.load(files.stream_path if streaming else declared.options["path"])
        if declared.select is not None:
            frame = _selected(self.spark, frame, declared.select)
        advice = """cast it with the option select, as in OPTIONS ("select" 'CAST(a AS BIGINT) AS a, b')"""
        return declared_columns(frame, declared.source.columns, declared.owner, advice)

    def _schema(self, files: Files | None) -> spark_sql.StructType | None:
        """The schema to read with; None when the source knows it."""
        source = self.declared
        if files is None or source.format == "text":
            return None
        wanted = spark_schema(source.source.columns, source.owner)
        if files.first is None:
            if source.select is not None:
                raise SetupError(
                    f"{source.owner}: there is no file under {source.options['path']} yet, so nobody knows the columns "
                    "that the option select reads; put a first file there"
                )
            return wanted
        if source.format == "parquet" and source.select is None:
            return _widened(self._found_schema(), wanted)
        if source.format in KNOW_THEIR_SCHEMA or source.select is not None:
            return self._found_schema()
        if source.format == "csv" and source.has_header:
            # By name, not by place: the declared type where there is one, text for the columns nobody declared.
            types_ = {field.name.lower(): field.dataType for field in wanted}
            names = [field.name for field in self._found_schema(inferSchema="false")]
            fields = [spark_sql.StructField(n, types_.get(n.lower(), spark_sql.StringType())) for n in names]
            return spark_sql.StructType(fields)
        return wanted

    def _found_schema(self, **more: str) -> spark_sql.StructType:
        declared = self.declared
        reader = self.spark.read.format(declared.source.format).options(**declared.spark_options()).options(**more)
        return reader.load(declared.options["path"]).schema

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Spark's errors while a source is opened, in one line that names the stream."""
        declared = self.declared
        try:
            yield
        except FROM_SPARK as error:
            reason = spark_reason(error)
            path = declared.options.get("path")
            if "PATH_NOT_FOUND" in str(error):
                raise SetupError(
                    f"{declared.owner}: there is nothing at {path}; correct the path, or create it"
                ) from error
            unreadable = file_error(declared.owner, error)
            if unreadable is not None:
                raise unreadable from error
            if "Failed to find" in reason and declared.format in _PACKAGES:
                package = f"org.apache.spark:{_PACKAGES[declared.format]}:{self.spark.version}"
                reason += f"; its connector is not loaded, add --set spark.jars.packages={package}"
            raise SetupError(f"{declared.owner}: Spark cannot open the {declared.format} source: {reason}") from error


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
