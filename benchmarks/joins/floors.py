"""How fast a two-way window equi-join and δ* are in process, beside DuckDB that computes the same answers anew.

Two streams with a tuple per tick each, a row meets about one other. Measured are processor seconds of the process:

- operators: windows, join (or δ*), projection, without any output
- changes: through `db.push`, all that comes into the answer (ISTREAM) handed out as Arrow
- complete: the whole answer every SLIDE, handed out as Arrow; beside it DuckDB on one thread, which joins the windows
  anew at each due time, over Arrow tables in memory
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from time import process_time

import duckdb
import numpy as np
import pyarrow as pa

import windrow
from benchmarks.measure import table, verdict
from benchmarks.update_patterns.maintained import Maintained, catalog
from windrow.kernels.jit import Ints

COLUMNS = "(t BIGINT, k BIGINT, v BIGINT) TIME t"
JOIN = "SELECT a.k AS k, a.v AS v, b.v AS w FROM a [RANGE {w}{s}], b [RANGE {w}{s}] WHERE a.k = b.k"
DISTINCT = "SELECT DISTINCT k FROM a [RANGE {w}{s}]"
SLIDES = 10
"""Due times per window."""
JOIN_AIM, DISTINCT_AIM = 1e6, 5e6


class Input:
    """Both streams, in batches of so many ticks."""

    def __init__(self, window: int, batch: int, batches: int, keys: int, seed: int = 2) -> None:
        rng = np.random.default_rng(seed)
        ticks = window + batch * batches
        self.window, self.batch = window, batch
        self.tables = {
            name: pa.table(
                {
                    "t": np.arange(1, ticks + 1),
                    "k": rng.integers(0, keys, ticks),
                    "v": rng.integers(0, 1 << 40, ticks),
                }
            )
            for name in ("a", "b")
        }
        edges = [0, window, *(window + batch * (number + 1) for number in range(batches))]
        self.parts = list(pairwise(edges))
        """(since, upto]; the first one fills the windows, and is not measured."""

    def tuples(self, name: str, since: int, upto: int) -> tuple[pa.RecordBatch, Ints]:
        """The tuples of an epoch."""
        part = self.tables[name].slice(since, upto - since).combine_chunks().to_batches()[0]
        return part, np.arange(since + 1, upto + 1)


def operators(text: str, given: Input, streams: int) -> float:
    """Input tuples per second, nothing put out."""
    known = catalog(COLUMNS, given.tables)
    query = Maintained(text.replace("{w}", str(given.window)).replace("{s}", ""), known, "upa", keep=False)
    names = list(given.tables)[:streams]
    spent = 0.0
    for number, (since, upto) in enumerate(given.parts):
        tuples = {name: given.tuples(name, since, upto) for name in names}
        began = process_time()
        query.step(tuples, upto)
        if number:
            spent += process_time() - began
    return streams * _ticks(given) / spent


def pushed(text: str, given: Input, streams: int) -> tuple[float, int]:
    """Input tuples per second through a database, and the rows that came out."""
    db = windrow.connect()
    names = list(given.tables)[:streams]
    for name in names:
        db.execute(f"CREATE STREAM {name} {COLUMNS}")
    query = db.query(text)
    spent, rows = 0.0, 0

    def turn(since: int, upto: int) -> int:
        for name in names:
            db.push(name, given.tables[name].slice(since, upto - since))
        for name in names:
            db.advance(name, upto)  # no more tuples of that tick: the answer is due
        return int(query.take().num_rows)

    for number, (since, upto) in enumerate(given.parts):
        began = process_time()
        came = turn(since, upto)
        if number:
            spent += process_time() - began
            rows += came
    return streams * _ticks(given) / spent, rows


def recomputed(text: str, given: Input, streams: int) -> tuple[float, int]:
    """The same complete answers by DuckDB, on one thread."""
    connection = duckdb.connect()
    connection.execute("PRAGMA threads = 1")
    names = list(given.tables)[:streams]
    slide = given.window // SLIDES
    spent, rows = 0.0, 0
    for since, upto in given.parts[1:]:
        for due in range(since + slide, upto + 1, slide):
            for name in names:
                connection.register(name, given.tables[name].slice(due - given.window, given.window))
            began = process_time()
            rows += connection.sql(text).to_arrow_table().num_rows
            spent += process_time() - began
    return streams * _ticks(given) / spent, rows


def run(quick: bool, plots: Path | None = None) -> dict[str, float]:
    """Millions of input tuples per second, by what was measured."""
    turns = 1 if quick else 3
    sizes = (10_000, 10_000, 3) if quick else (100_000, 100_000, 8)
    rates: dict[str, float] = {}
    rows: list[list[object]] = []
    for name, text, streams, keys in (("join", JOIN, 2, sizes[0]), ("δ*", DISTINCT, 1, sizes[0] // 10)):
        given = Input(*sizes, keys)
        small = Input(sizes[0], 1000, sizes[1] * sizes[2] // 10_000, keys)
        plain = text.replace("{w}", str(given.window))
        changes = f"ISTREAM({plain.replace('{s}', '')})"
        complete = plain.replace("{s}", f" SLIDE {given.window // SLIDES}")
        ours, theirs = pushed(complete, given, streams), recomputed(_sql(text), given, streams)
        assert ours[1] == theirs[1], f"{name}: {ours[1]:,} answer rows, DuckDB has {theirs[1]:,}"
        measured: dict[str, Callable[[], float]] = {
            f"{name}: operators": partial(operators, text, given, streams),
            f"{name}: operators, 1,000 ticks per epoch": partial(operators, text, small, streams),
            f"{name}: changes": partial(_rate, pushed, changes, given, streams),
            f"{name}: complete": partial(_rate, pushed, complete, given, streams),
            f"{name}: complete, DuckDB": partial(_rate, recomputed, _sql(text), given, streams),
        }
        for turn in range(turns + 1):
            for what, work in measured.items():
                gc.collect()
                rate = work()
                if turn:  # the first one compiles
                    rates[what] = max(rate, rates.get(what, 0.0))
        rows += [[what, rates[what] / 1e6] for what in measured]
    table(
        f"Windows of {sizes[0]:,} ticks, {sizes[1]:,} ticks at a time: million input tuples per second",
        ["", "M/s"],
        rows,
    )
    shape(rates)
    return rates


def shape(rates: dict[str, float]) -> dict[str, bool]:
    """The floors."""
    held = {}
    for name, aim in (("join", JOIN_AIM), ("δ*", DISTINCT_AIM)):
        for what in ("operators", "changes"):
            rate = rates[f"{name}: {what}"]
            held[f"{name} {what}"] = verdict(
                f"{name}, {what}: {rate / 1e6:.1f} M tuples/s (aim {aim / 1e6:.0f} M)", rate >= aim
            )
        ratio = rates[f"{name}: complete"] / rates[f"{name}: complete, DuckDB"]
        held[f"{name} duckdb"] = verdict(f"{name}, complete answers: {ratio:.1f} x as fast as DuckDB", ratio > 1)
    return held


def _sql(text: str) -> str:
    return text.replace(" [RANGE {w}{s}]", "")


def _ticks(given: Input) -> int:
    return given.parts[-1][1] - given.parts[0][1]


def _rate(work: Callable[[str, Input, int], tuple[float, int]], text: str, given: Input, streams: int) -> float:
    return work(text, given, streams)[0]
