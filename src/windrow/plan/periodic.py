"""The physical plan of what the engine runs today: periodic aggregates over a RANGE or ROWS window of one stream.

Everything else is refused here, when the query is registered, by a message that names the part.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from windrow.errors import UnsupportedError
from windrow.language import nodes as syntax
from windrow.language import types
from windrow.language.aggregates import AggregateCall, aggregate_call, is_aggregate
from windrow.language.bound import SOURCE_ID, BoundQuery
from windrow.language.catalog import Column, Stream
from windrow.language.hints import Hint, Priority
from windrow.language.positions import position
from windrow.language.user_functions import UserFunction
from windrow.plan import nodes
from windrow.plan.predicates import TRUE, Predicate
from windrow.plan.predicates import predicate as rows_of
from windrow.windows.spec import NowWindow, RangeWindow, RowsWindow

AGGREGATES = frozenset(
    {"COUNT", "SUM", "AVG", "MIN", "MAX", "VAR_POP", "VAR_SAMP", "STDDEV_POP", "STDDEV_SAMP", "MEDIAN", "QUANTILE",
     "PERCENTILE_CONT", "PERCENTILE_DISC", "TOP_K", "MODE", "FREQUENT", "APPROX_COUNT_DISTINCT", "APPROX_QUANTILE",
     "APPROX_MEDIAN", "APPROX_TOP_K", "APPROX_FREQUENT", "HLL_SKETCH_AGG", "THETA_SKETCH_AGG",
     "KLL_SKETCH_AGG", "ITEMS_SKETCH_AGG"}
)  # fmt: skip

ONE_TIME = 0
"""The SLIDE of a query that is answered once, when it is asked."""

SUB_WINDOWS = frozenset({"FREQUENT", "APPROX_FREQUENT"})
"""They summarise every SLIDE of their window apart."""


@dataclass(frozen=True)
class Aggregation:
    """One aggregate of the select list: its name and the value it takes per row (None counts rows)."""

    name: str
    """As the registry of aggregates has it: COUNT_DISTINCT for COUNT(DISTINCT x)."""
    value: exp.Expr | None
    text: str
    parameters: tuple[float | int | bool, ...] = ()
    """φ, k, and whether the order is descending."""
    user: UserFunction | None = None
    """The class that computes it, if it is an aggregate of the user."""

    @cached_property
    def value_text(self) -> str:
        """The value, or * where rows are counted."""
        return "*" if self.value is None else self.value.sql("cql")


@dataclass(frozen=True)
class OrderTerm:
    """One term of ORDER BY over keys and aggregates."""

    value: exp.Expr
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class PeriodicAggregate:
    """What to slice (stream, predicate, keys, values), what to look up (window), what to make of it (the rest).

    `having`, `order` and `outputs` are over columns that are named like the keys and aggregates, by their SQL text.
    """

    stream: Stream
    window: RangeWindow
    """In ticks or, where `rows` is given, in tuples: on the axis of tuple numbers a ROWS window is a RANGE window."""
    slide: int
    """In the same unit; ONE_TIME for a question that is asked once."""
    predicate: exp.Expr | None
    keys: tuple[exp.Expr, ...]
    aggregations: tuple[Aggregation, ...]
    having: exp.Expr | None
    outputs: tuple[exp.Expr, ...]
    columns: tuple[Column, ...]
    order: tuple[OrderTerm, ...]
    limit: int | None
    offset: int
    rows: RowsWindow | None = None
    """The window as it is written, if it counts tuples."""
    hint: Hint | None = None
    """The synopsis that the query asks for."""
    priority: Priority | None = None
    """Who goes first among equal deadlines, in live runs."""
    apart: str = ""
    """For experiments: queries that share nothing have different ones."""

    @property
    def columns_read(self) -> frozenset[str]:
        """The stream's columns that are needed to answer the query, its time column included."""
        parts = [self.predicate, *self.keys, *(one.value for one in self.aggregations)]
        names = {column.name for part in parts if part is not None for column in part.find_all(exp.Column)}
        names.update(() if self.rows is None else self.rows.partition_by)
        return frozenset(self.stream.column(name).name for name in (*names, self.stream.time))

    @property
    def key_names(self) -> tuple[str, ...]:
        """The columns that hold the keys of an answer row."""
        return tuple(key.sql("cql") for key in self.keys)

    @cached_property
    def rows_wanted(self) -> Predicate:
        """The rows that satisfy the predicate."""
        return rows_of(self.predicate)

    @cached_property
    def share_key(self) -> tuple[str, str, tuple[str, ...]]:
        """Queries with the same stream, rows and keys share their panes (thesis 8.3.1, rule SS1).

        A predicate that is not understood must have the same text: it must fail for the same rows too.
        """
        text = "" if self.predicate is None else self.predicate.sql("cql")
        if self.predicate is not None and self.rows_wanted.transparent:
            # The columns too: whoever stays when others have gone has read all that the panes need.
            names = sorted({column.name.lower() for column in self.predicate.find_all(exp.Column)})
            text = f"{', '.join(names)}: {self.rows_wanted.text}" if names or self.rows_wanted != TRUE else ""
        stream = self.stream.name.lower()
        return f"{stream} {self.apart}" if self.apart else stream, text, self.key_names


