"""Which sub-groups take a shorter period, so that they are executed with others: the hybrid schedule (thesis 8.4.4).

A schedule puts the sub-groups into blocks; the members of a block are always executed together, with the shortest of
their periods. Blocks that are due at the same update are executed together too, so what a block costs depends on all
others, through the common multiples of their periods. There are as many schedules as ways to partition the sub-groups
(Bell numbers: 5 for three of them, 10⁵ for ten), so this is dynamic programming over sub-groups in the order of their
periods: each joins a block there is, or opens one. Two beginnings that have come to blocks with the same periods and
needs have the same future, and only the cheaper one goes on. A beginning that costs more than the best schedule known
is dropped.

If that still leaves more than `width` beginnings, the cheapest go on, and the result need not be optimal (`optimal`
says so), but it never costs more than the conservative or the aggressive schedule. The default width tries everything
up to seven different periods at least, and keeps hundreds of them at about a second (see docs/scheduling.md). Cost:
O(g · width · blocks) questions to `coincidence`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from math import gcd

from windrow.scheduling.coincidence import Block, Pricing, pricing
from windrow.scheduling.cost import JointCost
from windrow.scheduling.task import SubGroup

HORIZON = 5040
"""Executions of a sub-group that are looked at: the common multiple of 1..10."""
MANY = 24
"""From so many sub-groups on, fewer are."""
SHORT_HORIZON = 360
QUESTIONS = 20_000
"""About how many questions may be asked, when everything is tried."""
_CLOSE = 1e-12


@dataclass(frozen=True)
class Choice:
    """A schedule: the period of each sub-group, in the order in which they were given."""

    periods: tuple[int, ...]
    rate: float
    """Cost per update."""
    optimal: bool
    """Whether no schedule is cheaper, for certain."""
    leaders: tuple[int, ...]
    """By sub-group: the one whose period it takes, which may be itself; equal ones are one block."""


def rate(members: Sequence[SubGroup], leaders: Sequence[int], cost: JointCost, horizon: int | None = None) -> float:
    """The cost per update when sub-group i is executed with the period of leaders[i].

    >>> from windrow.scheduling.cost import ProbeCost
    >>> three = [SubGroup(2, (10,)), SubGroup(3, (15,)), SubGroup(5, (30,))]
    >>> [round(rate(three, plan, ProbeCost()), 2) for plan in ([0, 0, 2], [0, 0, 0], [0, 1, 1], [0, 1, 0])]
    [11.4, 14.5, 12.67, 16.83]
    """
    prices = pricing(members, cost, horizon or _horizon(members))
    blocks: dict[int, Block] = {}
    total = 0.0
    for i in _by_period(members):
        leader = leaders[i]
        if leaders[leader] != leader or members[leader].period > members[i].period:
            raise ValueError(f"sub-group {i} cannot take the period of {leader}, which must be shorter and its own")
        total += prices.added(i, members[leader].period, list(blocks.values()))
        period, need = blocks.get(leader, (members[i].period, prices.need(i)))
        blocks[leader] = (period, prices.both(need, prices.need(i)))
    return total


def choose(
    members: Sequence[SubGroup], cost: JointCost, width: int | None = None, horizon: int | None = None
) -> Choice:
    """The cheapest schedule of the sub-groups of one group.

    >>> from windrow.scheduling.cost import ProbeCost
    >>> choose([SubGroup(2, (5, 6, 10)), SubGroup(3, (12, 15)), SubGroup(5, (20, 30))], ProbeCost())
    Choice(periods=(2, 2, 5), rate=11.4, optimal=True, leaders=(0, 0, 2))
    """
    if not members:
        return Choice((), 0.0, True, ())
    unit = gcd(*(one.period for one in members))
    if unit > 1:  # costs per tick would drown in the rounding of costs per update
        fewer = choose([replace(one, period=one.period // unit) for one in members], cost, width, horizon)
        return replace(fewer, periods=tuple(unit * one for one in fewer.periods), rate=fewer.rate / unit)
    prices = pricing(members, cost, horizon or _horizon(members))
    order = _by_period(members)
    known = [_all(members, order, prices, apart=True), _all(members, order, prices, apart=False)]
    quick, _ = _search(members, order, prices, 1, float("inf"))
    best = min([*known, quick] if quick else known, key=_cheap)
    found, complete = _search(members, order, prices, width or max(2, QUESTIONS // len(members) ** 2), best.rate)
    best = found or best
    leaders = [0] * len(members)
    for block in best.blocks():
        for i in block:
            leaders[i] = block[0]
    periods = tuple(members[leader].period for leader in leaders)
    return Choice(periods, round(best.rate, 12), complete and not prices.cut, tuple(leaders))


@dataclass(frozen=True)
class _Beginning:
    """A schedule of the first sub-groups; `place` is the block that the last of them went to."""

    rate: float
    state: tuple[Block, ...]
    member: int
    place: int
    before: _Beginning | None

    def blocks(self) -> list[list[int]]:
        """The members of each block, its leader first."""
        steps: list[_Beginning] = []
        one: _Beginning | None = self
        while one is not None and one.member >= 0:
            steps.append(one)
            one = one.before
        found: list[list[int]] = []
        for step in reversed(steps):
            if step.place == len(found):
                found.append([])
            found[step.place].append(step.member)
        return found


def _all(members: Sequence[SubGroup], order: Sequence[int], prices: Pricing, apart: bool) -> _Beginning:
    """The conservative schedule, or the aggressive one: the choice is at least as good."""
    one = _Beginning(0.0, (), -1, -1, None)
    for i in order:
        need = prices.need(i)
        if apart or not one.state:
            place, block, kept = len(one.state), (members[i].period, need), one.state
        else:
            place, block, kept = 0, (one.state[0][0], prices.both(one.state[0][1], need)), ()
        total = one.rate + prices.added(i, block[0], one.state)
        one = _Beginning(total, (*kept, block), i, place, one)
    return one


def _search(
    members: Sequence[SubGroup], order: Sequence[int], prices: Pricing, width: int, known: float
) -> tuple[_Beginning | None, bool]:
    """The best schedule that never leaves the `width` cheapest beginnings, and whether none was left out.

    None when all of these came to cost more than `known`.
    """
    remaining = [0.0]
    for i in reversed(order):
        remaining.append(remaining[-1] + prices.least(i) / members[i].period)
    remaining.reverse()
    layer = [_Beginning(0.0, (), -1, -1, None)]
    complete = True
    for depth, i in enumerate(order):
        limit = known * (1 + _CLOSE) + _CLOSE - remaining[depth + 1]
        following: dict[tuple[Block, ...], _Beginning] = {}
        cheapest: list[float] = []  # a heap of the negated costs of the `width` best
        for one in layer:
            blocks = (*one.state, (members[i].period, prices.need(i)))
            # Long periods first: they cost least, and what they leave behind need not be asked for.
            for place in range(len(blocks) - 1, -1, -1):
                block = blocks[place]
                least = one.rate + prices.least(i) / block[0]
                if least > limit:
                    continue
                if len(cheapest) == width and least > -cheapest[0]:
                    complete &= depth == len(order) - 1
                    continue
                total = one.rate + prices.added(i, block[0], one.state)
                if total > limit:
                    continue
                joined = (block[0], prices.both(block[1], prices.need(i)))
                state = (*one.state[:place], joined, *one.state[place + 1 :])
                if state in following and total >= following[state].rate - _CLOSE:
                    continue
                if state not in following:
                    heappush(cheapest, -total)
                    if len(cheapest) > width:
                        heappop(cheapest)
                following[state] = _Beginning(total, state, i, place, one)
        complete &= len(following) <= width or depth == len(order) - 1
        layer = sorted(following.values(), key=_cheap)[:width]
    return layer[0] if layer else None, complete


def _cheap(one: _Beginning) -> tuple[float, int]:
    """The order of preference: where the cost is the same, few blocks, whose answers come more often."""
    return round(one.rate, 9), len(one.state)


def _by_period(members: Sequence[SubGroup]) -> list[int]:
    return sorted(range(len(members)), key=lambda i: members[i].period)


def _horizon(members: Sequence[SubGroup]) -> int:
    return HORIZON if len(members) < MANY else SHORT_HORIZON
