"""Binding: names to columns, expressions to types, windows to ticks; what makes no sense is refused at its place."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from windrow.errors import BindError
from windrow.language import nodes, types
from windrow.language.aggregates import aggregate_call, is_aggregate, return_type
from windrow.language.bound import SOURCE_ID, BoundQuery, Source
from windrow.language.catalog import RESERVED_COLUMNS, Catalog, Column, Relation, Stream
from windrow.language.hints import take_hints
from windrow.language.output_windows import without_output_windows
from windrow.language.parse import normalise, parse_one
from windrow.language.positions import error, position
from windrow.language.restrictions import check_operator, check_windows, is_append_only
from windrow.language.scope import OUTER, Scope
from windrow.language.stack import deep_stack
from windrow.language.typing import infer
from windrow.language.user_functions import mark_calls
from windrow.language.window_binder import bind_window
from windrow.windows.spec import Window

_SELECT_CLAUSES = frozenset(
    {"expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "distinct"}
)


def bind(query: str | exp.Expr, catalog: Catalog) -> BoundQuery:
    """Bind one query, given as text or as a parsed statement (which is not changed)."""
    try:
        if isinstance(query, str):
            return _bind(parse_one(query), query, catalog)
        return _bind(normalise(query.copy()), query.sql("cql"), catalog)
    except RecursionError:
        raise BindError("the query is nested too deeply; split it") from None


def _bind(statement: exp.Expr, text: str, catalog: Catalog) -> BoundQuery:
    with deep_stack():
        return _Binder(catalog).bind(statement, text)


class _Binder:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._sources: list[Source] = []

    def bind(self, statement: exp.Expr, text: str) -> BoundQuery:
        operator, output_window_node, ast = None, None, statement
        if isinstance(ast, nodes.StreamOperator):
            operator, output_window_node, ast = ast.args["kind"], ast.args.get("window"), ast.this
        while isinstance(ast, exp.Subquery) and ast.is_wrapper:
            ast = ast.this
        if not isinstance(ast, exp.Query):
            raise error(statement, "expected a query: SELECT … FROM stream [window] …")
        hints = take_hints(ast)
        mark_calls(ast, self._catalog.functions)
        ast = without_output_windows(ast)
        ast.pop()
        columns = self._query(ast, None)
        streams = [source for source in self._sources if source.window is not None]
        if not streams:
            raise error(statement, "the query reads no stream; a persistent query needs at least one in FROM")
        timestamps = self._timestamps(statement)
        slide, rows_slide = check_windows(self._sources, ast)
        output_window: Window | None = None
        if output_window_node is not None:
            output_window = bind_window(output_window_node, columns, timestamps=timestamps)
        bound = BoundQuery(
            text, ast, tuple(self._sources), columns, timestamps, slide, rows_slide, operator, output_window,
            hints.synopsis, hints.priority,
        )  # fmt: skip
        check_operator(bound, statement)
        return bound

    def _timestamps(self, statement: exp.Expr) -> bool:
        kinds: dict[bool, str] = {}
        for source in self._sources:
            if source.stream is not None:
                kinds.setdefault(source.stream.timestamps, source.stream.name)
            if source.subquery is not None:
                kinds.setdefault(source.subquery.timestamps, source.alias)
        if len(kinds) > 1:
            raise error(
                statement, f"{kinds[True]} has TIMESTAMP time and {kinds[False]} has BIGINT ticks; they do not mix"
            )
        return next(iter(kinds))

    # ---- queries --------------------------------------------------------------------------------------------------

    def _query(self, query: exp.Expr, outer: Scope | None) -> tuple[Column, ...]:
        if isinstance(query, exp.Select):
            return self._select(query, outer)
        if isinstance(query, exp.SetOperation):
            return self._set_operation(query, outer)
        if isinstance(query, exp.Subquery) and not query.args.get("alias"):
            self._only(query, {"this"}, "a parenthesised query")
            return self._query(query.this, outer)
        if isinstance(query, nodes.StreamOperator):
            # The thesis writes Rstream inside EXISTS; there it only names the relation that is already meant.
            if query.args["kind"] != "RSTREAM":
                raise error(
                    query,
                    f"{query.args['kind']} inside a query needs a window: FROM ({query.args['kind']}(…)) [ROWS 10]",
                )
            inner = query.this
            query.replace(inner)
            return self._query(inner, outer)
        raise error(query, f"{query.key.upper()} is not a query that can be registered")

    def _set_operation(self, query: exp.SetOperation, outer: Scope | None) -> tuple[Column, ...]:
        self._only(query, {"this", "expression", "distinct", "order", "limit", "offset"}, query.key.upper())
        left = self._query(query.this, outer)
        right = self._query(query.expression, outer)
        if len(left) != len(right):
            raise error(
                query,
                f"{query.key.upper()} needs the same number of columns on both sides: {len(left)} and {len(right)}",
            )
        columns = []
        for ours, theirs in zip(left, right, strict=True):
            common = types.common_type(ours.type, theirs.type)
            if common is None:
                raise error(
                    query,
                    f"{query.key.upper()}: column {ours.name} is {types.type_name(ours.type)} on the left "
                    f"and {types.type_name(theirs.type)} on the right",
                )
            columns.append(Column(ours.name, common))
        output = Scope()
        output.items[""] = ("", tuple(columns))
        for ordered in self._order_terms(query):
            term = ordered.this
            if isinstance(term, exp.Literal) and term.is_int:
                self._ordinal(term, len(columns), "ORDER BY")
            elif isinstance(term, exp.Column) and not term.table:
                output.resolve(term)
                term.set("table", None)
            else:
                raise error(term, "ORDER BY of a set operation takes output names or positions")
        self._check_limit(query)
        return tuple(columns)

    def _select(self, select: exp.Select, outer: Scope | None) -> tuple[Column, ...]:
        self._only(select, _SELECT_CLAUSES, "SELECT")
        distinct = select.args.get("distinct")
        if distinct is not None and distinct.args.get("on") is not None:
            raise error(distinct.args["on"], "DISTINCT ON is not part of the language; use GROUP BY")
        for window in select.find_all(exp.Window):
            raise error(window, "OVER is not part of the language; put the window behind the stream: FROM s [RANGE …]")
        scope = Scope(outer)
        self._from(select, scope)
        self._expand_stars(select, scope)
        self._substitute_names(select, scope)
        where = select.args.get("where")
        if where is not None:
            self._condition(where.this, scope, "WHERE", aggregates=False)
        group = select.args.get("group")
        keys: list[exp.Expr] = []
        if group is not None:
            self._only(group, {"expressions"}, "GROUP BY")
            for key in group.expressions:
                self._expression(key, scope, aggregates=False, what="GROUP BY")
                keys.append(key)
        columns = self._output(select, scope)
        having = select.args.get("having")
        if having is not None:
            self._condition(having.this, scope, "HAVING", aggregates=True)
        order = [ordered.this for ordered in self._order_terms(select)]
        for term in order:
            self._expression(term, scope, aggregates=True, what="ORDER BY")
        parts = [*select.expressions, *([having.this] if having else []), *order]
        if keys or having is not None or any(True for part in parts for _ in _aggregates(part)):
            grouped = {key.sql("cql") for key in keys}
            for part in parts:
                self._check_grouped(part, grouped)
        self._check_limit(select)
        return columns

    # ---- FROM -----------------------------------------------------------------------------------------------------

    def _from(self, select: exp.Select, scope: Scope) -> None:
        from_ = select.args.get("from_")
        if from_ is None:
            raise error(select, "the query has no FROM; name the stream and its window: FROM s [RANGE 1 MIN]")
        self._item(from_.this, scope)
        for join in select.args.get("joins") or ():
            self._join(join, scope)

    def _join(self, join: exp.Join, scope: Scope) -> None:
        self._only(join, {"this", "on", "using", "kind", "side"}, "JOIN")
        kind, side = (join.args.get("kind") or "").upper(), (join.args.get("side") or "").upper()
        if kind not in ("", "INNER", "CROSS", "OUTER"):
            raise error(join, f"{kind} JOIN is not part of the language; use EXISTS or NOT EXISTS")
        before = set(scope.items)
        alias = self._item(join.this, scope)
        using = join.args.get("using") or ()
        if join.args.get("on") is not None:
            self._condition(join.args["on"], scope, "ON", aggregates=False)
        elif not using and (kind in ("INNER", "OUTER") or side):
            raise error(join, "JOIN needs ON or USING")
        if using and side in ("RIGHT", "FULL"):
            raise error(join, f"USING with a {side} JOIN is not part of the language; write ON")
        for part in using:
            name = part.name.lower()
            left = [item for item in before if any(c.name.lower() == name for c in scope.items[item][1])]
            right = [c for c in scope.items[alias.lower()][1] if c.name.lower() == name]
            if not left or not right:
                raise error(part, f"USING ({part.name}): both sides must have that column")
            home = scope.merged.get(name, left[0])
            if len(left) > 1 and name not in scope.merged:
                raise error(part, f"USING ({part.name}): the column is ambiguous on the left; write ON")
            ours = next(c for c in scope.items[home][1] if c.name.lower() == name)
            if types.common_type(ours.type, right[0].type) is None:
                raise error(
                    part, f"USING ({part.name}): {types.type_name(ours.type)} and {types.type_name(right[0].type)}"
                )
            scope.merged[name] = home

    def _item(self, node: exp.Expr, scope: Scope) -> str:
        alias = node.args.get("alias")
        if alias is not None and alias.args.get("columns"):
            raise error(node, "column aliases in FROM are not part of the language; rename in the select list")
        if isinstance(node, exp.Table):
            return self._table(node, scope)
        if isinstance(node, nodes.Windowed):
            inner = node.this
            if isinstance(inner, exp.Table):
                return self._windowed_stream(node, inner, scope)
            return self._windowed_subquery(node, inner, scope)
        if isinstance(node, exp.Subquery):
            if not node.alias:
                node.set("alias", exp.TableAlias(this=exp.to_identifier(f"subquery_{len(scope.items) + 1}")))
            self._only(node, {"this", "alias"}, "a subquery in FROM")
            columns = self._query(node.this, None)
            scope.add(node.alias, columns, node)
            return str(node.alias)
        raise error(node, f"{node.key.upper()} cannot stand in FROM; a stream, a relation or a subquery can")

    def _table(self, table: exp.Table, scope: Scope) -> str:
        found = self._lookup(table)
        alias = table.alias or found.name
        if isinstance(found, Stream):
            # A stream without a window is unbounded.
            table_alias = table.args.get("alias")
            table.set("alias", None)
            windowed = nodes.Windowed(window=nodes.WindowSpec(kind="RANGE"), alias=table_alias)
            table.replace(windowed)
            windowed.set("this", table)
            return self._windowed_stream(windowed, table, scope)
        place = position(table)
        self._add_source(table, Source(len(self._sources), alias, found.columns, relation=found, place=place))
        scope.add(alias, found.columns, table)
        return alias

    def _windowed_stream(self, node: nodes.Windowed, table: exp.Table, scope: Scope) -> str:
        found = self._lookup(table)
        if isinstance(found, Relation):
            raise error(node, f"{found.name} is a relation and has no window; only streams have")
        window = bind_window(node.args["window"], found.columns, timestamps=found.timestamps)
        alias = node.alias or found.name
        self._add_source(node, Source(len(self._sources), alias, found.columns, stream=found, window=window))
        scope.add(alias, found.columns, node)
        return alias

    def _windowed_subquery(self, node: nodes.Windowed, subquery: exp.Expr, scope: Scope) -> str:
        inner_ast = subquery.this if isinstance(subquery, exp.Subquery) else subquery
        inner = _Binder(self._catalog).bind(inner_ast.copy(), inner_ast.sql("cql"))
        if not is_append_only(inner):
            raise error(
                node,
                "the subquery's answers are taken back as its windows move, so they cannot be windowed; "
                "add INTERNAL to its windows, or use ISTREAM",
            )
        window = bind_window(node.args["window"], inner.columns, timestamps=inner.timestamps)
        alias = node.alias or f"subquery_{len(scope.items) + 1}"
        self._add_source(node, Source(len(self._sources), alias, inner.columns, subquery=inner, window=window))
        scope.add(alias, inner.columns, node)
        return alias

    def _add_source(self, node: exp.Expr, source: Source) -> None:
        node.meta[SOURCE_ID] = source.id
        self._sources.append(source)

    def _lookup(self, table: exp.Table) -> Stream | Relation:
        if table.args.get("db") or not isinstance(table.this, exp.Identifier):
            raise error(table, f"{table.sql('cql')} is not the name of a stream or relation")
        self._only(table, {"this", "alias"}, "a table in FROM")
        found = self._catalog.get(table.name)
        if found is None:
            raise error(table, f"unknown stream or relation {table.name}{self._catalog.suggestion(table.name)}")
        return found

    # ---- the select list ------------------------------------------------------------------------------------------

    def _expand_stars(self, select: exp.Select, scope: Scope) -> None:
        expanded: list[exp.Expr] = []
        for projection in select.expressions:
            is_star = isinstance(projection, exp.Star)
            if not is_star and not (isinstance(projection, exp.Column) and isinstance(projection.this, exp.Star)):
                expanded.append(projection)
                continue
            star = projection if is_star else projection.this
            if any(star.args.get(key) for key in star.args):
                raise error(projection, "EXCLUDE, REPLACE and RENAME behind * are not part of the language")
            table = "" if is_star else projection.table
            if table and table.lower() not in scope.items:
                raise error(projection, f"there is no {table} in FROM")
            for key, (alias, columns) in scope.items.items():
                if table and key != table.lower():
                    continue
                expanded.extend(
                    exp.column(exp.to_identifier(column.name), table=alias)
                    for column in columns
                    if table or scope.merged.get(column.name.lower(), key) == key
                )
        select.set("expressions", expanded)

    def _substitute_names(self, select: exp.Select, scope: Scope) -> None:
        """Positions and output names in GROUP BY, HAVING and ORDER BY become the expressions that they mean."""
        aliases: dict[str, exp.Expr] = {p.alias.lower(): p.this for p in select.expressions if isinstance(p, exp.Alias)}
        outputs: list[exp.Expr] = [p.this if isinstance(p, exp.Alias) else p for p in select.expressions]
        inputs = {column.name.lower() for _, columns in scope.items.values() for column in columns}

        def meaning(node: exp.Expr, clause: str, *, prefer_alias: bool) -> exp.Expr | None:
            if isinstance(node, exp.Literal) and node.is_int and clause != "HAVING":
                return outputs[self._ordinal(node, len(outputs), clause) - 1]
            name = node.name.lower() if isinstance(node, exp.Column) and not node.table else ""
            return aliases.get(name) if prefer_alias or name not in inputs else None

        group = select.args.get("group")
        for key in list(group.expressions) if group is not None else ():
            replacement = meaning(key, "GROUP BY", prefer_alias=False)
            if replacement is not None:
                key.replace(replacement.copy())
        for ordered in self._order_terms(select):
            replacement = meaning(ordered.this, "ORDER BY", prefer_alias=True)
            if replacement is not None:
                ordered.set("this", replacement.copy())
        having = select.args.get("having")
        if having is not None:
            for column in list(having.find_all(exp.Column)):
                if column.find_ancestor(exp.Query) not in (select, None):
                    continue
                replacement = meaning(column, "HAVING", prefer_alias=False)
                if replacement is not None:
                    column.replace(exp.paren(replacement.copy(), copy=False))

    def _output(self, select: exp.Select, scope: Scope) -> tuple[Column, ...]:
        if not select.expressions:
            raise error(select, "the select list is empty")
        columns: list[Column] = []
        taken: set[str] = set()
        repeated: dict[str, int] = {}
        named: list[exp.Expr] = []
        for projection in select.expressions:
            value = projection.this if isinstance(projection, exp.Alias) else projection
            if isinstance(projection, exp.Aliases):
                raise error(projection, "one expression takes one alias")
            written = value.name if isinstance(value, exp.Column) else value.sql("cql").lower()
            type_ = self._expression(value, scope, aggregates=True, what="SELECT")
            if isinstance(projection, exp.Alias):
                name = projection.alias
                if name.lower() in taken:
                    raise error(projection.args["alias"], f"two output columns are named {name}; rename one of them")
            else:
                name = written
                while name.lower() in taken:
                    repeated[written] = repeated.get(written, 0) + 1
                    name = f"{written}_{repeated[written]}"
            place = projection.args["alias"] if isinstance(projection, exp.Alias) else projection
            if not name.strip():
                raise error(place, f"an output column needs a name that is not blank, found {name!r}")
            if name.lower() in RESERVED_COLUMNS:
                raise error(place, f"the output name {name} is reserved; rename the column with AS")
            taken.add(name.lower())
            columns.append(Column(name, type_))
            named.append(
                projection
                if isinstance(projection, exp.Alias)
                else exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True))
            )
        select.set("expressions", named)
        return tuple(columns)

    # ---- expressions ----------------------------------------------------------------------------------------------

    def _condition(self, node: exp.Expr, scope: Scope, clause: str, *, aggregates: bool) -> None:
        found = self._expression(node, scope, aggregates=aggregates, what=clause)
        if types.kind(found) not in (exp.DType.BOOLEAN, exp.DType.NULL):
            raise error(node, f"{clause} needs a condition, but {node.sql('cql')} is {types.type_name(found)}")

    def _expression(self, node: exp.Expr, scope: Scope, *, aggregates: bool, what: str) -> exp.DataType:
        known: dict[int, exp.DataType] = {}
        for aggregate in list(_aggregates(node)):
            if not aggregates:
                raise error(aggregate, f"{what} cannot contain an aggregate; use HAVING or a subquery")
            call = aggregate_call(aggregate)
            argument_type = None
            for part in (call.argument, call.filter):
                if part is None:
                    continue
                for nested in _aggregates(part):
                    raise error(
                        nested, f"{call.name} of an aggregate is not defined; aggregate the subquery's output instead"
                    )
            if call.argument is not None:
                argument_type = self._expression(call.argument, scope, aggregates=False, what=call.name)
            if call.filter is not None:
                self._condition(call.filter, scope, "FILTER", aggregates=False)
            aggregate.type = known[id(aggregate)] = return_type(call, argument_type)
        for subquery in list(_subqueries(node)):
            known[id(subquery)] = self._subquery(subquery, scope)
        return infer(node, scope.resolve, lambda part: known.get(id(part)))

    def _subquery(self, node: exp.Expr, scope: Scope) -> exp.DataType:
        if isinstance(node, exp.Exists):
            self._query(node.this, scope)
            node.type = types.BOOLEAN
            return types.BOOLEAN
        if isinstance(node, exp.In):
            left = self._expression(node.this, scope, aggregates=True, what="IN")
            columns = self._query(node.args["query"], scope)
            self._one_column(node, columns)
            if types.common_type(left, columns[0].type) is None:
                raise error(node, f"IN compares {types.type_name(left)} with {types.type_name(columns[0].type)}")
            node.type = types.BOOLEAN
            return types.BOOLEAN
        columns = self._query(node.this, scope)
        self._one_column(node, columns)
        node.type = columns[0].type
        return columns[0].type

    def _one_column(self, node: exp.Expr, columns: tuple[Column, ...]) -> None:
        if len(columns) != 1:
            raise error(node, f"the subquery must have one column, but has {len(columns)}")

    def _check_grouped(self, node: exp.Expr, grouped: set[str]) -> None:
        stack = [node.this if isinstance(node, exp.Alias) else node]
        while stack:
            part = stack.pop()
            if is_aggregate(part) or part.sql("cql") in grouped:
                continue
            if isinstance(part, exp.Column) and not part.meta.get(OUTER):
                raise error(part, f"{part.sql('cql')} is neither aggregated nor in GROUP BY")
            if not isinstance(part, exp.Query):
                stack.extend(part.iter_expressions())

    # ---- small checks ---------------------------------------------------------------------------------------------

    def _order_terms(self, query: exp.Expr) -> list[exp.Ordered]:
        order = query.args.get("order")
        return list(order.expressions) if order is not None else []

    def _ordinal(self, literal: exp.Literal, count: int, clause: str) -> int:
        number = int(literal.name)
        if not 1 <= number <= count:
            raise error(literal, f"{clause} {number}: the select list has {count} columns")
        return number

    def _check_limit(self, query: exp.Expr) -> None:
        for clause in ("limit", "offset"):
            node = query.args.get(clause)
            if node is None:
                continue
            value = node.expression
            if not (isinstance(value, exp.Literal) and value.is_int) or (clause == "limit" and node.args.get("offset")):
                raise error(node, f"{clause.upper()} takes a whole number")
            if int(value.name.replace("_", "")) >= 1 << 63:
                raise error(value, f"{clause.upper()} {value.name} is too large; it must fit in a BIGINT")

    def _only(self, node: exp.Expr, allowed: frozenset[str] | set[str], what: str) -> None:
        for key, value in node.args.items():
            if value and key not in allowed:
                name = {"with_": "WITH (write the subquery in FROM)"}.get(
                    key, key.rstrip("_").replace("_", " ").upper()
                )
                raise error(node, f"{name} is not part of the language in {what}")


def _aggregates(node: exp.Expr) -> Iterator[exp.Expr]:
    """The outermost aggregate calls in an expression, not those of its subqueries."""
    stack = [node]
    while stack:
        part = stack.pop()
        if is_aggregate(part):
            yield part
        elif not isinstance(part, exp.Query):
            stack.extend(part.iter_expressions())


def _subqueries(node: exp.Expr) -> Iterator[exp.Expr]:
    """The outermost subqueries in an expression: EXISTS, IN (SELECT …), and scalar ones."""
    stack = [node]
    while stack:
        part = stack.pop()
        is_in = isinstance(part, exp.In) and part.args.get("query") is not None
        if is_in or isinstance(part, (exp.Exists, exp.Subquery)):
            yield part
        else:
            stack.extend(part.iter_expressions())
