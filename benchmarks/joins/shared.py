"""Periodic aggregates over the same join: one join for all, or one for each (thesis 8.3.2, rules SS3, CS4, CS5).

2, 10 and 50 queries with windows of 10 to 100 slides; tuples come in batches of 10,000. The time of both is that of the
process, best of two turns, or one of 50 queries. Then the synopses that one axis may have, each forced, for windows of
very many panes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

import windrow
from benchmarks.measure import Best, table
from windrow.joined.axis import Axis

SLIDE = 10
BATCH = 10_000


@dataclass(frozen=True)
class Shape:
    """What is joined, and what is asked."""

    name: str
    tuples: int
    """Per slide and side."""
    keys: int
    what: str
    grouped: bool = False

    def query(self, slides: int) -> str:
        """Over windows of so many slides."""
        window = f"[RANGE {SLIDE * slides} SLIDE {SLIDE}]"
        key, tail = ("l.k AS k, ", " GROUP BY l.k") if self.grouped else ("", "")
        return f"SELECT {key}{self.what} FROM a {window} AS l, b {window} AS r WHERE l.k = r.k{tail}"


SUMS = "COUNT(*) AS n, SUM(r.v) AS s"
SHAPES = (
    Shape("few tuples per slide", 20, 1000, SUMS),
    Shape("many tuples per slide", 400, 20_000, SUMS),
    Shape("maximum", 100, 5000, "MAX(r.v) AS n"),
    Shape("by key", 100, 1000, SUMS, grouped=True),
    Shape("maximum by key", 100, 1000, "MAX(r.v) AS n", grouped=True),
)


def tables(shape: Shape, rows: int) -> list[pa.Table]:
    """Both sides."""
    made = []
    for seed in (1, 2):
        rng = np.random.default_rng(seed)
        ticks = np.sort(rng.integers(0, rows * SLIDE // shape.tuples, rows))
        keys = rng.integers(0, shape.keys, rows).astype(np.int32)
        made.append(pa.table({"t": ticks, "k": keys, "v": rng.integers(0, 1000, rows)}))
    return made


def answered(shape: Shape, windows: list[int], rows: int, *, sharing: bool) -> int:
    """Run these queries over all tuples; how many answer rows they have."""
    db = windrow.connect(sharing=sharing)
    for name in "ab":
        db.execute(f"CREATE STREAM {name} (t BIGINT, k INT, v BIGINT) TIME t")
    queries = [db.query(shape.query(slides)) for slides in windows]
    sides = tables(shape, rows)
    for start in range(0, rows, BATCH):
        for name, side in zip("ab", sides, strict=True):
            db.push(name, side.slice(start, BATCH))
    db.finish()
    return sum(query.answers().num_rows for query in queries)


def _note(told: dict[bool, int], sharing: bool, shape: Shape, windows: list[int], rows: int) -> None:
    told[sharing] = answered(shape, windows, rows, sharing=sharing)


def run(quick: bool, plots: Path | None = None) -> dict[tuple[str, int], float]:
    """How many times as fast it is to share, by shape and number of queries."""
    rows = 20_000 if quick else 100_000
    for sharing in (True, False):  # compiles what is compiled once
        for shape in SHAPES:
            answered(shape, [10, 20], BATCH, sharing=sharing)
    found: dict[tuple[str, int], float] = {}
    lines: list[list[object]] = []
    for shape in SHAPES[::3] if quick else SHAPES:
        for count in (2, 10) if quick else (2, 10, 50):
            windows = np.linspace(10, 100, count).astype(int).tolist()
            best, told = Best(), {True: 0, False: 0}
            for _ in range(1 if quick or count > 10 else 2):
                for sharing in told:
                    run_once = partial(_note, told, sharing, shape, windows, rows)
                    best.once("shared" if sharing else "alone", run_once)
            assert told[True] == told[False], "both have the same answers"
            ratio = found[shape.name, count] = best.seconds["alone"] / best.seconds["shared"]
            print(f"  {shape.name}, {count} queries: {ratio:.1f} x", flush=True)
            lines.append([shape.name, count, best.seconds["shared"], best.seconds["alone"], ratio, told[True]])
    columns = ["shape", "queries", "shared, s", "alone, s", "ratio", "answer rows"]
    table(f"Aggregates over one join, {rows:,} tuples per side: shared and alone", columns, lines)
    _synopses(rows)
    return found


def _synopses(rows: int) -> None:
    """BIJ, IJ and RJ for two windows of many panes."""
    lines: list[list[object]] = []
    for name, what in (("MAX", "MAX(r.v) AS n"), ("COUNT", "COUNT(*) AS n")):
        shape, best = Shape(name, 20, 20_000, what), Best()
        for _ in range(2):
            for kind in ("bij", "ij", "rj", None):
                with _forced(kind):
                    best.once(str(kind), partial(answered, shape, [2000, 5000], rows, sharing=True))
        kinds = ["bij", "ij", *(["rj"] if name == "COUNT" else []), "None"]
        lines.append([name, *(best.seconds[kind] if kind in kinds else "-" for kind in ("bij", "ij", "rj", "None"))])
    table("Windows of 2,000 and 5,000 panes over one join, seconds", ["", "BIJ", "IJ", "RJ", "chosen"], lines)


@contextmanager
def _forced(kind: str | None) -> Iterator[None]:
    Axis.forced = kind
    try:
        yield
    finally:
        Axis.forced = None
