"""Every aggregate once more, in plain Python over the list of a group's values that are not NULL."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any


def total(values: list[Any]) -> Any:
    """Exact, rounded once; NaN and infinities as IEEE has them."""
    if not values:
        return None
    if not isinstance(values[0], float):
        return sum(values)
    if any(math.isnan(one) for one in values) or {math.inf, -math.inf} <= set(values):
        return math.nan
    for wild in (math.inf, -math.inf):
        if wild in values:
            return wild
    exact = sum(map(Fraction, values))
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def mean(values: list[Any]) -> Any:
    return float(total(values)) / len(values) if values else None


def order(value: Any) -> Any:
    """NaN is the greatest number."""
    return (1, 0.0) if isinstance(value, float) and math.isnan(value) else (0, value)


def variance(sample: int, power: float) -> Callable[[list[Any]], Any]:
    def model(values: list[Any]) -> Any:
        if len(values) <= sample:
            return None
        exact = [Fraction(one) for one in values]
        centre = sum(exact) / len(exact)
        return float(sum((one - centre) ** 2 for one in exact) / (len(exact) - sample)) ** power

    return model


def nth(values: list[Any], position: int) -> Any:
    return sorted(values, key=order)[max(position, 1) - 1] if values else None


def percentile_cont(values: list[Any], fraction: float) -> Any:
    if not values:
        return None
    ordered = [float(one) for one in sorted(values, key=order)]
    place = (len(ordered) - 1) * fraction
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    return low if low == high else low * (1 - place % 1) + high * (place % 1)


def ranked(values: list[Any], k: int) -> list[tuple[Any, int]] | None:
    best = sorted(Counter(values).items(), key=lambda one: (-one[1], order(one[0])))[:k]
    return best or None


def top_k(values: list[Any], k: int) -> Any:
    best = ranked(values, k)
    return best and [{"value": value, "count": count} for value, count in best]


MODELS: dict[str, tuple[tuple[Any, ...], Callable[[list[Any]], Any]]] = {
    "COUNT": ((), len),
    "SUM": ((), total),
    "AVG": ((), mean),
    "MIN": ((), lambda values: min(values, key=order, default=None)),
    "MAX": ((), lambda values: max(values, key=order, default=None)),
    "VAR_POP": ((), variance(0, 1)),
    "VAR_SAMP": ((), variance(1, 1)),
    "STDDEV_POP": ((), variance(0, 0.5)),
    "STDDEV_SAMP": ((), variance(1, 0.5)),
    "COUNT_DISTINCT": ((), lambda values: len(set(values))),
    "SUM_DISTINCT": ((), lambda values: total(list(set(values)))),
    "AVG_DISTINCT": ((), lambda values: mean(list(set(values)))),
    "QUANTILE": ((0.4,), lambda values: nth(values, math.floor(0.4 * len(values)))),
    "PERCENTILE_DISC": ((0.5, False), lambda values: nth(values, math.ceil(0.5 * len(values)))),
    "PERCENTILE_CONT": ((0.25, False), lambda values: percentile_cont(values, 0.25)),
    "MODE": ((), lambda values: (ranked(values, 1) or [(None, 0)])[0][0]),
    "TOP_K": ((2,), lambda values: top_k(values, 2)),
    # Exact while there are few values.
    "APPROX_COUNT_DISTINCT": ((), lambda values: len(set(values))),
    "APPROX_QUANTILE": ((0.4,), lambda values: nth(values, math.floor(0.4 * len(values)))),
    "APPROX_MEDIAN": ((), lambda values: percentile_cont(values, 0.5)),
    "APPROX_TOP_K": ((2,), lambda values: top_k(values, 2)),
}
"""By name: the parameters, and the answer."""


def close(found: Any, wanted: Any) -> bool:
    """Equal; doubles within 1e-11, NaN equal to itself."""
    if isinstance(found, float) and isinstance(wanted, float):
        both = math.isnan(found) and math.isnan(wanted)
        return both or found == wanted or math.isclose(found, wanted, rel_tol=1e-11, abs_tol=1e-12)
    return bool(found == wanted)
