"""When a running join looks for a better order: what its inputs were like of late, and what orders would cost.

A look samples the keys of at most SAMPLE rows per input. It comes when twice as many rows came as are held, so looks
and the rebuilding of indexes after a change cost O(1) per row, and a stream that changes is noticed after two windows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.expressions import Context
from windrow.operators.join_plan import Keys, Order
from windrow.optimizer.join_cost import JoinInput, Method, origin_cost
from windrow.optimizer.join_order import Choice, choose_order, probing_orders
from windrow.state.buffer import Buffer
from windrow.state.rows import Delta, Epoch

LOOK = 4096
"""Rows below which a join is not worth a look."""
SAMPLE = 1 << 14
GAIN = 1.25
"""An order must be estimated to be this many times cheaper to be taken."""
UNKNOWN = 1000.0
"""Rows of an input nobody has seen yet."""


class Watch:
    """Counts what comes, estimates, and remembers the last estimate for EXPLAIN."""

    def __init__(self, names: Sequence[str], keys: Keys) -> None:
        self._names = tuple(names)
        self._keys = keys
        self._came = np.zeros(len(names))
        self._since: int | None = None
        self._inputs: list[JoinInput] | None = None
        self.choice: Choice | None = None
        """The order estimated to be the cheapest at the last look, and the others."""

    def first(self) -> list[list[int]]:
        """The orders to begin with: along the equalities, as all inputs might be alike."""
        distinct = [{str(key): UNKNOWN / 10 for key in own} for own in self._keys.of]
        inputs = [JoinInput(1.0, UNKNOWN, own) for own in distinct]
        return probing_orders(choose_order(inputs, Method.INDEX).order)

    def see(self, inputs: Sequence[Delta], epoch: Epoch) -> None:
        """An epoch has passed."""
        for number, delta in enumerate(inputs):
            self._came[number] += len(delta)
            if self._since is None and len(delta.came):
                self._since = int(delta.came.ts.min()) - 1

    def due(self, buffers: Sequence[Buffer]) -> bool:
        """Whether it is time to look; two inputs have only one order."""
        if len(self._names) < 3 or self._since is None:
            return False
        return float(self._came.sum()) >= 2 * sum(len(one) for one in buffers) + LOOK

    def look(self, buffers: Sequence[Buffer], orders: Sequence[Order], epoch: Epoch) -> list[list[int]] | None:
        """Better orders than these, if there are any."""
        assert self._since is not None
        elapsed = max(1, epoch.upto - self._since)
        self._inputs = []
        for number, buffer in enumerate(buffers):
            rate = max(float(self._came[number]) / elapsed, 1e-9)
            self._inputs.append(JoinInput(rate, len(buffer) / rate, self._distinct(number, buffer)))
        self._came[:] = 0
        self._since = epoch.upto
        self.choice = choose_order(self._inputs, Method.INDEX)
        if self.choice.cost * GAIN >= self.cost(orders):
            return None
        return probing_orders(self.choice.order)

    def cost(self, orders: Sequence[Order]) -> float:
        """What these orders cost per unit time, as of the last look."""
        inputs = self._inputs
        assert inputs is not None
        return sum(origin_cost(inputs, number, order, Method.INDEX) for number, order in enumerate(orders))

    def _distinct(self, number: int, buffer: Buffer) -> dict[str, float]:
        """The estimated number of different values of each key."""
        slots = buffer.scan()
        step = max(1, len(slots) // SAMPLE)
        sample = slots[::step][:SAMPLE]
        found = {}
        context: Context | None = None
        for key in self._keys.of[number]:
            if not len(sample):
                found[str(key)] = 1.0
                continue
            program = self._keys.program(number, key)
            context = context or Context.of(buffer.batch(sample))
            found[str(key)] = distinct_of(_count(context.value(program)), len(sample), len(slots))
        return found

    def describe(self, orders: Sequence[Order]) -> str:
        """For EXPLAIN: the order, its cost, and the alternatives."""
        if len(self._names) < 3:
            return ""
        told = self._told(orders)
        if self.choice is None:
            return f"order {told}, until rates are known"
        own = self.cost(orders)
        written = tuple(range(len(self._names)))
        others = dict([(self.choice.order, self.choice.cost), *self.choice.alternatives])
        others.setdefault(written, self.cost(probing_orders(written)))
        current = [list(one) for one in orders]
        rest = [(order, cost) for order, cost in others.items() if probing_orders(order) != current]
        shown = "; ".join(f"{self._named(order)}: {_amount(cost)}" for order, cost in rest[:3])
        against = f" (others: {shown})" if shown else ""
        return f"order {told}, estimated cost {_amount(own)} per unit time{against}"

    def _told(self, orders: Sequence[Order]) -> str:
        first = orders[0]
        for place in range(len(orders)):  # where input 0 stands in a global order
            order = [*first[:place], 0, *first[place:]]
            if probing_orders(order) == [list(one) for one in orders]:
                return self._named(order)
        return " | ".join(f"{self._names[n]} → {self._named(order)}" for n, order in enumerate(orders))

    def _named(self, order: Order) -> str:
        return ", ".join(self._names[number] for number in order)


def distinct_of(different: int, sampled: int, rows: int) -> float:
    """How many different values `rows` rows have, if a sample of them has `different`, all equally frequent."""
    if sampled >= rows or different < sampled // 4:
        return float(different)
    low, high = float(different), float(rows)
    for _ in range(40):
        middle = (low + high) / 2
        if middle * -np.expm1(-sampled / middle) < different:
            low = middle
        else:
            high = middle
    return low


def _count(values: pa.Array) -> int:
    try:
        return int(pc.count_distinct(values, mode="all").as_py())
    except pa.ArrowNotImplementedError:
        return len(values)


def _amount(cost: float) -> str:
    return f"{cost:,.0f}" if cost >= 10 else f"{cost:.2g}"
