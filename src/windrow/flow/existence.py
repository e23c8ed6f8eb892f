"""EXISTS, IN and their negations. With δ for DISTINCT, k for the columns by which a subquery R is correlated with L:

EXISTS, IN      L ⋈ δ(π_k R)
NOT EXISTS      L ⋈ (π_k L EXCEPT π_k R)
other conditions between L and R than equalities: R becomes δ(π_k L) ⋈ R, correlated by equalities again
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from windrow.expressions import Program
from windrow.flow.conditions import column_named, equal, is_correlated, is_null, is_true, names_in, within
from windrow.flow.graph import Edge
from windrow.flow.joining import comparable, join
from windrow.flow.names import qualified, resolve
from windrow.flow.steps import Steps
from windrow.operators.counted import Rule
from windrow.operators.not_null import NotNull
from windrow.plan import nodes
from windrow.plan.build import conjuncts


def existence(steps: Steps, edge: Callable[[nodes.Node], Edge], node: nodes.SemiJoin | nodes.Negation) -> Edge:
    """[NOT] EXISTS and [NOT] IN; `edge` compiles what is below."""
    left = edge(node.left)
    right, correlated, value = _subquery(steps, edge, node.right)
    negated = isinstance(node, nodes.Negation)
    tested = node.predicate
    if tested is None:
        return matching(steps, left, right, correlated, negated=negated)
    assert value is not None
    equals = [*correlated, equal(tested, value)]
    if not negated:
        return matching(steps, left, right, equals, negated=False)
    # x NOT IN R: no row of R equals x, none is NULL, and if x is NULL there is none at all.
    unequal = matching(steps, left, right, equals, negated=True)
    nulls = steps.selected(right, is_null(value))
    known = matching(steps, unequal, nulls, correlated, negated=True)
    return matching(steps, known, right, [*correlated, is_true(is_null(tested))], negated=True)


def _subquery(
    steps: Steps, edge: Callable[[nodes.Node], Edge], node: nodes.Node
) -> tuple[Edge, list[exp.Expr], exp.Expr | None]:
    """The rows of a subquery, the conditions that tie it to the outer query, and its single value."""
    if not isinstance(node, nodes.Projection) or isinstance(node.input, nodes.GroupBy):
        found = edge(node)
        inner = qualified("", f"value{found.node}")
        found = steps.columns(found, found.schema.names[:1], [inner])
        return found, [], column_named(inner, found.schema.field(inner).type)
    below, parts = node.input, []
    if isinstance(below, nodes.Selection):
        parts = conjuncts(below.predicate)
        below = below.input
    found = edge(below)
    for part in parts:
        if not is_correlated(part):
            found = steps.selected(found, part)
    value = node.expressions[0]
    correlated = [part for part in parts if is_correlated(part)]
    return found, correlated, value.this if isinstance(value, exp.Alias) else value


def matching(steps: Steps, left: Edge, right: Edge, conditions: Sequence[exp.Expr], *, negated: bool) -> Edge:
    """The rows of `left` for which `right` has, or has not, a row that satisfies the conditions."""
    found = [_sides(steps, left, right, one) for one in conditions]
    pairs = [pair for pair in found if pair is not None]
    if len(pairs) < len(found):
        return _matching_by_columns(steps, left, right, conditions, negated=negated)
    if not pairs:
        true = steps.compiler.constant(pa.scalar(True))
        pairs = [(true, true)]
    kinds = [mine.type for mine, _ in pairs]
    programs = [steps.compiler.column(one.name, one.type) for one in left.schema]
    made = [mine for mine in dict.fromkeys(mine for mine, _ in pairs) if mine not in programs]
    keyed = left
    if made:
        keys = [f"__key{place}" for place in range(len(made))]
        every = [*left.schema.types, *(mine.type for mine in made)]
        keyed = steps.projected(left, [*programs, *made], [*left.schema.names, *keys], every)
    named = dict(zip([*programs, *made], keyed.schema.names, strict=True))
    names = [named[mine] for mine, _ in pairs]
    theirs = [f"__match{place}" for place in range(len(pairs))]
    matches = steps.projected(right, [other for _, other in pairs], theirs, kinds)
    matches = steps.graph.add(NotNull(matches.schema), [matches], matches.pattern, matches.lifetime)
    return _kept(steps, left, keyed, names, matches, negated=negated)


def _kept(steps: Steps, left: Edge, keyed: Edge, names: Sequence[str], matches: Edge, *, negated: bool) -> Edge:
    """The rows whose columns `names` are, or are not, among the matches."""
    theirs = matches.schema.names
    if negated:
        wanted = steps.columns(keyed, names, theirs)
        matches = steps.counted([wanted, matches], Rule.EXCEPT)
    else:
        matches = steps.distinct(matches)
    outputs = [(0, name) for name in left.schema.names]
    pairs = list(zip(names, theirs, strict=True))
    edge = join(steps, [keyed, matches], (), pairs, outputs=outputs, null_safe=True)
    return replace(edge, computed=left.computed)


def _matching_by_columns(
    steps: Steps, left: Edge, right: Edge, conditions: Sequence[exp.Expr], *, negated: bool
) -> Edge:
    """Conditions that are no equalities: which values of the outer columns have a match?"""
    used = {name for one in conditions for name in names_in(one)} & set(left.schema.names)
    names = [name for name in left.schema.names if name in used] or left.schema.names[:1]
    values = steps.distinct(steps.columns(left, names))
    found = join(steps, [values, right], conditions, outputs=[(0, name) for name in names])
    theirs = [f"__match{place}" for place in range(len(names))]
    return _kept(steps, left, left, names, steps.columns(found, names, theirs), negated=negated)


def _sides(steps: Steps, left: Edge, right: Edge, condition: exp.Expr) -> tuple[Program, Program] | None:
    """outer = inner, each side over its own columns; True = condition of the outer columns."""
    if not isinstance(condition, exp.EQ):
        return None
    ours, theirs = condition.this, condition.expression
    for mine, other in ((ours, theirs), (theirs, ours)):
        if within(mine, left) and within(other, right) and (names_in(mine) or names_in(other)):
            first = resolve(mine, left.schema.names, left.computed)
            return comparable(steps, first, resolve(other, right.schema.names, right.computed))
    return None
