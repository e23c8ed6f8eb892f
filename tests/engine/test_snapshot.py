"""Invariant 3, in the engine: restored from a snapshot, it goes on exactly like the one that was not disturbed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow
from tests.engine.test_queries_come_and_go import rows, similar
from tests.random_queries import TICKS, queries, tables
from tests.random_schemas import Case, cases
from windrow.synopses import share_group
from windrow.testing import cut, shuffle_within

Declare = Callable[[windrow.Database], None]


def snapshot_of(db: windrow.Database) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The engine's snapshot as it comes back from a disk."""
    meta, blobs = db._engine.snapshot()
    return json.loads(json.dumps(meta, allow_nan=False)), dict(blobs)


def blank_copy(db: windrow.Database, declare: Declare, synopsis: str | None = None) -> windrow.Database:
    """A new database with the same streams and running queries, and no data."""
    copy = windrow.Database(synopsis=synopsis)
    declare(copy)
    for query in db.queries():
        if query.status == "running":
            copy.query(query.text, name=query.name)
    return copy


def copy_of(db: windrow.Database, declare: Declare, synopsis: str | None = None) -> windrow.Database:
    """A new database that was restored from a snapshot of this one."""
    copy = blank_copy(db, declare, synopsis)
    copy._engine.restore(*snapshot_of(db))
    return copy


def counters(db: windrow.Database, names: set[str]) -> dict[str, Any]:
    """The metrics without the bytes allocated and the time spent, and since when the queries know their stream."""
    metrics = db.metrics()
    for stream in metrics["streams"].values():
        del stream["state_bytes"]
    for query in metrics["queries"].values():
        del query["seconds"]
    metrics["queries"] = {name: query for name, query in metrics["queries"].items() if name in names}
    metrics["since"] = {query.name: query.since for query in db.queries() if query.name in names}
    return metrics


def exact(table: pa.Table) -> tuple[pa.Schema, str]:
    """Every value in its place, to the last bit of a float; NaN equals NaN."""
    return table.schema, repr(table.to_pylist())


class Lockstep:
    """A database that runs undisturbed, and restored copies of it that get the same calls."""

    def __init__(self, declare: Declare, synopsis: str | None = None) -> None:
        self.declare, self.synopsis = declare, synopsis
        self.all = [windrow.Database(synopsis=synopsis)]
        declare(self.all[0])

    def do(self, call: Callable[[windrow.Database], Any]) -> None:
        """The same call on all; the same answers, late rows, counters and errors come of it."""
        errors = [self._error(db, call) for db in self.all]
        assert errors == errors[:1] * len(errors)
        first = {query.name: query.take() for query in self.all[0].queries()}
        late = {name: exact(self.all[0].late(name, take=True)) for name in self.streams}
        for copy in self.all[1:]:
            names = {query.name for query in copy.queries()}
            for query in copy.queries():
                assert exact(query.take()) == exact(first[query.name])
            assert {name: exact(copy.late(name, take=True)) for name in self.streams} == late
            assert counters(copy, names) == counters(self.all[0], names)

    @staticmethod
    def _error(db: windrow.Database, call: Callable[[windrow.Database], Any]) -> str | None:
        try:
            call(db)
        except windrow.QueryError as error:
            return str(error)
        return None

    @property
    def streams(self) -> list[str]:
        return list(self.all[0].metrics()["streams"])

    def copy(self, which: int) -> None:
        """One more copy: of the first, or of a copy."""
        source = self.all[which % len(self.all)]
        copy = copy_of(source, self.declare, self.synopsis)
        running = [query for query in source.queries() if query.status == "running"]
        assert copy.metrics()["queries"] == {query.name: query.metrics() for query in running}
        assert snapshot_of(copy) == snapshot_of(source)
        self.all.append(copy)

    def check_state(self) -> None:
        """What is kept is the same too, so that nothing can differ later."""
        first, *copies = [snapshot_of(db) for db in self.all]
        for meta, _ in (first, *copies):
            for query in meta["streams"][0]["queries"]:
                del query["seconds"]
        assert all(copy == first for copy in copies)


def one_stream(lateness: int = 0) -> Declare:
    return lambda db: db.stream("s", TICKS, time="t", lateness=lateness)


