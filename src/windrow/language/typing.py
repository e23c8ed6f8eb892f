"""Types of scalar expressions, found bottom-up; every mistake is a BindError at its place.

The rules are DuckDB's with one simplification: integer arithmetic is 64-bit, all other arithmetic is DOUBLE.

>>> from sqlglot import parse_one
>>> types.type_name(infer(parse_one("a / 2 + 1"), lambda column: types.INTEGER))
'DOUBLE'
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from windrow.errors import BindError
from windrow.language import literals, types
from windrow.language.calls import Call, call
from windrow.language.functions import FUNCTIONS, KINDS, NAMES, suggestion
from windrow.language.positions import error
from windrow.language.types import type_name

ColumnType = Callable[[exp.Column], exp.DataType]
Known = Callable[[exp.Expr], "exp.DataType | None"]

MAX_DEPTH = 500

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "is distinct from", "is not distinct from")
# Parts of a time and the type of each; the names are DuckDB's.
PARTS = {
    **dict.fromkeys(
        ("year", "quarter", "month", "week", "day", "dow", "isodow", "doy", "hour", "minute", "second",
         "millisecond", "microsecond"),
        types.BIGINT,
    ),
    "epoch": types.DOUBLE,
}  # fmt: skip
PART_SYNONYMS = {
    "years": "year", "yr": "year", "y": "year", "quarters": "quarter", "months": "month", "mon": "month",
    "weeks": "week", "w": "week", "days": "day", "d": "day", "dayofmonth": "day", "dayofweek": "dow",
    "weekday": "dow", "dayofyear": "doy", "hours": "hour", "hr": "hour", "h": "hour", "minutes": "minute",
    "min": "minute", "m": "minute", "seconds": "second", "sec": "second", "s": "second",
    "milliseconds": "millisecond", "ms": "millisecond", "msec": "millisecond", "microseconds": "microsecond",
    "us": "microsecond", "usec": "microsecond",
}  # fmt: skip
TRUNCATIONS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond")


def infer(expression: exp.Expr, column_type: ColumnType, known: Known | None = None) -> exp.DataType:
    """Set `.type` on every node of a scalar expression and return its own.

    `known` is asked first at each node: what it gives a type to (an aggregate call, say) is not looked into.
    """
    stack: list[tuple[exp.Expr, int, Call | None]] = [(expression, 1, None)]
    while stack:
        node, depth, ready = stack.pop()
        if ready is not None:
            node.type = _typed(node, ready)
            continue
        if depth > MAX_DEPTH:
            raise error(node, f"the expression is nested deeper than {MAX_DEPTH} levels; split it")
        given = known(node) if known is not None else None
        if given is None:
            given = _leaf(node, column_type)
        if given is not None:
            node.type = types.canonical(given)
            continue
        view = call(node)
        if view is None:
            raise error(node, _refusal(node))
        stack.append((node, depth, view))
        stack.extend((operand, depth + 1, None) for operand in reversed(view.operands))
    return type_of(expression)


def type_of(node: exp.Expr) -> exp.DataType:
    """The type that infer() has set; a bare NULL needs none."""
    if node.type is None:
        if isinstance(node, exp.Null):
            return types.NULL
        raise ValueError(f"{node!r} has no type yet: call infer() first")
    return node.type


def _refusal(node: exp.Expr) -> str:
    if isinstance(node, exp.Func) and not isinstance(node, exp.AggFunc | exp.Connector):
        name = node.sql_name().lower()
        if name not in NAMES:
            return f"there is no function {name}{suggestion(name)}"
    return f"{_short(node)} cannot be used in a scalar expression"


def _short(node: exp.Expr) -> str:
    """The node's SQL, cut for a message."""
    try:
        text = node.sql(dialect="duckdb")
    except (RecursionError, ValueError):
        text = type(node).__name__.upper()
    return text if len(text) <= 60 else text[:57] + "..."


