"""What Spark can do before the rows go to Python, on the row path: leave out columns, and rows that nobody wants.

A filter may keep too much, never too little. It keeps every row that some query takes, every row on which some
query fails (so that both scans report the same errors), and every late row (those are counted and kept).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from sqlglot import exp

from windrow.errors import Error, InputError
from windrow.expressions import Compiler
from windrow.language import types
from windrow.language.catalog import Stream
from windrow.pipeline.spark_types import quoted
from windrow.plan.periodic import PeriodicAggregate

LONGEST_CONDITION = 20_000
"""In characters: beyond this, to test a row costs Spark more than to hand it over."""
_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="
}  # fmt: skip


def common_filter(plans: Sequence[PeriodicAggregate], kept: Sequence[exp.Expr | None] = ()) -> str | None:
    """A condition in Spark SQL that holds for every row that some plan takes; None when there is no useful one.

    `kept` are the predicates of queries that keep the rows themselves: they want what is not surely false.
    """
    conditions: dict[str, None] = {}
    for plan in plans:
        # A ROWS window counts all rows, and its WHERE chooses among those.
        condition = None if plan.predicate is None or plan.rows is not None else _implied(plan.predicate)
        if condition is None:
            return None
        conditions[condition] = None
    for predicate in kept:
        condition = None if predicate is None else _implied(predicate)
        if condition is None:
            return None
        conditions[f"coalesce({condition}, true)"] = None
    text = " OR ".join(conditions)
    return text if conditions and len(text) <= LONGEST_CONDITION else None


@dataclass(frozen=True)
class Observed:
    """What a batch had before the filter; times are in ticks, None when no row has a time."""

    rows: int
    null_times: int
    oldest: int | None
    newest: int | None
    oldest_in_time: int | None
    """The oldest row that is not late."""


def narrow(
    batch: DataFrame,
    stream: Stream,
    columns: Sequence[str],
    condition: str | None,
    watermark: int | None,
    observation: Observation | None = None,
) -> DataFrame:
    """The batch with these columns and only rows that `condition` holds for, or that are late at this watermark.

    `observation` sees all rows, before the filter: see `observed`.
    """
    ticks = _ticks(stream)
    late = F.lit(False) if watermark is None else ticks <= F.lit(watermark).cast("bigint")
    result = batch.select(*(F.col(quoted(name)) for name in columns))
    if observation is not None:
        result = result.observe(
            observation,
            F.count(F.lit(1)).alias("rows"),
            F.count(ticks).alias("times"),
            F.min(ticks).alias("oldest"),
            F.max(ticks).alias("newest"),
            F.min(F.when(~late, ticks)).alias("oldest_in_time"),
        )
    if condition is None:
        return result
    # A condition that Spark could fold to FALSE would take the observation away with all rows, and `observed` would
    # wait for ever. Times out of range never occur, but Spark cannot know.
    return result.where(F.expr(condition) | late | (ticks < F.lit(-(1 << 61)).cast("bigint")))


def late_rows(batch: DataFrame, stream: Stream, watermark: int) -> DataFrame:
    """The rows at or before the watermark, with all their columns."""
    return batch.where(_ticks(stream) <= F.lit(watermark).cast("bigint"))


def _ticks(stream: Stream) -> SparkColumn:
    time = F.col(quoted(stream.time))
    return F.unix_micros(time) if stream.timestamps else time


def observed(observation: Observation) -> Observed:
    """What `narrow` observed, once an action on its DataFrame has succeeded; after a failed one, this never returns."""
    seen = observation.get
    ticks = (seen[name] for name in ("oldest", "newest", "oldest_in_time"))
    return Observed(seen["rows"], seen["rows"] - seen["times"], *ticks)


def refuse_null_times(stream: Stream, seen: Observed) -> None:
    """An InputError when rows have no time: the filter may have left them out, so the engine cannot find them."""
    if seen.null_times:
        raise InputError(
            f"the time column {stream.time} of stream {stream.name} has {seen.null_times} NULLs in a batch of "
            f"{seen.rows} rows; a tuple without a time cannot be placed in a window. Nothing was taken in."
        )


# ---- predicates in Spark's words -----------------------------------------------------------------------------------


def _implied(node: exp.Expr) -> str | None:
    """A condition that holds wherever the predicate holds or fails; None when none is known."""
    exact = _exact(node)
    if exact is not None:
        return exact
    if isinstance(node, exp.Paren):
        return _implied(node.this)
    if isinstance(node, exp.Or):
        parts = [_implied(part) for part in node.flatten()]
        known = [part for part in parts if part is not None]
        return f"({' OR '.join(known)})" if len(known) == len(parts) else None
    if isinstance(node, exp.And):
        known = [part for part in map(_implied, node.flatten()) if part is not None]
        # What is left out may fail where the rest is unknown, so only what is surely false goes.
        return f"coalesce({' AND '.join(known)}, true)" if known else None
    return None


def _exact(node: exp.Expr) -> str | None:
    """The same truth value, unknown included, in Spark SQL; None when Spark has no such thing or means another."""
    match node:
        case exp.Paren():
            return _exact(node.this)
        case exp.And() | exp.Or():
            parts = [_exact(part) for part in node.flatten()]
            known = [part for part in parts if part is not None]
            word = " AND " if isinstance(node, exp.And) else " OR "
            return f"({word.join(known)})" if len(known) == len(parts) else None
        case exp.Not():
            inner = _exact(node.this)
            return None if inner is None else f"(NOT {inner})"
        case exp.Is(expression=exp.Null()):
            column = _column(node.this)
            return None if column is None else f"({column} IS NULL)"
        case exp.Column() if types.is_boolean(_type(node)):
            return _column(node)
        case exp.Boolean():
            return _literal(node, types.BOOLEAN)
        case exp.Between() if not node.args.get("symmetric"):
            return _with_literals(node.this, [node.args["low"], node.args["high"]], "({} BETWEEN {} AND {})")
        case exp.In() if node.expressions and node.args.get("query") is None:
            holes = ", ".join(["{}"] * len(node.expressions))
            return _with_literals(node.this, node.expressions, f"({{}} IN ({holes}))")
    sign = _COMPARISONS.get(type(node))
    if sign is None:
        return None
    left, right = _operands(node)
    if isinstance(left, exp.Column):
        return _with_literals(left, [right], f"({{}} {sign} {{}})")
    if isinstance(right, exp.Column):
        turned = sign.translate(str.maketrans("<>", "><")) if sign != "<>" else sign
        return _with_literals(right, [left], f"({{}} {turned} {{}})")
    return None


def _operands(node: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    left, right = node.this, node.expression
    assert isinstance(left, exp.Expr)
    assert isinstance(right, exp.Expr)
    return left, right


def _with_literals(value: exp.Expr, others: Sequence[exp.Expr], form: str) -> str | None:
    column = _column(value)
    texts = [_literal(other, _type(value)) for other in others]
    if column is None or not all(texts):
        return None
    return form.format(column, *texts)


def _column(node: exp.Expr) -> str | None:
    return quoted(node.name) if isinstance(node, exp.Column) else None


def _literal(node: exp.Expr, sql: exp.DataType) -> str | None:
    """A constant of the same kind as a column of type `sql`, in Spark SQL; its value is the engine's own."""
    if node.find(exp.Column) is not None:
        return None
    try:
        constant = Compiler().compile(node).constant
    except Error:
        return None
    if constant is None or not constant.is_valid:
        return None
    found = types.from_arrow(constant.type)
    if types.is_integer(sql) and types.is_integer(found):
        return str(constant.as_py())
    if types.kind(found) != types.kind(sql):
        return None
    match types.kind(sql):
        case types.D.BOOLEAN:
            return str(constant.as_py()).lower()
        case types.D.TEXT:
            return _text(constant.as_py())
        case types.D.DATE:
            return f"date_from_unix_date({constant.value})"
        case types.D.TIMESTAMP:
            return f"timestamp_micros({constant.value})"
    return None


def _text(value: str) -> str:
    """A string literal; as bytes where Spark's reading of quotes and backslashes depends on its settings."""
    plain = value.isascii() and value.isprintable() and not {"'", "\\"} & set(value)
    return f"'{value}'" if plain else f"CAST(X'{value.encode().hex()}' AS STRING)"


def _type(node: exp.Expr) -> exp.DataType:
    return node.type if isinstance(node.type, exp.DataType) else types.NULL
