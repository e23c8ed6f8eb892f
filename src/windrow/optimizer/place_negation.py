"""Update-pattern simplification: where negations and semi-joins stand among joins (thesis 3.5.3, Figure 3.5).

    pull up    (L − R) ⋈ W   ↔   (L ⋈ W) − R    push down,   if R is tied to columns of L only
               (L − R) ⋉ S   ↔   (L ⋉ S) − R

Pulled up, everything below the negation is free of negative tuples: joins hold rows in queues, δ* can be used. Pushed
down, the join gets fewer rows, but has to process negative tuples. Neither is always better, so that every plan that
one such move gives is looked at (`cheapest.py`, by `plan_cost.py`).
A negation is pulled up through a join with a relation, never pushed down (`restrictions.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from windrow.optimizer.cheapest import cheapest
from windrow.optimizer.restrictions import takes_strict
from windrow.optimizer.walking import SETS, aliases, free, tables, with_inputs
from windrow.plan import nodes

GAIN = 0.95
"""A plan must cost at most this share of the other to be taken: estimates are rough."""
MOST_MOVES = 16
Test = nodes.Negation | nodes.SemiJoin
Joining = nodes.Join | nodes.RelationJoin


def place_negation(plan: nodes.Node) -> nodes.Node:
    """The plan with every negation and semi-join where it is estimated to cost least."""
    return cheapest(plan, moves, gain=GAIN, most=MOST_MOVES)


def moves(node: nodes.Node) -> Iterator[nodes.Node]:
    """The plans with a negation or semi-join at this node one step higher or lower."""
    if _joins(node):
        assert isinstance(node, (nodes.Join, nodes.RelationJoin))
        for side, test in (("left", node.left), ("right", node.right)):
            if _tests(test):
                assert isinstance(test, (nodes.Negation, nodes.SemiJoin))
                inputs = [test.left, node.right] if side == "left" else [node.left, test.left]
                yield replace(test, left=with_inputs(node, inputs))
    if _tests(node):
        assert isinstance(node, (nodes.Negation, nodes.SemiJoin))
        below = node.left
        if _tests(below):
            assert isinstance(below, (nodes.Negation, nodes.SemiJoin))
            if isinstance(below, nodes.Negation) != isinstance(node, nodes.Negation):
                yield replace(below, left=replace(node, left=below.left))
        elif _joins(below):
            assert isinstance(below, (nodes.Join, nodes.RelationJoin))
            yield from _lower(node, below)


def _lower(test: Test, join: Joining) -> Iterator[nodes.Node]:
    if isinstance(test, nodes.Negation) and not takes_strict(join):
        return
    needed = free(test.right) | (tables(test.predicate) if test.predicate is not None else frozenset())
    if needed <= aliases(join.left):
        yield replace(join, left=replace(test, left=join.left))
    if isinstance(join, nodes.Join) and needed <= aliases(join.right):
        yield replace(join, right=replace(test, left=join.right))


def _tests(node: nodes.Node) -> bool:
    return isinstance(node, (nodes.Negation, nodes.SemiJoin)) and node.kind not in SETS


def _joins(node: nodes.Node) -> bool:
    if isinstance(node, nodes.Join):
        return node.kind == "INNER"
    return isinstance(node, nodes.RelationJoin) and node.retroactive