def in_panes(query: BoundQuery, plan: nodes.Output) -> PeriodicAggregate | None:
    """The physical plan of a query that shared panes can answer, else None: operators must maintain it."""
    try:
        return periodic_aggregate(query, plan)
    except UnsupportedError:
        call = _lists(query)
        if call is None:
            return None
        if not unsupported_parts(query):
            raise  # only the windows are wrong for it
        raise _no_lists(
            call, "so it runs over one window with SLIDE of one stream, and only there; use TOP_K"
        ) from None


def periodic_aggregate(query: BoundQuery, plan: nodes.Output, *, one_time: bool = False) -> PeriodicAggregate:
    """The physical plan, or an UnsupportedError that says which parts of the query the engine cannot run yet.

    A query that is asked `one_time` is answered once, now, and has no SLIDE.
    """
    refused = unsupported_parts(query, one_time=one_time)
    if refused:
        raise _refuse(refused[0].node, *(part.name for part in refused), one_time=one_time)
    slide = query.rows_slide if query.slide is None else query.slide
    if slide is None:
        slide = ONE_TIME
    node: nodes.Node = plan.input
    top: nodes.TopRows | None = None
    if isinstance(node, nodes.TopRows):
        top, node = node, node.input
    distinct = isinstance(node, nodes.Distinct)
    if isinstance(node, nodes.Distinct):
        node = node.input
    assert isinstance(node, nodes.Projection)
    projection, node = node, node.input
    having: exp.Expr | None = None
    if isinstance(node, nodes.Selection) and isinstance(node.input, nodes.GroupBy):
        having, node = node.predicate, node.input
    if isinstance(node, nodes.GroupBy):
        if distinct:
            raise _refuse(query.ast, "DISTINCT over an aggregate", one_time=one_time)
        keys, calls, node = node.keys, node.aggregates, node.input
    elif distinct:  # SELECT DISTINCT a, b is GROUP BY a, b
        keys = tuple({part.this.sql("cql"): part.this for part in projection.expressions}.values())
        calls = ()
    else:
        raise _refuse(query.ast, "a select list without aggregates or DISTINCT", one_time=one_time)
    predicate = None
    if isinstance(node, nodes.Selection):
        predicate, node = node.predicate, node.input
    assert isinstance(node, nodes.StreamWindow)
    stream, window = node.source.stream, node.source.window
    assert stream is not None
    rows = window if isinstance(window, RowsWindow) else None
    if rows is not None:
        window = RangeWindow(rows.count, rows.slide, rows.offset)
    elif isinstance(window, NowWindow):
        window = RangeWindow(1, window.slide)
    assert isinstance(window, RangeWindow)
    if rows is not None and rows.partition_by:
        _require_no_sub_windows(calls)
    aggregations = tuple(_aggregation(call, window, slide) for call in calls)
    replace = _Placeholders(keys, calls)
    terms = top.order if top is not None else ()
    return PeriodicAggregate(
        stream,
        window,
        slide,
        None if predicate is None else unqualified(predicate),
        tuple(unqualified(key) for key in keys),
        aggregations,
        None if having is None else replace(having),
        tuple(replace(part.this) for part in projection.expressions),
        projection.columns,
        tuple(OrderTerm(replace(term.this), *_direction(term)) for term in terms),
        top.limit if top is not None else None,
        top.offset if top is not None else 0,
        rows,
        query.hint,
        query.priority,
    )


def unqualified(expression: exp.Expr) -> exp.Expr:
    """The same expression with columns by name only, so that queries with different aliases share it."""
    result = expression.copy()
    for column in result.find_all(exp.Column):
        column.set("table", None)
    return result


def filtered_argument(call: AggregateCall) -> exp.Expr | None:
    """What a call aggregates: the rows that FILTER drops become NULLs, which no aggregate counts."""
    value = call.argument
    if call.filter is None:
        return value
    kept = exp.true() if value is None else value.copy()
    kept.type = types.BOOLEAN if value is None else value.type
    branch = exp.If(this=call.filter.copy(), true=kept)
    value = exp.Case(ifs=[branch])
    value.type = branch.type = kept.type
    return value


def _aggregation(call: AggregateCall, window: RangeWindow, slide: int) -> Aggregation:
    value = filtered_argument(call)
    name, parameters = registered_name(call)
    if name in SUB_WINDOWS:
        parameters += _sub_windows(call, window, slide)
    text = unqualified(call.node).sql("cql")
    return Aggregation(name, None if value is None else unqualified(value), text, parameters, call.user)


