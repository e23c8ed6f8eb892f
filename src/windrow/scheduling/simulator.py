"""A simulated machine with a virtual clock, for the same scheduler: experiments beyond this machine (thesis 8.5).

Synopsis updates arrive at a rate; taking one in costs time, and so does every execution, by the cost model. The machine
does one thing at a time and never stops an execution; updates that arrived meanwhile are taken in before the next one,
as in Algorithms 9 to 11. The cost of a simulation is that of the scheduler: some microseconds per execution, whatever
the number of queries in it, and next to nothing for updates at which nothing is due.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from windrow.scheduling.cost import JointCost, ProbeCost
from windrow.scheduling.figures import QueryFigures, SystemFigures
from windrow.scheduling.policy import DEFAULT, Policy
from windrow.scheduling.scheduler import Scheduler
from windrow.scheduling.task import Task

Arrivals = Literal["steady", "poisson"]
_SAMPLES = 200
"""How often the backlog is looked at."""
_CHUNK = 4096


@dataclass(frozen=True)
class Machine:
    """What things cost on the simulated machine, in seconds, and how updates arrive."""

    interval: float
    """Seconds between two synopsis updates, on the average."""
    update_cost: float = 0.0
    """Taking in one update, all synopses together."""
    cost: JointCost = field(default_factory=ProbeCost)
    """One joint execution, in groups without a cost of their own."""
    costs: Mapping[Any, JointCost] = field(default_factory=dict)
    """The same, by group."""
    arrivals: Arrivals = "steady"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.arrivals not in get_args(Arrivals):
            raise ValueError(f"updates arrive {' or '.join(get_args(Arrivals))}, found {self.arrivals!r}")
        if not 0 <= self.update_cost < self.interval:
            raise ValueError(
                f"an update that costs {self.update_cost:g} s cannot be taken in every {self.interval:g} s: no time is "
                "left for queries; choose a longer interval"
            )


@dataclass(frozen=True)
class Simulated:
    """The outcome of a simulation."""

    seconds: float
    """Virtual time."""
    system: SystemFigures
    queries: Sequence[QueryFigures]
    backlog: float
    """Late queries, mean over time."""
    busy: float
    """The share of time in which the machine was not idle."""

    @property
    def throughput(self) -> float:
        """Queries executed per second."""
        return self.system.throughput

    @property
    def latency(self) -> float:
        """Updates between two runs of a query beyond those that it asked for: the mean over queries."""
        return float(np.mean([one.latency for one in self.queries])) if self.queries else 0.0

    @property
    def stretch(self) -> float:
        """Achieved over requested period, mean over the queries that have run."""
        found = [one.achieved / one.requested for one in self.queries if one.achieved is not None]
        return float(np.mean(found)) if found else float("inf")


class Simulator:
    """Runs tasks on a simulated machine; tasks and the policy may be changed between two calls of `run`.

    >>> simulator = Simulator([Task(f"q{i}", 1 + i % 3, window=10 + i) for i in range(6)], Machine(interval=100.0))
    >>> found = simulator.run(60_000)
    >>> found.latency, found.busy < 1, [one.achieved for one in found.queries]
    (0.0, True, [1.0, 2.0, 2.0, 1.0, 2.0, 2.0])
    """

    def __init__(
        self, tasks: Sequence[Task], machine: Machine, policy: str | Policy = DEFAULT, early: bool = False
    ) -> None:
        self.machine = machine
        self._clock = 0.0
        self.scheduler = Scheduler(policy, machine.cost, early=early, clock=lambda: self._clock)
        for group, cost in machine.costs.items():
            self.scheduler.set_cost(group, cost)
        for task in tasks:
            self.scheduler.add(task)
        self._early = early
        self._gaps = self._between()
        self._arrival = next(self._gaps)
        self._idle = 0.0
        self._backlogs: list[int] = []

    def run(self, seconds: float) -> Simulated:
        """Go on for so much virtual time, and say what was achieved since the beginning."""
        scheduler = self.scheduler
        end = self._clock + seconds
        every = seconds / _SAMPLES
        look = self._clock + every
        while self._clock < end:
            while self._arrival <= self._clock < end:
                self._take_in()
            work = scheduler.next()
            if work is None:
                self._wait(end)
            else:
                self._clock += work.cost
                scheduler.done(work)
            while self._clock >= look:
                self._backlogs.append(scheduler.backlog())
                look += every
        return Simulated(
            seconds=self._clock,
            system=scheduler.system(),
            queries=scheduler.queries(),
            backlog=float(np.mean(self._backlogs)) if self._backlogs else 0.0,
            busy=1 - self._idle / self._clock if self._clock > 0 else 0.0,
        )

    def _take_in(self) -> None:
        self._clock += self.machine.update_cost
        self.scheduler.updated()
        self._arrival += next(self._gaps)

    def _wait(self, end: float) -> None:
        """Nothing is due: be idle until the next update arrives, or the next one that matters."""
        skip = self._without_work(end)
        if skip:
            self.scheduler.updated(skip)
            self._arrival += skip * self.machine.interval
            taken_in = self._arrival - self.machine.interval + self.machine.update_cost
            self._idle += max(0.0, taken_in - self._clock - skip * self.machine.update_cost)
            self._clock = max(self._clock, taken_in)
        else:
            arrived = min(end, max(self._clock, self._arrival))
            self._idle += arrived - self._clock
            self._clock = arrived

    def _without_work(self, end: float) -> int:
        """Updates to come at which nothing is due and which need not be looked at one by one."""
        if self.machine.arrivals != "steady" or self._early:
            return 0
        left = int((end - self._arrival) / self.machine.interval)
        due = self.scheduler.due()
        return max(0, left if due is None else min(left, due - self.scheduler.update - 1))

    def _between(self) -> Iterator[float]:
        """The times between arrivals."""
        interval = self.machine.interval
        if self.machine.arrivals == "steady":
            while True:
                yield interval
        rng = np.random.default_rng(self.machine.seed)
        while True:
            yield from rng.exponential(interval, _CHUNK).tolist()


def simulate(
    tasks: Sequence[Task], machine: Machine, seconds: float, policy: str | Policy = DEFAULT, early: bool = False
) -> Simulated:
    """Run tasks on a simulated machine for some virtual time."""
    if not seconds > 0:
        raise ValueError(f"expected more than 0 seconds of virtual time, found {seconds:g}")
    return Simulator(tasks, machine, policy, early).run(seconds)
