"""A real run of the command line that tests disturb: its input, its script, its process, and what it wrote."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.pipeline.files import write_files

FILES, ROWS = 48, 1_000
FILES_PER_BATCH = 2
LATE_EVERY = 97
"""One row of so many comes long after its time."""
RUN_SECONDS = 240
SAID = "said.txt"
SOURCE = Path(__file__).parents[2] / "src"
QUICK_START = ("spark.driver.memory=512m", "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
"""A Java process that starts quickly; it lives for seconds only."""

STREAM = """
CREATE STREAM readings (ts TIMESTAMP, sensor INT, place STRING, kind STRING, value DOUBLE, weight INT)
  TIME ts LATENESS 2 SECONDS
  USING parquet OPTIONS (path '{data}', maxFilesPerTrigger {pace}, scan '{scan}');
"""
QUERIES = """
CREATE QUERY load AS
  SELECT COUNT(*) AS n, SUM(weight) AS weights, SUM(value) AS total FROM readings [RANGE 5 SECONDS SLIDE 1 SECOND];
CREATE QUERY means AS
  SELECT sensor, AVG(value) AS mean, SUM(value) AS total, MIN(value) AS least
  FROM readings [RANGE 10 SECONDS SLIDE 2 SECONDS] GROUP BY sensor;
CREATE QUERY newest_kind AS
  SELECT place, MAX(kind) AS last, COUNT(*) AS n FROM readings [RANGE 7 SECONDS SLIDE 3 SECONDS] GROUP BY place;
CREATE QUERY heavy AS
  SELECT place, kind, SUM(weight) AS weights FROM readings [RANGE 20 SECONDS SLIDE 5 SECONDS]
  GROUP BY place, kind HAVING SUM(weight) > 9000;
CREATE QUERY best AS
  SELECT sensor, SUM(value * weight) AS score FROM readings [RANGE 30 SECONDS SLIDE 5 SECONDS]
  WHERE kind <> 'k3' GROUP BY sensor ORDER BY score DESC LIMIT 4;
CREATE QUERY spread INTO csv OPTIONS (path 'own/spread') AS
  SELECT kind, STDDEV_POP(value) AS spread, MAX(place) AS place FROM readings [RANGE 8 SECONDS SLIDE 4 SECONDS]
  GROUP BY kind;
CREATE QUERY shares INTO json OPTIONS (path 'own/shares') AS
  SELECT place, AVG(value) AS mean, AVG(weight) AS weight FROM readings [RANGE 9 SECONDS SLIDE 3 SECONDS]
  WHERE value > 0 GROUP BY place;
CREATE RELATION owners (sensor INT, owner STRING) KEY (sensor) USING csv OPTIONS (path '{owners}', header true);
CREATE QUERY pairs AS
  SELECT x.place, x.value, y.weight FROM readings [RANGE 1 SECOND] AS x, readings [RANGE 2 SECONDS] AS y
  WHERE x.sensor = y.sensor AND x.kind = 'k1' AND y.kind = 'k2' AND x.weight > 90;
CREATE QUERY lonely AS
  SELECT x.sensor, x.value FROM readings [RANGE 1 SECOND] AS x WHERE x.weight > 90 AND NOT EXISTS
    (SELECT * FROM readings [RANGE 300 MILLISECONDS] AS y WHERE y.sensor = x.sensor AND y.weight < 10);
CREATE QUERY busy_now AS
  SELECT place, COUNT(*) AS n, SUM(weight) AS weights FROM readings [RANGE 2 SECONDS] WHERE kind = 'k5' GROUP BY place;
CREATE QUERY owned AS
  SELECT x.value, o.owner FROM readings [RANGE 1 SECOND] AS x, owners AS o WHERE x.sensor = o.sensor AND x.weight > 95;
