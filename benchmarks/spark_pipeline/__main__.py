"""Windrow on Spark beside Spark: reading alone, one query, 240 queries, and Spark's own sliding window.

    python -m benchmarks.spark_pipeline [--rows 10000000] [--repeat 3] [--window-rows 10000000]

Everything runs in one process on one Spark session, in turns, after a warm-up turn; the best of the turns counts.
Look at the ratios: they are measured side by side.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter, sleep

import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import windrow
from benchmarks.many_queries.workload import DECLARATION, KINDS, Spec, queries, read, write
from benchmarks.spark_pipeline.spark_peers import OWN_QUERY, read_as_batch, read_as_stream, sliding_window

PHASES = {
    "executors": "Spark job: read, slice, transfer",
    "worker read": "  of which reading, in the workers (all cores)",
    "worker slice": "  of which slicing, in the workers (all cores)",
    "answers": "absorb partials, answer queries",
    "journal": "checkpoint: journal",
    "sinks": "sinks",
    "snapshot": "checkpoint: snapshot",
}


def write_files(directory: Path, rows: int) -> None:
    """The packets of benchmarks/many_queries, one file per million."""
    source = directory.parent / f"packets-{rows}.parquet"
    write(source, rows)
    if len(list(directory.glob("*.parquet"))) == rows // 1_000_000:
        return
    directory.mkdir(parents=True, exist_ok=True)
    for number, batch in enumerate(read(source)):
        file = directory / f"part-{number:03}.parquet"
        with pq.ParquetWriter(file, batch.schema, compression="none", use_dictionary=False) as writer:
            writer.write_batch(batch, row_group_size=1_000_000)
        sleep(0.01)  # Spark takes files in the order of their modification times


class Turns:
    """The best time of each piece of work, and what the run of that turn said."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.phases: dict[str, dict[str, float]] = {}
        self.steps: dict[str, int] = {}
        self.answers: dict[str, int] = {}

    def note(self, name: str, work: Callable[[], windrow.Summary | int]) -> None:
        """Do it once more."""
        gc.collect()
        began = perf_counter()
        result = work()
        seconds = perf_counter() - began
        print(f"  {name}: {seconds:.2f} s", file=sys.stderr, flush=True)
        if seconds < self.seconds.get(name, float("inf")):
            self.seconds[name] = seconds
            if isinstance(result, windrow.Summary):
                self.phases[name] = result.phases
                self.steps[name] = result.progress.steps
                self.answers[name] = result.progress.answers


def run(
    spark: SparkSession, path: Path, texts: Sequence[str], per_batch: int, checkpoint: Path | None = None
) -> windrow.Summary:
    """Windrow on these files; answers are computed in full and dropped, as Spark's noop sink drops what it reads."""
    db = registered(spark, path, texts, per_batch)
    return db.run(checkpoint=checkpoint, format="noop", progress=lambda _: None)


def registered(spark: SparkSession, path: Path, texts: Sequence[str], per_batch: int) -> windrow.Database:
    """A database with the stream and its queries."""
    db = windrow.connect(spark=spark)
    db.execute(f"{DECLARATION} USING parquet OPTIONS (path '{path}', maxFilesPerTrigger '{per_batch}')")
    for text in texts:
        db.query(text)
    return db


def measure(spark: SparkSession, path: Path, repeat: int, per_batch: int) -> Turns:
    """Reading, one query and 240 in turns; the first turn warms everything up and does not count."""
    many = [spec.sql for spec in queries(240)]
    ones = [[Spec(kind, 60, 10).sql] for kind in KINDS]
    turns = Turns()
    for turn in range(repeat + 1):
        print(f"turn {turn} of {repeat}" + (" (warm-up)" if not turn else ""), file=sys.stderr, flush=True)
        counted = turns if turn else Turns()
        counted.note("read, streaming", lambda: read_as_stream(spark, path, per_batch))
        counted.note("read, batch", lambda: read_as_batch(spark, path))
        for kind, one in zip(KINDS, ones, strict=True):
            counted.note(f"one {kind}", lambda one=one: run(spark, path, one, per_batch))  # type: ignore[misc]
        counted.note("registering", lambda: len(registered(spark, path, many, per_batch).queries()))
        counted.note("240 queries", lambda: run(spark, path, many, per_batch))
        with tempfile.TemporaryDirectory() as scratch:
            counted.note("240 queries, checkpoint", lambda at=scratch: run(spark, path, many, per_batch, Path(at)))  # type: ignore[misc]
        counted.note("window: Windrow", lambda: run(spark, path, [OWN_QUERY], per_batch))
    return turns


def check_window(spark: SparkSession, path: Path) -> float:
    """Spark's own window() on these files, in seconds; its answers must be ours."""
    began = perf_counter()
    theirs = sliding_window(spark, path)
    _checksum(theirs)
    seconds = perf_counter() - began
    db = registered(spark, path, [OWN_QUERY], 5)
    db.run(progress=lambda _: None)
    ours = db.queries()[0].answers()
    last = pc.max(ours["_time"]).as_py()  # Spark also gives windows that end after the last due time
    inside = theirs.where(f"_time <= TIMESTAMP_NTZ '{last}'").selectExpr(
        "count(*)", "sum(total)", "sum(n)", "sum(most)"
    )
    found = inside.first()
    expected = (ours.num_rows, *(pc.sum(ours[name]).as_py() for name in ("total", "n", "most")))
    assert found == expected, f"Spark {found}, Windrow {expected}"
    print(f"Spark's window() and Windrow agree on {ours.num_rows:,} answer rows")
    return seconds


