"""Which periodic aggregates over a join can share it: what is joined, and the aggregate as one over the join's results.

A query fits if it is GROUP BY and COUNT, SUM, AVG, MIN, MAX over an inner join of two RANGE windows. Columns of the
results are called by side, "1.k" and "2.k", so that queries with other aliases are alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from windrow.language import types
from windrow.language.aggregates import AggregateCall, aggregate_call
from windrow.language.bound import BoundQuery, Source
from windrow.language.catalog import Column, Stream
from windrow.plan import nodes
from windrow.plan.periodic import PeriodicAggregate, periodic_aggregate
from windrow.windows.spec import RangeWindow

AGGREGATES = frozenset({"COUNT", "SUM", "AVG", "MIN", "MAX"})
_NEVER_FAIL = (
    exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.And, exp.Or, exp.Not, exp.Is,
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In, exp.Case, exp.If,
)  # fmt: skip
"""With these no row fails: a query must not be stopped by a result that only another one's windows have."""


@dataclass(frozen=True)
class JoinShape:
    """A periodic aggregate over a join."""

    key: tuple[str, ...]
    """Streams and conditions: queries with the same key have the same join, up to their windows."""
    windows: tuple[int, int]
    columns: tuple[frozenset[str], frozenset[str]]
    """What it reads of each side, the time included."""
    plan: PeriodicAggregate
    """The query over the stream of results; its window is the shorter one of the two."""

    @property
    def length(self) -> int:
        """The shorter window."""
        return min(self.windows)

    @property
    def extra(self) -> tuple[int, int]:
        """How much longer than the shorter one each window is."""
        return self.windows[0] - self.length, self.windows[1] - self.length


def join_shape(query: BoundQuery, plan: nodes.Output) -> JoinShape | None:
    """What the query is over its join; None if it cannot share it."""
    slide = query.slide
    if slide is None or query.rows_slide is not None or query.operator not in (None, "RSTREAM") or query.hint:
        return None
    tops, group = _above(plan.input)
    if group is None or not isinstance(group.input, nodes.Join):
        return None
    join = group.input
    sides = [_side(join.left), _side(join.right)]
    if join.kind != "INNER" or join.predicate is None or None in sides or not all(map(_mergeable, group.aggregates)):
        return None
    (left, first), (right, second) = (side for side in sides if side is not None)
    if not all(isinstance(key, exp.Column) for key in group.keys) or query.sources != (left, right):
        return None
    number = {left.alias.lower(): 1, right.alias.lower(): 2}
    read = [*group.keys, *(call.node for call in group.aggregates), join.predicate]
    read += [one for one in (first, second) if one is not None]
    places = [column for part in read for column in part.find_all(exp.Column)]
    if len(number) < 2 or any(column.table.lower() not in number for column in places):
        return None
    if not all(_never_fails(part) for part in (join.predicate, first, second) if part is not None):
        return None
    assert left.stream is not None and right.stream is not None
    lengths = [source.window.length for source in (left, right) if isinstance(source.window, RangeWindow)]
    windows = (lengths[0] or 0, lengths[1] or 0)
    columns = [{left.stream.time.lower()}, {right.stream.time.lower()}]
    for column in places:
        columns[number[column.table.lower()] - 1].add(column.name.lower())
    conditions = [None if one is None else renamed(one, number) for one in (join.predicate, first, second)]
    key = (left.name.lower(), right.name.lower(), *("" if one is None else one.sql("cql") for one in conditions))
    over = _over_results(query, tops, group, number, left.stream, RangeWindow(min(windows), slide))
    return JoinShape(key, windows, (frozenset(columns[0]), frozenset(columns[1])), over)


def result_column(side: int, name: str) -> str:
    """How a column of the results is called."""
    return f"{side}.{name.lower()}"


def renamed(expression: exp.Expr, number: Mapping[str, int]) -> exp.Expr:
    """The expression over the results of the join."""
    result = expression.copy()
    for column in list(result.find_all(exp.Column)):
        if column.table.lower() in number:
            name = result_column(number[column.table.lower()], column.name)
            column.set("this", exp.to_identifier(name, quoted=True))
            column.set("table", None)
    return result


