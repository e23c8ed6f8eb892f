"""The aggregate functions of the language: how each is called and what type it returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from windrow.language import types
from windrow.language.positions import error
from windrow.language.user_functions import TAKES, UserFunction, marked

_NAMED_NODES: dict[type[exp.Expr], str] = {
    exp.Count: "COUNT",
    exp.Sum: "SUM",
    exp.Avg: "AVG",
    exp.Min: "MIN",
    exp.Max: "MAX",
    exp.VariancePop: "VAR_POP",
    exp.Variance: "VAR_SAMP",
    exp.StddevPop: "STDDEV_POP",
    exp.StddevSamp: "STDDEV_SAMP",
    exp.Stddev: "STDDEV_SAMP",
    exp.Median: "MEDIAN",
    exp.Mode: "MODE",
    exp.Quantile: "QUANTILE",
    exp.PercentileCont: "PERCENTILE_CONT",
    exp.PercentileDisc: "PERCENTILE_DISC",
    exp.ApproxDistinct: "APPROX_COUNT_DISTINCT",
    exp.ApproxQuantile: "APPROX_QUANTILE",
    exp.ApproxTopK: "APPROX_TOP_K",
}
_NAMED_CALLS = {
    "TOP_K", "FREQUENT", "APPROX_MEDIAN", "APPROX_TOP_K", "APPROX_FREQUENT", "APPROX_COUNT_DISTINCT", "HLL_SKETCH_AGG",
    "THETA_SKETCH_AGG", "KLL_SKETCH_AGG", "ITEMS_SKETCH_AGG",
}  # fmt: skip
_FRACTION = frozenset({"QUANTILE", "APPROX_QUANTILE", "PERCENTILE_CONT", "PERCENTILE_DISC"})
_COUNTED = frozenset({"TOP_K", "FREQUENT", "APPROX_TOP_K", "APPROX_FREQUENT"})
_SKETCHES = {
    "HLL_SKETCH_AGG": ("lg_k", 4, 12, 12),
    "THETA_SKETCH_AGG": ("lg_k", 4, 26, 12),
    "KLL_SKETCH_AGG": ("k", 8, 256, 200),
}
"""They return a sketch of a size that may be given: its name, the least, the greatest and the usual one."""


@dataclass(frozen=True)
class AggregateCall:
    """One aggregate as written: name, argument (None for COUNT(*)), parameter (φ or k), DISTINCT, FILTER, direction."""

    name: str
    argument: exp.Expr | None
    parameter: float | int | None = None
    distinct: bool = False
    filter: exp.Expr | None = None
    descending: bool = False
    node: exp.Expr = field(compare=False, default_factory=exp.Null)
    user: UserFunction | None = None
    """The aggregate of the user that is called."""


def aggregate_name(node: exp.Expr) -> str | None:
    """The canonical name when the node itself is an aggregate call, else None."""
    if isinstance(node, exp.Anonymous):
        user = marked(node)
        if user is not None:
            return user.name
        return node.name.upper() if node.name.upper() in _NAMED_CALLS else None
    return _NAMED_NODES.get(type(node))


def is_aggregate(node: exp.Expr) -> bool:
    """True for the outermost node of an aggregate call: with its FILTER and WITHIN GROUP."""
    if isinstance(node, (exp.Filter, exp.WithinGroup)):
        return is_aggregate(node.this)
    return aggregate_name(node) is not None or isinstance(node, exp.AggFunc)


def aggregate_call(node: exp.Expr) -> AggregateCall:
    """Take an aggregate call apart; `node` is what `is_aggregate` accepts."""
    outer, filter_, order = node, None, None
    if isinstance(node, exp.Filter):
        where = node.expression
        filter_ = where.this if isinstance(where, exp.Where) else where
        node = node.this
    if isinstance(node, exp.WithinGroup):
        order = node.expression.expressions
        node = node.this
    name = aggregate_name(node)
    if name is None:
        written = node.sql_name() if isinstance(node, exp.Func) else node.key.upper()
        raise error(
            node,
            f"there is no aggregate {written}; there are {', '.join(sorted({*_NAMED_NODES.values(), *_NAMED_CALLS}))}",
        )
    arguments = _arguments(node)
    if isinstance(node, (exp.Min, exp.Max)) and node.args.get("count") is not None:
        raise error(node.args["count"], f"{name} takes 1 argument; use TOP_K for several values")
    distinct = descending = False
    if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
        distinct, arguments = True, arguments[0].expressions
    if order is not None:
        if name not in ("PERCENTILE_CONT", "PERCENTILE_DISC") or len(order) != 1:
            raise error(node, f"WITHIN GROUP (ORDER BY one expression) belongs to PERCENTILE_CONT/DISC, not to {name}")
        descending = bool(order[0].args.get("desc"))
        arguments = [order[0].this, *arguments]
    elif name in ("PERCENTILE_CONT", "PERCENTILE_DISC"):
        raise error(node, f"write {name}(0.5) WITHIN GROUP (ORDER BY x)")
    wanted = 2 if name in _FRACTION | _COUNTED else 1
    if name == "COUNT" and (not arguments or (len(arguments) == 1 and isinstance(arguments[0], exp.Star))):
        if distinct:
            raise error(node, "COUNT(DISTINCT *) is not defined; name the expression to count")
        return AggregateCall(name, None, filter=filter_, node=outer)
    if name in _SKETCHES and len(arguments) == 2:
        wanted = 2
    if len(arguments) != wanted:
        told = "1 or 2 arguments" if name in _SKETCHES else f"{wanted} argument{'s' if wanted > 1 else ''}"
        raise error(node, f"{name} takes {told}, found {len(arguments)}")
    if any(isinstance(argument, exp.Star) for argument in arguments):
        raise error(node, f"{name}(*) is not defined; only COUNT(*) is")
    parameter: float | int | None = _SKETCHES[name][-1] if name in _SKETCHES else None
    if wanted == 2:
        parameter = _parameter(name, arguments[1], node)
    if distinct and name not in ("COUNT", "SUM", "AVG", "MIN", "MAX"):
        raise error(node, f"DISTINCT is not defined for {name}")
    return AggregateCall(name, arguments[0], parameter, distinct, filter_, descending, outer, marked(node))


def return_type(call: AggregateCall, argument: exp.DataType | None) -> exp.DataType:
    """The SQL type of the aggregate's value, or a BindError when the argument's type does not fit."""
    if argument is None or call.name in ("COUNT", "APPROX_COUNT_DISTINCT"):
        return types.BIGINT
    test, found, result = _rule(call)
    if not test(argument):
        raise error(
            call.node,
            f"{call.name} needs {found}, but {call.argument.sql('cql') if call.argument else ''} "
            f"is {types.type_name(argument)}",
        )
    return result(argument)


def _rule(call: AggregateCall) -> _Rule:
    user = call.user
    return _RULES[call.name] if user is None else (TAKES[user.takes], user.takes, lambda _: user.returns)


def _arguments(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Anonymous):
        return list(node.expressions)
    names = ("quantile", "expression", "counters", "deterministic", "accuracy", "weight", "error_tolerance")
    parts = [node.this, *node.expressions, *(node.args.get(key) for key in names)]
    return [part for part in parts if isinstance(part, exp.Expr)]


def _parameter(name: str, node: exp.Expr, call: exp.Expr) -> float | int:
    number = None
    if isinstance(node, exp.Literal) and not node.is_string:
        number = float(node.name)
    if name in _FRACTION:
        if number is None or not 0 <= number <= 1:
            raise error(call, f"{name} needs a fraction between 0 and 1, found {node.sql('cql')}")
        return number
    if name in _SKETCHES:
        size, least, most, _ = _SKETCHES[name]
        if number is None or not least <= number <= most or number != int(number):
            raise error(call, f"{name} needs a whole number {size} from {least} to {most}, found {node.sql('cql')}")
        return int(number)
    if number is None or not 1 <= number <= 1_000_000 or number != int(number):
        raise error(call, f"{name} needs a whole number k from 1 to 1,000,000, found {node.sql('cql')}")
    return int(number)


def _sum_type(argument: exp.DataType) -> exp.DataType:
    if types.is_integer(argument):
        return types.BIGINT
    if types.is_decimal(argument):
        return types.decimal(types.MAX_DIGITS, types.decimal_digits(argument)[1])
    return types.DOUBLE


def _double(_: exp.DataType) -> exp.DataType:
    return types.DOUBLE


def _blob(_: exp.DataType) -> exp.DataType:
    return types.BLOB


def _same(argument: exp.DataType) -> exp.DataType:
    return argument


def _ranked(argument: exp.DataType) -> exp.DataType:
    return types.list_of(types.struct_of({"value": argument, "count": types.BIGINT}))


def _item(argument: exp.DataType) -> bool:
    return types.is_integer(argument) or types.kind(argument) == exp.DType.TEXT


def _ordered(argument: exp.DataType) -> bool:
    return types.kind(argument) not in (exp.DType.ARRAY, exp.DType.STRUCT, exp.DType.INTERVAL)


_NUMBER = "a number"
_VALUE = "a value that can be ordered"
_Rule = tuple[Callable[[exp.DataType], bool], str, Callable[[exp.DataType], exp.DataType]]
_RULES: dict[str, _Rule] = {
    "SUM": (types.is_numeric, _NUMBER, _sum_type),
    **dict.fromkeys(
        ("AVG", "VAR_POP", "VAR_SAMP", "STDDEV_POP", "STDDEV_SAMP", "MEDIAN", "APPROX_MEDIAN", "PERCENTILE_CONT"),
        (types.is_numeric, _NUMBER, _double),
    ),
    **dict.fromkeys(
        ("MIN", "MAX", "MODE", "QUANTILE", "APPROX_QUANTILE", "PERCENTILE_DISC"),
        (_ordered, _VALUE, _same),
    ),
    **dict.fromkeys(("HLL_SKETCH_AGG", "THETA_SKETCH_AGG"), (_ordered, _VALUE, _blob)),
    "KLL_SKETCH_AGG": (types.is_numeric, _NUMBER, _blob),
    "ITEMS_SKETCH_AGG": (_item, "a string or an integer", _blob),
    **dict.fromkeys(("TOP_K", "FREQUENT", "APPROX_TOP_K", "APPROX_FREQUENT"), (_ordered, _VALUE, _ranked)),
}  # fmt: skip
