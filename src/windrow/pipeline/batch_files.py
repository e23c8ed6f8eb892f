"""The files of a micro-batch, held to what the stream needs of them before anything of the batch is taken in.

Spark passes over a file that is gone or empty when its turn comes, and gives NULLs for a column that a Parquet file
lacks. Rows and values would be lost in silence, and for good: Spark notes the file as read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from windrow.errors import InputError
from windrow.language.catalog import Column
from windrow.pipeline.declared import FILE_FORMATS, Declared
from windrow.pipeline.scan import local_path, missing_file, require_columns
from windrow.pipeline.sources import Source
from windrow.pipeline.spark_errors import reading

_NEVER_EMPTY = frozenset({"parquet", "avro"})
"""An empty file of these formats is damaged; one of the others has no rows."""
SHOWN = 3
"""So many files of a batch are named in a message."""


@contextmanager
def checked_files(source: Source) -> Iterator[None]:
    """While a micro-batch is taken in: its files are good, and what else is wrong with the input names them."""
    owner = f"stream {source.stream.name}"
    with reading(owner):
        files = BatchFiles.of(source)
    try:
        if files is not None:
            with reading(owner):
                files.check()
        yield
    except InputError as error:
        raise error if files is None else files.located(error) from None


@dataclass(frozen=True)
class BatchFiles:
    """What Spark has planned for the micro-batch that its thread is working on."""

    source: Source
    declared: Declared
    relation: Any
    """Spark's own relation of the files, in the JVM."""

    @classmethod
    def of(cls, source: Source) -> BatchFiles | None:
        """The files of the current micro-batch; None when the source is no file source."""
        if source.stream.format is None:
            return None
        declared = Declared.of(source.stream)
        # Spark marks its thread with the query, and PySpark calls us, and is called by us, in that thread.
        spark = source.frame.sparkSession
        query = spark.sparkContext.getLocalProperty("sql.streaming.queryId")
        if declared.format not in FILE_FORMATS or query is None:
            return None
        # The frame that foreachBatch gives has no files any more, only the rows that come of them.
        running = spark._jsparkSession.streams().get(query)
        leaves = running.streamingQuery().lastExecution().logical().collectLeaves()
        if leaves.size() != 1 or leaves.apply(0).getClass().getSimpleName() != "LogicalRelation":
            return None
        return cls(source, declared, leaves.apply(0).relation())

    def check(self) -> None:
        """An InputError names a file that is gone, empty, or without a declared column."""
        location = self.relation.location()
        asked = location.rootPaths()
        if asked.size() != _count(self.source, location):
            present = {str(status.getPath()): status.getLen() for status in _each(location.allFiles())}
            for path in map(str, _each(asked)):
                self._check_present(path, present.get(path))
        if self._may_lack_columns:
            for path in location.inputFiles():
                if local_path(path) is not None:
                    require_columns(path, self.source.stream, self._columns)

    def _check_present(self, path: str, size: int | None) -> None:
        owner = self.declared.owner
        if size is None and not self._wished("ignoremissingfiles"):
            raise missing_file(path, owner)
        if size == 0 and self.declared.format in _NEVER_EMPTY and not self._wished("ignorecorruptfiles"):
            raise InputError(
                f"{local_path(path) or path}, a file of {owner}, is empty, which no {self.declared.format} file is; "
                "replace it and start again. If it was still being written: write files elsewhere, or under a name "
                "that begins with a dot, and rename them when they are complete"
            )

    @property
    def _may_lack_columns(self) -> bool:
        """Whether Spark reads the declared columns from Parquet, and nobody has asked it to fill in NULLs."""
        fills = self.declared.select is not None or self._wished("mergeschema") or self._wished("ignorecorruptfiles")
        return self.source.scan == "rows" and self.declared.format == "parquet" and not fills

    @property
    def _columns(self) -> Sequence[Column]:
        in_names_of_directories = {str(name).lower() for name in self.relation.partitionSchema().fieldNames()}
        return [column for column in self.source.stream.columns if column.name.lower() not in in_names_of_directories]

    def _wished(self, option: str) -> bool:
        return self.declared.options.get(option, "").lower() == "true"

    def located(self, error: InputError) -> InputError:
        """The error of the whole batch, with its files, unless it names one of them already."""
        paths = [local_path(path) or path for path in self.relation.location().inputFiles()]
        if not paths or any(path in str(error) for path in paths):
            return error
        more = f" and {len(paths) - SHOWN} more" if len(paths) > SHOWN else ""
        return InputError(
            f"{error} The rows are in {', '.join(paths[:SHOWN])}{more}: correct or replace what is wrong, and start "
            "again"
        )


def _count(source: Source, location: Any) -> int:
    """How many files Spark will read: those that are there and not empty."""
    jvm: Any = source.frame.sparkSession._jvm
    nothing = getattr(getattr(jvm, "scala.collection.immutable.Nil$"), "MODULE$")
    return sum(directory.files().size() for directory in _each(location.listFiles(nothing, nothing)))


def _each(sequence: Any) -> list[Any]:
    return [sequence.apply(place) for place in range(sequence.size())]