def join_query(query: BoundQuery, shape: JoinShape) -> BoundQuery:
    """The join itself, as a continuous query: results with both timestamps, as they come."""
    ast = query.ast.copy()
    for part in ("group", "having", "order", "limit", "offset", "distinct"):
        ast.set(part, None)
    sources = tuple(
        replace(source, window=RangeWindow(length)) for source, length in zip(query.sources, shape.windows, strict=True)
    )
    outputs, columns = [], []
    for side, (source, names) in enumerate(zip(sources, shape.columns, strict=True), start=1):
        for column in source.columns:
            if column.name.lower() in names:
                read = exp.column(column.name, table=source.alias)
                named = exp.alias_(read, result_column(side, column.name), quoted=True, copy=False)
                named.this.type = named.type = column.type
                outputs.append(named)
                columns.append(Column(result_column(side, column.name), column.type))
    ast.set("expressions", outputs)
    return replace(query, ast=ast, sources=sources, columns=tuple(columns), slide=None, operator="ISTREAM")


def _above(node: nodes.Node) -> tuple[list[nodes.Unary], nodes.GroupBy | None]:
    """What stands above the GROUP BY, from the top."""
    above: list[nodes.Unary] = []
    while isinstance(node, (nodes.TopRows, nodes.Projection, nodes.Selection)):
        above.append(node)
        node = node.input
    return above, node if isinstance(node, nodes.GroupBy) else None


def _side(node: nodes.Node) -> tuple[Source, exp.Expr | None] | None:
    """A window over a stream, and the condition above it."""
    predicate = None
    if isinstance(node, nodes.Selection):
        predicate, node = node.predicate, node.input
    if not isinstance(node, nodes.StreamWindow):
        return None
    source, window = node.source, node.source.window
    plain = isinstance(window, RangeWindow) and window.length and not window.offset and not window.internal
    return (source, predicate) if plain and source.stream is not None else None


def _mergeable(call: AggregateCall) -> bool:
    """Whether partials of it are merged without rounding, and no row fails."""
    if call.name not in AGGREGATES or call.distinct or call.user is not None:
        return False
    if call.filter is not None and not _never_fails(call.filter):
        return False
    if call.argument is None:
        return True
    kind = call.argument.type
    numbers = kind is not None and (types.is_numeric(kind) or types.is_temporal(kind))
    floats = kind is not None and types.is_floating(kind)
    exact = call.name == "COUNT" or (numbers and not (floats and call.name in ("SUM", "AVG")))
    return exact and _never_fails(call.argument)


def _never_fails(expression: exp.Expr) -> bool:
    return all(isinstance(node, _NEVER_FAIL) for node in expression.walk())


def _over_results(
    query: BoundQuery,
    above: list[nodes.Unary],
    group: nodes.GroupBy,
    number: Mapping[str, int],
    stream: Stream,
    window: RangeWindow,
) -> PeriodicAggregate:
    """The physical plan of the aggregate, over a stream of join results."""
    results = replace(stream, name="⋈", columns=(stream.column(stream.time),))
    source = Source(0, "results", results.columns, stream=results, window=window)
    node: nodes.Node = nodes.GroupBy(
        nodes.StreamWindow(source),
        tuple(renamed(key, number) for key in group.keys),
        tuple(aggregate_call(renamed(call.node, number)) for call in group.aggregates),
    )
    for one in reversed(above):
        match one:
            case nodes.Selection():
                node = nodes.Selection(node, renamed(one.predicate, number))
            case nodes.Projection():
                node = nodes.Projection(node, tuple(renamed(part, number) for part in one.expressions), one.columns)
            case nodes.TopRows():
                order = tuple(renamed(term, number) for term in one.order)
                node = nodes.TopRows(node, order, one.limit, one.offset)
    alone = replace(query, ast=exp.Select(), sources=(source,))
    output = nodes.Output(node, query.operator, query.slide, None, None, query.timestamps)
    return periodic_aggregate(alone, output)
