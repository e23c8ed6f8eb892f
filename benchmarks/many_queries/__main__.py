"""Many queries for the price of one: the engine beside a specialised NumPy program and beside reading alone.

    python -m benchmarks.many_queries [--rows 10000000] [--repeat 5] [--plot docs/many_queries.png]

Everything is measured in one process, in turns, and the best of the repeats counts; look at the ratios.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter

import pyarrow as pa
import pyarrow.compute as pc

import windrow
from benchmarks.many_queries import floor
from benchmarks.many_queries.workload import DECLARATION, KINDS, Spec, queries, read, write
from windrow.parallel import threads

COUNTS = (1, 4, 20, 60, 120, 240)


@dataclass
class Run:
    """One run: answer rows, seconds to register the queries, seconds for the stream, bytes of state per batch."""

    rows: int
    registering: float
    streaming: float
    state: list[int]


def engine(path: Path, specs: Sequence[Spec]) -> Run:
    """All answers through the public interface; answers are taken away after each batch, as a sink does."""
    gc.collect()
    began = perf_counter()
    db = windrow.connect()
    db.execute(DECLARATION)
    handles = [db.query(spec.sql) for spec in specs]
    registered = perf_counter()
    rows, state = 0, []
    for batch in read(path):
        db.push("packets", batch)
        rows += sum(handle.take().num_rows for handle in handles)
        state.append(db.metrics()["streams"]["packets"]["state_bytes"])
    db.finish()
    rows += sum(handle.take().num_rows for handle in handles)
    return Run(rows, registered - began, perf_counter() - registered, state)


class Best:
    """The best time of each named piece of work over several turns."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.rows: dict[str, int] = {}

    def note(self, name: str, seconds: float, rows: int) -> None:
        """One more turn."""
        self.seconds[name] = min(seconds, self.seconds.get(name, seconds))
        self.rows[name] = rows

    def engine(self, name: str, path: Path, specs: Sequence[Spec]) -> Run:
        """The engine once more."""
        run = engine(path, specs)
        self.note(name, run.streaming, run.rows)
        self.note(f"{name} registering", run.registering, run.rows)
        return run

    def timed(self, name: str, work: Callable[[], int]) -> None:
        """Anything else that gives a number of rows."""
        gc.collect()
        began = perf_counter()
        rows = work()
        self.note(name, perf_counter() - began, rows)


def compare(path: Path, repeat: int) -> tuple[Best, list[int]]:
    """All pieces in turns; also the state after each batch under the most queries."""
    best = Best()
    state: list[int] = []
    for turn in range(repeat):
        print(f"turn {turn + 1} of {repeat} …", file=sys.stderr, flush=True)
        best.timed("read", lambda: sum(len(batch) for batch in read(path)))
        for count in COUNTS:
            specs = queries(count)
            best.timed(f"floor {count}", partial(floor_rows, path, specs))
            state = best.engine(f"engine {count}", path, specs).state
        for kind in KINDS:
            best.engine(f"one {kind}", path, [Spec(kind, 60, 10)])
            for length in (10, 100):
                best.engine(f"range {length} {kind}", path, [Spec(kind, length, 1)])
    return best, state


def check_values(path: Path) -> None:
    """Floor and engine give the same answers, not only as many: the sum of all values of 240 queries, untimed."""
    specs = queries(COUNTS[-1])
    db = windrow.connect()
    db.execute(DECLARATION)
    handles = [db.query(spec.sql) for spec in specs]
    total = 0.0
    for batch in read(path):
        db.push("packets", batch)
        total += sum(_sum(handle.take()) for handle in handles)
    db.finish()
    total += sum(_sum(handle.take()) for handle in handles)
    expected = floor.run(read(path), specs)[1]
    assert abs(total - expected) <= 1e-9 * abs(expected), f"engine {total}, floor {expected}"
    print(f"engine and floor agree: the values of all answers sum up to {total:,.0f}")


def _sum(table: pa.Table) -> float:
    return float(pc.sum(table.column("value").cast(pa.float64())).as_py() or 0.0)


def floor_rows(path: Path, specs: Sequence[Spec]) -> int:
    """The floor's answer rows."""
    return floor.run(read(path), specs)[0]


def report(best: Best, state: list[int], rows: int) -> None:
    """The tables, and the ratios that are aimed at."""
    seconds = best.seconds
    print(f"{rows:,} packets, {threads()} threads; best of the turns, seconds")
    print("queries  answer rows    read  NumPy floor  engine  engine/floor  engine/read  registering")
    for count in COUNTS:
        reading, bottom, ours = seconds["read"], seconds[f"floor {count}"], seconds[f"engine {count}"]
        assert best.rows[f"floor {count}"] == best.rows[f"engine {count}"], "floor and engine differ in answer rows"
        print(
            f"{count:>7} {best.rows[f'engine {count}']:>12,} {reading:>7.3f} {bottom:>12.3f} {ours:>7.3f} "
            f"{ours / bottom:>13.2f} {ours / reading:>12.2f} {seconds[f'engine {count} registering']:>12.3f}"
        )
    one = sum(seconds[f"one {kind}"] for kind in KINDS) / len(KINDS)
    most = seconds["engine 240"]
    sizes = ", ".join(f"{size / 2**20:.1f}" for size in state)
    print(f"\none query (mean of the four kinds)     {one:.3f} s")
    print(f"240 queries / one query                {most / one:.2f}   (aim 1.5)")
    print(f"  the same ratio of the NumPy floor    {seconds['floor 240'] / seconds['floor 1']:.2f}")
    print(f"240 queries, engine / NumPy floor      {most / seconds['floor 240']:.2f}   (aim 2)")
    for kind in KINDS:
        ratio = seconds[f"range 100 {kind}"] / seconds[f"range 10 {kind}"]
        print(f"RANGE 100 SLIDE 1 / RANGE 10 SLIDE 1   {ratio:.2f}   ({kind}; aim 1.2)")
    print(f"state after each batch, MiB            {sizes}   (240 queries)")


def plot(best: Best, path: Path) -> None:
    """Seconds against the number of queries."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7.5, 4.2), dpi=140)
    for name, style, label, color in (
        ("engine", "o-", "Windrow, k queries", "#1b6ca8"),
        ("floor", "s--", "hand-written NumPy, same answers", "#888888"),
    ):
        axes.plot(COUNTS, [best.seconds[f"{name} {k}"] for k in COUNTS], style, label=label, color=color)
    axes.axhline(best.seconds["read"], linestyle=":", color="#444444", label="reading the Parquet file alone")
    axes.set_xlabel("registered queries (RANGE 20–100 s, SLIDE 1 s – RANGE/2)")
    axes.set_ylabel("seconds for the whole stream")
    axes.set_title("Many sliding-window queries over one stream")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def main() -> None:
    """Measure, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000, help="packets, a multiple of 1,000,000 (default 10 M)")
    parser.add_argument("--repeat", type=int, default=5, help="turns; the best counts")
    parser.add_argument("--data", type=Path, default=Path("build/benchmarks"), help="where the packets are written")
    parser.add_argument("--plot", type=Path, default=Path("build/benchmarks/many_queries.png"), help="the picture")
    options = parser.parse_args()
    path = options.data / f"packets-{options.rows}.parquet"
    write(path, options.rows)
    check_values(path)  # also compiles the kernels, before the clock runs
    best, state = compare(path, options.repeat)
    report(best, state, options.rows)
    plot(best, options.plot)
    print(f"picture: {options.plot}")


if __name__ == "__main__":
    main()