def _leaf(node: exp.Expr, column_type: ColumnType) -> exp.DataType | None:
    if isinstance(node, exp.Column):
        if isinstance(node.this, exp.Star):
            raise error(node, "* cannot be used in a scalar expression")
        return column_type(node)
    if isinstance(node, exp.Null):
        return types.NULL
    if isinstance(node, exp.Boolean):
        return types.BOOLEAN
    if isinstance(node, exp.Interval):
        return types.INTERVAL
    if isinstance(node, exp.Literal) and node.is_string:
        return types.TEXT
    value = literals.number(node)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise error(node, f"{value} does not fit in a BIGINT; write {value}.0 for a DOUBLE")
        if isinstance(node, exp.Neg):
            node.this.type = types.BIGINT
        return types.INTEGER if -(2**31) <= value < 2**31 else types.BIGINT
    if value is not None:
        if isinstance(node, exp.Neg):
            node.this.type = types.DOUBLE
        return types.DOUBLE
    return None


def _typed(node: exp.Expr, view: Call) -> exp.DataType:
    rule = RULES.get(view.name)
    if rule is not None:
        return rule(node, view)
    function = FUNCTIONS.get(view.name)
    if function is None:
        raise error(node, f"there is no function {view.name}{suggestion(view.name)}")
    if not function.accepts(len(view.operands)):
        raise error(node, f"{view.name} takes {function.arity()}, not {len(view.operands)}")
    for index, operand in enumerate(view.operands):
        _require(operand, function.parameter(index), view.name)
    if view.name == "date_trunc":
        _unit(node, view, TRUNCATIONS)
    return function.returns([type_of(operand) for operand in view.operands])


def _require(operand: exp.Expr, kind: str, name: str) -> None:
    words, fits = KINDS[kind]
    sql = type_of(operand)
    if not types.is_null(sql) and not fits(sql):
        raise error(operand, f"{name} needs {words}, but {_short(operand)} is {type_name(sql)}")


def part(view: Call) -> str:
    """The date part that a call names, in its long form."""
    name = str(view.options[0])
    return PART_SYNONYMS.get(name, name)


def _unit(node: exp.Expr, view: Call, allowed: Sequence[str]) -> str:
    name = part(view)
    if name not in allowed:
        raise error(node, f"{view.name} does not know the part {name}; use one of {', '.join(allowed)}")
    return name


def _extract(node: exp.Expr, view: Call) -> exp.DataType:
    _require(view.operands[0], "time", "extract")
    return PARTS[_unit(node, view, tuple(PARTS))]


def _plus_minus(node: exp.Expr, view: Call) -> exp.DataType:
    left, right = (type_of(operand) for operand in view.operands)
    pair = {types.kind(left), types.kind(right)}
    interval, date = exp.DType.INTERVAL, exp.DType.DATE
    if interval in pair:
        if types.is_temporal(left) or (types.is_temporal(right) and view.name == "+"):
            return types.TIMESTAMP
    elif (types.kind(left) == date and types.is_integer(right)) or (
        types.kind(right) == date and types.is_integer(left) and view.name == "+"
    ):
        return types.DATE
    elif types.is_temporal(left) and types.is_temporal(right) and view.name == "-":
        return types.BIGINT if pair == {date} else types.INTERVAL
    return _arithmetic(node, view)


def _arithmetic(node: exp.Expr, view: Call) -> exp.DataType:
    for operand in view.operands:
        _require(operand, "number", "-" if view.name == "negate" else view.name)
    every = [type_of(operand) for operand in view.operands]
    integers = all(types.is_integer(sql) or types.is_null(sql) for sql in every)
    return types.BIGINT if integers and view.name != "/" else types.DOUBLE


def _concatenate(node: exp.Expr, view: Call) -> exp.DataType:
    for operand in view.operands:
        if types.kind(type_of(operand)) in (exp.DType.INTERVAL, exp.DType.ARRAY, exp.DType.STRUCT, exp.DType.VARBINARY):
            raise error(operand, f"|| needs a VARCHAR, but {_short(operand)} is {type_name(type_of(operand))}")
    return types.TEXT


