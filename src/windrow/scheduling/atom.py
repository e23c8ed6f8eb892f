"""Tasks that no policy tells apart, while they run: all of a sub-group, or a single query (Algorithm 9).

Every run of an atom runs all its tasks, so an atom keeps one set of counters, however many tasks it has: O(1) per run,
and O(1) per task when it joins, after its first run, and when somebody asks.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from windrow.scheduling.cost import JointCost
from windrow.scheduling.figures import QueryFigures
from windrow.scheduling.task import SubGroup, Task


@dataclass
class Member:
    """A task in its atom: the atom's counters minus what they were, plus what it brought along."""

    task: Task
    since: int
    """The update at which it was added."""
    last: int
    """The update of its last run, or `since`; kept up until its first run in this atom."""
    runs: int = 0
    waited: int = 0
    late: int = 0


class Atom:
    """Tasks of one group and period, which run together."""

    def __init__(self, group: Hashable, key: Hashable, period: int) -> None:
        self.group = group
        self.key = key
        """Its place in the group."""
        self.period = period
        self.members: dict[str, Member] = {}
        self.running = False
        self.last = 0
        """The update whose state the last run has read; before the first run, when it was added."""
        self.runs = 0
        self._before = 0
        self._waited = 0
        self._late = 0
        self._fresh: dict[str, Member] = {}
        """Those that have not run in this atom: what they waited for their first run differs from the others."""
        self._started: dict[str, Member] = {}
        """The fresh ones that are in the run that has begun."""
        self._priority: int | None = None
        self._summary: SubGroup | None = None
        self._alone: tuple[JointCost, float] | None = None

    # -- tasks come and go ----------------------------------------------------------------------------------------

    def add(self, member: Member) -> None:
        """Let a task run with the others from now on; the atom becomes as urgent as its most urgent task."""
        self.last = min(self.last, member.last) if self.members else member.last
        self.members[member.task.name] = self._fresh[member.task.name] = member
        self._summary = self._alone = self._priority = None

    def remove(self, name: str) -> Member:
        """Take a task out, with all it has to its name."""
        member = self.members.pop(name)
        if not (self._fresh.pop(name, None) or self._started.pop(name, None)):
            member.runs, member.waited, member.late = self._counts(member)
            member.last = self._before if self.running else self.last
        self._summary = self._alone = self._priority = None
        return member

    @property
    def priority(self) -> int:
        """The highest of its tasks."""
        if self._priority is None:
            self._priority = max(one.task.priority for one in self.members.values())
        return self._priority

    @property
    def summary(self) -> SubGroup:
        """What the cost model must know."""
        if self._summary is None:
            self._summary = SubGroup.of(one.task for one in self.members.values())
        return self._summary

    def alone(self, cost: JointCost) -> float:
        """The cost of a run of each of its queries by itself."""
        if self._alone is None or self._alone[0] is not cost:
            self._alone = cost, sum(cost([SubGroup.of([one.task])]) for one in self.members.values())
        return self._alone[1]

    # -- runs -----------------------------------------------------------------------------------------------------

    @property
    def due(self) -> int:
        """The last update whose state a timely run may read."""
        return self.last + self.period

    def taking_part(self) -> Iterator[Task]:
        """The tasks of the run that has begun: those that came later wait for the next one."""
        return (one.task for name, one in self.members.items() if name not in self._fresh)

    def begin(self, now: int) -> None:
        """A run reads the state of this update."""
        self.running, self._before, self.last = True, self.last, now
        if self._fresh:
            self._started, self._fresh = self._fresh, {}

    def end(self, now: int) -> None:
        """The run has ended at this update."""
        self.running = False
        self.runs += 1
        excess = self.last - self._before - self.period
        if excess > 0:
            self._waited += excess
        if now - self._before > self.period:
            self._late += 1
        if self._started:
            for one in self._started.values():
                one.runs += 1 - self.runs
                one.waited += max(0, self.last - one.last - self.period) - self._waited
                one.late += (now - one.last > self.period) - self._late
            self._started = {}

    def undo(self) -> None:
        """The run has failed: it is as if it had never begun."""
        self.running, self.last = False, self._before
        self._fresh, self._started = self._started | self._fresh, {}

    def _counts(self, member: Member) -> tuple[int, int, int]:
        return member.runs + self.runs, member.waited + self._waited, member.late + self._late

    def figures(self, name: str, now: int, scheduled: int) -> QueryFigures:
        """What one of the tasks has achieved."""
        member = self.members[name]
        if name in self._fresh or name in self._started:
            done, (runs, waited, late) = member.last, (member.runs, member.waited, member.late)
        else:
            done, (runs, waited, late) = self._before if self.running else self.last, self._counts(member)
        waiting = max(0, now - done - self.period)
        gaps = runs + (waiting > 0)
        return QueryFigures(
            name=name,
            requested=self.period,
            scheduled=scheduled,
            # A gap that is too long already counts, though it has not ended.
            achieved=((now if waiting else done) - member.since) / gaps if runs else None,
            runs=runs,
            latency=(waited + waiting) / gaps if gaps else 0.0,
            late=late,
            staleness=now - done,
        )
