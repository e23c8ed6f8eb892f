"""The simulated machine: time is spent as it should be, whatever is skipped, and load has its effects."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scheduling.played import ALL
from windrow.scheduling.cost import ProbeCost
from windrow.scheduling.simulator import Machine, Simulator, simulate
from windrow.scheduling.task import Task


def workload(count: int, groups: int = 4, seed: int = 1) -> list[Task]:
    rng = random.Random(seed)
    tasks = []
    for i in range(count):
        window = rng.randint(20, 100)
        tasks.append(Task(f"q{i}", rng.randint(1, window // 2), window, i % groups))
    return tasks


@given(st.integers(1, 30), st.sampled_from(ALL), st.sampled_from([0.0, 0.2]))
def test_an_idle_machine_meets_every_period(count: int, policy: str, update_cost: float) -> None:
    machine = Machine(1.0, update_cost, ProbeCost(combine=1e-6))
    found = simulate(workload(count), machine, 300, policy)
    assert found.system.update in (299, 300)
    assert found.latency == 0
    assert found.backlog == 0
    assert all(one.achieved is not None and one.achieved <= one.requested for one in found.queries)
    assert found.busy == pytest.approx(update_cost, abs=0.02)


def test_time_is_spent_on_updates_and_executions() -> None:
    # One query, every fourth update, 2 s of work; an update takes 0.5 s of its 3 s.
    machine = Machine(3.0, 0.5, ProbeCost(start=2.0, combine=0))
    found = simulate([Task("q", 4)], machine, 1200, "edf")
    assert found.system.executions == 100 - 1  # the last one would begin at the very end
    assert found.busy == pytest.approx(0.5 / 3 + 2 / 12, abs=0.005)
    assert found.throughput == pytest.approx(1 / 12, rel=0.02)


def test_under_overload_the_machine_is_always_busy_and_periods_grow() -> None:
    tasks = [Task(f"q{i}", 1, group=i) for i in range(10)]
    machine = Machine(1.0, 0.0, ProbeCost(start=0.5, combine=0))
    found = simulate(tasks, machine, 1000, "hybrid-late-pending")
    assert found.busy == pytest.approx(1 - 1 / 1000)  # idle until the first update
    assert found.throughput == pytest.approx(2, rel=0.01)
    assert found.stretch == pytest.approx(5, rel=0.02)
    assert found.latency == pytest.approx(4, rel=0.02)
    assert 5 <= found.backlog <= 10


def test_sharing_gives_more_throughput_and_less_latency_under_overload() -> None:
    machine = Machine(1.0, 0.01, ProbeCost(combine=0.01, post=0.001))
    found = {policy: simulate(workload(160), machine, 400, policy) for policy in ALL}
    order = ["edf", "separate", "conservative", "hybrid", "hybrid-late", "hybrid-late-pending"]
    latency = [found[policy].latency for policy in order]
    assert latency == sorted(latency, reverse=True)
    assert found["hybrid-late-pending"].throughput > 2 * found["separate"].throughput
    saved = [found[policy].system.saved for policy in ("edf", "separate", "conservative", "hybrid-late-pending")]
    assert saved == sorted(saved)
    assert saved[0] == 0


def test_random_arrivals_have_the_same_rate() -> None:
    machine = Machine(0.5, 0.01, ProbeCost(combine=1e-5), arrivals="poisson", seed=3)
    found = simulate(workload(20), machine, 1000)
    assert found.system.update == pytest.approx(2000, rel=0.1)
    assert found.latency < 0.1


def test_groups_may_have_costs_of_their_own() -> None:
    machine = Machine(1.0, 0.0, ProbeCost(start=1e-3, combine=0), {"dear": ProbeCost(start=0.5, combine=0)})
    found = simulate([Task("a", 1, group="cheap"), Task("b", 1, group="dear")], machine, 100)
    assert found.busy == pytest.approx(0.501, abs=0.01)


def test_the_policy_may_change_between_two_runs() -> None:
    simulator = Simulator(workload(40), Machine(1.0, 0.0, ProbeCost(combine=0.02)), "edf")
    before = simulator.run(200)
    simulator.scheduler.set_policy("hybrid-late-pending")
    simulator.scheduler.add(Task("new", 2, 30, 0))
    after = simulator.run(200)
    assert after.seconds == pytest.approx(400, rel=0.01)
    assert after.system.runs - before.system.runs > before.system.runs
    assert next(one for one in after.queries if one.name == "new").runs > 10


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match="updates arrive steady or poisson, found 'foo'"):
        Machine(1.0, arrivals="foo")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="expected more than 0 seconds of virtual time, found -1"):
        simulate([Task("q", 1)], Machine(1.0), seconds=-1)


def test_updates_that_leave_no_time_are_refused() -> None:
    with pytest.raises(ValueError, match="cannot be taken in every 1 s"):
        Machine(1.0, 1.0)
