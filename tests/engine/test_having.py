"""HAVING that is decided in the panes: the same answers by scanning and by a substream filter."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow
from tests.random_queries import TICKS, tables, windows
from windrow.plan.threshold import GREATEST, LEAST, threshold_of
from windrow.synopses import candidate_search, extreme_search, share_group
from windrow.synopses.sum_search import SumSearch
from windrow.testing import Reference, assert_same, cut

HAVINGS = [
    "COUNT(*) > 2",
    "COUNT(*) < 3",
    "2 <= COUNT(*)",
    "COUNT(*) <= 2 AND a > 0",
    "COUNT(*) = 2",
    "SUM(a) > 3",
    "SUM(a) >= 1 AND COUNT(*) > 1",
    "SUM(a) < 2",
    "SUM(a) > -2",
    "COUNT(x) > 1",
    "COUNT(x) < 1",
    "SUM(COALESCE(a, 0) * COALESCE(a, 0)) > 4",
    "SUM(CAST(ABS(a) AS BIGINT)) > 5",
    "SUM(COALESCE(b, 0) // 4294967296) > 4",
    "(COUNT(*) > 3 AND MAX(a) > 1)",
    "SUM(x) > 1",
    "COUNT(DISTINCT s) > 1",
    "COUNT(*) > 1 OR SUM(a) > 3",
    "MAX(a) > 1",
    "MAX(a) < 1",
    "MIN(a) < 0",
    "MIN(a) > 0",
    "MAX(b) > 0",
    "MAX(b) <= 0 AND f",
    "MIN(b) <= -9223372036854775807",
    "MIN(b) >= 1",
    "0 > MAX(b)",
    "MAX(b) = 0",
    "MIN(a) = 1",
    "MAX(x) > 1",
    "MIN(x) < 1 AND MIN(b) < 5",
    "MAX(b) > 0 AND MIN(b) < 0",
]


@st.composite
def filtering(draw: st.DrawFn) -> str:
    """A query with HAVING; several of them share their panes."""
    call = draw(st.sampled_from(["COUNT(*)", "SUM(a)", "MAX(x)", "COUNT(DISTINCT s)", "MIN(s)"]))
    having = draw(st.sampled_from(HAVINGS))
    return f"SELECT a, f, {call} AS v FROM s {draw(windows())} GROUP BY a, f HAVING {having}"


def run(texts: list[str], batches: list[pa.Table], synopsis: str | None = None) -> list[windrow.Query]:
    db = windrow.Database(synopsis=synopsis)
    db.stream("s", TICKS, time="t")
    handles = [db.query(text) for text in texts]
    for batch in batches:
        db.push("s", batch)
    db.finish()
    return handles


@pytest.fixture(params=["scan", "sparse", "filter", "sometimes"])
def chosen(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Few groups are enough, and a filter always pays, or now and then; or pays in a sparse layout."""
    if request.param != "scan":
        monkeypatch.setattr(candidate_search, "FEWEST_GROUPS", 1)
        monkeypatch.setattr(candidate_search, "PUSH", 3.5 if request.param == "sometimes" else 1e-6)
        monkeypatch.setattr(candidate_search, "FIND", 1.5 if request.param == "sometimes" else 1e-6)
    if request.param == "sparse":
        monkeypatch.setattr(share_group, "SMALL", 0)
        monkeypatch.setattr(share_group, "THIN", 0)
    return str(request.param)


@given(table=tables(), texts=st.lists(filtering(), min_size=1, max_size=4), seed=st.integers(0, 99))
def test_answers_are_those_of_the_oracle(chosen: str, table: pa.Table, texts: list[str], seed: int) -> None:
    for query in run(texts, cut(table, seed, 6)):
        assert_same(query.answers(), Reference(query.bound, {"s": table}).answers(), absolute=1e-9)


@given(table=tables(), texts=st.lists(filtering(), min_size=1, max_size=3))
def test_batch_cuts_and_synopses_change_nothing(chosen: str, table: pa.Table, texts: list[str]) -> None:
    whole = run(texts, [table])
    for pieces, synopsis in ((3, None), (20, None), (5, "basic_interval")):
        for ours, theirs in zip(run(texts, cut(table, 7, pieces), synopsis), whole, strict=True):
            assert_same(ours.answers(), theirs.answers(), absolute=1e-9)


