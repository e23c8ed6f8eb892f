"""A statement of CQL is carried out: CREATE, DROP, SHOW and EXPLAIN. Queries that are not registered are refused."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from sqlglot import exp

from windrow.errors import SyntaxError, UnsupportedError
from windrow.language import nodes
from windrow.language.binder import bind
from windrow.language.bound import BoundQuery
from windrow.language.catalog import Relation, Stream, relation_from_node, stream_from_node
from windrow.language.positions import position
from windrow.plan.build import build
from windrow.plan.explain import explain
from windrow.query import Query
from windrow.workspace.endpoints import endpoint_notes, sink_of
from windrow.workspace.registration import Registration
from windrow.workspace.registry import Registry


def carry_out(registration: Registration, statement: exp.Expr) -> Any:
    """Do what a statement says; gives a Query (CREATE QUERY), a table (SHOW), a text (EXPLAIN), or None."""
    registry = registration.registry
    match statement:
        case nodes.CreateStream():
            return registration.add_stream(stream_from_node(statement))
        case nodes.CreateRelation():
            return registration.add_relation(relation_from_node(statement))
        case nodes.CreateQuery():
            return registration.add_query(statement.this.name, statement.expression, sink_of(statement))
        case nodes.DropObject():
            return _drop(registration, statement)
        case nodes.ShowObjects():
            return _show(registry, statement.args["kind"])
        case nodes.Explain(this=exp.Identifier() as name):
            return registry.find(name.name, Query).explain(statement.args.get("format") or "text")
        case nodes.Explain():
            return _explain(registry, bind(statement.this, registry.catalog), statement.args.get("format") or "text")
    line, column = position(statement)
    reason = f"{statement.key.upper()} is not a statement of the language; see docs/language.md"
    if isinstance(statement, (exp.Query, nodes.StreamOperator)):
        reason = "a bare query is not registered; write CREATE QUERY name AS …, or call db.query(…)"
    raise SyntaxError(reason, line=line, column=column)


def _drop(registration: Registration, statement: nodes.DropObject) -> None:
    registry, name = registration.registry, statement.this.name
    if statement.args.get("exists") and registry.get(name) is None:
        return
    match statement.args["kind"]:
        case "QUERY":
            registration.drop_query(registry.find(name, Query))
        case "STREAM":
            registration.drop_stream(registry.find(name, Stream))
        case _:
            registration.drop_relation(registry.find(name, Relation))


def _show(registry: Registry, kind: str) -> pa.Table:
    if kind == "SHARING":
        return registry.engine.sharing()
    if kind == "QUERIES":
        rows = [{"name": q.name, "status": q.status, "text": q.text} for q in registry.queries.values()]
        return pa.Table.from_pylist(rows, pa.schema([("name", "string"), ("status", "string"), ("text", "string")]))
    wanted = Stream if kind == "STREAMS" else Relation
    rows = [
        {"name": one.name, "columns": ", ".join(f"{c.name} {c.type.sql('cql')}" for c in one.columns)}
        for one in registry.catalog
        if isinstance(one, wanted)
    ]
    return pa.Table.from_pylist(rows, pa.schema([("name", "string"), ("columns", "string")]))


def _explain(registry: Registry, bound: BoundQuery, form: str) -> str:
    """The plan that a query would have if it were registered now."""
    plan = build(bound)
    try:
        outside = endpoint_notes(bound.streams, registry.frames, None)
        notes = [*outside, *registry.engine.describe_new(bound, plan)]
        plan = registry.engine.plan_of(bound, plan)
    except UnsupportedError as error:
        notes = [("engine", error.reason)]
    return explain(plan, notes, form.lower())
