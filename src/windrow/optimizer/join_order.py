"""In which order windows are joined: the augmented heuristic of thesis 5.3.2, and the exhaustive search beside it.

First the order by selectivity: the two windows whose join is smallest, then again and again the window that keeps the
result smallest. Then fast streams are moved up, to every place: a fast stream that stands low makes many rows pass
through many windows. The cheapest order wins. Cost: O(n^f) orders for f fast streams, n! for the exhaustive search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations, product
from math import exp, log

from windrow.optimizer.join_cost import Evaluation, JoinInput, Method, bound, matches, order_cost, result_size

FAST = 2.0
"""A stream is fast when its rate is this many times the geometric mean of all."""
MOST_FAST = 3
"""So many of the fastest streams are moved: n³ orders are looked at, at most."""
EXHAUSTIVE = 6
"""Up to so many windows all n! orders can be looked at."""

Order = tuple[int, ...]


@dataclass(frozen=True)
class Choice:
    """An order, what it costs per unit time, and the others that were looked at, cheapest first."""

    order: Order
    cost: float
    alternatives: tuple[tuple[Order, float], ...] = ()


def by_selectivity(
    inputs: Sequence[JoinInput], method: Method = Method.NESTED_LOOPS, evaluation: Evaluation = Evaluation.EAGER
) -> Order:
    """The initial heuristic: the smallest intermediate results first."""
    if len(inputs) < 2:
        return tuple(range(len(inputs)))
    # Ties are broken by the position, so that the same figures always give the same order.
    first = min(combinations(range(len(inputs)), 2), key=lambda pair: (result_size(inputs, pair), pair))
    order = list(first)
    while len(order) < len(inputs):
        known = dict[str, float]()
        for number in order:
            known = bound(inputs[number], known)
        rest = [number for number in range(len(inputs)) if number not in order]
        order.append(min(rest, key=lambda number: (matches(inputs[number], known), number)))
    both: list[Order] = [tuple(order), (order[1], order[0], *order[2:])]
    return min(both, key=lambda one: order_cost(inputs, one, method, evaluation))


def fast_streams(inputs: Sequence[JoinInput]) -> list[int]:
    """The inputs that are much faster than the others, the fastest first."""
    rates = [max(one.rate, 1e-9) for one in inputs]
    usual = exp(sum(map(log, rates)) / len(rates)) if rates else 0.0
    fast = [number for number, rate in enumerate(rates) if rate >= FAST * usual]
    return sorted(fast, key=lambda number: -rates[number])[:MOST_FAST]


def candidates(inputs: Sequence[JoinInput], initial: Order) -> list[Order]:
    """The initial order, and all in which fast streams stand higher."""
    found = {initial: None}
    fast = fast_streams(inputs)
    for places in product(range(len(initial)), repeat=len(fast)):
        order = list(initial)
        for number, place in zip(fast, places, strict=True):
            if place < order.index(number):
                order.remove(number)
                order.insert(place, number)
        found[tuple(order)] = None
    return list(found)


def choose_order(
    inputs: Sequence[JoinInput],
    method: Method = Method.NESTED_LOOPS,
    evaluation: Evaluation = Evaluation.EAGER,
    every: float = 0.0,
) -> Choice:
    """The augmented heuristic: the cheapest of the orders with fast streams moved up.

    >>> streams = [JoinInput.of(10, 100, 40), JoinInput.of(1, 100, 100)]
    >>> streams += [JoinInput.of(1, 100, 8), JoinInput.of(1, 100, 5)]
    >>> by_selectivity(streams)  # thesis Table 5.5
    (1, 2, 3, 0)
    >>> choose_order(streams).order, choose_order(streams).cost
    ((1, 0, 2, 3), 16200.0)
    """
    orders = candidates(inputs, by_selectivity(inputs, method, evaluation))
    return _cheapest(orders, lambda order: order_cost(inputs, order, method, evaluation, every))


def best_order(
    inputs: Sequence[JoinInput],
    method: Method = Method.NESTED_LOOPS,
    evaluation: Evaluation = Evaluation.EAGER,
    every: float = 0.0,
) -> Choice:
    """The cheapest of all n! orders, for at most EXHAUSTIVE windows."""
    if len(inputs) > EXHAUSTIVE:
        raise ValueError(f"expected at most {EXHAUSTIVE} windows to try every order, found {len(inputs)}")
    return _cheapest(every_order(len(inputs)), lambda order: order_cost(inputs, order, method, evaluation, every))


def every_order(count: int) -> Iterator[Order]:
    """All n! orders."""
    return permutations(range(count))


def probing_orders(order: Sequence[int]) -> list[list[int]]:
    """For each input, in which order its new rows meet the others (thesis Table 5.2)."""
    return [[other for other in order if other != number] for number in range(len(order))]


def _cheapest(orders: Sequence[Order] | Iterator[Order], cost: Callable[[Order], float]) -> Choice:
    priced = sorted(((order, cost(order)) for order in orders), key=lambda pair: (pair[1], pair[0]))
    return Choice(*priced[0], tuple(priced[1:]))
