"""What users see of the optimizer: EXPLAIN, the switch, and what joins with relations forbid."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

import windrow
from windrow.language.binder import bind
from windrow.optimizer.place_negation import moves
from windrow.optimizer.rules import optimized
from windrow.optimizer.walking import variants
from windrow.plan.build import build

DISTINCT = "SELECT DISTINCT p.a FROM p [RANGE 1000], q [RANGE 1000] WHERE p.a = q.a"
UNLESS = "NOT EXISTS (SELECT * FROM r [RANGE 30] AS y WHERE y.a = x.a)"


def database(*, optimizer: bool = True) -> windrow.Database:
    db = windrow.connect(optimizer=optimizer)
    for name in "pqr":
        db.execute(f"CREATE STREAM {name} (t BIGINT, a INT, b BIGINT) TIME t")
    db.execute("CREATE RELATION old (a INT, n STRING); CREATE RELATION fixed (a INT, n STRING) KEY (a) NON RETROACTIVE")
    return db


def test_explain_tells_what_was_done_and_what_it_saves() -> None:
    query = database().query(DISTINCT)
    for text in (query.explain(), database().execute(f"EXPLAIN {DISTINCT}")):
        assert text.split("\n\n")[0].count("δ distinct") == 3
        told = re.search(
            r"optimizer: duplicates eliminated below a join, estimated cost (\S+) instead of (\S+) per", text
        )
        assert told is not None
        cost, instead = (float(one.replace(",", "")) for one in told.groups())
        assert cost < instead


def test_without_the_optimizer_queries_run_as_written() -> None:
    query = database(optimizer=False).query(DISTINCT)
    assert query.explain().split("\n\n")[0].count("δ distinct") == 1
    assert "optimizer:" not in query.explain()


def test_explain_tells_the_order_of_a_join() -> None:
    db = database()
    query = db.query(
        "SELECT x.b FROM p [RANGE 50] AS x, q [RANGE 50] AS y, r [RANGE 50] AS z WHERE x.a = y.a AND y.a = z.a"
    )
    assert "join: order x, y, z, until rates are known" in query.explain()
    for tick in range(0, 4000, 10):
        ticks = pa.array(range(tick, tick + 10))
        for name, keys in (("p", [1] * 10), ("q", [1] * 10), ("r", range(tick + 2, tick + 12))):
            db.push(name, pa.table({"t": ticks, "a": pa.array(keys, pa.int32()), "b": ticks}))
    assert re.search(r"join: order z, x, y, estimated cost \S+ per unit time \(others: x, y, z: \S+\)", query.explain())


@pytest.mark.parametrize(("relation", "lower"), [("old", False), ("fixed", False), ("q [RANGE 30]", True)])
def test_no_negation_is_pushed_below_a_join_with_a_relation(relation: str, lower: bool) -> None:
    text = f"SELECT x.b FROM p [RANGE 30] AS x, {relation} AS w WHERE x.a = w.a AND {UNLESS}"
    assert bool(variants(build(bind(text, database().catalog)), moves)) == lower


def test_nothing_but_selections_moves_across_a_non_retroactive_relation() -> None:
    inner = f"SELECT x.a AS a, x.b AS b FROM p [RANGE 30] AS x WHERE {UNLESS}"
    text = f"SELECT DISTINCT z.b FROM ({inner}) AS z, fixed WHERE z.a = fixed.a AND z.b > 1"
    _, notes = optimized(build(bind(text, database().catalog)))
    assert [sentence.split(",")[0] for _, sentence in notes] == ["selections pushed down"]
    retroactive = text.replace("fixed", "old")
    _, notes = optimized(build(bind(retroactive, database().catalog)))
    assert "subqueries merged into the query" in notes[0][1]
