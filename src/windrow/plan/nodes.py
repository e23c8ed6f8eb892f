"""Logical plan nodes: typed, frozen, and silent; `patterns.py` and `explain.py` compute on them."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from windrow.language.aggregates import AggregateCall
from windrow.language.bound import Source
from windrow.language.catalog import Column
from windrow.windows.spec import Window


@dataclass(frozen=True)
class Node:
    """A relation that changes over time; `inputs` are the edges below it."""

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The plans that this node reads, left to right."""
        return ()


@dataclass(frozen=True)
class Unary(Node):
    """A node over one input."""

    input: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True)
class Binary(Node):
    """A node over two inputs."""

    left: Node
    right: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)


@dataclass(frozen=True)
class StreamWindow(Node):
    """A leaf: the contents of a window over a stream."""

    source: Source


@dataclass(frozen=True)
class RelationScan(Node):
    """A leaf: a relation, retroactive or not."""

    source: Source


@dataclass(frozen=True)
class SubqueryWindow(Unary):
    """The contents of a window over the output stream of a subquery."""

    source: Source


@dataclass(frozen=True)
class Selection(Unary):
    """σ: the rows that satisfy a predicate (WHERE, HAVING)."""

    predicate: exp.Expr


@dataclass(frozen=True)
class Projection(Unary):
    """π: the select list, duplicates preserved."""

    expressions: tuple[exp.Expr, ...]
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Named(Unary):
    """A subquery in FROM: its columns belong to an alias."""

    alias: str


@dataclass(frozen=True)
class Union(Binary):
    """Merge-union, duplicates preserved (UNION ALL)."""


@dataclass(frozen=True)
class Distinct(Unary):
    """δ: duplicate elimination."""


@dataclass(frozen=True)
class Join(Binary):
    """⋈ of two windows; kind is INNER, LEFT, RIGHT or FULL."""

    predicate: exp.Expr | None = None
    kind: str = "INNER"


@dataclass(frozen=True)
class RelationJoin(Binary):
    """⋈R, or ⋈NRR when the relation on the right is not retroactive."""

    predicate: exp.Expr | None = None
    retroactive: bool = True


@dataclass(frozen=True)
class SemiJoin(Binary):
    """EXISTS, IN, and INTERSECT [ALL]: the left rows that have a match on the right; kind says which."""

    predicate: exp.Expr | None = None
    kind: str = "EXISTS"


@dataclass(frozen=True)
class Negation(Binary):
    """−: EXCEPT [ALL], NOT EXISTS, NOT IN: the left rows without a match on the right; kind says which."""

    predicate: exp.Expr | None = None
    kind: str = "NOT EXISTS"


@dataclass(frozen=True)
class GroupBy(Unary):
    """γ: one row per group, replaced whenever its aggregates change."""

    keys: tuple[exp.Expr, ...]
    aggregates: tuple[AggregateCall, ...]


@dataclass(frozen=True)
class TopRows(Unary):
    """ORDER BY and LIMIT."""

    order: tuple[exp.Expr, ...]
    limit: int | None = None
    offset: int = 0


@dataclass(frozen=True)
class Output(Unary):
    """The root: how the changing answer becomes a stream; operator is None for the default of the query's kind."""

    operator: str | None
    slide: int | None
    rows_slide: int | None
    window: Window | None
    timestamps: bool
