"""A live run under a steady load, in a process of its own; prints what it measured as one JSON object.

Two streams (arrow scan and row path), 20 queries with files as sinks, a checkpoint, a query that is read with `take`,
a view, and a query that comes and goes. The load repeats, so all that grows is a leak.

    python -m tests.pipeline.soak DIRECTORY SECONDS
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import windrow
from windrow.pipeline import checkpoint
from windrow.pipeline.session import start_session, stop_session

SPARK = {
    # The whole heap is there from the start: then the size of the Java process shows what it takes besides.
    "spark.driver.memory": "640m",
    "spark.driver.extraJavaOptions": "-Xms640m -XX:+AlwaysPreTouch -XX:MaxDirectMemorySize=256m",
    # Spark remembers its last 1000 jobs; with 20 that memory is full before the measurement begins.
    **{f"spark.ui.retained{what}": "20" for what in ("Jobs", "Stages", "Tasks")},
    "spark.sql.ui.retainedExecutions": "20",
}
EVERY = 0.2
"""Seconds between two files of a stream."""
ROWS = 1_000
"""Of a file; it is one second of event time."""
SAMPLE = 3.0
FEWEST = 8
"""Samples, on a machine that is busy with other things too."""
COLUMNS = "ts TIMESTAMP, host STRING, port INT, bytes BIGINT"
QUERIES = [
    f"SELECT {key}, {call} AS v FROM {stream} [RANGE {length} SECONDS SLIDE {slide} SECONDS]{where} GROUP BY {key}"
    for stream, where in (("packets", ""), ("flows", " WHERE port < 3"))
    for key in ("host", "port")
    for call, length, slide in (
        ("SUM(bytes)", 20, 2), ("MAX(bytes)", 60, 5), ("COUNT(*)", 10, 1), ("AVG(bytes)", 30, 10), ("MIN(ts)", 5, 5)
    )
]  # fmt: skip


@dataclass(frozen=True)
class Sample:
    """One look at the processes and the disk; memory is in MiB."""

    seconds: float
    driver: float
    driver_threads: int
    driver_files: int
    java: float
    java_heap: float
    """What is in use after a collection."""
    java_threads: int
    java_files: int
    workers: float
    """The largest Python worker."""
    worker_count: int
    journal: int
    """Files of the journal and the snapshots."""
    spark_notes: int
    """Files of Spark's offsets."""
    backlog: int
    """Files that nobody has read yet."""
    read: int


def ring(number: int) -> pa.Table:
    """The rows of one file: five tables that take turns, with their times shifted."""
    start, turn = number * 1_000_000, number % 5
    places = range(ROWS)
    return pa.table(
        {
            "ts": pa.array([start + i * 1_000 for i in places], pa.timestamp("us")),
            "host": [f"host-{(i * (turn + 3)) % 40}" for i in places],
            "port": pa.array([(i + turn) % 6 for i in places], pa.int32()),
            "bytes": [(i * 7919 + turn) % 1500 for i in places],
        }
    )


class Feeder(threading.Thread):
    """Drops a file into each directory every so often, and counts them."""

    def __init__(self, directories: list[Path]) -> None:
        super().__init__(daemon=True, name="feeder")
        self._directories = directories
        self._over = threading.Event()
        self.files = 0

    def run(self) -> None:
        """Until `end` is called."""
        while not self._over.wait(EVERY):
            table = ring(self.files)
            for directory in self._directories:
                hidden = directory / f".{self.files:08}.parquet"
                pq.write_table(table, hidden)
                hidden.rename(directory / hidden.name[1:])
            self.files += 1

    def end(self) -> None:
        """The last file is complete when this returns."""
        self._over.set()
        self.join()


def status(pid: int | str) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def resident(found: dict[str, str]) -> float:
    return int(found.get("VmRSS", "0").split()[0]) / 1024


