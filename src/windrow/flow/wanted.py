"""Which tuples of its streams a plan can use: the selections that stand directly above its windows.

A tuple that fails the selection above every window over its stream changes nothing, so it need not come at all. ROWS
windows count all tuples: they want them all.
"""

from __future__ import annotations

from sqlglot import exp

from windrow.language import types
from windrow.language.bound import Source
from windrow.language.scope import OUTER
from windrow.plan import nodes
from windrow.plan.build import conjuncts
from windrow.windows.spec import RowsWindow


def wanted_tuples(node: nodes.Node) -> list[tuple[Source, exp.Expr | None]]:
    """For each window over a stream a predicate, over the plain columns of the stream; None: it wants all tuples.

    A tuple for which the predicate is false is not wanted. Conditions that need more than the stream are left out.
    """
    parts: list[exp.Expr] = []
    while isinstance(node, nodes.Selection):
        parts += conjuncts(node.predicate)
        node = node.input
    match node:
        case nodes.StreamWindow(source):
            own = [_plain(part) for part in parts if _is_own(part, source)]
            counted = isinstance(source.window, RowsWindow)
            return [(source, None if counted or not own else _all(own))]
        case nodes.SubqueryWindow():
            return []  # the subquery is a flow of its own
    return [found for below in node.inputs for found in wanted_tuples(below)]


def _is_own(part: exp.Expr, source: Source) -> bool:
    """Whether a condition is about the columns of this source alone."""
    if part.find(exp.Query) is not None:
        return False
    columns = list(part.find_all(exp.Column))
    alias = source.alias.lower()
    return bool(columns) and all(one.table.lower() == alias and not one.meta.get(OUTER) for one in columns)


def _all(parts: list[exp.Expr]) -> exp.Expr:
    whole = parts[0]
    for part in parts[1:]:
        whole = exp.And(this=whole, expression=part)
        whole.type = types.BOOLEAN
    return whole


def _plain(part: exp.Expr) -> exp.Expr:
    result = exp.Paren(this=part.copy())
    result.type = types.BOOLEAN
    for column in result.find_all(exp.Column):
        column.set("table", None)
    return result
