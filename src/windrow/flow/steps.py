"""The steps of which larger parts of a plan are built: selection, projection, union, DISTINCT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from windrow.expressions import Compiler, Program
from windrow.flow.graph import Edge, Graph
from windrow.flow.names import column_of, resolve
from windrow.language import types
from windrow.operators.counted import Counted, Rule
from windrow.operators.distinct import Distinct
from windrow.operators.join import Join
from windrow.operators.listed_distinct import ListedDistinct
from windrow.operators.project import Project
from windrow.operators.select import Select
from windrow.operators.union import Union
from windrow.plan.patterns import Pattern
from windrow.state.choice import Strategy


class Steps:
    """Adds operators to the graph of one query, each over edges that are there."""

    def __init__(self, compiler: Compiler, strategy: Strategy) -> None:
        self.compiler = compiler
        self.strategy: Strategy = strategy
        self.graph = Graph()

    # ---- rows one by one ------------------------------------------------------------------------------------------

    def program(self, expression: exp.Expr, edge: Edge) -> Program:
        """An expression over the columns of an edge."""
        return self.compiler.compile(resolve(expression, edge.schema.names, edge.computed))

    def selected(self, below: Edge, predicate: exp.Expr) -> Edge:
        """The rows that satisfy a predicate."""
        select = Select(self.program(predicate, below), below.schema)
        edge = self.graph.add(select, [below], below.pattern, below.lifetime)
        return replace(edge, computed=below.computed)

    def projected(
        self, below: Edge, programs: Sequence[Program], names: Sequence[str], kinds: Sequence[pa.DataType]
    ) -> Edge:
        """Computed columns."""
        schema = pa.schema([pa.field(name, kind) for name, kind in zip(names, kinds, strict=True)])
        return self.graph.add(Project(programs, schema), [below], below.pattern, below.lifetime)

    def shown(
        self, below: Edge, programs: Sequence[Program], names: Sequence[str], kinds: Sequence[pa.DataType]
    ) -> Edge:
        """A projection of an edge that nobody else reads: a join reads only the columns that are wanted of it."""
        join = self.graph.operators[below.node]
        plain = [
            program.column for program, kind in zip(programs, kinds, strict=True)
            if program.column is not None and program.type == kind
        ]  # fmt: skip
        if not isinstance(join, Join) or len(plain) < len(programs):
            return self.projected(below, programs, names, kinds)
        join.show(plain, names)
        return replace(below, schema=join.schema, computed={})

    def columns(self, below: Edge, chosen: Sequence[str], names: Sequence[str] | None = None) -> Edge:
        """Some columns, perhaps under other names."""
        kinds = [below.schema.field(name).type for name in chosen]
        programs = [self.compiler.column(name, kind) for name, kind in zip(chosen, kinds, strict=True)]
        return self.projected(below, programs, names or chosen, kinds)

    def padded(self, edge: Edge, whole: Sequence[str], missing: pa.Schema) -> Edge:
        """The columns of an outer join, NULL where there is no match."""
        programs, kinds = [], []
        for name in whole:
            known = name in edge.schema.names
            kind = (edge.schema if known else missing).field(name).type
            programs.append(
                self.compiler.column(name, kind) if known else self.compiler.constant(pa.scalar(None, kind))
            )
            kinds.append(kind)
        return self.projected(edge, programs, whole, kinds)

    # ---- sets -----------------------------------------------------------------------------------------------------

    def union(self, sides: Sequence[Edge]) -> Edge:
        """UNION ALL; first in, first out if all sides are, and their rows live equally long."""
        sides = self.alike(sides)
        worst = max(side.pattern for side in sides)
        lifetimes = {side.lifetime for side in sides}
        fifo = worst is Pattern.WKS and len(lifetimes) == 1
        if worst is Pattern.WKS and not fifo:
            worst = Pattern.WK
        union = Union(sides[0].schema, merge=fifo)
        return self.graph.add(union, sides, worst, lifetimes.pop() if fifo else None)

    def alike(self, sides: Sequence[Edge]) -> list[Edge]:
        """All with the types that they have in common, and the names of the first."""
        names = sides[0].schema.names
        kinds = [
            types.to_arrow(types.common_types(types.from_arrow(one.type) for one in fields))
            for fields in zip(*(side.schema for side in sides), strict=True)
        ]
        schema = pa.schema([pa.field(name, kind) for name, kind in zip(names, kinds, strict=True)])
        return [side if side.schema.equals(schema) else self._typed(side, names, kinds) for side in sides]

    def _typed(self, side: Edge, names: Sequence[str], kinds: Sequence[pa.DataType]) -> Edge:
        programs = [
            self._cast(self.compiler.column(one.name, one.type), kind)
            for one, kind in zip(side.schema, kinds, strict=True)
        ]
        return self.projected(side, programs, names, kinds)

    def _cast(self, program: Program, kind: pa.DataType) -> Program:
        if program.type == kind:
            return program
        node = column_of(program.column or "value", program.type)
        cast = exp.cast(node, types.from_arrow(kind))
        cast.type = types.from_arrow(kind)
        return self.compiler.compile(cast)

    def distinct(self, below: Edge) -> Edge:
        """δ*, or counts where rows may be cut."""
        if below.strict:
            return self.graph.add(Counted(below.schema, Rule.DISTINCT), [below], Pattern.STR)
        if below.pattern is Pattern.MON:
            return self.graph.add(Distinct(below.schema), [below], Pattern.MON)
        kind = ListedDistinct if self.strategy == "direct" else Distinct
        return self.graph.add(kind(below.schema), [below], Pattern.WK)

    def counted(self, sides: Sequence[Edge], rule: Rule) -> Edge:
        """EXCEPT, INTERSECT and their ALL forms: counts of the copies on both sides."""
        return self.graph.add(Counted(sides[0].schema, rule), sides, Pattern.STR)
