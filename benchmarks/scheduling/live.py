"""Real time on Spark: a thousand live queries over one stream, with sharing and without.

    python -m benchmarks.scheduling.live [--queries 1000] [--seconds 24] [--plot-dir build/benchmarks]

One file is one second of the stream, and one window update. A rate is sustained when a second of the stream takes less
than a second to read, slice, take in and answer. Latency is the time from a window update (the batch is taken in) to
each answer. Without sharing every query has panes of its own, and every query is executed by itself.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, sleep

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import windrow
from benchmarks.measure import Panel, draw, table

KEYS = ("", "protocol", "port", "source")
AGGREGATES = ("COUNT(*) AS n", "SUM(bytes) AS v", "MAX(bytes) AS v", "AVG(bytes) AS v")
DECLARED = "(ts TIMESTAMP, source INT, port INT, protocol INT, bytes INT) TIME ts"
BEGIN = 1_800_000_000_000_000
"""Of the stream, in microseconds."""
PATIENCE = 120.0
SHARED = [100_000, 500_000, 1_000_000, 2_000_000, 4_000_000, 6_000_000, 8_000_000, 12_000_000]
ALONE = [1_000, 5_000, 20_000, 40_000, 80_000, 160_000, 320_000]


@dataclass(frozen=True)
class Measured:
    """One live run at one rate."""

    rows: int
    """Per second of the stream."""
    seconds: float
    """Per second of the stream: below 1 the rate is sustained."""
    p50: float
    p99: float
    skipped: int
    runs: int

    @property
    def sustained(self) -> bool:
        """Whether the run kept pace."""
        return self.seconds < 1.0


def texts(count: int, seed: int = 8) -> list[str]:
    """Queries that differ in grouping, aggregate, WINDOW 20..100 and SLIDE 1..WINDOW/2."""
    chance = random.Random(seed)
    made = []
    for _ in range(count):
        key, value = chance.choice(KEYS), chance.choice(AGGREGATES)
        window = chance.randint(20, 100)
        slide = chance.randint(1, window // 2)
        columns = f"{key}, {value}" if key else value
        grouped = f" GROUP BY {key}" if key else ""
        made.append(f"SELECT {columns} FROM s [RANGE {window} SECONDS SLIDE {slide} SECONDS]{grouped}")
    return made


def write(directory: Path, rows: int, seconds: int) -> None:
    """A file for each second; all have the same rows in another order, because random numbers take their time."""
    directory.mkdir(parents=True)
    chance = np.random.default_rng(rows)
    within = np.sort(chance.integers(0, 1_000_000, rows))
    columns = {
        "source": (chance.zipf(1.4, rows) % 200).astype(np.int32),
        "port": chance.integers(0, 32, rows, np.int32),
        "protocol": chance.integers(0, 6, rows, np.int32),
        "bytes": chance.integers(40, 1500, rows, np.int32),
    }
    for second in range(seconds):
        ts = pa.array(BEGIN + second * 1_000_000 + within).view(pa.timestamp("us"))
        table = pa.table({"ts": ts} | {name: np.roll(column, second * 17) for name, column in columns.items()})
        pq.write_table(table, directory / f"part-{second:05}.parquet", compression="none", use_dictionary=False)
        sleep(0.002)  # Spark takes files in the order of their modification times


def measure(spark: object, questions: Sequence[str], rows: int, seconds: int, *, sharing: bool) -> Measured:
    """A live run over so many seconds of the stream, as fast as it goes."""
    with tempfile.TemporaryDirectory() as place:
        write(Path(place) / "s", rows, seconds)
        db = windrow.connect(spark=spark, sharing=sharing)
        db.execute(f"CREATE STREAM s {DECLARED} USING parquet OPTIONS (path '{place}/s', maxFilesPerTrigger '1')")
        for text in questions:
            db.query(text)
        db.start("0 seconds", format="noop", policy="hybrid-late-pending" if sharing else "edf")
        # The first batches pay for what is made once: workers, kernels, plans.
        began = _until(db, max(2, seconds // 4))
        schedule = db._runs.schedule
        assert schedule is not None
        schedule.begin_figures()
        ended = _until(db, seconds)
        told = db.metrics()["schedule"]["s"]
        db.stop()
        db.close()
        each = (ended[0] - began[0]) / max(1, ended[1] - began[1])
        return Measured(rows, each, told["latency_p50"], told["latency_p99"], told["skipped_updates"], told["runs"])


def _until(db: windrow.Database, batches: int) -> tuple[float, int]:
    """When so many batches were taken in, and how many there were then; looked at without taking a turn."""
    stream, until = db._engine.streams["s"], perf_counter() + PATIENCE
    while stream.batches < batches and perf_counter() < until:
        db.wait(0.005)
    return perf_counter(), stream.batches


def climb(
    spark: object, questions: Sequence[str], rates: Sequence[int], seconds: int, *, sharing: bool
) -> list[Measured]:
    """Higher and higher rates, up to the first that is not sustained."""
    found: list[Measured] = []
    for rate in rates:
        found.append(measure(spark, questions, rate, seconds, sharing=sharing))
        one = found[-1]
        print(f"  {rate:,} rows/s: {one.seconds:.2f} s per second of the stream", flush=True)
        if not one.sustained:
            break
    return found


def show(title: str, found: Sequence[Measured]) -> None:
    """A row for each rate."""
    columns = ["rows/s", "s per s", "sustained", "p50 ms", "p99 ms", "skipped", "runs"]
    rows = [
        [f"{one.rows:,}", one.seconds, "yes" if one.sustained else "no", one.p50 * 1e3, one.p99 * 1e3, one.skipped,
         one.runs]
        for one in found
    ]  # fmt: skip
    table(title, columns, rows)


def picture(path: Path, found: Mapping[str, Sequence[Measured]]) -> None:
    """Latency and load against the rate."""
    latency, load = {}, {}
    for name, runs in found.items():
        rates = [one.rows for one in runs]
        latency[f"{name}, p50"] = rates, [one.p50 * 1e3 for one in runs]
        latency[f"{name}, p99"] = rates, [one.p99 * 1e3 for one in runs]
        load[name] = rates, [one.seconds for one in runs]
    draw(
        path,
        [
            Panel("From a window update to an answer", "rows per second", "ms", latency, logx=True, logy=True),
            Panel("Time that a second of the stream takes", "rows per second", "seconds", load, logx=True),
        ],
    )


def run(
    queries: int, seconds: int, shared: Sequence[int], alone: Sequence[int], plots: Path | None = None
) -> dict[str, list[Measured]]:
    """Both, one after the other on one Spark."""
    from windrow.pipeline.session import start_session, stop_session

    spark = start_session()
    try:
        questions = texts(queries)
        measure(spark, questions[:50], 1000, 6, sharing=True)  # compiles what is compiled once
        found = {
            "shared": climb(spark, questions, shared, seconds, sharing=True),
            "alone": climb(spark, questions, alone, seconds, sharing=False),
        }
    finally:
        stop_session(spark)
    show(f"{queries:,} live queries, shared panes, policy hybrid-late-pending", found["shared"])
    show(f"{queries:,} live queries, nothing shared, policy edf", found["alone"])
    best = {name: max((one for one in runs if one.sustained), key=lambda one: one.rows, default=None)
            for name, runs in found.items()}  # fmt: skip
    if best["shared"] is not None:
        one = best["shared"]
        print(f"\nhighest rate sustained with sharing: {one.rows:,} rows/s, p99 {one.p99 * 1e3:.1f} ms (aim 50 ms)")
        if best["alone"] is not None:
            print(f"without: {best['alone'].rows:,} rows/s; ratio {one.rows / best['alone'].rows:.0f} (aim 20)")
        else:
            print(f"without: not even {min(alone):,} rows/s; ratio above {one.rows / min(alone):.0f} (aim 20)")
    if plots is not None:
        picture(plots / "scheduling_live.png", found)
    return found


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--seconds", type=int, default=24, help="of the stream, in each run")
    parser.add_argument(
        "--shared", type=int, nargs="+", default=SHARED, help="rows per second, up to the first too high"
    )
    parser.add_argument("--alone", type=int, nargs="+", default=ALONE, help="the same, without sharing")
    parser.add_argument("--plot-dir", type=Path, default=None, help="where the picture goes (default: none)")
    asked = parser.parse_args()
    run(asked.queries, asked.seconds, asked.shared, asked.alone, asked.plot_dir)


if __name__ == "__main__":
    main()
