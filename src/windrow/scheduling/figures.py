"""What a schedule has achieved, per query and for the system (thesis 8.5.1)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class QueryFigures:
    """One query so far; periods, latency and staleness in synopsis updates."""

    name: str
    requested: int
    """Its period: an upper bound of the updates between two runs."""
    scheduled: int
    """The period with which it is executed, which is shorter where that shares work."""
    achieved: float | None
    """Mean updates between runs; None before the first."""
    runs: int
    latency: float
    """Mean updates between runs beyond the requested ones; an early run counts 0. Includes the wait that goes on."""
    late: int
    """Runs that ended after their deadline."""
    staleness: int
    """Updates that the newest answer does not know of."""


@dataclass(frozen=True)
class SystemFigures:
    """The whole schedule so far."""

    policy: str
    update: int
    queries: int
    tasks: int
    """What is scheduled by itself: queries, sub-groups, or blocks of them."""
    executions: int
    runs: int
    """Runs of queries: an execution runs all queries that are executed together."""
    throughput: float
    """Runs of queries per second of the scheduler's clock."""
    backlog: int
    """Queries whose requested deadline has passed."""
    work: float
    """The cost of all executions, by the cost model."""
    alone: float
    """What the same runs would have cost, each query by itself."""

    @property
    def saved(self) -> float:
        """The share of work that joint execution has saved."""
        return 1 - self.work / self.alone if self.alone else 0.0
