"""From a plan to the ways in which its tuples can be dealt: one rule per node.

A way survives a node if the rows that the node brings together are always in one shard:

    joins, EXISTS, IN      the tuples' keys are equal in all rows that match, by equalities of plain columns
    outer joins            the same; the key of the side that is padded with NULLs is known no longer
    DISTINCT, GROUP BY     the key is one of the columns
    EXCEPT, INTERSECT      the key stands at one place on both sides
    NOT IN                 a NULL decides for all rows, so that only a correlation by the key helps
    ROWS windows           the key is one of PARTITION BY

Cost: O(ways · nodes); a stream has as many ways as the query names columns of it, and joins leave few.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from windrow.flow.names import qualified
from windrow.flow.needed import needed_columns
from windrow.language.bound import BoundQuery, Source
from windrow.optimizer.walking import SETS, is_outer
from windrow.plan import nodes
from windrow.plan.build import conjuncts
from windrow.shards.alike import alike, common
from windrow.shards.output import spread_output
from windrow.shards.spread import Spread, StaysTogetherError, Ties, Way, bare, pairs
from windrow.windows.spec import RowsWindow


def spread_query(query: BoundQuery, plan: nodes.Output) -> Spread:
    """The output of a query and the ways to deal its streams; refused if there are none."""
    return spread_output(query, plan, _Spreading(query).node(plan.input))


class _Spreading:
    def __init__(self, query: BoundQuery) -> None:
        self._query = query

    def node(self, node: nodes.Node) -> Spread:
        match node:
            case nodes.StreamWindow():
                return self._window(node.source)
            case nodes.SubqueryWindow():
                return self._subquery_window(node)
            case nodes.RelationScan(source=source):
                return _columns(source, [column.name for column in source.columns])
            case nodes.Selection() | nodes.Join(kind="INNER") | nodes.RelationJoin():
                return self._joined(node)
            case nodes.Join():
                return self._outer_join(node)
            case nodes.Projection():
                return _projected(node, self.node(node.input))
            case nodes.Named(alias=alias):
                below = self.node(node.input)
                return Spread(tuple(qualified(alias, name) for name in below.names), below.types, below.ways)
            case nodes.Union():
                return self._union(node)
            case nodes.Distinct():
                return self.node(node.input).keyed(
                    "DISTINCT compares rows that do not have the key among their columns"
                )
            case nodes.GroupBy():
                return _grouped(node, self.node(node.input))
            case nodes.SemiJoin() | nodes.Negation():
                return self._set_operation(node) if node.kind in SETS else self._existence(node)
            case nodes.TopRows():
                raise StaysTogetherError("ORDER BY and LIMIT look at all rows")
        raise StaysTogetherError(f"{type(node).__name__} has no rule for shards")

    # ---- leaves ---------------------------------------------------------------------------------------------------

    def _window(self, source: Source) -> Spread:
        stream, window = source.stream, source.window
        assert stream is not None
        every = [column.name for column in source.columns]
        needed = needed_columns(self._query, source)
        names = every if isinstance(window, RowsWindow) else [name for name in every if name in needed] or every[:1]
        spread = _columns(source, names)
        places = list(range(len(names)))
        why = f"no column of {source.alias} that it names has a type that deals tuples"
        if isinstance(window, RowsWindow):
            if window.slide is not None:
                raise StaysTogetherError(f"{source.alias} slides by rows, whatever their keys")
            if not window.partition_by:
                raise StaysTogetherError(f"{source.alias} counts rows without PARTITION BY, whatever their keys")
            by = {name.lower() for name in window.partition_by}
            places = [place for place in places if names[place].lower() in by]
            why = f"no column of {source.alias} in PARTITION BY has a type that deals tuples"
        name = stream.name.lower()
        dealing = [place for place in places if alike(spread.types[place]) is not None]
        return spread.keeping((Way({name: names[place]}, frozenset([place])) for place in dealing), why)

    def _subquery_window(self, node: nodes.SubqueryWindow) -> Spread:
        source, inner = node.source, node.input
        assert source.subquery is not None and isinstance(inner, nodes.Output)
        if isinstance(source.window, RowsWindow):
            raise StaysTogetherError(f"{source.alias} counts rows of a subquery, which come from all shards")
        below = spread_query(source.subquery, inner)
        return Spread(_columns(source, [column.name for column in source.columns]).names, below.types, below.ways)

    # ---- joins ----------------------------------------------------------------------------------------------------

    def _joined(self, node: nodes.Node) -> Spread:
        """Selections and inner joins that stand together: whatever their order, all conditions hold in every row."""
        parts: list[Spread] = []
        conditions: list[exp.Expr] = []
        self._flatten(node, parts, conditions)
        whole = _beside(*parts)
        ties = Ties(whole.types)
        for one in conditions:
            if isinstance(one, exp.EQ):
                ties.tie(whole.place(one.this), whole.place(one.expression))
        starts = [sum(len(part.names) for part in parts[:number]) for number in range(len(parts))]
        waiting = [
            (part, [(way, ties.roots(start + place for place in way.places)) for way in part.ways])
            for part, start in zip(parts, starts, strict=True)
            if part.ways is not None
        ]
        if not waiting:
            return whole
        first, found = waiting.pop(0)
        reached = [first]
        while waiting:
            # Any part that is tied to those that are in: the order of FROM does not matter.
            for number, (part, ways) in enumerate(waiting):
                more = [
                    (Way(columns), roots | others)
                    for way, roots in found
                    for other, others in ways
                    if roots & others and (columns := way.with_(other)) is not None
                ]
                if more:
                    found = more
                    reached.append(part)
                    del waiting[number]
                    break
            else:
                raise StaysTogetherError(
                    _untied([name for part in reached for name in part.names], waiting[0][0].names)
                )
        return whole.keeping((Way(way.columns, ties.places(roots)) for way, roots in found), "")

    def _flatten(self, node: nodes.Node, parts: list[Spread], conditions: list[exp.Expr]) -> None:
        match node:
            case nodes.Selection():
                self._flatten(node.input, parts, conditions)
                conditions += conjuncts(node.predicate)
            case nodes.Join(kind="INNER") | nodes.RelationJoin():
                self._flatten(node.left, parts, conditions)
                self._flatten(node.right, parts, conditions)
                conditions += conjuncts(node.predicate)
            case _:
                parts.append(self.node(node))

    def _outer_join(self, node: nodes.Join) -> Spread:
        left, right = self.node(node.left), self.node(node.right)
        whole = _beside(left, right)
        width = len(left.names)
        kept = {"LEFT": [left], "RIGHT": [right], "FULL": [left, right]}[node.kind]
        if left.whole and right.whole:
            return whole
        if any(side.whole for side in kept):
            raise StaysTogetherError(
                f"a {node.kind} JOIN keeps rows of a relation that match nothing, and every shard has them all"
            )
        if right.whole:
            return whole.keeping(left.ways or (), "")
        if left.whole:
            shifted = (Way(way.columns, frozenset(width + place for place in way.places)) for way in right.ways or ())
            return whole.keeping(shifted, "")
        ties = Ties(whole.types)
        for part in conjuncts(node.predicate):
            if isinstance(part, exp.EQ):
                ties.tie(whole.place(part.this), whole.place(part.expression))
        ways = []
        for one, other, columns in pairs(left, right):
            shifted_places = frozenset(width + place for place in other.places)
            if ties.roots(one.places) & ties.roots(shifted_places):
                places = {"LEFT": one.places, "RIGHT": shifted_places, "FULL": frozenset[int]()}[node.kind]
                ways.append(Way(columns, places))
        return whole.keeping(ways, _untied(left.names, right.names))

    # ---- sets and subqueries --------------------------------------------------------------------------------------

    def _union(self, node: nodes.Union) -> Spread:
        left, right = self.node(node.left), self.node(node.right)
        whole = _alike(left, right)
        if left.whole and right.whole:
            return whole
        if left.whole or right.whole:
            raise StaysTogetherError("a UNION with rows of relations alone would have them once in every shard")
        ways = [Way(columns, one.places & other.places & _kept(left, whole) & _kept(right, whole))
                for one, other, columns in pairs(left, right)]  # fmt: skip
        ways.sort(key=lambda way: not way.places)
        return whole.keeping(ways, "the sides of UNION deal one stream by different columns")

    def _set_operation(self, node: nodes.SemiJoin | nodes.Negation) -> Spread:
        left, right = self.node(node.left), self.node(node.right)
        whole = _alike(left, right)
        if left.whole and right.whole:
            return whole
        if left.whole:
            raise StaysTogetherError(f"{node.kind} gives rows of relations alone, and every shard has them all")
        copied = _kept(left, whole)
        if right.whole:
            ways = [Way(way.columns, way.places & copied) for way in left.ways or ()]
            return whole.keeping(ways, "").keyed(
                f"{node.kind} compares rows that do not have the key among their columns"
            )
        both = copied & _kept(right, whole)
        ways = [
            Way(columns, one.places & copied)
            for one, other, columns in pairs(left, right)
            if one.places & other.places & both
        ]
        return whole.keeping(ways, f"{node.kind} compares rows that do not have a key at the same place")

    def _existence(self, node: nodes.SemiJoin | nodes.Negation) -> Spread:
        left = self.node(node.left)
        right, correlated, value = self._subquery(node.right)
        if right.whole:
            return left
        if left.whole:
            raise StaysTogetherError(f"{node.kind} tests rows of relations alone, and every shard has them all")
        width = len(left.names)
        ties = Ties((*left.types, *right.types))
        for one in correlated:
            if isinstance(one, exp.EQ):
                ties.tie(_either(left, right, one.this), _either(left, right, one.expression))
        if node.kind == "IN" and node.predicate is not None and value is not None:
            ties.tie(left.place(node.predicate), width + value)
        ways = [
            Way(columns, one.places)
            for one, other, columns in pairs(left, right)
            if ties.roots(one.places) & ties.roots(width + place for place in other.places)
        ]
        why = f"{node.kind} is tied to its subquery by no equality of two columns of one type that deal both"
        if node.kind == "NOT IN":
            why = "a NULL in the subquery of NOT IN decides for the rows of all shards"
        return left.keeping(ways, why)

    def _subquery(self, node: nodes.Node) -> tuple[Spread, list[exp.Expr], int | None]:
        """The rows of a subquery, the conditions that tie them to the outer query, the place of its first column."""
        if not isinstance(node, nodes.Projection) or isinstance(node.input, nodes.GroupBy):
            return self.node(node), [], 0
        below, correlated = node.input, []
        if isinstance(below, nodes.Selection):
            correlated = [part for part in conjuncts(below.predicate) if is_outer(part)]
        # The correlated conditions are about columns that are not known below: they tie nothing there.
        spread = self.node(below)
        return spread, correlated, spread.place(node.expressions[0])


def _columns(source: Source, names: Sequence[str]) -> Spread:
    """Some columns of a source, whole."""
    kinds = {column.name: column.type for column in source.columns}
    return Spread(
        tuple(qualified(source.alias, name) for name in names), tuple(kinds[name] for name in names), None
    )  # fmt: skip


def _beside(*parts: Spread) -> Spread:
    """The columns of all parts."""
    return Spread(
        tuple(name for part in parts for name in part.names), tuple(one for part in parts for one in part.types), None
    )


def _alike(left: Spread, right: Spread) -> Spread:
    """The columns of a set operation."""
    kinds = tuple(common(one, other) for one, other in zip(left.types, right.types, strict=True))
    return Spread(left.names, kinds, None)


def _kept(side: Spread, whole: Spread) -> frozenset[int]:
    """The columns of a side that are dealt alike in the set operation."""
    kinds = zip(side.types, whole.types, strict=True)
    return frozenset(place for place, (own, shared) in enumerate(kinds) if alike(own) == alike(shared))


def _either(left: Spread, right: Spread, expression: exp.Expr) -> int | None:
    """The column of a correlated condition, on the side of the outer query or on that of the subquery."""
    place = right.place(expression)
    return left.place(expression, outer=True) if place is None else len(left.names) + place


def _projected(node: nodes.Projection, below: Spread) -> Spread:
    values = [bare(part) for part in node.expressions]
    kinds: list[exp.DataType | None] = [one.type for one in node.columns]
    kinds = kinds or [_type(one) for one in values]
    names = tuple(part.alias_or_name for part in node.expressions)
    whole = Spread(names, tuple(kinds), None)
    if below.ways is None:
        return whole
    copies = [below.place(one) for one in values]
    same = [
        place is not None and alike(below.types[place]) == alike(kind)
        for place, kind in zip(copies, kinds, strict=True)
    ]
    return whole.keeping(
        (
            Way(way.columns, frozenset(i for i, place in enumerate(copies) if same[i] and place in way.places))
            for way in below.ways
        ),
        "",
    )


def _grouped(node: nodes.GroupBy, below: Spread) -> Spread:
    places = [below.place(key) for key in node.keys]
    names = [
        key.sql("cql") if place is None else below.names[place] for key, place in zip(node.keys, places, strict=True)
    ]
    kinds = [_type(key) for key in node.keys]
    names += [call.node.sql("cql") for call in node.aggregates]
    kinds += [_type(call.node) for call in node.aggregates]
    whole = Spread(tuple(names), tuple(kinds), None)
    if below.ways is None:
        return whole
    if not node.keys:
        raise StaysTogetherError("aggregates without GROUP BY are about all rows")
    ways = (Way(way.columns, frozenset(i for i, p in enumerate(places) if p in way.places)) for way in below.ways)
    return whole.keeping(ways, "").keyed("GROUP BY has no plain column that is the key")


def _type(expression: exp.Expr) -> exp.DataType | None:
    return expression.type if isinstance(expression.type, exp.DataType) else None


def _untied(left: Sequence[str], right: Sequence[str]) -> str:
    items = [", ".join(dict.fromkeys(name.partition(".")[0] for name in side)) for side in (left, right)]
    return f"no equality of two columns of one type, by which both can be dealt, ties {items[0]} to {items[1]}"
