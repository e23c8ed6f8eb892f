"""1 to 10,000 windows over one stream, without keys and with 1,000 keys, through the engine in process.

A slide is a million rows (--quick: 200,000); the windows have 999 different lengths, so from a thousand windows on
there are 1,000 panes per slide. The updates of a slide (rows pushed while nothing is due) and its lookups (the
heartbeat that makes all windows due) are measured apart, in processor seconds of all threads.
"""

from __future__ import annotations

import gc
from pathlib import Path
from time import process_time

import numpy as np
import pyarrow as pa

import windrow
from benchmarks.measure import Panel, draw, table, verdict

PANES = 1000
PUSHES = 5


def engine(windows: int, keys: int, slide: int, slides: int) -> tuple[float, float, int]:
    """The best seconds of a slide's updates and of its lookups, and the answer rows of a slide."""
    db = windrow.connect()
    db.execute("CREATE STREAM s (t BIGINT, k INT, v INT) TIME t")
    by, key = (" GROUP BY k", "k, ") if keys > 1 else ("", "")
    queries = [
        db.query(
            f"SELECT {key}SUM(v) AS v FROM s [RANGE {slide - slide // PANES * (i % (PANES - 1))} SLIDE {slide}]{by}"
        )
        for i in range(windows)
    ]
    rng = np.random.default_rng(windows)
    updating, looking, rows = [], [], 0
    for turn in range(slides + 1):
        updated = 0.0
        for part in range(PUSHES):
            size = slide // PUSHES
            ticks = turn * slide + part * size + np.arange(size)
            columns = {
                "t": ticks,
                "k": rng.integers(0, keys, size).astype(np.int32),
                "v": rng.integers(0, 1000, size).astype(np.int32),
            }
            batch = pa.table(columns)
            gc.collect()
            began = process_time()
            db.push("s", batch)
            if part:  # the first push of a slide makes the due time before it complete
                updated += process_time() - began
        gc.collect()
        began = process_time()
        db.advance("s", (turn + 1) * slide)
        looked = process_time() - began
        rows = sum(query.take().num_rows for query in queries)
        if turn:  # the first slide compiles and allocates
            updating.append(updated)
            looking.append(looked)
    return min(updating), min(looking), rows


def run(quick: bool, plots: Path | None) -> dict[int, dict[int, tuple[float, float, int]]]:
    """Both numbers of keys, all numbers of windows."""
    counts = (1, 10, 100) if quick else (1, 10, 100, 1000, 10_000)
    slide = 200_000 if quick else 1_000_000
    results: dict[int, dict[int, tuple[float, float, int]]] = {}
    for keys in (1, 1000):
        used = tuple(count for count in counts if not quick or count * keys <= 100_000)
        results[keys] = {count: engine(count, keys, slide, 2 if quick else 4) for count in used}
        rows: list[list[object]] = []
        for count, (update, lookup, answers) in results[keys].items():
            pushed = slide * (PUSHES - 1) // PUSHES
            rows.append([count, update / pushed * 1e9, lookup * 1e3, answers, lookup / count * 1e6])
        columns = ["windows", "update ns/row", "lookups ms/slide", "answer rows", "µs per window"]
        table(f"Many windows, {keys:,} key{'s' if keys > 1 else ''}", columns, rows)
        shape(results[keys])
    if plots is not None:
        panels = []
        for place, what in ((0, "updates of a slide, s"), (1, "lookups of a slide, s")):
            lines = {
                f"{keys:,} key{'s' if keys > 1 else ''}": (list(found), [one[place] for one in found.values()])
                for keys, found in results.items()
            }
            panels.append(Panel(f"{slide:,} rows: {what}", "windows", "seconds", lines, logx=True, logy=True))
        draw(plots / "shared_many_windows.png", panels)
    return results


def shape(found: dict[int, tuple[float, float, int]]) -> dict[str, bool]:
    """What must hold."""
    counts = list(found)
    first, most = found[counts[0]], found[counts[-1]]
    # Panes get finer with more lengths of windows; from a thousand on they are the same.
    like = max([count for count in counts[:-1] if count >= PANES], default=counts[0])
    growth, windows = most[1] / first[1], counts[-1] / counts[0]
    ratio = most[0] / found[like][0]
    print(
        f"       updates for {counts[-1]:,} windows cost {most[0] / first[0]:.2f} x those for one, with its few panes"
    )
    return {
        "update": verdict(
            f"updates for {counts[-1]:,} windows cost {ratio:.2f} x those for {like:,} (at most 1.3 x)", ratio <= 1.3
        ),
        "lookup": verdict(f"lookups cost {growth:,.0f} x for {windows:,.0f} x the windows", growth <= windows),
    }
