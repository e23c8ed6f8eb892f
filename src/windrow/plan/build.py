"""From a bound query to its logical plan: the canonical translation, before any optimisation.

Conjuncts of WHERE go to the lowest place where their columns are known (a window, a join), which is where
thesis Figure 3.5 has them; EXISTS and NOT EXISTS become semi-joins and negations above the joins.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from windrow.errors import UnsupportedError
from windrow.language import nodes as syntax
from windrow.language.aggregates import aggregate_call, is_aggregate
from windrow.language.bound import SOURCE_ID, BoundQuery
from windrow.language.catalog import Column
from windrow.language.positions import position
from windrow.plan import nodes


def build(query: BoundQuery) -> nodes.Output:
    """The logical plan of a bound query."""
    body = _Builder(query).query(query.ast, query.columns)
    return nodes.Output(
        body, query.operator, query.slide, query.rows_slide, query.output_window, query.timestamps
    )  # fmt: skip


def conjuncts(predicate: exp.Expr | None) -> list[exp.Expr]:
    """The parts of a predicate that must all hold."""
    if predicate is None:
        return []
    if isinstance(predicate, exp.Paren):
        return conjuncts(predicate.this)
    if isinstance(predicate, exp.And):
        return [part for side in predicate.flatten() for part in conjuncts(side)]
    return [predicate]


class _Builder:
    def __init__(self, query: BoundQuery) -> None:
        self._sources = query.sources

    def query(self, ast: exp.Expr, columns: tuple[Column, ...]) -> nodes.Node:
        match ast:
            case exp.Subquery():
                return self.query(ast.this, columns)
            case exp.Select():
                return self._select(ast, columns)
            case exp.SetOperation():
                return self._set_operation(ast, columns)
        line, column = position(ast)
        raise UnsupportedError(f"{ast.key.upper()} has no plan yet", line=line, column=column)

    def _set_operation(self, ast: exp.SetOperation, columns: tuple[Column, ...]) -> nodes.Node:
        left, right = self.query(ast.this, columns), self.query(ast.expression, columns)
        distinct = bool(ast.args.get("distinct"))
        plan: nodes.Node
        if isinstance(ast, exp.Union):
            plan = nodes.Distinct(nodes.Union(left, right)) if distinct else nodes.Union(left, right)
        elif isinstance(ast, exp.Except):
            plan = nodes.Negation(left, right, kind="EXCEPT" if distinct else "EXCEPT ALL")
        else:
            kind = "INTERSECT" if distinct else "INTERSECT ALL"
            plan = nodes.SemiJoin(nodes.Distinct(left) if distinct else left, right, kind=kind)
        return self._top(ast, plan)

    def _select(self, ast: exp.Select, columns: tuple[Column, ...]) -> nodes.Node:
        pending = conjuncts(ast.args["where"].this if ast.args.get("where") is not None else None)
        known = {self._alias(ast.args["from_"].this)}
        joins = ast.args.get("joins") or []
        plan = self._item(ast.args["from_"].this)
        if not _padded_later(joins):
            plan, pending = self._filtered(plan, known, pending)
        for place, join in enumerate(joins):
            alias = self._alias(join.this)
            side = (join.args.get("side") or "").upper()
            right = self._item(join.this)
            # WHERE is about rows after all joins: it must not go below one that pads these rows with NULLs.
            free = not side and not _padded_later(joins[place + 1 :])
            if free:
                right, pending = self._filtered(right, {alias}, pending)
            here = [part for part in pending if _plain(part) and _tables(part) <= known | {alias}] if free else []
            pending = [part for part in pending if part not in here]
            using = [
                exp.EQ(this=exp.column(key.name), expression=exp.column(key.name, table=alias))
                for key in join.args.get("using") or ()
            ]
            predicate = _all_of([*conjuncts(join.args.get("on")), *using, *here])
            known.add(alias)
            if isinstance(right, nodes.RelationScan) and not side:
                relation = right.source.relation
                retroactive = relation is None or not relation.non_retroactive
                plan = nodes.RelationJoin(plan, right, predicate, retroactive)
            else:
                plan = nodes.Join(plan, right, predicate, side or "INNER")
        plan = self._subqueries(plan, pending)
        calls = [node for part in _outputs(ast) for node in part.walk(prune=is_aggregate) if is_aggregate(node)]
        if calls or ast.args.get("group") is not None:
            keys = tuple(ast.args["group"].expressions) if ast.args.get("group") is not None else ()
            unique = {call.sql("cql"): aggregate_call(call) for call in calls}
            plan = nodes.GroupBy(plan, keys, tuple(unique.values()))
        if ast.args.get("having") is not None:
            plan = nodes.Selection(plan, ast.args["having"].this)
        plan = nodes.Projection(plan, tuple(ast.expressions), columns)
        if ast.args.get("distinct") is not None:
            plan = nodes.Distinct(plan)
        return self._top(ast, plan)

    def _item(self, item: exp.Expr) -> nodes.Node:
        if isinstance(item, exp.Subquery):
            return nodes.Named(self.query(item.this, ()), str(item.alias))
        source = self._sources[item.meta[SOURCE_ID]]
        if source.relation is not None:
            return nodes.RelationScan(source)
        if source.subquery is not None:
            return nodes.SubqueryWindow(build(source.subquery), source)
        return nodes.StreamWindow(source)

    def _alias(self, item: exp.Expr) -> str:
        if isinstance(item, (syntax.Windowed, exp.Table)):
            return str(self._sources[item.meta[SOURCE_ID]].alias).lower()
        return str(item.alias).lower()

    def _filtered(
        self, plan: nodes.Node, known: set[str], pending: list[exp.Expr]
    ) -> tuple[nodes.Node, list[exp.Expr]]:
        here = [part for part in pending if _plain(part) and _tables(part) <= known]
        predicate = _all_of(here)
        if predicate is not None:
            plan = nodes.Selection(plan, predicate)
        return plan, [part for part in pending if part not in here]

    def _subqueries(self, plan: nodes.Node, pending: list[exp.Expr]) -> nodes.Node:
        rest = []
        for part in pending:
            negated = isinstance(part, exp.Not)
            inner = part.this if isinstance(part, exp.Not) else part
            if isinstance(inner, exp.Exists):
                kind, right, predicate = "EXISTS", self.query(inner.this, ()), None
            elif isinstance(inner, exp.In) and inner.args.get("query") is not None:
                kind, right, predicate = "IN", self.query(inner.args["query"], ()), inner.this
            else:
                rest.append(part)
                continue
            if negated:
                plan = nodes.Negation(plan, right, predicate, f"NOT {kind}")
            else:
                plan = nodes.SemiJoin(plan, right, predicate, kind)
        predicate = _all_of(rest)
        return plan if predicate is None else nodes.Selection(plan, predicate)

    def _top(self, ast: exp.Expr, plan: nodes.Node) -> nodes.Node:
        order = ast.args.get("order")
        limit, offset = ast.args.get("limit"), ast.args.get("offset")
        if order is None and limit is None and offset is None:
            return plan
        return nodes.TopRows(
            plan,
            tuple(order.expressions) if order is not None else (),
            int(limit.expression.name) if limit is not None else None,
            int(offset.expression.name) if offset is not None else 0,
        )


def _padded_later(joins: Sequence[exp.Expr]) -> bool:
    """Whether one of these joins keeps rows of its right side that match nothing on the left."""
    return any((join.args.get("side") or "").upper() in ("RIGHT", "FULL") for join in joins)


def _outputs(ast: exp.Select) -> list[exp.Expr]:
    clauses = (ast.args.get(clause) for clause in ("having", "order"))
    return [*ast.expressions, *(clause for clause in clauses if clause is not None)]


def _all_of(parts: list[exp.Expr]) -> exp.Expr | None:
    return exp.and_(*parts, copy=True) if parts else None


def _plain(part: exp.Expr) -> bool:
    return part.find(exp.Query) is None


def _tables(part: exp.Expr) -> set[str]:
    return {column.table.lower() for column in part.find_all(exp.Column)}
