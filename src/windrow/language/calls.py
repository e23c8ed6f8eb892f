"""sqlglot's many node classes → one shape: a call has a name, operands and constant options.

sqlglot gives `lower(a)` its own class, `isfinite(a)` none, and `a + b` another one again. Typing, evaluation and
rendering need only the name and the operands, so they share this view and dispatch on the name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp


@dataclass(frozen=True)
class Call:
    """One operator or function: `options` are the parts that are no values (a unit, a target type, a direction)."""

    name: str
    operands: tuple[exp.Expr, ...]
    options: tuple[object, ...] = ()


# Node classes whose operands are plain arguments, in this order; absent optional arguments are skipped.
PLAIN: dict[type[exp.Expr], tuple[str, tuple[str, ...]]] = {
    **{
        node: (name, ("this", "expression"))
        for node, name in {
            exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.IntDiv: "//", exp.Mod: "%",
            exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "xor",
            exp.BitwiseLeftShift: "<<", exp.BitwiseRightShift: ">>", exp.DPipe: "||",
            exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
            exp.NullSafeEQ: "is not distinct from", exp.NullSafeNEQ: "is distinct from",
            exp.And: "and", exp.Or: "or", exp.Nullif: "nullif", exp.Pow: "power", exp.Atan2: "atan2",
            exp.Left: "left", exp.Right: "right", exp.StartsWith: "starts_with", exp.EndsWith: "ends_with",
            exp.Contains: "contains", exp.RegexpFullMatch: "regexp_full_match", exp.DateBin: "time_bucket",
            exp.DateAdd: "+",
        }.items()
    },
    **{
        node: (name, ("this",))
        for node, name in {
            exp.Not: "not", exp.Neg: "negate", exp.BitwiseNot: "~", exp.Paren: "paren",
            exp.Abs: "abs", exp.Ceil: "ceil", exp.Floor: "floor", exp.Sign: "sign", exp.Sqrt: "sqrt",
            exp.Cbrt: "cbrt", exp.Exp: "exp", exp.Ln: "ln", exp.Sin: "sin", exp.Cos: "cos", exp.Tan: "tan",
            exp.Asin: "asin", exp.Acos: "acos", exp.Atan: "atan", exp.Sinh: "sinh", exp.Cosh: "cosh",
            exp.Tanh: "tanh", exp.Degrees: "degrees", exp.Radians: "radians", exp.IsNan: "isnan",
            exp.IsInf: "isinf", exp.Lower: "lower", exp.Upper: "upper", exp.Length: "length",
            exp.Reverse: "reverse", exp.TimeToUnix: "epoch",
        }.items()
    },
    exp.Round: ("round", ("this", "decimals")),
    exp.Trunc: ("trunc", ("this", "decimals")),
    exp.Substring: ("substring", ("this", "start", "length")),
    exp.Replace: ("replace", ("this", "expression", "replacement")),
    exp.StrPosition: ("strpos", ("this", "substr", "position", "occurrence")),
    exp.SplitPart: ("split_part", ("this", "delimiter", "part_index")),
    exp.RegexpLike: ("regexp_matches", ("this", "expression", "flag")),
    exp.RegexpReplace: ("regexp_replace", ("this", "expression", "replacement", "modifiers")),
    exp.Between: ("between", ("this", "low", "high")),
    exp.Pi: ("pi", ()),
}  # fmt: skip

DATE_PARTS: dict[type[exp.Expr], str] = {
    exp.Year: "year", exp.Quarter: "quarter", exp.Month: "month", exp.Week: "week", exp.Day: "day",
    exp.DayOfMonth: "day", exp.DayOfWeek: "dow", exp.DayOfWeekIso: "isodow", exp.DayOfYear: "doy",
    exp.Hour: "hour", exp.Minute: "minute", exp.Second: "second",
}  # fmt: skip

# Names that sqlglot does not know, under the name that Windrow gives them.
SYNONYMS = {"suffix": "ends_with", "prefix": "starts_with"}


def call(node: exp.Expr) -> Call | None:
    """The node as a call, or None for leaves (columns, literals) and for what is no scalar operation."""
    plain = PLAIN.get(type(node))
    if plain is not None:
        name, keys = plain
        if any(isinstance(value, exp.Expr) for key, value in node.args.items() if key not in keys):
            return None  # an argument that nobody here knows must not be dropped in silence
        return Call(name, tuple(node.args[key] for key in keys if node.args.get(key) is not None))
    special = SPECIAL.get(type(node))
    if special is not None:
        return special(node)
    part = DATE_PARTS.get(type(node))
    return Call("extract", (node.this,), (part,)) if part is not None else None


def _variadic(name: str) -> Callable[[exp.Expr], Call]:
    def view(node: exp.Expr) -> Call:
        first = () if node.args.get("this") is None else (node.this,)
        return Call(name, (*first, *node.expressions))

    return view


def _is(node: exp.Expr) -> Call | None:
    right = node.expression
    if isinstance(right, exp.Null):
        return Call("is null", (node.this,))
    if isinstance(right, exp.Boolean):
        return Call("is true" if right.this else "is false", (node.this,))
    return None


def _in(node: exp.Expr) -> Call | None:
    if not node.expressions or any(node.args.get(key) for key in ("query", "unnest", "field")):
        return None
    return Call("in", (node.this, *node.expressions))


def _case(node: exp.Expr) -> Call:
    """Operands: [operand,] condition, value, condition, value, …, default (NULL when absent)."""
    operand = node.args.get("this")
    default = node.args.get("default")
    if default is None:
        # The NULL that is not written has no place in the tree, so it borrows its parent for error positions.
        default = exp.Null()
        default.parent = node
    branches = [part for branch in node.args["ifs"] for part in (branch.this, branch.args["true"])]
    return Call("case", (*([operand] if operand is not None else []), *branches, default), (operand is not None,))


def _if(node: exp.Expr) -> Call:
    default = node.args.get("false")
    if default is None:
        default = exp.Null()
        default.parent = node
    return Call("case", (node.this, node.args["true"], default), (False,))


def _like(node: exp.Expr, escape: exp.Expr | None = None) -> Call:
    name = "ilike" if isinstance(node, exp.ILike) else "like"
    operands = (node.this, node.expression) + ((escape,) if escape is not None else ())
    return Call(name, operands, (bool(node.args.get("negate")),))


def _escape(node: exp.Expr) -> Call | None:
    return _like(node.this, node.expression) if isinstance(node.this, exp.Like | exp.ILike) else None


def _cast(node: exp.Expr) -> Call | None:
    if any(node.args.get(key) is not None for key in ("format", "action", "default")):
        return None
    return Call("try_cast" if isinstance(node, exp.TryCast) else "cast", (node.this,), (node.args["to"],))


def _log(node: exp.Expr) -> Call | None:
    """sqlglot writes log2(x) and log10(x) as log(base, x); any other base has no counterpart here."""
    if node.args.get("expression") is None:
        return Call("log10", (node.this,))
    if isinstance(node.this, exp.Literal) and node.this.name in ("2", "10"):
        return Call("log" + node.this.name, (node.expression,))
    return Call("log", (node.this, node.expression))


def _trim(node: exp.Expr) -> Call:
    operands = (node.this,) if node.args.get("expression") is None else (node.this, node.expression)
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position")), "trim")
    return Call(name, operands)


def _pad(node: exp.Expr) -> Call:
    fill = node.args.get("fill_pattern")
    operands = (node.this, node.expression) + ((fill,) if fill is not None else ())
    return Call("lpad" if node.args.get("is_left") else "rpad", operands)


def _unix_to_time(node: exp.Expr) -> Call | None:
    """epoch_ms(x) goes both ways; make_timestamp(us) only from numbers; to_timestamp(x) has a zone: not ours."""
    scale = node.args.get("scale")
    names = {"3": "epoch_ms", "6": "make_timestamp"}
    if isinstance(scale, exp.Literal) and scale.name in names:
        return Call(names[scale.name], (node.this,))
    return Call("to_timestamp", (node.this,))


def _extract(node: exp.Expr) -> Call:
    return Call("extract", (node.expression,), (node.this.name.lower(),))


def _truncate(node: exp.Expr) -> Call | None:
    if node.args.get("zone") is not None:
        return None
    return Call("date_trunc", (node.this,), (node.args["unit"].name.lower(),))


def _anonymous(node: exp.Expr) -> Call:
    name = node.name.lower()
    operands = tuple(node.expressions)
    if name in ("date_part", "datepart") and len(operands) == 2 and isinstance(operands[0], exp.Literal):
        return Call("extract", operands[1:], (operands[0].name.lower(),))
    if name == "iff" and len(operands) == 3:
        return Call("case", operands, (False,))
    return Call(SYNONYMS.get(name, name), operands)


SPECIAL: dict[type[exp.Expr], Callable[[exp.Expr], Call | None]] = {
    exp.Anonymous: _anonymous,
    exp.Case: _case,
    exp.Cast: _cast,
    exp.Coalesce: _variadic("coalesce"),
    exp.Concat: _variadic("concat"),
    exp.Escape: _escape,
    exp.Extract: _extract,
    exp.Greatest: _variadic("greatest"),
    exp.ILike: _like,
    exp.If: _if,
    exp.In: _in,
    exp.Is: _is,
    exp.Least: _variadic("least"),
    exp.Like: _like,
    exp.Log: _log,
    exp.Pad: _pad,
    exp.TimestampTrunc: _truncate,
    exp.DateTrunc: _truncate,
    exp.Trim: _trim,
    exp.TryCast: _cast,
    exp.UnixToTime: _unix_to_time,
}
