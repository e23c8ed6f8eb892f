"""Summaries travel from workers, and come back from snapshots, as they were: the answers are the same."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow
from tests.engine.test_slicing_elsewhere import absorb, database
from tests.engine.test_snapshot import Lockstep, one_stream
from tests.oracle.test_sketched_answers import many_rows, sketched_queries
from tests.random_queries import tables
from windrow.synopses import open_entries
from windrow.testing import assert_same, cut

QUERIES = [
    "SELECT FREQUENT(b, 5) AS v FROM s [RANGE 40 SLIDE 10]",
    "SELECT s AS k, APPROX_FREQUENT(b, 5) AS v FROM s [RANGE 40 SLIDE 10] GROUP BY s",
    "SELECT s AS k, APPROX_COUNT_DISTINCT(b) AS v, APPROX_COUNT_DISTINCT(x) AS w FROM s [RANGE 40 SLIDE 5] GROUP BY s",
    "SELECT f AS k, APPROX_QUANTILE(b, 0.9) AS v, APPROX_MEDIAN(x) AS w FROM s [RANGE 40 SLIDE 5] GROUP BY f",
    "SELECT s AS k, APPROX_TOP_K(b, 3) AS v, APPROX_QUANTILE(s, 0.5) AS w FROM s [RANGE 20 SLIDE 4] GROUP BY s",
    "SELECT s AS k, THETA_SKETCH_AGG(b) AS v, HLL_SKETCH_AGG(x) AS w FROM s [RANGE 40 SLIDE 5] GROUP BY s",
    "SELECT f AS k, THETA_SKETCH_AGG(x, 6) AS v, HLL_SKETCH_AGG(x, 7) AS w FROM s [RANGE 20 SLIDE 4] GROUP BY f",
    "SELECT s AS k, KLL_SKETCH_AGG(x) AS v, ITEMS_SKETCH_AGG(b) AS w FROM s [RANGE 40 SLIDE 5] GROUP BY s",
    "SELECT f AS k, KLL_SKETCH_AGG(b, 8) AS v, ITEMS_SKETCH_AGG(s) AS w FROM s [RANGE 20 SLIDE 4] GROUP BY f",
]


@given(tables(), st.lists(sketched_queries(), min_size=1, max_size=4), st.integers(1, 4), st.integers(1, 3))
def test_sliced_elsewhere(table: pa.Table, texts: list[str], batches: int, partitions: int) -> None:
    pushed, absorbed = database(texts), database(texts)
    for number, piece in enumerate(cut(table, 3, batches)):
        pushed.push("s", piece)
        absorb(absorbed._engine, "s", cut(piece, number, partitions))
    pushed.finish()
    absorbed.finish()
    for one, other in zip(absorbed.queries(), pushed.queries(), strict=True):
        assert_same(one.answers(), other.answers())


@given(tables(), st.lists(sketched_queries(), min_size=1, max_size=4), st.integers(1, 5), st.integers(0, 4))
def test_restored(table: pa.Table, texts: list[str], batches: int, when: int) -> None:
    both = Lockstep(one_stream())
    for number, text in enumerate(texts):
        both.do(lambda db, number=number, text=text: db.query(text, name=f"q{number}"))
    for number, piece in enumerate(cut(table, 3, batches)):
        if number == when:
            both.copy(0)
        both.do(lambda db, piece=piece: db.push("s", piece))
    both.check_state()
    both.do(lambda db: db.finish())


@pytest.mark.parametrize("many_entries", [1 << 20, 3_000], ids=["whole panes", "cut open"])
def test_restored_with_many_values(many_entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_entries, "MANY_ENTRIES", many_entries)
    both = Lockstep(one_stream())
    for number, text in enumerate(QUERIES):
        both.do(lambda db, number=number, text=text: db.query(text, name=f"q{number}"))
    for number, piece in enumerate(cut(many_rows(60_000, 1), 3, 6)):
        if number in (1, 4):
            both.copy(0)
        both.do(lambda db, piece=piece: db.push("s", piece))
    both.check_state()
    both.do(lambda db: db.finish())


def test_answers_do_not_depend_on_the_cut() -> None:
    """Panes that are not cut down while they are open: then a summary is a function of the values."""
    table = many_rows(60_000, 2)
    whole, cut_up, elsewhere = database(QUERIES), database(QUERIES), database(QUERIES)
    whole.push("s", table)
    for number, piece in enumerate(cut(table, 5, 6)):
        cut_up.push("s", piece)
        absorb(elsewhere._engine, "s", cut(piece, number, 3))
    for db in (whole, cut_up, elsewhere):
        db.finish()
    for one, *others in zip(*(db.queries() for db in (whole, cut_up, elsewhere)), strict=True):
        assert one.answers().num_rows
        for other in others:
            assert_same(other.answers(), one.answers())


def test_groups_and_strings_come_and_go() -> None:
    """Bounded state (invariant 4): groups and values that left every window are forgotten."""
    db = windrow.connect()
    db.execute("CREATE STREAM s (t BIGINT, k STRING, v STRING) TIME t")
    calls = "FREQUENT(v, 2) AS f, APPROX_COUNT_DISTINCT(v) AS d, APPROX_QUANTILE(v, 0.5) AS q, APPROX_TOP_K(v, 2) AS t"
    calls += ", THETA_SKETCH_AGG(v, 8) AS u, HLL_SKETCH_AGG(v) AS w, ITEMS_SKETCH_AGG(v) AS i"
    query = db.query(f"SELECT k, {calls} FROM s [RANGE 20 SLIDE 10] GROUP BY k")
    sizes = []
    for step in range(60):
        n = 200
        table = pa.table(
            {
                "t": pa.array(np.sort(np.random.default_rng(step).integers(10 * step, 10 * step + 10, n))),
                "k": [f"group {step} {i % 20}" for i in range(n)],
                "v": [f"a value of step {step} number {i % 7}" for i in range(n)],
            }
        )
        db.push("s", table)
        sizes.append(db.metrics()["streams"]["s"]["state_bytes"])
        newest = query.take()
        assert set(newest["d"].to_pylist()) <= set(range(1, 8))
    assert max(sizes[30:]) <= 2 * max(sizes[5:30])


def test_the_error_is_in_the_metadata_and_in_explain() -> None:
    db = windrow.connect()
    db.execute("CREATE STREAM s (t BIGINT, k INT, v INT) TIME t")
    query = db.query(
        "SELECT k, COUNT(*) AS n, APPROX_COUNT_DISTINCT(v) AS d, APPROX_MEDIAN(v) + 1 AS m FROM s [RANGE 20 SLIDE 10] "
        "GROUP BY k"
    )
    db.push("s", pa.table({"t": [1], "k": pa.array([1], pa.int32()), "v": pa.array([1], pa.int32())}))
    db.finish()
    fields = query.answers().schema
    assert fields.field("n").metadata is None and fields.field("k").metadata is None
    assert fields.field("d").metadata[b"error"].startswith(b"relative 3.3 % at 95 %")
    assert fields.field("m").metadata[b"error"].startswith(b"rank 0.5 %")
    text = query.explain()
    assert "APPROX_COUNT_DISTINCT(v): hll synopsis; at most 4096 bytes" in text
    assert "error: relative 3.3 % at 95 %" in text and "error: rank 0.5 %" in text
    assert "COUNT(*): running synopsis" in text


def test_the_error_of_a_sketch_is_that_of_its_estimate() -> None:
    db = windrow.connect()
    db.execute("CREATE STREAM s (t BIGINT, v INT) TIME t")
    query = db.query(
        "SELECT THETA_SKETCH_AGG(v) AS a, THETA_SKETCH_AGG(v, 8) AS b, HLL_SKETCH_AGG(v, 8) AS c, "
        "KLL_SKETCH_AGG(v) AS d, KLL_SKETCH_AGG(v, 8) AS e, ITEMS_SKETCH_AGG(v) AS f FROM s [NOW SLIDE 1]"
    )
    found = [query.answers().schema.field(name).metadata[b"error"].decode() for name in "abcdef"]
    assert found == [
        "estimates: relative 3.1 % at 95 % (standard error 1.6 %); exact up to 4096 values",
        "estimates: relative 13 % at 95 % (standard error 6.3 %); exact up to 256 values",
        "estimates: relative 13 % at 95 % (standard error 6.5 %)",
        "quantiles: rank 1 % of the values",
        "quantiles: rank 13 % of the values",
        "bounds of counts: at most 0.098 % of the values apart",
    ]
    assert "theta synopsis; the smallest hashes of a pane and group are kept" in query.explain()
