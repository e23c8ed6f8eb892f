"""Typed expressions as DuckDB SQL that computes what Windrow computes, with every conversion written out."""

from __future__ import annotations

from collections.abc import Callable

import duckdb
from sqlglot import exp

from windrow.language import types
from windrow.language.calls import Call, call
from windrow.language.functions import FUNCTIONS
from windrow.language.typing import COMPARISONS, case_parts, type_of


def to_duckdb(expression: exp.Expr) -> str:
    """DuckDB SQL of an expression that infer() has typed; nodes without a type (aggregates, say) stay as they are.

    >>> from sqlglot import parse_one
    >>> from windrow.language.typing import infer
    >>> typed = parse_one("a / 2", dialect="duckdb")
    >>> _ = infer(typed, lambda column: types.INTEGER)
    >>> to_duckdb(typed)
    'CAST(a AS DOUBLE) / CAST(2 AS DOUBLE)'
    """
    return explicit(expression).sql(dialect="duckdb")


def explicit(expression: exp.Expr) -> exp.Expr:
    """A copy with explicit CASTs, so that a whole query can be rewritten and rendered at once."""
    # A parent, so that the root can be replaced as every other node.
    root = exp.Paren(this=expression.copy())
    for node in reversed(list(root.this.walk())):
        if isinstance(node, exp.Literal):
            _literal(node)
            continue
        view = call(node)
        if view is not None and node.type is not None and all(_has_type(operand) for operand in view.operands):
            rule = RULES.get(view.name, _function)
            rule(node, view)
    result: exp.Expr = root.this
    result.parent = None
    return result


def _has_type(node: exp.Expr) -> bool:
    return node.type is not None or isinstance(node, exp.Null)


def _wrap(node: exp.Expr, sql: exp.DataType) -> None:
    if type_of(node) == sql or node.parent is None or types.is_null(sql):
        return
    parent = node.parent
    cast = exp.Cast(this=node.copy(), to=sql.copy())
    cast.type = sql
    # An unwritten ELSE NULL is not really there: nothing to replace.
    if any(child is node for child in parent.iter_expressions()):
        node.replace(cast)


def _literal(node: exp.Literal) -> None:
    if node.type is None:
        return
    if node.is_string and types.is_temporal(node.type):
        cast = exp.Cast(this=exp.Literal.string(node.name), to=node.type.copy())
        cast.type = node.type
        node.replace(cast)
    elif not node.is_string and types.is_floating(node.type) and "e" not in node.name.lower():
        node.set("this", node.name + "e0")  # without an exponent DuckDB reads a DECIMAL


def _number(sql: exp.DataType) -> exp.DataType:
    return types.BIGINT if types.is_integer(sql) else types.DOUBLE


def _arithmetic(node: exp.Expr, view: Call) -> None:
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal):
        return
    kinds = {types.kind(type_of(operand)) for operand in view.operands}
    if types.D.INTERVAL in kinds:
        for operand in view.operands:
            if types.is_temporal(type_of(operand)):
                _wrap(operand, types.TIMESTAMP)
    elif not any(types.is_temporal(type_of(operand)) for operand in view.operands):
        for operand in view.operands:
            _wrap(operand, _number(type_of(node)))
    else:
        for operand in view.operands:
            if types.is_integer(type_of(operand)):
                _wrap(operand, types.INTEGER)


def _comparison(node: exp.Expr, view: Call) -> None:
    common = types.common_types(map(type_of, view.operands))
    for operand in view.operands:
        _wrap(operand, common)


def _nullif(node: exp.Expr, view: Call) -> None:
    # DuckDB's NULLIF may return the value in the common type; a CASE returns it as it was.
    value = view.operands[0].copy()
    _comparison(node, view)
    left, right = node.this.copy(), node.expression.copy()
    case = exp.Case().when(exp.EQ(this=left, expression=right), exp.Null(), copy=False).else_(value, copy=False)
    case.type = type_of(node)
    node.replace(case)


def _choice(node: exp.Expr, view: Call) -> None:
    for operand in view.operands:
        _wrap(operand, type_of(node))


def _case(node: exp.Expr, view: Call) -> None:
    operand, conditions, values = case_parts(view)
    if operand is not None:
        common = types.common_types(map(type_of, [operand, *conditions]))
        for compared in (operand, *conditions):
            _wrap(compared, common)
    for value in values:
        _wrap(value, type_of(node))


def _nothing(node: exp.Expr, view: Call) -> None:
    """Already explicit."""


def _function(node: exp.Expr, view: Call) -> None:
    function = FUNCTIONS.get(view.name)
    if function is None:
        return
    whole = view.name in ("abs", "round", "trunc", "sign")
    for index, operand in enumerate(view.operands):
        kind = function.parameter(index)
        sql = type_of(operand)
        if kind == "number":
            _wrap(operand, _number(sql) if whole else types.DOUBLE)
        elif kind == "integer" and view.name in ("//", "&", "|", "xor", "<<", ">>", "~", "make_timestamp"):
            _wrap(operand, types.BIGINT)
        elif kind == "text" or view.name == "concat":
            _wrap(operand, types.TEXT)
        elif kind == "boolean":
            _wrap(operand, types.BOOLEAN)
        elif kind == "time":
            _wrap(operand, types.TIMESTAMP)
        elif kind == "time or integer":
            _wrap(operand, types.BIGINT if types.is_integer(sql) else types.TIMESTAMP)


def _extract(node: exp.Expr, view: Call) -> None:
    _wrap(view.operands[0], types.TIMESTAMP)


def _concatenate(node: exp.Expr, view: Call) -> None:
    for operand in view.operands:
        _wrap(operand, types.TEXT)


def _remainder(node: exp.Expr, view: Call) -> None:
    _arithmetic(node, view)
    if types.is_integer(type_of(node)):
        _refuse_zero(node)


def _whole_division(node: exp.Expr, view: Call) -> None:
    _function(node, view)
    _refuse_zero(node)


def _refuse_zero(node: exp.Expr) -> None:
    """DuckDB before 2.0 gives NULL for an integer division by zero; the meaning here is that of 2.0, an error."""
    if int(duckdb.__version__.split(".", maxsplit=1)[0]) >= 2:
        return
    divisor = node.expression
    failure = exp.cast(exp.func("error", exp.Literal.string("Division by zero")), "BIGINT")
    is_zero = exp.EQ(this=divisor.copy(), expression=exp.Literal.number(0))
    node.set("expression", exp.Case().when(is_zero, failure).else_(divisor.copy()))


RULES: dict[str, Callable[[exp.Expr, Call], None]] = {
    **dict.fromkeys(("+", "-", "*", "/", "negate"), _arithmetic),
    "%": _remainder,
    "//": _whole_division,
    **dict.fromkeys((*COMPARISONS, "between", "in"), _comparison),
    **dict.fromkeys(("coalesce", "greatest", "least"), _choice),
    **dict.fromkeys(("cast", "try_cast", "paren"), _nothing),
    "||": _concatenate,
    "nullif": _nullif,
    "case": _case,
    "extract": _extract,
}
