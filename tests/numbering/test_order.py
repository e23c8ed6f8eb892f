"""ROWS order is the reference's: DuckDB sorts the same rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.random_queries import TICKS, tables
from windrow.language.catalog import stream_from_schema
from windrow.numbering.order import rows_order
from windrow.testing.evaluator import connect, sort_feed


@given(tables(span=3), st.sampled_from([None, "x", "s", "d"]), st.randoms(use_true_random=False))
def test_like_duckdb(table: pa.Table, sequence: str | None, random: object) -> None:
    shuffled = list(range(len(table)))
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    table = table.take(pa.array(shuffled, pa.int64()))
    stream = stream_from_schema("s", TICKS, time="t", sequence=sequence)
    times = table.column("t").to_numpy()
    ours = table.take(pa.array(rows_order(stream.sequence, table, np.array(times))))
    feed = sort_feed(connect(), table, times.tolist(), sequence)
    # repr: NaN is not equal to itself, and -0.0 ties with 0.0.
    assert repr(ours.to_pylist()).replace("-0.0", "0.0") == repr(feed.table.to_pylist()).replace("-0.0", "0.0")
