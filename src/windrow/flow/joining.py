"""Inner joins: conditions become equalities of two inputs, which indexes serve, or residuals, which filter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from sqlglot import exp

from windrow.expressions import Program
from windrow.flow.conditions import as_type, names_in, type_of
from windrow.flow.graph import Edge
from windrow.flow.names import resolve
from windrow.flow.steps import Steps
from windrow.language import types
from windrow.operators.join import Equality, Join, Residual
from windrow.plan import nodes
from windrow.plan.build import conjuncts
from windrow.plan.patterns import Pattern
from windrow.state.buffer import Buffer
from windrow.state.choice import make_buffer


@dataclass
class Inner:
    """The inner joins of one FROM: what they join, on which conditions; non-retroactive relations come `late`."""

    parts: list[nodes.Node] = field(default_factory=list)
    predicates: list[exp.Expr] = field(default_factory=list)
    late: list[nodes.RelationScan] = field(default_factory=list)

    def add(self, node: nodes.Node) -> None:
        """A node and the inner joins below it."""
        match node:
            case nodes.Join(kind="INNER") | nodes.RelationJoin():
                self.add(node.left)
                self.add(node.right)
                self.predicates += conjuncts(node.predicate)
            case nodes.RelationScan() if is_non_retroactive(node):
                self.late.append(node)
            case nodes.Selection(input=nodes.RelationScan() as scan) if is_non_retroactive(scan):
                self.late.append(scan)
                self.predicates += conjuncts(node.predicate)
            case _:
                self.parts.append(node)


def is_non_retroactive(scan: nodes.RelationScan) -> bool:
    """Whether updates of the relation touch only tuples that arrive later."""
    return scan.source.relation is not None and scan.source.relation.non_retroactive


def join(
    steps: Steps,
    edges: Sequence[Edge],
    predicates: Sequence[exp.Expr],
    pairs: Sequence[tuple[str, str]] = (),
    *,
    outputs: Sequence[tuple[int, str]] | None = None,
    null_safe: bool = False,
) -> Edge:
    """The multi-way join of these edges; `pairs` are columns of the first two that must be equal."""
    equalities = [_pair(steps, edges, *pair) for pair in pairs]
    residuals = []
    for predicate in predicates:
        found = equality_of(steps, edges, predicate)
        if found is not None:
            equalities.append(found)
            continue
        names = [name for edge in edges for name in edge.schema.names]
        needed = frozenset(number for number, edge in enumerate(edges) if names_in(predicate) & set(edge.schema.names))
        residuals.append(Residual(needed, steps.compiler.compile(resolve(predicate, names, {}))))
    strict = [edge.strict for edge in edges]
    operator = Join(
        [edge.schema for edge in edges],
        [buffer_of(steps, edge) for edge in edges],
        equalities,
        residuals,
        outputs=outputs,
        null_safe=null_safe,
        strict=strict,
    )
    patterns = {edge.pattern for edge in edges}
    pattern = Pattern.STR if any(strict) else Pattern.MON if patterns == {Pattern.MON} else Pattern.WK
    return steps.graph.add(operator, edges, pattern)


def buffer_of(steps: Steps, edge: Edge) -> Callable[[pa.Schema, int], Buffer]:
    """What keeps the rows of an edge: its pattern decides."""
    return lambda schema, indexes: make_buffer(edge.pattern, steps.strategy, schema, indexes)


def _pair(steps: Steps, edges: Sequence[Edge], left: str, right: str) -> Equality:
    first, second = (
        steps.compiler.column(name, edges[number].schema.field(name).type) for number, name in enumerate((left, right))
    )
    return Equality((0, 1), (first, second), f"{left} = {right}")


def equality_of(steps: Steps, edges: Sequence[Edge], predicate: exp.Expr) -> Equality | None:
    """left = right with each side over one input, another one."""
    if not isinstance(predicate, exp.EQ):
        return None
    sides = (predicate.this, predicate.expression)
    homes = []
    for side in sides:
        names = names_in(side)
        home = [number for number, edge in enumerate(edges) if names and names <= set(edge.schema.names)]
        if len(home) != 1:
            return None
        homes.append(home[0])
    if homes[0] == homes[1]:
        return None
    left, right = comparable(
        steps, *(resolve(side, edges[home].schema.names, {}) for side, home in zip(sides, homes, strict=True))
    )
    return Equality((homes[0], homes[1]), (left, right), predicate.sql("cql"))


def comparable(steps: Steps, left: exp.Expr, right: exp.Expr) -> tuple[Program, Program]:
    """Both sides of an equality in the type in which they are compared."""
    common = types.common_type(type_of(left), type_of(right))
    assert common is not None
    first, second = (steps.compiler.compile(as_type(side, common)) for side in (left, right))
    return first, second
