"""Tuples that no window of a query can use do not travel, and nothing changes without them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import windrow
from tests.flow.random_flows import SQL_COLUMNS, STREAMS, flows, streams
from windrow.sliced import pack, unpack
from windrow.slicer import Slicer
from windrow.testing import Reference, assert_same, cut

TABLE = pa.table(
    {
        "t": pa.array(range(40), pa.int64()),
        "a": pa.array([None if i % 9 == 0 else i % 4 for i in range(40)], pa.int32()),
        "b": pa.array(range(40), pa.int64()),
        "s": ["xy"[i % 2] for i in range(40)],
    }
)


def database(*texts: str) -> windrow.Database:
    db = windrow.connect()
    for name in STREAMS:
        db.execute(f"CREATE STREAM {name} {SQL_COLUMNS}")
    for text in texts:
        db.query(text)
    return db


def through_workers(db: windrow.Database, name: str, piece: pa.Table) -> int:
    """As a run does it; gives the number of rows that travelled."""
    engine = db._engine
    job = engine.job(name)
    worker = Slicer(job.text)
    worker.begin(engine.streams[name].watermark.value)
    worker.take(piece.select(list(job.columns)))
    sliced = unpack(pa.Table.from_batches(list(pack(worker.result()))))
    engine.absorb(name, job, sliced)
    return sum(table.num_rows for table in sliced.tuples)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("SELECT x.a FROM p [RANGE 5] AS x, q [RANGE 5] AS y WHERE x.a = y.a AND x.s = 'x' AND x.b > 3",
         {"p": ["(s = 'x') AND (b > 3)"], "q": [None]}),
        ("SELECT a FROM p [RANGE 5] WHERE s = 'x' EXCEPT SELECT a FROM p [RANGE 5] WHERE s = 'y'",
         {"p": ["(s = 'x')", "(s = 'y')"]}),
        ("SELECT x.a FROM p [RANGE 5] AS x WHERE NOT EXISTS (SELECT * FROM q [NOW] AS y WHERE y.a = x.a AND y.b > 1)",
         {"p": [None], "q": ["(b > 1)"]}),
        ("SELECT a FROM p [ROWS 5] WHERE s = 'x'", {"p": [None]}),
        ("SELECT z.a FROM (SELECT a FROM p [RANGE 5] WHERE b = 1) AS z, q [RANGE 3] AS w WHERE z.a = w.a AND z.a > 1",
         {"p": ["(b = 1) AND (a > 1)"], "q": [None]}),
        ("SELECT s, COUNT(*) AS n FROM p [RANGE 5] WHERE a IN (1, 2) GROUP BY s", {"p": ["(a IN (1, 2))"]}),
        ("SELECT x.a FROM p [RANGE 5] AS x LEFT JOIN q [RANGE 5] AS y ON x.a = y.a AND x.b > 7", {"p": [None]}),
    ],
)  # fmt: skip
def test_the_selections_above_the_windows(text: str, wanted: dict[str, list[str | None]]) -> None:
    engine = database(text)._engine
    for name, expected in wanted.items():
        assert [None if one is None else one.sql("cql") for one in engine.flows.kept_rows(name)] == expected


def test_only_wanted_rows_and_columns_travel() -> None:
    db = database("SELECT x.b FROM p [RANGE 5] AS x, q [RANGE 5] AS y WHERE x.b = y.b AND x.a = 1",
                  "SELECT s, SUM(b) AS v FROM p [RANGE 4 SLIDE 4] GROUP BY s")  # fmt: skip
    # NULLs come too: another part of the condition might fail there.
    assert through_workers(db, "p", TABLE) == TABLE["a"].to_pylist().count(1) + TABLE["a"].null_count
    assert db._engine.flows.kept_columns(db._engine.streams["p"].stream) == {"t", "a", "b"}
    db.query("SELECT a FROM p [ROWS 3]")
    assert through_workers(db, "p", TABLE.set_column(0, "t", pa.array(range(100, 140), pa.int64()))) == 40


def test_a_query_without_groups_begins_with_its_stream() -> None:
    """Its first answer is a count of nothing, at a tuple that does not travel."""
    text = "SELECT COUNT(*) AS n FROM p [RANGE 6] WHERE b > 20"
    db = database(text)
    (query,) = db.queries()
    assert through_workers(db, "p", TABLE.slice(0, 30)) == 9
    assert through_workers(db, "p", TABLE.slice(30)) == 10
    db.finish()
    expected = Reference(query.bound, {"p": TABLE}).answers()
    assert expected.slice(0, 1).to_pylist() == [{"_time": 0, "_change": "+", "n": 0}]
    assert_same(query.answers(), expected)


def test_a_query_that_came_later_begins_with_the_first_tuple_that_it_knows() -> None:
    db = database("SELECT a FROM p [RANGE 6] WHERE b > 100")
    assert through_workers(db, "p", TABLE.slice(0, 10)) == 0
    later = db.query("SELECT COUNT(*) AS n FROM p [RANGE 6] WHERE b > 20", name="later")
    assert through_workers(db, "p", TABLE.slice(10, 5)) == 5
    assert through_workers(db, "p", TABLE.slice(15)) == 19  # it has begun
    db.finish()
    assert_same(later.answers(), Reference(later.bound, {"p": TABLE}, since=9, start=9).answers())


@given(text=flows(), tables=streams(), seed=st.integers(0, 99))
def test_answers_are_those_of_the_reference(text: str, tables: dict[str, pa.Table], seed: int) -> None:
    db = database()
    try:
        query = db.query(text)
    except windrow.Error:
        assume(False)
        raise
    assume(any(one is not None for name in query.running.streams for one in db._engine.flows.kept_rows(name)))
    pieces = [(name, piece) for name, table in tables.items() for piece in cut(table, seed, 3)]
    for name, piece in pieces:
        through_workers(db, name, piece)
    db.finish()
    assert_same(query.answers(), Reference(query.bound, tables).answers(), absolute=1e-9)
