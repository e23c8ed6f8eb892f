"""Thesis 8.4.3 and 8.4.4: seven queries in three sub-groups, their schedules (Figure 8.6) and the costs of these."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import lcm

import pytest

from tests.scheduling.seven import FIRST, SECOND, SUB_GROUPS, TASKS, THIRD, names, trace
from windrow.scheduling.cost import ProbeCost
from windrow.scheduling.hybrid import choose, rate
from windrow.scheduling.scheduler import Scheduler
from windrow.scheduling.task import SubGroup

COST = ProbeCost()
PLANS = {
    "as they are": ((0, 1, 2), 11.63),
    "G1,2 every 2": ((0, 0, 2), 11.4),
    "G1,2 and G1,3 every 2": ((0, 0, 0), 14.5),
    "G1,3 every 3": ((0, 1, 1), 12.67),
    "G1,3 every 2": ((0, 1, 0), 16.83),
}
"""The five possibilities, with the cost per minute that is printed in 8.4.4."""


def counted_by_pairs(leaders: tuple[int, ...]) -> Fraction:
    """The cost per minute if meetings are subtracted by pairs only, and those of three blocks are not put back."""
    blocks = {leader: COST([SUB_GROUPS[i] for i in range(3) if leaders[i] == leader]) for leader in set(leaders)}
    periods = {leader: SUB_GROUPS[leader].period for leader in blocks}
    whole = lcm(*periods.values())
    total = Fraction(sum(Fraction(cost) * (whole // periods[leader]) for leader, cost in blocks.items()))
    for one, other in combinations(blocks, 2):
        together = whole // lcm(periods[one], periods[other])
        total -= together * Fraction(min(blocks[one], blocks[other]))
    return total / whole


def test_each_sub_group_alone() -> None:
    assert [COST([one]) for one in SUB_GROUPS] == [9, 14, 29]


def test_two_of_them() -> None:
    assert rate(SUB_GROUPS[:2], (0, 1), COST) == pytest.approx(46 / 6)
    assert rate(SUB_GROUPS[:2], (0, 0), COST) == 7


@pytest.mark.parametrize("plan", list(PLANS)[1:])
def test_four_of_the_costs_are_as_printed(plan: str) -> None:
    leaders, printed = PLANS[plan]
    assert round(rate(SUB_GROUPS, leaders, COST), 2) == printed


def test_the_conservative_schedule_costs_358_per_half_hour() -> None:
    executions = trace(_scheduler("conservative"), 30)
    assert sum(COST([_sub_group(part)]) for _, part in executions) == 358
    assert rate(SUB_GROUPS, (0, 1, 2), COST) == pytest.approx(358 / 30)


@pytest.mark.parametrize("plan", PLANS)
def test_all_five_are_as_printed_when_meetings_of_three_are_left_out(plan: str) -> None:
    # 11.63 is 349 / 30: one execution of G1,1 is missing, at minute 30, where all three meet and every pair of
    # them was subtracted. With two blocks there is nothing to leave out. The choice is the same.
    leaders, printed = PLANS[plan]
    assert round(float(counted_by_pairs(leaders)), 2) == printed


def test_the_choice() -> None:
    found = choose(SUB_GROUPS, COST)
    assert found.periods == (2, 2, 5)
    assert found.optimal
    assert found.rate == pytest.approx(11.4)


def _scheduler(policy: str) -> Scheduler:
    scheduler = Scheduler(policy)
    for task in TASKS:
        scheduler.add(task)
    return scheduler


def _sub_group(part: frozenset[str]) -> SubGroup:
    return SubGroup.of(task for task in TASKS if task.name in part)


def _every(*parts: tuple[int, object]) -> list[tuple[int, frozenset[str]]]:
    """At each minute up to 30, all parts whose period divides it."""
    due = {
        minute: frozenset[str]().union(*(names(tasks) for period, tasks in parts if minute % period == 0))
        for minute in range(1, 31)
    }
    return [(minute, part) for minute, part in due.items() if part]


def test_figure_8_6_a_aggressive() -> None:
    assert trace(_scheduler("aggressive"), 30) == _every((2, TASKS))


def test_figure_8_6_b_conservative() -> None:
    assert trace(_scheduler("conservative"), 30) == _every((2, FIRST), (3, SECOND), (5, THIRD))


def test_figure_8_6_c_hybrid() -> None:
    assert trace(_scheduler("hybrid"), 30) == _every((2, FIRST + SECOND), (5, THIRD))


def test_figure_8_6_d_late_pending() -> None:
    # The machine was away at minutes 8 and 9: the block of period 2 is late, the one of period 5 is pending.
    scheduler = _scheduler("hybrid-late-pending")
    assert trace(scheduler, 7)[-1] == (6, names(FIRST + SECOND))
    scheduler.updated(3)
    work = scheduler.next()
    assert work is not None
    assert (work.lateness, names(work)) == (2, names(TASKS))
    scheduler.done(work)
    assert scheduler.next() is None
    assert scheduler.due() == 12


def test_separate_queries() -> None:
    executions = trace(_scheduler("edf"), 6)
    assert sorted((minute, *part) for minute, part in executions) == sorted(
        (minute, task.name) for minute in range(1, 7) for task in TASKS if minute % task.period == 0
    )
