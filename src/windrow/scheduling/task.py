"""A query as a task: due every n updates of its synopsis (thesis 8.4.2); sub-groups and groups of them (8.4.3).

After a run its time to the deadline is d = n; every update takes one away; a run is on time when d ≥ 0 at its end.
Tasks of one *group* may be executed together; those of a group that also have the same period are a *sub-group*, and
two tasks of one sub-group never need different schedules.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Task:
    """One periodic query; `period` and `window` count synopsis updates."""

    name: str
    period: int
    window: int = 1
    group: Hashable = ""
    priority: int = 0
    """Among equal deadlines the greater goes first."""
    post: float = 0.0
    """What the query does with the partials of its window (a sort, say), in the units of the cost model."""

    def __post_init__(self) -> None:
        for what in ("period", "window"):
            value = getattr(self, what)
            if not isinstance(value, int) or value < 1:
                raise ValueError(
                    f"task {self.name!r}: {what} must be a whole number of synopsis updates, at least 1: {value!r}"
                )


@dataclass(frozen=True)
class SubGroup:
    """What a cost model must know of the tasks of one group and one period.

    >>> SubGroup.of([Task("a", 2, window=10), Task("b", 2, window=5), Task("c", 2, window=10, post=3)])
    SubGroup(period=2, windows=(5, 10), queries=3, post=3.0)
    """

    period: int
    windows: tuple[int, ...]
    """Different lengths, ascending."""
    queries: int = 1
    post: float = 0.0
    """The sum over the queries."""

    @classmethod
    def of(cls, tasks: Iterable[Task]) -> SubGroup:
        """The summary of tasks, which is due when the first of them is."""
        tasks = list(tasks)
        windows = tuple(sorted({task.window for task in tasks}))
        return cls(min(task.period for task in tasks), windows, len(tasks), float(sum(task.post for task in tasks)))
