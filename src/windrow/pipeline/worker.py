"""What runs inside Spark's Python workers: read, slice, give back the partials. One pass serves all queries.

file paths ─► scan.read_file ─┐
                              ├─► Slicer ─► rows of (kind, part, data)
Arrow batches of rows ────────┘
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import perf_counter

import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import InputError
from windrow.pipeline.scan import local_path, read_file
from windrow.sliced import pack, pack_error
from windrow.slicer import Slicer, slicer

PIECE_ROWS = 262_144
"""Spark's small batches are put together to so many rows, so that a slice's fixed cost is paid seldom."""

Work = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What `mapInArrow` takes."""


def slice_files(job: str, watermark: int | None) -> Work:
    """The arrow scan: each row of the input is the path of a file."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        paths = (path for batch in batches for path in batch.column(0).to_pylist())
        return _guarded(job, watermark, lambda worker: _take_files(worker, paths, watermark))

    return work


def slice_rows(job: str, watermark: int | None) -> Work:
    """The row path: the input has the columns of the job."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _guarded(job, watermark, lambda worker: _take_rows(worker, batches))

    return work


def _guarded(job: str, watermark: int | None, take: Callable[[Slicer], None]) -> Iterator[pa.RecordBatch]:
    worker = slicer(job)
    worker.begin(watermark)
    try:
        take(worker)
    except InputError as error:
        yield pack_error(error)
    else:
        yield from pack(worker.result())


def _take_files(worker: Slicer, paths: Iterator[str], watermark: int | None) -> None:
    for path in paths:
        late, began, reading = False, perf_counter(), 0.0
        for table in read_file(path, worker.stream, worker.columns):
            reading += perf_counter() - began
            with _naming(path):
                late |= worker.take(table) is not None
            began = perf_counter()
        if late:
            # Late rows are kept whole; they are few, so only now the columns that no query needs are read.
            everything = [column.name for column in worker.stream.columns]
            for table in read_file(path, worker.stream, everything):
                ticks = table.column(worker.stream.time).cast(pa.int64())
                kept = table.filter(pc.less_equal(ticks, watermark))
                if kept.num_rows:
                    worker.keep_late(kept)
        worker.note(files=1, read=reading)


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """What is wrong with rows is told with their file."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{local_path(path) or path}: {error} Correct or replace the file, and start again") from None


def _take_rows(worker: Slicer, batches: Iterable[pa.RecordBatch]) -> None:
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(one.num_rows for one in waiting) >= PIECE_ROWS:
            worker.take(pa.Table.from_batches(waiting))
            waiting = []
    if waiting:
        worker.take(pa.Table.from_batches(waiting))
