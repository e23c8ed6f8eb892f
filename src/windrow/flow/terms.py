"""Aggregate calls of a plan → the aggregates of the registry, over the columns of an edge."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from windrow.aggregates import aggregate
from windrow.errors import UnsupportedError
from windrow.expressions import Compiler
from windrow.language.aggregates import AggregateCall
from windrow.language.positions import position
from windrow.plan.periodic import SUB_WINDOWS, filtered_argument, registered_name
from windrow.sharing.member import Term


def term_of(compiler: Compiler, call: AggregateCall, resolve: Callable[[exp.Expr], exp.Expr]) -> Term:
    """The aggregate, and the program of the value that it takes."""
    line, column = position(call.node)
    name, parameters = registered_name(call)
    if name in SUB_WINDOWS:
        raise UnsupportedError(
            f"{call.name} keeps a list per SLIDE of one window, so it runs over one stream with SLIDE; use TOP_K here",
            line=line,
            column=column,
        )
    value = filtered_argument(call)
    program = None if value is None else compiler.compile(resolve(value))
    try:
        return Term(aggregate(name, None if program is None else program.type, parameters, call.user), program)
    except ValueError as error:
        raise UnsupportedError(f"{call.node.sql('cql')}: {error}", line=line, column=column) from None
