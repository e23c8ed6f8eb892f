"""How the order of the policies depends on what post-processing costs, against scanning intervals (counted costs)."""

from __future__ import annotations

from benchmarks.measure import table
from benchmarks.scheduling.costs import counted
from benchmarks.scheduling.figures import Point, simulated
from benchmarks.scheduling.workload import HIGH, LOW

READS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Reading a counter in post-processing, against merging it."""
QUERIES = 240


def run(quick: bool) -> dict[float, dict[str, dict[str, Point]]]:
    """240 queries, both rates."""
    found: dict[float, dict[str, dict[str, Point]]] = {}
    rows: list[list[object]] = []
    for read in (0.01, 1.0) if quick else READS:
        costs = {one.name: counted(one, read=read) for one in (LOW, HIGH)}
        points = simulated(costs, (QUERIES,), 150 if quick else 400, range(1 if quick else 5))
        low, high = (points[rate][QUERIES] for rate in ("low", "high"))
        found[read] = {"low": low, "high": high}
        rows.append(
            [
                read,
                low["HS"].throughput / low["CS"].throughput,
                low["CS"].latency / max(low["HS"].latency, 1e-9),
                high["H-LP"].throughput / high["HS"].throughput,
                high["H-LP"].throughput / high["AS"].throughput,
                low["AS"].latency / max(low["H-LP"].latency, 1e-9),
                high["AS"].latency / max(high["H-LP"].latency, 1e-9),
            ]
        )
    columns = [
        "read / merge",
        "low: HS/CS thr.",
        "low: CS/HS lat.",
        "high: H-LP/HS thr.",
        "high: H-LP/AS thr.",
        "low: AS/H-LP lat.",
        "high: AS/H-LP lat.",
    ]
    table(f"{QUERIES} queries: throughput and latency of policies, by the cost of post-processing", columns, rows)
    return found