def _common(operands: Sequence[exp.Expr], what: str) -> exp.DataType:
    """The type that all operands share; quoted dates and timestamps take the type of what they meet."""
    quoted = [bare for bare in map(_bare, operands) if isinstance(bare, exp.Literal) and bare.is_string]
    other = [operand for operand in operands if not any(_bare(operand) is bare for bare in quoted)]
    common = _fold(other, what) if other else types.TEXT
    if types.is_temporal(common):
        for literal in quoted:
            adopt(literal, common)
        return common
    return _fold(operands, what)


def adopt(literal: exp.Expr, sql: exp.DataType) -> None:
    """Read a quoted literal as a DATE or TIMESTAMP."""
    if literals.moment(literal.name) is None:
        raise error(literal, f"'{literal.name}' is no {type_name(sql)}; write it as 'YYYY-MM-DD[ HH:MM:SS[.ffffff]]'")
    literal.type = sql
    around = literal.parent
    while isinstance(around, exp.Paren):
        around.type = sql
        around = around.parent


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _fold(operands: Sequence[exp.Expr], what: str) -> exp.DataType:
    result = types.NULL
    for operand in operands:
        joined = types.common_type(result, type_of(operand))
        if joined is None:
            raise error(
                operand,
                f"{what} cannot mix {type_name(result)} and {type_name(type_of(operand))} ({_short(operand)}); "
                "use CAST to say which type is meant",
            )
        result = joined
    return result


def _comparison(node: exp.Expr, view: Call) -> exp.DataType:
    common = _common(view.operands, view.name)
    if types.kind(common) in (exp.DType.INTERVAL, exp.DType.ARRAY, exp.DType.STRUCT):
        raise error(node, f"{view.name} cannot compare values of type {type_name(common)}")
    return types.BOOLEAN


def _choice(node: exp.Expr, view: Call) -> exp.DataType:
    if not view.operands:
        raise error(node, f"{view.name} takes at least 1 argument, not 0")
    return _common(view.operands, view.name)


def _nullif(node: exp.Expr, view: Call) -> exp.DataType:
    _comparison(node, view)
    return type_of(view.operands[0])


def _case(node: exp.Expr, view: Call) -> exp.DataType:
    operand, conditions, values = case_parts(view)
    if operand is not None:
        _common([operand, *conditions], "CASE")
    else:
        for condition in conditions:
            _require(condition, "boolean", "WHEN")
    result = _common(values, "CASE")
    for branch in node.args.get("ifs", ()):
        branch.type = result
    return result


def case_parts(view: Call) -> tuple[exp.Expr | None, list[exp.Expr], list[exp.Expr]]:
    """The compared operand or None, the conditions, and the values with the default last."""
    parts = list(view.operands)
    operand = parts.pop(0) if view.options[0] else None
    default = parts.pop()
    return operand, parts[0::2], [*parts[1::2], default]


def _cast(node: exp.Expr, view: Call) -> exp.DataType:
    target = view.options[0]
    assert isinstance(target, exp.DataType)
    try:
        sql = types.canonical(target)
    except BindError as unknown:
        raise error(node, unknown.reason) from None
    if types.kind(sql) in (exp.DType.ARRAY, exp.DType.STRUCT, exp.DType.INTERVAL, exp.DType.NULL):
        raise error(node, f"CAST to {type_name(sql)} is not possible")
    return sql


RULES: dict[str, Callable[[exp.Expr, Call], exp.DataType]] = {
    **dict.fromkeys(("*", "/", "%", "negate"), _arithmetic),
    **dict.fromkeys(("+", "-"), _plus_minus),
    **dict.fromkeys((*COMPARISONS, "between", "in"), _comparison),
    **dict.fromkeys(("coalesce", "greatest", "least"), _choice),
    **dict.fromkeys(("cast", "try_cast"), _cast),
    "||": _concatenate,
    "nullif": _nullif,
    "case": _case,
    "extract": _extract,
    "paren": lambda node, view: type_of(view.operands[0]),
}
