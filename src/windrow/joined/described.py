"""An axis and its queries as the sharing rules speak of them, and what these rules allow (thesis 8.3.2).

With extras, one of the streams is taken as if its tuples came so much later: then both windows have the same length.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd
from typing import cast

from windrow.joined.asker import Asker
from windrow.joined.axis import Axis
from windrow.sharing.rules.computation import CS4, CS5
from windrow.sharing.rules.described import Call, Described, Kept, Kind
from windrow.sharing.rules.rule import ComputationRule
from windrow.sharing.rules.state import SS3


def described(asker: Asker) -> Described:
    """A query over the results."""
    plan, length = asker.shape.plan, asker.shape.length
    streams = [f"{name} + {extra}" for name, extra in zip(asker.shape.key[:2], asker.shape.extra, strict=True)]
    calls = (Call(one.name, one.value_text) for one in plan.aggregations)
    return Described(tuple(streams), (length, length), plan.slide, tuple(calls), keys=frozenset(plan.key_names))


def kept(axis: Axis) -> Kept:
    """Its panes."""
    queries = [described(asker) for asker in axis.askers]
    steps = axis.line.grid.progressions
    s = 0
    for step, phase in steps:
        s = gcd(s, step, phase - steps[0][1])
    longest = max(query.windows[0] for query in queries)
    data = frozenset().union(*(query.data for query in queries))
    return Kept(queries[0].streams, cast(Kind, axis.kind), s, longest // s, data, keys=queries[0].keys)


def shares_state(axis: Axis) -> bool:
    """Whether all its queries may use the same panes (rule SS3)."""
    panes = kept(axis)
    return all(SS3().allows([panes], described(asker)) for asker in axis.askers)


def together(axis: Axis) -> Iterator[tuple[ComputationRule, Sequence[Asker]]]:
    """Which queries are answered together, and by which rule: all of a scan, or those with the same windows."""
    panes = kept(axis)
    by_window: dict[tuple[int, int], list[Asker]] = {}
    for asker in axis.askers:
        by_window.setdefault(asker.window, []).append(asker)
    rules: list[tuple[ComputationRule, list[Asker]]] = [(CS5(), list(axis.askers))]
    rules += [(CS4(), askers) for askers in by_window.values()]
    for rule, askers in rules:
        if len(askers) > 1 and rule.allows([panes], [described(asker) for asker in askers]):
            yield rule, askers
