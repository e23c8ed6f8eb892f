"""Rules that cost decides: of all plans that one move gives the cheapest is taken, again and again, while it pays."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from windrow.optimizer.plan_cost import plan_cost
from windrow.optimizer.restrictions import reads_non_retroactive
from windrow.optimizer.walking import variants
from windrow.plan import nodes


def cheapest(
    plan: nodes.Node, moves: Callable[[nodes.Node], Iterable[nodes.Node]], *, gain: float, most: int
) -> nodes.Node:
    """The plan after at most `most` moves; each must bring the cost to `gain` of what it was: estimates are rough."""
    if reads_non_retroactive(plan):
        return plan
    cost = plan_cost(plan)
    for _ in range(most):
        priced = [(plan_cost(one), place, one) for place, one in enumerate(variants(plan, moves))]
        if not priced or min(priced)[0] > gain * cost:
            return plan
        cost, _, plan = min(priced)
    return plan
