"""Hints: a query asks for a synopsis, in its text or in the call; the answers stay those of the oracle."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

import windrow
from windrow.language.hints import SYNOPSES as NAMES
from windrow.synopses import SYNOPSES, candidate_search
from windrow.synopses import share_group as share_group_module
from windrow.synopses.dense import Dense
from windrow.synopses.share_group import ShareGroup
from windrow.testing import Reference, assert_same

DECLARED = "CREATE STREAM s (t BIGINT, k INT, v INT, x DOUBLE) TIME t"
SELECT = "k, MAX(v) AS high, COUNT(*) AS n, COUNT(v) AS some, SUM(v) AS v, AVG(x) AS mean, MEDIAN(v) AS middle"


def rows(count: int = 3000, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    values = rng.integers(-50, 50, count)
    return pa.table(
        {
            "t": np.sort(rng.integers(0, 400, count)),
            "k": rng.integers(0, 20, count).astype(np.int32),
            "v": pa.array(values.astype(np.int32), mask=values % 7 == 0),
            "x": rng.normal(size=count),
        }
    )


def database(synopsis: str | None = None) -> windrow.Database:
    db = windrow.connect(synopsis=synopsis)
    db.execute(DECLARED)
    return db


def text(what: str, hint: str | None = None, length: int = 60) -> str:
    hinted = "" if hint is None else f"/*+ SYNOPSIS({hint}) */ "
    return f"SELECT {hinted}{what} FROM s [RANGE {length} SLIDE 5] GROUP BY k"


def panes(db: windrow.Database) -> ShareGroup:
    group = next(iter(db._engine.streams["s"].slices.values())).group
    assert group is not None
    return group


def kept(db: windrow.Database, component: str) -> list[str]:
    """The synopses of a component, as they really are."""
    layout = panes(db)._layout
    assert isinstance(layout, Dense)
    return [one.closed.name for one in layout.tracked[1:] if one.component.name == component]


def test_the_names_are_those_of_the_synopses() -> None:
    assert tuple(SYNOPSES) == NAMES


@pytest.mark.parametrize("hint", ["basic_interval", "interval", "landmark", "LANDMARK"])
@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("forced", [None, "interval"])
def test_answers_are_those_of_the_oracle(
    hint: str, layout: str, forced: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if layout == "sparse":
        monkeypatch.setattr(share_group_module, "SMALL", 0)
        monkeypatch.setattr(share_group_module, "THIN", 0)
    table = rows()
    db = database(forced)
    queries = [db.query(text(SELECT, hint)), db.query(text("k, MAX(v) AS high, SUM(v) AS v", length=200))]
    for start in range(0, 3000, 300):
        db.push("s", table.slice(start, 300))
    told = queries[0].explain(), queries[1].explain()
    if layout == "sparse":
        assert "has nothing to choose there" in told[0]
    else:
        name = hint.lower()
        for what in ("MAX(v)", "COUNT(*)", "COUNT(v)", "SUM(v)", "AVG(x)"):
            assert f"{what}: {name} synopsis; asked for with the hint SYNOPSIS({name})\n" in told[0]
        assert "MEDIAN(v): frequencies synopsis; no fixed number" in told[0]
        assert f"MAX(v): {name} synopsis; asked for with the hint SYNOPSIS({name}) of query query_1\n" in told[1]
        assert kept(db, "max") == kept(db, "sum_ints") == kept(db, "sum_floats") == [name]
    db.finish()
    for query in queries:
        assert_same(query.answers(), Reference(query.bound, {"s": table}).answers(), absolute=1e-9)


def test_a_hint_comes_and_goes_while_data_flow() -> None:
    table = rows()
    db = database()
    every = db.query(text(SELECT))
    parts = [table.slice(start, 300) for start in range(0, 3000, 300)]
    seen = []
    for i, part in enumerate(parts):
        if i in (2, 6):
            db.query(text(SELECT, "landmark" if i == 2 else "basic_interval"), name="hinting")
        if i in (5, 8):
            db.drop("hinting")
        db.push("s", part)
        seen.append((kept(db, "sum_ints"), kept(db, "max"), "hinting" in every.explain()))
    assert seen[0] == seen[1] == seen[5] == seen[9] == (["running"], ["interval"], False)
    assert seen[2] == seen[4] == (["landmark"], ["landmark"], True)
    assert seen[6] == seen[7] == (["basic_interval"], ["basic_interval"], True)
    db.finish()
    assert_same(every.answers(), Reference(every.bound, {"s": table}).answers(), absolute=1e-9)


def test_the_call_puts_the_hint_into_the_text() -> None:
    db = database()
    query = db.query(text("k, MAX(v) AS m"), synopsis="landmark", name="peaks")
    assert query.text.startswith("SELECT /*+ SYNOPSIS(landmark) */ k, MAX(v) AS m FROM s")
    assert "landmark synopsis; asked for with the hint SYNOPSIS(landmark)" in query.explain()
    again = db.query(query.text, synopsis="landmark")
    assert again.text == query.text
    stream = db.query("RSTREAM(SELECT MAX(v) FROM s [RANGE 60 SLIDE 5])", synopsis="interval")
    assert stream.text == "RSTREAM(SELECT /*+ SYNOPSIS(interval) */ MAX(v) FROM s [RANGE 60 SLIDE 5])"
    with pytest.raises(windrow.BindError, match=r"the text has a hint, and the call has synopsis='interval'"):
        db.query(query.text, synopsis="interval")
    with pytest.raises(windrow.InputError, match="the synopsis of a query: expected a str, found int"):
        db.query(text("k, MAX(v)"), synopsis=5)  # type: ignore[arg-type]


def test_explain_and_create_query_take_it() -> None:
    db = database()
    told = db.execute(f"EXPLAIN {text('MAX(v)', 'landmark')}")
    assert "MAX(v): landmark synopsis; asked for with the hint SYNOPSIS(landmark)" in told
    query = db.execute(f"CREATE QUERY q AS {text('MAX(v)', 'landmark')}; EXPLAIN q")
    assert "MAX(v): landmark synopsis; asked for with the hint SYNOPSIS(landmark)" in query
    assert "MAX(v): landmark synopsis; asked for with the hint SYNOPSIS(landmark) of query q" in db.execute(
        f"EXPLAIN {text('MAX(v)')}"
    )


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        (text("MAX(v)", "bogus"), windrow.BindError, r"line 1, column 8: there is no hint 'SYNOPSIS\(bogus\)'; the "
         r"hints are SYNOPSIS\(running\), SYNOPSIS\(basic_interval\), SYNOPSIS\(interval\), SYNOPSIS\(landmark\)"),
        ("SELECT\n /*+ BROADCAST(s) */ MAX(v) FROM s [RANGE 60 SLIDE 5]", windrow.BindError,
         r"line 2, column 2: there is no hint 'BROADCAST\(s\)'; the hints are SYNOPSIS"),
        ("SELECT /*+ SYNOPSIS(interval), X */ MAX(v) FROM s [RANGE 60 SLIDE 5]", windrow.BindError, "there is no hint"),
        ("SELECT /*++++*/ MAX(v) FROM s [RANGE 60 SLIDE 5]", windrow.BindError, r"there is no hint '\+\+\+'"),
        (f"SELECT /*+{'x' * 5000}*/ MAX(v) FROM s [RANGE 60 SLIDE 5]", windrow.BindError, r"no hint 'x{37}\.\.\.';"),
        ("SELECT DISTINCT /*+ SYNOPSIS(interval) */ k FROM s [RANGE 60 SLIDE 5]", windrow.SyntaxError,
         "line 1, column 17: Expected one hint right behind SELECT"),
        ("SELECT /*+ SYNOPSIS(interval) */ /*+ SYNOPSIS(interval) */ k FROM s [RANGE 60 SLIDE 5]",
         windrow.SyntaxError, "line 1, column 34: Expected one hint right behind SELECT"),
        ("SELECT MAX(v) FROM (SELECT /*+ SYNOPSIS(interval) */ v FROM s [NOW]) [RANGE 60 SLIDE 5] AS x",
         windrow.BindError, "line 1, column 28: a hint holds for a whole query"),
        ("SELECT /*+ SYNOPSIS(interval) */ v FROM s [NOW] UNION ALL SELECT v FROM s [NOW]", windrow.BindError,
         "line 1, column 8: a hint holds for a whole query"),
        (text("MAX(v)", "running"), windrow.UnsupportedError,
         r"line 1, column 8: MAX\(v\): a running synopsis subtracts what has left the window from a total, and that "
         r"cannot be done with a maximum; use an interval, landmark or basic_interval synopsis"),
        (text("AVG(CAST(v AS DOUBLE))", "running"), windrow.UnsupportedError,
         "cannot be done with a sum of DOUBLE or FLOAT, which would keep the rounding errors"),
        ("SELECT /*+ SYNOPSIS(interval) */ MAX(v) FROM s [PARTITION BY k ROWS 5 SLIDE 5]", windrow.BindError,
         "line 1, column 8: SYNOPSIS.interval.: a window with PARTITION BY keeps rows and no synopsis"),
        ("SELECT /*+ PRIORITY(high) */ MAX(v) FROM s [RANGE 60 SLIDE 5]", windrow.BindError,
         "there is no hint 'PRIORITY.high.'; .* PRIORITY.n. with a whole number"),
        ("SELECT /*+ PRIORITY(1) PRIORITY(2) */ MAX(v) FROM s [RANGE 60 SLIDE 5]", windrow.BindError, "at most once"),
        ("SELECT /*+ PRIORITY(1) */ MAX(v) FROM s [ROWS 60 SLIDE 5]", windrow.BindError,
         "line 1, column 8: PRIORITY.1.: this query is answered when its tuples come, not by a schedule"),
        ("SELECT /*+ PRIORITY(1) */ v FROM s [RANGE 60]", windrow.BindError, "not by a schedule"),
    ],
)  # fmt: skip
def test_refusals(query: str, error: type[Exception], message: str) -> None:
    db = database()
    with pytest.raises(error, match=message):
        db.query(query)
    assert not db.queries() and not db._engine.streams["s"].slices and db._engine.streams["s"].numbering is None


def test_priority_beside_a_synopsis() -> None:
    db = database()
    db.query("SELECT v FROM s [RANGE 60]", name="operators", priority=0)  # as if nothing was said
    query = db.query(text("MAX(v)", "interval"), priority=-4)
    assert "/*+ SYNOPSIS(interval) PRIORITY(-4) */" in query.text
    assert "asked for with the hint SYNOPSIS(interval)" in query.explain() and "priority: -4:" in query.explain()
    with pytest.raises(windrow.BindError, match="the text has a hint, and the call has priority=3"):
        db.query(query.text, priority=3)
    with pytest.raises(windrow.InputError, match="the priority of a query: expected a whole number, found str"):
        db.query(text("MAX(v)"), priority="high")  # type: ignore[arg-type]


def test_a_plus_in_other_comments_is_no_hint() -> None:
    query = database().query("/*+---+*/ SELECT k, /*+ note */ MAX(v) FROM s [RANGE 60 SLIDE 5] /*+*/ GROUP BY k")
    assert query.bound.hint is None


def test_a_one_time_query_has_no_hint() -> None:
    db = database()
    db.query(text("k, MAX(v)"))
    with pytest.raises(windrow.BindError, match=r"SYNOPSIS\(interval\): a one-time query takes what"):
        db.ask("SELECT /*+ SYNOPSIS(interval) */ k, MAX(v) FROM s [RANGE 60] GROUP BY k")


def test_two_hints_for_the_same_state() -> None:
    db = database()
    db.query(text("k, MAX(v)", "landmark"), name="first")
    with pytest.raises(
        windrow.BindError,
        match=r"line 1, column 8: SYNOPSIS\(interval\): query first shares the panes of MAX\(v\) and has the hint "
        r"SYNOPSIS\(landmark\); give both the same, or drop first",
    ):
        db.query(text("k, COUNT(*), MAX(v)", "interval"), name="second")
    assert [query.name for query in db.queries()] == ["first"]
    assert [spec.component.name for spec in panes(db).specs] == ["max", "count"]
    db.query(text("k, MIN(v), SUM(v)", "interval"), name="other")  # the count of values is not what it is about
    db.query(text("k, MAX(v)", "landmark", length=100), name="same")
    db.drop("first")
    with pytest.raises(windrow.BindError, match="query same shares the panes"):
        db.query(text("k, MAX(v)", "interval"))
    db.drop("same")
    assert "interval synopsis" in db.query(text("k, MAX(v)", "interval")).explain()
    rows_query = "SELECT /*+ SYNOPSIS({}) */ MAX(v) FROM s [ROWS 10 SLIDE 5]"
    db.query(rows_query.format("interval"), name="counted")
    with pytest.raises(windrow.BindError, match="query counted shares the panes"):
        db.query(rows_query.format("landmark"))


def test_a_hint_goes_before_the_synopsis_of_the_connection() -> None:
    table = rows(500)
    db = database("running")
    query = db.query(text("k, MAX(v) AS m, SUM(v) AS v", "interval"))
    plain = db.query(text("k, SUM(v) AS v"))
    with pytest.raises(windrow.UnsupportedError, match="a running synopsis subtracts"):
        db.query(text("k, MAX(v)"))
    db.push("s", table.slice(0, 200))
    assert "SUM(v): interval synopsis; asked for with the hint SYNOPSIS(interval) of query query_1" in plain.explain()
    db.drop(query.name)
    assert "SUM(v): running synopsis" in plain.explain() and "hint" not in plain.explain()
    db.push("s", table.slice(200))
    db.finish()
    assert_same(plain.answers(), Reference(plain.bound, {"s": table}).answers())


def test_a_hint_takes_a_sum_away_from_its_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidate_search, "FEWEST_GROUPS", 1)
    monkeypatch.setattr(candidate_search, "PUSH", 1e-6)
    monkeypatch.setattr(candidate_search, "FIND", 1e-6)
    rng = np.random.default_rng(4)
    keys = rng.integers(0, 20, 3000).astype(np.int32)
    table = pa.table({"t": np.sort(rng.integers(0, 400, 3000)), "k": keys, "v": rng.integers(0, 1 << 40, 3000)})
    db = windrow.connect()
    db.execute("CREATE STREAM s (t BIGINT, k INT, v BIGINT) TIME t")
    having = "HAVING SUM(v) > 1000000000000"
    query = db.query(f"SELECT k, SUM(v) AS v FROM s [RANGE 60 SLIDE 5] GROUP BY k {having}")
    hinting = "SELECT /*+ SYNOPSIS(interval) */ k, SUM(v) AS v FROM s [RANGE 30 SLIDE 5] GROUP BY k"
    found = []
    for i, batch in enumerate(table.slice(start, 60) for start in range(0, 3000, 60)):
        if i == 20:
            found.append("CI-SUM" in query.explain())
            db.query(hinting, name="hinting")
        if i == 35:
            found.append("CI-SUM" in query.explain())
            db.drop("hinting")
        db.push("s", batch)
    found.append("CI-SUM" in query.explain())
    assert found == [True, False, True]
    db.finish()
    assert_same(query.answers(), Reference(query.bound, {"s": table}).answers())


@pytest.mark.parametrize("drop", [False, True])
def test_hints_survive_a_restart(drop: bool) -> None:
    table = rows()

    def declared() -> windrow.Database:
        db = database()
        db.query(text(SELECT), name="plain")
        if not drop:
            db.query(text("k, MAX(v) AS m, COUNT(*) AS n", "landmark"), name="hinting")
        return db

    db = declared()
    if drop:
        db.query(text("k, MAX(v) AS m, COUNT(*) AS n", "landmark"), name="hinting")
    for start in range(0, 1500, 300):
        db.push("s", table.slice(start, 300))
    if drop:
        db.drop("hinting")
    meta, blobs = db._engine.snapshot()
    copy = declared()
    copy._engine.restore(json.loads(json.dumps(meta)), blobs)
    for one in (db, copy):
        for start in range(1500, 3000, 300):
            one.push("s", table.slice(start, 300))
        one.finish()
        assert kept(one, "max") == ["interval" if drop else "landmark"]
        assert kept(one, "sum_ints") == ["running"]
    for ours, theirs in zip(copy.queries(), db.queries(), strict=True):
        assert ours.explain() == theirs.explain()
        late = ours.answers()
        assert late.num_rows > 500
        assert_same(late, theirs.answers().slice(theirs.answers().num_rows - late.num_rows))
    assert db._engine.snapshot()[1] == copy._engine.snapshot()[1]


def test_a_hint_that_changed_before_a_restart_holds() -> None:
    table = rows()
    old, new = database(), database()
    old.query(text("k, MAX(v) AS m, COUNT(*) AS n", "landmark"), name="q")
    query = new.query(text("k, MAX(v) AS m, COUNT(*) AS n", "interval"), name="q")
    old.push("s", table.slice(0, 1500))
    new._engine.restore(*old._engine.snapshot())
    new.push("s", table.slice(1500))
    new.finish()
    assert kept(new, "max") == kept(new, "count_rows") == ["interval"]
    answers = Reference(query.bound, {"s": table}).answers()
    assert_same(query.answers(), answers.slice(answers.num_rows - query.answers().num_rows))
