"""What a sub-group adds to the cost per update of a schedule, given who else is due at the same updates (8.4.4).

A schedule is a set of *blocks*, each a period and what its members need; all blocks are in phase, so two of them meet
at the common multiples of their periods. If a sub-group is executed with period p, only the updates p, 2p, 3p, …
matter: at the k-th of them a block with period q is due when q / gcd(p, q) divides k, and that repeats after the least
common multiple of these numbers. Up to `horizon` of them are looked at. A longer cycle is cut off there: blocks that
meet less than once in `horizon` executions count as never meeting, and others are counted within 1 / horizon. Cost:
O(blocks · horizon) per question, of NumPy; for a cost that is a plain function, horizon calls of it at worst.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import gcd, lcm
from typing import Any, Protocol

import numpy as np

from windrow.scheduling.cost import Covering, JointCost
from windrow.scheduling.task import SubGroup

Need = Any
"""What the members of a block need, in the terms of the pricing; hashable."""
Block = tuple[int, Need]
"""A period, and the need of those that are executed with it."""


class Pricing(Protocol):
    """How a cost function is asked about schedules."""

    def need(self, i: int) -> Need:
        """What sub-group i alone needs."""

    def both(self, one: Need, other: Need) -> Need:
        """What the members of two blocks need together."""

    def added(self, i: int, period: int, blocks: Sequence[Block]) -> float:
        """Cost per update that sub-group i adds to these blocks when it is executed with this period."""

    def least(self, i: int) -> float:
        """What each execution of it costs at least, whatever the others do."""

    cut: bool
    """Whether some cycle was longer than the horizon."""


def pricing(members: Sequence[SubGroup], cost: JointCost, horizon: int) -> Pricing:
    """The quickest way to ask this cost."""
    if not isinstance(cost, Covering):
        return Called(members, cost, horizon)
    parts = cost.parts(members)
    return Nested(members, parts, horizon) if parts.nested else Covered(members, parts, horizon)


@cache
def _due(step: int, length: int) -> Any:
    """Which of 1..length are multiples of step."""
    return np.arange(1, length + 1) % step == 0


class _Cycles:
    """The updates to look at."""

    def __init__(self, members: Sequence[SubGroup], horizon: int) -> None:
        self._members = members
        self._horizon = horizon
        self.cut = False

    def _meetings(self, period: int, blocks: Sequence[Block]) -> tuple[list[Need], Any]:
        """The needs of blocks, and in row j at which of the multiples of `period` block j is due; one cycle of them."""
        steps = [block[0] // gcd(period, block[0]) for block in blocks]
        length = lcm(1, *steps)
        if length > self._horizon:
            self.cut, length = True, self._horizon
        met = [(block[1], _due(step, length)) for block, step in zip(blocks, steps, strict=True) if step <= length]
        return [need for need, _ in met], np.array([due for _, due in met], bool).reshape(len(met), length)


class Nested(_Cycles):
    """A covering whose needs are nested: a need is how many of the parts, in order (basic interval synopses)."""

    def __init__(self, members: Sequence[SubGroup], parts: Any, horizon: int) -> None:
        super().__init__(members, horizon)
        self._own = parts.own
        self._needs = parts.needs.sum(axis=1)
        self._upto = np.concatenate([[0.0], np.cumsum(parts.prices)])

    def need(self, i: int) -> Need:
        """How many parts."""
        return int(self._needs[i])

    def both(self, one: Need, other: Need) -> Need:
        """The greater number."""
        return max(one, other)

    def added(self, i: int, period: int, blocks: Sequence[Block]) -> float:
        """Its own cost, and the parts that nobody else who is due has paid."""
        mine = self._needs[i]
        if any(block[0] == period and block[1] >= mine for block in blocks):
            return float(self._own[i]) / period
        if not blocks:
            return float(self._own[i] + self._upto[mine]) / period
        needs, met = self._meetings(period, blocks)
        paid = (met * np.minimum(needs, mine).astype(np.int32)[:, None]).max(axis=0, initial=0)
        return float(self._own[i] + self._upto[mine] - self._upto[paid].mean()) / period

    def least(self, i: int) -> float:
        """Its own cost."""
        return float(self._own[i])


class Covered(_Cycles):
    """Any covering: a need is the set of parts (running and interval synopses)."""

    def __init__(self, members: Sequence[SubGroup], parts: Any, horizon: int) -> None:
        super().__init__(members, horizon)
        self._parts = parts
        self._needs = [frozenset(np.flatnonzero(row & (parts.prices > 0)).tolist()) for row in parts.needs]

    def need(self, i: int) -> Need:
        """The places of the parts."""
        return self._needs[i]

    def both(self, one: Need, other: Need) -> Need:
        """The union."""
        return one | other

    def added(self, i: int, period: int, blocks: Sequence[Block]) -> float:
        """Its own cost, and the parts that nobody else who is due has paid."""
        total = float(self._parts.own[i])
        for part in self._needs[i]:
            holders = [block for block in blocks if part in block[1]]
            if not any(block[0] == period for block in holders):
                paid = self._meetings(period, holders)[1].any(axis=0).mean() if holders else 0.0
                total += float(self._parts.prices[part] * (1 - paid))
        return total / period

    def least(self, i: int) -> float:
        """Its own cost."""
        return float(self._parts.own[i])


class Called(_Cycles):
    """Any function of the members: a need is the set of them. One call for each different set that meets."""

    def __init__(self, members: Sequence[SubGroup], cost: JointCost, horizon: int) -> None:
        super().__init__(members, horizon)
        self._cost = cost
        self._known: dict[frozenset[int], float] = {}

    def need(self, i: int) -> Need:
        """The member itself."""
        return frozenset([i])

    def both(self, one: Need, other: Need) -> Need:
        """The union."""
        return one | other

    def added(self, i: int, period: int, blocks: Sequence[Block]) -> float:
        """The difference that the member makes to each execution."""
        if not blocks:
            return self._price(frozenset([i])) / period
        needs, met = self._meetings(period, blocks)
        patterns, counts = np.unique(met, axis=1, return_counts=True)
        total = 0.0
        for pattern, count in zip(patterns.T, counts.tolist(), strict=True):
            due = frozenset[int]().union(*(need for need, here in zip(needs, pattern, strict=True) if here))
            total += count * (self._price(due | {i}) - self._price(due))
        return total / int(counts.sum()) / period

    def least(self, i: int) -> float:
        """Nothing is known of the function."""
        return 0.0

    def _price(self, due: frozenset[int]) -> float:
        if due not in self._known:
            self._known[due] = float(self._cost([self._members[i] for i in sorted(due)])) if due else 0.0
        return self._known[due]
