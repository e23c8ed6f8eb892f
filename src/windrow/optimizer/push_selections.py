"""Predicate push-down: σ goes as far down as its columns are known (thesis 3.5.3).

    σ(ρ(π(R)))  → ρ(π(σ(R)))          σ(L ∪ R)      → σ(L) ∪ σ(R), and the same for EXCEPT and INTERSECT
    σ(L ⋈ R)    → σ(L) ⋈ σ(R)         σ(γ(R))       → γ(σ(R)), for predicates on the keys
    σ(L ⋉ R)    → σ(L) ⋉ R            σ(L ⟕ R)      → σ(L) ⟕ R, for predicates on L

Conditions of ON that are about one side only become selections of that side. Weakest non-monotonic operators first:
whatever stands above gets fewer rows, and no update pattern changes. Always better, so no cost is compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from windrow.language.aggregates import is_aggregate
from windrow.optimizer.walking import (
    SETS,
    aliases,
    all_of,
    is_plain,
    output_values,
    selected,
    substituted,
    tables,
    with_inputs,
)
from windrow.plan import nodes
from windrow.plan.build import conjuncts

Predicates = Sequence[exp.Expr]


def push_selections(plan: nodes.Node) -> nodes.Node:
    """The plan with every predicate as low as it can be."""
    return _pushed(plan, [])


def _pushed(node: nodes.Node, predicates: Predicates) -> nodes.Node:
    """The rows of the node that satisfy these predicates."""
    match node:
        case nodes.Selection():
            own = conjuncts(node.predicate)
            fixed = [one for one in own if not is_plain(one)]
            moving = [one for one in own if is_plain(one)]
            return selected(_pushed(node.input, [*moving, *predicates]), fixed)
        case nodes.Join(kind="INNER") | nodes.RelationJoin():
            return _into_join(node, predicates)
        case nodes.Join():
            return _into_outer_join(node, predicates)
        case nodes.SemiJoin() | nodes.Negation() if node.kind not in SETS:
            down, stay = _split(predicates, aliases(node.left))
            inputs = [_pushed(node.left, down), _pushed(node.right, [])]
            return selected(with_inputs(node, inputs), stay)
        case nodes.Named():
            inside = _into_query(node.input, node.alias.lower(), predicates) if predicates else None
            if inside is not None:
                return replace(node, input=inside)
        case nodes.GroupBy(keys=keys):
            down, stay = _split_by_keys(predicates, keys)
            return selected(with_inputs(node, [_pushed(node.input, down)]), stay)
    return selected(with_inputs(node, [_pushed(edge, []) for edge in node.inputs]), predicates)


def _into_join(node: nodes.Join | nodes.RelationJoin, predicates: Predicates) -> nodes.Node:
    left, rest = _split([*conjuncts(node.predicate), *predicates], aliases(node.left))
    right: Predicates = []
    # A non-retroactive relation is read as of each tuple's arrival, by the join itself.
    if not isinstance(node, nodes.RelationJoin) or node.retroactive:
        right, rest = _split(rest, aliases(node.right))
    known = aliases(node) | {""}
    here = [one for one in rest if tables(one) <= known]
    inputs = [_pushed(node.left, left), _pushed(node.right, right)]
    predicate = all_of(here) if here != conjuncts(node.predicate) else node.predicate
    made = with_inputs(node, inputs)
    if predicate != node.predicate:
        assert isinstance(made, (nodes.Join, nodes.RelationJoin))
        made = replace(made, predicate=predicate)
    return selected(made, [one for one in rest if one not in here])


def _into_outer_join(node: nodes.Join, predicates: Predicates) -> nodes.Node:
    """Rows of the side that is kept may be filtered before; of the other side, what can match at all."""
    sides: list[Predicates] = [[], []]
    on: Predicates = conjuncts(node.predicate)
    stay = predicates
    if node.kind == "LEFT":
        sides[0], stay = _split(predicates, aliases(node.left))
        sides[1], on = _split(on, aliases(node.right))
    elif node.kind == "RIGHT":
        sides[1], stay = _split(predicates, aliases(node.right))
        sides[0], on = _split(on, aliases(node.left))
    made = with_inputs(node, [_pushed(edge, down) for edge, down in zip(node.inputs, sides, strict=True)])
    if on != conjuncts(node.predicate) and on:  # a join by nothing at all would be another one
        assert isinstance(made, nodes.Join)
        made = replace(made, predicate=all_of(on))
    return selected(made, stay)


def _into_query(node: nodes.Node, alias: str, predicates: Predicates) -> nodes.Node | None:
    """The rows of a subquery that satisfy predicates on its output columns; None if they must stay above."""
    match node:
        case nodes.Projection():
            values = output_values(node)
            if values is None or not all(is_plain(one) for one in predicates):
                return None
            inner = [substituted(one, alias, values) for one in predicates]
            return with_inputs(node, [_pushed(node.input, inner)])
        case nodes.Distinct():
            inside = _into_query(node.input, alias, predicates)
            return None if inside is None else with_inputs(node, [inside])
        case nodes.Union() | nodes.SemiJoin() | nodes.Negation():
            names = _output_names(node)
            if names is None or (not isinstance(node, nodes.Union) and node.kind not in SETS):
                return None
            sides = [_into_side(edge, alias, names, predicates) for edge in node.inputs]
            return None if None in sides else with_inputs(node, [side for side in sides if side is not None])
    return None


def _into_side(node: nodes.Node, alias: str, names: list[str], predicates: Predicates) -> nodes.Node | None:
    """One query of a set operation: its columns are meant by their places."""
    own = _output_names(node)
    if own is None or len(own) != len(names):
        return None
    renamed = [_renamed(one, alias, dict(zip(names, own, strict=True))) for one in predicates]
    return _into_query(node, alias, renamed)


def _renamed(predicate: exp.Expr, alias: str, names: dict[str, str]) -> exp.Expr:
    result = predicate.copy()
    for column in result.find_all(exp.Column):
        if column.table.lower() == alias:
            column.set("this", exp.to_identifier(names[column.name.lower()], quoted=True))
    return result


def _output_names(node: nodes.Node) -> list[str] | None:
    match node:
        case nodes.Projection():
            values = output_values(node)
            return None if values is None else list(values)
        case nodes.Distinct():
            return _output_names(node.input)
        case nodes.Union() | nodes.SemiJoin() | nodes.Negation():
            return _output_names(node.left)
    return None


def _split(predicates: Predicates, known: frozenset[str]) -> tuple[list[exp.Expr], list[exp.Expr]]:
    """Those that are about the columns of these FROM items only, and the others."""
    down = [one for one in predicates if is_plain(one) and tables(one) and tables(one) <= known]
    return down, [one for one in predicates if one not in down]


def _split_by_keys(predicates: Predicates, keys: Sequence[exp.Expr]) -> tuple[list[exp.Expr], list[exp.Expr]]:
    plain = {key for key in keys if isinstance(key, exp.Column)}
    down = []
    for one in predicates:
        columns = list(one.find_all(exp.Column))
        if columns and is_plain(one) and all(column in plain for column in columns) and not _aggregates(one):
            down.append(one)
    return down, [one for one in predicates if one not in down]


def _aggregates(predicate: exp.Expr) -> bool:
    return any(is_aggregate(node) for node in predicate.walk())
