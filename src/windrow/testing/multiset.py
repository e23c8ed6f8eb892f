"""Answers as multisets of rows: what came and what went between two of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable
from typing import Any, TypeAlias

import pyarrow as pa

Row: TypeAlias = tuple[Hashable, ...]


def rows(table: pa.Table) -> list[Row]:
    """The rows as values that can be counted: NaN equals NaN, and 0.0 equals -0.0."""
    columns = [[_value(value) for value in column.to_pylist()] for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def difference(table: pa.Table, other: pa.Table) -> pa.Table:
    """The rows of `table` that `other` has not, copies counted, in their order.

    >>> difference(pa.table({"a": [1, 1, 2]}), pa.table({"a": [1, 3]}))["a"].to_pylist()
    [1, 2]
    """
    return surplus(table, Counter(rows(other)))


def surplus(table: pa.Table, taken: Counter[Row]) -> pa.Table:
    """The rows of `table` without as many copies of each as `taken` counts."""
    left = Counter(taken)
    kept = []
    for position, row in enumerate(rows(table)):
        if left[row] > 0:
            left[row] -= 1
        else:
            kept.append(position)
    return table.take(pa.array(kept, pa.int64()))


def _value(value: Any) -> Hashable:
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, dict):
        return tuple((key, _value(part)) for key, part in value.items())
    if isinstance(value, list):
        return tuple(_value(part) for part in value)
    hashable: Hashable = value
    return hashable
