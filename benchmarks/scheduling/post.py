"""What the thesis does not say: what post-processing costs, and how busy the machine was (counted costs, 240 queries).

One table varies the cost of reading a counter in post-processing against merging it, the other one the number of
queries with which conservative scheduling can keep pace at the low rate: the fewer, the greater the overload.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.measure import table
from benchmarks.scheduling.costs import READ, counted
from benchmarks.scheduling.figures import SUSTAINED, Point, simulated
from benchmarks.scheduling.workload import HIGH, LOW

READS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
KEPT_UP = (40, 80, 120, 160)
QUERIES = 240
COLUMNS = [
    "low: HS/CS thr.",
    "low: CS/HS lat.",
    "high: H-LP/HS thr.",
    "high: H-LP/AS thr.",
    "low: AS/H-LP lat.",
    "high: AS/H-LP lat.",
    "low: CS/HS tasks",
]
Rates = dict[str, dict[str, Point]]


def run(quick: bool) -> dict[tuple[float, int], Rates]:
    """Both rates, by cost of post-processing and by load."""
    found = {}
    tables: tuple[tuple[str, str, Sequence[tuple[float, int]]], ...] = (
        ("the cost of post-processing", "read / merge", [(read, SUSTAINED) for read in READS]),
        ("the load", "CS keeps pace with", [(READ, kept_up) for kept_up in KEPT_UP]),
    )
    for number, (what, column, settings) in enumerate(tables):
        rows: list[list[object]] = []
        for setting in settings[1::4] if quick else settings:
            found[setting] = one = _run(*setting, quick)
            rows.append([setting[number], *_ratios(one["low"], one["high"])])
        table(f"{QUERIES} queries: throughput, latency and tasks, by {what}", [column, *COLUMNS], rows)
    return found


def _run(read: float, sustained: int, quick: bool) -> Rates:
    costs = {one.name: counted(one, read=read) for one in (LOW, HIGH)}
    points = simulated(costs, (QUERIES,), 150 if quick else 400, range(1 if quick else 5), sustained)
    return {rate: points[rate][QUERIES] for rate in ("low", "high")}


def _ratios(low: dict[str, Point], high: dict[str, Point]) -> list[float]:
    return [
        low["HS"].throughput / low["CS"].throughput,
        low["CS"].latency / max(low["HS"].latency, 1e-9),
        high["H-LP"].throughput / high["HS"].throughput,
        high["H-LP"].throughput / high["AS"].throughput,
        low["AS"].latency / max(low["H-LP"].latency, 1e-9),
        high["AS"].latency / max(high["H-LP"].latency, 1e-9),
        low["CS"].tasks / low["HS"].tasks,
    ]