@settings(max_examples=2 * settings().max_examples)
@given(
    tables(),
    st.lists(st.one_of(similar(), queries()), min_size=1, max_size=6),
    st.integers(0, 2**32),
    st.sampled_from([0, 0, 4, 30]),
    st.sampled_from([share_group.SMALL, 16]),
    st.sampled_from([None, None, "basic_interval", "interval", "landmark"]),
    st.data(),
)
def test_a_copy_goes_on_like_the_original(
    table: pa.Table,
    texts: list[str],
    seed: int,
    lateness: int,
    small: int,
    synopsis: str | None,
    data: st.DataObject,
) -> None:
    """Copies are made at random moments, also of copies, while queries come and go and rows come too late."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(share_group, "SMALL", small)  # with the lower one, these few rows reach the sparse layout
        runs = Lockstep(one_stream(lateness), synopsis)
        waiting = list(texts)
        # Rows that come later than the declared lateness are late.
        for batch in cut(shuffle_within(table, "t", lateness + 3, seed), seed, 8):
            while waiting and data.draw(st.booleans(), label="register one now"):
                text = waiting.pop()
                name = f"q{len(waiting)}"
                runs.do(lambda db, text=text, name=name: db.query(text, name=name))
            running = [query.name for query in runs.all[-1].queries() if query.status == "running"]
            if len(running) > 1 and data.draw(st.integers(0, 3), label="drop one at 0") == 0:
                gone = data.draw(st.sampled_from(running))
                runs.do(lambda db, gone=gone: db.drop(gone))
            if len(runs.all) < 4 and data.draw(st.integers(0, 2), label="copy at 0") == 0:
                runs.copy(data.draw(st.integers(0, 3)))
            runs.do(lambda db, batch=batch: db.push("s", batch))
            mark = runs.all[0].metrics()["streams"]["s"]["watermark"]
            if mark is not None and data.draw(st.integers(0, 4), label="heartbeat at 0") == 0:
                runs.do(lambda db, mark=mark: db.advance("s", mark + 2))
            runs.check_state()
        runs.copy(len(runs.all) - 1)
        runs.do(lambda db: db.finish())
        runs.copy(0)
        runs.do(lambda db: db.finish())


@given(cases(), st.integers(0, 2**32), st.integers(0, 4))
def test_keys_and_values_of_any_type(case: Case, seed: int, moment: int) -> None:
    runs = Lockstep(lambda db: db.execute(case.declaration))
    for text in case.queries:
        runs.do(lambda db, text=text: db.query(text))
    for step, batch in enumerate(cut(case.table, seed, 5)):
        if step == moment:
            runs.copy(0)
        runs.do(lambda db, batch=batch: db.push("s", batch))
    runs.check_state()
    runs.do(lambda db: db.finish())


def layout_names(db: windrow.Database) -> list[str]:
    parts = db._engine.streams["s"].slices.values()
    return [part.group.layout for part in parts if part.group is not None]


def test_many_groups_that_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Purged groups get new numbers, which is the order of rows; float sums depend on the layout in their last bits."""
    schema = pa.schema([("t", pa.int64()), ("k", pa.int64()), ("s", pa.string()), ("x", pa.float64())])
    monkeypatch.setattr(share_group, "SMALL", 12_000)
    runs = Lockstep(lambda db: db.stream("s", schema, time="t"))
    rng = np.random.default_rng(5)
    texts = [
        "SELECT k, SUM(x) AS v, COUNT(x) AS n, MAX(s) AS m FROM s [RANGE 60 SLIDE 10] GROUP BY k",
        "SELECT k, SUM(x) AS v, COUNT(x) AS n, MAX(s) AS m FROM s [RANGE 100 SLIDE 5] GROUP BY k",
        "SELECT k, s, VAR_POP(x) AS v FROM s [RANGE 50 SLIDE 10] GROUP BY k, s ORDER BY v LIMIT 20",
        "SELECT MIN(s) AS m, AVG(x) AS v FROM s [RANGE 30 SLIDE 5] WHERE x > 0.5",
    ]
    for text in texts:
        runs.do(lambda db, text=text: db.query(text))
    layouts = set()
    for step in range(30):
        keys = rng.integers(0, 400, 300) + (step // 3) * 40
        batch = pa.table(
            [
                pa.array(np.sort(rng.integers(20 * step, 20 * step + 20, 300))),
                pa.array(keys),
                pa.array([f"{key % 97:02}" for key in keys]),
                pa.array(rng.random(300), mask=rng.random(300) < 0.1),
            ],
            schema=schema,
        )
        if step % 7 == 3:
            runs.copy(step)
        runs.do(lambda db, batch=batch: db.push("s", batch))
        first, *copies = [layout_names(db) for db in runs.all]
        assert all(copy == first for copy in copies)
        layouts.update(first)
        runs.check_state()
    runs.do(lambda db: db.finish())
    assert layouts == {"dense", "sparse"}
    assert len(runs.all) == 5


def test_two_streams_and_queries_that_share() -> None:
    def declare(db: windrow.Database) -> None:
        db.stream("s", TICKS, time="t")
        db.stream("Other one/two", TICKS, time="t", lateness=5)

    runs = Lockstep(declare)
    for length in (10, 30, 20):
        text = f"SELECT a, COUNT(*) AS n FROM s [RANGE {length} SLIDE 5] GROUP BY a"
        runs.do(lambda db, text=text: db.query(text))
    runs.do(lambda db: db.query('SELECT COUNT(*) AS n FROM "Other one/two" [RANGE 10 SLIDE 5]'))
    runs.do(lambda db: db.push("s", rows(*range(20))))
    runs.do(lambda db: db.push("Other one/two", rows(*range(7))))
    runs.copy(0)
    copy = runs.all[1]
    assert [stream["slices"] for stream in copy.metrics()["streams"].values()] == [1, 1]
    _, blobs = snapshot_of(copy)
    assert all(name.replace("-", "").isalnum() for name in blobs), "names of blobs are good names of files"
    runs.do(lambda db: db.push("Other one/two", rows(*range(7, 30))))
    runs.do(lambda db: db.query("SELECT a, SUM(a) AS n FROM s [RANGE 10 SLIDE 1] GROUP BY a", name="new"))
    runs.do(lambda db: db.push("s", rows(*range(20, 60))))
    runs.do(lambda db: db.drop("query_1"))
    runs.do(lambda db: db.push("s", rows(*range(60, 90))))
    runs.do(lambda db: db.finish())


def test_an_engine_without_data() -> None:
    runs = Lockstep(one_stream())
    runs.copy(0)
    runs.do(lambda db: db.query("SELECT COUNT(*) AS n FROM s [RANGE 10 SLIDE 5]"))
    runs.copy(0)
    runs.do(lambda db: db.push("s", rows()))
    runs.copy(1)
    runs.do(lambda db: db.push("s", rows(3, 4, 17)))
    runs.do(lambda db: db.finish())
    assert [db.metrics()["queries"]["query_1"]["answers"] for db in runs.all] == [4] * 4


def test_a_query_that_has_not_been_due_yet_starts_at_the_same_time() -> None:
    """It shares panes that are older than itself, and must not answer for the time before it came."""
    runs = Lockstep(one_stream())
    runs.do(lambda db: db.query("SELECT COUNT(*) AS n FROM s [RANGE 100 SLIDE 10]"))
    runs.do(lambda db: db.push("s", rows(*range(1, 62))))
    runs.do(lambda db: db.query("SELECT COUNT(*) AS n FROM s [RANGE 50 SLIDE 10]", name="new"))
    runs.copy(0)
    for db in runs.all:
        db.push("s", rows(*range(62, 81)))
        db.finish()
    first, copy = [db.queries()[-1].answers().to_pylist() for db in runs.all]
    assert first == copy == [{"_time": 70, "n": 50}, {"_time": 80, "n": 50}]


def test_a_finished_engine_stays_finished() -> None:
    db = windrow.connect()
    one_stream()(db)
    db.query("SELECT COUNT(*) AS n FROM s [RANGE 10 SLIDE 5]", name="q")
    db.push("s", rows(3, 4, 17))
    db.finish()
    copy = copy_of(db, one_stream())
    assert copy.metrics()["queries"] == db.metrics()["queries"]
    copy.finish()
    assert copy.queries()[0].answers().num_rows == 0
    with pytest.raises(windrow.StateError, match="has ended"):
        copy.push("s", rows(20))


def test_restored_twice_and_over_data_it_is_the_snapshot_again() -> None:
    db = windrow.connect()
    one_stream(2)(db)
    db.query("SELECT a, COUNT(*) AS n FROM s [RANGE 10 SLIDE 5] GROUP BY a", name="q")
    db.push("s", rows(3, 4, 17))
    wanted = snapshot_of(db)
    copy = blank_copy(db, one_stream(2))
    copy._engine.restore(*wanted)
    copy._engine.restore(*wanted)
    assert snapshot_of(copy) == wanted
    copy.push("s", rows(1, 40, 50))
    assert copy.late("s").num_rows == 1
    copy._engine.restore(*wanted)
    assert snapshot_of(copy) == wanted
    assert (copy.late("s").num_rows, copy.queries()[0].answers().num_rows) == (0, 0)


def test_the_order_of_registration_comes_from_the_snapshot() -> None:
    db, copy = windrow.connect(), windrow.connect()
    texts = {"x": "SELECT SUM(a) AS v FROM s [RANGE 10 SLIDE 5]", "y": "SELECT MIN(s) AS v FROM s [RANGE 10 SLIDE 5]"}
    for one, names in ((db, "xy"), (copy, "yx")):
        one_stream()(one)
        for name in names:
            one.query(texts[name], name=name)
    db.push("s", rows(3, 4, 17))
    copy._engine.restore(*snapshot_of(db))
    assert snapshot_of(copy) == snapshot_of(db)
