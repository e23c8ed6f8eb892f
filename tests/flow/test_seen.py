"""Tuples that nobody wants still begin a query, and only the query that reads their stream."""

from __future__ import annotations

import pyarrow as pa
import pytest

import windrow
from tests.flow.random_flows import SQL_COLUMNS
from windrow.slicer import slicer
from windrow.testing import assert_same

TEXTS = (
    "SELECT COUNT(*) AS n FROM (ISTREAM (SELECT a FROM p [RANGE 3] WHERE a > 5)) [RANGE 4] AS x",
    "SELECT COUNT(*) AS n FROM p [RANGE 3] WHERE a > 5",
)


def rows(ticks: range) -> pa.Table:
    keys = [tick % 9 for tick in ticks]
    columns = {"t": list(ticks), "a": pa.array(keys, pa.int32()), "b": [1] * len(keys), "s": ["x"] * len(keys)}
    return pa.table(columns)


@pytest.mark.parametrize("text", TEXTS)
def test_a_batch_that_workers_sliced_begins_what_a_push_begins(text: str) -> None:
    pushed, sliced = (windrow.connect(), windrow.connect())
    queries = []
    for db in (pushed, sliced):
        db.execute(f"CREATE STREAM p {SQL_COLUMNS}")
        queries.append(db.query(text))
    for first in (0, 4, 12):
        table = rows(range(first, first + 4))
        pushed.push("p", table)
        job = sliced._engine.job("p")
        worker = slicer(job.text)
        worker.begin(sliced._engine.streams["p"].watermark.value)
        worker.take(table.select(list(job.columns)))
        sliced._engine.absorb("p", job, worker.result())
    for db in (pushed, sliced):
        db.finish()
    assert_same(queries[1].answers(), queries[0].answers())
