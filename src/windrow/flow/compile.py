"""From a logical plan to operators.

Most of SQL is built from a few of them. With δ for DISTINCT, k for the columns by which a subquery is correlated:

    EXISTS, IN      L ⋈ δ(π_k R)
    NOT EXISTS      L ⋈ (π_k L EXCEPT π_k R)
    LEFT JOIN       (L ⋈ R) ∪ (L without a match) × NULLs
    other conditions between L and R than equalities: R becomes δ(π_k L) ⋈ R, correlated by equalities again
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import pyarrow as pa
from sqlglot import exp

from windrow.errors import UnsupportedError
from windrow.expressions import Compiler, Program
from windrow.flow.graph import Edge, Graph
from windrow.flow.leaves import Leaf, RangeLeaf, RelationLeaf
from windrow.flow.names import column_of, qualified, resolve, unsupported
from windrow.flow.rows_leaf import RowsLeaf
from windrow.flow.staying import Staying
from windrow.kernels.jit import Ints
from windrow.language import types
from windrow.language.aggregates import AggregateCall
from windrow.language.bound import Source
from windrow.language.scope import OUTER
from windrow.operators.counted import Counted, Rule
from windrow.operators.distinct import Distinct
from windrow.operators.group_by import GroupBy
from windrow.operators.join import Equality, Join, Residual
from windrow.operators.not_null import NotNull
from windrow.operators.nrr_join import NrrJoin
from windrow.operators.project import Project
from windrow.operators.select import Select
from windrow.operators.top_rows import TopRows
from windrow.operators.union import Union
from windrow.plan import nodes
from windrow.plan.build import conjuncts
from windrow.plan.patterns import Pattern
from windrow.sharing.slice import Term
from windrow.state.choice import Strategy, make_buffer
from windrow.windows.spec import RangeWindow, RowsWindow

ORDER = "__order"
STAMP = "__ts"
"""A hidden column: when the tuple arrived. Joins with non-retroactive relations and INTERNAL windows look at it."""
OrderBy: TypeAlias = tuple[str, bool, bool]
"""A column, whether it descends, whether NULLs come first."""


@dataclass(eq=False)
class Input:
    """A leaf, and the source whose tuples it wants."""

    source: Source
    leaf: Leaf
    columns: tuple[str, ...]
    """The columns of the source, in the order of the leaf's schema."""
    stamped: bool = False
    """Whether the timestamp comes behind them."""

    def add(self, batch: pa.RecordBatch, ts: Ints) -> None:
        """Tuples of the source, with its columns in any order."""
        columns = [batch.column(name) for name in self.columns]
        if self.stamped:
            columns.append(pa.array(ts))
        pairs = zip(columns, self.leaf.schema, strict=True)
        # int32 comes where BIGINT is declared
        arrays = [array if array.type == field.type else array.cast(field.type) for array, field in pairs]
        self.leaf.add(pa.RecordBatch.from_arrays(arrays, schema=self.leaf.schema), ts)


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
        self._compiler = compiler
        self._term = term
        self._strategy = strategy
        self._slide = slide
        self._needed = needed
        self._stamped = stamped
        self._mixed = mixed
        self.graph = Graph()
        self.inputs: list[Input] = []
        self.relations: list[tuple[Source, RelationLeaf | NrrJoin]] = []

    # ---- nodes ----------------------------------------------------------------------------------------------------

    def edge(self, node: nodes.Node) -> Edge:
        """The operators of a node and everything below it."""
        match node:
            case nodes.StreamWindow() | nodes.SubqueryWindow():
                return self._window(node.source)
            case nodes.RelationScan():
                return self._relation(node.source)
            case nodes.Selection():
                below = self.edge(node.input)
                return self._selected(below, node.predicate)
            case nodes.Projection():
                return self._projection(node)
            case nodes.Named():
                below = self.edge(node.input)
                names = [qualified(node.alias, name) for name in below.schema.names]
                return self._renamed(below, names)
            case nodes.Union():
                return self._union([self.edge(node.left), self.edge(node.right)])
            case nodes.Distinct():
                return self._distinct(self.edge(node.input))
            case nodes.Join(kind="INNER") | nodes.RelationJoin():
                return self._inner_join(node)
            case nodes.Join():
                return self._outer_join(node)
            case nodes.SemiJoin(kind="INTERSECT" | "INTERSECT ALL") | nodes.Negation(kind="EXCEPT" | "EXCEPT ALL"):
                return self._counted(node)
            case nodes.SemiJoin() | nodes.Negation():
                return self._existence(node)
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
        reaches = {}
        for one in self.inputs:
            window = one.source.window
            if one.stamped and window is not None and not window.internal:
                reach = window.reach if isinstance(window, RangeWindow) else 1
                assert reach is not None
                reaches[qualified(one.source.alias, STAMP)] = reach
        staying = Staying(edge.schema, reaches, self._slide)
        return self.graph.add(staying, [edge], Pattern.WK if reaches else Pattern.MON)

    # ---- leaves ---------------------------------------------------------------------------------------------------

    def _window(self, source: Source) -> Edge:
        window = source.window
        assert window is not None
        kinds = {column.name: types.to_arrow(column.type) for column in source.columns}
        rows = isinstance(window, RowsWindow)
        names = tuple(kinds) if rows else tuple(name for name in kinds if name in set(self._needed(source)))
        names = names or tuple(kinds)[:1]  # a row must have a column
        fields = [pa.field(qualified(source.alias, name), kinds[name]) for name in names]
        stamped = self._stamped(source)
        if stamped:
            fields.append(pa.field(qualified(source.alias, STAMP), pa.int64()))
        schema = pa.schema(fields)
        leaf: Leaf
        if isinstance(window, RowsWindow):
            sequence = source.stream.sequence if source.stream is not None else None
            by = tuple(qualified(source.alias, name) for name in window.partition_by)
            named = None if sequence is None else qualified(source.alias, sequence)
            leaf = RowsLeaf(window, schema, by, named)
            pattern, lifetime = Pattern.STR, None
        else:
            leaf = RangeLeaf(window, schema, slide=self._slide, negative=self._strategy == "nt")
            lifetime = leaf.lifetime
            pattern = Pattern.MON if lifetime is None else Pattern.STR if self._strategy == "nt" else Pattern.WKS
        self.inputs.append(Input(source, leaf, names, stamped))
        return self.graph.add(leaf, (), pattern, lifetime)

    def _relation(self, source: Source) -> Edge:
        if source.relation is not None and source.relation.non_retroactive:
            raise UnsupportedError(
                f"{source.name} is non-retroactive: it can only be in an inner join with a stream that stands in "
                "the same FROM"
            )
        leaf = RelationLeaf(_schema_of(source), slide=self._slide)
        self.relations.append((source, leaf))
        return self.graph.add(leaf, (), Pattern.STR)

    # ---- rows one by one ------------------------------------------------------------------------------------------

    def _program(self, expression: exp.Expr, edge: Edge) -> Program:
        return self._compiler.compile(resolve(expression, edge.schema.names, edge.computed))

    def _selected(self, below: Edge, predicate: exp.Expr) -> Edge:
        select = Select(self._program(predicate, below), below.schema)
        edge = self.graph.add(select, [below], below.pattern, below.lifetime)
        return replace(edge, computed=below.computed)

    def _projection(self, node: nodes.Projection, more: Sequence[exp.Expr] = ()) -> Edge:
        """The select list; `more` are hidden columns behind it, to sort by."""
        below = self.edge(node.input)
        values = [part.this if isinstance(part, exp.Alias) else part for part in node.expressions]
        kinds = [types.to_arrow(one.type) for one in node.columns] or [types.to_arrow(_type(one)) for one in values]
        names = [part.alias_or_name for part in node.expressions]
        kinds += [types.to_arrow(_type(one)) for one in more]
        names += [f"{ORDER}{place}" for place in range(len(more))]
        programs = [self._program(one, below) for one in (*values, *more)]
        for stamp in _stamps(below) if self._mixed else ():
            names.append(stamp)
            kinds.append(pa.int64())
            programs.append(self._compiler.column(stamp, pa.int64()))
        return self._projected(below, programs, names, kinds)

    def _projected(
        self, below: Edge, programs: Sequence[Program], names: Sequence[str], kinds: Sequence[pa.DataType]
    ) -> Edge:
        schema = pa.schema([pa.field(name, kind) for name, kind in zip(names, kinds, strict=True)])
        return self.graph.add(Project(programs, schema), [below], below.pattern, below.lifetime)

    def _columns(self, below: Edge, chosen: Sequence[str], names: Sequence[str] | None = None) -> Edge:
        """Some columns, perhaps under other names."""
        kinds = [below.schema.field(name).type for name in chosen]
        programs = [self._compiler.column(name, kind) for name, kind in zip(chosen, kinds, strict=True)]
        return self._projected(below, programs, names or chosen, kinds)

    def _renamed(self, below: Edge, names: Sequence[str]) -> Edge:
        return self._columns(below, below.schema.names, names)

    # ---- sets -----------------------------------------------------------------------------------------------------

    def _union(self, sides: Sequence[Edge]) -> Edge:
        sides = self._alike(sides)
        worst = max(side.pattern for side in sides)
        lifetimes = {side.lifetime for side in sides}
        fifo = worst is Pattern.WKS and len(lifetimes) == 1
        if worst is Pattern.WKS and not fifo:
            worst = Pattern.WK
        union = Union(sides[0].schema, merge=fifo)
        return self.graph.add(union, sides, worst, lifetimes.pop() if fifo else None)

    def _alike(self, sides: Sequence[Edge]) -> list[Edge]:
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
            self._cast(self._compiler.column(one.name, one.type), kind)
            for one, kind in zip(side.schema, kinds, strict=True)
        ]
        return self._projected(side, programs, names, kinds)

    def _cast(self, program: Program, kind: pa.DataType) -> Program:
        if program.type == kind:
            return program
        node = column_of(program.column or "value", program.type)
        cast = exp.cast(node, types.from_arrow(kind))
        cast.type = types.from_arrow(kind)
        return self._compiler.compile(cast)

    def _distinct(self, below: Edge) -> Edge:
        if below.strict:
            return self.graph.add(Counted(below.schema, Rule.DISTINCT), [below], Pattern.STR)
        pattern = Pattern.MON if below.pattern is Pattern.MON else Pattern.WK
        return self.graph.add(Distinct(below.schema), [below], pattern)

    def _counted(self, node: nodes.SemiJoin | nodes.Negation) -> Edge:
        rule = Rule[node.kind.replace(" ", "_")]
        left = node.left
        if isinstance(node, nodes.SemiJoin) and isinstance(left, nodes.Distinct):
            left = left.input  # the rule counts one copy anyway
        sides = self._alike([self.edge(left), self.edge(node.right)])
        return self.graph.add(Counted(sides[0].schema, rule), sides, Pattern.STR)

    # ---- joins ----------------------------------------------------------------------------------------------------

    def _inner_join(self, node: nodes.Node) -> Edge:
        """All inner joins of one FROM are one multi-way join; non-retroactive relations come after it."""
        parts: list[nodes.Node] = []
        predicates: list[exp.Expr] = []
        late: list[nodes.RelationScan] = []
        self._flatten(node, parts, predicates, late)
        edges = [self.edge(part) for part in parts]
        if not edges:
            return self._relation(late[0].source)
        available = {name for edge in edges for name in edge.schema.names}
        known = [*edges, *(Edge(-1, _schema_of(one.source), Pattern.MON) for one in late)]
        predicates = [_qualified_using(one, known) for one in predicates]
        now = [one for one in predicates if _names(one) <= available]
        rest = [one for one in predicates if one not in now]
        joined = edges[0] if len(edges) == 1 else self._join(edges, now)
        rest = rest if len(edges) > 1 else predicates
        for relation in late:
            joined, rest = self._nrr_join(joined, relation, rest)
        for predicate in rest:
            joined = self._selected(joined, predicate)
        return joined

    def _flatten(
        self, node: nodes.Node, parts: list[nodes.Node], predicates: list[exp.Expr], late: list[nodes.RelationScan]
    ) -> None:
        match node:
            case nodes.Join(kind="INNER") | nodes.RelationJoin():
                self._flatten(node.left, parts, predicates, late)
                self._flatten(node.right, parts, predicates, late)
                predicates += conjuncts(node.predicate)
            case nodes.RelationScan() if _non_retroactive(node):
                late.append(node)
            case nodes.Selection(input=nodes.RelationScan() as scan) if _non_retroactive(scan):
                late.append(scan)
                predicates += conjuncts(node.predicate)
            case _:
                parts.append(node)

    def _join(
        self,
        edges: Sequence[Edge],
        predicates: Sequence[exp.Expr],
        pairs: Sequence[tuple[str, str]] = (),
        *,
        outputs: Sequence[tuple[int, str]] | None = None,
        null_safe: bool = False,
    ) -> Edge:
        equalities = [self._pair(edges, *pair) for pair in pairs]
        residuals = []
        for predicate in predicates:
            found = self._equality(edges, predicate)
            if found is not None:
                equalities.append(found)
                continue
            names = [name for edge in edges for name in edge.schema.names]
            needed = frozenset(
                number for number, edge in enumerate(edges) if _names(predicate) & set(edge.schema.names)
            )
            residuals.append(Residual(needed, self._compiler.compile(resolve(predicate, names, {}))))
        strict = [edge.strict for edge in edges]
        join = Join(
            [edge.schema for edge in edges],
            [self._buffer(edge) for edge in edges],
            equalities,
            residuals,
            outputs=outputs,
            null_safe=null_safe,
            strict=strict,
        )
        patterns = {edge.pattern for edge in edges}
        pattern = Pattern.STR if any(strict) else Pattern.MON if patterns == {Pattern.MON} else Pattern.WK
        return self.graph.add(join, edges, pattern)

    def _buffer(self, edge: Edge) -> Callable[[pa.Schema, int], Any]:
        return lambda schema, indexes: make_buffer(edge.pattern, self._strategy, schema, indexes)

    def _pair(self, edges: Sequence[Edge], left: str, right: str) -> Equality:
        programs = tuple(
            self._compiler.column(name, edges[number].schema.field(name).type)
            for number, name in enumerate((left, right))
        )
        return Equality((0, 1), (programs[0], programs[1]), f"{left} = {right}")

    def _equality(self, edges: Sequence[Edge], predicate: exp.Expr) -> Equality | None:
        """left = right with each side over one input, another one."""
        if not isinstance(predicate, exp.EQ):
            return None
        sides = (predicate.this, predicate.expression)
        homes = []
        for side in sides:
            names = _names(side)
            home = [number for number, edge in enumerate(edges) if names and names <= set(edge.schema.names)]
            if len(home) != 1:
                return None
            homes.append(home[0])
        if homes[0] == homes[1]:
            return None
        left, right = self._common(
            *(resolve(side, edges[home].schema.names, {}) for side, home in zip(sides, homes, strict=True))
        )
        return Equality((homes[0], homes[1]), (left, right), predicate.sql("cql"))

    def _common(self, left: exp.Expr, right: exp.Expr) -> tuple[Program, Program]:
        """Both sides of an equality in the type in which they are compared."""
        common = types.common_type(_type(left), _type(right))
        assert common is not None
        first, second = (self._compiler.compile(_as_type(side, common)) for side in (left, right))
        return first, second

    def _nrr_join(
        self, left: Edge, scan: nodes.RelationScan, predicates: list[exp.Expr]
    ) -> tuple[Edge, list[exp.Expr]]:
        """The tuples that arrive meet the rows that the relation has then (thesis, Definition 3.1)."""
        source = scan.source
        schema = _schema_of(source)
        relation = Edge(-1, schema, Pattern.MON)
        names = {*left.schema.names, *schema.names}
        here = [one for one in predicates if _names(one) <= names]
        equalities, residuals = [], []
        for predicate in here:
            found = self._equality([left, relation], predicate)
            if found is not None:
                equalities.append(found)
            else:
                residuals.append(self._compiler.compile(resolve(predicate, sorted(names), {})))
        held = self._buffer(left) if left.strict else None
        join = NrrJoin(left.schema, schema, equalities, residuals, held, arrived=_stamps(left), waits=self._waits())
        self.relations.append((source, join))
        edge = self.graph.add(join, [left], left.pattern, left.lifetime)
        return edge, [one for one in predicates if one not in here]

    def _waits(self) -> int | None:
        """How long a tuple may wait until it counts; None: nobody knows."""
        waits = [0]
        for one in self.inputs:
            window = one.source.window
            if isinstance(window, RowsWindow) and (window.offset or window.slide is not None):
                return None
            if isinstance(window, RangeWindow):
                waits.append(window.offset)
        return max(waits)

    def _outer_join(self, node: nodes.Join) -> Edge:
        left, right = self.edge(node.left), self.edge(node.right)
        predicates = [_qualified_using(one, [left, right]) for one in conjuncts(node.predicate)]
        whole = [*left.schema.names, *right.schema.names]
        parts = [self._columns(self._join([left, right], predicates), whole)]
        if node.kind in ("LEFT", "FULL"):
            parts.append(self._padded(self._without_match(left, right, predicates), whole, right.schema))
        if node.kind in ("RIGHT", "FULL"):
            parts.append(self._padded(self._without_match(right, left, predicates), whole, left.schema))
        return self._union(parts)

    def _padded(self, edge: Edge, whole: Sequence[str], missing: pa.Schema) -> Edge:
        """The columns of an outer join, NULL where there is no match."""
        programs, kinds = [], []
        for name in whole:
            known = name in edge.schema.names
            kind = (edge.schema if known else missing).field(name).type
            programs.append(
                self._compiler.column(name, kind) if known else self._compiler.constant(pa.scalar(None, kind))
            )
            kinds.append(kind)
        return self._projected(edge, programs, whole, kinds)

    # ---- EXISTS, IN and their negations ---------------------------------------------------------------------------

    def _existence(self, node: nodes.SemiJoin | nodes.Negation) -> Edge:
        left = self.edge(node.left)
        right, correlated, value = self._subquery(node.right)
        negated = isinstance(node, nodes.Negation)
        tested = node.predicate
        if tested is None:
            return self._matching(left, right, correlated, negated=negated)
        assert value is not None
        if not negated:
            return self._matching(left, right, [*correlated, _equal(tested, value)], negated=False)
        # x NOT IN R: no row of R equals x, none is NULL, and if x is NULL there is none at all.
        unknown = exp.or_(_is_null(tested), _is_null(value), copy=True)
        for one in unknown.find_all(exp.Or):
            one.type = types.BOOLEAN
        unequal = self._matching(left, right, [*correlated, _equal(tested, value)], negated=True)
        nulls = self._selected(right, _is_null(value))
        known = self._matching(unequal, nulls, correlated, negated=True)
        return self._matching(known, right, [*correlated, _equal_true(_is_null(tested))], negated=True)

    def _subquery(self, node: nodes.Node) -> tuple[Edge, list[exp.Expr], exp.Expr | None]:
        """The rows of a subquery, the conditions that tie it to the outer query, and its single value."""
        if not isinstance(node, nodes.Projection) or isinstance(node.input, nodes.GroupBy):
            edge = self.edge(node)
            name = edge.schema.names[0]
            inner = qualified("", f"value{edge.node}")
            edge = self._columns(edge, [name], [inner])
            return edge, [], _bare_column(inner, edge.schema.field(inner).type)
        below, correlated = node.input, []
        if isinstance(below, nodes.Selection):
            parts = conjuncts(below.predicate)
            correlated = [part for part in parts if _is_outer(part)]
            kept = [part for part in parts if not _is_outer(part)]
            below = below.input
            edge = self.edge(below)
            for part in kept:
                edge = self._selected(edge, part)
        else:
            edge = self.edge(below)
        value = node.expressions[0]
        return edge, correlated, value.this if isinstance(value, exp.Alias) else value

    def _matching(self, left: Edge, right: Edge, conditions: Sequence[exp.Expr], *, negated: bool) -> Edge:
        """The rows of `left` for which `right` has, or has not, a row that satisfies the conditions."""
        pairs, others = [], []
        for one in conditions:
            pair = self._sides(left, right, one)
            if pair is None:
                others.append(one)
            else:
                pairs.append(pair)
        if others:
            return self._matching_by_columns(left, right, conditions, negated=negated)
        if not pairs:
            true = self._compiler.constant(pa.scalar(True))
            pairs = [(true, true)]
        names = [f"__key{place}" for place in range(len(pairs))]
        kinds = [mine.type for mine, _ in pairs]
        keyed = self._projected(
            left,
            [*(self._compiler.column(one.name, one.type) for one in left.schema), *(mine for mine, _ in pairs)],
            [*left.schema.names, *names],
            [*(one.type for one in left.schema), *kinds],
        )
        theirs = [f"__match{place}" for place in range(len(pairs))]
        matches = self._projected(right, [other for _, other in pairs], theirs, kinds)
        matches = self.graph.add(NotNull(matches.schema), [matches], matches.pattern, matches.lifetime)
        return self._kept(left, keyed, names, matches, negated=negated)

    def _kept(self, left: Edge, keyed: Edge, names: Sequence[str], matches: Edge, *, negated: bool) -> Edge:
        """The rows whose columns `names` are, or are not, among the matches."""
        theirs = matches.schema.names
        if negated:
            wanted = self._columns(keyed, names, theirs)
            matches = self.graph.add(Counted(matches.schema, Rule.EXCEPT), [wanted, matches], Pattern.STR)
        else:
            matches = self._distinct(matches)
        outputs = [(0, name) for name in left.schema.names]
        edge = self._join(
            [keyed, matches], (), list(zip(names, theirs, strict=True)), outputs=outputs, null_safe=True
        )  # fmt: skip
        return replace(edge, computed=left.computed)

    def _matching_by_columns(self, left: Edge, right: Edge, conditions: Sequence[exp.Expr], *, negated: bool) -> Edge:
        """Conditions that are no equalities: which values of the outer columns have a match?"""
        used = {name for one in conditions for name in _names(one)} & set(left.schema.names)
        names = [name for name in left.schema.names if name in used] or left.schema.names[:1]
        values = self._distinct(self._columns(left, names))
        found = self._join([values, right], conditions, outputs=[(0, name) for name in names])
        theirs = [f"__match{place}" for place in range(len(names))]
        return self._kept(left, left, names, self._columns(found, names, theirs), negated=negated)

    def _without_match(self, left: Edge, right: Edge, predicates: Sequence[exp.Expr]) -> Edge:
        return self._matching(left, right, predicates, negated=True)

    def _sides(self, left: Edge, right: Edge, condition: exp.Expr) -> tuple[Program, Program] | None:
        """outer = inner, each side over its own columns; True = condition of the outer columns."""
        if not isinstance(condition, exp.EQ):
            return None
        ours, theirs = condition.this, condition.expression
        for mine, other in ((ours, theirs), (theirs, ours)):
            if _within(mine, left) and _within(other, right) and (_names(mine) or _names(other)):
                first = resolve(mine, left.schema.names, left.computed)
                return self._common(first, resolve(other, right.schema.names, right.computed))
        return None

    # ---- groups and order -----------------------------------------------------------------------------------------

    def _grouped(self, node: nodes.GroupBy) -> Edge:
        below = self.edge(node.input)
        keys = [self._program(key, below) for key in node.keys]
        names = [key.sql("cql") for key in node.keys]
        terms, calls = [], []
        for call in node.aggregates:
            terms.append(self._term(call, lambda part: resolve(part, below.schema.names, below.computed)))
            calls.append(call.node.sql("cql"))
        fields = [pa.field(name, key.type) for name, key in zip(names, keys, strict=True)]
        fields += [
            pa.field(name, types.to_arrow(_type(call.node))) for name, call in zip(calls, node.aggregates, strict=True)
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
            return self._columns(edge, shown)
        return self._columns(self._limited(node, edge, terms), shown)

    def _limited(self, node: nodes.TopRows, edge: Edge, terms: Sequence[OrderBy]) -> Edge:
        programs = [
            (self._compiler.column(name, edge.schema.field(name).type), descending, nulls_first)
            for name, descending, nulls_first in terms
        ]
        return self.graph.add(TopRows(programs, node.limit, node.offset, edge.schema), [edge], Pattern.STR)


def _schema_of(source: Source) -> pa.Schema:
    return pa.schema([pa.field(qualified(source.alias, c.name), types.to_arrow(c.type)) for c in source.columns])


# ---- expressions ---------------------------------------------------------------------------------------------------


def _non_retroactive(scan: nodes.RelationScan) -> bool:
    return scan.source.relation is not None and scan.source.relation.non_retroactive


def _type(node: exp.Expr) -> exp.DataType:
    return node.type if isinstance(node.type, exp.DataType) else types.NULL


def _names(expression: exp.Expr) -> set[str]:
    return {qualified(column.table, column.name) for column in expression.find_all(exp.Column)}


def _stamps(edge: Edge) -> list[str]:
    return [name for name in edge.schema.names if name.endswith(f".{STAMP}")]


def _within(expression: exp.Expr, edge: Edge) -> bool:
    return _names(expression) <= set(edge.schema.names)


def _is_outer(part: exp.Expr) -> bool:
    return any(column.meta.get(OUTER) for column in part.find_all(exp.Column))


def _bare_column(name: str, arrow: pa.DataType) -> exp.Expr:
    table, _, column = name.partition(".")
    node = exp.column(exp.to_identifier(column, quoted=True), table=exp.to_identifier(table, quoted=True))
    node.type = types.from_arrow(arrow)
    return node


def _as_type(node: exp.Expr, wanted: exp.DataType) -> exp.Expr:
    if _type(node) == wanted:
        return node
    cast = exp.Cast(this=node, to=wanted)
    cast.type = wanted
    return cast


def _equal(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    node = exp.EQ(this=left.copy(), expression=right.copy())
    node.type = types.BOOLEAN
    return node


def _equal_true(condition: exp.Expr) -> exp.Expr:
    true = exp.true()
    true.type = types.BOOLEAN
    return _equal(condition, true)


def _is_null(node: exp.Expr) -> exp.Expr:
    null = exp.Null()
    null.type = types.NULL
    test = exp.Is(this=node.copy(), expression=null)
    test.type = types.BOOLEAN
    return test


def _qualified_using(predicate: exp.Expr, edges: Sequence[Edge]) -> exp.Expr:
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
