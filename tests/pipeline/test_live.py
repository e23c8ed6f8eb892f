"""Live runs: what arrives is taken in, asked about, added to and stopped, while Spark goes on in the background."""

from __future__ import annotations

import gc
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv
from pyspark.sql import SparkSession

import windrow
from tests.pipeline.files import TICKS_DDL, write_files
from tests.random_queries import TICKS
from windrow.pipeline.run import LIVE_PATIENCE
from windrow.testing import Reference, assert_same

PATIENCE = 90.0
"""Seconds after which something that must happen has not happened."""
TRIGGER = "50 milliseconds"
TEXTS = [
    "SELECT s, SUM(b) AS v, MAX(x) AS top FROM s [RANGE 20 SLIDE 5] GROUP BY s",
    "SELECT COUNT(*) AS n FROM s [RANGE 7 SLIDE 3] WHERE a = 2",
    "SELECT a, MIN(s) AS m FROM s [RANGE 30 SLIDE 10 OFFSET 2] GROUP BY a",
]


def piece(number: int, rows: int = 60) -> pa.Table:
    """The rows of the file `number`: 20 ticks each."""
    places = range(number * rows, (number + 1) * rows)
    return pa.table(
        {
            "t": [i // 3 for i in places],
            "a": [i % 7 for i in places],
            "b": [i * i for i in places],
            "x": [i / 8 for i in places],
            "s": [f"host-{i % 5}" for i in places],
            "f": [i % 2 == 0 for i in places],
            "d": [1000 * i for i in places],
        },
        schema=TICKS,
    )


def pieces(first: int, last: int) -> list[pa.Table]:
    return [piece(number) for number in range(first, last)]


def drop_in(directory: Path, first: int, last: int) -> None:
    write_files(directory, pieces(first, last), first=first)


def drop_in_garbage(directory: Path, number: int) -> None:
    file = directory / f"part-{number:04}.parquet"
    hidden = directory / f".{file.name}"
    hidden.write_bytes(b"PAR1 this is no Parquet PAR1")
    # As old as its neighbours: Spark skips files that are a week older than the newest it has seen.
    os.utime(hidden, (1_700_000_000 + number, 1_700_000_000 + number))
    hidden.rename(file)


def declare(db: windrow.Database, directory: Path, name: str = "s", options: str = "") -> None:
    directory.mkdir(parents=True, exist_ok=True)
    db.execute(f"CREATE STREAM {name} ({TICKS_DDL}) TIME t USING parquet OPTIONS (path '{directory}'{options})")


def pushed(tables: list[pa.Table], texts: list[str]) -> list[windrow.Query]:
    """The same rows and queries without Spark: what is due by now, and no more."""
    db = windrow.connect()
    db.stream("s", TICKS, time="t")
    for text in texts:
        db.query(text)
    for table in tables:
        db.push("s", table)
    return db.queries()


def check(db: windrow.Database, tables: list[pa.Table]) -> None:
    found = db.queries()
    for one, other in zip(found, pushed(tables, [query.text for query in found]), strict=True):
        assert other.answers().num_rows
        assert_same(one.answers(), other.answers(), absolute=1e-9)


def until(condition: Callable[[], Any], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"waited {PATIENCE} s for {what}"
        time.sleep(0.02)


def rows(db: windrow.Database, stream: str = "s") -> int:
    return int(db.metrics()["streams"][stream]["read"])


def until_read(db: windrow.Database, count: int, stream: str = "s") -> None:
    def enough() -> bool:
        db.wait(0)  # raises what went wrong
        return rows(db, stream) >= count and answered(db)

    until(enough, f"{count} rows of {stream}")


def answered(db: windrow.Database) -> bool:
    """Whether all that is due is answered, beside the taking in."""
    schedules = db.metrics().get("schedule", {}).values()
    return not any(one["updates_behind"] or one["backlog"] for one in schedules)


@pytest.fixture
def db(spark: SparkSession) -> Iterator[windrow.Database]:
    """A database whose run ends with the test; Spark stays."""
    database = windrow.connect(spark=spark)
    yield database
    database.close()
    assert not spark.streams.active


def test_files_that_arrive_are_taken_in(db: windrow.Database, tmp_path: Path) -> None:
    drop_in(tmp_path, 0, 2)
    declare(db, tmp_path)
    for text in TEXTS:
        db.query(text)
    db.start(TRIGGER)
    until_read(db, 120)
    check(db, pieces(0, 2))
    drop_in(tmp_path, 2, 3)
    until_read(db, 180)
    drop_in(tmp_path, 3, 6)
    until_read(db, 360)
    summary = db.stop()
    check(db, pieces(0, 6))
    assert (summary.ended, summary.progress.rows, summary.progress.late) == (False, 360, 0)
    assert summary.progress.answers == sum(query.answers().num_rows for query in db.queries())


def test_a_directory_that_is_still_empty(db: windrow.Database, tmp_path: Path) -> None:
    declare(db, tmp_path)
    db.query(TEXTS[0])
    db.start(TRIGGER)
    assert db.wait(0.5) is False
    drop_in(tmp_path, 0, 2)
    until_read(db, 120)
    db.stop()
    check(db, pieces(0, 2))


def test_a_stop_before_any_data(db: windrow.Database, tmp_path: Path) -> None:
    declare(db, tmp_path / "in")
    db.query(TEXTS[0])
    db.start("1 hour", checkpoint=tmp_path / "state", output=tmp_path / "out")
    summary = db.stop()
    assert (summary.progress.rows, summary.progress.answers, summary.ended) == (0, 0, False)


def test_the_rate_source(db: windrow.Database) -> None:
    db.execute(
        "CREATE STREAM clicks (timestamp TIMESTAMP, value BIGINT) TIME timestamp "
        "USING rate OPTIONS (rowsPerSecond '20', numPartitions '1')"
    )
    query = db.query(
        "SELECT COUNT(*) AS n, MAX(value) - MIN(value) AS spread FROM clicks [RANGE 1 SECOND SLIDE 1 SECOND]"
    )
    with pytest.raises(windrow.Error, match="never ends"):
        db.run()
    db.start("200 milliseconds")
    until(lambda: query.answers().num_rows >= 3, "three answers")
    db.stop()
    before = query.answers().num_rows
    db.start("200 milliseconds")  # goes on with the numbers that come next
    until(lambda: query.answers().num_rows >= before + 2, "two more answers")
    db.stop()
    answers = query.answers().to_pylist()
    # The first window begins before the source does; each later one has exactly the rows of a second.
    assert [(row["n"], row["spread"]) for row in answers[1:]] == [(20, 19)] * (len(answers) - 1)
    times = [row["_time"].timestamp() for row in answers]
    assert times == [times[0] + place for place in range(len(times))]


@contextmanager
def line_server() -> Iterator[tuple[int, Callable[[int, str], None]]]:
    """A TCP server; gives the port, and the function that sends lines to its first, second, … reader."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(PATIENCE)
        readers: list[socket.socket] = []

        def send(reader: int, text: str) -> None:
            until(lambda: len(readers) > reader, "a reader")
            readers[reader].sendall(text.encode())

        def accept() -> None:
            try:
                while True:
                    readers.append(server.accept()[0])
            except OSError:
                pass  # the server is closed

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield server.getsockname()[1], send
        finally:
            server.close()
            for reader in readers:
                reader.close()


@pytest.mark.parametrize("state", [None, "state"])
def test_the_socket_source(db: windrow.Database, tmp_path: Path, state: str | None) -> None:
    def last() -> dict[str, int]:
        answers = query.answers().to_pylist()
        return {row["value"]: row["n"] for row in answers if row["_time"] == answers[-1]["_time"]}

    with line_server() as (port, send):
        db.execute(
            "CREATE STREAM lines (value STRING, timestamp TIMESTAMP) TIME timestamp "
            f"USING socket OPTIONS (host '127.0.0.1', port '{port}', includeTimestamp 'true')"
        )
        query = db.query("SELECT value, COUNT(*) AS n FROM lines [RANGE 1 HOUR SLIDE 200 MILLISECONDS] GROUP BY value")
        expected: dict[str, int] = {}
        for run in range(2):  # the second run goes on with the windows of the first
            db.start(TRIGGER, checkpoint=None if state is None else tmp_path / state)
            send(run, "a\nb\na\n")
            until_read(db, 4 * run + 3, "lines")
            expected = {"a": 2 + 2 * run, "b": 1 + run} | ({"c": 1} if run else {})
            assert db.wait(0.5) is False
            send(run, "c\n")  # answers come when a later row moves the watermark
            until_read(db, 4 * run + 4, "lines")
            db.stop()
            assert last() == expected


def test_queries_come_and_go(db: windrow.Database, tmp_path: Path) -> None:
    declare(db, tmp_path)
    first = db.query(TEXTS[0], name="first")
    started: dict[str, Any] = {"first": None}
    handles = {"first": first}

    def mark() -> Any:
        return db.metrics()["streams"]["s"]["watermark"]

    db.start(TRIGGER)
    dropped: dict[str, Any] = {}
    for number in range(6):
        drop_in(tmp_path, number, number + 1)
        until_read(db, 60 * (number + 1))
        if number in (0, 2):
            name = f"at {number}"
            handles[name] = db.query(TEXTS[number % 2].replace("RANGE 20", "RANGE 40"), name=name)
            started[name] = mark()
        if number == 3:
            db.execute("CREATE QUERY fresh AS SELECT f, MAX(d) AS v FROM s [RANGE 15 SLIDE 4] GROUP BY f")
            handles["fresh"], started["fresh"] = db.queries()[-1], mark()
            db.drop("first")
            dropped["first"] = mark()
    end = mark()
    db.stop()
    table = pa.concat_tables(pieces(0, 6))
    assert {query.name for query in db.queries()} == {"at 0", "at 2", "fresh"}
    for name, query in handles.items():
        expected = Reference(
            query.bound, {"s": table}, start=started[name], since=query.since, until=dropped.get(name, end)
        ).answers()
        assert expected.num_rows
        assert_same(query.answers(), expected, absolute=1e-9)


def test_a_bad_query_changes_nothing(db: windrow.Database, tmp_path: Path) -> None:
    drop_in(tmp_path / "in", 0, 1)
    declare(db, tmp_path / "in")
    db.query(TEXTS[0], name="good")
    (tmp_path / "out" / "taken").mkdir(parents=True)
    (tmp_path / "out" / "taken" / "part-of-others.parquet").write_text("not ours")
    db.start(TRIGGER, checkpoint=tmp_path / "state", output=tmp_path / "out")
    until_read(db, 60)
    with pytest.raises(windrow.BindError):
        db.query("SELECT SUM(nothing) FROM s [RANGE 5 SLIDE 5]")
    with pytest.raises(windrow.Error, match="already holds answers"):
        db.query(TEXTS[1], name="taken")
    with pytest.raises(windrow.CatalogError):
        db.drop("taken")
    db.query(TEXTS[1], name="free")
    drop_in(tmp_path / "in", 1, 3)
    until_read(db, 180)
    summary = db.stop()
    assert sorted(summary.outputs) == ["free", "good"]
    written = pq.read_table(tmp_path / "out" / "good")
    assert_same(written, pushed(pieces(0, 3), TEXTS[:1])[0].answers())
    assert [one.name for one in (tmp_path / "out" / "taken").iterdir()] == ["part-of-others.parquet"]


def test_other_threads_may_look_at_any_time(db: windrow.Database, tmp_path: Path, spark: SparkSession) -> None:
    declare(db, tmp_path)
    looked = db.query(TEXTS[0], name="looked")
    taken = db.query(TEXTS[0], name="taken")
    db.query(TEXTS[1], name="counts")
    parts: list[pa.Table] = []
    views: list[int] = []
    over = threading.Event()
    errors: list[BaseException] = []
    calls: dict[str, int] = {}

    def look(name: str, call: Callable[[], Any]) -> None:
        try:
            while not over.is_set():
                call()
                calls[name] = calls.get(name, 0) + 1
        except BaseException as error:
            errors.append(error)

    def view() -> None:
        db.sql_view("counts")
        views.append(spark.sql("SELECT * FROM counts").count())

    def come_and_go() -> None:
        db.query(TEXTS[2], name="guest")
        db.drop("guest")

    looks: dict[str, Callable[[], Any]] = {
        "answers": looked.answers,
        "take": lambda: parts.append(taken.take()),
        "metrics": db.metrics,
        "explain": lambda: (looked.explain(), db.execute("EXPLAIN counts")),
        "view": view,
        "guest": come_and_go,
        "wait": lambda: db.wait(0.01),
        "late": lambda: db.late("s"),
    }
    db.start(TRIGGER)
    threads = [threading.Thread(target=look, args=item, daemon=True) for item in looks.items()]
    for thread in threads:
        thread.start()
    for number in range(6):
        drop_in(tmp_path, number, number + 1)
        until_read(db, 60 * (number + 1))
    until(lambda: len(calls) == len(looks), "a call of each kind")
    over.set()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive(), "a thread hangs"
    assert not errors, errors
    db.stop()
    expected = pushed(pieces(0, 6), TEXTS[:2])
    assert_same(looked.answers(), expected[0].answers(), absolute=1e-9)
    assert_same(pa.concat_tables([*parts, taken.take()]), expected[0].answers(), absolute=1e-9)
    assert max(views) == 1
    newest = spark.sql("SELECT * FROM counts").toArrow().to_pylist()
    assert newest == expected[1].answers().to_pylist()[-1:]


def test_a_stop_while_queries_come_and_go(db: windrow.Database, tmp_path: Path) -> None:
    """A query that comes while the run ends belongs to the run or comes after it, and never breaks it."""
    drop_in(tmp_path / "in", 0, 3)
    declare(db, tmp_path / "in")
    kept = db.query(TEXTS[0], name="kept")
    over = threading.Event()
    errors: list[BaseException] = []

    def come_and_go() -> None:
        try:
            while not over.is_set():
                db.query(TEXTS[1], name="guest")
                db.drop("guest")
        except BaseException as error:
            errors.append(error)

    for run in range(3):
        db.start("0 seconds", checkpoint=tmp_path / "state")
        thread = threading.Thread(target=come_and_go, daemon=True)
        thread.start()
        drop_in(tmp_path / "in", 3 + run, 4 + run)
        until_read(db, 60 * (4 + run))
        db.stop()
        over.set()
        thread.join(PATIENCE)
        assert not thread.is_alive() and not errors, errors
        over.clear()
    # Without a sink, what a checkpointed run has answered belongs to that run: only the last one's is here.
    expected = pushed(pieces(0, 6), TEXTS[:1])[0].answers().to_pylist()
    assert kept.answers().to_pylist() == [row for row in expected if row["_time"] >= kept.answers()["_time"][0].as_py()]


def test_nothing_is_left_running(db: windrow.Database, tmp_path: Path, spark: SparkSession) -> None:
    declare(db, tmp_path / "in")
    db.query(TEXTS[0], name="q")
    counts = []
    for run in range(4):
        db.start(TRIGGER, output=tmp_path / "out")
        drop_in(tmp_path / "in", run, run + 1)
        until_read(db, 60 * (run + 1))
        assert len(spark.streams.active) == 1
        summary = db.stop()
        assert not spark.streams.active
        assert summary.outputs == {"q": str(tmp_path / "out" / "q")}
        deadline = time.monotonic() + 20  # threads that Spark's client closes need a moment on a busy machine
        while counts and threading.active_count() > counts[0] and time.monotonic() < deadline:
            time.sleep(0.1)
        counts.append(threading.active_count())
    assert counts[-1] <= counts[0], f"threads after each run: {counts}"
    assert_same(pq.read_table(tmp_path / "out" / "q"), pushed(pieces(0, 4), TEXTS[:1])[0].answers())
    assert not list(tmp_path.rglob("*.tmp"))


def test_the_garbage_collector_leaves_the_queries_of_a_live_run_alone(db: windrow.Database, tmp_path: Path) -> None:
    drop_in(tmp_path / "in", 0, 1)
    declare(db, tmp_path / "in")
    db.query(TEXTS[0])
    assert not gc.get_freeze_count()
    for _ in range(2):
        db.start(TRIGGER)
        assert gc.get_freeze_count() > 1000
        db.stop()
        assert not gc.get_freeze_count()


def test_start_again_goes_on(db: windrow.Database, tmp_path: Path) -> None:
    declare(db, tmp_path)
    db.query(TEXTS[0])
    for run in range(3):
        drop_in(tmp_path, 2 * run, 2 * run + 2)
        db.start(TRIGGER)
        until_read(db, 120 * (run + 1))
        db.stop()
        if run == 0:
            db.query(TEXTS[0].replace("SUM(b)", "SUM(a)"))  # between two runs
    added = db.queries()[1]
    expected = Reference(
        added.bound, {"s": pa.concat_tables(pieces(0, 6))}, start=pieces(0, 2)[1]["t"][-1].as_py() - 1,
        since=added.since, until=db.metrics()["streams"]["s"]["watermark"],
    )  # fmt: skip
    assert_same(added.answers(), expected.answers(), absolute=1e-9)
    db.drop(added.name)
    check(db, pieces(0, 6))


def test_a_new_database_goes_on_from_the_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    for run in range(3):
        with windrow.connect(spark=spark) as db:
            declare(db, tmp_path / "in")
            db.query(TEXTS[0], name="q")
            assert db.sql_view("q").count() == 0
            db.start(TRIGGER, checkpoint=tmp_path / "state", output=tmp_path / "out")
            drop_in(tmp_path / "in", run, run + 1)
            until_read(db, 60 * (run + 1))
            summary = db.stop()
            assert summary.resumed == (() if run == 0 else ("q",))
            expected = pushed(pieces(0, run + 1), TEXTS[:1])[0].answers()
            assert_same(pq.read_table(tmp_path / "out" / "q"), expected)
            # The view follows the run, also one that was recovered.
            last = [row for row in expected.to_pylist() if row["_time"] == expected["_time"][-1].as_py()]
            assert spark.sql("SELECT * FROM q ORDER BY s").toArrow().to_pylist() == last


def test_a_replay_that_is_left_open_goes_on(db: windrow.Database, tmp_path: Path) -> None:
    declare(db, tmp_path)
    for text in TEXTS:
        db.query(text)
    drop_in(tmp_path, 0, 3)
    assert not db.run(finish=False).ended
    check(db, pieces(0, 3))
    drop_in(tmp_path, 3, 5)
    assert not db.run(finish=False).ended
    drop_in(tmp_path, 5, 6)
    assert db.run().ended
    table = pa.concat_tables(pieces(0, 6))
    for query in db.queries():
        assert_same(query.answers(), Reference(query.bound, {"s": table}).answers(), absolute=1e-9)


def test_another_checkpoint_would_read_everything_again(spark: SparkSession, tmp_path: Path) -> None:
    drop_in(tmp_path / "in", 0, 2)
    db = windrow.connect(spark=spark)
    declare(db, tmp_path / "in")
    db.query(TEXTS[0])
    db.run(finish=False)
    with pytest.raises(windrow.StateError, match="read them again"):
        db.run(checkpoint=tmp_path / "state")
    db.run(finish=False)
    check(db, pieces(0, 2))
    db.close()
    with pytest.raises(windrow.StateError, match="was closed"):
        db.run()
    other = windrow.connect(spark=spark)
    declare(other, tmp_path / "in")
    other.query(TEXTS[0])
    other.run(checkpoint=tmp_path / "state", finish=False)
    for start in (other.start, other.run):
        with pytest.raises(windrow.StateError, match="read them again"):
            start()
    other.run(checkpoint=tmp_path / "state", finish=False)


def test_answers_of_others_are_not_mixed_in_by_a_second_run(db: windrow.Database, tmp_path: Path) -> None:
    drop_in(tmp_path / "in", 0, 2)
    declare(db, tmp_path / "in")
    db.query(TEXTS[0], name="q")
    db.run(finish=False, output=tmp_path / "out")
    (tmp_path / "other" / "q").mkdir(parents=True)
    (tmp_path / "other" / "q" / "part-000000000003.parquet").write_text("of another run")
    with pytest.raises(windrow.Error, match="already holds answers"):
        db.run(finish=False, output=tmp_path / "other")
    db.drop("q")
    db.query(TEXTS[1], name="q")
    with pytest.raises(windrow.Error, match="already holds answers"):
        db.run(finish=False, output=tmp_path / "out")
    drop_in(tmp_path / "in", 2, 3)
    db.run(finish=False, output=tmp_path / "third")
    assert pq.read_table(tmp_path / "third" / "q").num_rows


def test_a_stream_that_is_declared_again_is_read_from_its_start(db: windrow.Database, tmp_path: Path) -> None:
    drop_in(tmp_path, 0, 2)
    for _ in range(2):
        declare(db, tmp_path)
        query = db.query(TEXTS[0])
        db.run(finish=False)
        check(db, pieces(0, 2))
        db.drop(query.name)
        db.execute("DROP STREAM s")


def test_an_idle_stream_does_not_hold_others_back(db: windrow.Database, tmp_path: Path) -> None:
    declare(db, tmp_path / "busy", options=", maxFilesPerTrigger '1'")
    declare(db, tmp_path / "idle", "idle")
    for name in ("s", "idle"):
        for text in TEXTS[:2]:
            db.query(text.replace("FROM s", f"FROM {name}"))
    drop_in(tmp_path / "idle", 0, 1)
    drop_in(tmp_path / "busy", 0, 20)
    began = time.monotonic()
    db.start("0 seconds")
    until_read(db, 20 * 60)
    assert time.monotonic() - began < 18 * LIVE_PATIENCE, "each file waited for the idle stream"
    drop_in(tmp_path / "idle", 1, 3)  # and it is not late for having been idle
    until_read(db, 180, "idle")
    summary = db.stop()
    assert summary.progress.late == 0
    for name, last in (("s", 20), ("idle", 3)):
        mine = [query for query in db.queries() if f"FROM {name} " in query.text]
        for one, other in zip(mine, pushed(pieces(0, last), TEXTS[:2]), strict=True):
            assert_same(one.answers(), other.answers(), absolute=1e-9)


def test_what_cannot_be_done_while_a_run_goes_on(db: windrow.Database, tmp_path: Path) -> None:
    for call in (db.stop, db.wait):
        with pytest.raises(windrow.StateError, match="no run is going on"):
            call()
    declare(db, tmp_path)
    db.execute("CREATE STREAM other (t BIGINT) TIME t")
    db.query(TEXTS[0], name="q")
    db.start(TRIGGER)
    refused: list[tuple[Callable[[], Any], str]] = [
        (lambda: db.start(TRIGGER), "going on already"),
        (db.run, "going on already"),
        (lambda: db.push("s", piece(0)), r"db.stop\(\)"),
        (lambda: db.push("other", pa.table({"t": [1]})), r"db.stop\(\)"),
        (lambda: db.advance("s", 5), r"db.stop\(\)"),
        (db.finish, r"db.stop\(\)"),
        (lambda: db.execute("CREATE STREAM more (t BIGINT) TIME t"), r"db.stop\(\)"),
        (lambda: db.stream("more", TICKS, time="t"), r"db.stop\(\)"),
        (lambda: db.execute("DROP STREAM other"), r"db.stop\(\)"),
    ]
    for call, words in refused:
        with pytest.raises(windrow.StateError, match=words):
            call()
    drop_in(tmp_path, 0, 2)
    until_read(db, 120)
    db.stop()
    check(db, pieces(0, 2))
    with pytest.raises(windrow.StateError, match="no run is going on"):
        db.stop()
    db.push("other", pa.table({"t": [1]}))
    db.execute("DROP STREAM other")


@pytest.mark.parametrize("ask", ["wait", "stop", "close"])
def test_a_failure_is_told_and_the_database_goes_on(
    db: windrow.Database, spark: SparkSession, tmp_path: Path, ask: str
) -> None:
    drop_in(tmp_path / "in", 0, 2)
    declare(db, tmp_path / "in")
    db.query(TEXTS[0], name="q")
    db.start(TRIGGER, output=tmp_path / "out")
    until_read(db, 120)
    drop_in_garbage(tmp_path / "in", 2)
    assert db.metrics()["run"] == {"state": "running", "error": None} or not spark.streams.active
    until(lambda: db.metrics()["run"]["state"] == "failed", "the failure")
    assert "part-0002" in db.metrics()["run"]["error"]
    for change in (lambda: db.query(TEXTS[1]), lambda: db.drop("q"), lambda: db.set_policy("edf")):
        with pytest.raises(windrow.StateError, match=r"the run has failed.*part-0002.*db\.stop\(\)"):
            change()
    with pytest.raises(windrow.Error, match="part-0002") as caught:
        getattr(db, ask)()
    assert "Traceback" not in str(caught.value)
    with pytest.raises(windrow.StateError, match="no run is going on"):
        db.stop()
    if ask == "close":
        return
    assert db.metrics()["run"]["state"] == "none" and "part-0002" in db.metrics()["run"]["error"]
    assert db.metrics()["streams"]["s"]["read"] == 120
    more = db.query(TEXTS[1], name="more")
    drop_in(tmp_path / "in", 2, 4)  # the cause is removed
    db.start(TRIGGER, output=tmp_path / "out")
    until_read(db, 240)
    db.stop()
    assert db.metrics()["run"] == {"state": "none", "error": None}
    assert_same(pq.read_table(tmp_path / "out" / "q"), pushed(pieces(0, 4), TEXTS[:1])[0].answers())
    assert more.metrics()["answers"]


def test_everybody_who_waits_is_told_of_a_failure(db: windrow.Database, tmp_path: Path) -> None:
    declare(db, tmp_path)
    db.query(TEXTS[0])
    db.start(TRIGGER)
    told: list[BaseException | bool] = []

    def wait() -> None:
        try:
            told.append(db.wait(PATIENCE))
        except windrow.Error as error:
            told.append(error)

    threads = [threading.Thread(target=wait, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    drop_in_garbage(tmp_path, 7)
    for thread in threads:
        thread.join(PATIENCE)
    assert len(told) == 3 and all("part-0007.parquet" in str(one) for one in told), told


def test_those_who_wait_see_a_stop(db: windrow.Database, tmp_path: Path) -> None:
    drop_in(tmp_path, 0, 1)
    declare(db, tmp_path)
    db.query(TEXTS[0])
    db.start(TRIGGER)
    told: list[bool] = []
    threads = [threading.Thread(target=lambda: told.append(db.wait()), daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    until_read(db, 60)
    db.stop()
    for thread in threads:
        thread.join(PATIENCE)
    assert told == [True, True]


def test_a_replay_that_another_thread_stops_keeps_its_windows_open(db: windrow.Database, tmp_path: Path) -> None:
    drop_in(tmp_path, 0, 12)
    declare(db, tmp_path, options=", maxFilesPerTrigger '1'")
    db.query(TEXTS[0])
    begun = threading.Event()

    def stop() -> None:
        begun.wait(PATIENCE)
        db.stop()

    def watch(progress: windrow.Progress) -> None:
        if progress.steps >= 2:
            begun.set()

    thread = threading.Thread(target=stop, daemon=True)
    thread.start()
    summary = db.run(progress=watch)
    thread.join(PATIENCE)
    assert not summary.ended and summary.progress.rows < 12 * 60
    assert db.run().ended
    table = pa.concat_tables(pieces(0, 12))
    query = db.queries()[0]
    assert_same(query.answers(), Reference(query.bound, {"s": table}).answers(), absolute=1e-9)


def test_a_progress_function_cannot_stop_the_run_that_waits_for_it(db: windrow.Database, tmp_path: Path) -> None:
    drop_in(tmp_path, 0, 1)
    declare(db, tmp_path)
    db.query(TEXTS[0])
    refused: list[str] = []

    def watch(progress: windrow.Progress) -> None:
        for call in (db.stop, db.wait, db.close):
            with pytest.raises(windrow.StateError) as caught:
                call()
            refused.append(str(caught.value))

    db.start(TRIGGER, progress=watch)
    until_read(db, 60)
    assert db.wait(0.2) is False
    db.stop()
    assert refused and all("progress function" in one for one in refused)
    check(db, pieces(0, 1))


def test_two_databases_may_run_at_once(db: windrow.Database, spark: SparkSession, tmp_path: Path) -> None:
    drop_in(tmp_path, 0, 2)
    with windrow.connect(spark=spark) as other:
        for one in (db, other):
            declare(one, tmp_path)
            one.query(TEXTS[0])
            one.start(TRIGGER)
        for one in (db, other):
            until_read(one, 120)
            one.stop()
            check(one, pieces(0, 2))


@pytest.mark.parametrize("trigger", ["garbage", "", "5", "-1 second", "1 month", "every minute"])
def test_a_trigger_that_is_no_interval(db: windrow.Database, tmp_path: Path, trigger: str) -> None:
    declare(db, tmp_path / "in")
    db.query(TEXTS[0])
    with pytest.raises(windrow.SetupError, match="expected an interval such as '1 second', found") as caught:
        db.start(trigger, checkpoint=tmp_path / "state", output=tmp_path / "out")
    assert repr(trigger) in str(caught.value) and "\n" not in str(caught.value)
    assert not (tmp_path / "state").exists() and not (tmp_path / "out").exists()


@pytest.mark.parametrize("trigger", ["100 milliseconds", "0 seconds", "INTERVAL 1 second", "0.2 seconds"])
def test_triggers_in_sparks_words(db: windrow.Database, tmp_path: Path, trigger: str) -> None:
    drop_in(tmp_path, 0, 1)
    declare(db, tmp_path)
    db.query(TEXTS[0])
    db.start(trigger)
    until_read(db, 60)
    db.stop()
    check(db, pieces(0, 1))


def test_ctrl_c_leaves_answers_that_can_be_read(tmp_path: Path) -> None:
    declaration = f"CREATE STREAM s ({TICKS_DDL}) TIME t USING parquet OPTIONS (path '{tmp_path / 'in'}');"
    (tmp_path / "script.cql").write_text(f"{declaration}\nCREATE QUERY q AS {TEXTS[0]};\n")
    drop_in(tmp_path / "in", 0, 2)
    written = tmp_path / "answers" / "q"
    command = [sys.executable, "-m", "windrow", "run", str(tmp_path / "script.cql"), "--live", "--trigger", TRIGGER]
    arguments = ["--output", str(tmp_path / "answers"), "--format", "csv", "--log", str(tmp_path / "log")]
    path = os.pathsep.join(map(os.path.abspath, filter(None, sys.path)))
    with subprocess.Popen(
        [*command, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    ) as process:
        until(lambda: any(written.glob("part-*")) or process.poll() is not None, "the first answers")
        before = len(list(written.glob("part-*")))
        drop_in(tmp_path / "in", 2, 3)
        until(lambda: len(list(written.glob("part-*"))) > before or process.poll() is not None, "the next answers")
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr + stdout
    found = pa.concat_tables(csv.read_csv(file) for file in sorted(written.iterdir()))
    assert_same(found, pushed(pieces(0, 3), TEXTS[:1])[0].answers())


def test_the_session_makes_the_frames_of_streams(spark: SparkSession) -> None:
    with windrow.connect(spark=spark) as db:
        assert db.spark is spark
        db.stream("s", db.spark.createDataFrame([(1, 5), (2, 7)], "t bigint, x int"), time="t")
        query = db.query("SELECT SUM(x) AS total FROM s [RANGE 2 SLIDE 2]")
        db.run(progress=lambda _: None)
        assert query.answers().to_pydict() == {"_time": [2], "total": [12]}
