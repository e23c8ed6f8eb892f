"""Sets of values that a column may have: unions of intervals, with or without NULL. Exact, and closed under -, ∩, ∪.

The values of one column are totally ordered (NaN above all other numbers, text by code point), so a set is a short
sorted list of intervals. Between two whole numbers there is nothing; between two others there may always be something,
so that a set is called empty only if it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

Constant: TypeAlias = "int | float | str"
Bound: TypeAlias = "tuple[Constant, int] | None"
"""A value, and on which side of it the bound lies: -1 just below, +1 just above; None is without end."""


@dataclass(frozen=True)
class ValueSet:
    """The values in one of the intervals (low, high), bounds being between values; and NULL, or not."""

    intervals: tuple[tuple[Bound, Bound], ...]
    null: bool = False

    def __str__(self) -> str:
        """The same for equal sets."""
        shown = [f"({_shown(low)}, {_shown(high)})" for low, high in self.intervals]
        return " ∪ ".join(shown + ["NULL"] * self.null)

    @property
    def empty(self) -> bool:
        """Whether no value is in it, nor NULL."""
        return not self.intervals and not self.null

    def __and__(self, other: ValueSet) -> ValueSet:
        """What is in both: O(intervals of both)."""
        mine, theirs, found = list(self.intervals), list(other.intervals), []
        i = k = 0
        while i < len(mine) and k < len(theirs):
            (low, high), (left, right) = mine[i], theirs[k]
            start, end = _greater_low(low, left), _smaller_high(high, right)
            if _below(start, end):
                found.append((start, end))
            if end == high:
                i += 1
            if end == right:
                k += 1
        return ValueSet(tuple(found), self.null and other.null)

    def __or__(self, other: ValueSet) -> ValueSet:
        """What is in one of them; two sets that are equal have the same intervals."""
        return (self.complement & other.complement).complement

    def within(self, other: ValueSet) -> bool:
        """Whether all of it is in the other one; no two intervals of a set meet, so each is within one."""
        if self.null and not other.null:
            return False
        k = 0
        for low, high in self.intervals:
            while k < len(other.intervals) and not _below(low, other.intervals[k][1]):
                k += 1
            if k == len(other.intervals):
                return False
            left, right = other.intervals[k]
            if _greater_low(low, left) != low or _smaller_high(high, right) != high:
                return False
        return True

    def overlaps(self, other: ValueSet) -> bool:
        """Whether something may be in both."""
        if self.null and other.null:
            return True
        i = k = 0
        while i < len(self.intervals) and k < len(other.intervals):
            (low, high), (left, right) = self.intervals[i], other.intervals[k]
            if _below(low, right) and _below(left, high):
                return True
            if _below(low, right):
                i += 1
            else:
                k += 1
        return False

    def __sub__(self, other: ValueSet) -> ValueSet:
        """What is in this one only."""
        return self & other.complement

    @cached_property
    def complement(self) -> ValueSet:
        """All other values, and NULL if it is not in this one."""
        found: list[tuple[Bound, Bound]] = []
        start: Bound = None
        for low, high in self.intervals:
            if low is not None and _below(start, low):
                found.append((start, low))
            if high is None:
                return ValueSet(tuple(found), not self.null)
            start = high
        return ValueSet((*found, (start, None)), not self.null)


EVERYTHING = ValueSet(((None, None),), null=True)
NOT_NULL = ValueSet(((None, None),))
ONLY_NULL = ValueSet((), null=True)
NOTHING = ValueSet(())


def compared(operator: str, value: Constant, *, whole: bool = False) -> ValueSet:
    """The values v with `v operator value`; of a column of whole numbers, if that is said.

    >>> compared("<", 3, whole=True) & compared(">", 1, whole=True) == compared("=", 2, whole=True)
    True
    """
    below, above = _cut(value, -1, whole), _cut(value, 1, whole)
    match operator:
        case "=":
            return ValueSet(((below, above),))
        case "<>":
            return ValueSet(((None, below), (above, None)))
        case "<":
            return ValueSet(((None, below),))
        case "<=":
            return ValueSet(((None, above),))
        case ">":
            return ValueSet(((above, None),))
        case ">=":
            return ValueSet(((below, None),))
    raise ValueError(f"expected one of = <> < <= > >=, found {operator}")


def _cut(value: Constant, side: int, whole: bool) -> Bound:
    """Between two whole numbers there is one place only: just below the greater one."""
    if whole and side > 0:
        assert isinstance(value, int)
        return value + 1, -1
    return value, side


def _shown(bound: Bound) -> str:
    return "…" if bound is None else f"{bound[0]!r}{'-' if bound[1] < 0 else '+'}"


def _below(low: Bound, high: Bound) -> bool:
    """Whether there may be a value between two bounds."""
    return low is None or high is None or _order(low) < _order(high)


def _order(bound: tuple[Constant, int]) -> Any:
    return bound


def _greater_low(one: Bound, other: Bound) -> Bound:
    if one is None or other is None:
        return one if other is None else other
    return max(one, other, key=_order)


def _smaller_high(one: Bound, other: Bound) -> Bound:
    if one is None or other is None:
        return one if other is None else other
    return min(one, other, key=_order)
