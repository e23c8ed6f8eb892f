"""Wstream inside an aggregate is short for a windowed subquery (thesis 3.4)."""

from __future__ import annotations

from sqlglot import exp

from windrow.language import nodes
from windrow.language.positions import error


def without_output_windows(ast: exp.Expr) -> exp.Expr:
    """`SELECT SUM(Wstream(SUM(a))[w]) FROM s` becomes `SELECT SUM(x) FROM (SELECT SUM(a) AS x FROM s INTERNAL)[w]`."""
    if not isinstance(ast, exp.Select):
        return ast
    calls = list(ast.find_all(nodes.OutputWindow))
    if not calls:
        return ast
    windows = {call.args["window"].sql("cql") for call in calls}
    if len(windows) > 1 or ast.args.get("group") or ast.args.get("having"):
        raise error(
            calls[0], "Wstream inside an aggregate takes one window and no GROUP BY or HAVING; write a subquery"
        )
    inner = exp.Select(
        expressions=[],
        **{clause: part.copy() for clause in ("from_", "where") if (part := ast.args.get(clause)) is not None},
        joins=[join.copy() for join in ast.args.get("joins") or ()],
    )
    for windowed in inner.find_all(nodes.Windowed):
        windowed.args["window"].set("internal", True)
    for number, call in enumerate(calls):
        arguments = call.this.expressions
        if len(arguments) != 1:
            raise error(call, "Wstream inside an aggregate takes one value")
        name = f"output_{number}"
        inner.append("expressions", exp.alias_(arguments[0].copy(), name))
        window = call.args["window"]
        call.replace(exp.column(name))
    outer = nodes.Windowed(
        this=exp.Subquery(this=inner), window=window.copy(), alias=exp.TableAlias(this=exp.to_identifier("wstream"))
    )
    ast.set("from_", exp.From(this=outer))
    ast.set("where", None)
    ast.set("joins", None)
    return ast
