"""Answers from frequency counts: DISTINCT, quantiles, MODE, TOP_K and sketches of many windows and groups at once.

Here are the formulas; positions, counts and sums come from windows that slide or from an index.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow.aggregates import sums
from windrow.aggregates.blobs import blobs
from windrow.aggregates.collected import Question
from windrow.aggregates.columns import from_unscaled
from windrow.kernels.jit import Ints
from windrow.synopses import kll_format
from windrow.synopses.sliding import Sliding
from windrow.synopses.value_codes import ValueCodes


class Counted(Protocol):
    """What both ways of looking at a window can tell of each answer row."""

    @property
    def totals(self) -> Ints:
        """How many values."""

    @property
    def distinct(self) -> tuple[Ints, Ints, Ints]:
        """How many different values, and the sums of the low and high halves of their codes."""

    def select(self, positions: Ints) -> Ints:
        """The codes at positions [k, rows] of the sorted values."""


def slides_only(ask: Question, kind: pa.DataType) -> bool:
    """Whether only windows that slide can answer: they list the values that are present."""
    return ask.name in _LISTED or (ask.name in ("sum_distinct", "avg_distinct") and bool(pa.types.is_floating(kind)))


def is_quantile(ask: Question) -> bool:
    """Whether the question is for values at positions."""
    return ask.name in _QUANTILES


def how(ask: Question) -> str:
    """How a window is answered, for EXPLAIN."""
    if ask.name in _LISTED:
        return "windows slide over the counts, and the values in a window are ranked for each answer"
    index = "sorted runs over base intervals" if is_quantile(ask) else "runs sorted by where a value came last"
    return f"many windows slide over the counts, few long ones are answered from {index}"


def answer(counted: Counted, ask: Question, codes: ValueCodes) -> pa.Array:
    """One answer per row."""
    if ask.name in _LISTED or slides_only(ask, codes.kind):
        assert isinstance(counted, Sliding)
        return _LISTED.get(ask.name, _float_sums)(counted, ask, codes).cast(ask.type)
    return (_QUANTILES | _DISTINCT)[ask.name](counted, ask, codes).cast(ask.type)


# ---- DISTINCT ---------------------------------------------------------------------------------------------------


def _count_distinct(counted: Counted, ask: Question, codes: ValueCodes) -> pa.Array:
    return pa.array(counted.distinct[0])


def _sum_distinct(counted: Counted, ask: Question, codes: ValueCodes) -> pa.Array:
    count, low, high = counted.distinct
    if pa.types.is_decimal(codes.kind):
        return from_unscaled(*sums.widen(low, high), ask.type, count == 0)
    return pa.array(sums.narrow(low, high, count > 0), mask=count == 0)


def _avg_distinct(counted: Counted, ask: Question, codes: ValueCodes) -> pa.Array:
    count, low, high = counted.distinct
    scale = 10.0**codes.kind.scale if pa.types.is_decimal(codes.kind) else 1.0
    return pa.array(sums.approximate(low, high) / np.maximum(count, 1) / scale, mask=count == 0)


def _float_sums(counted: Sliding, ask: Question, codes: ValueCodes) -> pa.Array:
    count, total = counted.distinct[0], counted.float_sums()
    return pa.array(total / np.maximum(count, 1) if ask.name == "avg_distinct" else total, mask=count == 0)


# ---- quantiles --------------------------------------------------------------------------------------------------


def _quantile(counted: Counted, ask: Question, codes: ValueCodes) -> pa.Array:
    """The value at position ⌊φN⌋, at least the first (002, section 3.3)."""
    totals = counted.totals
    return _values(counted, np.floor(float(ask.parameters[0]) * totals).astype(np.int64), totals, codes)


def _percentile_disc(counted: Counted, ask: Question, codes: ValueCodes) -> pa.Array:
    """The first value with at least the fraction φ of all values up to it."""
    totals = counted.totals
    fraction, descending = float(ask.parameters[0]), bool(ask.parameters[1])
    positions = np.maximum(1, totals - np.floor(totals - totals * fraction).astype(np.int64))
    return _values(counted, totals + 1 - positions if descending else positions, totals, codes)


def _percentile_cont(counted: Counted, ask: Question, codes: ValueCodes) -> pa.Array:
    """Between the two values around (N - 1) φ."""
    totals = counted.totals
    fraction, descending = float(ask.parameters[0]), bool(ask.parameters[1])
    place = (totals - 1) * fraction
    low, high = np.floor(place).astype(np.int64), np.ceil(place).astype(np.int64)
    if descending:
        low, high = totals - 1 - low, totals - 1 - high
    found = counted.select(np.stack([_within(low + 1, totals), _within(high + 1, totals)]))
    first, second = _numbers(found[0], codes), _numbers(found[1], codes)
    part = place - np.floor(place)
    with np.errstate(invalid="ignore"):
        between = np.where(first == second, first, first * (1.0 - part) + second * part)
    return pa.array(np.where(part == 0.0, first, between), mask=totals == 0)


def _within(positions: Ints, totals: Ints) -> Ints:
    """Between 1 and the total; 0 where there is nothing."""
    return np.asarray(np.minimum(np.maximum(positions, 1), totals))


def _values(counted: Counted, positions: Ints, totals: Ints, codes: ValueCodes) -> pa.Array:
    """The values at these positions, NULL in rows without any."""
    (found,) = counted.select(_within(positions, totals)[None, :])
    return _decoded(found, totals == 0, codes)


def _decoded(found: Ints, empty: NDArray[np.bool_], codes: ValueCodes) -> pa.Array:
    if not empty.any():
        return codes.decode(found)
    place = np.cumsum(~empty) - 1
    return codes.decode(found[~empty]).take(pa.array(place, mask=empty))


def _numbers(found: Ints, codes: ValueCodes) -> NDArray[np.float64]:
    if pa.types.is_decimal(codes.kind):
        return np.asarray(found / 10.0**codes.kind.scale)
    return np.asarray(codes.decode(found).cast(pa.float64(), safe=False).to_numpy())


# ---- the most frequent ------------------------------------------------------------------------------------------


def _mode(counted: Sliding, ask: Question, codes: ValueCodes) -> pa.Array:
    """The most frequent value, of equally frequent ones the smallest."""
    best, _, lengths = counted.ranked(1)
    found = np.zeros(len(lengths), np.int64)
    found[lengths > 0] = best
    return _decoded(found, lengths == 0, codes)


def _top_k(counted: Sliding, ask: Question, codes: ValueCodes) -> pa.Array:
    """The k most frequent values with their counts, of equally frequent ones the smaller first."""
    best, counts, lengths = counted.ranked(int(ask.parameters[0]))
    names = [field.name for field in ask.type.value_type]
    structs = pa.StructArray.from_arrays([codes.decode(best), pa.array(counts)], names=names)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets, mask=np.append(lengths == 0, False)), structs)


def _kll_sketch(counted: Sliding, ask: Question, codes: ValueCodes) -> pa.Array:
    """The values as a sketch of Apache's, from which any quantile can be asked."""
    k = int(ask.parameters[0])
    floats = bool(pa.types.is_floating(codes.kind))
    items, sizes, totals, extremes = counted.levels(kll_format.capacities(k), floats=floats)
    ends = _numbers(extremes.reshape(-1), codes).reshape(2, -1)
    return blobs(kll_format.sketches(_numbers(items, codes), sizes, totals, ends, k))


_DISTINCT: dict[str, Callable[[Counted, Question, ValueCodes], pa.Array]] = {
    "count_distinct": _count_distinct,
    "sum_distinct": _sum_distinct,
    "avg_distinct": _avg_distinct,
}
_QUANTILES: dict[str, Callable[[Counted, Question, ValueCodes], pa.Array]] = {
    "quantile": _quantile,
    "percentile_disc": _percentile_disc,
    "percentile_cont": _percentile_cont,
}
_LISTED: dict[str, Callable[[Sliding, Question, ValueCodes], pa.Array]] = {
    "mode": _mode,
    "top_k": _top_k,
    "kll_sketch": _kll_sketch,
}
