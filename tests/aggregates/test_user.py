"""Aggregates of the user: in lock-step with recomputing, in both layouts, with what can go wrong."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow
from tests import user_aggregates
from tests.engine.test_slicing_elsewhere import absorb
from tests.engine.test_snapshot import Lockstep
from tests.user_aggregates import ALL, Fussy, GeometricMean, Spread, one_by_one
from windrow.aggregates.count import Count
from windrow.aggregates.user import UserComponent
from windrow.language.user_functions import user_function
from windrow.synopses import share_group, synopsis
from windrow.synopses.snapshot import numpy_of, pack, unpack
from windrow.synopses.user import UserPanes
from windrow.testing import assert_same, cut

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.int64()), ("v", pa.int64()), ("x", pa.float64())])


def declare(db: windrow.Database) -> None:
    """The stream and the aggregates of these tests."""
    db.stream("s", SCHEMA, time="t")
    for name, (implementation, returns) in ALL.items():
        db.aggregate(name, implementation, returns=returns)


def database() -> windrow.Database:
    db = windrow.connect()
    declare(db)
    return db


def random_rows(rows: int, seed: int, groups: int = 4, span: int = 120) -> pa.Table:
    rng = np.random.default_rng(seed)
    values = rng.integers(1, 50, rows)
    return pa.table(
        [
            pa.array(np.sort(rng.integers(0, span, rows))),
            pa.array(rng.integers(0, groups, rows)),
            pa.array(values, mask=rng.random(rows) < 0.1),
            pa.array(values / 7.0),
        ],
        schema=SCHEMA,
    )


def expected(table: pa.Table, calls: dict[str, tuple[str, str]], length: int, slide: int) -> list[dict[str, Any]]:
    """The answers of SELECT k, … FROM s [RANGE length SLIDE slide] GROUP BY k, window by window."""
    rows = table.to_pylist()
    first = math.ceil(rows[0]["t"] / slide) * slide
    answers = []
    for tau in range(first, math.ceil(rows[-1]["t"] / slide) * slide + 1, slide):
        groups: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for row in rows:
            if tau - length < row["t"] <= tau:
                groups[row["k"]].append(row)
        for key, inside in sorted(groups.items()):
            answer: dict[str, Any] = {"_time": tau, "k": key}
            for name, (call, column) in calls.items():
                answer[name] = one_by_one(call, [row[column] for row in inside if row[column] is not None])
            answers.append(answer)
    return answers


CALLS = {"g": ("GEOMEAN", "x"), "s": ("SPREAD", "v"), "w": ("WALK", "v")}
SELECT = "SELECT k, GEOMEAN(x) AS g, SPREAD(v) AS s, WALK(v) AS w FROM s"


@pytest.mark.parametrize("small", [share_group.SMALL, 16], ids=["dense", "sparse"])
@pytest.mark.parametrize("batches", [1, 9])
def test_against_recomputing(batches: int, small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_group, "SMALL", small)
    monkeypatch.setattr(share_group, "THIN", 1 if small == 16 else share_group.THIN)
    table = random_rows(400, 1)
    db = database()
    windows = [(30, 5), (7, 7), (64, 4), (11, 3)]
    queries = [db.query(f"{SELECT} [RANGE {a} SLIDE {b}] GROUP BY k ORDER BY k") for a, b in windows]
    for piece in cut(table, 2, batches):
        db.push("s", piece)
    layouts = {part.group.layout for part in db._engine.streams["s"].slices.values() if part.group is not None}
    assert layouts == {"sparse" if small == 16 else "dense"}
    db.finish()
    for query, (length, slide) in zip(queries, windows, strict=True):
        wanted = pa.Table.from_pylist(expected(table, CALLS, length, slide), query.answers().schema)
        assert_same(query.answers(), wanted, tolerance=1e-9)


@given(st.integers(0, 1000), st.integers(1, 5), st.integers(0, 4))
def test_restored_and_sliced_elsewhere(seed: int, batches: int, when: int) -> None:
    table = random_rows(60, seed)
    runs = Lockstep(declare)
    runs.do(lambda db: db.query(f"{SELECT} [RANGE 30 SLIDE 5] GROUP BY k", name="q"))
    commuting = "SELECT k, GEOMEAN(x) AS g, SPREAD(v) AS s FROM s [RANGE 30 SLIDE 5] GROUP BY k"
    elsewhere = database()
    there = elsewhere.query(commuting)
    whole = database()
    here = whole.query(commuting)
    whole.push("s", table)
    for number, piece in enumerate(cut(table, seed, batches)):
        if number == when:
            runs.copy(0)
        runs.do(lambda db, piece=piece: db.push("s", piece))
        absorb(elsewhere._engine, "s", cut(piece, number, 3))
    runs.check_state()
    runs.do(lambda db: db.finish())
    for db in (whole, elsewhere):
        db.finish()
    assert_same(there.answers(), here.answers(), tolerance=1e-9)


def test_the_whole_language_knows_them() -> None:
    db = database()
    query = db.query(
        "SELECT k % 2 AS p, 2 * spread(v) FILTER (WHERE x > 1) AS s, COUNT(*) AS n FROM s [RANGE 20 SLIDE 10] "
        "WHERE v > 3 GROUP BY p HAVING Spread(v) > 5 ORDER BY SPREAD(v) DESC LIMIT 1"
    )
    table = random_rows(300, 4)
    db.push("s", table)
    db.finish()
    plain = windrow.connect()
    plain.stream("s", SCHEMA, time="t")
    same = plain.query(
        "SELECT k % 2 AS p, 2.0 * (MAX(v) FILTER (WHERE x > 1) - MIN(v) FILTER (WHERE x > 1)) AS s, COUNT(*) AS n "
        "FROM s [RANGE 20 SLIDE 10] WHERE v > 3 GROUP BY p HAVING MAX(v) - MIN(v) > 5 ORDER BY MAX(v) - MIN(v) DESC "
        "LIMIT 1"
    )
    plain.push("s", table)
    plain.finish()
    assert same.answers().num_rows
    assert_same(query.answers(), same.answers())


def test_explain_says_what_the_class_has() -> None:
    text = database().query(f"{SELECT} [RANGE 20 SLIDE 10] GROUP BY k").explain()
    assert "GEOMEAN(x): user synopsis; GEOMEAN has subtract: running sums" in text
    assert "SPREAD(v): user synopsis; SPREAD has no subtract: base intervals" in text


def test_databases_do_not_share_names() -> None:
    other = windrow.connect()
    other.stream("s", SCHEMA, time="t")
    database()
    with pytest.raises(windrow.BindError, match="there is no function spread"):
        other.query("SELECT SPREAD(v) FROM s [RANGE 20 SLIDE 10]")
    other.aggregate("spread", GeometricMean)
    other.query("SELECT SPREAD(v) FROM s [RANGE 20 SLIDE 10]")


def test_a_nan_leaves_with_its_pane() -> None:
    db = database()
    query = db.query("SELECT GEOMEAN(x) AS g FROM s [RANGE 20 SLIDE 10]")
    xs = [2.0, 8.0, math.nan, 4.0, -1.0, 9.0, 4.0, 1.0]
    times = [1, 15, 25, 35, 45, 55, 65, 75]
    empty = pa.nulls(len(xs), pa.int64())
    for i in range(len(xs)):
        db.push("s", pa.table([pa.array(times), empty, empty, pa.array(xs)], schema=SCHEMA).slice(i, 1))
    db.finish()
    found = query.answers()["g"].to_pylist()
    bad = [math.isnan(one) for one in found]
    assert bad == [False, False, True, True, True, True, False, False]
    assert np.allclose([one for one in found if not math.isnan(one)], [2, 4, 6, 2])


# ---- what goes wrong ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("elsewhere", [False, True])
def test_errors_of_the_class_stop_its_queries_only(elsewhere: bool) -> None:
    db = database()
    db.aggregate("FUSSY", Fussy)
    good = db.query("SELECT k, SPREAD(v) AS s, COUNT(v) AS n FROM s [RANGE 20 SLIDE 10] GROUP BY k")
    bad = db.query("SELECT k, FUSSY(v) AS s FROM s [RANGE 20 SLIDE 10] GROUP BY k", name="bad")
    table = pa.table([[1, 12, 15, 31], [1, 1, 1, 1], [5, 7, 13, 9], [1.0] * 4], schema=SCHEMA)
    message = r"bad was stopped: aggregate FUSSY, lift of .*Fussy: ValueError: 13 is not allowed"
    with pytest.raises(windrow.QueryError, match=message):
        if elsewhere:
            absorb(db._engine, "s", [table])
        else:
            db.push("s", table)
    db.finish()
    assert (good.status, bad.status) == ("running", "stopped")
    assert good.answers()["s"].to_pylist() == [0.0, 8.0, 6.0, 0.0]


class BadLower(Spread):
    def lower(self, words: Any) -> Any:
        return words[0][:1]


class BadCombine(Spread):
    def combine(self, a: Any, b: Any) -> Any:
        return a[0] + b[0]


class BadType(Spread):
    def lift(self, values: Any) -> Any:
        return values.astype(str), values


@pytest.mark.parametrize(
    ("implementation", "message"),
    [
        (BadLower, "lower of .*BadLower: expected [0-9]+ answers, found an array of shape"),
        (BadCombine, r"combine of .*BadCombine: expected a tuple of 2 arrays, like identity, found ndarray"),
        (BadType, "lift of .*BadType: expected float64, like identity, found <U"),
    ],
)
def test_wrong_results_are_named(implementation: type, message: str) -> None:
    db = database()
    db.aggregate("BAD", implementation)
    good = db.query("SELECT COUNT(*) AS n FROM s [RANGE 20 SLIDE 10]")
    db.query("SELECT k, BAD(v) FROM s [RANGE 20 SLIDE 10] GROUP BY k")
    with pytest.raises(windrow.QueryError, match=f"aggregate BAD, {message}"):
        db.push("s", pa.table([[1, 2, 40], [1, 2, 1], [1, 2, 3], [1.0] * 3], schema=SCHEMA))
    assert good.status == "running"


class NoLower:
    identity = (0.0,)

    def lift(self, values: Any) -> Any:
        return (values,)

    def combine(self, a: Any, b: Any) -> Any:
        return a


class NoIdentity(NoLower):
    identity = 0.0  # type: ignore[assignment]

    def lower(self, words: Any) -> Any:
        return words[0]


class Needy(Spread):
    def __init__(self, size: int) -> None:
        self.size = size


@pytest.mark.parametrize(
    ("name", "implementation", "options", "message"),
    [
        ("sum", Spread, {}, "the name sum is taken"),
        ("top_k", Spread, {}, "the name top_k is taken"),
        ("sqrt", Spread, {}, "the name sqrt is taken"),
        ("two words", Spread, {}, "must be a word"),
        ("select", Spread, {}, "select is a word of the language and cannot name an aggregate"),
        ("mine", Spread(), {}, "expected a class, found .*; give the class itself"),
        ("mine", NoLower, {}, "NoLower has no lower; see windrow.UserAggregate"),
        (
            "mine",
            NoIdentity,
            {},
            "NoIdentity must be a tuple of floats and ints, one per word, found 0.0",
        ),
        ("mine", Needy, {}, r"Needy\(\) raised TypeError: .*; it must need no arguments"),
        ("mine", Spread, {"returns": "BANANA"}, "'BANANA' is not a type"),
        ("mine", Spread, {"takes": "bananas"}, "takes must be one of 'a number', 'a date or time', 'a boolean'"),
    ],
)
def test_bad_registrations(name: str, implementation: Any, options: dict[str, str], message: str) -> None:
    with pytest.raises(windrow.CatalogError, match=message):
        database().aggregate(name, implementation, **options)


def test_a_name_in_use_keeps_its_meaning() -> None:
    db = database()
    first = db.query("SELECT SPREAD(v) AS a FROM s [RANGE 20 SLIDE 10]", name="first")
    second = db.query("SELECT SPREAD(v) + 1 AS a FROM s [RANGE 20 SLIDE 10]", name="second")
    db.aggregate("spread", Spread)  # the same once more
    with pytest.raises(windrow.CatalogError, match=r"SPREAD is .*:Spread and is used by first, second; drop"):
        db.aggregate("spread", GeometricMean)
    with pytest.raises(windrow.CatalogError, match="used by first, second"):
        db.aggregate("spread", Spread, returns="BIGINT")
    db.drop("second")
    with pytest.raises(windrow.CatalogError, match="is used by first; drop that query first, or choose another name"):
        db.aggregate("spread", GeometricMean)
    db.drop("first")
    db.aggregate("spread", GeometricMean)
    third = db.query("SELECT SPREAD(v) AS a FROM s [RANGE 20 SLIDE 10]")
    rows = random_rows(50, 1)
    db.push("s", rows)
    db.finish()
    inside = rows.filter(pc.less_equal(rows["t"], 10))["v"].drop_null().to_pylist()
    found = dict(zip(*third.answers().to_pydict().values(), strict=True))
    assert found[10] == pytest.approx(one_by_one("GEOMEAN", inside))
    assert (first.answers().num_rows, second.answers().num_rows) == (0, 0)


def test_bad_calls() -> None:
    db = database()
    for text, message in [
        ("SPREAD(DISTINCT v)", "DISTINCT is not defined for SPREAD"),
        ("SPREAD(v, k)", "SPREAD takes 1 argument, found 2"),
        ("SPREAD(*)", "only COUNT"),
        ("SPREAD(k > 1)", "SPREAD needs a number, but s.k > 1 is BOOLEAN"),
        ("SPREAD(SPREAD(v))", "SPREAD of an aggregate is not defined"),
    ]:
        with pytest.raises(windrow.Error, match=message):
            db.query(f"SELECT {text} FROM s [RANGE 20 SLIDE 10]")


def test_a_class_that_workers_cannot_import_is_refused_when_they_slice() -> None:
    class Local(Spread):
        pass

    db = database()
    db.aggregate("LOCAL", Local)
    db.query("SELECT LOCAL(v) FROM s [RANGE 20 SLIDE 10]")
    with pytest.raises(windrow.SetupError, match=r"LOCAL\(v\): the class of aggregate LOCAL is .*<locals>.Local"):
        db._engine.job("s")
    db.push("s", random_rows(10, 1))  # in this process it can be used


# ---- the synopsis alone ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
@given(data=st.data())
def test_lock_step_with_recombining(name: str, data: st.DataObject) -> None:
    component = UserComponent(user_function(name, ALL[name][0], ALL[name][1], "a number"))
    kept = synopsis(component)
    assert isinstance(kept, UserPanes)
    panes: list[tuple[int, Any]] = []
    edge, groups = 0, 1
    for _ in range(8):
        edge += data.draw(st.sampled_from([1, 5]))
        groups += data.draw(st.integers(0, 2))
        rows = data.draw(st.lists(st.tuples(st.integers(0, groups - 1), st.integers(1, 50)), max_size=6))
        words = np.repeat(component.identity[:, None], groups, axis=1)
        component.accumulate(
            list(words), np.array([g for g, _ in rows], np.int32), np.array([v for _, v in rows], np.int64)
        )
        kept.update(np.array([edge]), words[:, None, :])
        panes.append((edge, words))
        if data.draw(st.booleans()):
            panes = panes[data.draw(st.integers(0, len(panes) - 1)) :]
            kept.expire(panes[0][0] - 1)
        if data.draw(st.integers(0, 3)) == 0:
            meta, stored = unpack(pack(*kept.snapshot()))
            kept = synopsis(component)
            kept.restore(meta, {key: numpy_of(array) for key, array in stored.items()})
        bounds = sorted({panes[0][0] - 1, *(one for one, _ in panes)})
        windows = [(a, b) for a in bounds for b in bounds if a <= b]
        found = kept.lookup(*np.array(windows).T)
        for i, (start, end) in enumerate(windows):
            wanted = np.repeat(component.identity[:, None], groups, axis=1)
            for one, pane in panes:
                if start < one <= end:
                    other = np.repeat(component.identity[:, None], groups, axis=1)
                    other[:, : pane.shape[1]] = pane
                    component.combine(wanted, other)
            for a, b in zip(component.typed(found[:, i].copy()), component.typed(wanted), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def test_only_user_aggregates_have_such_a_synopsis() -> None:
    with pytest.raises(ValueError, match="count is none"):
        UserPanes(Count())


def test_rows_are_reduced_in_few_calls() -> None:
    """Vectorised: the number of calls follows the logarithm of the rows per cell."""
    calls = []

    class Counting(user_aggregates.Walk):
        def combine(self, a: Any, b: Any) -> Any:
            calls.append(len(a[0]))
            return super().combine(a, b)

    component = UserComponent(user_function("counting", Counting, "BIGINT", "a number"))
    rng = np.random.default_rng(1)
    cells, values = rng.integers(0, 50, 20_000).astype(np.int32), rng.integers(0, 1000, 20_000)
    words = [np.full(50, one) for one in component.identity]
    component.accumulate(words, cells, values)
    assert len(calls) <= 12 and sum(calls) <= 20_050
    for cell in (0, 17, 49):
        own = values[cells == cell].tolist()
        assert component.lowered(tuple(word[cell : cell + 1] for word in words))[0] == one_by_one("WALK", own)
