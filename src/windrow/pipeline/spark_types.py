"""Windrow's types ⇄ Spark's types, and a DataFrame held to a declaration: only widening, nothing lost in silence.

TIMESTAMP is an instant in UTC. Spark has two such types; Windrow takes both and goes on with `timestamp`.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as spark
from sqlglot import exp

from windrow.errors import InputError
from windrow.language import types
from windrow.language.catalog import Column

_TO_SPARK: dict[exp.DType, spark.DataType] = {
    types.D.BOOLEAN: spark.BooleanType(),
    types.D.TINYINT: spark.ByteType(),
    types.D.SMALLINT: spark.ShortType(),
    types.D.INT: spark.IntegerType(),
    types.D.BIGINT: spark.LongType(),
    types.D.FLOAT: spark.FloatType(),
    types.D.DOUBLE: spark.DoubleType(),
    types.D.TEXT: spark.StringType(),
    types.D.VARBINARY: spark.BinaryType(),
    types.D.DATE: spark.DateType(),
    types.D.TIMESTAMP: spark.TimestampType(),
}
# By class, because a StringType with a collation is another value of the same class.
_FROM_SPARK: dict[type[spark.DataType], exp.DataType] = {
    **{type(found): types.SIMPLE[kind][0] for kind, found in _TO_SPARK.items()},
    spark.TimestampNTZType: types.TIMESTAMP,
    spark.CharType: types.TEXT,
    spark.VarcharType: types.TEXT,
    spark.NullType: types.NULL,
}


def to_spark(column: Column, owner: str) -> spark.DataType:
    """The Spark type of a declared column; `owner` (as in "stream s") is named when Spark has no such type."""
    kind = types.kind(column.type)
    if kind in _TO_SPARK:
        return _TO_SPARK[kind]
    if kind == types.D.DECIMAL:
        return spark.DecimalType(*types.decimal_digits(column.type))
    raise InputError(
        f"column {column.name} of {owner} is {types.type_name(column.type)}, which Spark cannot read; declare it as "
        "BOOLEAN, an integer type, FLOAT, DOUBLE, DECIMAL(p, s), VARCHAR, BLOB, DATE or TIMESTAMP"
    )


def from_spark(found: spark.DataType) -> exp.DataType | None:
    """The Windrow type of a Spark type; None when there is none."""
    if isinstance(found, spark.DecimalType):
        scale_fits = 0 <= found.scale <= found.precision
        return types.decimal(found.precision, found.scale) if scale_fits else None
    return _FROM_SPARK.get(type(found))


def spark_schema(columns: Sequence[Column], owner: str) -> spark.StructType:
    """The declared columns as a Spark schema."""
    return spark.StructType([spark.StructField(column.name, to_spark(column, owner)) for column in columns])


def declared_columns(frame: DataFrame, columns: Sequence[Column], owner: str, advice: str) -> DataFrame:
    """Exactly the declared columns, in their order and types; `advice` says how the user can cast what does not fit.

    Whole numbers and decimals for a FLOAT or DOUBLE keep their type: Spark would round them in silence, the worker's
    cast does not.
    """
    return frame.select(*(_declared(frame, column, owner, advice) for column in columns))


def _declared(frame: DataFrame, column: Column, owner: str, advice: str) -> SparkColumn:
    wanted = to_spark(column, owner)
    field = _source_field(frame.schema, column, owner, advice)
    sql = from_spark(field.dataType)
    if sql is None or types.common_type(sql, column.type) != column.type:
        raise InputError(
            f"column {column.name} of {owner} must be {types.type_name(column.type)}, "
            f"the source has {field.dataType.simpleString()}; {advice}"
        )
    value = F.col(quoted(field.name))
    left_to_worker = types.is_floating(column.type) and not types.is_floating(sql)
    if field.dataType != wanted and not left_to_worker:
        value = value.cast(wanted)
    return value.alias(column.name)


def _source_field(schema: spark.StructType, column: Column, owner: str, advice: str) -> spark.StructField:
    exact = [field for field in schema if field.name == column.name]
    fields = exact or [field for field in schema if field.name.lower() == column.name.lower()]
    if len(fields) == 1:
        return fields[0]
    names = ", ".join(field.name for field in schema) or "no columns"
    if fields:
        raise InputError(f"column {column.name} of {owner} is there {len(fields)} times in the source ({names})")
    raise InputError(f"column {column.name} of {owner} is not in the source, which has {names}; {advice}")


def quoted(name: str) -> str:
    """A column name in Spark SQL, whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"
