"""What joins with relations forbid (thesis 3.5.3).

⋈NRR meets the rows that a relation has when a tuple arrives (Definition 3.1). Whatever decides when the rows of its
input begin must stay where the query has it: a negation or a duplicate elimination that is moved across it would let
rows begin at other instants and meet other rows of the relation. ⋈R gets no strict input that it need not have: a
negation is pulled up through it and never pushed down.
"""

from __future__ import annotations

from windrow.optimizer.walking import every_node
from windrow.plan import nodes


def reads_non_retroactive(plan: nodes.Node) -> bool:
    """Whether a non-retroactive relation is joined anywhere: only selections are moved then."""
    scans = [node.source.relation for node in every_node(plan) if isinstance(node, nodes.RelationScan)]
    return any(relation is not None and relation.non_retroactive for relation in scans)


def takes_strict(join: nodes.Join | nodes.RelationJoin) -> bool:
    """Whether a negation may be pushed below this join: not below one with a relation."""
    return isinstance(join, nodes.Join)
