"""From a logical plan to operators: one method per kind of node.

Most of SQL is built from a few operators (steps.py, joining.py, existence.py); an outer join of L and R is

    (L ⋈ R) ∪ (L without a match) × NULLs
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

import pyarrow as pa
from sqlglot import exp

from windrow.errors import UnsupportedError
from windrow.expressions import Compiler
from windrow.flow.conditions import names_in, qualified_using, stamps, type_of
from windrow.flow.existence import existence, matching
from windrow.flow.graph import Edge
from windrow.flow.inputs import Inputs, schema_of
from windrow.flow.joining import Inner, buffer_of, equality_of, join
from windrow.flow.names import qualified, resolve, unsupported
from windrow.flow.staying import Staying
from windrow.flow.steps import Steps
from windrow.language import types
from windrow.language.aggregates import AggregateCall
from windrow.language.bound import Source
from windrow.operators.counted import Rule
from windrow.operators.group_by import GroupBy
from windrow.operators.nrr_join import NrrJoin
from windrow.operators.top_rows import TopRows
from windrow.plan import nodes
from windrow.plan.build import conjuncts
from windrow.plan.patterns import Pattern
from windrow.sharing.member import Term
from windrow.state.choice import Strategy

ORDER = "__order"
OrderBy: TypeAlias = tuple[str, bool, bool]
"""A column, whether it descends, whether NULLs come first."""


class FlowCompiler:
    """Compiles one plan. `slide` rounds lifetimes to due times; `term` makes the aggregate of a call.

    `stamped` says which sources carry the hidden timestamp; `mixed` that only some windows are INTERNAL.
    """

    def __init__(
        self,
        compiler: Compiler,
        term: Callable[[AggregateCall, Callable[[exp.Expr], exp.Expr]], Term],
        *,
        strategy: Strategy = "upa",
        slide: int | None = None,
        needed: Callable[[Source], Iterable[str]],
        stamped: Callable[[Source], bool] = lambda source: False,
        mixed: bool = False,
    ) -> None:
        self._term = term
        self._slide = slide
        self._mixed = mixed
        self._steps = Steps(compiler, strategy)
        self._inputs = Inputs(self._steps, slide, needed, stamped)
        self.graph = self._steps.graph
        self.inputs = self._inputs.windows
        self.relations = self._inputs.relations

    # ---- nodes ----------------------------------------------------------------------------------------------------

    def edge(self, node: nodes.Node) -> Edge:
        """The operators of a node and everything below it."""
        match node:
            case nodes.StreamWindow() | nodes.SubqueryWindow():
                return self._inputs.window(node.source)
            case nodes.RelationScan():
                return self._inputs.relation(node.source)
            case nodes.Selection():
                return self._steps.selected(self.edge(node.input), node.predicate)
            case nodes.Projection():
                return self._projection(node)
            case nodes.Named():
                below = self.edge(node.input)
                programs = [self._steps.compiler.column(one.name, one.type) for one in below.schema]
                names = [qualified(node.alias, name) for name in below.schema.names]
                return self._steps.shown(below, programs, names, below.schema.types)
            case nodes.Union():
                return self._steps.union([self.edge(node.left), self.edge(node.right)])
            case nodes.Distinct():
                return self._steps.distinct(self.edge(node.input))
            case nodes.Join(kind="INNER") | nodes.RelationJoin():
                return self._inner_join(node)
            case nodes.Join():
                return self._outer_join(node)
            case nodes.SemiJoin(kind="INTERSECT" | "INTERSECT ALL") | nodes.Negation(kind="EXCEPT" | "EXCEPT ALL"):
                return self._counted(node)
            case nodes.SemiJoin() | nodes.Negation():
                return existence(self._steps, self.edge, node)
            case nodes.GroupBy():
                return self._grouped(node)
            case nodes.TopRows():
                return self._top_rows(node)
        raise NotImplementedError(type(node).__name__)

    def root(
        self, node: nodes.Node, *, complete: bool, periodic: bool = True
    ) -> tuple[Edge, list[OrderBy], nodes.TopRows | None]:
        """The edge of the answer; ORDER BY and LIMIT of complete answers are left to whoever puts them out.

        But only LIMIT tells whether an answer that is not periodic has changed at all.
        """
        if isinstance(node, nodes.TopRows) and complete:
            edge, terms = self._with_order(node)
            if not periodic and (node.limit is not None or node.offset):
                return self._limited(node, edge, terms), terms, replace(node, limit=None, offset=0)
            return self._staying(edge), terms, node
        if isinstance(node, nodes.TopRows) and node.limit is None and not node.offset:
            return self._staying(self.edge(node.input)), [], None  # changes have no order
        return self._staying(self.edge(node)), [], None

    def _staying(self, edge: Edge) -> Edge:
        """INTERNAL windows take nothing back."""
        if not self._mixed:
            return edge
        reaches = self._inputs.reaches()
        staying = Staying(edge.schema, reaches, self._slide)
        return self.graph.add(staying, [edge], Pattern.WK if reaches else Pattern.MON)

    # ---- projections and sets ---------------------------------------------------------------------------------------

    def _projection(self, node: nodes.Projection, more: Sequence[exp.Expr] = ()) -> Edge:
        """The select list; `more` are hidden columns behind it, to sort by."""
        below = self.edge(node.input)
        values = [part.this if isinstance(part, exp.Alias) else part for part in node.expressions]
        kinds = [types.to_arrow(one.type) for one in node.columns] or [types.to_arrow(type_of(one)) for one in values]
        names = [part.alias_or_name for part in node.expressions]
        kinds += [types.to_arrow(type_of(one)) for one in more]
        names += [f"{ORDER}{place}" for place in range(len(more))]
        programs = [self._steps.program(one, below) for one in (*values, *more)]
        for stamp in stamps(below) if self._mixed else ():
            names.append(stamp)
            kinds.append(pa.int64())
            programs.append(self._steps.compiler.column(stamp, pa.int64()))
        return self._steps.shown(below, programs, names, kinds)

    def _counted(self, node: nodes.SemiJoin | nodes.Negation) -> Edge:
        rule = Rule[node.kind.replace(" ", "_")]
        left = node.left
        if isinstance(node, nodes.SemiJoin) and isinstance(left, nodes.Distinct):
            left = left.input  # the rule counts one copy anyway
        sides = self._steps.alike([self.edge(left), self.edge(node.right)])
        return self._steps.counted(sides, rule)

    # ---- joins ------------------------------------------------------------------------------------------------------

    def _inner_join(self, node: nodes.Node) -> Edge:
        """All inner joins of one FROM are one multi-way join; non-retroactive relations come after it."""
        found = Inner()
        found.add(node)
        late = found.late
        edges = [self.edge(part) for part in found.parts]
        if not edges:
            return self._inputs.relation(late[0].source)
        available = {name for edge in edges for name in edge.schema.names}
        known = [*edges, *(Edge(-1, schema_of(one.source), Pattern.MON) for one in late)]
        predicates = [qualified_using(one, known) for one in found.predicates]
        now = [one for one in predicates if names_in(one) <= available]
        rest = [one for one in predicates if one not in now]
        joined = edges[0] if len(edges) == 1 else join(self._steps, edges, now)
        rest = rest if len(edges) > 1 else predicates
        if late:
            _require_inner(found.parts, late[0].source)
        stamped = [bool(stamps(edge)) for edge in edges]
        again = any(stamped) and not all(stamped)  # an update makes results of tuples that came long ago
        for relation in late:
            joined, rest = self._nrr_join(joined, relation, rest, again=again)
        for predicate in rest:
            joined = self._steps.selected(joined, predicate)
        return joined

    def _nrr_join(
        self, left: Edge, scan: nodes.RelationScan, predicates: list[exp.Expr], *, again: bool
    ) -> tuple[Edge, list[exp.Expr]]:
        """The tuples that arrive meet the rows that the relation has then (thesis, Definition 3.1)."""
        source = scan.source
        schema = schema_of(source)
        relation = Edge(-1, schema, Pattern.MON)
        names = {*left.schema.names, *schema.names}
        here = [one for one in predicates if names_in(one) <= names]
        equalities, residuals = [], []
        for predicate in here:
            found = equality_of(self._steps, [left, relation], predicate)
            if found is not None:
                equalities.append(found)
            else:
                residuals.append(self._steps.compiler.compile(resolve(predicate, sorted(names), {})))
        held = buffer_of(self._steps, left) if left.strict else None
        join = NrrJoin(
            left.schema, schema, equalities, residuals, held,
            arrived=stamps(left), waits=self._inputs.waits(again=again),
            waiting=lambda: self._inputs.waiting(again=again),
        )  # fmt: skip
        self.relations.append((source, join))
        edge = self.graph.add(join, [left], left.pattern, left.lifetime)
        return edge, [one for one in predicates if one not in here]

    def _outer_join(self, node: nodes.Join) -> Edge:
        left, right = self.edge(node.left), self.edge(node.right)
        predicates = [qualified_using(one, [left, right]) for one in conjuncts(node.predicate)]
        whole = [*left.schema.names, *right.schema.names]
        parts = [self._steps.columns(join(self._steps, [left, right], predicates), whole)]
        if node.kind in ("LEFT", "FULL"):
            parts.append(self._without_match(left, right, predicates, whole))
        if node.kind in ("RIGHT", "FULL"):
            parts.append(self._without_match(right, left, predicates, whole))
        return self._steps.union(parts)

    def _without_match(self, left: Edge, right: Edge, predicates: Sequence[exp.Expr], whole: Sequence[str]) -> Edge:
        alone = matching(self._steps, left, right, predicates, negated=True)
        return self._steps.padded(alone, whole, right.schema)

    # ---- groups and order -----------------------------------------------------------------------------------------

    def _grouped(self, node: nodes.GroupBy) -> Edge:
        below = self.edge(node.input)
        keys = [self._steps.program(key, below) for key in node.keys]
        names = [key.sql("cql") for key in node.keys]
        terms, calls = [], []
        for call in node.aggregates:
            terms.append(self._term(call, lambda part: resolve(part, below.schema.names, below.computed)))
            calls.append(call.node.sql("cql"))
        fields = [pa.field(name, key.type) for name, key in zip(names, keys, strict=True)]
        fields += [
            pa.field(name, types.to_arrow(type_of(call.node)))
            for name, call in zip(calls, node.aggregates, strict=True)
        ]
        # GROUP BY a, a: a column is named once.
        edge = self.graph.add(GroupBy(keys, terms, pa.schema(fields)), [below], Pattern.STR)
        return replace(edge, computed={name: name for name in (*names, *calls)})

    def _with_order(self, node: nodes.TopRows) -> tuple[Edge, list[OrderBy]]:
        """The input with the columns to sort by: (column, descending, nulls first)."""
        ways = [(bool(term.args.get("desc")), bool(term.args.get("nulls_first"))) for term in node.order]
        if isinstance(node.input, nodes.Projection):
            edge = self._projection(node.input, [term.this for term in node.order])
            names = [f"{ORDER}{place}" for place in range(len(node.order))]
        else:
            edge = self.edge(node.input)
            names = [self._output_name(term.this, node.input, edge) for term in node.order]
        return edge, [(name, *way) for name, way in zip(names, ways, strict=True)]

    def _output_name(self, term: exp.Expr, below: nodes.Node, edge: Edge) -> str:
        """Which output column ORDER BY means, behind DISTINCT or a set operation."""
        if isinstance(term, exp.Literal) and term.is_int:
            return str(edge.schema.names[int(term.name) - 1])
        if isinstance(below, nodes.Distinct) and isinstance(below.input, nodes.Projection):
            for part, name in zip(below.input.expressions, edge.schema.names, strict=True):
                if part.this.sql("cql") == term.sql("cql"):
                    return str(name)
        for name in edge.schema.names:
            if isinstance(term, exp.Column) and name.lower() == term.name.lower():
                return str(name)
        raise unsupported(term, f"ORDER BY {term.sql('cql')} is not a column of the answer")

    def _top_rows(self, node: nodes.TopRows) -> Edge:
        edge, terms = self._with_order(node)
        shown = [name for name in edge.schema.names if not name.startswith(ORDER)]
        if node.limit is None and not node.offset:
            return self._steps.columns(edge, shown)
        return self._steps.columns(self._limited(node, edge, terms), shown)

    def _limited(self, node: nodes.TopRows, edge: Edge, terms: Sequence[OrderBy]) -> Edge:
        programs = [
            (self._steps.compiler.column(name, edge.schema.field(name).type), descending, nulls_first)
            for name, descending, nulls_first in terms
        ]
        return self.graph.add(TopRows(programs, node.limit, node.offset, edge.schema), [edge], Pattern.STR)


def _require_inner(parts: Sequence[nodes.Node], source: Source) -> None:
    """What an outer join adds where nothing matches has not arrived at any time."""
    for part in parts:
        below = part.input if isinstance(part, nodes.Selection) else part
        if isinstance(below, nodes.Join):
            raise UnsupportedError(
                f"{source.name} is non-retroactive: it cannot stand in a FROM with LEFT, RIGHT or FULL joins",
                line=source.place[0],
                column=source.place[1],
            )
