"""Columns by name: an edge calls the column c of the FROM item a `a.c`, and computed columns by their text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from sqlglot import exp

from windrow.errors import UnsupportedError
from windrow.language import types
from windrow.language.positions import position


def qualified(alias: str, name: str) -> str:
    """How edges call a column of a FROM item."""
    return f"{alias}.{name}".lower()


def resolve(expression: exp.Expr, names: Sequence[str], computed: Mapping[str, str]) -> exp.Expr:
    """The expression over the columns of an edge."""
    known = {name: name for name in names}

    def replaced(node: exp.Expr) -> exp.Expr:
        name = computed.get(node.sql("cql")) if computed else None
        if name is None and isinstance(node, exp.Column):
            name = known.get(qualified(node.table, node.name))
            if name is None:
                raise unsupported(node, f"{node.sql('cql')} of an outer query cannot be used here")
        if name is not None:
            column = exp.column(exp.to_identifier(name, quoted=True))
            column.type = node.type
            column.meta.update(node.meta)
            return column
        if isinstance(node, (exp.Query, exp.Exists)) or (isinstance(node, exp.In) and node.args.get("query")):
            raise unsupported(node, _misplaced(node))
        for key, value in list(node.args.items()):
            if isinstance(value, exp.Expr):
                node.set(key, replaced(value))
            elif isinstance(value, list):
                node.set(key, [replaced(one) if isinstance(one, exp.Expr) else one for one in value])
        return node

    return replaced(expression.copy())


def _misplaced(subquery: exp.Expr) -> str:
    """Where a subquery can stand, and how to write what was meant."""
    allowed = "a subquery can stand in FROM, or in WHERE as [NOT] EXISTS or [NOT] IN"
    either = subquery.find_ancestor(exp.Or) is not None
    if not either and subquery.find_ancestor(exp.And) is None:
        return f"{allowed}; not here"
    where = "under OR" if either else "under the NOT of an AND, which is an OR"
    return (
        f"{allowed}, beside other conditions with AND; not {where}. Write one SELECT for each side of the OR and put "
        "them together with UNION, or with UNION ALL if no row satisfies both"
    )


def column_of(name: str, arrow: pa.DataType) -> exp.Expr:
    """A reference to a column of an edge."""
    column = exp.column(exp.to_identifier(name, quoted=True))
    column.type = types.from_arrow(arrow)
    return column


def unsupported(node: exp.Expr, message: str) -> UnsupportedError:
    """An UnsupportedError at the node's place."""
    line, column = position(node)
    return UnsupportedError(message, line=line, column=column)
