"""HAVING with one comparison of an aggregate and a constant: what can be decided before the answer is made.

    HAVING COUNT(*) > 100 AND MAX(x) < 7   →   COUNT(*) in 101 … ∞
    HAVING MAX(x) < 7                      →   MAX(x) in −∞ … 6

The groups outside are not looked up any further (002 section 4 calls such queries substream filters). HAVING itself is
still evaluated on the others, so one part of a conjunction is enough.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from windrow.language import types
from windrow.plan.periodic import Aggregation, PeriodicAggregate

LEAST, GREATEST = -(1 << 63), (1 << 63) - 1
_ORDER = (("COUNT", "SUM"), ("MIN", "MAX"))
"""A count or sum is decided by a subtraction, whatever the window; so it is preferred."""
_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {exp.GT: exp.LT, exp.LT: exp.GT, exp.GTE: exp.LTE, exp.LTE: exp.GTE}


@dataclass(frozen=True)
class Threshold:
    """The groups whose aggregation number `aggregation` is in low … high may be in the answer, no others."""

    aggregation: int
    low: int
    high: int
    text: str

    @property
    def side(self) -> str:
        """above or below a constant, or equal to it: a substream filter is asked for one of them at a time."""
        return "above" if self.high == GREATEST else "below" if self.low == LEAST else "equal"

    @property
    def constant(self) -> int | None:
        """The v of > v or < v; None when it is another comparison, or one that holds for all."""
        if self.low == LEAST:
            return None if self.high == GREATEST else self.high + 1
        return self.low - 1 if self.high == GREATEST else None


def threshold_of(plan: PeriodicAggregate) -> Threshold | None:
    """The first part of HAVING that compares a count or sum, or else a MIN or MAX, of integers with an integer."""
    if plan.having is None or not plan.keys:
        return None
    parts = list(plan.having.flatten()) if isinstance(plan.having, exp.And) else [plan.having]
    for names in _ORDER:
        chosen = [(place, one) for place, one in enumerate(plan.aggregations) if one.name in names and _is_integer(one)]
        places = {one.text: place for place, one in chosen}
        for part in parts:
            found = _comparison(part.unnest(), places)
            if found is not None:
                return found
    return None


def _is_integer(one: Aggregation) -> bool:
    """Whether its answers are integers."""
    value = None if one.value is None else one.value.type
    return one.name == "COUNT" or (isinstance(value, exp.DataType) and types.is_integer(value))


def _comparison(part: exp.Expr, places: dict[str, int]) -> Threshold | None:
    kind, left, right = type(part), part.args.get("this"), part.args.get("expression")
    if kind in _MIRRORED and _integer(left) is not None:
        kind, left, right = _MIRRORED[kind], right, left
    value = _integer(right)
    if not isinstance(left, exp.Column) or left.name not in places or value is None:
        return None
    bounds_of: dict[type[exp.Expr], tuple[int, int]] = {
        exp.GT: (value + 1, GREATEST),
        exp.GTE: (value, GREATEST),
        exp.LT: (LEAST, value - 1),
        exp.LTE: (LEAST, value),
        exp.EQ: (value, value),
    }
    bounds = bounds_of.get(kind)
    if bounds is None or not all(LEAST <= bound <= GREATEST for bound in bounds):
        return None
    return Threshold(places[left.name], *bounds, part.sql("cql").replace('"', ""))


def _integer(node: object) -> int | None:
    """The value of an integer constant, perhaps with a sign."""
    if isinstance(node, exp.Neg):
        value = _integer(node.this)
        return None if value is None else -value
    if isinstance(node, exp.Literal) and node.is_int:
        return int(node.this)
    return None
