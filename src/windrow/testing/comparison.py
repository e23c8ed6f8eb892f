"""Comparing answers in tests: the same rows at every instant, and a message that shows the first difference."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pyarrow as pa

from windrow.testing.multiset import Row, rows

TOLERANCE = 1e-12
_SHOWN = 10


def assert_same(
    actual: pa.Table, expected: pa.Table, *, ordered: bool = False, tolerance: float = TOLERANCE, absolute: float = 0.0
) -> None:
    """Fail unless both have the same columns and, at each _time, the same rows (in the same order if `ordered`).

    Floating numbers may differ by `tolerance`, relatively, or by `absolute`; NaN equals NaN.

    >>> assert_same(pa.table({"_time": [5, 5], "a": [1, 2]}), pa.table({"_time": [5, 5], "a": [2, 1]}))
    >>> assert_same(pa.table({"_time": [5], "a": [1]}), pa.table({"_time": [5], "a": [2]}))
    Traceback (most recent call last):
    AssertionError: answers differ at _time 5 (1 expected rows, 1 found)
      columns:    a
      missing:    (2,)
      unexpected: (1,)
    """
    _assert_same_schema(actual.schema, expected.schema)
    ours, theirs = _by_time(actual), _by_time(expected)
    close = _Close(tolerance, absolute)
    for time in sorted({**ours, **theirs}, key=lambda time: (time is None, time)):
        found, wanted = ours.get(time, []), theirs.get(time, [])
        if ordered:
            if len(found) != len(wanted) or not all(map(close.row, found, wanted)):
                counts = f"{len(wanted)} expected rows, {len(found)} found, in this order"
                raise AssertionError(_message(time, counts, expected, {"expected": wanted, "found": found}))
            continue
        unexpected, missing = close.unmatched(found, wanted)
        if unexpected or missing:
            counts = f"{len(wanted)} expected rows, {len(found)} found"
            raise AssertionError(_message(time, counts, expected, {"missing": missing, "unexpected": unexpected}))


def _assert_same_schema(actual: pa.Schema, expected: pa.Schema) -> None:
    ours, theirs = ([(field.name, str(field.type)) for field in schema] for schema in (actual, expected))
    if actual.names != expected.names or actual.types != expected.types:
        raise AssertionError(f"columns differ\n  expected: {theirs}\n  found:    {ours}")


def _by_time(table: pa.Table) -> dict[Any, list[Row]]:
    if "_time" not in table.schema.names:
        return {None: rows(table)}
    result: dict[Any, list[Row]] = {}
    for time, row in zip(table["_time"].to_pylist(), rows(table.drop_columns(["_time"])), strict=True):
        result.setdefault(time, []).append(row)
    return result


class _Close:
    def __init__(self, relative: float, absolute: float) -> None:
        self._relative = relative
        self._absolute = absolute

    def unmatched(self, found: list[Row], wanted: list[Row]) -> tuple[list[Row], list[Row]]:
        """What is only here and what is only there; first equal rows are paired, then nearly equal ones."""
        unexpected = list((Counter(found) - Counter(wanted)).elements())
        missing = []
        for row in (Counter(wanted) - Counter(found)).elements():
            near = next((place for place, other in enumerate(unexpected) if self.row(row, other)), None)
            if near is None:
                missing.append(row)
            else:
                del unexpected[near]
        return unexpected, missing

    def row(self, left: Row, right: Row) -> bool:
        return all(self._value(a, b) for a, b in zip(left, right, strict=True))

    def _value(self, left: Any, right: Any) -> bool:
        if isinstance(left, tuple) and isinstance(right, tuple):
            return len(left) == len(right) and self.row(left, right)
        if isinstance(left, float) and isinstance(right, float):
            return math.isclose(left, right, rel_tol=self._relative, abs_tol=self._absolute)
        return bool(left == right)


def _message(time: Any, counts: str, table: pa.Table, parts: dict[str, list[Row]]) -> str:
    place = f" at _time {time}" if time is not None else ""
    columns = ", ".join(name for name in table.schema.names if name != "_time")
    lines = [f"answers differ{place} ({counts})", f"  columns:    {columns}"]
    for word, some in parts.items():
        shown = [str(row) for row in some[:_SHOWN]]
        if len(some) > _SHOWN:
            shown.append(f"… and {len(some) - _SHOWN} more")
        text = ("\n" + " " * 14).join(shown) or "nothing"
        lines.append(f"  {word + ':':<11} {text}")
    return "\n".join(lines)
