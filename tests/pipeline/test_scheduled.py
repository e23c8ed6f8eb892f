"""A live run with a schedule: what was decided is in the journal, a crash changes nothing; the policy can change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import windrow
from tests.engine.test_live_schedule import TEXTS, at, exact, rows, slide_of
from tests.pipeline.files import write_files
from tests.pipeline.test_host import Folder
from tests.pipeline.test_live import answered
from windrow.engine import Engine
from windrow.language.catalog import Catalog, stream_from_schema
from windrow.live import LiveSchedule
from windrow.pipeline.checkpoint import Checkpoint
from windrow.pipeline.host import Host
from windrow.pipeline.reconcile import add_intake, reconcile
from windrow.sliced import pack
from windrow.slicer import Slicer
from windrow.testing import assert_same

STREAM = stream_from_schema("s", rows(0, 1).schema, time="t")
BATCHES = 40


def opened(root: Path) -> tuple[Host, Folder]:
    """A host with a schedule: begun, or recovered."""
    folder = Folder(root / "out")
    wanted = [folder.definition(f"q{number}", text) for number, text in enumerate(TEXTS)]
    checkpoint = Checkpoint.open(root / "checkpoint")
    host = Host(Engine(), Catalog(), checkpoint, folder)
    if checkpoint.snapshot is None:
        host.catalog.add(STREAM)
        host.engine.add_stream(STREAM)
        add_intake(host, STREAM, "f")
        for definition in wanted:
            host.register(definition)
        host.open_sinks()
        host.compact()
    else:
        host.recover({definition.name: definition for definition in wanted})
        reconcile(host, [(STREAM, "f")], wanted)
    host.schedule = LiveSchedule("hybrid-late-pending")
    return host, folder


def feed(host: Host, batches: range) -> None:
    for batch in batches:
        if batch <= host.done.get("s", -1):
            continue
        job = host.jobs.of("s")
        worker = Slicer(job.text)
        worker.begin(host.watermark("s"))
        worker.take(rows(4 * batch, 4 * batch + 4).select(list(job.columns)))
        host.take("s", batch, pa.Table.from_batches(list(pack(worker.result()))), flush=False)
        host.work(1e-9)  # only the most urgent: it is overloaded
        if batch % 7 == 6:
            while host.work(1):
                pass
            host.flush()


@pytest.mark.parametrize("stop", [3, 9, 20])
def test_what_was_decided_is_decided_again(tmp_path: Path, stop: int) -> None:
    host, folder = opened(tmp_path)
    feed(host, range(stop))
    answered = {name: hosted.running.answered for name, hosted in host.queries.items()}
    host.close()  # without a flush: what was answered is in the journal only
    host, folder = opened(tmp_path)
    assert {name: hosted.running.answered for name, hosted in host.queries.items()} == answered
    feed(host, range(BATCHES))
    host.finish(["s"])
    host.close()
    whole = rows(0, 4 * BATCHES)
    for number, text in enumerate(TEXTS):
        lines = folder.contents()[f"q{number}"]
        times = [int(line.split(",")[0]) for line in lines]
        assert times == sorted(times)
        wanted = at(exact(text, whole, 1), set(times))
        assert len(lines) == wanted.num_rows + sum(time > 4 * BATCHES - 2 for time in times)
        if "GROUP BY" not in text:
            assert len(set(times)) == len(times)  # none twice


def test_through_spark(spark: SparkSession, tmp_path: Path) -> None:
    write_files(tmp_path / "s", [rows(0, 60)])
    with windrow.connect(spark=spark) as db:
        db.execute(
            f"CREATE STREAM s (t BIGINT, a INT, b BIGINT) TIME t USING parquet OPTIONS (path '{tmp_path / 's'}')"
        )
        for number, text in enumerate(TEXTS):
            db.query(text, name=f"q{number}")
        with pytest.raises(windrow.SetupError, match="there is no policy 'fast'; the policies are edf"):
            db.start(policy="fast")
        db.start("0 seconds", policy="edf")
        while db.metrics()["streams"]["s"]["read"] < 60:
            db.wait(0.05)
        db.set_policy("hybrid-late-pending")
        with pytest.raises(windrow.StateError, match="not from or to exact"):
            db.set_policy("exact")
        write_files(tmp_path / "s", [rows(60, 120)], first=1)
        while db.metrics()["streams"]["s"]["read"] < 120:
            db.wait(0.05)
        while not answered(db):
            db.wait(0.05)
        told = db.metrics()
        assert told["schedule"]["s"]["policy"] == "hybrid-late-pending"
        assert told["schedule"]["s"]["runs"] > 100 and told["schedule"]["s"]["latency_p99"] > 0
        assert told["queries"]["q0"]["requested_period"] == 2
        assert told["queries"]["q0"]["achieved_period"] <= 2
        db.stop()
        told = db.metrics()  # of the run that has ended
        assert told == db.metrics() and told["schedule"]["s"]["runs"] > 100 and told["queries"]["q0"]["staleness"] < 2
        for query, text in zip(db.queries(), TEXTS, strict=True):
            wanted = exact(text, rows(0, 120), slide_of(text))
            assert_same(at(query.answers(), set(wanted["_time"].to_pylist())), wanted)
    with windrow.connect(spark=spark) as db, pytest.raises(windrow.StateError, match="no run is going on"):
        db.set_policy("edf")


def test_stopping_answers_what_is_late_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch has brought far more than can be answered soon: nobody waits for all of it, neither stop nor metrics."""
    monkeypatch.setattr("windrow.pipeline.run.STOP_SECONDS", 0.1)
    count = 400_000
    table = rows(0, count)
    write_files(tmp_path / "s", [table])
    with windrow.connect(spark=spark) as db:
        db.execute(
            f"CREATE STREAM s (t BIGINT, a INT, b BIGINT) TIME t USING parquet OPTIONS (path '{tmp_path / 's'}')"
        )
        texts = [f"SELECT MAX(b) AS v, COUNT(*) AS n FROM s [RANGE {20 + i} SLIDE {1 + i % 3}]" for i in range(20)]
        queries = [db.query(text) for text in texts]
        db.start("0 seconds", format="noop", policy="edf")
        while db.metrics()["streams"]["s"]["read"] < count:
            db.wait(0.02)
        began = perf_counter()
        waited = [_waited(db.metrics) for _ in range(3)]
        db.stop()
        assert perf_counter() - began < 20 and max(waited) < 5  # all of it takes minutes
        assert db.metrics()["schedule"]["s"]["skipped_updates"] > 0
        for query, text in zip(queries, texts, strict=True):
            (last,) = query.running.newest().to_pylist()
            length = int(text.split("RANGE ")[1].split()[0])
            assert last["_time"] > count - 5
            assert last["v"] == max(i * 37 % 101 for i in range(last["_time"] - length + 1, last["_time"] + 1))


def _waited(work: Callable[[], object]) -> float:
    began = perf_counter()
    work()
    return perf_counter() - began
