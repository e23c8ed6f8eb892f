"""The seven queries of thesis 8.4.3, and a machine that is never busy."""

from __future__ import annotations

from windrow.scheduling.scheduler import Scheduler
from windrow.scheduling.task import SubGroup, Task

QUERIES = (("Q1", 10, 2), ("Q2", 5, 2), ("Q3", 6, 2), ("Q4", 15, 3), ("Q5", 12, 3), ("Q6", 20, 5), ("Q7", 30, 5))
TASKS = tuple(Task(name, slide, window) for name, window, slide in QUERIES)
FIRST, SECOND, THIRD = TASKS[:3], TASKS[3:5], TASKS[5:]
SUB_GROUPS = tuple(SubGroup.of(tasks) for tasks in (FIRST, SECOND, THIRD))


def names(tasks: object) -> frozenset[str]:
    """What runs together, by name."""
    return frozenset(task.name for task in tasks)  # type: ignore[attr-defined]


def trace(scheduler: Scheduler, updates: int) -> list[tuple[int, frozenset[str]]]:
    """Every execution of a machine that has all the time in the world."""
    seen = []
    for _ in range(updates):
        scheduler.updated()
        while (work := scheduler.next()) is not None:
            seen.append((scheduler.update, names(work)))
            scheduler.done(work)
    return seen
