"""The workload of thesis 8.5.1: eight groups of top-k and quantile queries over the bandwidth of addresses, ports …"""

from __future__ import annotations

import random
from dataclasses import dataclass

from windrow.scheduling.task import Task

GROUPS: dict[str, tuple[str, ...]] = {
    "source": ("src",),
    "destination": ("dst",),
    "source, destination": ("src", "dst"),
    "protocol": ("proto",),
    "port": ("port",),
    "protocol, port": ("proto", "port"),
    # The thesis speaks of eight groups and names six.
    "source, protocol": ("src", "proto"),
    "destination, port": ("dst", "port"),
}
SIZES = (40, 80, 160, 240)
SHORTEST, LONGEST = 20, 100
"""WINDOW, in synopsis updates; SLIDE is 1..WINDOW/2."""


@dataclass(frozen=True)
class Rate:
    """Tuples per synopsis update; at the high rate all fields have twice as many different values."""

    name: str
    tuples: int
    values: dict[str, int]


LOW = Rate("low", 1500, {"src": 1000, "dst": 1000, "proto": 100, "port": 100})
HIGH = Rate("high", 3000, {name: 2 * count for name, count in LOW.values.items()})


def workload(queries: int, seed: int) -> list[Task]:
    """So many queries, in turn of each group."""
    rng = random.Random(seed)
    tasks = []
    for i in range(queries):
        window = rng.randint(SHORTEST, LONGEST)
        tasks.append(Task(f"q{i}", rng.randint(1, window // 2), window, list(GROUPS)[i % len(GROUPS)]))
    return tasks
