"""Figure 5.2: four join orders, predicted and measured, relative to the best one.

The streams of Table 5.5; the orders: the best one, the fast stream first, by selectivity alone, the worst.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.joins.predicted import predicted
from benchmarks.joins.synthetic import QUICK, TABLE_5_5, Evaluation, Order, Tuples, seconds
from benchmarks.measure import Panel, draw, table, verdict

ORDERS: tuple[Order, ...] = ((1, 0, 2, 3), (0, 1, 2, 3), (1, 2, 3, 0), (3, 2, 0, 1))
EVERY = 10
WAYS = (Evaluation.eager(), Evaluation.lazy(EVERY), Evaluation.lazy_restore(EVERY))


def run(quick: bool, plots: Path | None) -> dict[str, list[float]]:
    """Milliseconds per 1,000 tuples, by way, in the order of ORDERS; under "predicted" the costs of the model."""
    scale = 1 if quick else 5
    tuples = Tuples(QUICK if quick else TABLE_5_5, 100 + EVERY * (2 * scale + 1))
    found = {"predicted": [predicted(TABLE_5_5, order) for order in ORDERS]}
    for nested_loops in (True, False):
        for how in WAYS:
            name = f"{how.name}, {'nested loops' if nested_loops else 'hash'}"
            epochs = (40 if how.every == 0 else 2) * scale
            found[name] = [_best(tuples, order, how, nested_loops, epochs, 1 if quick else 3) for order in ORDERS]
    names = [", ".join(f"S{number + 1}" for number in order) for order in ORDERS]
    best = {way: values[0] for way, values in found.items()}
    rows: list[list[object]] = [
        [way, *values, *(value / best[way] for value in values[1:])] for way, values in found.items()
    ]
    columns = ["way", *names, *("/ best" for _ in names[1:])]
    table(f"Figure 5.2: join orders, ms per 1,000 tuples (Δ = {EVERY}; predicted: tuples looked at)", columns, rows)
    shape(found)
    if plots is not None:
        places = list(range(1, len(ORDERS) + 1))
        lines = {way: (places, [value / values[0] for value in values]) for way, values in found.items()}
        panel = Panel("Join orders: " + "; ".join(names), "order", "relative to the first", lines, logy=True)
        draw(plots / "joins_orders.png", [panel])
    return found


def _best(tuples: Tuples, order: Order, how: Evaluation, nested_loops: bool, epochs: int, turns: int) -> float:
    few = min(epochs, 2)
    seconds(tuples, order, how, nested_loops=nested_loops, epochs=few)  # compiles
    return min(seconds(tuples, order, how, nested_loops=nested_loops, epochs=epochs)[0] * 1000 for _ in range(turns))


def shape(found: dict[str, list[float]]) -> dict[str, bool]:
    """What the thesis saw."""
    loops = found["lazy, restore, nested loops"]
    held = {
        "ranked": verdict("nested loops, Δ at once: the four orders are ranked as predicted", sorted(loops) == loops),
        "worst": verdict(
            f"… and the worst takes {loops[-1] / loops[0]:.1f} x the time of the best (predicted 8.3 x)",
            loops[-1] > 2 * loops[0],
        ),
    }
    spread = max(found["lazy, restore, hash"]) / min(found["lazy, restore, hash"])
    held["hash"] = verdict(
        f"with hash tables the orders differ less ({spread:.1f} x)", spread < max(loops) / min(loops)
    )
    return held
