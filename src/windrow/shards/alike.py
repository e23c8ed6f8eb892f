"""Which types a key may have, and which of them are dealt alike when their values are equal."""

from __future__ import annotations

from sqlglot import exp

from windrow.language import types

_EXACT = (exp.DType.BOOLEAN, exp.DType.DOUBLE, exp.DType.TEXT, exp.DType.DATE, exp.DType.TIMESTAMP)


def alike(sql: exp.DataType | None) -> str | None:
    """A name that types share if equal values of them go to one shard; None for types that deal nothing.

    A FLOAT is compared with a DOUBLE after it was widened, an INTEGER with a DOUBLE after it was rounded: only equal
    types are safe there. Integers are one type, and so are decimals with equally many places.

    >>> alike(types.INTEGER) == alike(types.BIGINT), alike(types.BIGINT) == alike(types.DOUBLE), alike(types.FLOAT)
    (True, False, None)
    """
    if sql is None:
        return None
    if types.is_integer(sql):
        return "integer"
    if types.is_decimal(sql):
        return f"decimal with {types.decimal_digits(sql)[1]} places"
    return types.type_name(sql) if types.kind(sql) in _EXACT else None


def common(left: exp.DataType | None, right: exp.DataType | None) -> exp.DataType | None:
    """The type of a column of a set operation over columns of these types."""
    return None if left is None or right is None else types.common_type(left, right)
