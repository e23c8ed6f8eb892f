"""Live: which queries are answered when, while tuples keep coming (thesis 8.4).

arrived: the watermark has moved ─► updates, one after the other ─► scheduler ─► executions, each of them short

One update is the greatest common divisor of all SLIDEs of a stream. As long as the answers to one batch are done before
the next one comes, every query is answered at each of its due times, however many a batch brings. When they are not,
the system is overloaded: the updates that were missed are taken as one, and what is late is answered as of the newest
state, so that periods get longer and no query is dropped. Every answer is exact for the instant that it names.

The scheduler counts ticks, not updates: a query that comes or goes may change what an update is, and neither deadlines
nor what has been achieved change with that.

Hybrid choices take a while for groups of many periods (docs/scheduling.md has a table). A run has them thought over by
a thread of its own; until then a group goes on as it was.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from math import gcd
from time import perf_counter
from typing import Any

import numpy as np

from windrow.running import RunningQuery, RunningStream
from windrow.scheduling.cost import KINDS, Kind, ProbeCost
from windrow.scheduling.execution import Execution
from windrow.scheduling.group import Question
from windrow.scheduling.policy import DEFAULT
from windrow.scheduling.scheduler import Scheduler
from windrow.scheduling.task import SubGroup, Task

SAMPLES = 64
"""Executions of a group after which its cost model is fitted to what was measured, and again after twice as many."""
REMEMBERED = 20_000
"""Latencies that are kept."""


@dataclass(frozen=True)
class Work:
    """Queries that are answered together, once, as of `now`."""

    stream: str
    now: int
    queries: tuple[str, ...]


@dataclass(eq=False)
class _Costs:
    """What executions of a group have cost."""

    kind: Kind
    samples: list[tuple[list[SubGroup], float]] = field(default_factory=list)
    wanted: int = SAMPLES


class StreamSchedule:
    """The schedule of one stream."""

    def __init__(
        self, running: RunningStream, policy: str, clock: Callable[[], float], beside: Executor | None = None
    ) -> None:
        self._running = running
        self._beside = beside
        self._thinking: dict[Question, Future[tuple[int, ...]]] = {}
        self._policy = policy
        self._clock = clock
        self._unit = 0
        """Ticks of one update."""
        self._interval = 0
        """Ticks that the cost model calls an interval: one update, as it was when queries first came."""
        self._known: dict[str, RunningQuery] = {}
        self._followed: int | None = None
        """The changes of the stream's queries that were followed; None to begin anew."""
        self._scheduler = Scheduler(policy, later=beside is not None)
        self._goal: int | None = None
        """The newest tick that is complete."""
        self._costs: dict[Any, _Costs] = {}
        self._came = clock()
        self.skipped = 0
        """Updates that were taken as one with later ones."""
        self.latencies: deque[float] = deque(maxlen=REMEMBERED)
        """Seconds from the arrival of a batch to each answer."""

    # ---- queries come and go --------------------------------------------------------------------------------------

    def _follow(self) -> None:
        """Have a task for every query that is there."""
        if self._followed == self._running.changes:
            return
        self._followed = self._running.changes
        wanted = {name: query for name, query in self._running.queries.items() if query.plan.rows is None}
        if wanted == self._known:
            return
        self._unit = gcd(*(query.plan.slide for query in wanted.values()))
        self._interval = self._interval or self._unit
        # One that was dropped, and whose name another one has, goes and comes.
        for name in [name for name, query in self._known.items() if wanted.get(name) is not query]:
            self._scheduler.remove(name)
        for name in [name for name, query in wanted.items() if self._known.get(name) is not query]:
            self._scheduler.add(self._task(name, wanted[name]))
        self._known = wanted
        if not wanted:
            self._goal = None  # whoever comes next begins anew

    def _task(self, name: str, query: RunningQuery) -> Task:
        plan = query.plan
        texts = tuple(sorted(one.text for one in plan.aggregations))
        group = plan.share_key, texts
        if group not in self._costs:
            known = query.slice.explain(query.member.terms[0]) if query.member.terms else None
            kind: Kind = next((one for one in KINDS if known is not None and known.name == one), "running")
            self._costs[group] = _Costs(kind)
            self._scheduler.set_cost(group, ProbeCost(kind))
        priority = 0 if plan.priority is None else plan.priority.value
        return Task(name, plan.slide, max(1, -(-query.reach // self._interval)), group, priority)

    def set_policy(self, policy: str) -> None:
        """Go on with another policy."""
        self._policy = policy
        self._scheduler.set_policy(policy)

    # ---- time and work --------------------------------------------------------------------------------------------

    def arrived(self) -> None:
        """A batch was taken in."""
        self._came = self._clock()
        mark = self._running.watermark
        if mark.value is None or mark.oldest is None or mark.oldest > mark.value:
            return
        self._follow()
        if not self._unit:
            return
        if self._goal is None:
            # The first update is the one at or after the oldest tuple, or after what an earlier run has answered.
            dues = [(one.member.next_due, one.plan.slide) for one in self._known.values()]
            before = min(mark.oldest - 1 if due is None else due - slide for due, slide in dues)
            before -= before % self._unit
            self._scheduler = Scheduler(self._policy, update=before, later=self._beside is not None)
            self._known, self._goal, self._followed = {}, before, None
            self._costs.clear()
            self._follow()
        self.hurry()
        self._goal = max(self._goal, mark.value)

    @property
    def _behind(self) -> int:
        """Ticks of whole updates that have come and are not worked off yet."""
        if self._goal is None or not self._unit:
            return 0
        return max(0, self._goal - self._goal % self._unit - self._scheduler.update)

    def hurry(self) -> None:
        """Take all updates that have come as one."""
        behind = self._behind
        if behind:
            self.skipped += -(-behind // self._unit)
            self._scheduler.updated(behind)

    def next(self, *, stay: bool = False) -> tuple[Work, Execution] | None:
        """What to answer next; None when all that is due is answered, or with `stay` all of the same update."""
        self._follow()
        self._think()
        if self._goal is None or not self._reach_update():
            return None
        while True:
            execution = self._scheduler.next()
            if execution is not None:
                names = tuple(task.name for task in execution)
                return Work(self._running.stream.name, self._scheduler.update, names), execution
            if stay:
                return None
            due, now = self._scheduler.due(), self._scheduler.update
            if due is None or due > now + self._behind:
                self._scheduler.updated(self._behind)
                return None
            self._scheduler.updated(max(due, now + self._unit) - now)

    def _think(self) -> None:
        """Take the choices that are made, and have those made that are wanted."""
        for question, choice in list(self._thinking.items()):
            if choice.done():
                del self._thinking[question]
                self._scheduler.answered(question, choice.result())
        if self._beside is not None:
            for question in self._scheduler.questions.values():
                if question not in self._thinking:
                    self._thinking[question] = self._beside.submit(question.think)

    def _reach_update(self) -> bool:
        """Whether now is an update; where updates have become longer, the next one must have come."""
        ahead = -self._scheduler.update % self._unit if self._unit else 0
        if ahead > self._behind:
            return False
        if ahead:
            self._scheduler.updated(ahead)
        return bool(self._unit)

    def done(self, execution: Execution, seconds: float) -> None:
        """An execution has ended, and took so long."""
        self._scheduler.done(execution)
        waited = self._clock() - self._came
        self.latencies.extend([waited] * execution.queries)
        costs = self._costs[execution.group]
        costs.samples.append(([atom.summary for atom in execution.atoms], seconds))
        if len(costs.samples) >= costs.wanted:
            self._scheduler.set_cost(execution.group, ProbeCost(costs.kind).fitted(costs.samples))
            costs.wanted *= 2
            costs.samples = costs.samples[-SAMPLES:]

    @property
    def queries(self) -> list[str]:
        """The names of those that it schedules."""
        return list(self._known)

    def query(self, name: str) -> dict[str, Any]:
        """What one query has achieved; periods in ticks of its stream."""
        if name not in self._known:
            return {}
        figures = self._scheduler.query(name)
        return {
            "requested_period": figures.requested,
            "scheduled_period": figures.scheduled,
            "achieved_period": figures.achieved,
            "latency_updates": figures.latency / self._unit,
            "late_runs": figures.late,
            "staleness": figures.staleness,
        }

    def figures(self) -> dict[str, Any]:
        """The whole stream."""
        system = self._scheduler.system()
        waited = np.array(self.latencies) if self.latencies else np.zeros(1)
        return {
            "policy": system.policy,
            "queries": system.queries,
            "tasks": system.tasks,
            "executions": system.executions,
            "runs": system.runs,
            "runs_per_second": system.throughput,
            "backlog": system.backlog,
            "updates_behind": -(-self._behind // self._unit) if self._unit else 0,
            "skipped_updates": self.skipped,
            "work_saved": system.saved,
            "latency_p50": float(np.quantile(waited, 0.5)),
            "latency_p99": float(np.quantile(waited, 0.99)),
        }


class LiveSchedule:
    """The schedules of all streams of an engine."""

    def __init__(
        self, policy: str = DEFAULT, clock: Callable[[], float] = perf_counter, *, beside: bool = False
    ) -> None:
        """`beside`: choices that take a while are made in another thread."""
        self.policy = policy
        self._clock = clock
        self._beside = ThreadPoolExecutor(1, "windrow-choice") if beside else None
        self._streams: dict[str, StreamSchedule] = {}
        self._final: dict[str, tuple[dict[str, Any], dict[str, dict[str, Any]]]] | None = None
        """Of a run that has ended: by stream, its figures and those of its queries."""
        self._run_seconds = 1e-3
        """What one run of a query takes, as far as is known."""
        Scheduler(policy)  # an unknown policy is told now

    def arrived(self, running: RunningStream) -> None:
        """A batch of this stream was taken in."""
        name = running.stream.name.lower()
        known = self._streams.get(name)
        if known is None or known._running is not running:
            known = self._streams[name] = StreamSchedule(running, self.policy, self._clock, self._beside)
        known.arrived()

    def set_policy(self, policy: str) -> None:
        """Go on with another policy: no query is lost, and no deadline becomes later."""
        self.policy = policy
        for one in self._streams.values():
            one.set_policy(policy)

    def work(self) -> Iterator[tuple[StreamSchedule, Work, Execution]]:
        """All that is due now, stream by stream; say `done` of each before the next is asked for."""
        for one in list(self._streams.values()):
            while (found := one.next()) is not None:
                yield one, *found

    def some(self, seconds: float) -> list[tuple[StreamSchedule, Work, Execution]]:
        """What is due now at one update of a stream: work for about so long, and at least one execution."""
        most = max(1, int(seconds / self._run_seconds))
        for one in list(self._streams.values()):
            found = one.next()
            chosen: list[tuple[StreamSchedule, Work, Execution]] = []
            runs = 0
            while found is not None:
                chosen.append((one, *found))
                runs += len(found[0].queries)
                found = one.next(stay=True) if runs < most else None
            if chosen:
                return chosen
        return []

    def done(self, one: tuple[StreamSchedule, Work, Execution], seconds: float) -> None:
        """One of `some` is answered, and took so long."""
        stream, work, execution = one
        stream.done(execution, seconds)
        self._run_seconds += (seconds / max(1, len(work.queries)) - self._run_seconds) / 16

    def hurry(self) -> None:
        """Of what is due, answer the newest only."""
        for one in self._streams.values():
            one.hurry()

    def close(self) -> None:
        """The run has ended: its figures stay as they are."""
        if self._beside is not None:
            self._beside.shutdown(wait=False, cancel_futures=True)
        self._final = {
            name: (one.figures(), {query: one.query(query) for query in one.queries})
            for name, one in self._streams.items()
        }

    def begin_figures(self) -> None:
        """Forget the latencies so far, which pay for what is made once."""
        for one in self._streams.values():
            one.latencies.clear()

    def query(self, stream: str, name: str) -> dict[str, Any]:
        """What one query has achieved."""
        if self._final is not None:
            return self._final.get(stream.lower(), ({}, {}))[1].get(name, {})
        known = self._streams.get(stream.lower())
        return {} if known is None else known.query(name)

    def figures(self) -> dict[str, Any]:
        """Of each stream."""
        if self._final is not None:
            return {name: figures for name, (figures, _) in self._final.items()}
        return {name: one.figures() for name, one in self._streams.items()}
