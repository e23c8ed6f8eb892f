"""Many queries for the price of one: the engine beside a specialised NumPy program and beside reading alone.

    python -m benchmarks.many_queries [--rows 10000000] [--repeat 3] [--plot docs/many_queries.png]

Everything is measured in one process, in turns, and the best of the repeats counts; look at the ratios.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import TypeVar

import pyarrow as pa

import windrow
from benchmarks.many_queries import floor
from benchmarks.many_queries.workload import DECLARATION, KINDS, Spec, queries, read, write

T = TypeVar("T")
COUNTS = (1, 4, 20, 60, 120, 240)


def engine(path: Path, specs: Sequence[Spec]) -> tuple[int, float, list[int]]:
    """All answers through the public interface; rows, checksum, and the bytes of state after each batch."""
    db = windrow.connect()
    db.execute(DECLARATION)
    handles = [db.query(spec.sql) for spec in specs]
    rows, tables, state = 0, [], []
    for batch in read(path):
        db.push("packets", batch)
        tables = [handle.take() for handle in handles]
        rows += sum(table.num_rows for table in tables)
        state.append(db.metrics()["streams"]["packets"]["state_bytes"])
    db.finish()
    tables = [handle.take() for handle in handles]
    rows += sum(table.num_rows for table in tables)
    return rows, 0.0, state


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Seconds and result; garbage of the run before is not on this one's account."""
    gc.collect()
    began = perf_counter()
    result = work()
    return perf_counter() - began, result


class Best:
    """The best time of each named piece of work over several turns."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.rows: dict[str, int] = {}

    def measure(self, name: str, work: Callable[[], tuple[int, object]]) -> None:
        """Run once more, keep the better time."""
        seconds, (rows, *_) = timed(work)
        self.seconds[name] = min(seconds, self.seconds.get(name, seconds))
        self.rows[name] = rows


def compare(path: Path, repeat: int) -> Best:
    """All pieces in turns."""
    best = Best()
    of_kind = [Spec(kind, 60, 10) for kind in KINDS]
    for turn in range(repeat):
        print(f"turn {turn + 1} of {repeat} …", file=sys.stderr, flush=True)
        best.measure("read", lambda: (sum(len(batch) for batch in read(path)), None))
        for count in COUNTS:
            specs = queries(count)
            best.measure(f"floor {count}", lambda specs=specs: floor.run(read(path), specs))  # type: ignore[misc]
            best.measure(f"engine {count}", lambda specs=specs: engine(path, specs))  # type: ignore[misc]
        for spec in of_kind:
            best.measure(f"one {spec.kind}", lambda spec=spec: engine(path, [spec]))  # type: ignore[misc]
            for length in (10, 100):
                same = Spec(spec.kind, length, 1)
                best.measure(f"range {length} {spec.kind}", lambda same=same: engine(path, [same]))  # type: ignore[misc]
    return best


def report(best: Best, state: list[int], rows: int) -> None:
    """The tables, and the ratios that are aimed at."""
    print(f"{rows:,} packets; best of the turns, seconds")
    print(f"{'queries':>8} {'answer rows':>12} {'read':>7} {'NumPy floor':>12} {'engine':>7} {'engine/floor':>13} {'engine/read':>12}")
    for count in COUNTS:
        reading, bottom, ours = (best.seconds[name] for name in ("read", f"floor {count}", f"engine {count}"))
        print(
            f"{count:>8} {best.rows[f'engine {count}']:>12,} {reading:>7.3f} {bottom:>12.3f} {ours:>7.3f} "
            f"{ours / bottom:>13.2f} {ours / reading:>12.2f}"
        )
        assert best.rows[f"floor {count}"] == best.rows[f"engine {count}"], "floor and engine differ in answer rows"
    one = sum(best.seconds[f"one {kind}"] for kind in KINDS) / len(KINDS)
    print()
    print(f"one query (mean of the four kinds)     {one:.3f} s")
    print(f"240 queries / one query                {best.seconds['engine 240'] / one:.2f}   (aim 1.5)")
    print(f"240 queries, engine / NumPy floor      {best.seconds['engine 240'] / best.seconds['floor 240']:.2f}   (aim 2)")
    for kind in KINDS:
        ratio = best.seconds[f"range 100 {kind}"] / best.seconds[f"range 10 {kind}"]
        print(f"RANGE 100 SLIDE 1 / RANGE 10 SLIDE 1   {ratio:.2f}   ({kind}; aim 1.2)")
    print(f"state after each batch, MiB            {', '.join(f'{size / 2**20:.1f}' for size in state)}   (240 queries)")


def plot(best: Best, path: Path) -> None:
    """Seconds against the number of queries."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7.5, 4.2), dpi=140)
    axes.plot(COUNTS, [best.seconds[f"engine {k}"] for k in COUNTS], "o-", label="Windrow, k queries", color="#1b6ca8")
    axes.plot(COUNTS, [best.seconds[f"floor {k}"] for k in COUNTS], "s--", label="hand-written NumPy, same answers", color="#888888")
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
    parser.add_argument("--repeat", type=int, default=3, help="turns; the best counts")
    parser.add_argument("--data", type=Path, default=Path("build/benchmarks"), help="where the packets are written")
    parser.add_argument("--plot", type=Path, default=Path("build/benchmarks/many_queries.png"), help="the picture")
    options = parser.parse_args()
    path = options.data / f"packets-{options.rows}.parquet"
    write(path, options.rows)
    pa.set_cpu_count(1)
    engine(path, queries(240))  # compile the kernels before the clock runs
    best = compare(path, options.repeat)
    report(best, engine(path, queries(240))[2], options.rows)
    plot(best, options.plot)
    print(f"picture: {options.plot}")


if __name__ == "__main__":
    main()