"""
CONTINUOUS = ("out/pairs", "out/lonely", "out/busy_now", "out/owned")
NAMES = ("out/load", "out/means", "out/newest_kind", "out/heavy", "out/best", "own/spread", "own/shares", *CONTINUOUS,
         "out/_late/readings")  # fmt: skip
"""Where the answers of each query are, and the late rows."""
QUERY_COUNT = len(NAMES) - 1


def write_readings(directory: Path, files: int = FILES, rows: int = ROWS) -> None:
    """Files of readings: one every 2 ms, a little out of order, some of them late, some values NULL."""
    random = np.random.default_rng(7)
    count = files * rows
    ticks = np.arange(count) * 2_000 - random.integers(0, 1_900_000, count)
    ticks[LATE_EVERY::LATE_EVERY] -= 9_000_000
    table = pa.table(
        {
            "ts": pa.array(1_767_225_600_000_000 + ticks, pa.timestamp("us")),
            "sensor": pa.array(random.integers(0, 12, count), pa.int32()),
            "place": pa.array([f"p{number}" for number in random.integers(0, 5, count)]),
            "kind": pa.array([f"k{number}" for number in random.integers(0, 9, count)]),
            "value": pa.array(random.normal(0, 1e3, count), mask=random.random(count) < 0.01),
            "weight": pa.array(random.integers(0, 100, count), pa.int32()),
        }
    )
    write_files(directory, [table.slice(number * rows, rows) for number in range(files)])
    owners = [f"{sensor},owner {sensor % 4}\n" for sensor in range(0, 12, 2)]
    _owners(directory).write_text("sensor,owner\n" + "".join(owners))


def _owners(data: Path) -> Path:
    return data.with_name(f"{data.name}-owners.csv")


def write_script(home: Path, data: Path, scan: str = "arrow") -> None:
    """`script.cql` in a run's own directory, which is its working directory too."""
    home.mkdir(parents=True, exist_ok=True)
    declared = STREAM.format(data=data, scan=scan, pace=FILES_PER_BATCH)
    (home / "script.cql").write_text(declared + QUERIES.format(owners=_owners(data)))


def start(home: Path, *more: str, settings: Iterable[str] = QUICK_START) -> subprocess.Popen[bytes]:
    """`windrow run` in this home, as the leader of a session and a process group of its own."""
    chosen = [word for setting in settings for word in ("--set", setting)]
    arguments = ["run", "script.cql", "--output", "out", "--checkpoint", "ckpt", "--log", "spark.log", *chosen, *more]
    with (home / SAID).open("ab") as said:
        return subprocess.Popen(
            [sys.executable, "-m", "windrow", *arguments],
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            env=os.environ | {"PYTHONPATH": str(SOURCE)},
            start_new_session=True,
        )


def run(home: Path, *more: str, settings: Iterable[str] = QUICK_START) -> int:
    """A run that nobody disturbs; gives its exit code."""
    with start(home, *more, settings=settings) as process:
        return process.wait(RUN_SECONDS)


def said(home: Path) -> str:
    """What all runs of a home printed."""
    return (home / SAID).read_text()


def contents(home: Path) -> dict[str, list[str]]:
    """The rows of every query in the order of its files, each exactly as written, and what columns they have."""
    found = {name: _rows(home / name) for name in NAMES}
    # The changes of one instant have no order, and a state that was restored may find them in another one.
    return found | {name: [*found[name][:1], *sorted(found[name][1:])] for name in CONTINUOUS}


def _rows(directory: Path) -> list[str]:
    rows: list[str] = []
    for file in sorted(directory.glob("part-*")):
        if file.suffix == ".parquet":
            table = pq.read_table(file)
            # The shortest text that gives back a double: equal texts are equal bits, also for NaN and -0.0.
            lines = [repr(tuple(row.values())) for row in table.to_pylist()]
            header = [str(table.schema.remove_metadata())]
        else:
            lines = file.read_text().splitlines()
            header, lines = (lines[:1], lines[1:]) if file.suffix == ".csv" else ([], lines)
        assert rows[: len(header)] in ([], header), f"{file} has other columns than the files before it"
        rows += lines if rows else header + lines
    return rows


def digests(directory: Path) -> dict[str, str]:
    """Every file below a directory, with a digest of its bytes."""
    files = (file for file in sorted(directory.rglob("*")) if file.is_file())
    return {str(file.relative_to(directory)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def leftovers(home: Path) -> list[Path]:
    """Unfinished files of Windrow: a clean end leaves none."""
    places = (home / "ckpt" / "journal", home / "ckpt" / "snapshots", home / "out", home / "own")
    return [file for place in places for file in place.rglob(".*")]


def session_processes(session: int) -> dict[int, int]:
    """The living processes of a session and their parents, where the system tells; Java stays in that of its run."""
    found = {}
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            # The name of a process may hold anything; what follows the last bracket is state, parent, group, session.
            state, parent, _, owner = (place / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(owner) == session and state not in "ZX":
                found[int(place.name)] = int(parent)
    return found


def wait_for(what: Callable[[], object], seconds: float, step: float = 0.005) -> bool:
    """Whether it became true in time."""
    until = time.monotonic() + seconds
    while not (found := what()) and time.monotonic() < until:
        time.sleep(step)
    return bool(found)
