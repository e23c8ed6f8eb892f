"""A query as a task: due every n updates of its synopsis (thesis 8.4.2); sub-groups and groups of them (8.4.3).

After a run its time to the deadline is d = n; every update takes one away; a run is on time when d ≥ 0 at its end.
Tasks of one *group* may be executed together; those of a group that also have the same period are a *sub-group*, and
two tasks of one sub-group never need different schedules.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property


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
        if not isinstance(self.priority, int):
            raise ValueError(f"task {self.name!r}: priority must be a whole number: {self.priority!r}")
        if not self.post >= 0:
            raise ValueError(f"task {self.name!r}: post must be a cost, at least 0: {self.post!r}")


@dataclass(frozen=True)
class SubGroup:
    """What a cost model must know of the tasks of one group and one period.

    >>> three = SubGroup.of([Task("a", 2, window=10), Task("b", 2, window=5), Task("c", 2, window=10, post=3)])
    >>> three
    SubGroup(period=2, windows=(5, 10, 10), post=3.0)
    >>> three.queries, three.lengths, three.intervals
    (3, (5, 10), 25)
    """

    period: int
    windows: tuple[int, ...]
    """Of each query, ascending."""
    post: float = 0.0
    """What the queries say themselves of their post-processing, in sum."""

    @classmethod
    def of(cls, tasks: Iterable[Task]) -> SubGroup:
        """The summary of tasks, which is due when the first of them is."""
        tasks = list(tasks)
        windows = tuple(sorted(task.window for task in tasks))
        return cls(min(task.period for task in tasks), windows, float(sum(task.post for task in tasks)))

    @property
    def queries(self) -> int:
        """How many."""
        return len(self.windows)

    @property
    def longest(self) -> int:
        """The longest window."""
        return self.windows[-1]

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """The different windows, ascending."""
        return tuple(sorted(set(self.windows)))

    @cached_property
    def intervals(self) -> int:
        """All windows, one after the other."""
        return sum(self.windows)
