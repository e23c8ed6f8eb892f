"""Queries in shards: an engine that passes everything on gives the answers of one that does it all itself."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import windrow
from tests.flow.random_flows import SQL_COLUMNS, STREAMS, flows, streams
from tests.flow.test_answers import database
from tests.shards.local_shards import LocalShards
from windrow.testing import assert_same

JOIN = "SELECT x.b, y.s FROM p [RANGE 5] AS x, q [RANGE 8] AS y WHERE x.a = y.a"


def rows(ticks: list[int], keys: list[int], b: int = 1, s: str = "x") -> pa.Table:
    return pa.table({
        "t": ticks, "a": pa.array(keys, pa.int32()), "b": pa.array([b] * len(keys), pa.int64()), "s": [s] * len(keys)
    })  # fmt: skip


@given(
    text=flows(),
    tables=streams(),
    ends=st.lists(st.integers(0, 40), max_size=5),
    shards=st.integers(1, 4),
    reload=st.booleans(),
    late_start=st.booleans(),
)
def test_random_queries(
    text: str, tables: dict[str, pa.Table], ends: list[int], shards: int, reload: bool, late_start: bool
) -> None:
    here, there = database(), database()
    local = LocalShards(there, shards, STREAMS)
    queries: list[windrow.Query] = []

    def register() -> None:
        try:
            queries.extend(db.query(text, name="question") for db in (here, there))
        except windrow.Error:
            assume(False)
        assume(local.remote("question") is not None)
        local.deliver()

    if not late_start:
        register()
    before = -1
    for end in [*sorted(set(ends)), 1 << 40]:
        for name, table in tables.items():
            ticks = table["t"].to_numpy()
            piece = table.filter(pa.array((ticks > before) & (ticks <= end)))
            for db in (here, there):
                db.push(name, piece)
            local.deliver()
            if reload:
                local.reload()
        if late_start and not queries:
            register()
        before = end
    for db in (here, there):
        db.finish()
    local.deliver()
    assert_same(queries[1].answers(), queries[0].answers(), absolute=1e-9)


def test_queries_come_and_go() -> None:
    db = database()
    local = LocalShards(db, 3, STREAMS)
    first = db.query(JOIN, name="first")
    db.push("p", rows([1, 2, 3], [1, 2, 3]))
    db.push("q", rows([1, 2, 3], [1, 2, 3]))
    local.deliver()
    second = db.query(JOIN, name="second")
    db.push("p", rows([4, 5], [4, 1]))
    db.push("q", rows([4, 5], [4, 1]))
    local.deliver()
    db.drop("first")
    local.deliver()
    db.finish()
    local.deliver()
    assert first.status == "dropped"
    assert all("first" not in shard._flows and "second" in shard._flows for shard in local.shards)
    assert first.answers()["_time"].to_pylist() == [1, 2, 3, 4]
    assert second.answers()["_time"].to_pylist() == [4, 5]


def test_a_query_that_fails_in_one_shard_stops_alone() -> None:
    db = database()
    local = LocalShards(db, 4, STREAMS)
    text = "SELECT x.a, CAST(x.s AS INT) AS v FROM p [RANGE 5] AS x, q [RANGE 5] AS y WHERE x.a = y.a"
    bad = db.query(text, name="bad")
    good = db.query(JOIN, name="good")
    db.push("q", rows([1, 2, 3, 4], [1, 2, 3, 4]))
    db.push("p", rows([1, 2, 3], [1, 2, 9], s="7"))
    local.deliver()
    db.push("p", rows([3, 4], [3, 4]))
    local.deliver()
    db.finish()
    local.deliver()
    assert bad.status == "stopped" and "cannot be converted" in str(bad.error)
    assert bad.answers()["_time"].to_pylist() == [1, 2]
    assert good.status == "running"
    assert good.answers().num_rows > 3


def test_relations_are_whole_in_every_shard() -> None:
    here, there = windrow.connect(), windrow.connect()
    for db in (here, there):
        db.execute(f"CREATE STREAM p {SQL_COLUMNS}")
        db.execute("CREATE RELATION names (a INT, name TEXT)")
        db.update("names", insert=pa.table({"a": pa.array([1, 2], pa.int32()), "name": ["one", "two"]}))
    local = LocalShards(there, 3, ["p"])
    text = "SELECT x.a, x.b, n.name FROM p [RANGE 6] AS x, names AS n WHERE x.a = n.a"
    queries = [db.query(text, name="named") for db in (here, there)]
    assert local.remote("named") is not None
    for step in range(8):
        for db in (here, there):
            db.push("p", rows([3 * step, 3 * step + 1, 3 * step + 1], [1, 2, 3], b=step))
            if step == 3:
                db.update("names", insert=pa.table({"a": pa.array([3], pa.int32()), "name": ["three"]}), time=12)
            if step == 5:
                db.update("names", delete=pa.table({"a": pa.array([1], pa.int32())}), time=18)
        local.deliver()
    for db in (here, there):
        db.finish()
    local.deliver()
    assert_same(queries[1].answers(), queries[0].answers())
    assert "three" in queries[1].answers()["name"].to_pylist()


def test_queries_that_stay_keep_their_relations() -> None:
    db = windrow.connect()
    db.execute(f"CREATE STREAM p {SQL_COLUMNS}")
    db.execute("CREATE RELATION names (a INT, name TEXT)")
    db.update("names", insert=pa.table({"a": pa.array([1, 2], pa.int32()), "name": ["one", "two"]}))
    query = db.query("SELECT COUNT(*) AS n FROM p [RANGE 6] AS x, names AS n WHERE x.a = n.a", name="counted")
    local = LocalShards(db, 3, ["p"])
    assert local.remote("counted") is None
    db.push("p", rows([1, 2, 3], [1, 2, 3]))
    db.finish()
    assert query.answers().to_pylist()[-1]["n"] == 2


def test_posts_in_any_order_and_twice() -> None:
    from windrow.shards.calls import posts

    db = database()
    local = LocalShards(db, 1, STREAMS)
    query = db.query(JOIN, name="joined")
    packed = [local._outbox.take()]
    for tick in (1, 2, 3):
        db.push("p", rows([tick], [1]))
        db.push("q", rows([tick], [1]))
        packed.append(local._outbox.take())
    own = [posts([tuple(row.values())[1:] for row in one.to_pylist()])[0] for one in packed if one is not None]
    shard = local.shards[0]
    assert not shard.take(own[2]) and not shard.take(own[1]) and not shard.complete
    said = shard.take(own[0])
    assert shard.complete and {one.post for one in said} == {2}
    assert not shard.take(own[1])
    assert {one.post for one in shard.take(own[3])} == {3}
    assert query.status == "running"


def test_nothing_is_told_between_runs() -> None:
    db = database()
    local = LocalShards(db, 2, STREAMS)
    db.query(JOIN, name="joined")
    local._outbox.open = False
    with pytest.raises(windrow.StateError, match="lives in the shards of a run"):
        db.push("p", rows([1], [1]))
