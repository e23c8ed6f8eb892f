"""A bound query → the windowless SQL that DuckDB answers, with a table per window and relation.

Every output is cast to the type that the binder gave it. Where SQL leaves the order of ties open (ORDER BY, LIMIT)
the remaining output columns decide, ascending, NULLs last.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from windrow.errors import UnsupportedError
from windrow.language import types
from windrow.language.aggregates import aggregate_call, is_aggregate
from windrow.language.bound import SOURCE_ID, BoundQuery, Source
from windrow.language.positions import position
from windrow.testing.aggregate_render import EXACT, SKETCHES, render_aggregate
from windrow.testing.relation_state import VALID_FROM, VALID_TO
from windrow.testing.render import to_duckdb
from windrow.windows.spec import NowWindow, RangeWindow

TIME, PANE, EXPIRY = "__ts", "__pane", "__expiry"


@dataclass
class RenderedQuery:
    """SQL over the tables named by `table_name`; what Python makes of output columns that are only collected there."""

    sql: str
    frequent: dict[str, int] = field(default_factory=dict)
    """k for each output column that is a FREQUENT."""
    sketches: dict[str, tuple[str, int]] = field(default_factory=dict)
    """The aggregate, and lg_k or k if it has one, for each output column that is a sketch."""


def table_name(source_id: int) -> str:
    """The table that stands for a source of the query."""
    return f"__source_{source_id}"


def render_query(query: BoundQuery, *, with_expiry: bool = False) -> RenderedQuery:
    """The query as DuckDB SQL; `with_expiry` adds the instant at which the first external window drops the row."""
    renderer = _Renderer(query)
    sql = renderer.query(query.ast, [column.type for column in query.columns], with_expiry=with_expiry)
    return RenderedQuery(sql, renderer.frequent, renderer.sketches)


class _Renderer:
    def __init__(self, query: BoundQuery) -> None:
        self._query = query
        self._sources = {source.id: source for source in query.sources}
        self.frequent: dict[str, int] = {}
        self.sketches: dict[str, tuple[str, int]] = {}

    # ---- queries --------------------------------------------------------------------------------------------------

    def query(self, ast: exp.Expr, wanted: list[exp.DataType] | None = None, *, with_expiry: bool = False) -> str:
        """A SELECT or set operation, its outputs cast to the types `wanted` when they are given."""
        if isinstance(ast, exp.Subquery):
            return self.query(ast.this, wanted)
        if isinstance(ast, exp.SetOperation):
            return self._set_operation(ast, wanted)
        assert isinstance(ast, exp.Select)
        return self._select(ast, wanted or output_types(ast), with_expiry=with_expiry)

    def _select(self, select: exp.Select, wanted: list[exp.DataType], *, with_expiry: bool) -> str:
        outputs = []
        for projection, type_ in zip(select.expressions, wanted, strict=True):
            outputs.append(f"{self._output(select, projection, type_)} AS {quoted(projection.alias)}")
        if with_expiry:
            outputs.append(f"{self._expiry()} AS {quoted(EXPIRY)}")
        words = ["SELECT DISTINCT" if select.args.get("distinct") is not None else "SELECT", ", ".join(outputs)]
        words += ["FROM", self._from(select)]
        conditions = [f"({self.scalar(select.args['where'].this)})"] if select.args.get("where") is not None else []
        conditions += self._validity(select)
        if conditions:
            words += ["WHERE", " AND ".join(conditions)]
        group = select.args.get("group")
        if group is not None:
            words += ["GROUP BY", ", ".join(self._no_ordinal(key) for key in group.expressions)]
        if select.args.get("having") is not None:
            words += ["HAVING", self.scalar(select.args["having"].this)]
        return " ".join(words) + self._order_and_limit(select, len(wanted))

    def _output(self, select: exp.Select, projection: exp.Expr, type_: exp.DataType) -> str:
        value = projection.this if isinstance(projection, exp.Alias) else projection
        if is_aggregate(value):
            call = aggregate_call(value)
            if EXACT.get(call.name, call.name) == "FREQUENT":
                if select is not self._query.ast:
                    raise _unsupported(value, "FREQUENT in a subquery has no reference answer")
                assert isinstance(call.parameter, int)
                self.frequent[projection.alias] = call.parameter
                return self._frequent(select, value)
            if call.name in SKETCHES:
                if select is not self._query.ast or select.args.get("distinct") is not None:
                    raise _unsupported(value, f"{call.name} in a subquery or with DISTINCT has no reference answer")
                self.sketches[projection.alias] = call.name, int(call.parameter or 0)
                return self._aggregate(value, collected=True)
        return cast(self.scalar(value), type_)

    def _set_operation(self, ast: exp.SetOperation, wanted: list[exp.DataType] | None) -> str:
        common = output_types(ast)
        word = {"union": "UNION", "except": "EXCEPT", "intersect": "INTERSECT"}[ast.key]
        keep = "" if ast.args.get("distinct") else " ALL"
        sql = f"({self.query(ast.this, common)}) {word}{keep} ({self.query(ast.expression, common)})"
        names = output_names(ast)
        pairs = zip(names, wanted or common, strict=True)
        outputs = [f"{cast(quoted(name), type_)} AS {quoted(name)}" for name, type_ in pairs]
        return f"SELECT {', '.join(outputs)} FROM ({sql}) AS __both" + self._order_and_limit(ast, len(names))

    def _order_and_limit(self, query: exp.Expr, columns: int) -> str:
        order, limit, offset = (query.args.get(clause) for clause in ("order", "limit", "offset"))
        if order is None and limit is None and offset is None:
            return ""
        terms, used = [], set()
        names = [name.lower() for name in output_names(query)]
        outputs = [] if isinstance(query, exp.SetOperation) else [_bare(p).sql("cql") for p in query.expressions]
        for ordered in order.expressions if order is not None else ():
            term = ordered.this
            place: int | None = None
            if isinstance(query, exp.SetOperation):
                place = int(term.name) if isinstance(term, exp.Literal) else names.index(term.name.lower()) + 1
            elif term.sql("cql") in outputs:
                place = outputs.index(term.sql("cql")) + 1
            used.add(place)
            direction = "DESC" if ordered.args.get("desc") else "ASC"
            nulls = "FIRST" if ordered.args.get("nulls_first") else "LAST"
            terms.append(f"{place or self._no_ordinal(term)} {direction} NULLS {nulls}")
        terms += [f"{place} ASC NULLS LAST" for place in range(1, columns + 1) if place not in used]
        sql = f" ORDER BY {', '.join(terms)}"
        for word, clause in (("LIMIT", limit), ("OFFSET", offset)):
            if clause is not None:
                if self.frequent or self.sketches:
                    raise _unsupported(clause, f"FREQUENT or a sketch with {word} has no reference answer")
                sql += f" {word} {clause.expression.name}"
        return sql

    def _no_ordinal(self, node: exp.Expr) -> str:
        """A constant must not be read as the position of an output column."""
        sql = self.scalar(node)
        return cast(sql, _type(node)) if isinstance(node, exp.Literal) else sql

    # ---- FROM -----------------------------------------------------------------------------------------------------

    def _from(self, select: exp.Select) -> str:
        words = [self._item(select.args["from_"].this)]
        for join in select.args.get("joins") or ():
            side = (join.args.get("side") or "INNER").upper()
            if join.args.get("on") is not None:
                words.append(f"{side} JOIN {self._item(join.this)} ON {self.scalar(join.args['on'])}")
            elif join.args.get("using"):
                names = ", ".join(quoted(part.name) for part in join.args["using"])
                words.append(f"{side} JOIN {self._item(join.this)} USING ({names})")
            else:
                words.append(f"CROSS JOIN {self._item(join.this)}")
        return " ".join(words)

    def _item(self, node: exp.Expr) -> str:
        source = self._source(node)
        if source is not None:
            return f"{table_name(source.id)} AS {quoted(source.alias)}"
        return f"({self.query(node.this)}) AS {quoted(node.alias)}"

    def _source(self, node: exp.Expr) -> Source | None:
        return self._sources[node.meta[SOURCE_ID]] if SOURCE_ID in node.meta else None

    def _validity(self, select: exp.Select) -> list[str]:
        """A row of an NRR joins what arrived after it came and not after it went (thesis, Definition 3.1)."""
        items = [select.args["from_"].this, *(join.this for join in select.args.get("joins") or ())]
        sources = [self._source(item) for item in items]
        versions = [source for source in sources if source is not None and source.relation is not None]
        versions = [source for source in versions if source.relation is not None and source.relation.non_retroactive]
        if not versions:
            return []
        streams = [source for source in sources if source is not None and source.window is not None]
        outer = any(join.args.get("side") for join in select.args.get("joins") or ())
        if not streams or outer or None in sources:
            raise _unsupported(
                items[0],
                f"{versions[0].name} is non-retroactive: it has a reference answer only in an inner join with a stream "
                "that stands in the same FROM",
            )
        times = ", ".join(f"{quoted(source.alias)}.{TIME}" for source in streams)
        arrived = f"greatest({times})" if len(streams) > 1 else times
        conditions = []
        for source in versions:
            start, end = (f"{quoted(source.alias)}.{bound}" for bound in (VALID_FROM, VALID_TO))
            conditions.append(f"({start} IS NULL OR {start} < {arrived}) AND ({end} IS NULL OR {arrived} <= {end})")
        return conditions

    def _expiry(self) -> str:
        """The first instant at which an external window no longer holds its tuple; NULL when there is none."""
        expiries = []
        for source in self._sources.values():
            window = source.window
            if window is None or window.internal:
                continue
            if isinstance(window, NowWindow):
                expiries.append(f"{quoted(source.alias)}.{TIME} + 1")
            elif not isinstance(window, RangeWindow):
                message = f"{source.alias} is a ROWS window beside an INTERNAL one: it has no reference answer"
                raise _unsupported(self._query.ast, message)
            elif window.reach is not None:
                expiries.append(f"{quoted(source.alias)}.{TIME} + {window.reach}")
        first = f"least({', '.join(expiries)})" if expiries else "NULL"
        return f"CAST({first} AS BIGINT)"

    # ---- expressions ----------------------------------------------------------------------------------------------

    def scalar(self, node: exp.Expr) -> str:
        """An expression; its aggregates and subqueries stand as columns while render.to_duckdb does the rest."""
        parts: dict[str, str] = {}
        root = exp.Paren(this=node.copy())
        root.type = _type(node)
        originals = list(_leaves(node))
        for original, copy in zip(originals, list(_leaves(root.this)), strict=True):
            mark = f"__part_{len(parts)}__"
            column = exp.Column(this=exp.to_identifier(mark, quoted=True))
            column.type = _type(original)
            copy.replace(column)
            parts[mark] = self._part(original)
        sql = to_duckdb(root.this)
        for mark, part in parts.items():
            assert f'"{mark}"' in sql
            sql = sql.replace(f'"{mark}"', part)
        return sql

    def _part(self, node: exp.Expr) -> str:
        if is_aggregate(node):
            return self._aggregate(node)
        if isinstance(node, exp.Exists):
            return f"EXISTS ({self.query(node.this)})"
        if isinstance(node, exp.In):
            inner = node.args["query"]
            theirs = output_types(inner)[0]
            common = types.common_type(_type(node.this), theirs)
            assert common is not None
            return f"({cast(self.scalar(node.this), common)} IN ({self.query(inner, [common])}))"
        return f"({self.query(node.this)})"

    def _aggregate(self, node: exp.Expr, pane: str | None = None, *, collected: bool = False) -> str:
        call = aggregate_call(node)
        name = EXACT.get(call.name, call.name)
        if (name == "FREQUENT" and pane is None) or (name in SKETCHES and not collected):
            raise _unsupported(node, f"{name} has a reference answer only as an item of the select list")
        argument = None if call.argument is None else self.scalar(call.argument)
        condition = None if call.filter is None else self.scalar(call.filter)
        sql = render_aggregate(call, argument, condition, pane)
        return sql if pane is not None or collected else cast(sql, _type(node))

    def _frequent(self, select: exp.Select, node: exp.Expr) -> str:
        source = self._source(select.args["from_"].this)
        windows = [s.window for s in self._sources.values() if s.window is not None]
        window = windows[0]
        length = window.length if isinstance(window, RangeWindow) else getattr(window, "count", None)
        if (
            source is None
            or len(self._sources) != 1
            or window.slide is None
            or length is None
            or length % window.slide
            or getattr(window, "partition_by", ())
            or select.args.get("distinct") is not None
        ):
            message = "FREQUENT has a reference answer only over one window that is a multiple of its SLIDE"
            raise _unsupported(node, message)
        return self._aggregate(node, f"{quoted(source.alias)}.{PANE}")


def _leaves(node: exp.Expr) -> list[exp.Expr]:
    """The outermost aggregates and subqueries of an expression."""
    found, stack = [], [node]
    while stack:
        part = stack.pop()
        is_in = isinstance(part, exp.In) and part.args.get("query") is not None
        if is_aggregate(part) or is_in or isinstance(part, (exp.Exists, exp.Subquery)):
            found.append(part)
        else:
            stack.extend(part.iter_expressions())
    return found


def output_types(ast: exp.Expr) -> list[exp.DataType]:
    """The types of a query's outputs, as the binder has found them."""
    if isinstance(ast, exp.Subquery):
        return output_types(ast.this)
    if isinstance(ast, exp.SetOperation):
        pairs = zip(output_types(ast.this), output_types(ast.expression), strict=True)
        common = [types.common_type(left, right) for left, right in pairs]
        return [type_ for type_ in common if type_ is not None]
    return [_type(_bare(projection)) for projection in ast.expressions]


def output_names(ast: exp.Expr) -> list[str]:
    """The names of a query's outputs; those of a set operation are those of its left side."""
    while isinstance(ast, (exp.Subquery, exp.SetOperation)):
        ast = ast.this
    return [projection.alias for projection in ast.expressions]


def cast(sql: str, type_: exp.DataType) -> str:
    """A cast to exactly that type."""
    return sql if types.is_null(type_) else f"CAST({sql} AS {type_.sql('duckdb')})"


def quoted(name: str) -> str:
    """A name as SQL, whatever it contains."""
    return '"' + name.replace('"', '""') + '"'


def _bare(projection: exp.Expr) -> exp.Expr:
    return projection.this if isinstance(projection, exp.Alias) else projection


def _type(node: exp.Expr) -> exp.DataType:
    return node.type if isinstance(node.type, exp.DataType) else types.NULL


def _unsupported(node: exp.Expr, message: str) -> UnsupportedError:
    line, column = position(node)
    return UnsupportedError(message, line=line, column=column)