def _checksum(answers: DataFrame) -> tuple[int, ...]:
    found = answers.selectExpr("count(*)", "sum(total)", "sum(n)", "sum(most)").first()
    assert found is not None
    return tuple(found)


def report(turns: Turns, rows: int, window: float | None, window_own: float | None, window_rows: int) -> None:
    """The tables, and the ratios that are aimed at."""
    seconds = turns.seconds
    one = sum(seconds[f"one {kind}"] for kind in KINDS) / len(KINDS)
    # Parsing and planning the texts is done once, before the first row, and is reported apart.
    registering = seconds["registering"]
    most = seconds["240 queries"] - registering
    checkpointed = seconds["240 queries, checkpoint"] - registering
    print(f"\n{rows:,} packets in {rows // 1_000_000} Parquet files; best of the turns")
    print(f"(1) Spark reads them into its noop sink, streaming   {seconds['read, streaming']:7.2f} s")
    print(f"    the same as a batch job                          {seconds['read, batch']:7.2f} s")
    print(f"(2) Windrow, one query (mean of the four kinds)      {one:7.2f} s")
    print(f"(3) Windrow, 240 queries, {turns.answers['240 queries']:>12,} answer rows {most:10.2f} s")
    print(f"    the same with a checkpoint                       {checkpointed:7.2f} s")
    print(f"    registering the 240 queries, once                {registering:7.2f} s")
    print(f"(3) / (1)   {most / seconds['read, streaming']:.2f}   (aim 1.0)")
    print(f"(3) / (2)   {most / one:.2f}   (aim 1.3)")
    if window is not None and window_own is not None:
        print(f"(4) one SUM, COUNT, MAX by src, RANGE 100 s SLIDE 1 s, {window_rows:,} packets:")
        ratio = window / window_own
        print(f"    Spark's window() {window:.1f} s, Windrow {window_own:.2f} s: {ratio:.0f} times faster   (aim 60)")
    for name in ("240 queries", "240 queries, checkpoint"):
        phases, steps = turns.phases[name], turns.steps[name]
        print(f"\nwhere the time goes ({name}; {steps} micro-batches), seconds")
        known = 0.0
        for phase, label in PHASES.items():
            print(f"  {label:<50} {phases.get(phase, 0.0):6.2f}")
            known += 0.0 if phase.startswith("worker") else phases.get(phase, 0.0)
        rest = seconds[name] - known
        print(f"  {'the rest: start, micro-batches of Spark, end':<50} {rest:6.2f}")


def plot(turns: Turns, window: float | None, window_own: float | None, path: Path) -> None:
    """Bars: reading, one query, 240 queries; and the two sliding windows."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    seconds = turns.seconds
    one = sum(seconds[f"one {kind}"] for kind in KINDS) / len(KINDS)
    bars = [
        ("Spark reads the data", seconds["read, streaming"], "#999999"),
        ("Windrow, 1 query", one, "#7fb3d5"),
        ("Windrow, 240 queries", seconds["240 queries"], "#1b6ca8"),
        ("… with a checkpoint", seconds["240 queries, checkpoint"], "#1b6ca8"),
    ]
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), dpi=140)
    left.barh(
        [name for name, _, _ in bars][::-1], [value for _, value, _ in bars][::-1], color=[c for _, _, c in bars][::-1]
    )
    left.set_xlabel("seconds")
    left.set_title("one pass over the stream")
    if window is not None and window_own is not None:
        right.barh(["Windrow", "Spark's window()"], [window_own, window], color=["#1b6ca8", "#999999"])
        right.set_xscale("log")
        right.set_xlabel("seconds (log scale)")
        right.set_title("one query, RANGE 100 s SLIDE 1 s")
    for axes in (left, right):
        axes.grid(axis="x", alpha=0.3)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def main() -> None:
    """Measure, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000, help="packets, a multiple of 1,000,000 (default 10 M)")
    parser.add_argument("--repeat", type=int, default=3, help="turns after the warm-up; the best counts")
    parser.add_argument("--files-per-batch", type=int, default=5, help="files of a micro-batch, for Spark and Windrow")
    parser.add_argument(
        "--window-rows", type=int, default=10_000_000, help="packets for Spark's window(); 0: leave out"
    )
    parser.add_argument("--data", type=Path, default=Path("build/benchmarks"), help="where the packets are written")
    parser.add_argument("--plot", type=Path, default=Path("build/benchmarks/spark_pipeline.png"), help="the picture")
    options = parser.parse_args()
    path = options.data.absolute() / f"packets-{options.rows}"
    write_files(path, options.rows)
    from windrow.pipeline.session import start_session

    spark = start_session(log=options.data / "spark.log")
    turns = measure(spark, path, options.repeat, options.files_per_batch)
    window = window_own = None
    if options.window_rows:
        small = options.data.absolute() / f"packets-{options.window_rows}"
        write_files(small, options.window_rows)
        print("Spark's own window(): minutes for 10 M packets", file=sys.stderr, flush=True)
        window = check_window(spark, small)
        own = Turns()
        for _ in range(options.repeat):
            own.note("window: Windrow", lambda: run(spark, small, [OWN_QUERY], options.files_per_batch))
        window_own = own.seconds["window: Windrow"]
    report(turns, options.rows, window, window_own, options.window_rows)
    plot(turns, window, window_own, options.plot)
    print(f"\npicture: {options.plot}")


if __name__ == "__main__":
    main()
