"""What must be true of every policy: nobody late without need, nobody starves, nobody is lost, groups stay apart."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scheduling.played import ALL, Played
from windrow.errors import CatalogError, StateError
from windrow.scheduling.cost import ProbeCost
from windrow.scheduling.scheduler import Scheduler
from windrow.scheduling.task import Task


def tasks_of(rows: list[tuple[int, int, int, int]]) -> list[Task]:
    return [
        Task(f"q{i}", period, window, f"g{group}", priority) for i, (period, window, group, priority) in enumerate(rows)
    ]


TASKS = st.lists(
    st.tuples(st.integers(1, 9), st.integers(1, 20), st.integers(0, 2), st.integers(0, 1)), min_size=1, max_size=12
).map(tasks_of)
POLICY = st.sampled_from(ALL)


@given(TASKS, POLICY, st.booleans())
def test_with_time_enough_nobody_waits_longer_than_it_asked(tasks: list[Task], policy: str, early: bool) -> None:
    played = Played(Scheduler(policy, early=early), tasks, per_update=1000)
    played.go(40, steps=1)
    for task in tasks:
        assert max(played.gaps(task.name)) <= task.period
        figures = played.scheduler.query(task.name)
        assert figures.achieved is not None
        assert figures.achieved <= task.period
        assert (figures.latency, figures.late) == (0, 0)
        assert figures.staleness < task.period
    assert played.scheduler.system().backlog == 0


@given(TASKS, POLICY, st.integers(2, 6))
def test_under_overload_nobody_runs_twice_before_one_that_is_late(tasks: list[Task], policy: str, steps: int) -> None:
    played = Played(Scheduler(policy), tasks, per_update=1)
    played.go(120, steps)
    everyone = len(tasks)
    for task in tasks:
        seen = [0, *played.runs[task.name]]
        for before, later in pairwise(seen):
            due = before + task.period
            for other in tasks:
                overtook = [update for update in played.runs[other.name] if due <= update < later]
                # Once for its deadline before the other's, and once because both may be due at the same update.
                assert len(overtook) <= 2
        # One round of all others, each of `steps` updates, and what was being executed when it became late.
        assert max(played.gaps(task.name)) <= task.period + (everyone + 1) * steps


@given(TASKS, st.sampled_from(["conservative", "hybrid", "hybrid-late", "hybrid-late-pending"]), st.integers(2, 6))
def test_equal_queries_fare_alike_under_overload(tasks: list[Task], policy: str, steps: int) -> None:
    equal = [Task(task.name, task.period, task.window, task.group) for task in tasks]
    played = Played(Scheduler(policy), equal, per_update=1)
    played.go(400, steps)
    rounds = (len(equal) + 1) * steps
    late = [max(0, max(played.gaps(task.name)) - task.period) for task in equal]
    assert max(late) <= rounds
    for one in equal:
        for other in equal:
            if one.period == other.period:
                first, second = (played.scheduler.query(task.name).achieved for task in (one, other))
                assert first is not None
                assert second is not None
                assert first / second <= 1 + rounds / one.period


@given(TASKS, POLICY, st.integers(1, 5), st.integers(1, 5))
def test_groups_are_never_mixed(tasks: list[Task], policy: str, steps: int, per_update: int) -> None:
    played = Played(Scheduler(policy), tasks, per_update)
    played.go(40, steps)
    by_name = {task.name: task for task in tasks}
    assert played.together
    for _, names in played.together:
        assert len({by_name[name].group for name in names}) == 1
        assert len(set(names)) == len(names)
        if policy == "edf":
            assert len(names) == 1
        if policy == "separate":
            assert len({by_name[name].period for name in names}) == 1


CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("policy"), POLICY),
        st.tuples(st.just("add"), st.tuples(st.integers(1, 9), st.integers(1, 20), st.integers(0, 2))),
        st.tuples(st.just("remove"), st.integers(0, 30)),
        st.tuples(st.just("go"), st.integers(1, 8)),
        st.tuples(st.just("cost"), st.sampled_from(["running", "interval", "basic_interval"])),
    ),
    max_size=25,
)


@given(TASKS, POLICY, CHANGES, st.sampled_from([(1000, 1), (2, 3), (3, 2)]), st.booleans())
def test_changes_lose_nobody_and_miscount_nothing(
    tasks: list[Task], policy: str, changes: list[tuple[str, object]], pace: tuple[int, int], early: bool
) -> None:
    per_update, steps = pace
    played = Played(Scheduler(policy, early=early), tasks, per_update)
    for i, (what, how) in enumerate(changes):
        if what == "policy":
            played.scheduler.set_policy(str(how))
        elif what == "add":
            period, window, group = how  # type: ignore[misc]
            played.add(Task(f"new{i}", period, window, f"g{group}"))
        elif what == "remove" and played.tasks:
            played.remove(sorted(played.tasks)[int(how) % len(played.tasks)])  # type: ignore[call-overload]
        elif what == "cost":
            played.scheduler.set_cost("g1", ProbeCost(how))  # type: ignore[arg-type]
        elif what == "go":
            played.go(int(how), steps)  # type: ignore[call-overload]
        if per_update == 1000:
            for name, task in played.tasks.items():
                assert max(played.gaps(name), default=0) <= task.period
    before = {name: len(played.runs[name]) for name in played.tasks}
    longest = max((task.period for task in played.tasks.values()), default=0)
    played.go(longest + (len(played.tasks) + 2) * steps, steps)
    for name, task in played.tasks.items():
        assert len(played.runs[name]) > before[name], "a task is lost"
        figures = played.scheduler.query(name)
        gaps, now = played.gaps(name), played.scheduler.update
        last = played.runs[name][-1]
        waits = [max(0, gap - task.period) for gap in [*gaps, now - last]]
        if waits[-1] == 0:
            waits.pop()
        assert figures.runs == len(gaps)
        counted = [*gaps, now - last] if now - last > task.period else gaps
        assert figures.achieved == pytest.approx(sum(counted) / len(counted))
        assert figures.latency == pytest.approx(sum(waits) / len(waits))
        assert figures.staleness == now - last
        begins = [played.since[name], *played.runs[name]]
        ends = zip(begins, played.ends[name], strict=False)
        assert figures.late == sum(end - begin > task.period for begin, end in ends)
    assert len(played.scheduler) == len(played.tasks)
    assert [one.name for one in played.scheduler.queries()] == list(played.scheduler._atoms)


def test_the_system_counts_its_work() -> None:
    seconds = 0.0
    scheduler = Scheduler("conservative", clock=lambda: seconds)
    for name, period, window in (("a", 2, 10), ("b", 3, 20)):
        scheduler.add(Task(name, period, window))
    played = Played(scheduler, (), per_update=1000)
    played.go(6, steps=1)
    seconds = 2.0
    found = scheduler.system()
    # a at 2 and 4, b at 3, both at 6 for the price of the longer one.
    assert (found.executions, found.runs, found.throughput, found.tasks) == (4, 5, 2.5, 2)
    assert (found.work, found.alone) == (9 + 9 + 19 + 19, 3 * 9 + 2 * 19)
    assert found.saved == pytest.approx(9 / 65)
    assert Scheduler().system().saved == 0


def test_among_equal_deadlines_the_highest_priority_goes_first() -> None:
    scheduler = Scheduler("edf")
    for name, priority in (("low", 0), ("high", 5), ("middle", 2)):
        scheduler.add(Task(name, 3, group=name, priority=priority))
    scheduler.updated(3)
    order = []
    while (work := scheduler.next()) is not None:
        order += [task.name for task in work]
    assert order == ["high", "middle", "low"]


def test_an_earlier_deadline_goes_before_a_higher_priority() -> None:
    scheduler = Scheduler("hybrid-late-pending")
    scheduler.add(Task("low", 2, group="a"))
    scheduler.add(Task("high", 3, group="b", priority=9))
    scheduler.updated(4)
    work = scheduler.next()
    assert work is not None
    assert [task.name for task in work] == ["low"]


def test_late_tasks_join_only_with_late_sharing() -> None:
    wanted = {
        "conservative": [{"a"}, {"b"}, {"c"}],
        "conservative-late": [{"a", "b"}, {"c"}],
        "conservative-late-pending": [{"a", "b", "c"}],
    }
    for policy, executions in wanted.items():
        scheduler = Scheduler(policy)
        for name, period in (("a", 2), ("b", 3), ("c", 4)):
            scheduler.add(Task(name, period))
        scheduler.updated(4)
        found = []
        while (work := scheduler.next()) is not None:
            found.append({task.name for task in work})
            scheduler.done(work)
        assert found == executions, policy


def test_early_runs_are_a_setting_and_never_happen_twice_in_one_update() -> None:
    scheduler = Scheduler("edf", early=True)
    scheduler.add(Task("a", 2))
    scheduler.add(Task("b", 5))
    played = Played(scheduler, (), per_update=1000)
    played.go(3, steps=1)
    assert played.runs == {"a": [1, 2, 3], "b": [1, 2, 3]}
    scheduler.set_early(False)
    played.go(7, steps=1)
    # Within one period each, and then back on multiples of the period, where the two meet.
    assert played.runs == {"a": [1, 2, 3, 5, 6, 8, 10], "b": [1, 2, 3, 8, 10]}


def test_a_failed_execution_is_as_urgent_as_before() -> None:
    scheduler = Scheduler()
    scheduler.add(Task("a", 2))
    scheduler.updated(2)
    work = scheduler.next()
    assert work is not None
    scheduler.failed(work)
    again = scheduler.next()
    assert again is not None
    scheduler.done(again)
    assert scheduler.query("a").runs == 1
    with pytest.raises(StateError, match="ended already"):
        scheduler.done(work)


def test_what_is_being_executed_is_not_handed_out_again() -> None:
    scheduler = Scheduler("hybrid")
    for name, period in (("a", 1), ("b", 2)):
        scheduler.add(Task(name, period, window=10))
    scheduler.updated(2)
    work = scheduler.next()
    assert work is not None
    scheduler.add(Task("late", 2, window=3))
    scheduler.updated(4)
    assert scheduler.next() is None
    assert {task.name for task in work} == {"a", "b"}
    scheduler.done(work)
    assert (scheduler.query("a").runs, scheduler.query("late").runs) == (1, 0)
    again = scheduler.next()
    assert again is not None
    assert {task.name for task in again} == {"a", "b", "late"}


@pytest.mark.parametrize("policy", ["edf", "aggressive"])
def test_a_policy_that_regroups_waits_for_what_is_being_executed(policy: str) -> None:
    scheduler = Scheduler("aggressive" if policy == "edf" else "edf")
    for name in ("a", "b"):
        scheduler.add(Task(name, 1))
    scheduler.updated()
    work = scheduler.next()
    assert work is not None
    scheduler.set_policy(policy)
    assert scheduler.policy.name == policy
    assert scheduler.next() is None
    scheduler.remove("b")
    scheduler.done(work)
    scheduler.updated()
    again = scheduler.next()
    assert again is not None
    assert [task.name for task in again] == ["a"]


def test_names_are_unique_and_known() -> None:
    scheduler = Scheduler()
    scheduler.add(Task("a", 1))
    with pytest.raises(CatalogError, match="a task named 'a' already"):
        scheduler.add(Task("a", 2))
    with pytest.raises(CatalogError, match="no task named 'b'"):
        scheduler.remove("b")
    with pytest.raises(CatalogError, match="no task named 'b'"):
        scheduler.query("b")
    with pytest.raises(ValueError, match=r"one of edf, separate, .*; found 'fifo'"):
        Scheduler("fifo")
    assert ("a" in scheduler, "b" in scheduler) == (True, False)
    scheduler.remove("a")
    assert scheduler.due() is None
    assert scheduler.next() is None


def test_choices_may_be_made_elsewhere() -> None:
    """Until one has come a group goes by sub-groups; then, and when it is out of date, by the newest one."""
    tasks = [Task("a", 2, window=10), Task("b", 3, window=15), Task("c", 5, window=30)]
    at_once, later = Scheduler("hybrid"), Scheduler("hybrid", later=True)
    for scheduler in (at_once, later):
        for task in tasks:
            scheduler.add(task)
    assert [one.scheduled for one in later.queries()] == [2, 3, 5] and not at_once.questions
    (question,) = later.questions.values()
    later.updated(2)
    work = later.next()  # an execution that goes on meanwhile
    assert work is not None
    later.answered(question, question.think())
    assert [one.scheduled for one in later.queries()] == [one.scheduled for one in at_once.queries()] == [2, 2, 5]
    assert not later.questions
    later.done(work)
    later.add(Task("d", 4, window=40))
    assert [one.scheduled for one in later.queries()] == [2, 2, 5, 4]
    later.remove("a")  # the leader has gone
    assert [one.scheduled for one in later.queries()] == [3, 5, 4]
    (asked,) = later.questions.values()
    later.set_cost("", ProbeCost())  # the same question again
    assert list(later.questions.values()) == [asked]
    later.answered(question, (0, 0, 2))  # an answer of long ago
    assert [one.scheduled for one in later.queries()] == [3, 5, 4]
    later.answered(asked, (0, 0, 0))
    assert {one.scheduled for one in later.queries()} == {3}
    later.set_policy("conservative")
    assert [one.scheduled for one in later.queries()] == [3, 5, 4]
    assert not later.questions
    for name in ("b", "c", "d"):
        later.remove(name)
    later.answered(asked, (0, 0, 0))  # to a group that is gone
