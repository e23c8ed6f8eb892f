"""What rules need to know of a plan: who names which columns, and plans with other inputs or expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from sqlglot import exp

from windrow.language import types
from windrow.language.aggregates import AggregateCall, aggregate_call
from windrow.language.scope import OUTER
from windrow.plan import nodes
from windrow.plan.build import conjuncts

SETS = ("EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL")
"""The kinds of negations and semi-joins that compare whole rows of two queries."""


def with_inputs(node: nodes.Node, inputs: Sequence[nodes.Node]) -> nodes.Node:
    """The node over other inputs; the same object if nothing changes."""
    if all(new is old for new, old in zip(inputs, node.inputs, strict=True)):
        return node
    match node:
        case nodes.Unary():
            return replace(node, input=inputs[0])
        case nodes.Binary():
            return replace(node, left=inputs[0], right=inputs[1])
    return node


def bottom_up(node: nodes.Node, change: Callable[[nodes.Node], nodes.Node]) -> nodes.Node:
    """The plan with every node changed, inputs first."""
    return change(with_inputs(node, [bottom_up(edge, change) for edge in node.inputs]))


def variants(node: nodes.Node, moves: Callable[[nodes.Node], Iterable[nodes.Node]]) -> list[nodes.Node]:
    """All plans in which `moves` has changed one node."""
    found = list(moves(node))
    for place, edge in enumerate(node.inputs):
        before, after = node.inputs[:place], node.inputs[place + 1 :]
        found += [with_inputs(node, [*before, other, *after]) for other in variants(edge, moves)]
    return found


def every_node(node: nodes.Node) -> list[nodes.Node]:
    """The node and everything below it, parents first, windowed subqueries included."""
    return [node, *(below for edge in node.inputs for below in every_node(edge))]


def aliases(node: nodes.Node) -> frozenset[str]:
    """The FROM items whose columns the rows of this node carry; none behind a select list."""
    match node:
        case nodes.StreamWindow(source=source) | nodes.RelationScan(source=source):
            return frozenset([source.alias.lower()])
        case nodes.SubqueryWindow(source=source):
            return frozenset([source.alias.lower()])
        case nodes.Named(alias=alias):
            return frozenset([alias.lower()])
        case nodes.Selection() | nodes.Distinct():
            return aliases(node.input)
        case nodes.Join() | nodes.RelationJoin():
            return aliases(node.left) | aliases(node.right)
        case nodes.SemiJoin() | nodes.Negation() if node.kind not in SETS:
            return aliases(node.left)
    return frozenset()


def own_aliases(node: nodes.Node) -> list[str]:
    """Every FROM item that is declared anywhere in the plan, as often as it is."""
    return [one for below in every_node(node) for one in _declared(below)]


def _declared(node: nodes.Node) -> frozenset[str]:
    leaves = (nodes.StreamWindow, nodes.RelationScan, nodes.SubqueryWindow, nodes.Named)
    return aliases(node) if isinstance(node, leaves) else frozenset()


def tables(expression: exp.Expr) -> frozenset[str]:
    """The FROM items whose columns an expression reads; "" stands for a column without one."""
    return frozenset(column.table.lower() for column in expression.find_all(exp.Column))


def free(node: nodes.Node) -> frozenset[str]:
    """The FROM items of outer queries that a subquery reads."""
    read = frozenset(name for below in every_node(node) for part in parts(below) for name in tables(part))
    return read - frozenset(own_aliases(node)) - {""}


def parts(node: nodes.Node) -> list[exp.Expr]:
    """The expressions of this very node."""
    found: list[exp.Expr] = []
    for one in fields(node):
        value = getattr(node, one.name)
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, AggregateCall):
                found.append(item.node)
            elif isinstance(item, exp.Expr):
                found.append(item)
    return found


def with_parts(node: nodes.Node, change: Callable[[exp.Expr], exp.Expr]) -> nodes.Node:
    """The node with every expression changed; the columns of a select list keep their names."""
    changed: dict[str, Any] = {}
    for one in fields(node):
        value = getattr(node, one.name)
        if isinstance(value, exp.Expr):
            changed[one.name] = change(value)
        elif isinstance(value, tuple) and value and isinstance(value[0], (exp.Expr, AggregateCall)):
            items: list[exp.Expr | AggregateCall] = []
            for item in value:
                if isinstance(item, AggregateCall):
                    items.append(aggregate_call(change(item.node)))
                elif isinstance(node, nodes.Projection):
                    items.append(_named_like(change(item), item))
                else:
                    items.append(change(item))
            changed[one.name] = tuple(items)
    same = all(getattr(node, name) == value for name, value in changed.items())
    return node if same else replace(node, **changed)


def _named_like(new: exp.Expr, old: exp.Expr) -> exp.Expr:
    if isinstance(new, exp.Alias) or new == old:
        return new
    named = exp.Alias(this=new, alias=exp.to_identifier(old.alias_or_name))
    named.type = new.type
    return named


def substituted(expression: exp.Expr, alias: str, values: Mapping[str, exp.Expr]) -> exp.Expr:
    """The expression with the columns of a FROM item replaced by what they stand for."""

    def one(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column) or node.table.lower() != alias:
            return node
        value = values[node.name.lower()].copy()
        if node.meta.get(OUTER):
            for column in value.find_all(exp.Column):
                column.meta[OUTER] = True
        wanted = node.type
        if isinstance(wanted, exp.DataType) and value.type != wanted:
            value = exp.Cast(this=value, to=wanted.copy())
            value.type = wanted
        elif not isinstance(value, (exp.Column, exp.Literal, exp.Cast, exp.Func)):
            kind = value.type
            value = exp.Paren(this=value)
            value.type = kind
        return value

    return expression.copy().transform(one, copy=False)


def output_values(node: nodes.Projection) -> dict[str, exp.Expr] | None:
    """What each output column of a select list stands for, by lower-case name; None if two have one name."""
    names = [part.alias_or_name.lower() for part in node.expressions]
    values = [part.this if isinstance(part, exp.Alias) else part for part in node.expressions]
    if len(set(names)) < len(names) or not all(names):
        return None
    return dict(zip(names, values, strict=True))


def all_of(predicates: Sequence[exp.Expr]) -> exp.Expr | None:
    """The conjunction; None of nothing."""
    if not predicates:
        return None
    whole = exp.and_(*predicates, copy=True)
    for node in whole.find_all(exp.And, exp.Paren):
        node.type = node.type or types.BOOLEAN
    return whole


def selected(node: nodes.Node, predicates: Sequence[exp.Expr]) -> nodes.Node:
    """σ of all predicates, in one node with a σ that is there already."""
    if not predicates:
        return node
    if isinstance(node, nodes.Selection):
        predicates = [*conjuncts(node.predicate), *predicates]
        node = node.input
    whole = all_of(list(dict.fromkeys(predicates)))
    assert whole is not None
    return nodes.Selection(node, whole)


def is_outer(predicate: exp.Expr) -> bool:
    """Whether a predicate ties a subquery to an outer query: it must stay where the subquery ends."""
    return any(column.meta.get(OUTER) for column in predicate.find_all(exp.Column))


def is_plain(predicate: exp.Expr) -> bool:
    """Whether a predicate is about one row only."""
    return predicate.find(exp.Query) is None and not is_outer(predicate)
