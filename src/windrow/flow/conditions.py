"""Conditions over the columns of edges: what they name and compare, and small ones that operators need."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from windrow.flow.graph import Edge
from windrow.flow.names import qualified
from windrow.language import types
from windrow.language.scope import OUTER

STAMP = "__ts"
"""A hidden column: when the tuple arrived. Joins with non-retroactive relations and INTERNAL windows look at it."""


def stamps(edge: Edge) -> list[str]:
    """The columns of an edge that say when its tuples arrived."""
    return [name for name in edge.schema.names if name.endswith(f".{STAMP}")]


def type_of(node: exp.Expr) -> exp.DataType:
    """The type that the binder gave a node."""
    return node.type if isinstance(node.type, exp.DataType) else types.NULL


def names_in(expression: exp.Expr) -> set[str]:
    """The columns that an expression names, as edges call them."""
    return {qualified(column.table, column.name) for column in expression.find_all(exp.Column)}


def within(expression: exp.Expr, edge: Edge) -> bool:
    """Whether an edge has all columns of an expression."""
    return names_in(expression) <= set(edge.schema.names)


def is_correlated(part: exp.Expr) -> bool:
    """Whether a condition of a subquery names columns of the outer query."""
    return any(column.meta.get(OUTER) for column in part.find_all(exp.Column))


def column_named(name: str, arrow: pa.DataType) -> exp.Expr:
    """A reference to the column of a FROM item, from how edges call it."""
    table, _, column = name.partition(".")
    node = exp.column(exp.to_identifier(column, quoted=True), table=exp.to_identifier(table, quoted=True))
    node.type = types.from_arrow(arrow)
    return node


def as_type(node: exp.Expr, wanted: exp.DataType) -> exp.Expr:
    """The node, cast if need be."""
    if type_of(node) == wanted:
        return node
    cast = exp.Cast(this=node, to=wanted)
    cast.type = wanted
    return cast


def equal(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """left = right."""
    node = exp.EQ(this=left.copy(), expression=right.copy())
    node.type = types.BOOLEAN
    return node


def is_true(condition: exp.Expr) -> exp.Expr:
    """condition = TRUE: an equality, so that a condition of one side alone can be a key."""
    true = exp.true()
    true.type = types.BOOLEAN
    return equal(condition, true)


def is_null(node: exp.Expr) -> exp.Expr:
    """node IS NULL."""
    null = exp.Null()
    null.type = types.NULL
    test = exp.Is(this=node.copy(), expression=null)
    test.type = types.BOOLEAN
    return test


def qualified_using(predicate: exp.Expr, edges: Sequence[Edge]) -> exp.Expr:
    """USING (c): the plain c is that of the first FROM item that has it; both sides get their types."""
    result = predicate.copy()
    for column in result.find_all(exp.Column):
        if not column.table:
            ending = f".{column.name.lower()}"
            home = next(name for edge in edges for name in edge.schema.names if name.endswith(ending))
            column.set("table", exp.to_identifier(home[: -len(ending)], quoted=True))
        if column.type is None or not isinstance(column.type, exp.DataType):
            name = qualified(column.table, column.name)
            known = [edge.schema.field(name).type for edge in edges if name in edge.schema.names]
            column.type = types.from_arrow(known[0]) if known else types.NULL
    return result
