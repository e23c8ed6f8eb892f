"""Figures 5.3 and 5.4: eager, lazy and lazy with restore, against Δ, by nested loops and with hash tables.

The streams of Table 5.5 in the best order. In the thesis Δ is also how often the eager join drops expired rows; here it
drops them with every tuple, for the price of a look at the front of a queue, so eager is one number.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.joins.orders import ORDERS
from benchmarks.joins.synthetic import QUICK, TABLE_5_5, Evaluation, Tuples, seconds
from benchmarks.measure import Panel, draw, table, verdict

INTERVALS = (1, 2, 5, 10, 20, 50)
QUICK_INTERVALS = (1, 10)
METHODS = {"nested loops": True, "hash": False}
Found = dict[str, dict[str, list[float]]]


def run(quick: bool, plots: Path | None) -> Found:
    """Milliseconds per 1,000 tuples: by method, by way, in the order of the intervals."""
    intervals = QUICK_INTERVALS if quick else INTERVALS
    units, turns = (20, 1) if quick else (100, 3)
    tuples = Tuples(QUICK if quick else TABLE_5_5, 100 + 2 * max(intervals) + units)
    found: Found = {}
    for method, nested_loops in METHODS.items():
        lines: dict[str, list[float]] = {"eager": [], "lazy": [], "lazy, restore": []}
        eager = _best(tuples, Evaluation.eager(), nested_loops, 60 if quick else 600, turns)
        rows: list[list[object]] = []
        for every in intervals:
            epochs = max(1, units // every)
            lines["eager"].append(eager)
            for how in (Evaluation.lazy(every), Evaluation.lazy_restore(every)):
                lines[how.name].append(_best(tuples, how, nested_loops, epochs, turns))
            rows.append([every, *(line[-1] for line in lines.values())])
        figure = "5.3" if nested_loops else "5.4"
        table(f"Figure {figure}: {method}, ms per 1,000 tuples, against Δ", ["Δ", *lines], rows)
        found[method] = lines
    shape(found)
    if plots is not None:
        panels = [
            Panel(method, "Δ", "ms per 1,000 tuples", {way: (intervals, one) for way, one in lines.items()}, True, True)
            for method, lines in found.items()
        ]
        draw(plots / "joins_intervals.png", panels)
    return found


def _best(tuples: Tuples, how: Evaluation, nested_loops: bool, epochs: int, turns: int) -> float:
    found = [
        seconds(tuples, ORDERS[0], how, nested_loops=nested_loops, epochs=epochs)[0] * 1000 for _ in range(turns + 1)
    ]
    return min(found[1:])  # the first compiles


def shape(found: Found) -> dict[str, bool]:
    """What the thesis saw."""
    held: dict[str, bool] = {}
    for method, lines in found.items():
        eager, lazy, restore = lines["eager"][-1], lines["lazy"], lines["lazy, restore"]
        held[f"{method} lazy"] = verdict(
            f"{method}: lazy is faster than eager, {eager / lazy[0]:.0f} x with the least Δ, {eager / lazy[-1]:.0f} x "
            "with the greatest",
            eager > max(lazy[0], lazy[-1]),
        )
        held[f"{method} grows"] = verdict(f"{method}: a greater Δ makes lazy evaluation cheaper", lazy[-1] < lazy[0])
        held[f"{method} restore"] = verdict(
            f"{method}: restoring costs something ({restore[-1] / lazy[-1]:.2f} x with the greatest Δ), and is still "
            "faster than eager",
            lazy[-1] < restore[-1] * 1.1 and restore[-1] < eager,
        )
    held["hash"] = verdict(
        "hash tables are faster than nested loops", found["hash"]["lazy"][-1] < found["nested loops"]["lazy"][-1]
    )
    return held
