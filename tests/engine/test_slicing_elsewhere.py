"""Rows that workers have sliced and the engine absorbs give the answers of rows that are pushed."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow
from tests.random_queries import TICKS, queries, tables
from windrow.engine import Engine
from windrow.sliced import pack, pack_error, unpack
from windrow.slicer import Slicer
from windrow.testing import assert_same, cut


def absorb(engine: Engine, name: str, parts: list[pa.Table]) -> None:
    """What the pipeline does with a micro-batch of several partitions."""
    job = engine.job(name)
    packed = []
    for part in parts:
        worker = Slicer(job.text)
        worker.begin(engine.streams[name].watermark.value)
        late = worker.take(part.select(list(job.columns)))
        if late is not None:
            worker.keep_late(part.filter(pa.array(late)))
        packed += list(pack(worker.result()))
    engine.absorb(name, job, unpack(pa.Table.from_batches(packed)))


def database(texts: list[str], lateness: int = 0) -> windrow.Database:
    db = windrow.connect()
    db.stream("s", TICKS, time="t", lateness=lateness)
    for number, text in enumerate(texts):
        db.query(text, name=f"q{number}")
    return db


def outcome(db: windrow.Database) -> dict[str, Any]:
    metrics = db.metrics()["streams"]["s"]
    return {
        "counters": [metrics[name] for name in ("read", "late", "batches", "watermark")],
        "late": db.late("s").to_pylist(),
        "status": [(query.status, str(query.error)) for query in db.queries()],
        "due": [query.metrics()["due"] for query in db.queries()],
    }


@given(
    tables(),
    st.lists(queries(), min_size=1, max_size=4),
    st.integers(0, 2**32),
    st.integers(1, 4),
    st.integers(1, 4),
    st.booleans(),
)
def test_same_as_pushed(
    table: pa.Table, texts: list[str], seed: int, batches: int, partitions: int, disorder: bool
) -> None:
    pushed, absorbed = database(texts), database(texts)
    pieces = cut(table, seed, batches)
    if disorder:  # late rows
        pieces.reverse()
    for number, piece in enumerate(pieces):
        # A query that cannot go on is stopped, which `outcome` compares.
        with suppress(windrow.QueryError):
            pushed.push("s", piece)
        with suppress(windrow.QueryError):
            absorb(absorbed._engine, "s", cut(piece, seed + number, partitions))
    pushed.finish()
    absorbed.finish()
    ours, theirs = outcome(absorbed), outcome(pushed)
    for key in ("late", "status"):
        assert sorted(map(repr, ours.pop(key))) == sorted(map(repr, theirs.pop(key)))
    assert ours == theirs
    for one, other in zip(absorbed.queries(), pushed.queries(), strict=True):
        assert_same(one.answers(), other.answers(), absolute=1e-9)


def test_queries_come_and_go_between_batches() -> None:
    texts = [
        "SELECT s, SUM(a) AS v FROM s [RANGE 10 SLIDE 5] GROUP BY s",
        "SELECT COUNT(*) AS n FROM s [RANGE 6 SLIDE 2]",
    ]
    later = "SELECT s, MAX(s) AS m, COUNT(a) AS n FROM s [RANGE 9 SLIDE 3] GROUP BY s"
    table = pa.table(
        {"t": range(60), "a": [t % 3 - 1 for t in range(60)], "s": ["uvw"[t % 3] for t in range(60)]},
        pa.schema([("t", pa.int64()), ("a", pa.int64()), ("s", pa.string())]),
    )
    results = []
    for feed in (lambda db, piece: db.push("s", piece), lambda db, piece: absorb(db._engine, "s", cut(piece, 1, 3))):
        db = windrow.connect()
        db.stream("s", table.schema, time="t")
        handles = [db.query(text, name=f"q{i}") for i, text in enumerate(texts)]
        feed(db, table.slice(0, 20))
        handles.append(db.query(later, name="later"))
        feed(db, table.slice(20, 13))
        db.drop("q0")
        feed(db, table.slice(33, 10))
        handles.append(db.query(texts[0], name="again"))
        feed(db, table.slice(43))
        db.finish()
        results.append([handle.answers() for handle in handles])
    for ours, theirs in zip(*results, strict=True):
        assert ours.num_rows
        assert_same(ours, theirs)


def test_a_value_that_fails_stops_its_queries_only() -> None:
    db = windrow.connect()
    db.execute("CREATE STREAM s (t BIGINT, a BIGINT) TIME t")
    good = db.query("SELECT MAX(a) AS v FROM s [RANGE 10 SLIDE 5]")
    bad = db.query("SELECT SUM(a * a) AS v FROM s [RANGE 10 SLIDE 5]")
    table = pa.table({"t": [1, 7], "a": [1 << 40, 2]})
    with pytest.raises(windrow.QueryError, match="query_2 was stopped"):
        absorb(db._engine, "s", [table])
    db.finish()
    assert (good.status, bad.status) == ("running", "stopped")
    assert good.answers().column("v").to_pylist() == [1 << 40, 1 << 40]


def test_bad_input_travels_as_a_row() -> None:
    row = pack_error(windrow.InputError("file x: expected BIGINT"))
    with pytest.raises(windrow.InputError, match="file x"):
        unpack(pa.Table.from_batches([row]))


def test_a_wrong_timestamp_is_refused_before_anything_is_taken_in() -> None:
    db = windrow.connect()
    db.execute("CREATE STREAM s (t BIGINT, a BIGINT) TIME t")
    db.query("SELECT MAX(a) AS v FROM s [RANGE 10 SLIDE 5]")
    with pytest.raises(windrow.InputError, match="Nothing was taken in"):
        absorb(db._engine, "s", [pa.table({"t": [1, 1 << 62], "a": [1, 2]})])
    assert db.metrics()["streams"]["s"]["read"] == 0