def descendants(pid: int) -> list[dict[str, str]]:
    """The processes below this one, without those that end meanwhile."""
    everybody: dict[str, dict[str, str]] = {}
    for one in Path("/proc").iterdir():
        if one.name.isdigit():
            try:
                everybody[one.name] = status(one.name)
            except OSError:
                continue
    below: set[str] = set()
    frontier = {str(pid)}
    while frontier:
        frontier = {name for name, found in everybody.items() if found.get("PPid") in frontier} - below
        below |= frontier
    return [everybody[name] for name in below]


def sample(began: float, spark: Any, home: Path, db: windrow.Database, feeder: Feeder) -> Sample:
    java = spark.sparkContext._gateway.proc.pid
    spark._jvm.java.lang.System.gc()
    runtime = spark._jvm.java.lang.Runtime.getRuntime()
    heap = (runtime.totalMemory() - runtime.freeMemory()) / 2**20
    own, theirs = status("self"), status(java)
    workers = [resident(one) for one in descendants(java)]
    state = home / "state"
    read = sum(stream["read"] for stream in db.metrics()["streams"].values())
    return Sample(
        round(time.monotonic() - began, 1),
        resident(own),
        int(own["Threads"]),
        len(os.listdir("/proc/self/fd")),
        resident(theirs),
        heap,
        int(theirs["Threads"]),
        len(os.listdir(f"/proc/{java}/fd")),
        max(workers, default=0.0),
        len(workers),
        sum(1 for place in ("journal", "snapshots") for _ in (state / place).rglob("*")),
        sum(1 for one in (state / "spark").rglob("*") if one.is_file()),
        2 * feeder.files - read // ROWS,
        read,
    )


def soak(home: Path, seconds: float) -> dict[str, Any]:
    """Run, measure, stop, and say what came out."""
    # A snapshot replaces the journal after a few minutes, not after hours: so that there are several in any soak.
    checkpoint.SMALLEST_COMPACTION = 1 << 20
    spark = start_session("local[2]", SPARK, home / "spark.log")
    db = windrow.connect(spark=spark)
    for name, scan in (("packets", "arrow"), ("flows", "rows")):
        (home / name).mkdir(parents=True)
        db.execute(
            f"CREATE STREAM {name} ({COLUMNS}) TIME ts USING parquet "
            f"OPTIONS (path '{home / name}', scan '{scan}', cleanSource 'delete')"
        )
    for number, text in enumerate(QUERIES):
        db.query(text, name=f"q{number}")
    db.execute(f"CREATE QUERY taken INTO memory AS {QUERIES[0]}")
    taken = db.queries()[-1]
    feeder = Feeder([home / "packets", home / "flows"])
    feeder.start()
    began = time.monotonic()
    db.start("200 milliseconds", checkpoint=home / "state", output=home / "out")
    db.sql_view("taken")
    samples, kept, guests = [], 0, 0
    while time.monotonic() - began < seconds or len(samples) < FEWEST:
        db.wait(SAMPLE)
        kept += taken.take().num_rows
        guests += 1
        db.execute(f"CREATE QUERY guest_{guests} INTO memory AS {QUERIES[guests % len(QUERIES)]}")
        if guests > 1:
            db.drop(f"guest_{guests - 1}")
        samples.append(sample(began, spark, home, db, feeder))
    feeder.end()
    while any(stream["read"] < feeder.files * ROWS for stream in db.metrics()["streams"].values()):
        db.wait(0.2)
    summary = db.stop()
    kept += taken.take().num_rows
    stop_session(spark)
    return {
        "samples": [asdict(one) for one in samples],
        "files": feeder.files,
        "kept": kept,
        "late": summary.progress.late,
        "steps": summary.progress.steps,
        "stopped": summary.stopped,
        "phases": summary.phases,
    }


if __name__ == "__main__":
    print(json.dumps(soak(Path(sys.argv[1]), float(sys.argv[2]))))
