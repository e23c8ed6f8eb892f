"""How long the simulator and the hybrid choice take, for loads far beyond what this machine could execute.

Without sharing an hour has as many executions as runs of queries, 10⁹ and more, each of which takes the simulator some
microseconds; so only policies that share are simulated here.
"""

from __future__ import annotations

import random
from time import process_time

from benchmarks.measure import table
from benchmarks.scheduling.workload import workload
from windrow.scheduling.cost import KINDS, ProbeCost
from windrow.scheduling.hybrid import choose, rate
from windrow.scheduling.simulator import Machine, Simulator
from windrow.scheduling.task import SubGroup

HOUR = 3600.0
COST = ProbeCost(combine=1e-6, post=1e-8, start=2e-5)


def run(quick: bool) -> None:
    """Both."""
    simulator_speed(*((10_000, 10_000) if quick else (100_000, 1_000_000)))
    choice_speed((10, 50) if quick else (10, 50, 100, 200, 400))


def simulator_speed(queries: int, updates: int) -> None:
    """An hour of virtual time."""
    rows: list[list[object]] = []
    for policy in ("conservative", "hybrid-late-pending"):
        machine = Machine(HOUR / updates, 1e-4, COST)
        began = process_time()
        simulator = Simulator(workload(queries, 1), machine, policy)
        found = simulator.run(HOUR)
        spent = process_time() - began
        rows.append([policy, found.system.executions, found.system.runs, found.stretch, found.busy, spent])
    columns = ["policy", "executions", "runs of queries", "achieved/requested", "busy", "processor s"]
    table(f"Simulator: {queries:,} queries, {updates:,} updates in an hour of virtual time", columns, rows)


def choice_speed(sizes: tuple[int, ...]) -> None:
    """Sub-groups with different periods, three windows each."""
    rows: list[list[object]] = []
    for size in sizes:
        row: list[object] = [size]
        for kind in KINDS:
            rng = random.Random(size)
            members = [
                SubGroup(period, tuple(sorted(rng.sample(range(20, 400), 3))))
                for period in rng.sample(range(1, 2 * size + 50), size)
            ]
            cost = ProbeCost(kind, post=2.0)
            began = process_time()
            found = choose(members, cost)
            spent = process_time() - began
            row += [spent * 1e3, found.rate / rate(members, range(size), cost)]
        rows.append(row)
    columns = ["periods", *(text for kind in KINDS for text in (f"{kind}, ms", "cost / CS"))]
    table("Hybrid choice", columns, rows)
