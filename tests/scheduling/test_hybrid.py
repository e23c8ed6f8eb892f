"""The hybrid choice is the best of all schedules, as far as all can be tried, and quick beyond that."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from math import lcm
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.scheduling.coincidence import Called, Covered, Nested, pricing
from windrow.scheduling.cost import KINDS, JointCost, Kind, ProbeCost
from windrow.scheduling.hybrid import choose, rate
from windrow.scheduling.task import SubGroup

WINDOWS = st.lists(st.integers(1, 30), min_size=1, max_size=4).map(lambda found: tuple(sorted(found)))
MEMBERS = st.lists(st.integers(1, 12), min_size=1, max_size=5, unique=True).flatmap(
    lambda periods: st.tuples(*(st.builds(SubGroup, st.just(period), WINDOWS, st.integers(0, 4)) for period in periods))
)
COSTS = st.builds(
    ProbeCost,
    st.sampled_from(KINDS),
    post=st.sampled_from([0, 0.5, 4]),
    read=st.sampled_from([0, 0.1]),
    start=st.sampled_from([0, 3]),
)


def plain(cost: ProbeCost) -> JointCost:
    """The same cost, as a function that says nothing about itself."""
    return lambda members: 0.0 + cost(members)


def schedules(members: Sequence[SubGroup]) -> Iterator[tuple[int, ...]]:
    """Every way to give each sub-group its own period, or that of a shorter one which keeps its own."""
    order = sorted(range(len(members)), key=lambda i: members[i].period)

    def go(leaders: dict[int, int]) -> Iterator[dict[int, int]]:
        if len(leaders) == len(order):
            yield leaders
            return
        i = order[len(leaders)]
        for leader in [*(one for one in leaders if leaders[one] == one), i]:
            yield from go({**leaders, i: leader})

    for found in go({}):
        yield tuple(found[i] for i in range(len(members)))


def played(members: Sequence[SubGroup], leaders: Sequence[int], cost: JointCost) -> float:
    """The cost per update, by going through a whole common multiple of the periods."""
    periods = [members[leader].period for leader in leaders]
    whole = lcm(*periods)
    total = 0.0
    for update in range(1, whole + 1):
        due = [one for one, period in zip(members, periods, strict=True) if update % period == 0]
        total += cost(due) if due else 0.0
    return total / whole


@given(MEMBERS, COSTS)
def test_the_cost_of_any_schedule(members: tuple[SubGroup, ...], cost: ProbeCost) -> None:
    for leaders in schedules(members):
        wanted = pytest.approx(played(members, leaders, cost))
        assert rate(members, leaders, cost, horizon=30_000) == wanted
        assert rate(members, leaders, plain(cost), horizon=30_000) == wanted


@given(MEMBERS, COSTS)
def test_the_best_of_all_schedules(members: tuple[SubGroup, ...], cost: ProbeCost) -> None:
    best = min(played(members, leaders, cost) for leaders in schedules(members))
    found = choose(members, cost, horizon=30_000)
    assert found.optimal
    assert found.rate == pytest.approx(best)
    assert found.rate == pytest.approx(played(members, found.leaders, cost))
    assert found.periods == tuple(members[leader].period for leader in found.leaders)
    assert all(period <= one.period for period, one in zip(found.periods, members, strict=True))
    called = choose(members, plain(cost), horizon=30_000)
    assert called.rate == pytest.approx(best)


def test_each_cost_is_asked_in_its_own_way() -> None:
    members = [SubGroup(2, (3, 5)), SubGroup(3, (4,))]
    assert isinstance(pricing(members, ProbeCost(), 100), Nested)
    assert isinstance(pricing(members, ProbeCost("running"), 100), Covered)
    assert isinstance(pricing(members, lambda some: float(len(some)), 100), Called)


def test_where_it_costs_nothing_queries_run_more_often() -> None:
    # The longest window has the shortest period: its scan answers all others on the way.
    found = choose([SubGroup(7, (10,)), SubGroup(2, (40,)), SubGroup(5, (20,))], ProbeCost())
    assert found.periods == (2, 2, 2)


def test_dear_post_processing_keeps_the_periods() -> None:
    members = [SubGroup(2, (10,), 100.0), SubGroup(3, (15,), 100.0), SubGroup(5, (30,), 100.0)]
    assert choose(members, ProbeCost()).periods == (2, 3, 5)


def test_no_sub_groups() -> None:
    assert choose([], ProbeCost()).periods == ()


def test_a_leader_must_lead() -> None:
    members = [SubGroup(2, (10,)), SubGroup(3, (15,)), SubGroup(5, (30,))]
    with pytest.raises(ValueError, match="cannot take the period"):
        rate(members, (1, 1, 2), ProbeCost())
    with pytest.raises(ValueError, match="cannot take the period"):
        rate(members, (0, 0, 1), ProbeCost())


def test_long_cycles_are_cut_and_said_to_be() -> None:
    members = [SubGroup(period, (period,)) for period in (97, 89, 83, 79)]
    assert not choose(members, ProbeCost(post=1), horizon=50).optimal
    exact, cut = (rate(members, (0, 1, 2, 3), ProbeCost(), horizon) for horizon in (1_000_000, 360))
    assert cut == pytest.approx(exact, rel=0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_hundreds_of_periods(kind: Kind) -> None:
    rng = random.Random(kind)
    members = [
        SubGroup(period, tuple(sorted(rng.sample(range(20, 400), 3)))) for period in rng.sample(range(1, 500), 200)
    ]
    cost = ProbeCost(kind, post=2.0)
    began = process_time()
    found = choose(members, cost)
    assert process_time() - began < 10  # about half a second on an idle machine
    assert found.rate <= rate(members, range(len(members)), cost) + 1e-9
    assert found.rate == pytest.approx(rate(members, found.leaders, cost))


@pytest.mark.parametrize("width", [1, 2, 3])
def test_narrow_searches_find_some_schedule(width: int) -> None:
    rng = random.Random(width)
    for _ in range(30):
        members = [
            SubGroup(period, tuple(sorted(rng.sample(range(20, 60), 2)))) for period in rng.sample(range(1, 40), 9)
        ]
        cost = ProbeCost(rng.choice(KINDS), post=rng.choice([0, 1]), read=rng.choice([0, 0.1]))
        found = choose(members, cost, width=width)
        assert found.rate <= rate(members, range(len(members)), cost) + 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_the_choice_does_not_depend_on_the_unit_of_time(kind: Kind) -> None:
    rng = random.Random(3)
    members = [SubGroup(period, tuple(sorted(rng.sample(range(5, 60), 2)))) for period in (2, 3, 5, 8, 9, 12)]
    cost = ProbeCost(kind, combine=1e-6, post=3e-6, start=1e-5)
    found = choose(members, cost)
    ticks = choose([SubGroup(one.period * 1_000_000, one.windows) for one in members], cost)
    assert ticks.leaders == found.leaders
    assert ticks.periods == tuple(1_000_000 * one for one in found.periods)
    assert ticks.rate == pytest.approx(found.rate / 1_000_000)
