"""Aggregates that are answered from summaries of a fixed size per pane: FREQUENT, the APPROX_ ones, sketches.

Each says how far its answers may be off; that is in the metadata of the answer's column, and in EXPLAIN.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from windrow.aggregates import columns
from windrow.aggregates.collected import Collected, Parameters, Question, Store
from windrow.aggregates.holistic import ranked

FEWEST_COUNTERS = 1024
RANK_ENTRIES = 512
ANYTHING, NUMBERS, ITEMS = "numbers, strings, dates and times", "numbers", "strings and integers"


@dataclass(frozen=True)
class Sketched:
    """How an aggregate is kept and asked, the bound of its error, and which values it takes."""

    collect: Callable[[pa.DataType, Parameters], Collected]
    error: Callable[[Parameters], str]
    takes: str = ANYTHING


def sketched(name: str, kind: pa.DataType, parameters: Parameters) -> Collected:
    """What an aggregate keeps and asks for values of this type, or a ValueError."""
    integer, text = pa.types.is_integer(kind) and columns.is_int_like(kind), columns.is_text(kind)
    number = integer or pa.types.is_floating(kind) or columns.is_short_decimal(kind)
    takes = SKETCHED[name].takes
    fits = {NUMBERS: number, ITEMS: integer or text, ANYTHING: number or text or columns.is_int_like(kind)}
    if not fits[takes]:
        raise ValueError(f"{name} does not take a value of type {kind}; it takes {takes}")
    return SKETCHED[name].collect(kind, tuple(parameters))


def error_of(name: str, parameters: Parameters) -> str | None:
    """How far an answer may be off; None for an exact aggregate."""
    return SKETCHED[name].error(parameters) if name in SKETCHED else None


def counters(k: int) -> int:
    """How many values a sketch counts for the k most frequent ones: the same for many k, so that they share it."""
    return max(FEWEST_COUNTERS, 1 << (4 * k - 1).bit_length())


def _frequent(kind: pa.DataType, parameters: Parameters) -> Collected:
    k, slide, phase = (int(one) for one in parameters)
    return Collected(Store("frequent", kind, (k, slide, phase, 0)), Question("frequent", ranked(kind)))


def _approx_frequent(kind: pa.DataType, parameters: Parameters) -> Collected:
    k, slide, phase = (int(one) for one in parameters)
    return Collected(Store("frequent", kind, (k, slide, phase, counters(k))), Question("frequent", ranked(kind)))


def _count_distinct(kind: pa.DataType, parameters: Parameters) -> Collected:
    return Collected(Store("hll", kind), Question("count_distinct", pa.int64()))


def _hll_sketch(kind: pa.DataType, parameters: Parameters) -> Collected:
    (lg_k,) = parameters
    size = 40 + (1 << int(lg_k))
    return Collected(Store("hll", kind), Question("sketch", pa.binary(), parameters, size))


def _theta_sketch(kind: pa.DataType, parameters: Parameters) -> Collected:
    (lg_k,) = parameters
    return Collected(Store("theta", kind, parameters), Question("sketch", pa.binary(), (), 24 + (8 << int(lg_k))))


def _hll_error(parameters: Parameters) -> str:
    error = 104 / 2 ** (int(parameters[0]) / 2)
    return f"estimates: relative {2 * error:.2g} % at 95 % (standard error {error:.2g} %)"


def _theta_error(parameters: Parameters) -> str:
    values = 1 << int(parameters[0])
    error = 100 / math.sqrt(values - 1)
    return f"estimates: relative {2 * error:.2g} % at 95 % (standard error {error:.2g} %); exact up to {values} values"


def _quantile(kind: pa.DataType, parameters: Parameters) -> Collected:
    return Collected(_ranks(kind), Question("quantile", kind, parameters))


def _median(kind: pa.DataType, parameters: Parameters) -> Collected:
    return Collected(_ranks(kind), Question("percentile_cont", pa.float64(), (0.5, False)))


def _kll_sketch(kind: pa.DataType, parameters: Parameters) -> Collected:
    (k,) = parameters
    return Collected(_ranks(kind), Question("kll_sketch", pa.binary(), parameters, 3000 + 24 * int(k)))


def _kll_error(parameters: Parameters) -> str:
    return f"quantiles: rank {0.5 + 100 / int(parameters[0]):.2g} % of the values"


def _ranks(kind: pa.DataType) -> Store:
    return Store("quantile_sketch", kind, (RANK_ENTRIES,))


def _top_k(kind: pa.DataType, parameters: Parameters) -> Collected:
    (k,) = parameters
    return Collected(
        Store("frequent_items_sketch", kind, (counters(int(k)),)), Question("top_k", ranked(kind), parameters)
    )


def _items_sketch(kind: pa.DataType, parameters: Parameters) -> Collected:
    kept = pa.struct([("counters", ranked(kind)), ("lost", pa.int64())])
    counters_ = Store("frequent_items_sketch", kind, (FEWEST_COUNTERS,))
    return Collected(counters_, Question("counters", kept, (), 32 * FEWEST_COUNTERS))


_LISTS = "no value is reported that is not frequent, no count is above the true one; frequent values may be missing"
_RANK = "rank 0.5 % of the values; exact up to 512 different values a pane"

SKETCHED: dict[str, Sketched] = {
    "FREQUENT": Sketched(_frequent, lambda _: _LISTS),
    "APPROX_FREQUENT": Sketched(_approx_frequent, lambda _: _LISTS),
    "APPROX_COUNT_DISTINCT": Sketched(
        _count_distinct, lambda _: "relative 3.3 % at 95 % (standard error 1.6 %); nearly exact up to 768"
    ),
    "HLL_SKETCH_AGG": Sketched(_hll_sketch, _hll_error),
    "THETA_SKETCH_AGG": Sketched(_theta_sketch, _theta_error),
    "APPROX_QUANTILE": Sketched(_quantile, lambda _: _RANK),
    "APPROX_MEDIAN": Sketched(_median, lambda _: _RANK, NUMBERS),
    "KLL_SKETCH_AGG": Sketched(_kll_sketch, _kll_error, NUMBERS),
    "APPROX_TOP_K": Sketched(
        _top_k,
        lambda parameters: (
            f"counts too low by at most {100 / counters(int(parameters[0])):.2g} % of the values, never too high"
        ),
    ),
    "ITEMS_SKETCH_AGG": Sketched(
        _items_sketch, lambda _: f"bounds of counts: at most {100 / FEWEST_COUNTERS:.2g} % of the values apart", ITEMS
    ),
}
