"""State never exceeds what the windows justify, and what goes wrong in one query stops that query alone."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import windrow
from windrow.flow import rows_leaf
from windrow.operators import counted, distinct, group_by, join, nrr_join
from windrow.state import buffer, codes, held_rows, slot_column

SPARED = [
    (rows_leaf, "SPARE"),
    (codes, "FEW"),
    (counted, "FEW"),
    (distinct, "FEW"),
    (group_by, "FEW"),
    (held_rows, "FEW"),
    (buffer, "SPARE"),
    (slot_column, "SPARE"),
]
"""What is never worth cleaning up; here it is, so that a short run shows whether it is done."""
STEPS, EACH, RANGE = 120, 10, 100
"""One tuple per tick, in steps of ten: a window of 100 ticks holds 100 tuples."""
QUERIES = {
    "select": ("SELECT a FROM s [RANGE 100] WHERE a > 2", 2),
    "distinct": ("SELECT DISTINCT a FROM s [RANGE 100]", 2),
    "strict distinct": ("SELECT DISTINCT a FROM s [ROWS 100]", 5),
    "join": ("SELECT x.a FROM s [RANGE 100] AS x, u [RANGE 100] AS y WHERE x.k = y.k", 5),
    "negation": ("SELECT a FROM s [RANGE 100] EXCEPT ALL SELECT a FROM u [RANGE 50]", 6),
    "not exists": (
        "SELECT a FROM s [RANGE 100] AS x WHERE NOT EXISTS (SELECT * FROM u [RANGE 50] AS y WHERE y.k = x.k)",
        12,
    ),
    "group": ("SELECT a, COUNT(*) AS n FROM s [RANGE 100] GROUP BY a", 4),
    "median": ("SELECT MEDIAN(k) AS n FROM s [RANGE 100]", 4),
    "rows": ("SELECT a FROM s [ROWS 100]", 4),
    "partition": ("SELECT a FROM s [PARTITION BY a ROWS 10]", 4),
    "limit": ("SELECT a, k FROM s [RANGE 100] ORDER BY k LIMIT 5", 4),
    "periodic": ("SELECT x.a FROM s [RANGE 100 SLIDE 10] AS x, u [RANGE 100 SLIDE 10] AS y WHERE x.k = y.k", 5),
    "internal": ("SELECT a FROM s [RANGE 100 INTERNAL]", 2),
    "mixed": ("SELECT x.a FROM s [RANGE 100 INTERNAL] AS x, u [RANGE 100] AS y WHERE x.k = y.k", 7),
    "output window": ("WSTREAM(SELECT a FROM s [RANGE 100]) [ROWS 50]", 4),
    "subquery": ("SELECT COUNT(*) AS n FROM (ISTREAM(SELECT a FROM s [RANGE 100])) [RANGE 100]", 5),
    "relation": ("SELECT x.a FROM s [RANGE 100] AS x, names AS n WHERE x.a = n.a", 5),
    "nrr": ("SELECT x.k FROM s [ROWS 100] AS x, prices AS n WHERE x.k = n.a", 6),
}


def database() -> windrow.Database:
    db = windrow.connect()
    db.execute("CREATE STREAM s (t BIGINT, a INT, k BIGINT) TIME t; CREATE STREAM u (t BIGINT, a INT, k BIGINT) TIME t")
    db.execute("CREATE RELATION names (a INT); CREATE RELATION prices (a INT) NON RETROACTIVE")
    return db


def tuples(step: int) -> pa.Table:
    """Every k is new, so that a key that nobody forgets is found."""
    ticks = np.arange(step * EACH, (step + 1) * EACH)
    return pa.table({"t": ticks, "a": pa.array(ticks * 7 % 11, pa.int32()), "k": ticks})


@pytest.mark.parametrize("strategy", ["upa", "nt", "direct"])
@pytest.mark.parametrize("kind", QUERIES)
def test_state_is_bounded_by_the_windows(kind: str, strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in SPARED:
        monkeypatch.setattr(module, name, 64)
    text, copies = QUERIES[kind]
    db = database()
    query = db.query(text, name="mine", strategy=strategy)
    sizes, counts = [], []
    for step in range(STEPS):
        if step % 10 == 0:
            at = step * EACH
            for name in ("names", "prices"):
                db.update(
                    name, [{"a": step % 11}], db.relation(name).slice(0, 1).to_pylist() if step else None, time=at
                )
        for name in ("s", "u"):
            db.push(name, tuples(step))
        query.take()
        metrics = db.metrics()["queries"]["mine"]
        counts.append(metrics["state_rows"])
        sizes.append(metrics["state_bytes"])
    steady = counts[2 * RANGE // EACH :]
    assert 0 < max(steady) <= copies * (RANGE + 3 * EACH), max(steady)
    # dead slots are reclaimed in bulk, so bytes go up and down; a leak would show in the last third
    assert max(sizes[2 * STEPS // 3 :]) <= max(sizes[STEPS // 3 : 2 * STEPS // 3]) * 1.2


def test_distinct_keeps_at_most_twice_its_output() -> None:
    db = database()
    db.query("SELECT DISTINCT a FROM s [RANGE 100]", name="mine")
    flow = db._engine.flows.queries["mine"].flow
    (operator,) = [one for one in flow.graph.operators if one.name == "distinct"]
    for step in range(100):
        db.push("s", tuples(step))
        assert operator.rows <= 2 * 11


def test_a_stream_that_falls_silent_is_moved_by_heartbeats() -> None:
    db = database()
    query = db.query("SELECT x.k FROM s [RANGE 100] AS x, u [RANGE 100] AS y WHERE x.k = y.k", name="mine")
    db.push("u", tuples(0))
    waiting = []
    for step in range(20):
        db.push("s", tuples(step))
        waiting.append(db.metrics()["queries"]["mine"]["state_rows"])
    assert query.answers().num_rows == 9  # u is complete up to 8
    assert waiting[-1] >= 190
    db.advance("u", 1000)
    db.advance("s", 1000)
    answers = query.answers().to_pylist()
    assert len([one for one in answers if one["_change"] == "-"]) == 10
    assert db.metrics()["queries"]["mine"]["state_rows"] == 0


@pytest.mark.parametrize(
    "text",
    [
        "SELECT x.a FROM s [RANGE 100] AS x, s [RANGE 100] AS y",
        "SELECT x.a FROM s [RANGE 100] AS x, prices AS n",
        "SELECT x.a FROM s [RANGE 100] AS x LEFT JOIN s [RANGE 100] AS y ON x.a < y.a",
    ],
)
def test_a_join_that_explodes_stops_alone(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (join, nrr_join):
        monkeypatch.setattr(module, "MOST_RESULTS", 500)
        monkeypatch.setattr(module, "AT_ONCE", 50)
    db = database()
    db.update("prices", pa.table({"a": pa.array(range(100), pa.int32())}))
    other = db.query("SELECT DISTINCT a FROM s [RANGE 100]", name="other")
    query = db.query(text, name="mine")
    message = r"query mine was stopped: .*(more than (50|500) (rows|others)|at most 50)"
    with pytest.raises(windrow.QueryError, match=message):
        for step in range(20):
            db.push("s", tuples(step))
    assert (query.status, other.status) == ("stopped", "running")
    before = other.answers().num_rows
    db.push("s", tuples(30))
    db.finish()
    assert other.answers().num_rows > before
    assert "condition" in str(query.error) or "join on more columns" in str(query.error)


def test_large_batches_with_a_relation_are_joined_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nrr_join, "AT_ONCE", 50)
    db = database()
    db.update("prices", pa.table({"a": pa.array([1, 1, 2], pa.int32())}))
    query = db.query("SELECT x.k FROM s [RANGE 100] AS x, prices AS n WHERE x.a = n.a")
    db.push("s", pa.concat_tables([tuples(step) for step in range(11)]))
    db.finish()
    assert query.status == "running"
    assert sum(one["_change"] == "+" for one in query.answers().to_pylist()) == 30


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 10 % a AS c FROM s [RANGE 100]",
        "SELECT k FROM s [RANGE 100] WHERE 10 % a = 1",
        "SELECT x.k FROM s [RANGE 100] AS x, s [RANGE 50] AS y WHERE x.k = y.k AND 10 % (x.a + y.a) = 1",
        "SELECT k FROM s [RANGE 100] AS x WHERE NOT EXISTS (SELECT * FROM u [NOW] AS y WHERE y.k = 10 % x.a)",
        "SELECT SUM(k * 1000000000000000000) AS c FROM s [RANGE 100]",
    ],
)
def test_an_expression_without_a_value_stops_its_query_alone(text: str) -> None:
    db = database()
    other = db.query("SELECT a FROM s [RANGE 100]", name="other")
    query = db.query(text, name="mine")
    told = []
    for name, step in [(name, step) for step in range(3) for name in ("s", "u")]:
        try:
            db.push(name, tuples(step))
        except windrow.QueryError as error:  # noqa: PERF203 - which push tells it is not the point
            told.append(str(error))
    assert len(told) == 1 and told[0].startswith("query mine was stopped: "), told
    assert other.status == "running" and other.answers().num_rows == 29
    assert query.status == "stopped"
    assert "status: stopped" in query.explain()
    assert query.metrics()["state_rows"] == 0


def test_an_input_error_leaves_everything_as_it_was() -> None:
    db = database()
    query = db.query("SELECT COUNT(*) AS n FROM s [RANGE 100 SLIDE 1] AS x, u [RANGE 9 SLIDE 1] AS y", name="mine")
    db.push("s", tuples(0))
    db.push("u", tuples(0))
    before, answers = db.metrics(), query.answers()
    with pytest.raises(windrow.InputError, match="is a timestamp wrong"):
        db.push("s", pa.table({"t": [1 << 60], "a": pa.array([1], pa.int32()), "k": [1]}))
    with pytest.raises(windrow.InputError):
        db.push("s", pa.table({"t": [11], "a": ["x"], "k": [1]}))
    after = db.metrics()
    assert after["queries"] == before["queries"] and query.answers().equals(answers)
    assert query.status == "running"


@pytest.mark.parametrize(
    "text",
    [
        "ISTREAM(SELECT TOP_K(v, 2) AS t FROM s [RANGE 5 SLIDE 5])",
        "SELECT k, TOP_K(v, 2) AS t FROM s [RANGE 5] GROUP BY k",
        "SELECT INTERVAL 1 DAY AS z FROM s [RANGE 5]",
    ],
)
def test_what_cannot_be_compared_is_refused(text: str) -> None:
    db = windrow.connect()
    db.execute("CREATE STREAM s (t BIGINT, k INT, v INT) TIME t")
    with pytest.raises(windrow.UnsupportedError, match="cannot compare"):
        db.query(text)


def test_frequent_is_told_where_it_runs() -> None:
    db = windrow.connect()
    db.execute("CREATE STREAM s (t BIGINT, k INT, v INT) TIME t")
    with pytest.raises(windrow.UnsupportedError, match="FREQUENT keeps a list per SLIDE, so it runs over one window"):
        db.query("SELECT FREQUENT(x.v, 2) FROM s [RANGE 4 SLIDE 2] AS x, s [RANGE 4 SLIDE 2] AS y WHERE x.k = y.k")


@pytest.mark.parametrize("rows", [5, [1], [{"k": 1, "n": 5}], [{"k": "x", "n": "y"}], [{"k": 1}]])
def test_rows_that_do_not_fit_a_relation(rows: object) -> None:
    db = windrow.connect()
    db.execute("CREATE RELATION r (k INT, n STRING) KEY (k)")
    with pytest.raises(windrow.InputError, match="Nothing was changed"):
        db.update("r", insert=rows)


@pytest.mark.parametrize("window", ["ROWS 20 OFFSET 10", "ROWS 20 SLIDE 10", "PARTITION BY a ROWS 1 OFFSET 1"])
def test_deleted_rows_of_a_relation_are_forgotten_beside_windows_that_wait(window: str) -> None:
    db = database()
    query = db.query(f"SELECT x.k FROM s [{window}] AS x, prices AS n WHERE x.a = n.a", name="mine")
    (joined,) = [one for one in db._engine.flows.queries["mine"].flow.graph.operators if one.name == "nrr join"]
    db.push("s", pa.table({"t": [-1], "a": pa.array([99], pa.int32()), "k": [0]}))  # its key never comes again
    sizes = []
    for step in range(STEPS):
        before = db.relation("prices").to_pylist()
        db.update("prices", [{"a": step % 11}], before or None, time=step * EACH)
        db.push("s", tuples(step))
        sizes.append(len(joined._start))
    assert query.status == "running" and query.answers().num_rows
    assert max(sizes[STEPS // 2 :]) <= 60, max(sizes)
