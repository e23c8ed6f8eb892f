"""Duplicate-elimination push-down: copies are dropped before they meet other rows (thesis 3.5.3).

    δ(π(L ⋈ R))   →   δ(π(δ(L) ⋈ R)), δ(π(L ⋈ δ(R))) or both

The δ above stays: different rows may be equal after the select list. Below a join, δ* holds at most two rows per
different row where the join would hold all copies, and the join makes fewer of its combinations; but rows leave it in
another order than they came, so the join needs calendar queues. `plan_cost.py` decides, input by input.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from windrow.optimizer.cheapest import cheapest
from windrow.optimizer.walking import SETS, with_inputs
from windrow.plan import nodes
from windrow.plan.patterns import Pattern, pattern

GAIN = 0.8
"""A plan must cost at most this share of the other to be taken."""
MOST_MOVES = 8


def push_distinct(plan: nodes.Node) -> nodes.Node:
    """The plan with δ below joins where that is estimated to be cheaper."""
    return cheapest(plan, moves, gain=GAIN, most=MOST_MOVES)


def moves(node: nodes.Node) -> Iterator[nodes.Node]:
    """The plans with δ also on one input of the joins below this δ."""
    if isinstance(node, nodes.Distinct) and isinstance(node.input, nodes.Projection):
        projection = node.input
        for other in _inputs(projection.input, joined=False):
            yield replace(node, input=replace(projection, input=other))


def _inputs(node: nodes.Node, *, joined: bool) -> Iterator[nodes.Node]:
    """The trees of joins with one more input without duplicates."""
    match node:
        case nodes.Join(kind="INNER") | nodes.RelationJoin(retroactive=True):
            for left in _inputs(node.left, joined=True):
                yield with_inputs(node, [left, node.right])
            for right in _inputs(node.right, joined=True):
                yield with_inputs(node, [node.left, right])
        case nodes.Selection() if not isinstance(node.input, _LEAVES):
            for below in _inputs(node.input, joined=joined):
                yield with_inputs(node, [below])
        case nodes.SemiJoin() | nodes.Negation() if node.kind not in SETS:
            for left in _inputs(node.left, joined=joined):
                yield with_inputs(node, [left, node.right])
        case nodes.StreamWindow() | nodes.Selection() | nodes.Named() if joined:
            # Over negative tuples δ counts every row, and nothing is saved.
            if pattern(node) is not Pattern.STR:
                yield nodes.Distinct(node)


_LEAVES = (nodes.StreamWindow, nodes.SubqueryWindow, nodes.RelationScan, nodes.Named)
