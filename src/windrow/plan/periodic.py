"""The physical plan of what the engine runs today: periodic aggregates over a time window of one stream.

Everything else is refused here, when the query is registered, by a message that names the part.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from windrow.errors import UnsupportedError
from windrow.language import types
from windrow.language.aggregates import AggregateCall, is_aggregate
from windrow.language.bound import BoundQuery
from windrow.language.catalog import Column, Stream
from windrow.language.positions import position
from windrow.plan import nodes
from windrow.windows.spec import NowWindow, RangeWindow, RowsWindow

AGGREGATES = frozenset(
    {"COUNT", "SUM", "AVG", "MIN", "MAX", "VAR_POP", "VAR_SAMP", "STDDEV_POP", "STDDEV_SAMP"}
)  # fmt: skip


@dataclass(frozen=True)
class Aggregation:
    """One aggregate of the select list: its name and the value it takes per row (None counts rows)."""

    name: str
    value: exp.Expr | None
    text: str


@dataclass(frozen=True)
class OrderTerm:
    """One term of ORDER BY over key_i and aggregate_i."""

    value: exp.Expr
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class PeriodicAggregate:
    """What to slice (stream, predicate, keys, values), what to look up (window), what to make of it (the rest).

    `having`, `order` and `outputs` are over the columns key_0 … and aggregate_0 …
    """

    stream: Stream
    window: RangeWindow
    slide: int
    predicate: exp.Expr | None
    keys: tuple[exp.Expr, ...]
    aggregations: tuple[Aggregation, ...]
    having: exp.Expr | None
    outputs: tuple[exp.Expr, ...]
    columns: tuple[Column, ...]
    order: tuple[OrderTerm, ...]
    limit: int | None
    offset: int

    @property
    def share_key(self) -> tuple[str, str, tuple[str, ...]]:
        """Queries with the same stream, predicate and keys share their panes (thesis 8.3.1, rule SS1)."""
        predicate = "" if self.predicate is None else self.predicate.sql("cql")
        return self.stream.name.lower(), predicate, tuple(key.sql("cql") for key in self.keys)


def periodic_aggregate(query: BoundQuery, plan: nodes.Output) -> PeriodicAggregate:
    """The physical plan, or an UnsupportedError that says which part of the query the engine cannot run yet."""
    if query.operator not in (None, "RSTREAM"):
        raise _refuse(query.ast, f"{query.operator}")
    if query.rows_slide is not None:
        raise _refuse(query.ast, "a ROWS window")
    if query.slide is None:
        raise _refuse(query.ast, "a continuous query (no SLIDE)", "give the window a SLIDE for periodic answers")
    node: nodes.Node = plan.input
    top: nodes.TopRows | None = None
    if isinstance(node, nodes.TopRows):
        top, node = node, node.input
    distinct = isinstance(node, nodes.Distinct)
    if isinstance(node, nodes.Distinct):
        node = node.input
    if not isinstance(node, nodes.Projection):
        raise _refuse(query.ast, _name(node))
    projection, node = node, node.input
    having: exp.Expr | None = None
    if isinstance(node, nodes.Selection) and isinstance(node.input, nodes.GroupBy):
        having, node = node.predicate, node.input
    if isinstance(node, nodes.GroupBy):
        if distinct:
            raise _refuse(query.ast, "DISTINCT over an aggregate")
        keys, calls, node = node.keys, node.aggregates, node.input
    elif distinct:  # SELECT DISTINCT a, b is GROUP BY a, b
        keys = tuple({part.this.sql("cql"): part.this for part in projection.expressions}.values())
        calls = ()
    else:
        raise _refuse(query.ast, "a select list without aggregates", "use GROUP BY or DISTINCT")
    predicate = None
    if isinstance(node, nodes.Selection):
        predicate, node = node.predicate, node.input
    if not isinstance(node, nodes.StreamWindow):
        raise _refuse(query.ast, _name(node))
    stream = node.source.stream
    assert stream is not None
    window = _time_window(node.source.window, query)
    aggregations = tuple(_aggregation(call) for call in calls)
    replace = _Placeholders(keys, calls)
    terms = top.order if top is not None else ()
    return PeriodicAggregate(
        stream,
        window,
        query.slide,
        None if predicate is None else unqualified(_without_subqueries(predicate)),
        tuple(unqualified(_without_subqueries(key)) for key in keys),
        aggregations,
        None if having is None else replace(_without_subqueries(having)),
        tuple(replace(_without_subqueries(part.this)) for part in projection.expressions),
        projection.columns,
        tuple(OrderTerm(replace(_without_subqueries(t.this)), *_direction(t)) for t in terms),
        top.limit if top is not None else None,
        top.offset if top is not None else 0,
    )


def unqualified(expression: exp.Expr) -> exp.Expr:
    """The same expression with columns by name only, so that queries with different aliases share it."""
    result = expression.copy()
    for column in result.find_all(exp.Column):
        column.set("table", None)
    return result


def _aggregation(call: AggregateCall) -> Aggregation:
    if call.name not in AGGREGATES:
        raise _refuse(call.node, f"{call.name}")
    if call.distinct and call.name not in ("MIN", "MAX"):
        raise _refuse(call.node, f"{call.name}(DISTINCT …)")
    value = call.argument
    if call.filter is not None:
        # The rows that FILTER drops become NULLs, which no aggregate counts.
        kept = exp.true() if value is None else value.copy()
        kept.type = types.BOOLEAN if value is None else value.type
        branch = exp.If(this=call.filter.copy(), true=kept)
        value = exp.Case(ifs=[branch])
        value.type = branch.type = kept.type
    if value is not None:
        _without_subqueries(value)
    return Aggregation(call.name, None if value is None else unqualified(value), unqualified(call.node).sql("cql"))


class _Placeholders:
    """Replaces group keys and aggregate calls by the columns key_i and aggregate_i."""

    def __init__(self, keys: tuple[exp.Expr, ...], calls: tuple[AggregateCall, ...]) -> None:
        self._columns = {key.sql("cql"): f"key_{index}" for index, key in enumerate(keys)}
        self._columns.update({call.node.sql("cql"): f"aggregate_{index}" for index, call in enumerate(calls)})

    def __call__(self, expression: exp.Expr) -> exp.Expr:
        return self._replace(expression.copy())

    def _replace(self, node: exp.Expr) -> exp.Expr:
        name = self._columns.get(node.sql("cql"))
        if name is not None:
            column = exp.column(name)
            column.type = node.type
            column.meta.update(node.meta)
            return column
        assert not is_aggregate(node)
        for key, value in list(node.args.items()):
            if isinstance(value, exp.Expr):
                node.set(key, self._replace(value))
            elif isinstance(value, list):
                node.set(key, [self._replace(v) if isinstance(v, exp.Expr) else v for v in value])
        return node


def _time_window(window: object, query: BoundQuery) -> RangeWindow:
    match window:
        case RowsWindow():
            raise _refuse(query.ast, "a ROWS window")
        case NowWindow():
            return RangeWindow(1, query.slide)
        case RangeWindow(length=None):
            raise _refuse(query.ast, "RANGE UNBOUNDED", "give the stream a window: [RANGE … SLIDE …]")
        case RangeWindow():
            return window
    raise _refuse(query.ast, "this window")


def _direction(term: exp.Expr) -> tuple[bool, bool]:
    return bool(term.args.get("desc")), bool(term.args.get("nulls_first"))


def _without_subqueries(expression: exp.Expr) -> exp.Expr:
    nested = expression.find(exp.Query)
    if nested is not None:
        raise _refuse(nested, "a subquery in an expression")
    return expression


_NAMES: dict[type[nodes.Node], str] = {
    nodes.Join: "a join",
    nodes.RelationJoin: "a join with a relation",
    nodes.RelationScan: "a query over a relation",
    nodes.SemiJoin: "EXISTS, IN (SELECT …) or INTERSECT",
    nodes.Negation: "EXCEPT, NOT EXISTS or NOT IN (SELECT …)",
    nodes.Union: "UNION",
    nodes.SubqueryWindow: "a windowed subquery",
    nodes.Projection: "a subquery in FROM",
    nodes.Selection: "a subquery in a condition",
}


def _name(node: nodes.Node) -> str:
    return _NAMES.get(type(node), type(node).__name__)


def _refuse(node: exp.Expr, part: str, fix: str = "") -> UnsupportedError:
    line, column = position(node)
    message = f"{part} cannot be run by the engine yet (windrow.testing.Reference answers it)"
    return UnsupportedError(f"{message}; {fix}" if fix else message, line=line, column=column)
