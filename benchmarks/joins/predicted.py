"""What the cost model of the optimizer says about a join order (thesis 5.3), if this build has one."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from benchmarks.joins.synthetic import Order, Stream


def predicted(streams: Sequence[Stream], order: Order) -> float | None:
    """Tuples looked at per unit of time by nested loops, eagerly."""
    try:
        model = import_module("windrow.optimizer.join_cost")
    except ModuleNotFoundError:
        return None
    inputs = [model.JoinInput.of(one.rate, one.length, one.values) for one in streams]
    return float(model.order_cost(inputs, list(order)))
