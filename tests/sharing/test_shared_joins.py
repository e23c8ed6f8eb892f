"""Periodic aggregates over one join share it: answers are those that each has alone, and the work is done once."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow
from tests.engine.test_slicing_elsewhere import absorb
from tests.shards.local_shards import LocalShards
from windrow.joined import worth
from windrow.joined.axis import Axis
from windrow.joined.shared_join import SharedJoin
from windrow.testing import Reference, assert_same, cut, shuffle_within

STREAMS = {
    "a": "CREATE STREAM a (t BIGINT, k INT, v BIGINT, s STRING) TIME t LATENESS {lateness}",
    "b": "CREATE STREAM b (t BIGINT, k INT, v BIGINT, w DECIMAL(6, 2), x DOUBLE) TIME t LATENESS {lateness}",
}
CALLS = [
    "COUNT(*)", "COUNT(r.v)", "SUM(r.v)", "AVG(l.v)", "MIN(r.w)", "MAX(r.x)", "SUM(r.w)", "MAX(l.t)",
    "SUM(l.v) FILTER (WHERE r.v > 1)",
]  # fmt: skip


def database(lateness: int = 0, *, sharing: bool = True) -> windrow.Database:
    db = windrow.connect(sharing=sharing)
    for text in STREAMS.values():
        db.execute(text.format(lateness=lateness))
    return db


@contextlib.contextmanager
def forced(synopsis: str | None) -> Iterator[None]:
    """Axes take this synopsis wherever they can (RJ has no minima and maxima), and joins are shared in any case."""
    Axis.forced, worth.LEAST_GAIN = synopsis, 0.0
    try:
        yield
    finally:
        Axis.forced, worth.LEAST_GAIN = None, 1.0


def shared(query: windrow.Query) -> bool:
    return isinstance(query.running.flow, SharedJoin)


@st.composite
def tables(draw: st.DrawFn, most: int = 30, horizon: int = 50) -> dict[str, pa.Table]:
    """Tuples of both streams in the order of time, few keys, some NULLs."""
    found = {}
    for name in STREAMS:
        ticks = sorted(draw(st.lists(st.integers(-5, horizon), min_size=0, max_size=most)))
        small = st.one_of(st.none(), st.integers(-2, 3))
        keys, values, others = (draw(st.lists(small, min_size=len(ticks), max_size=len(ticks))) for _ in range(3))
        columns = {"t": pa.array(ticks, pa.int64()), "k": pa.array(keys, pa.int32()), "v": pa.array(values, pa.int64())}
        if name == "a":
            columns["s"] = pa.array([None if one is None else "xyz"[one % 3] for one in others], pa.string())
        else:
            columns["w"] = pa.array(others, pa.int8()).cast(pa.decimal128(6, 2))
            columns["x"] = pa.array([None if one is None else one / 3 for one in others], pa.float64())
        found[name] = pa.table(columns)
    return found


@st.composite
def queries(draw: st.DrawFn, most: int = 5) -> list[str]:
    """Aggregates over joins of a and b, which differ in windows, SLIDE, GROUP BY, HAVING and ORDER BY."""
    condition = draw(st.sampled_from(["l.k = r.k", "l.k = r.k", "l.k = r.k AND l.v < r.v", "l.k = r.k AND l.v > 0"]))
    texts = []
    for _ in range(draw(st.integers(2, most))):
        first = draw(st.integers(1, 25))
        second = draw(st.sampled_from([first, first, first + 3, 7]))
        slide = draw(st.sampled_from([1, 2, 3, 5, 10]))
        keys = draw(st.sampled_from([(), (), ("l.k",), ("l.s",), ("r.k", "l.s"), ("l.k", "r.k")]))
        calls = draw(st.lists(st.sampled_from(CALLS), min_size=1, max_size=3, unique=True))
        parts = [f"{key} AS k{i}" for i, key in enumerate(keys)] + [f"{call} AS c{i}" for i, call in enumerate(calls)]
        text = f"SELECT {', '.join(parts)} FROM a [RANGE {first} SLIDE {slide}] AS l, "
        text += f"b [RANGE {second} SLIDE {slide}] AS r WHERE {condition}"
        text += f" GROUP BY {', '.join(keys)}" if keys else ""
        text += draw(st.sampled_from(["", "", " HAVING COUNT(*) > 1"]))
        text += draw(st.sampled_from(["", "", " ORDER BY c0 DESC LIMIT 2"]))
        texts.append(text)
    return texts


class Feed:
    """Both streams in pieces, in an order of arrival in which no tuple is late."""

    def __init__(self, world: dict[str, pa.Table], lateness: int, seed: int, pieces: int) -> None:
        arriving = {name: shuffle_within(table, "t", lateness, seed) for name, table in world.items()}
        self._pieces = {name: cut(table, seed + i, pieces) for i, (name, table) in enumerate(arriving.items())}

    def push(self, number: int, *databases: windrow.Database, heartbeat: bool = False) -> None:
        """One piece of each stream; a heartbeat says that nothing comes before the next tuple."""
        for name in list(STREAMS)[:: 1 if number % 2 else -1]:
            rest = [tick for piece in self._pieces[name][number + 1 :] for tick in piece["t"].to_pylist()]
            for db in databases:
                db.push(name, self._pieces[name][number])
                if heartbeat and rest:
                    db.advance(name, min(rest) - 1)


@pytest.mark.parametrize("synopsis", [None, "bij", "ij", "rj"])
@given(
    texts=queries(),
    world=tables(),
    lateness=st.sampled_from([0, 0, 4]),
    seed=st.integers(0, 99),
    pieces=st.integers(1, 6),
    data=st.data(),
)
def test_answers_are_those_of_each_query_alone(
    synopsis: str | None,
    texts: list[str],
    world: dict[str, pa.Table],
    lateness: int,
    seed: int,
    pieces: int,
    data: st.DataObject,
) -> None:
    with forced(synopsis):
        together_as_apart(texts, world, lateness, seed, pieces, data)


def together_as_apart(
    texts: list[str], world: dict[str, pa.Table], lateness: int, seed: int, pieces: int, data: st.DataObject
) -> None:
    together, apart = database(lateness), database(lateness, sharing=False)
    feed = Feed(world, lateness, seed, pieces)
    waiting, twins = list(texts), list[tuple[windrow.Query, windrow.Query]]()
    late = data.draw(st.booleans(), label="some queries come later")
    for number in range(pieces):
        while waiting and (not late or data.draw(st.booleans(), label="register one now")):
            text = waiting.pop()
            twins.append((together.query(text), apart.query(text)))
        if len(twins) > 1 and data.draw(st.integers(0, 3), label="drop one at 0") == 0:
            one, alone = twins.pop(data.draw(st.integers(0, len(twins) - 1)))
            for db, query in ((together, one), (apart, alone)):
                db.drop(query.name)
            assert_same(one.answers(), alone.answers())
        feed.push(number, together, apart, heartbeat=data.draw(st.booleans(), label="heartbeat"))
        for one, alone in twins:
            assert_same(one.answers(), alone.answers())
    if not late and len(texts) == len(twins):
        assert all(shared(one) for one, _ in twins)
        assert len(together._engine.flows.joins) == 1
    assert not any(shared(alone) for _, alone in twins)
    together.finish()
    apart.finish()
    for one, alone in twins:
        assert one.status == alone.status == "running"
        assert one.since == alone.since
        assert one.answers().schema == alone.answers().schema
        assert_same(one.answers(), alone.answers())
        assert_same(one.answers(), Reference(one.bound, world, since=one.since).answers())


@pytest.mark.parametrize("synopsis", [None, "bij", "ij", "rj"])
@given(texts=queries(), world=tables(), lateness=st.sampled_from([0, 4]), seed=st.integers(0, 99), data=st.data())
def test_restored_it_goes_on_as_before(
    synopsis: str | None, texts: list[str], world: dict[str, pa.Table], lateness: int, seed: int, data: st.DataObject
) -> None:
    with forced(synopsis):
        restored_as_before(texts, world, lateness, seed, data)


def restored_as_before(
    texts: list[str], world: dict[str, pa.Table], lateness: int, seed: int, data: st.DataObject
) -> None:
    db, feed, waiting = database(lateness), Feed(world, lateness, seed, 5), list(texts)
    stop = data.draw(st.integers(0, 4), label="restored before this piece")
    copy = None
    for number in range(5):
        while waiting and data.draw(st.booleans(), label="register one now") and copy is None:
            db.query(waiting.pop(), name=f"q{len(waiting)}")
        if len(db.queries()) > 2 and copy is None and data.draw(st.booleans(), label="drop the first"):
            db.drop(db.queries()[0].name)
        if number == stop:
            copy = database(lateness)
            for query in db.queries():
                copy.query(query.text, name=query.name)
            meta, blobs = db._engine.snapshot()
            copy._engine.restore(json.loads(json.dumps(meta, allow_nan=False)), dict(blobs))
            told = {query.name: query.answers().num_rows for query in db.queries()}
        feed.push(number, *(one for one in (db, copy) if one is not None))
    assert copy is not None
    for one in (db, copy):
        one.finish()
    for query, twin in zip(db.queries(), copy.queries(), strict=True):
        assert shared(query) == shared(twin)
        assert query.since == twin.since
        assert query.answers().slice(told[query.name]).to_pylist() == twin.answers().to_pylist()


@given(texts=queries(), world=tables(), seed=st.integers(0, 99))
def test_tuples_that_workers_bring_give_the_same(texts: list[str], world: dict[str, pa.Table], seed: int) -> None:
    """They bring only the columns and rows that the join wants."""
    with forced(None):
        brought_as_pushed(texts, world, seed)


def brought_as_pushed(texts: list[str], world: dict[str, pa.Table], seed: int) -> None:
    brought, pushed = database(), database(sharing=False)
    twins = [(brought.query(text), pushed.query(text)) for text in texts]
    for number in range(3):
        for name, table in world.items():
            piece = cut(table, seed, 3)[number]
            pushed.push(name, piece)
            if len(piece):
                absorb(brought._engine, name, cut(piece, number, 2))
    for db in (brought, pushed):
        db.finish()
    for one, alone in twins:
        assert shared(one)
        assert_same(one.answers(), alone.answers())


def test_those_that_run_in_shards_leave_the_others() -> None:
    db, alone = database(), database(sharing=False)
    keyed = {**FITS, "what": "l.k AS k, COUNT(*) AS n", "where": "l.k = r.k GROUP BY l.k"}
    texts = [TEXT.format(**{**keyed, "left": left}) for left in ("RANGE 20", "RANGE 40")]
    texts += [TEXT.format(**{**FITS, "left": left}) for left in ("RANGE 20", "RANGE 40")]
    twins = [(db.query(text), alone.query(text)) for text in texts]
    assert all(shared(one) for one, _ in twins)
    shards = LocalShards(db, 2, STREAMS)
    assert [shards.remote(one.name) is not None for one, _ in twins] == [True, True, False, False]
    assert [shared(one) for one, _ in twins] == [False, False, True, True]  # these have no key to be dealt by
    row = {"t": [1, 7, 9], "k": pa.array([1, 2, 1], pa.int32()), "v": [1, 2, 3]}
    nothing = {"a": {"s": pa.nulls(3, pa.string())}}
    nothing["b"] = {"w": pa.nulls(3, pa.decimal128(6, 2)), "x": pa.nulls(3, pa.float64())}
    for name in STREAMS:
        for one in (db, alone):
            one.push(name, pa.table(row | nothing[name]))
    for one in (db, alone):
        one.finish()
    shards.deliver()
    for one, other in twins:
        assert one.answers().num_rows
        assert_same(one.answers(), other.answers())


TEXT = "SELECT {what} FROM a [{left} SLIDE 5] AS l, b [{right} SLIDE 5] AS r WHERE {where}"
FITS = {"what": "COUNT(*) AS n", "left": "RANGE 20", "right": "RANGE 20", "where": "l.k = r.k"}


@pytest.mark.parametrize(
    "other",
    [
        {"what": "SUM(r.x) AS n"},  # floating sums of other panes round otherwise
        {"what": "COUNT(DISTINCT r.v) AS n"},
        {"what": "SUM(l.v // r.v) AS n"},  # may fail for a result that the shorter windows do not have
        {"what": "MEDIAN(r.v) AS n"},
        {"left": "RANGE 20 OFFSET 5"},
        {"left": "ROWS 20", "right": "ROWS 20"},
        {"right": "RANGE UNBOUNDED"},
        {"where": "l.k = r.v"},
    ],
)
def test_what_does_not_fit_runs_alone(other: dict[str, str]) -> None:
    db = database()
    one, fits = (db.query(TEXT.format(**FITS), name=name) for name in ("one", "fits"))
    assert shared(one) and shared(fits)
    try:
        assert not shared(db.query(TEXT.format(**{**FITS, **other})))
    except windrow.Error:
        assert "ROWS" in str(other)  # whose SLIDE counts tuples


def test_one_alone_has_operators_of_its_own() -> None:
    db = database()
    one = db.query(TEXT.format(**FITS), name="one")
    assert not shared(one)
    two = db.query(TEXT.format(**{**FITS, "left": "RANGE 40"}), name="two")
    assert shared(one) and shared(two)
    db.drop("one")
    db.drop("two")
    assert not db._engine.flows.joins
    assert not shared(db.query(TEXT.format(**FITS)))


def test_the_join_and_its_results_are_made_once() -> None:
    with forced("bij"):
        made_once()


def made_once() -> None:
    rng = np.random.default_rng(5)
    world = {}
    for name in STREAMS:
        ticks = np.sort(rng.integers(0, 200, 600))
        columns = {"t": ticks, "k": rng.integers(0, 9, 600).astype(np.int32), "v": rng.integers(0, 9, 600)}
        more = {"s": pa.nulls(600, pa.string())}
        if name == "b":
            more = {"w": pa.nulls(600, pa.decimal128(6, 2)), "x": pa.nulls(600, pa.float64())}
        world[name] = pa.table(columns | more)
    windows = [10, 20, 30, 40, 60]
    texts = [TEXT.format(**{**FITS, "left": f"RANGE {n}", "right": f"RANGE {n}"}) for n in windows]
    held = {}
    for sharing in (True, False):
        db = database(sharing=sharing)
        queries = [db.query(text, name=f"w{n}") for n, text in zip(windows, texts, strict=True)]
        for name, table in world.items():
            db.push(name, table)
        held[sharing] = sum(query.running.state["state_rows"] for query in queries)
        if sharing:
            (share,) = db._engine.flows.joins
            told = db.execute("SHOW SHARING").to_pylist()
    assert len(share.axes) == 1
    assert share.saved.tuples == 4 * 1200
    assert share.axes[0].results < share.axes[0].saved.updates == 4 * share.axes[0].results
    # Alone, each holds the tuples of its own windows; together only those of the longest are held.
    assert held[True] < 0.5 * held[False]
    rules = {row["rule"]: row for row in told}
    assert rules["SS3"]["queries"] == "w10, w20, w30, w40, w60"
    assert rules["SS3"]["saved"] == 4 * 1200
    assert rules["CS5"]["saved"] > 0
    assert "rule SS3" in db_explain(texts)


def db_explain(texts: list[str]) -> str:
    """EXPLAIN of the last of these queries, beside the others."""
    db = database()
    return str([db.query(text) for text in texts][-1].explain())


def test_one_that_cannot_be_answered_stops_alone() -> None:
    db, alone = database(), database(sharing=False)
    fails = TEXT.format(**{**FITS, "what": "CAST(COUNT(*) * 100 AS TINYINT) AS n"})
    texts = [fails, TEXT.format(**FITS), TEXT.format(**{**FITS, "right": "RANGE 30"})]
    twins = [(db.query(text), alone.query(text)) for text in texts]
    assert all(shared(one) for one, _ in twins)
    for number in range(3):
        row = {"t": [10 * number + 1], "k": pa.array([1], pa.int32()), "v": [1]}
        more = {"a": {"s": ["x"]}, "b": {"w": pa.nulls(1, pa.decimal128(6, 2)), "x": [0.5]}}
        for name in STREAMS:
            for one in (db, alone):
                with contextlib.suppress(windrow.QueryError):
                    one.push(name, pa.table(row | more[name]))
    for one in (db, alone):
        with contextlib.suppress(windrow.QueryError):
            one.finish()
    assert [one.status for one, _ in twins] == [other.status for _, other in twins] == ["stopped", "running", "running"]
    for one, other in twins[1:]:
        assert one.answers().num_rows == 5
        assert_same(one.answers(), other.answers())


def test_a_query_that_comes_later_shares_the_panes() -> None:
    """With windows of one length the results that it knows are behind an edge; with two lengths they are not."""
    for right, axes in (("RANGE 20", 1), ("RANGE 30", 2)):
        db, alone = database(), database(sharing=False)
        fits = {**FITS, "right": right}
        later = {**fits, "what": "MAX(r.k) AS n", "left": "RANGE 15", "right": "RANGE 15" if axes == 1 else "RANGE 25"}
        twins = [[one.query(TEXT.format(**fits)) for one in (db, alone)] for _ in range(2)]
        for number in range(8):
            if number == 3:
                twins.append([one.query(TEXT.format(**later)) for one in (db, alone)])
            row = {"t": [10 * number + 1, 10 * number + 7], "k": pa.array([1, 1], pa.int32()), "v": [number, 5]}
            more = {"a": {"s": ["x"] * 2}, "b": {"w": pa.nulls(2, pa.decimal128(6, 2)), "x": [0.5] * 2}}
            for name in STREAMS:
                for one in (db, alone):
                    one.push(name, pa.table(row | more[name]))
        (share,) = db._engine.flows.joins
        assert len(share.axes) == axes
        for one, other in twins:
            assert one.answers().num_rows > 5
            assert_same(one.answers(), other.answers())


def test_a_query_begins_where_it_came_also_when_those_with_an_edge_there_have_gone() -> None:
    db, alone = database(), database(sharing=False)
    fine = TEXT.format(**FITS)
    coarse = fine.replace("SLIDE 5", "SLIDE 20")
    gone = [one.query(fine, name="fine") for one in (db, alone)]
    twins = [[one.query(coarse) for one in (db, alone)]]
    table = {"t": np.arange(101), "k": np.ones(101, np.int32), "v": np.arange(101)}
    more = {"a": {"s": ["x"] * 101}, "b": {"w": pa.nulls(101, pa.decimal128(6, 2)), "x": [0.5] * 101}}
    for stream, start, stop in (("b", 0, 34), ("a", 0, 51), ("b", 34, 60), ("a", 51, 101), ("b", 60, 101)):
        if (stream, start) == ("b", 34):  # results are in panes up to 35, and tuples up to 50 are known
            twins.append([one.query(coarse) for one in (db, alone)])
            for one in (db, alone):
                one.drop("fine")
        for one in (db, alone):
            one.push(stream, pa.table(table | more[stream]).slice(start, stop - start))
    (share,) = db._engine.flows.joins
    assert len(share.axes) == 1 and twins[1][0].since == 50
    for one, other in [gone, *twins]:
        assert_same(one.answers(), other.answers())
    assert twins[1][0].answers()["n"].to_pylist()[0] == 100 and twins[0][0].answers().num_rows > 3


def test_when_the_longest_windows_go_the_join_shrinks() -> None:
    db, alone = database(), database(sharing=False)
    texts = [
        TEXT.format(**{**FITS, "left": f"RANGE {n}", "right": f"RANGE {m}"}) for n, m in ((5, 10), (10, 5), (90, 80))
    ]
    twins = [(db.query(text, name=f"q{i}"), alone.query(text)) for i, text in enumerate(texts)]
    more = {"a": {"s": ["x"] * 50}, "b": {"w": pa.nulls(50, pa.decimal128(6, 2)), "x": [0.5] * 50}}
    for number in range(4):
        if number == 2:
            (share,) = db._engine.flows.joins
            before = share.flow.rows
            db.drop("q2")
            assert share.shape.windows == (10, 10)
            assert share.flow.rows < before / 3
        row = {"t": np.arange(50) + 50 * number, "k": (np.arange(50) % 3).astype(np.int32), "v": np.arange(50)}
        for name in STREAMS:
            for one in (db, alone):
                one.push(name, pa.table(row | more[name]))
    for one, other in twins[:2]:
        assert_same(one.answers(), other.answers())


def test_explain_of_a_query_that_is_not_registered_tells_whose_join_it_would_share() -> None:
    db = database()
    text = TEXT.format(**FITS)
    assert "made once" not in db.execute(f"EXPLAIN {text}")
    db.query(text, name="one")
    assert "join: it would be made once with one (rule SS3" in db.execute(f"EXPLAIN {text}")
    db.query(text, name="two")
    assert "join: it would be made once with one, two (rule SS3" in db.execute(f"EXPLAIN {text}")
    assert "made once" not in db.execute(f"EXPLAIN {text.replace('l.k = r.k', 'l.k = r.v')}")


def test_cs4_or_cs5_whatever_the_synopsis_allows() -> None:
    for synopsis, rule in (("bij", "CS5"), ("ij", "CS4"), ("rj", "CS4")):
        with forced(synopsis):
            db = database()
            for n, name in ((20, "one"), (20, "same"), (40, "other")):
                db.query(TEXT.format(**{**FITS, "left": f"RANGE {n}", "right": f"RANGE {n}"}), name=name)
            told = {row["rule"]: row["queries"] for row in db.execute("SHOW SHARING").to_pylist()}
            assert told[rule] == ("one, same, other" if rule == "CS5" else "one, same")
            assert set(told) == {"SS3", rule}
            assert f"rule {rule}, thesis 8.3.2" in db.execute("EXPLAIN one")
            assert f"{synopsis.upper()} synopsis" in db.execute("EXPLAIN other")


@pytest.mark.parametrize("synopsis", ["bij", "ij", "rj"])
def test_a_query_that_comes_while_one_stream_is_ahead_leaves_the_others_what_they_have(synopsis: str) -> None:
    with forced(synopsis):
        db, alone = database(), database(sharing=False)
        text = TEXT.format(**FITS)
        twins = [[one.query(text) for one in (db, alone)] for _ in range(2)]
        more = {"a": {"s": ["x"] * 300}, "b": {"w": pa.nulls(300, pa.decimal128(6, 2)), "x": [0.5] * 300}}
        table = {"t": np.arange(300), "k": (np.arange(300) % 7).astype(np.int32), "v": np.arange(300)}
        for stream, start, stop in (("a", 0, 200), ("b", 0, 20), ("b", 20, 90), ("b", 90, 300), ("a", 200, 300)):
            twins.append([one.query(text) for one in (db, alone)])
            for one in (db, alone):
                one.push(stream, pa.table(table | more[stream]).slice(start, stop - start))
        for one in (db, alone):
            one.finish()
        (share,) = db._engine.flows.joins
        assert len(share.axes) == 1
        for one, other in twins:
            assert_same(one.answers(), other.answers())


def test_a_join_is_shared_where_that_makes_fewer_results() -> None:
    """Windows that are short samples of the streams have few of the results that a shared join would make."""
    sampled = "SELECT COUNT(*) AS n FROM a [RANGE 2 SLIDE {0}] AS l, b [RANGE 2 SLIDE {0}] AS r WHERE l.k = r.k"
    db = database()
    assert not any(shared(one) for one in [db.query(sampled.format(slide)) for slide in (100, 100, 50)])
    assert "made once" not in db.execute(f"EXPLAIN {sampled.format(100)}")
    often = db.query(sampled.format(1))
    assert not shared(often)
    last = db.query(sampled.format(1))  # with it, all of them share what these two need anyway
    assert all(shared(one) for one in db.queries()) and shared(last)


def test_a_join_of_short_samples_is_not_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where RANGE is far below SLIDE a shared join would make many results that nobody asks for (joined/worth.py)."""
    made, answers = [], []
    for forced in (False, True):
        if forced:
            monkeypatch.setattr("windrow.flows.pays", lambda shapes: True)
        db = windrow.connect()
        for name in ("a", "b"):
            db.execute(f"CREATE STREAM {name} (t BIGINT, k INT) TIME t")
        text = "SELECT COUNT(*) AS n FROM a [RANGE {0} SLIDE 500] AS l, b [RANGE {0} SLIDE 500] AS r WHERE l.k = r.k"
        queries = [db.query(text.format(length)) for length in (10, 12)]
        ticks = np.arange(2000)
        for name in ("a", "b"):
            db.push(name, pa.table({"t": ticks, "k": (ticks % 3).astype(np.int32)}))
        db.finish()
        answers.append([query.answers().to_pylist() for query in queries])
        made.append(sum(axis.results for share in db._engine.flows.joins for axis in share.axes))
    asked = sum(row["n"] for found in answers[0] for row in found)
    assert answers[0] == answers[1] and made[0] == 0 and made[1] > 20 * asked > 0
