"""One micro-batch through Spark: what its executors make of the rows, ready for the journal and the engine."""

from __future__ import annotations

from time import perf_counter

import pyarrow as pa
from pyspark.sql import DataFrame, Observation
from sqlglot import exp

from windrow.input import conform
from windrow.job import Job
from windrow.language.catalog import Stream
from windrow.pipeline.pushdown import Observed, common_filter, late_rows, narrow, observed, refuse_null_times
from windrow.pipeline.sources import Source
from windrow.pipeline.spark_errors import reading
from windrow.pipeline.worker import slice_files, slice_rows
from windrow.plan.periodic import PeriodicAggregate
from windrow.sliced import SCHEMA, Sliced, pack, unpack

COLUMNS = "kind string, part int, data binary"
"""`sliced.SCHEMA`, as Spark writes it."""


def slice_batch(
    source: Source,
    frame: DataFrame,
    job: Job,
    plans: list[PeriodicAggregate],
    kept: list[exp.Expr | None],
    watermark: int | None,
) -> pa.Table:
    """Slice the rows of a micro-batch on the executors; what comes back are partials, counters, late rows, and
    of the other rows those that somebody keeps: `kept` says which."""
    with reading(f"stream {source.stream.name}"):
        return _sliced(source, frame, job, plans, kept, watermark)


def _sliced(
    source: Source,
    frame: DataFrame,
    job: Job,
    plans: list[PeriodicAggregate],
    kept: list[exp.Expr | None],
    watermark: int | None,
) -> pa.Table:
    if source.scan == "arrow":
        return _collect(frame.mapInArrow(slice_files(job.text, watermark), COLUMNS))
    stream, condition = source.stream, common_filter(plans, kept)
    # Due times depend on all rows, also on those that no query asks for: Spark counts them before its filter.
    observation = None if condition is None else Observation()
    rows = narrow(frame, stream, job.columns, condition, watermark, observation)
    table = _collect(rows.mapInArrow(slice_rows(job.text, watermark), COLUMNS))
    passed = unpack(table)
    if observation is not None:
        table = _with(table, _filtered_out(stream, observed(observation), passed))
    if passed.late_rows and watermark is not None:
        kept = conform(stream, late_rows(frame, stream, watermark).toArrow())
        table = _with(table, Sliced(late=[kept]))
    return table


def _filtered_out(stream: Stream, seen: Observed, passed: Sliced) -> Sliced:
    """What must be added to the counters of the workers, who did not see the rows that no query asks for."""
    refuse_null_times(stream, seen)
    more = Sliced()
    if seen.oldest is not None and seen.newest is not None:
        more.see(seen.rows - passed.rows, seen.oldest, seen.newest)
    if seen.oldest_in_time is not None and seen.newest is not None:
        more.keep(seen.oldest_in_time, seen.newest)
    return more


def _with(table: pa.Table, more: Sliced) -> pa.Table:
    return pa.concat_tables([table, pa.Table.from_batches(list(pack(more)), SCHEMA)])


def _collect(frame: DataFrame) -> pa.Table:
    began = perf_counter()
    table = frame.toArrow().cast(SCHEMA)
    return _with(table, Sliced(seconds={"pass": perf_counter() - began}))
