"""The registry of scalar functions: what each takes and what it returns. Aggregates are elsewhere.

An argument kind is one word; a bare NULL fits every kind. Operators and constructs whose operands depend on each
other (`+`, `=`, CASE) have rules in windrow.language.typing instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from sqlglot import exp

from windrow.language import types

KINDS: dict[str, tuple[str, Callable[[exp.DataType], bool]]] = {
    "number": ("a number", types.is_numeric),
    "integer": ("an integer", types.is_integer),
    "text": ("a VARCHAR", types.is_text),
    "boolean": ("a BOOLEAN", types.is_boolean),
    "time": ("a DATE or a TIMESTAMP", types.is_temporal),
    "interval": ("an INTERVAL", lambda sql: types.kind(sql) == exp.DType.INTERVAL),
    "time or integer": ("a TIMESTAMP or an integer", lambda sql: types.is_temporal(sql) or types.is_integer(sql)),
    "any": ("a value", lambda sql: True),
}

Returns = Callable[[Sequence[exp.DataType]], exp.DataType]


@dataclass(frozen=True)
class Function:
    """The last `optional` parameters may be absent; with `variadic` the last one may be repeated."""

    name: str
    parameters: tuple[str, ...]
    returns: Returns
    optional: int = 0
    variadic: bool = False

    def accepts(self, count: int) -> bool:
        """Can it be called with so many arguments?"""
        least = len(self.parameters) - self.optional
        return least <= count and (self.variadic or count <= len(self.parameters))

    def arity(self) -> str:
        """How many arguments it wants, in words."""
        most = len(self.parameters)
        least = most - self.optional
        if self.variadic:
            return f"at least {least} argument{'s' if least != 1 else ''}"
        count = str(most) if least == most else f"{least} to {most}"
        return f"{count} argument{'s' if count != '1' else ''}"

    def parameter(self, index: int) -> str:
        """The kind of the argument at this place."""
        return self.parameters[min(index, len(self.parameters) - 1)]


def _always(sql: exp.DataType) -> Returns:
    return lambda arguments: sql


def _whole(arguments: Sequence[exp.DataType]) -> exp.DataType:
    """Integers stay integers (64-bit), everything else is DOUBLE."""
    return types.BIGINT if types.is_integer(arguments[0]) else types.DOUBLE


def _epoch_ms(arguments: Sequence[exp.DataType]) -> exp.DataType:
    """Milliseconds of a time, or the time of that many milliseconds."""
    return types.TIMESTAMP if types.is_integer(arguments[0]) else types.BIGINT


def _functions() -> list[Function]:
    double, text, boolean, big = (_always(sql) for sql in (types.DOUBLE, types.TEXT, types.BOOLEAN, types.BIGINT))
    timestamp = _always(types.TIMESTAMP)
    one_number = [
        "ceil", "floor", "sqrt", "cbrt", "exp", "ln", "log10", "log2", "sin", "cos", "tan", "asin", "acos", "atan",
        "sinh", "cosh", "tanh", "degrees", "radians",
    ]  # fmt: skip
    return [
        *(Function(name, ("number",), double) for name in one_number),
        Function("abs", ("number",), _whole),
        Function("sign", ("number",), _always(types.TINYINT)),
        Function("round", ("number", "integer"), _whole, optional=1),
        Function("trunc", ("number", "integer"), _whole, optional=1),
        Function("power", ("number", "number"), double),
        Function("atan2", ("number", "number"), double),
        Function("log", ("number", "number"), double),
        Function("pi", (), double),
        *(Function(name, ("number",), boolean) for name in ("isnan", "isinf", "isfinite")),
        *(Function(name, ("text",), text) for name in ("lower", "upper", "reverse")),
        Function("length", ("text",), big),
        Function("strlen", ("text",), big),
        Function("substring", ("text", "integer", "integer"), text, optional=1),
        *(Function(name, ("text", "integer"), text) for name in ("left", "right")),
        *(Function(name, ("text", "text"), text, optional=1) for name in ("trim", "ltrim", "rtrim")),
        *(Function(name, ("text", "integer", "text"), text) for name in ("lpad", "rpad")),
        Function("replace", ("text", "text", "text"), text),
        *(Function(name, ("text", "text"), boolean) for name in ("starts_with", "ends_with", "contains")),
        Function("strpos", ("text", "text"), big),
        Function("split_part", ("text", "text", "integer"), text),
        Function("regexp_matches", ("text", "text", "text"), boolean, optional=1),
        Function("regexp_full_match", ("text", "text"), boolean),
        Function("regexp_replace", ("text", "text", "text", "text"), text, optional=1),
        Function("like", ("text", "text", "text"), boolean, optional=1),
        Function("ilike", ("text", "text", "text"), boolean, optional=1),
        Function("concat", ("any",), text, variadic=True),
        Function("date_trunc", ("time",), timestamp),
        Function("epoch", ("time",), double),
        Function("epoch_us", ("time",), big),
        Function("epoch_ms", ("time or integer",), _epoch_ms),
        Function("make_timestamp", ("integer",), timestamp),
        Function("time_bucket", ("interval", "time"), timestamp),
        *(Function(name, ("boolean",), boolean) for name in ("not", "is true", "is false")),
        *(Function(name, ("boolean", "boolean"), boolean) for name in ("and", "or")),
        Function("is null", ("any",), boolean),
        Function("~", ("integer",), big),
        *(Function(name, ("integer", "integer"), big) for name in ("//", "&", "|", "xor", "<<", ">>")),
    ]


FUNCTIONS: dict[str, Function] = {function.name: function for function in _functions()}

# What users may have meant: names that parse to a function above, and those that have rules of their own.
NAMES = sorted(
    {name for name in FUNCTIONS if name.isidentifier()}
    | {
        "ceiling", "pow", "mod", "len", "substr", "position", "instr", "prefix", "suffix", "date_part", "extract",
        "coalesce", "ifnull", "nullif", "if", "greatest", "least", "cast", "try_cast", "year", "month", "day", "hour",
        "minute", "second", "dayofweek", "dayofyear", "week", "quarter",
    }
)  # fmt: skip


def suggestion(name: str) -> str:
    """A hint for a name that is no function: the nearest known one, or nothing."""
    close = get_close_matches(name.lower(), NAMES, n=1, cutoff=0.7)
    return f"; did you mean {close[0]}?" if close else ""