def registered_name(call: AggregateCall) -> tuple[str, tuple[float | int | bool, ...]]:
    """The name and parameters for the registry of aggregates."""
    match call.name:
        case "COUNT" | "SUM" | "AVG" if call.distinct:
            return f"{call.name}_DISTINCT", ()
        case "MEDIAN":
            return "PERCENTILE_CONT", (0.5, False)
        case "PERCENTILE_CONT" | "PERCENTILE_DISC":
            assert call.parameter is not None
            return call.name, (call.parameter, call.descending)
    return call.name, () if call.parameter is None else (call.parameter,)


def _sub_windows(call: AggregateCall, window: RangeWindow, slide: int) -> tuple[int, int]:
    """The step and phase of the edges of a window's sub-windows."""
    if slide == ONE_TIME:
        raise _no_lists(call, "which a one-time query does not have; register it with a SLIDE")
    if window.length is None or window.length % slide:
        raise _no_lists(
            call,
            "so it needs a window that is a multiple of its SLIDE; found a window of "
            f"{window.length} and SLIDE {slide}. Change one of them",
        )
    return slide, -window.offset % slide


def _lists(query: BoundQuery) -> AggregateCall | None:
    """The first FREQUENT: it runs in panes or nowhere."""
    calls = (aggregate_call(node) for node in query.ast.walk(prune=is_aggregate) if is_aggregate(node))
    return next((call for call in calls if call.name in SUB_WINDOWS), None)


def _require_no_sub_windows(calls: Iterable[AggregateCall]) -> None:
    for call in calls:
        if call.name in SUB_WINDOWS:
            raise _no_lists(call, "and the windows of PARTITION BY … ROWS do not slide together; use TOP_K")


def _no_lists(call: AggregateCall, why: str) -> UnsupportedError:
    line, column = position(call.node)
    return UnsupportedError(f"{call.name} keeps a list per SLIDE, {why}", line=line, column=column)


class _Placeholders:
    """Replaces group keys and aggregate calls by columns named like them, so that messages read like the query."""

    def __init__(self, keys: tuple[exp.Expr, ...], calls: tuple[AggregateCall, ...]) -> None:
        parts = [*keys, *(call.node for call in calls)]
        self._columns = {part.sql("cql"): unqualified(part).sql("cql") for part in parts}

    def __call__(self, expression: exp.Expr) -> exp.Expr:
        return self._replace(expression.copy())

    def _replace(self, node: exp.Expr) -> exp.Expr:
        name = self._columns.get(node.sql("cql"))
        if name is not None:
            column = exp.column(exp.to_identifier(name, quoted=True))
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


def _direction(term: exp.Expr) -> tuple[bool, bool]:
    return bool(term.args.get("desc")), bool(term.args.get("nulls_first"))


@dataclass(frozen=True)
class Part:
    """A part of a query by name, and where it stands."""

    name: str
    node: exp.Expr


def unsupported_parts(query: BoundQuery, *, one_time: bool = False) -> list[Part]:
    """What of a bound query the engine cannot run yet, in the order of the text."""
    parts = [] if query.operator in (None, "RSTREAM") else [Part(query.operator, query.ast)]
    for node in query.ast.walk(bfs=False):
        name = _unsupported(node, query)
        if name is not None and name not in {part.name for part in parts}:
            parts.append(Part(name, node))
    if not query.periodic and not one_time:
        parts.append(Part("a continuous query (without SLIDE)", query.ast))
    return parts


def _unsupported(node: exp.Expr, query: BoundQuery) -> str | None:
    match node:
        case exp.SetOperation():
            return type(node).__name__.upper()
        case exp.Join():
            return "a join"
        case exp.Exists():
            return "NOT EXISTS" if isinstance(node.parent, exp.Not) else "EXISTS"
        case exp.In() if node.args.get("query") is not None:
            return "NOT IN (SELECT …)" if isinstance(node.parent, exp.Not) else "IN (SELECT …)"
        case exp.Subquery():
            return "a subquery"
        case exp.Select() if isinstance(node.parent, exp.Exists):
            return None
        case exp.Table() if query.sources[node.meta.get(SOURCE_ID, 0)].relation is not None:
            return "a relation"
        case syntax.WindowSpec() if node.args["kind"] == "RANGE" and node.args.get("length") is None:
            return "RANGE UNBOUNDED"
    if is_aggregate(node) and not isinstance(node, (exp.Filter, exp.WithinGroup)):
        whole = node.parent if isinstance(node.parent, exp.WithinGroup) else node
        call = aggregate_call(whole)
        if call.user is None and call.name not in AGGREGATES:
            return call.name
    return None


def _refuse(node: exp.Expr, *parts: str, one_time: bool = False) -> UnsupportedError:
    line, column = position(node)
    listed = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    runs = "answers one-time aggregates over a RANGE or ROWS window of one stream"
    if not one_time:
        runs = "runs aggregates over a RANGE or ROWS window with SLIDE of one stream"
    message = f"{listed} cannot be run by the engine yet; it {runs}"
    return UnsupportedError(message, line=line, column=column)
