"""A slow, obvious machine around a scheduler: it notes every run of every query, and counts them by itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise

from windrow.scheduling.policy import POLICIES
from windrow.scheduling.scheduler import Scheduler
from windrow.scheduling.task import Task

ALL = tuple(POLICIES)


class Played:
    """Executions that take a whole number of `steps`; `per_update` steps pass between two updates."""

    def __init__(self, scheduler: Scheduler, tasks: Iterable[Task], per_update: int) -> None:
        self.scheduler = scheduler
        self.tasks: dict[str, Task] = {}
        self.since: dict[str, int] = {}
        self.runs: dict[str, list[int]] = defaultdict(list)
        """By name: the updates whose state was read."""
        self.ends: dict[str, list[int]] = defaultdict(list)
        self.together: list[tuple[int, tuple[str, ...]]] = []
        self._per_update = per_update
        self._left = 0
        for task in tasks:
            self.add(task)

    def add(self, task: Task) -> None:
        """A query comes."""
        self.scheduler.add(task)
        self.tasks[task.name] = task
        self.since[task.name] = self.scheduler.update
        self.runs.pop(task.name, None)
        self.ends.pop(task.name, None)

    def remove(self, name: str) -> None:
        """A query goes."""
        self.scheduler.remove(name)
        del self.tasks[name]

    def go(self, updates: int, steps: int) -> None:
        """So many updates; every execution takes so many steps, in which updates go on."""
        for _ in range(updates):
            self.scheduler.updated()
            self._left += self._per_update
            while self._left > 0 and (work := self.scheduler.next()) is not None:
                names = tuple(task.name for task in work)
                self.together.append((work.update, names))
                self._left -= steps
                while self._left < 0:
                    self.scheduler.updated()
                    self._left += self._per_update
                self.scheduler.done(work)
                for name in names:
                    self.runs[name].append(work.update)
                    self.ends[name].append(self.scheduler.update)
            self._left = min(self._left, 0)

    def gaps(self, name: str) -> list[int]:
        """Updates between the states that a query has read, from its registration on."""
        seen = [self.since[name], *self.runs[name]]
        return [later - before for before, later in pairwise(seen)]