def test_groups_that_a_window_leaves_out_touch_no_other_answer(chosen: str) -> None:
    rng = np.random.default_rng(1)
    ticks, keys = np.sort(rng.integers(0, 200, 3000)), (50 * rng.random(3000) ** 3).astype(np.int32)
    table = pa.table({"t": ticks, "k": keys, "v": rng.integers(-50, 50, 3000).astype(np.int32)})
    db = windrow.connect()
    db.execute("CREATE STREAM trades (t BIGINT, k INT, v INT) TIME t")
    what = "k, MIN(v) AS low, MAX(v) AS high, SUM(v / 3.0) AS v"
    queries = [
        db.query(f"SELECT {what} FROM trades [RANGE {length} SLIDE 5] GROUP BY k HAVING COUNT(*) > {count}")
        for length in (10, 40)
        for count in (2, 5)
    ]
    for start in range(0, 3000, 500):
        db.push("trades", table.slice(start, 500))
    db.finish()
    for query in queries:
        assert_same(query.answers(), Reference(query.bound, {"trades": table}).answers(), absolute=1e-9)


def trades(keys: int, rows: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    popular = (keys * rng.random(rows) ** 3).astype(np.int32)
    ticks = np.sort(rng.integers(0, 2000, rows))
    return pa.table({"t": ticks, "k": popular, "v": rng.integers(0, 50, rows).astype(np.int32)})


FORMS = [
    "COUNT(*) > 4",
    "COUNT(*) > 9",
    "SUM(v) > 300",
    "COUNT(*) < 2",
    "MAX(v) > 45",
    "MAX(v) < 9",
    "MIN(v) < 2",
    "MIN(v) > 30",
]


def many(keys: int) -> tuple[windrow.Database, list[windrow.Query]]:
    db = windrow.connect()
    db.execute("CREATE STREAM trades (t BIGINT, k INT, v INT) TIME t")
    queries = [
        db.query(f"SELECT k, SUM(v) AS v FROM trades [RANGE {length} SLIDE 50] GROUP BY k HAVING {having}")
        for length in (100, 400, 1000)
        for having in FORMS
    ]
    return db, queries


def test_a_filter_is_built_used_and_rebuilt_from_the_panes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidate_search, "FEWEST_GROUPS", 100)
    monkeypatch.setattr(candidate_search, "PUSH", 0.01)
    monkeypatch.setattr(candidate_search, "FIND", 0.01)
    table = trades(600, 30_000, seed=5)
    db, queries = many(600)
    batches = [table.filter(pa.array((table["t"].to_numpy() // 100) == i)) for i in range(20)]
    for batch in batches[:12]:
        db.push("trades", batch)
    group = next(iter(db._engine.streams["trades"].slices.values())).group
    assert group is not None
    counts = group.search(queries[0].running.member.limited or 0)
    assert counts is not None and counts.filter is not None and counts.served > 50
    assert "by a substream filter (CI-COUNT, p = 2)" in queries[0].explain()
    assert "by a substream filter (CI-SUM, p = 2)" in queries[2].explain()
    for place, what in ((4, "MAX"), (5, "MAX"), (6, "MIN"), (7, "MIN")):
        assert f"by a substream filter ({what}, 2 thresholds)" in queries[place].explain()
    before = group.nbytes
    counts.filter = None
    assert group.nbytes < before  # the filter counts as state
    other, same = many(600)
    other._engine.restore(*db._engine.snapshot())
    for one in (db, other):
        for batch in batches[12:]:
            one.push("trades", batch)
        one.finish()
    assert "by a substream filter (CI-COUNT, p = 2)" in same[0].explain()  # built anew, from the restored panes
    assert "by a substream filter (MAX, 2 thresholds)" in same[4].explain()
    for ours, theirs in zip(queries, same, strict=True):
        late = theirs.answers()
        early = ours.answers().slice(ours.answers().num_rows - late.num_rows)
        assert_same(late, early)
        assert_same(ours.answers(), Reference(ours.bound, {"trades": table}).answers())


def test_groups_that_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidate_search, "FEWEST_GROUPS", 10)
    monkeypatch.setattr(candidate_search, "PUSH", 0.01)
    monkeypatch.setattr(candidate_search, "FIND", 0.01)
    rng = np.random.default_rng(2)
    ticks = np.sort(rng.integers(0, 3000, 20_000))
    keys = (ticks // 20 + (12 * rng.random(len(ticks)) ** 2).astype(int)).astype(np.int32)  # they live for 240 ticks
    table = pa.table({"t": ticks, "k": keys, "v": np.ones(len(ticks), np.int32)})
    db, queries = many(0)
    for start in range(0, 3000, 60):
        db.push("trades", table.filter(pa.array((ticks >= start) & (ticks < start + 60))))
    db.finish()
    for query in queries:
        assert_same(query.answers(), Reference(query.bound, {"trades": table}).answers())


def test_the_filter_is_given_up_when_it_does_not_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidate_search, "FEWEST_GROUPS", 10)
    search = SumSearch(rows=True)
    gids = np.arange(100, dtype=np.int32)

    def cells(pane: int) -> tuple[np.ndarray, np.ndarray]:
        return gids, np.ones(100, np.int64)

    def ask(edge: int, count: int) -> bool:
        limits = candidate_search.Limits(0, np.full(count, 1000), np.full(count, GREATEST))
        edges = np.arange(1, edge + 1)
        return search.find(edges, cells, 100, np.full(count, edge - 5), np.full(count, edge), limits) is not None

    assert not ask(1, 100)  # nothing is saved yet that would pay for building it
    assert [ask(edge, 400) for edge in range(2, 5)][-1]
    assert ask(5, 1)
    assert not [ask(edge, 1) for edge in range(6, 30)][-1]
    assert search.filter is None


def test_a_threshold_that_comes_later_is_built_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidate_search, "FEWEST_GROUPS", 100)
    monkeypatch.setattr(candidate_search, "PUSH", 0.01)
    monkeypatch.setattr(candidate_search, "FIND", 0.01)
    table = trades(600, 30_000, seed=6)
    db = windrow.connect()
    db.execute("CREATE STREAM trades (t BIGINT, k INT, v INT) TIME t")
    text = "SELECT k, MAX(v) AS m FROM trades [RANGE 400 SLIDE 50] GROUP BY k HAVING "
    queries = [
        db.query(text + "MAX(v) > 45"),
        db.query("SELECT k, MAX(v) AS m FROM trades [RANGE 800 SLIDE 50] GROUP BY k"),
    ]
    batches = [table.filter(pa.array((table["t"].to_numpy() // 50) == i)) for i in range(40)]
    for i, batch in enumerate(batches):
        db.push("trades", batch)
        if i == 19:
            assert "(MAX, 1 threshold)" in queries[0].explain()
            queries.append(db.query(text + "MAX(v) < 20"))
        if i == 29:
            assert "(MAX, 2 thresholds)" in queries[2].explain()
            db.drop(queries[0].name)
            queries.append(db.query(text + "MAX(v) > 47"))
    assert "(MAX, 2 thresholds)" in queries[3].explain()  # 20 and 47: that of the dropped query is gone
    db.finish()
    for query in queries:
        theirs = Reference(query.bound, {"trades": table}).answers()
        ours = query.answers()
        assert ours.num_rows > 100
        first, last = ours["_time"][0].as_py(), ours["_time"][-1].as_py()
        time = theirs["_time"]
        assert_same(ours, theirs.filter(pc.and_(pc.greater_equal(time, first), pc.less_equal(time, last))))


def test_groups_of_nulls_have_no_extreme(chosen: str) -> None:
    least, greatest = -(1 << 63), (1 << 63) - 1
    values = [None, None, least, None, greatest, None, 3, None, None, 5, least, greatest]
    keys = [1, 1, 2, 2, 3, 3, 4, 4, 1, 1, 5, 5]
    table = pa.table({"t": np.arange(12), "k": pa.array(keys, pa.int32()), "v": pa.array(values, pa.int64())})
    db = windrow.connect()
    db.execute("CREATE STREAM trades (t BIGINT, k INT, v BIGINT) TIME t")
    comparisons = [
        f"{sign} {v}" for sign in ("<", ">", "<=", ">=", "=") for v in (least + 1, 0, 4, greatest - 1, greatest)
    ]
    queries = [
        db.query(f"SELECT k FROM trades [RANGE {length} SLIDE 1] GROUP BY k HAVING {what}(v) {comparison}")
        for length in (2, 5)
        for what in ("MIN", "MAX")
        for comparison in comparisons
    ]
    for i in range(12):
        db.push("trades", table.slice(i, 1))
    db.finish()
    for query in queries:
        assert_same(query.answers(), Reference(query.bound, {"trades": table}).answers())


def test_too_many_thresholds_are_scanned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidate_search, "FEWEST_GROUPS", 1)
    monkeypatch.setattr(candidate_search, "PUSH", 1e-6)
    monkeypatch.setattr(extreme_search, "MOST_THRESHOLDS", 3)
    table = trades(50, 3000, seed=1)
    db = windrow.connect()
    db.execute("CREATE STREAM trades (t BIGINT, k INT, v INT) TIME t")
    text = "SELECT k FROM trades [RANGE 100 SLIDE 50] GROUP BY k HAVING MIN(v) > "
    queries = [db.query(f"{text}{v}") for v in range(4)]
    for start in range(0, 3000, 500):
        db.push("trades", table.slice(start, 500))
    assert "there are more than 3 different thresholds" in queries[0].explain()
    db.finish()
    for query in queries:
        assert_same(query.answers(), Reference(query.bound, {"trades": table}).answers())


def test_negative_sums_are_scanned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidate_search, "FEWEST_GROUPS", 1)
    monkeypatch.setattr(candidate_search, "PUSH", 1e-6)
    monkeypatch.setattr(candidate_search, "FIND", 1e-6)
    db = windrow.connect()
    db.execute("CREATE STREAM trades (t BIGINT, k INT, v INT) TIME t")
    query = db.query("SELECT k FROM trades [RANGE 10 SLIDE 1] GROUP BY k HAVING SUM(v) > 3")
    table = pa.table(
        {"t": [1, 2, 3, 4], "k": pa.array([1, 1, 2, 1], pa.int32()), "v": pa.array([9, -8, 4, 3], pa.int32())}
    )
    for i in range(4):
        db.push("trades", table.slice(i, 1))
    db.finish()
    assert "needs sums that are not negative" in query.explain()
    assert_same(query.answers(), Reference(query.bound, {"trades": table}).answers())


@pytest.mark.parametrize(
    ("having", "expected"),
    [
        ("COUNT(*) > 5", (6, GREATEST)),
        ("5 > COUNT(*)", (LEAST, 4)),
        ("COUNT(*) >= 5 AND k = 1", (5, GREATEST)),
        ("MAX(v) > 1 AND SUM(v) <= -7", (LEAST, -7)),
        ("SUM(v) = 3", (3, 3)),
        ("COUNT(*) > 2.5", None),
        ("COUNT(*) > 5 OR k = 1", None),
        ("COUNT(*) > SUM(v)", None),
        ("NOT COUNT(*) > 5", None),
        ("SUM(v) + 1 > 5", None),
        ("COUNT(DISTINCT v) > 5", None),
        ("SUM(v) > 9223372036854775807", None),
        ("MAX(v) > 5", (6, GREATEST)),
        ("5 > MIN(v)", (LEAST, 4)),
        ("MAX(v) = 5 AND k > 0", (5, 5)),
        ("MAX(v) < 7 AND COUNT(*) > 1", (2, GREATEST)),
        ("MAX(x) > 5", None),
        ("MAX(x) > 5 AND MIN(v) >= 2", (2, GREATEST)),
        ("SUM(x) > 5 AND COUNT(*) >= 2", (2, GREATEST)),
        ("MAX(t) > 5", (6, GREATEST)),
        ("MAX(v) > 2.5", None),
        ("MAX(v) < MIN(v)", None),
        ("MAX(v) < -9223372036854775808", None),
    ],
)
def test_what_is_recognised(having: str, expected: tuple[int, int] | None) -> None:
    db = windrow.connect()
    db.execute("CREATE STREAM s (t BIGINT, k INT, v INT, x DOUBLE) TIME t")
    query = db.query(f"SELECT k FROM s [RANGE 10 SLIDE 5] GROUP BY k HAVING {having}")
    found = threshold_of(query.running.plan)
    assert (None if found is None else (found.low, found.high)) == expected
    assert ("decided in the panes" in query.explain()) == (expected is not None)


def test_collections_are_asked_for_all_groups() -> None:
    db = windrow.connect()
    db.execute("CREATE STREAM s (t BIGINT, k INT, v INT) TIME t")
    query = db.query("SELECT k, MEDIAN(v) FROM s [RANGE 10 SLIDE 5] GROUP BY k HAVING COUNT(*) > 5")
    assert "decided in the panes" not in query.explain()


@pytest.mark.parametrize("synopsis", [None, "interval", "landmark", "basic_interval"])
@pytest.mark.parametrize("pushes", [1, 6])
def test_extremes_of_groups_that_pass_now_and_then(synopsis: str | None, pushes: int) -> None:
    """Big keys fail HAVING in some windows and pass it in others, while a finer query cuts the panes."""
    random = np.random.default_rng(0)
    count = 30_000
    columns = {
        "t": np.sort(random.integers(0, 3000, count)),
        "k": (random.zipf(1.2, count) % 3000).astype(np.int32),
        "x": random.integers(0, 50, count).astype(np.int32),
    }
    table = pa.table(columns)
    select = "SELECT k, COUNT(x) AS c, MAX(x) AS m, MIN(x) AS l FROM s [RANGE 50 SLIDE 20] GROUP BY k"
    db = windrow.connect(synopsis=synopsis)
    db.stream("s", table.schema, time="t")
    some = db.query(f"{select} HAVING COUNT(x) <= 48")
    every = db.query(select)
    db.query("SELECT k, MIN(x) AS l FROM s [RANGE 777 SLIDE 5] GROUP BY k")
    for part in np.array_split(np.arange(count), pushes):
        db.push("s", table.slice(part[0], len(part)))
    db.finish()
    answers = every.answers()
    assert some.answers().to_pylist() == answers.filter(pc.less_equal(answers["c"], 48)).to_pylist()
