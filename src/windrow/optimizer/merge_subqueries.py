"""Subqueries in FROM that only select and project become part of the query around them.

    ρ z(π x.a AS c(R)) ⋈ W,  z.c = w.b   →   R ⋈ W,  x.a = w.b

Their joins are then ordered with the others, and what is strict in them can be pulled up (thesis 3.5.3). Nothing is
computed twice: names and select lists cost no state. Always done, where the names allow it.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from windrow.optimizer.restrictions import reads_non_retroactive
from windrow.optimizer.walking import (
    aliases,
    every_node,
    output_values,
    own_aliases,
    substituted,
    with_inputs,
    with_parts,
)
from windrow.plan import nodes


def merge_subqueries(plan: nodes.Node) -> nodes.Node:
    """The plan without the subqueries that can be written into the query around them."""
    if reads_non_retroactive(plan):
        return plan
    while True:
        counts = Counter(own_aliases(plan))
        found = next((node for node in every_node(plan) if _mergeable(node, plan, counts)), None)
        if not isinstance(found, nodes.Named):
            return plan
        plan = _merged(plan, found)


def _mergeable(node: nodes.Node, plan: nodes.Node, counts: Counter[str]) -> bool:
    if not isinstance(node, nodes.Named) or not isinstance(node.input, nodes.Projection):
        return False
    inner = node.input.input
    if not aliases(inner) or output_values(node.input) is None or not _inside_join(node, plan):
        return False
    # A name that also stands elsewhere would mean something else after the merge.
    return counts[node.alias.lower()] == 1 and all(counts[name] == 1 for name in own_aliases(inner))


def _inside_join(node: nodes.Named, plan: nodes.Node) -> bool:
    """Whether it is an input of inner joins, perhaps with σ, ⋉ and − between, in a query with a select list of its own.

    An outer join pads its columns with NULLs, which the expressions behind them might not be.
    """
    path = _path(plan, node)
    joined = False
    for below, above in pairwise(path):
        match above:
            case nodes.Join(kind="INNER") | nodes.RelationJoin(retroactive=True):
                joined = True
            case nodes.Selection():
                pass
            case nodes.SemiJoin() | nodes.Negation() if above.left is below:
                pass
            case nodes.Projection() | nodes.GroupBy():
                return joined
            case _:
                return False
    return False


def _path(plan: nodes.Node, node: nodes.Node) -> list[nodes.Node]:
    """From the node up to the root."""
    if plan is node:
        return [plan]
    for edge in plan.inputs:
        below = _path(edge, node)
        if below:
            return [*below, plan]
    return []


def _merged(plan: nodes.Node, gone: nodes.Named) -> nodes.Node:
    projection = gone.input
    assert isinstance(projection, nodes.Projection)
    values = output_values(projection)
    assert values is not None
    alias, inner = gone.alias.lower(), projection.input

    def change(node: nodes.Node) -> nodes.Node:
        if node is gone:
            return inner
        made = with_inputs(node, [change(edge) for edge in node.inputs])
        return with_parts(made, lambda part: substituted(part, alias, values))

    return change(plan)
