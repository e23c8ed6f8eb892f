"""Continuous queries, joins, negation, set operations: net changes equal the reference's at every instant."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import windrow
from tests.flow.random_flows import SQL_COLUMNS, STREAMS, flows, streams
from windrow.testing import Reference, assert_same

STRATEGIES = ("upa", "nt", "direct")
EARLY = -1000


def database(lateness: int = 0, *, optimizer: bool = True) -> windrow.Database:
    db = windrow.connect(optimizer=optimizer)
    for name in STREAMS:
        db.execute(f"CREATE STREAM {name} {SQL_COLUMNS} LATENESS {lateness}")
    return db


def disordered(table: pa.Table, lateness: int, seed: int) -> tuple[pa.Table, np.ndarray]:
    """The tuples in an order of arrival in which none is late, and when each arrives."""
    ticks = table["t"].to_numpy()
    arrival = ticks + np.random.default_rng(seed).integers(0, lateness + 1, len(ticks))
    order = np.argsort(arrival, kind="stable")
    return table.take(pa.array(order)), arrival[order]


def push_in_pieces(db: windrow.Database, tables: dict[str, pa.Table], ends: list[int], lateness: int) -> None:
    """All tuples, cut where the time of arrival passes these instants; streams take turns."""
    before = EARLY
    arriving = {name: disordered(table, lateness, seed) for seed, (name, table) in enumerate(tables.items())}
    for end in [*sorted(set(ends)), 1 << 40]:
        for name, (table, arrival) in arriving.items():
            db.push(name, table.filter(pa.array((arrival > before) & (arrival <= end))))
        before = end


@given(
    text=flows(),
    tables=streams(),
    ends=st.lists(st.integers(-9, 40), max_size=5),
    lateness=st.sampled_from([0, 0, 3, 50]),
)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_answers_are_those_of_the_reference(
    strategy: str, text: str, tables: dict[str, pa.Table], ends: list[int], lateness: int
) -> None:
    expected = None
    for optimizer in (True, False):
        db = database(lateness, optimizer=optimizer)
        try:
            query = db.query(text, strategy=strategy)
        except windrow.Error:
            assert expected is None  # what runs does not depend on the optimizer
            assume(False)
            raise
        push_in_pieces(db, tables, ends, lateness)
        db.finish()
        assert query.status == "running"
        assert all(db.late(name).num_rows == 0 for name in STREAMS)
        expected = Reference(query.bound, tables).answers() if expected is None else expected
        assert_same(query.answers(), expected, absolute=1e-9)


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


@pytest.mark.parametrize("beat", [None, 3, 4, 9])
@pytest.mark.parametrize("text", ["SELECT {} FROM p [ROWS 2 SLIDE 3]", "ISTREAM(SELECT {} FROM p [ROWS 2 SLIDE 3])"])
def test_the_rest_of_a_slide_comes_once_whatever_a_heartbeat_had_answered(beat: int | None, text: str) -> None:
    """Operators do what panes do: an instant that is answered already stays as it is, and the rest comes after it."""
    db = database()
    listed, summed = db.query(text.format("b")), db.query("SELECT SUM(b) AS v FROM p [ROWS 2 SLIDE 3]")
    db.push("p", pa.table({"t": [1, 2, 4, 4], "a": pa.nulls(4, pa.int32()), "b": [1, 2, 4, 8], "s": ["x"] * 4}))
    if beat is not None:
        db.advance("p", beat)
    db.finish()
    early = beat is not None and beat >= 4
    assert summed.answers().to_pylist() == ([{"_time": 4, "v": 6}] if early else []) + [{"_time": 4 + early, "v": 12}]
    shown = [(row["_time"], row["b"]) for row in listed.answers().to_pylist()]
    again = [] if "ISTREAM" in text else [(5, 4)]
    assert shown == ([(4, 2), (4, 4), *again, (5, 8)] if early else [(4, 4), (4, 8)])
