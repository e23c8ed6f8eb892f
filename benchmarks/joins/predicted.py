"""What the cost model of the optimizer says about a join order (thesis 5.3)."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.joins.synthetic import Order, Stream
from windrow.optimizer.join_cost import JoinInput, order_cost


def predicted(streams: Sequence[Stream], order: Order) -> float:
    """Tuples looked at per unit of time by nested loops, eagerly."""
    return order_cost([JoinInput.of(one.rate, one.length, one.values) for one in streams], list(order))
