"""Figures 8.7 to 8.10: throughput and latency of six policies against the number of queries, at two data rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.measure import Panel, draw, table, verdict
from benchmarks.scheduling.costs import Costs
from benchmarks.scheduling.workload import workload
from windrow.scheduling.simulator import Machine, Simulated, simulate

POLICIES = {
    "No-S": "separate",
    "AS": "aggressive",
    "CS": "conservative",
    "HS": "hybrid",
    "H-LS": "hybrid-late",
    "H-LP": "hybrid-late-pending",
}
SUSTAINED = 160
"""The low rate is such that conservative scheduling could just about keep pace with so many queries."""
IDLE = 1000.0
"""So many times the time that is needed."""


@dataclass(frozen=True)
class Point:
    """Means over several random workloads."""

    throughput: float
    """Queries per second."""
    latency: float
    tasks: float
    saved: float


Found = dict[str, dict[int, dict[str, Point]]]
"""By data rate, number of queries, and policy."""


def interval(costs: Costs, updates: int, seeds: Sequence[int], sustained: int = SUSTAINED) -> float:
    """Seconds between two updates: what conservative scheduling needs for one, when it is in no hurry."""
    needed = []
    for seed in seeds:
        guess = sum(cost.start + 100 * cost.combine + 100 * cost.post for cost in costs.groups.values()) * IDLE
        machine = Machine(guess, 0.0, costs=costs.groups)
        found = simulate(workload(sustained, seed), machine, guess * updates, "conservative")
        needed.append(found.busy * guess)
    return float(np.mean(needed)) + costs.update


def simulated(
    costs: Mapping[str, Costs], sizes: Sequence[int], updates: int, seeds: Sequence[int], sustained: int = SUSTAINED
) -> Found:
    """All data rates, sizes and policies, with the same time between updates."""
    every = interval(costs["low"], updates, seeds, sustained)
    found: Found = {}
    for rate, one in costs.items():
        machine = Machine(every, one.update, costs=one.groups)
        found[rate] = {
            size: {
                name: _mean([simulate(workload(size, seed), machine, every * updates, policy) for seed in seeds])
                for name, policy in POLICIES.items()
            }
            for size in sizes
        }
    return found


def _mean(runs: Sequence[Simulated]) -> Point:
    return Point(
        float(np.mean([run.throughput for run in runs])),
        float(np.mean([run.latency for run in runs])),
        float(np.mean([run.system.tasks for run in runs])),
        float(np.mean([run.system.saved for run in runs])),
    )


def show(title: str, found: Found) -> None:
    """Four tables, as the figures are numbered."""
    for number, (rate, points) in zip((7, 9), found.items(), strict=True):
        for figure, what in ((number, "throughput"), (number + 1, "latency")):
            unit = "queries per second" if what == "throughput" else "mean extra updates between two runs"
            rows = [[size, *(getattr(row[name], what) for name in POLICIES)] for size, row in points.items()]
            table(f"{title}, Figure 8.{figure}: {what} at the {rate} rate, {unit}", ["queries", *POLICIES], rows)
    most = max(found["low"])
    rows = [
        [rate, what, *(getattr(points[most][name], what) for name in POLICIES)]
        for rate, points in found.items()
        for what in ("tasks", "saved")
    ]
    table(f"{title}, {most} queries: tasks, and the share of work that is saved", ["rate", "", *POLICIES], rows)


def shapes(found: Found) -> dict[str, bool]:
    """What the thesis has seen (8.5.2, 8.5.3), at the greatest number of queries."""
    most = max(found["low"])
    low, high = found["low"][most], found["high"][most]
    faster = low["HS"].throughput / low["CS"].throughput
    sooner = low["CS"].latency / max(low["HS"].latency, 1e-9)
    pending = high["H-LP"].throughput / high["HS"].throughput
    others = [name for name in POLICIES if name not in ("H-LP", "AS")]
    return {
        "HS throughput": verdict(f"low: HS / CS throughput {faster:.2f} x (thesis: about 2)", faster >= 1.8),
        "HS latency": verdict(f"low: CS / HS latency {sooner:.1f} x (thesis: about 10)", sooner >= 8),
        "H-LP throughput": verdict(f"high: H-LP / HS throughput {pending:.2f} x (thesis: more than 2)", pending > 2),
        "H-LP best": verdict(
            "low and high: H-LP has the best throughput and latency of all that keep to periods",
            all(
                point["H-LP"].throughput >= 0.999 * point[name].throughput
                and point["H-LP"].latency <= 1.001 * point[name].latency + 1e-9
                for point in (low, high)
                for name in others
            ),
        ),
        "H-LP before AS": verdict(
            f"high: H-LP latency {high['H-LP'].latency:.2f}, AS {high['AS'].latency:.2f}; "
            f"throughput {high['H-LP'].throughput:,.0f} and {high['AS'].throughput:,.0f}",
            high["H-LP"].latency <= high["AS"].latency and high["H-LP"].throughput >= high["AS"].throughput,
        ),
        "AS throughput": verdict("low: AS has more throughput than CS", low["AS"].throughput > low["CS"].throughput),
        "AS latency": verdict(
            f"low: AS has more latency than H-LP ({low['AS'].latency:.2f} and {low['H-LP'].latency:.2f})",
            low["AS"].latency > low["H-LP"].latency,
        ),
        "AS falls": verdict(
            f"AS throughput falls to {high['AS'].throughput / low['AS'].throughput:.2f} x at the high rate",
            high["AS"].throughput < 0.8 * low["AS"].throughput,
        ),
        "No-S": verdict(
            "low and high: No-S is worst in both",
            all(
                point["No-S"].throughput <= point[name].throughput and point["No-S"].latency >= point[name].latency
                for point in (low, high)
                for name in ("CS", "HS", "H-LS", "H-LP")
            ),
        ),
    }


def picture(path: Path, found: Found) -> None:
    """Four panels."""
    panels = []
    for number, (rate, points) in zip((7, 9), found.items(), strict=True):
        for figure, what in ((number, "throughput"), (number + 1, "latency")):
            lines = {name: (list(points), [getattr(row[name], what) for row in points.values()]) for name in POLICIES}
            unit = "queries per second" if what == "throughput" else "extra updates"
            panels.append(Panel(f"Figure 8.{figure}: {what}, {rate} rate", "queries", unit, lines))
    draw(path, panels)
