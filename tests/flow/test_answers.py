"""Continuous queries, joins, negation, set operations: net changes equal the reference's at every instant."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import windrow
from tests.flow.random_flows import SQL_COLUMNS, STREAMS, flows, streams
from windrow.testing import Reference, assert_same

STRATEGIES = ("upa", "nt", "direct")


def database() -> windrow.Database:
    db = windrow.connect()
    for name in STREAMS:
        db.execute(f"CREATE STREAM {name} {SQL_COLUMNS}")
    return db


def push_in_pieces(db: windrow.Database, tables: dict[str, pa.Table], ends: list[int]) -> None:
    """All tuples, cut at these instants; streams take turns."""
    before = -1
    for end in [*sorted(set(ends)), 1 << 40]:
        for name, table in tables.items():
            ticks = table["t"].to_numpy()
            db.push(name, table.filter(pa.array((ticks > before) & (ticks <= end))))
        before = end


@given(text=flows(), tables=streams(), ends=st.lists(st.integers(0, 40), max_size=5))
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_answers_are_those_of_the_reference(
    strategy: str, text: str, tables: dict[str, pa.Table], ends: list[int]
) -> None:
    db = database()
    try:
        query = db.query(text, strategy=strategy)
    except windrow.Error:
        assume(False)
        raise
    push_in_pieces(db, tables, ends)
    db.finish()
    assert query.status == "running"
    assert_same(query.answers(), Reference(query.bound, tables).answers(), absolute=1e-9)


def test_a_wrong_timestamp_is_refused_before_it_costs_anything() -> None:
    db = database()
    query = db.query("SELECT x.a, y.b FROM p [RANGE 5 SLIDE 1] AS x, q [RANGE 5 SLIDE 1] AS y WHERE x.a = y.a")
    row = {"t": [1], "a": pa.array([1], pa.int32()), "b": [1], "s": ["x"]}
    for name in STREAMS:
        db.push(name, pa.table(row))
    with pytest.raises(windrow.InputError, match="answers due at once"):
        db.push("p", pa.table({**row, "t": [1 << 50]}))
    db.finish()
    assert query.answers().to_pydict()["_time"] == [1]
